"""Every estimator of a run's summary against enumeration, with field and without, for |J| = 2."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from enumeration import Thermal, exact_summary
from exact import assert_agree
from made_up import tempered
from moments_of_series import VALUES, PerSite, connected_squares

import spinsim as ss
from spinsim.analysis.jackknife import bin_means, jackknife
from spinsim.analysis.statistics import observed, point_of, statistics_of
from spinsim.analysis.summary import summarize
from spinsim.engine.measuring.correlations import Quantities
from spinsim.observables.moments import VARIANCES
from spinsim.observables.quantities import Choice
from spinsim.observables.table import moments_of, observables

LADDER = np.array([2.0, 4.0])  # in units of |J|


def model_of(kind: str, size: float, field: float) -> ss.Ising:
    """A 3 x 3 lattice: one ferromagnet or, with open ends, antiferromagnet, or three spin glasses; or 2 x 2 sites.

    Diagonals stand in the place of some bonds of the lattice.
    """
    if kind == "diagonals":
        edges = np.concatenate([ss.square(3).edges()[:-3], [[0, 4], [4, 8], [8, 0]]])
        return ss.Ising(ss.Graph(9, edges, ss.square(3)), size, size * field)
    if kind == "two sublattices":
        return ss.Ising(ss.square(2), size, size * field)
    if kind == "open antiferromagnet":
        return ss.Ising(ss.square(3, periodic=False), -size, size * field)
    if kind == "ferromagnet":
        return ss.Ising(ss.square(3), size, size * field)
    couplings = size * np.random.default_rng(5).choice([-1.0, 1.0], (3, 18), p=[0.2, 0.8])
    fields = size * field * (np.random.default_rng(6).normal(size=(3, 9)) if kind == "random field" else 1.0)
    return ss.Ising(ss.square(3), couplings, fields)


# Not of 1 as well: that run has the same spins (test_units.py), and hides powers of |J| that are missing.
@pytest.mark.parametrize("size", [2.0])
@pytest.mark.parametrize(
    ("kind", "field"),
    [("ferromagnet", 0.5), ("glass", 0.0), ("random field", 0.7), ("two sublattices", 0.5), ("diagonals", 0.0),
     ("open antiferromagnet", 0.0), *(pytest.param(kind, field, marks=pytest.mark.slow) for kind, field in (
         ("ferromagnet", 0.0), ("glass", 0.5), ("two sublattices", 0.0), ("open antiferromagnet", 0.5)))],
)  # fmt: skip
def test_every_estimator_agrees_with_enumeration(kind: str, field: float, size: float) -> None:
    """The given samples are no random ones: errors are those of their noise, not those over samples."""
    model = model_of(kind, size, field)
    result = ss.temper(model, size * LADDER, sweeps=3000, thermalize=100, replicas=4, measure_every=2, seed=3)
    found = summarize(result)
    there = observables(model, Choice(4, Quantities(), staggered=model.is_bipartite))
    names = [observable.name for observable in there]
    assert list(found.estimates) == names
    rows, noise = [], noise_of(result)
    for k, temperature in enumerate(result.temperature):
        exact = exact_summary([Thermal(model, temperature, sample) for sample in range(model.samples)])
        values = {name: found.estimates[name].value[k] for name in names}
        rows += [(f"{name} at T = {temperature}", values[name], noise[name][k], exact[name]) for name in names]
    assert_agree(rows)


def noise_of(result: ss.TemperResult) -> dict[str, np.ndarray]:
    """Statistical errors of estimates for the given samples, from 40 stretches of time of many tau each."""
    records, run, point = statistics_of(result).records, PerSite(result), point_of(result)
    names = moments_of(records)
    series = [VALUES[name](run) for name in names]
    squares = [
        (x - x.mean(axis=(0, 2), keepdims=True)) ** 2 if n in VARIANCES else x
        for n, x in zip(names, series, strict=True)
    ]
    moments = np.stack([x.mean(axis=(1, 2)) for x in squares], axis=1)

    def values(mean: np.ndarray) -> np.ndarray:
        return observed(point, records, dict(zip(names, mean, strict=True)))

    errors = jackknife(values, bin_means(moments, 40)).error
    return {o.name: error for o, error in zip(records, errors, strict=True)}


@pytest.mark.parametrize("copies", [4, 5])
def test_connected_overlaps_are_those_of_all_choices_of_copies(copies: int) -> None:
    """Against the sum over ordered choices of four copies, written out."""
    spins = np.random.default_rng(1).choice([-1, 1], (copies, 7))
    q = spins @ spins.T
    pairs = q[np.triu_indices(copies, 1)].reshape(1, 1, -1, 1)
    terms = [q[a, b] ** 2 - 2 * q[a, b] * q[a, c] + q[a, b] * q[c, d] for a, b, c, d in permutations(range(copies), 4)]
    assert connected_squares(pairs, copies).item() == pytest.approx(np.mean(terms), rel=1e-14)
    alike = np.full((3, 2, copies * (copies - 1) // 2, 1), 7)
    assert not connected_squares(alike, copies).any()


@pytest.mark.parametrize("copies", [1, 2, 5])
def test_fluctuations_have_no_bias(copies: int) -> None:
    """20 correlated measurements of variance 1 on top of a mean: tau is known to no run so short, but copies tell."""
    random = np.random.default_rng(2)
    held = np.repeat(random.normal(size=(5, 4000, copies, 1)), 4, axis=0) if copies > 1 else None
    values = 3 + (random.normal(size=(20, 4000, 1, 1)) if held is None else held)
    model = ss.EdwardsAnderson(ss.chain(4), samples=4000, seed=1)
    run = replace(
        tempered(model, copies, 20, np.array([1.0])), energy=np.broadcast_to(values, (20, 4000, copies, 1)) * 4
    )
    means = statistics_of(run).entries(["(E - <E>)^2"])
    assert_agree([("variance", float(means.mean()), float(means.std() / np.sqrt(means.size)), 1.0)])
