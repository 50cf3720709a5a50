"""Correlations by distance against plain NumPy and exact enumeration."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from exact import assert_agree

import spinsim as ss
from spinsim.errors import InputError
from spinsim.observables.batch import Batch
from spinsim.observables.distances import overlap_correlation, spin_correlation

MEASURE = {"G": spin_correlation, "C4": overlap_correlation}
AXES = ("sample", "copy", "temperature", "site")


def plain(values, shape, periodic):
    """Return averages over pairs of sites of one configuration, (axes, distances), pair by pair."""
    found = np.zeros((len(shape), max(shape) // 2 + 1))
    for axis, side in enumerate(shape):
        for r in range(side // 2 + 1):
            pairs = []
            for place in product(*map(range, shape)):
                other = list(place)
                other[axis] += r
                if other[axis] < side or periodic:
                    other[axis] %= side
                    a, b = (sum(x * int(np.prod(shape[:d])) for d, x in enumerate(p)) for p in (place, other))
                    pairs.append(values[a] * values[b])
            found[axis, r] = np.mean(pairs)
    return found


@pytest.mark.parametrize("periodic", [True, False])
@pytest.mark.parametrize("lattice", [ss.chain(6), ss.square(4, 6), ss.cubic(4, 3, 5)])
def test_every_pair_of_sites(lattice, periodic) -> None:
    lattice = type(lattice)(lattice.shape, periodic, lattice.cell)
    model = ss.EdwardsAnderson(lattice, samples=2, seed=1)
    spins = np.random.default_rng(4).choice(np.array([-1, 1], np.int8), (2, 3, 2, lattice.sites))
    batch = Batch(spins, AXES, model, np)
    g, c4 = spin_correlation(batch), overlap_correlation(batch)
    assert g.shape == c4.shape == (2, 3, 2, lattice.dimension, max(lattice.shape) // 2 + 1)
    for k, c, t in product(range(2), range(3), range(2)):
        assert np.allclose(g[k, c, t], plain(spins[k, c, t].astype(int), lattice.shape, periodic))
        q = spins[k, c, t].astype(int) * spins[k, (c + 1) % 3, t]
        assert np.allclose(c4[k, c, t], plain(q, lattice.shape, periodic))


def exact(model, temperature):
    """Return G and C4 by enumeration of all states of sample 0, (axes, distances) each; copies are independent."""
    states = np.array(list(product((-1, 1), repeat=model.sites)))
    ends = model.graph.edges
    energy = -(states[:, ends[:, 0]] * states[:, ends[:, 1]] @ np.asarray(model.couplings[0], float))
    weight = np.exp(-(energy - energy.min()) / temperature)
    means = np.einsum("s,sij->ij", weight / weight.sum(), np.einsum("si,sj->sij", states, states))
    lattice = model.lattice
    by_name = {"G": means, "C4": means**2}
    return {name: _by_distance(of_pairs, lattice.shape, lattice.periodic) for name, of_pairs in by_name.items()}


@pytest.mark.parametrize("lattice", [ss.chain(6), ss.square(3, 3), ss.chain(5, periodic=False)])
def test_runs_agree_with_enumeration(lattice) -> None:
    model = ss.EdwardsAnderson(lattice, seed=2)
    ladder = np.array([1.2, 2.0, 3.0])
    found = ss.temper(model, ladder, 4000, thermalize=100, measure_every=4, replicas=20, measure=MEASURE, seed=5)
    for k, temperature in enumerate(ladder):
        for name, value in exact(model, temperature).items():
            assert np.abs(found.measured[name][:, 0, :, k].mean(axis=(0, 1)) - value).max() < 0.04, name
            table = ss.table(found, name)
            table = table[(table.temperature == temperature) & table[f"{name}_trusted"]]
            where = table[f"{name}_axis_0"], table[f"{name}_axis_1"]
            rows = zip(table[name], table[f"{name}_error"], value[where], strict=True)
            assert_agree([(f"{name} {place} at {temperature}", *row) for place, row in enumerate(rows)])


@pytest.mark.parametrize("lattice", [ss.square(3, 3), ss.chain(5, periodic=False)])
def test_anneals_agree_with_enumeration(lattice) -> None:
    model, replicas = ss.EdwardsAnderson(lattice, seed=2), 8192
    ladder = [3.0, 2.0, 1.2]
    found = ss.anneal(model, ladder, sweeps=100, replicas=replicas, measure=MEASURE, seed=5, device="cpu")
    for step, temperature in enumerate(ladder):
        for name, value in exact(model, temperature).items():
            values = found.measured[name][step, 0]
            assert values.shape == (replicas, *value.shape)
            error = np.maximum(values.std(axis=0) * np.sqrt(3 / replicas), 1e-12)  # C4 shares each replica in two pairs
            assert (np.abs(values.mean(axis=0) - value) <= 4 * error).all(), (name, temperature)


def test_tables_of_own_numbers_and_arrays_agree() -> None:
    """Of one sample and of several, a number has the error that it has among all averages."""
    for samples in (1, 5):
        measure = {"G": spin_correlation, "near": lambda batch: spin_correlation(batch)[..., 0, 1]}
        model = ss.EdwardsAnderson(ss.square(4), samples=samples, seed=3)
        found = ss.temper(model, "1:2:3", 2000, thermalize=100, measure_every=5, measure=measure, seed=1)
        near, of_all, of_array = ss.table(found, "near"), ss.table(found), ss.table(found, "G")
        of_array = of_array[(of_array.G_axis_0 == 0) & (of_array.G_axis_1 == 1)]
        for column in ("near", "near_error", "near_tau", "near_trusted"):
            np.testing.assert_allclose(near[column], of_all[column], rtol=1e-9)
            np.testing.assert_allclose(of_array[column.replace("near", "G")], of_all[column], rtol=1e-9)
    with pytest.raises(InputError, match="no table by 'M'"):
        ss.table(found, "M")


def _by_distance(of_pairs, shape, periodic):
    """Return averages over pairs of sites at each distance, (axes, distances), from those of all pairs."""
    grid = np.arange(int(np.prod(shape))).reshape(shape[::-1])
    found = np.zeros((len(shape), max(shape) // 2 + 1))
    for axis, side in enumerate(shape):
        rows = np.moveaxis(grid, -1 - axis, -1)
        for r in range(side // 2 + 1):
            here, there = (rows, np.roll(rows, -r, -1)) if periodic else (rows[..., : side - r], rows[..., r:])
            found[axis, r] = of_pairs[here.ravel(), there.ravel()].mean()
    return found


def test_refused_without_a_grid_or_a_second_copy() -> None:
    dense = ss.Ising.from_matrix(np.ones((6, 6)) - np.eye(6))
    with pytest.raises(InputError, match="no lattice whose sites lie on a grid"):
        ss.temper(dense, "1:2:3", measure={"G": spin_correlation})
    with pytest.raises(InputError, match="needs two copies"):
        ss.temper(ss.Ising(ss.square(4)), "1:2:3", replicas=1, measure={"C4": overlap_correlation})
