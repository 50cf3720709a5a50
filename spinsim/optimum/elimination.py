"""Exact lowest states of narrow graphs: sites are eliminated one by one (dynamic programming).

Eliminating a site leaves a table of the lowest energy for each state of its neighbours, which are joined by this; the
largest number of such neighbours is the width of the order (Bertele and Brioschi, Nonserial dynamic programming, 1972;
Dechter, Artif. Intell. 113, 41 (1999)). Trees have width 1, ladders 2, strips their
breadth; a table of width w has 2^w energies.

A table has an axis of length 2 for each of its sites, in the order of elimination: entry 0 is spin +1. It waits for the
first of them, whose elimination adds up all tables that wait for it:

    waiting for i:    table over i j k      table over i k l
    sum over i j k l, one half for each s_i; bonds and field of i:   sum -+ (h_i + J_ij s_j + ...)
    lowest of both halves: table over j k l, which waits for j; and a bit for each state says which half
"""

from __future__ import annotations

import heapq
from collections import deque
from itertools import groupby
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim.machine.memory import available_bytes
from spinsim.model.graph import adjacency
from spinsim.model.ising import Ising

MOST: Final = 20  # width up to which tables take seconds and stay near the processor
_MOST_SITES: Final = 2**18  # of a graph for which finding an order takes seconds
_PROBE: Final = 2000  # sites of a part of a graph that shows its width
_SMALL: Final = 2**30  # energies in quanta below which all sums fit 32 bits
_LITTLE: Final = 2**5  # energies a table up to which no better order is looked for
_SHARE: Final = 4  # part of the available memory that choices may take
Order = dict[int, list[int]]
"""Sites in the order of their elimination, each with the sites of the table that it leaves, in the same order."""
Graph = dict[int, set[int]]


class Lowest(NamedTuple):
    """A proven lowest state."""

    spins: npt.NDArray[np.int8]  # (sites,)
    energy: float  # without the model's offset


def width(model: Ising, most: int = MOST) -> int | None:
    """Width of the order that is found for a graph; None as soon as it exceeds ``most``."""
    order = find_order(model, most)
    return None if order is None else max(map(len, order.values()))


def find_order(model: Ising, most: int = MOST) -> Order | None:
    """The better of two orders of elimination, or None as soon as the widths of both exceed ``most``.

    Of a large graph a part is tried first, which shows at once that most graphs are too wide.
    """
    if model.sites > _MOST_SITES or model.bonds > 2 * most * model.sites:  # parallel bonds may count twice
        return None
    near, couplings = adjacency(model.graph), model.integer_couplings(0)
    start, neighbours = near.start.tolist(), np.where(couplings[near.bond], near.neighbour, -1).tolist()
    if model.sites > 2 * _PROBE:
        around: Graph = {}
        waiting = deque([model.sites // 2])
        while waiting and len(around) < _PROBE:
            i = waiting.popleft()
            if i not in around:
                around[i] = set(neighbours[start[i] : start[i + 1]]) - {-1}
                waiting.extend(around[i])
        for joined in around.values():
            joined.intersection_update(around)
        if _better(around, most) is None:
            return None
    return _better({i: set(neighbours[start[i] : start[i + 1]]) - {-1} for i in range(model.sites)}, most)


def _better(graph: Graph, most: int) -> Order | None:
    """The order by least degree, which suits trees and random graphs, or that of a sweep, which suits strips."""
    by_degree = _eliminate({i: set(joined) for i, joined in graph.items()}, most)
    if by_degree is not None and work(by_degree) < _LITTLE * len(by_degree):
        return by_degree
    sweep: dict[int, int] = {}
    for root in graph:
        if root not in sweep:
            far = list(_reached(graph, root))[-1]
            sweep |= {i: len(sweep) + k for k, i in enumerate(_reached(graph, far))}
    by_sweep = _eliminate(graph, most, sweep)
    return min((order for order in (by_degree, by_sweep) if order is not None), key=work, default=None)


def work(order: Order) -> int:
    """Number of energies in all tables."""
    return sum(2 ** len(scope) for scope in order.values())


def _reached(graph: Graph, root: int) -> dict[int, None]:
    """Sites in the order in which a search in breadth reaches them."""
    reached, waiting = {root: None}, deque([root])
    while waiting:
        new = [j for j in graph[waiting.popleft()] if j not in reached]
        reached.update(dict.fromkeys(new))
        waiting.extend(new)
    return reached


def _eliminate(graph: Graph, most: int, rank: dict[int, int] | None = None) -> Order | None:
    """Eliminate sites by rank, or always one of least degree, and join its neighbours; takes the graph apart."""
    order: Order = {}
    heap = [(len(joined) if rank is None else rank[i], i) for i, joined in graph.items()]
    heapq.heapify(heap)
    while heap:
        degree, i = heapq.heappop(heap)
        if rank is None and (i not in graph or degree != len(graph[i])):
            continue  # an entry from before a change
        scope = graph.pop(i)
        if len(scope) > most:
            return None
        for j in scope:
            joined = graph[j]
            joined |= scope
            joined -= {i, j}
            if rank is None:
                heapq.heappush(heap, (len(joined), j))
        order[i] = list(scope)
    at = {i: position for position, i in enumerate(order)}
    for scope_of in order.values():
        scope_of.sort(key=at.__getitem__)
    return order


def lowest(model: Ising, most: int = MOST) -> Lowest | None:
    """A lowest state of a model of one sample, or None where its width or the memory for it is too large."""
    order = find_order(model, most)
    if order is None or work(order) / 8 > available_bytes() / _SHARE:
        return None
    near, fields, couplings = adjacency(model.graph), model.integer_fields(0), model.integer_couplings(0)
    start, neighbours, of_bonds = near.start.tolist(), near.neighbour.tolist(), couplings[near.bond].tolist()
    kind: Any = np.int32 if np.abs(couplings).sum() + np.abs(fields).sum() < _SMALL else np.int64
    waiting: dict[int, list[tuple[list[int], npt.NDArray[Any]]]] = {i: [] for i in order}
    choices, energy = {}, 0
    for i, scope in order.items():
        coupling = dict.fromkeys(scope, 0)
        for e in range(start[i], start[i + 1]):
            if neighbours[e] in coupling:
                coupling[neighbours[e]] += of_bonds[e]
        local: npt.NDArray[Any] = fields[i : i + 1].astype(kind)
        for j in reversed(scope):
            local = np.concatenate([local + kind(coupling[j]), local - kind(coupling[j])])
        both = np.stack([-local, local])
        for sites, table in waiting.pop(i):
            present = set(sites)
            runs = [(known, 2 ** len(list(run))) for known, run in groupby([j in present for j in (i, *scope)])]
            both.reshape([size for _, size in runs])[...] += table.reshape(
                [size if known else 1 for known, size in runs]
            )
        choices[i] = np.packbits(both[1] < both[0])
        least = np.minimum(both[0], both[1])
        if scope:
            waiting[scope[0]].append((scope, least))
        else:
            energy += int(least[0])
    spins = np.ones(model.sites, np.int8)
    down = np.zeros(model.sites, np.bool_).tolist()
    for i, scope in reversed(order.items()):
        entry = 0
        for j in scope:
            entry = 2 * entry + down[j]
        down[i] = bool(choices[i][entry >> 3] >> (7 - (entry & 7)) & 1)
    spins[down] = -1
    return Lowest(spins, energy * model.quantum)
