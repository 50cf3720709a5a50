"""Clusters as observables: against plain search, and averages against enumeration of spins and open bonds."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import numpy.typing as npt
import pytest
from enumeration import Thermal

import spinsim as ss
from spinsim.analysis.autocorrelation import integrated_time
from spinsim.observables import clusters
from spinsim.observables.batch import Batch
from spinsim.observables.distances import spin_correlation

AXES = ("sample", "copy", "temperature", "site")


def check(series: npt.NDArray[np.generic], expected: float) -> None:
    """Compare the average of a series (steps, copies) with its exact value."""
    found = integrated_time(series.astype(float), chain_axis=1)
    error = 0.0 if series.min() == series.max() else found.mean_error
    assert abs(found.mean - expected) <= 4 * error + 1e-12, (found, expected)


def plain(model: ss.Ising, opened: npt.NDArray[np.bool_]) -> tuple[list[int], set[int]]:
    """Sizes of clusters, and axes along which one wraps: sites are met again elsewhere in space."""
    near: list[list[tuple[int, npt.NDArray[np.int64]]]] = [[] for _ in range(model.sites)]
    lattice = model.lattice
    steps = np.zeros((model.bonds, 0), int)
    if lattice is not None:
        steps = np.array([lattice.cell.bonds[k].step for k in lattice.bond_numbers()])
    for e in np.flatnonzero(opened):
        i, j = model.graph.edges[e].tolist()
        near[i].append((j, steps[e]))
        near[j].append((i, -steps[e]))
    place: dict[int, npt.NDArray[np.int64]] = {}
    sizes, wraps = [], set()
    for first in range(model.sites):
        if first in place:
            continue
        queue, place[first] = [first], np.zeros(steps.shape[1], int)
        for i in queue:
            for j, step in near[i]:
                if j in place:
                    wraps |= set(np.flatnonzero(place[j] != place[i] + step).tolist())
                else:
                    place[j] = place[i] + step
                    queue.append(j)
        sizes.append(len(queue))
    return sizes, wraps


LATTICES = {
    "chain": ss.chain(6),
    "square": ss.square(5, 4),
    "thin": ss.square(2, 6),
    "cubic": ss.cubic(3),
    "triangular": ss.triangular(4),
    "honeycomb": ss.honeycomb(3),
}


@pytest.mark.parametrize("name", LATTICES)
def test_overlap_clusters(name: str) -> None:
    model = ss.EdwardsAnderson(LATTICES[name], samples=2, seed=1)
    spins = np.where(np.random.default_rng(4).random((2, 3, 50, model.sites)) < 0.75, 1, -1).astype(np.int8)
    batch = Batch(spins, AXES, model, np)
    largest, sizes = clusters.overlap_largest_cluster(batch), clusters.overlap_cluster_sizes(batch)
    wrapped, seen = clusters.overlap_wrapping(batch), set()
    for k, c, t in np.ndindex(2, 3, 50):
        q = spins[k, c, t] * spins[k, (c + 1) % 3, t]
        ends = model.graph.edges
        found, wraps = plain(model, q[ends[:, 0]] == q[ends[:, 1]])
        assert largest[k, c, t] == max(found) / model.sites
        expected = np.bincount([size.bit_length() - 1 for size in found], minlength=sizes.shape[-1])
        assert np.array_equal(sizes[k, c, t], expected)
        assert set(np.flatnonzero(wrapped[k, c, t]).tolist()) == wraps
        seen |= wraps
    assert len(seen) == model.lattice.dimension


def exact(model: ss.Ising, beta: float) -> dict[str, npt.NDArray[np.float64]]:
    """Averages over open bonds, with weight p^open (1 - p)^closed 2^clusters, of a ferromagnet in no field."""
    p, totals, norm = 1 - np.exp(-2 * beta), dict[str, npt.NDArray[np.float64]](), 0.0
    axes = model.lattice.dimension if model.lattice else 0
    for bits in product((False, True), repeat=model.bonds):
        sizes, wraps = plain(model, np.array(bits))
        weight = p ** sum(bits) * (1 - p) ** (model.bonds - sum(bits)) * 2.0 ** len(sizes)
        norm += weight
        by_bits = np.bincount([size.bit_length() - 1 for size in sizes], minlength=model.sites.bit_length())
        for name, value in (
            ("largest_cluster", max(sizes) / model.sites),
            ("cluster_sizes", by_bits),
            ("wrapping", np.isin(np.arange(axes), list(wraps))),
        ):
            totals[name] = totals.get(name, 0.0) + weight * np.asarray(value, float)
    return {name: total / norm for name, total in totals.items()}


GRAPH = ss.Graph(7, np.array([(0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (4, 5), (5, 2), (5, 6), (6, 0), (1, 5)]))


@pytest.mark.parametrize("where", [ss.chain(6), ss.square(2, 2), GRAPH], ids=["chain", "square", "graph"])
def test_against_enumeration_of_open_bonds(where: ss.Lattice | ss.Graph) -> None:
    model, names = ss.Ising(where), ["largest_cluster", "cluster_sizes", "wrapping"]
    if model.lattice is None:
        names.pop()
    how = {"replicas": 4, "thermalize": 20, "measure_every": 2, "seed": 6, "device": "cpu", "clusters": "sw"}
    measure = {name: getattr(clusters, name) for name in names}
    result = ss.temper(model, [1.5, 2.5], sweeps=1500, clusters_every=1, measure=measure, **how)
    for t, temperature in enumerate([1.5, 2.5]):
        for name, value in exact(model, 1 / temperature).items():
            if name in names:
                series = result.measured[name][:, 0, :, t].reshape(750, 4, -1)
                for k, expected in enumerate(value.reshape(-1)):
                    check(series[..., k], expected)


def test_improved_magnetization_in_fields() -> None:
    model = ss.Ising(ss.square(3), field=np.resize([0.4, -0.3, 0.1, 0.0], 9))
    how = {"replicas": 4, "thermalize": 20, "measure_every": 2, "seed": 6, "device": "cpu"}
    measure = {"m2": clusters.improved_magnetization_squared}
    result = ss.temper(model, [2.0, 4.0], sweeps=1500, measure=measure, **how)
    for t, temperature in enumerate([2.0, 4.0]):
        exact_at = Thermal(model, temperature)
        check(result.measured["m2"][:, 0, :, t], exact_at.mean(exact_at.m**2))
    annealed = ss.anneal(
        ss.Ising(ss.square(3)),
        [4.0, 4.0],
        sweeps=60,
        replicas=6000,
        field=[0.0, 0.3],
        seed=3,
        device="cpu",
        measure=measure,
    )
    for step, field in enumerate([0.0, 0.3]):
        values, thermal = annealed.measured["m2"][step, 0], Thermal(ss.Ising(ss.square(3), field=field), 4.0)
        assert abs(values.mean() - thermal.mean(thermal.m**2)) <= 4 * values.std() / np.sqrt(values.size)


@pytest.mark.parametrize("field", [0.0, 0.3])
def test_improved_correlation(field: float) -> None:
    model = ss.Ising(ss.square(4, 3), np.resize([1.0, 1.0, -1.0], 24), field=field)
    spins = np.random.default_rng(3).choice(np.array([-1, 1], np.int8), (1, 2, 2, 12))
    batches = [Batch(spins, AXES, model, np, np.array([0.1, 0.6]), seed=5, number=n) for n in range(20)]
    shape = spin_correlation(batches[0]).shape
    assert clusters.improved_correlation(batches[0]).shape == shape == (1, 2, 2, 2, 3)
    assert np.all(clusters.improved_correlation(batches[0])[..., 0] == 1)
    for batch in batches:  # the same from the clusters themselves
        labels = clusters._of_fortuin_kasteleyn(batch, labels=True)[4].reshape(1, 2, 2, 3, 4)
        grid, g = batch.grid.astype(float), clusters.improved_correlation(batch)
        for axis, r in ((0, 1), (0, 2), (1, 1)):
            joined = labels == np.roll(labels, -r, axis=-1 - axis)
            expected = (joined * grid * np.roll(grid, -r, axis=-1 - axis)).mean(axis=(-2, -1))
            np.testing.assert_allclose(g[..., axis, r], expected, atol=1e-15)
    how = {"replicas": 2, "thermalize": 50, "measure_every": 2, "seed": 6, "device": "cpu"}
    measure = {"G": clusters.improved_correlation}
    result = ss.temper(model, [1.5, 3.0], sweeps=3000, measure=measure, **how)
    for t, temperature in enumerate([1.5, 3.0]):
        thermal = Thermal(model, temperature)
        grid = thermal.spins.T.reshape(-1, 3, 4)
        for axis, r in ((0, 1), (0, 2), (1, 1)):
            exact_at = thermal.mean((grid * np.roll(grid, -r, axis=-1 - axis)).mean(axis=(-2, -1)))
            check(result.measured["G"][:, 0, :, t, axis, r], exact_at)


def problem(name: str) -> ss.Ising:
    """A model of the test below; two have random numbers in their couplings, more sizes than a block keeps."""
    rng = np.random.default_rng(7)
    if name == "graph":
        return ss.Ising(GRAPH, rng.normal(size=(2, 10)), rng.choice([0.0, 0.5], (2, 7)))
    if name == "diluted":
        return ss.EdwardsAnderson(ss.square(6, 5), samples=2, bond_fraction=0.7, seed=2)
    if name == "open":
        return ss.Ising(ss.square(5, periodic=False))
    couplings = "gaussian" if name == "square" else "pm-j"
    return ss.EdwardsAnderson(LATTICES[name], samples=2, couplings=couplings, field=0.2 * (name == "cubic"), seed=1)


@pytest.mark.parametrize("on_lattice", [True, False], ids=["on a lattice", "anywhere"])
@pytest.mark.parametrize("name", [*LATTICES, "diluted", "open", "graph"])
def test_devices_find_the_same_clusters(
    name: str, on_lattice: bool, device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, rng = problem(name), np.random.default_rng(5)
    spins = np.where(rng.random((model.samples, 3, 47, model.sites)) < 0.7, 1, -1).astype(np.int8)
    here = Batch(spins, AXES, model, np, np.linspace(0.1, 1.2, 47), seed=8, number=3)
    there = here
    if device == "cuda":
        import cupy

        there = replace(here, spins=cupy.asarray(spins), xp=cupy)
        if model.samples > 1 and name == "square":
            from spinsim.observables import clusters_cuda

            monkeypatch.setattr(clusters_cuda, "AT_ONCE", 1)  # sample by sample
    names = ["improved_magnetization_squared", "largest_cluster", "cluster_sizes"]
    names += ["overlap_largest_cluster", "overlap_cluster_sizes"]
    if on_lattice:
        if name in ("open", "graph"):
            pytest.skip("nothing wraps")
        names = ["wrapping", "overlap_wrapping"] + ["improved_correlation"] * (name != "honeycomb")
    for function in (getattr(clusters, one) for one in names):
        found = function(there)
        assert np.array_equal(found.get() if hasattr(found, "get") else found, function(here)), function


def test_refused_without_a_lattice_or_copies() -> None:
    spins = np.ones((1, 1, 2, 7), np.int8)
    batch = Batch(spins, AXES, ss.Ising(GRAPH), np, np.array([0.5, 0.4]))
    with pytest.raises(ss.InputError, match="periodic lattice"):
        clusters.wrapping(batch)
    with pytest.raises(ss.InputError, match="two copies"):
        clusters.overlap_cluster_sizes(batch)
