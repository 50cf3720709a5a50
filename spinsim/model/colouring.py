"""Adjacency lists and colourings of any graph, compiled: no Python loop over sites or bonds."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim.machine.compiled import kernel
from spinsim.model.graph import Graph


class Adjacency(NamedTuple):
    """Neighbours in compressed rows: those of site i stand at ``start[i]:start[i + 1]``, in order of their bonds."""

    start: npt.NDArray[np.int64]
    neighbour: npt.NDArray[np.int32]
    bond: npt.NDArray[np.int32]


@kernel
def _fill_rows(edges, cursor, neighbour, bond):  # type: ignore[no-untyped-def]
    for b in range(edges.shape[0]):
        i, j = edges[b, 0], edges[b, 1]
        neighbour[cursor[i]] = j
        bond[cursor[i]] = b
        cursor[i] += 1
        neighbour[cursor[j]] = i
        bond[cursor[j]] = b
        cursor[j] += 1


def adjacency(graph: Graph) -> Adjacency:
    """The neighbours of every site of ``graph`` and the bonds to them."""
    start = np.zeros(graph.sites + 1, np.int64)
    np.cumsum(graph.degrees(), out=start[1:])
    neighbour = np.empty(2 * graph.bonds, np.int32)
    bond = np.empty(2 * graph.bonds, np.int32)
    _fill_rows.with_steps(graph.bonds, graph.edges, start[:-1].copy(), neighbour, bond)
    return Adjacency(start, neighbour, bond)


@kernel
def _breadth_first_two_colours(start, neighbour, colour, queue):  # type: ignore[no-untyped-def]
    for root in range(colour.size):
        if colour[root] >= 0:
            continue
        colour[root] = 0
        queue[0] = root
        head, tail = 0, 1
        while head < tail:
            i = queue[head]
            head += 1
            for e in range(start[i], start[i + 1]):
                j = neighbour[e]
                if colour[j] < 0:
                    colour[j] = 1 - colour[i]
                    queue[tail] = j
                    tail += 1
                elif colour[j] == colour[i]:
                    return False
    return True


@kernel
def _greedy(start, neighbour, order, colour, taken):  # type: ignore[no-untyped-def]
    for i in order:
        for e in range(start[i], start[i + 1]):
            j = neighbour[e]
            if colour[j] >= 0:
                taken[colour[j]] = i
        c = 0
        while taken[c] == i:
            c += 1
        colour[i] = c


def colouring(graph: Graph) -> npt.NDArray[np.int32]:
    """Colours (sites,) from 0 up such that no bond joins two sites of one colour.

    Those of its lattice where these continue across its boundary; else two colours where the graph is bipartite, else
    greedy with the sites of highest degree first (Welsh and Powell, Comput. J. 10, 85 (1967)).
    """
    if graph.lattice is not None:
        regular = graph.lattice.colours()
        if regular is not None:
            return regular
    near = adjacency(graph)
    colour = np.full(graph.sites, -1, np.int32)
    steps, queue = graph.sites + 2 * graph.bonds, np.empty(graph.sites, np.int32)
    if not _breadth_first_two_colours.with_steps(steps, near.start, near.neighbour, colour, queue):
        colour[:] = -1
        degree = np.diff(near.start)
        order = np.argsort(-degree, kind="stable")
        taken = np.full(int(degree.max()) + 2, -1, np.int64)
        _greedy.with_steps(steps, near.start, near.neighbour, order, colour, taken)
    return colour
