"""Lowest states by elimination equal those of all states, and long narrow graphs take seconds."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pytest
from lowest import energies, problem

import spinsim as ss
from spinsim.optimum import elimination
from spinsim.optimum.elimination import lowest, width


def test_lowest_energies_of_a_thousand_problems() -> None:
    rng = np.random.default_rng(1)
    for _ in range(1000):
        model = problem(rng)
        found = lowest(model)
        assert found is not None
        assert found.spins.dtype == np.int8
        assert model.energy(found.spins[None])[0] == found.energy == energies(model).min()


def of_graph(graph: nx.Graph, seed: int = 2) -> ss.Ising:
    rng = np.random.default_rng(seed)
    return ss.Ising(ss.Graph(len(graph), list(graph.edges)), rng.normal(size=graph.size()), rng.normal(size=len(graph)))


@pytest.mark.parametrize(
    ("graph", "expected"),
    [
        (nx.empty_graph(3), 0),
        (nx.random_labeled_tree(3000, seed=1), 1),
        (nx.convert_node_labels_to_integers(nx.ladder_graph(1500)), 2),
        (nx.cycle_graph(50), 2),
        (nx.complete_graph(9), 8),
        (nx.convert_node_labels_to_integers(nx.grid_2d_graph(6, 400)), 7),  # a sweep along diagonals
    ],
)
def test_widths(graph: nx.Graph, expected: int) -> None:
    model = of_graph(graph)
    assert width(model) == expected
    assert width(model, expected - 1) is None
    found = lowest(model)
    assert found is not None
    assert model.energy(found.spins[None])[0] == found.energy
    assert lowest(model, expected - 1) is None


def test_wide_graphs_are_refused_by_a_part_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []
    eliminate = elimination._eliminate

    def counting(graph: elimination.Graph, *others: Any) -> elimination.Order | None:
        sizes.append(len(graph))
        return eliminate(graph, *others)

    monkeypatch.setattr(elimination, "_eliminate", counting)
    assert width(ss.EdwardsAnderson(ss.cubic(24))) is None
    assert len(sizes) == 2  # orders
    assert max(sizes) <= 2000
    assert width(ss.EdwardsAnderson(ss.cubic(70))) is None  # 343,000 sites: too many for an order
    assert len(sizes) == 2


def test_a_strip_has_the_lowest_energy_of_its_transfer_matrix() -> None:
    """Min-plus products over whole columns, another way through the same strip."""
    breadth, length = 5, 60
    model = ss.EdwardsAnderson(ss.square(breadth, length, periodic=False), couplings="gaussian", field=0.3)
    states = 1 - 2 * (np.arange(2**breadth)[:, None] >> np.arange(breadth) & 1)
    edges, j, least = model.graph.edges, model.couplings[0], np.zeros(2**breadth)
    for x in range(length):
        inside = [
            (a - x * breadth, b - x * breadth, c)
            for (a, b), c in zip(edges, j, strict=True)
            if a // breadth == b // breadth == x
        ]
        own = -states.sum(axis=1) * model.fields[0, 0] - sum(c * states[:, a] * states[:, b] for a, b, c in inside)
        least = least + own
        on = {
            a - x * breadth: c
            for (a, b), c in zip(edges, j, strict=True)
            if a // breadth == x and b // breadth == x + 1
        }
        if on:
            strength = np.array([on[y] for y in range(breadth)])
            least = (least[:, None] - (states * strength) @ states.T).min(axis=0)
    found = lowest(model)
    assert found is not None
    assert abs(found.energy - least.min()) < 1e-9


def test_choices_that_do_not_fit_the_memory_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    model = of_graph(nx.complete_graph(12))
    assert lowest(model) is not None
    monkeypatch.setattr(elimination, "available_bytes", lambda: 2000)
    assert lowest(model) is None
