"""Lattices, colourings, quanta and disorder."""

from __future__ import annotations

from math import fsum

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spinsim as ss
from spinsim.engine.moves.move import text_of
from spinsim.errors import InputError
from spinsim.model.couplings import GAUSSIAN_GRID, sum_of
from spinsim.model.graph import adjacency, colouring

shapes = st.lists(st.integers(1, 5), min_size=1, max_size=3).map(tuple)


def plain_edges(shape: tuple[int, ...], periodic: bool) -> list[tuple[int, int]]:
    """Bonds by the contract's words: i = x + Lx (y + Ly z), bond d i + a to the neighbour along axis a."""
    strides = np.cumprod([1, *shape[:-1]])
    edges = []
    for i in range(int(np.prod(shape))):
        for stride, side in zip(strides, shape, strict=True):
            x = i // stride % side
            if side > 1 and (periodic or x + 1 < side):
                edges.append((i, int(i + ((x + 1) % side - x) * stride)))
    return edges


@given(shapes, st.booleans())
def test_edges_of_any_lattice(shape: tuple[int, ...], periodic: bool) -> None:
    lattice = ss.Lattice(shape, periodic)
    assert [tuple(e) for e in lattice.edges().tolist()] == plain_edges(shape, periodic)


@given(shapes, st.booleans())
def test_colouring_of_any_lattice(shape: tuple[int, ...], periodic: bool) -> None:
    graph = ss.Graph.of_lattice(ss.Lattice(shape, periodic))
    colour = colouring(graph)
    assert not np.any(colour[graph.edges[:, 0]] == colour[graph.edges[:, 1]])
    assert set(colour) == set(range(colour.max() + 1))
    odd = periodic and any(side % 2 and side > 1 for side in shape)
    assert colour.max() + 1 > 2 if odd else colour.max() + 1 <= 2


@settings(deadline=None)
@given(st.integers(2, 30), st.integers(0, 80), st.integers(0, 2**32))
def test_colouring_and_adjacency_of_any_graph(sites: int, bonds: int, seed: int) -> None:
    ends = np.random.default_rng(seed).integers(0, sites, (bonds, 2)).astype(np.int32)
    graph = ss.Graph(sites, ends[ends[:, 0] != ends[:, 1]])
    colour, near = colouring(graph), adjacency(graph)
    assert not np.any(colour[graph.edges[:, 0]] == colour[graph.edges[:, 1]])
    for i in range(sites):
        rows = slice(near.start[i], near.start[i + 1])
        ends_there = graph.edges[near.bond[rows]]
        assert np.all(ends_there.sum(axis=1) - i == near.neighbour[rows])
    assert len(near.neighbour) == 2 * graph.bonds


def test_a_bipartite_graph_gets_two_colours() -> None:
    path = np.stack([np.arange(999), np.arange(1, 1000)], axis=1).astype(np.int32)
    shuffled = np.random.default_rng(1).permutation(1000).astype(np.int32)
    assert colouring(ss.Graph(1000, shuffled[path])).max() == 1


def test_integers_keep_quantum_one() -> None:
    model = ss.Ising(ss.square(4), np.arange(1, 33) * 3.0)
    assert (model.quantum, model.rounded) == (1.0, False)


def test_decimals_are_rounded_to_a_tiny_quantum() -> None:
    model = ss.Ising(ss.square(4), 0.1, 0.3)
    assert model.rounded
    np.testing.assert_allclose(model.couplings, 0.1, rtol=1e-12)
    assert np.all(model.integer_couplings(0) * model.quantum == model.couplings[0])


def test_energies_stay_below_two_to_53_quanta() -> None:
    model = ss.Ising(ss.square(16), np.random.default_rng(1).normal(size=512))
    assert np.abs(model.integer_couplings(0)).sum() < 2**53


def test_gaussian_couplings_are_normal_on_their_grid() -> None:
    j = ss.EdwardsAnderson(ss.cubic(24), couplings="gaussian", seed=3).couplings[0]
    assert np.all(j / GAUSSIAN_GRID == np.rint(j / GAUSSIAN_GRID))
    n = j.size
    for value, expected, error in (
        (j.mean(), 0, 1 / np.sqrt(n)),
        (j.var(), 1, np.sqrt(2 / n)),
        ((j**4).mean(), 3, np.sqrt(96 / n)),
        ((np.abs(j) > 2).mean(), 0.0455003, np.sqrt(0.0455 / n)),
    ):
        assert abs(value - expected) < 4 * error


@pytest.mark.parametrize("fraction", [0.0, 0.25, 0.75, 1.0])
def test_bond_fraction(fraction: float) -> None:
    j = ss.EdwardsAnderson(ss.square(100), seed=3, bond_fraction=fraction).couplings[0]
    assert set(np.unique(j)) <= {-1.0, 1.0}
    assert abs((j > 0).mean() - fraction) <= 4 * np.sqrt(fraction * (1 - fraction) / j.size)


def test_a_sample_does_not_depend_on_the_others() -> None:
    many = ss.EdwardsAnderson(ss.square(4), samples=5, seed=9).couplings
    few = ss.EdwardsAnderson(ss.square(4), samples=2, seed=9).couplings
    np.testing.assert_array_equal(many[:2], few)
    assert len({row.tobytes() for row in many}) == 5


@pytest.mark.parametrize(
    ("make", "phrase"),
    [
        (lambda: ss.square(0), "side 0"),
        (lambda: ss.Lattice((2, 2, 2, 2, 2)), "5 dimensions"),
        (lambda: ss.Ising(ss.square(10**6)), "2\\^31"),
        (lambda: ss.Ising(ss.square(4), np.ones(31)), "shape \\(31,\\)"),
        (lambda: ss.Ising(ss.square(4), np.nan), "nan"),
        (lambda: ss.Ising(ss.square(4), 1.0, np.full(16, np.inf)), "inf"),
        (lambda: ss.Ising(ss.square(4), np.ones((2, 32)), np.ones((3, 16))), "2 samples"),
        (lambda: ss.Ising(ss.square(4), "strong"), "numbers"),
        (lambda: ss.Graph(3, np.array([[0, 3]], np.int32)), "edge end 3"),
        (lambda: ss.Graph(3, np.array([[1, 1]], np.int32)), "to itself"),
        (lambda: ss.Graph(3, np.zeros((2, 3), np.int32)), "shape"),
        (lambda: ss.EdwardsAnderson(ss.square(4), couplings="soft"), "soft"),
        (lambda: ss.EdwardsAnderson(ss.square(4), bond_fraction=1.5), "1.5"),
        (lambda: ss.EdwardsAnderson(ss.square(4), samples=0), "0 samples"),
        (lambda: ss.EdwardsAnderson(ss.square(4), seed=-1), "seed -1"),
        (lambda: ss.Ising(ss.square(4)).cut(0), "not a MaxCut"),
    ],
)
def test_refusals(make, phrase: str) -> None:
    with pytest.raises(InputError, match=phrase) as caught:
        make()
    assert "\n" not in str(caught.value)


def test_numbers_and_objects_that_are_none_are_refused_in_a_sentence():
    square = ss.square(4)
    start = np.ones((1, 16), np.int8)
    for call, words in (
        (lambda: ss.Ising(square, offset=float("nan")), "offset is nan: give a finite number"),
        (lambda: ss.Ising(square, offset="a"), "offset = 'a' has the wrong type: give a number"),
        (lambda: ss.Ising(square, maxcut_weight="x"), "maxcut_weight = 'x' has the wrong type"),
        (lambda: ss.Ising(square, field=float("nan")), "fields contain nan"),
        (lambda: ss.square(2.5), "2.5 is no whole number of at least 1"),
        (lambda: ss.square(4, 4, 4), "periodic is 4: give True or False for all axes; square lattices have 2 sides"),
        (lambda: ss.square(4, periodic=(True, False)), r"periodic is \(True, False\): give True or False"),
        (lambda: ss.EdwardsAnderson(ss.square(4), couplings=np.ones(32)), r"give your own to ss\.Ising"),
        (lambda: ss.Ising.from_qubo({(0, 1): 1}, {0: 2}), r"linear terms go into the QUBO, as \{\(u, u\): value\}"),
        (lambda: text_of([ss.Wolff()]), r"moves are pairs of a move and its sweeps apart: give such as \[\(ss"),
        (lambda: ss.read_instance(None), "path = None has the wrong type: give a string or a path"),
        (lambda: ss.load(None), "path = None has the wrong type"),
        (lambda: ss.anneal({(0, 1): 1}), "an object of type dict is no model: give ss.Ising.from_qubo of it"),
        (lambda: ss.anneal(np.eye(3)), "an object of type ndarray is no model: give ss.Ising.from_matrix of it"),
        (lambda: ss.anneal(ss.Ising(square), target=True), "target = True has the wrong type"),
        (lambda: ss.anneal(ss.Ising(square), populations=1, start=start), "do not go with given spins"),
    ):
        with pytest.raises(ss.InputError, match=words):
            call()


@pytest.mark.parametrize("size", [3, 512, 513, 4000])
def test_sums_are_rounded_once_however_many_there_are(size: int) -> None:
    rng = np.random.default_rng(size)
    for values in (
        rng.normal(size=size) * np.exp2(rng.integers(-60, 60, size)),
        rng.normal(size=size) ** 2,
        np.full(size, 0.1),
        np.full(size, 5e-324),
        np.zeros(size),
    ):
        assert sum_of(values) == fsum(values.tolist())
