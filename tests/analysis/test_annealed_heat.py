"""The specific heat of an anneal: kept in equilibrium, left out where it is not the slope of the energy."""

from __future__ import annotations

import json
from functools import cache

import numpy as np
import numpy.typing as npt
import pytest
from harness import run

import spinsim as ss
from spinsim.analysis.thermodynamics import thermodynamics
from spinsim.jobs.anneal.result import AnnealResult

COARSE, FINE = np.geomspace(4, 0.5, 8), np.geomspace(4, 0.5, 100)
Array = npt.NDArray[np.float64]


@cache
def levels() -> tuple[Array, Array]:
    """Energies of the 4 x 4 ferromagnet and how many states have them."""
    spins = (2 * (np.arange(2**16) >> np.arange(16)[:, None] & 1) - 1).astype(np.int8)
    return np.unique(ss.Ising(ss.square(4)).energy(spins[None])[0], return_counts=True)


def equilibrium(ladder: Array, samples: int, replicas: int, seed: int) -> AnnealResult:
    """A cooling of the 4 x 4 ferromagnet, infinitely slow."""
    random, (energy, states) = np.random.default_rng(seed), levels()
    rows = []
    for temperature in ladder:
        weight = states * np.exp(-(energy - energy.min()) / temperature)
        rows.append(random.choice(energy, (samples, replicas), p=weight / weight.sum()))
    model = ss.Ising(ss.square(4), np.ones((samples, 32)))
    rest = np.zeros((len(ladder), samples, replicas), np.int64), np.zeros((samples, replicas))
    return AnnealResult(model, ladder, np.array(rows), *rest, np.ones((samples, 16), np.int8))


@pytest.mark.parametrize("ladder", [COARSE, FINE])
@pytest.mark.parametrize(("samples", "replicas"), [(1, 4), (1, 16), (1, 128), (5, 16), (40, 2)])
def test_what_is_in_equilibrium_is_kept(ladder, samples, replicas):
    runs = 400 // len(ladder) + 4
    found = [thermodynamics(equilibrium(ladder, samples, replicas, seed)) for seed in range(runs)]
    lost = np.mean([np.isnan(one.specific_heat.mean) for one in found])
    assert lost <= 0.04
    for one in found:
        np.testing.assert_array_equal(one.specific_heat_trusted, ~np.isnan(one.specific_heat.mean))
        heat, error = one.specific_heat
        unknown = np.isnan(heat) | (heat < 1e-12)  # where nothing moves there is no scatter
        assert np.isnan(error)[unknown].all()
        assert replicas == 4 or np.isfinite(error)[~unknown].all()  # two pairs of four have no scatter


def test_a_quench_is_left_out():
    """Replicas that cool no further below T = 1.5, each in its own state."""
    result = equilibrium(FINE, 1, 128, seed=1)
    frozen = int(np.argmax(FINE < 1.8))
    result.energy[frozen:] = result.energy[frozen]
    found = thermodynamics(result)
    assert not found.specific_heat_trusted[frozen + 2 :].any()
    assert np.isnan(found.specific_heat.mean[frozen + 2 :]).all()
    assert found.specific_heat_trusted[: frozen - 2].mean() > 0.95
    moving = equilibrium(FINE, 1, 128, seed=2)
    moving.energy[frozen:, :, 1:] = moving.energy[frozen, :, 1:]  # one replica alone goes on
    assert np.isnan(thermodynamics(moving).specific_heat.mean[frozen + 2 :]).mean() > 0.95


def test_one_replica_in_another_valley_is_noticed():
    """Its spread has an error of its own size, but nothing moves."""
    result = equilibrium(FINE, 1, 16, seed=3)
    result.energy[-20:] = -32
    assert thermodynamics(result).specific_heat_trusted[-18:].all()  # all in the ground state: no heat, no slope
    result.energy[-20:, :, 0] = -24
    assert np.isnan(thermodynamics(result).specific_heat.mean[-18:]).all()


@pytest.mark.parametrize(("ladder", "replicas"), [([2.0] * 5, 16), ([2.0], 16), ([2.0, 1.0], 2)])
def test_without_a_slope_the_heat_is_given_but_not_trusted(ladder, replicas):
    found = thermodynamics(equilibrium(np.array(ladder), 1, replicas, seed=4))
    assert np.isfinite(found.specific_heat.mean).all()
    assert not found.specific_heat_trusted.any()


def test_a_frozen_glass(tmp_path, capsys, monkeypatch):
    """Cooled in a hundred steps of one sweep; C/N would rise like 1 / T^2 at the end."""
    model = ss.EdwardsAnderson(ss.cubic(6), seed=1)
    result = ss.anneal(model, np.geomspace(3, 0.1, 100), sweeps=1, replicas=64, seed=1)
    table = ss.table(result)
    cold = table["temperature"] < 0.3
    assert not table["specific_heat_trusted"][cold].any()
    assert table["specific_heat"][cold].isna().all()
    file = result.save(tmp_path / "run.h5")
    shown = run(capsys, monkeypatch, "show", file).out.splitlines()
    assert shown[-2].split()[2] == "-"
    assert shown[-1].startswith("-: C/N from the scatter")
    assert "lowest_energy" in json.loads(run(capsys, monkeypatch, "show", file, "--json").out)
