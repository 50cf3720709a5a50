"""Series in the forms that other programs take: chains and draws of ArviZ, reduced energies of pymbar."""

from __future__ import annotations

import numpy as np
import pytest
from exact import energies_of_states

import spinsim as ss

LADDER = (1.5, 2.0, 2.7, 4.0)


@pytest.fixture(scope="module")
def run() -> ss.TemperResult:
    model = ss.EdwardsAnderson(ss.square(4), samples=2, seed=3)
    return ss.temper(model, LADDER, sweeps=20_000, thermalize=500, replicas=3, seed=2)


def test_copies_are_chains_and_measurements_draws(run):
    series = run.to_arviz()
    assert set(series.data_vars) == {"energy", "magnetization", "staggered_magnetization"}
    assert series["energy"].dims == ("chain", "draw", "sample", "temperature")
    np.testing.assert_array_equal(series["energy"], run.energy.transpose(2, 0, 1, 3))
    np.testing.assert_array_equal(series["temperature"], LADDER)
    np.testing.assert_array_equal(series["chain"], range(3))


def test_reduced_energies_give_exact_freeenergies_of_states(run):
    """The equations of MBAR, iterated, against the partition function by enumeration."""
    for sample in range(2):
        u, made = run.u_kn(sample)
        assert u.shape == (4, made.sum())
        energy = run.energy[:, sample]
        np.testing.assert_allclose(u[2][made[0] : 2 * made[0]], energy[..., 1].reshape(-1) / LADDER[2])
        f, all_energies = np.zeros(4), energies_of_states(run.model, sample)
        for _ in range(200):
            log_weight = -np.logaddexp.reduce(np.log(made)[:, None] + f[:, None] - u, axis=0)
            f = -np.logaddexp.reduce(log_weight - u, axis=1)
            f -= f[0]
        exact = -np.array([np.logaddexp.reduce(-all_energies / t) for t in LADDER])
        np.testing.assert_allclose(f, exact - exact[0], atol=0.02)


@pytest.mark.parametrize("sample", [2, -1])
def test_a_sample_that_is_not_there(run, sample):
    with pytest.raises(ss.InputError, match="2 samples"):
        run.u_kn(sample)
