"""Dimensions of graphs by the growth of their neighbourhoods, which decide if Houdayer moves pay."""

from __future__ import annotations

from collections import deque
from math import inf

import numpy as np
import pytest

import spinsim as ss
from spinsim.engine.moves.houdayer import _distances, dimension_of, usual_every
from spinsim.model.graph import adjacency


def as_graph(lattice: ss.Lattice) -> ss.Ising:
    return ss.Ising(ss.Graph(lattice.sites, lattice.edges()))


def random_graph(sites: int, mean_degree: float, seed: int) -> ss.Ising:
    ends = np.random.default_rng(seed).integers(0, sites, (int(sites * mean_degree / 2), 2))
    return ss.Ising(ss.Graph(sites, ends[ends[:, 0] != ends[:, 1]]))


@pytest.mark.parametrize(
    ("lattice", "exact"),
    [
        (ss.chain(100), 1), (ss.square(30), 2), (ss.triangular(30), 2), (ss.honeycomb(30), 2), (ss.cubic(5), 3),
        (ss.cubic(12), 3), (ss.square(30, periodic=False), 2), (ss.square(4, 200), 1),
    ],
    ids=str,
)  # fmt: skip
def test_lattices_given_as_graphs_have_their_dimension(lattice: ss.Lattice, exact: int) -> None:
    assert dimension_of(as_graph(lattice)) == pytest.approx(exact, abs=0.5)
    assert usual_every(as_graph(lattice), searches=True) == 5


@pytest.mark.parametrize("mean_degree", [2, 3, 4, 5, 8])
def test_random_graphs_have_none_of_up_to_three(mean_degree: int) -> None:
    model = random_graph(5000, mean_degree, mean_degree)
    assert dimension_of(model) > 3.5
    assert usual_every(model, searches=True) is None


def test_dense_graphs_and_separate_parts() -> None:
    assert dimension_of(ss.Ising.from_matrix(np.ones((40, 40)) - np.eye(40))) == inf
    assert dimension_of(random_graph(500, 0.5, 1)) == 0
    assert usual_every(ss.Ising(ss.hypercubic(4)), searches=True) is None


def test_distances_are_those_of_a_plain_search() -> None:
    model = random_graph(60, 3, 2)
    near = adjacency(model.graph)
    for source in (0, 17, 59):
        found, queue = {source: 0}, deque([source])
        while queue:
            site = queue.popleft()
            for other in near.neighbour[near.start[site] : near.start[site + 1]].tolist():
                if other not in found:
                    found[other] = found[site] + 1
                    queue.append(other)
        assert _distances(near.start, near.neighbour, source).tolist() == sorted(found.values())
