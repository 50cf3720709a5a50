"""Dynamic exponents of quantum transitions: z = 1 of the chain, averages over samples, and tails of known exponents."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import spinsim as ss
from spinsim.analysis.summary import summarize

CRITICAL = np.log(1 + np.sqrt(2)) / 2
TIMES = {"sweeps": 1500, "thermalize": 200, "measure_every": 5, "correlation_times": 1, "clusters": "sw"}


@pytest.fixture(scope="module")
def chains() -> list[ss.QuantumResult]:
    """The isotropic form of a chain is the square lattice: at its critical k both lengths match at L_t = L."""
    return [
        ss.quantum(ss.Ising(ss.chain(side)), [0.43, CRITICAL, 0.45], slices, replicas=16, **TIMES, seed=side + slices)
        for side in (4, 8)
        for slices in (side // 2, side, 2 * side)
    ]


def test_the_chain_has_z_of_one(chains) -> None:
    found = ss.dynamic_exponent(chains, CRITICAL, "binder_cumulant")
    assert abs(found.value - 1) < 4 * found.error
    assert found.sides.tolist() == [4, 8]
    assert np.all(np.abs(found.values - [4, 8]) < 4 * found.errors + 0.1 * found.sides)  # but for the parabola
    assert ss.dynamic_exponent(chains, CRITICAL).value == found.value


def test_runs_without_a_best_number_of_slices(chains) -> None:
    tempered = ss.temper(ss.Ising(ss.square(4)), [2.0, 3.0], 100, 0)
    for runs, at, words in (
        (chains[:3], CRITICAL, "1 values of different sizes are too few"),
        (chains[:2] + chains[3:], CRITICAL, "L = 4 has runs of 2, 4 slices: give three"),
        (chains, 0.5, "the ladder of L = 4 from 0.43 to 0.45 lacks k = 0.5"),
        ([], 0.5, "no runs are given"),
        ([tempered], 2.5, "the run of square-4x4 has no slices in time"),
    ):
        with pytest.raises(ss.InputError, match=words):
            ss.dynamic_exponent(runs, at)


def test_correlation_times_of_the_chain_have_z_of_one(chains) -> None:
    long = [
        ss.quantum(ss.Ising(ss.chain(side)), [0.43, CRITICAL, 0.45], 8 * side, replicas=32, **TIMES, seed=side)
        for side in (4, 8)
    ]
    name = "correlation_time_over_slices"
    found = ss.dynamic_exponent(long + chains, CRITICAL, name)  # runs of fewer slices do not count
    assert abs(found.value - 1) < 4 * found.error < 0.3
    curves = [summarize(one).estimates[name].value[list(one.k).index(CRITICAL)] for one in long]
    np.testing.assert_allclose(found.values, np.array(curves) * [32, 64])
    assert np.all(np.abs(found.values - 4 / np.pi * found.sides) < 4 * found.errors + 0.05 * found.sides)  # Cardy 1984
    with pytest.raises(ss.InputError, match=r"the correlation time of L = 4 is 0.\d+ of its 8 slices, above 0.2"):
        ss.dynamic_exponent(chains, CRITICAL, name)


def test_cumulants_of_glasses_are_averaged_over_samples() -> None:
    """Against the moments of the overlaps themselves: the largest value of a parabola through three numbers."""
    runs = [
        ss.quantum(
            ss.EdwardsAnderson(ss.chain(side), samples=12, seed=3),
            [0.4, 0.45],
            slices,
            replicas=4,
            **TIMES,
            seed=slices,
        )
        for side in (4, 8)
        for slices in (side // 2, side, 2 * side)
    ]
    found = ss.dynamic_exponent(runs, 0.45)
    cumulants = []
    for run in runs:
        overlap = run.overlap[..., list(run.k).index(0.45)].astype(float)
        second, fourth = (overlap**2).mean(axis=(0, 2)), (overlap**4).mean(axis=(0, 2))
        cumulants.append((1 - fourth / (3 * second**2)).mean())
    for side, best, of in zip((4, 8), found.values, np.reshape(cumulants, (2, 3)), strict=True):
        square, slope, _ = np.polyfit(np.log([side // 2, side, 2 * side]), of, 2)
        np.testing.assert_allclose(best, np.exp(-slope / (2 * square)))
    assert found.value != ss.dynamic_exponent(runs, 0.45, "overlap_binder_cumulant").value


class Result(SimpleNamespace):
    """Local susceptibilities with a tail x^-exponent, (samples, copies, points, sites)."""


@pytest.mark.parametrize("seeds", [30, pytest.param(200, marks=pytest.mark.slow)])
def test_tails_of_known_exponents(seeds: int, monkeypatch) -> None:
    monkeypatch.setattr("spinsim.analysis.scaling.dynamic.as_result", lambda run: run)
    scores: list[Any] = []
    for seed in range(seeds):
        local = np.random.default_rng(seed).pareto([[[[0.8]], [[1.6]]]], size=(60, 2, 1, 40)) + 1
        result: Any = Result(in_time=1, model=ss.Ising(ss.square(4)), local_susceptibility=local.swapaxes(1, 2))
        found = ss.local_tail(result, 0.3)
        scores.append((found.exponent - [0.8, 1.6]) / found.error)
    assert np.all(np.abs(np.mean(scores, axis=0)) * np.sqrt(seeds) <= 4)
    assert np.all(np.abs(np.std(scores, axis=0) - 1) < max(0.15, 4 / np.sqrt(2 * seeds)))
    np.testing.assert_allclose(found.z, 2 / found.exponent)
    with pytest.raises(ss.InputError, match="is no tail"):
        ss.local_tail(result, 0.7)
    with pytest.raises(ss.InputError, match="fewer than 10: give more samples"):
        ss.local_tail(result, 1e-4)


def test_tails_take_local_susceptibilities(chains) -> None:
    with pytest.raises(ss.InputError, match="the run has no local susceptibilities"):
        ss.local_tail(chains[0])
    with pytest.raises(ss.InputError, match="has no slices in time"):
        ss.local_tail(ss.temper(ss.Ising(ss.square(4)), [2.0, 3.0], 100, 0))
