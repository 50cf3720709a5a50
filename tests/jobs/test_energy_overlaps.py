"""Populations at temperatures that are found so that neighbouring energies overlap by a given part."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import exact
import numpy as np
import pytest
from harness import one_sentence, run

import spinsim as ss
from spinsim.engine import Dynamics
from spinsim.sampling.placement import overlap_of, overlapping_temperatures

MODEL = ss.EdwardsAnderson(ss.square(4), samples=4, seed=1)
HOW: dict[str, Any] = {"populations": 1, "overlap": 0.8, "t_stop": 0.4, "sweeps": 4, "replicas": 2000, "seed": 7}


def test_overlaps_are_those_of_their_definition() -> None:
    above = np.random.default_rng(3).exponential(4.0, (3, 500))
    for step in (0.0, 0.01, 0.3, 2.0):
        weight = np.exp(-step * above)
        expected = np.minimum(1, weight / weight.mean(axis=1, keepdims=True)).mean()
        assert overlap_of(above, step) == pytest.approx(expected, abs=1e-8)


def test_as_many_replicas_are_removed_at_every_temperature() -> None:
    result = ss.anneal(ss.EdwardsAnderson(ss.cubic(4), samples=3, seed=2), **(HOW | {"overlap": 0.9}))
    kept = result.parents.mean(axis=(1, 2)) / 2000
    assert result.temperature[-1] == 0.4
    assert (np.diff(result.temperature) < 0).all()
    np.testing.assert_allclose(kept[:-1], 0.9, atol=0.03)
    assert kept[-1] > 0.87


def test_free_energies_are_exact() -> None:
    result, rows = ss.anneal(MODEL, **HOW), []
    free, error = result.free_energy, result.free_energy_error
    for step, k in np.ndindex(free.shape):
        energy, temperature = exact.energies_of_states(MODEL, k), result.temperature[step]
        expected = energy.min() - temperature * np.log(np.exp(-(energy - energy.min()) / temperature).sum())
        rows.append((f"F {step} {k}", free[step, k], error[step, k], expected))
    exact.assert_agree(rows)


def test_the_error_is_less_than_that_of_temperatures_even_in_beta() -> None:
    """With as many temperatures and sweeps: ln Z of 32 populations of each of two samples of the 3D +-J glass."""
    model = ss.EdwardsAnderson(ss.cubic(6), samples=2, seed=1)
    how = {"populations": 32, "replicas": 32 * 128, "sweeps": 5}
    found = ss.anneal(model, overlap=0.7, t_stop=0.3, seed=3, **how)
    even = ss.anneal(model, 1 / np.linspace(0, 1 / 0.3, len(found.temperature) + 1)[1:], seed=4, **how)
    assert even.temperature[-1] == pytest.approx(0.3)
    of_found, of_even = (np.var(r.population_free_energy[-1] / 0.3, axis=1, ddof=1).mean() for r in (found, even))
    assert of_found < 0.4 * of_even
    assert found.families.mean_square_size[-1].mean() < 0.7 * even.families.mean_square_size[-1].mean()


def test_temperatures_do_not_depend_on_threads_or_the_run() -> None:
    one, two = (overlapping_temperatures(MODEL, 0.4, 0.8, Dynamics(seed=7), "cpu", threads) for threads in (1, 2))
    np.testing.assert_array_equal(one, two)
    np.testing.assert_array_equal(ss.anneal(MODEL, **(HOW | {"replicas": 10, "sweeps": 1})).temperature, one)
    assert not np.array_equal(ss.anneal(MODEL, **(HOW | {"replicas": 10, "seed": 8})).temperature, one)


@pytest.mark.system
@pytest.mark.usefixtures("emulated")
def test_temperatures_have_the_same_bits_on_a_gpu() -> None:
    one, other = (overlapping_temperatures(MODEL, 0.4, 0.8, Dynamics(seed=7), device) for device in ("cpu", "cuda"))
    np.testing.assert_array_equal(one, other)


def test_a_run_is_known_by_its_file(tmp_path: Path) -> None:
    calls = 0

    def interrupt(updates: int) -> None:
        nonlocal calls
        calls += updates > 0
        if calls == 3:
            raise KeyboardInterrupt

    path, how = tmp_path / "a.h5", HOW | {"replicas": 64}
    with pytest.raises(KeyboardInterrupt):
        ss.anneal(MODEL, out=path, checkpoint_every=0, on_updates=interrupt, **how)
    resumed, whole = ss.resume(path), ss.anneal(MODEL, **how)
    for name in ("temperature", "energy", "family", "population_free_energy", "best_spins"):
        np.testing.assert_array_equal(getattr(resumed, name), getattr(whole, name))
    before = path.read_bytes()
    ss.anneal(MODEL, out=path, **how)
    assert path.read_bytes() == before
    assert resumed.config["anneal"]["overlap"] == 0.8
    assert resumed.config["anneal"]["steps"] == len(resumed.temperature)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--overlap 0.8", "does not go with anneals without populations"),
        ("--populations 1 --overlap 0.8 --steps 5", "steps 5 does not go with overlap"),
        ("--populations 1 --overlap 0.8 --temperatures 2,1 --fields 1,0", "does not go with overlap"),
        ("--populations 1 --overlap 0.8 --fields 1,0", "does not go with fields"),
        ("--populations 1 --overlap 1", "overlap"),
        ("--populations 1 --overlap 0.8 --t-stop 1e9", "as good as the infinite temperature"),
    ],
)
def test_what_does_not_go_together_is_refused(tmp_path: Path, capsys, monkeypatch, options: str, words: str) -> None:
    monkeypatch.chdir(tmp_path)
    one_sentence(run(capsys, monkeypatch, *f"anneal --size 4 --couplings pm-j {options}".split()), words)
