"""A lower bound of energies from frustrated cycles, by linear programming.

With u = 1 for unsatisfied bonds and 0 for others, E = -sum |J| + 2 sum |J| u. Around each cycle the number of
unsatisfied bonds is odd if the cycle is frustrated, else even. For bonds F of the cycle whose number has the other
parity, sum over F of (1 - u) + sum over the rest of u >= 1 (Barahona and Mahjoub, Math. Program. 36, 157 (1986)).
The linear program with these inequalities and 0 <= u <= 1 bounds the energy; it is exact for planar graphs.

Violated inequalities are shortest paths in the graph of two layers: a bond can be passed at cost u or 1 - u, and one
of these, by its sign, changes the layer. A path from a node to its copy in the other layer that is shorter than 1 is a
violated inequality, and holds for closed walks as well. Any y >= 0 of the inequalities gives a bound: the duals of
SciPy's HiGHS are rounded to integers, with which the bound is computed exactly.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from scipy.optimize import linprog
from scipy.sparse import csr_array, vstack

from spinsim.machine.compiled import kernel, seconds_without_compiling, step
from spinsim.optimum.pairs import Integers, Pairs

MOST_BONDS: Final = 2**18  # beyond, the first program already takes minutes
_HOP: Final = 1e-4  # cost of a bond, so that of equal cycles the shorter one is found
_VIOLATED: Final = 1e-3  # by how much, below which cycles are not added
_PER_MOVE: Final = 0.01  # short cycles are added first, no more than there are bonds
_BITS: Final = 61  # of the sums in exact bounds
Array = npt.NDArray[np.float64]


def cycle_bounds(pairs: Pairs, seconds: float) -> Iterator[int]:
    """Yield ever better lower bounds of the energy in quanta, as long as cycles are violated and time is left."""
    end, bonds = seconds_without_compiling() + seconds, len(pairs.ends)
    if not 0 < bonds <= MOST_BONDS:
        return
    walks = _Walks(pairs)
    costs = np.abs(pairs.couplings) / np.abs(pairs.couplings).max()
    rows: Any = csr_array((0, bonds))
    least, unsatisfied, value = np.zeros(0), np.zeros(bonds), 0.0
    while (found := walks.violated(unsatisfied, end)) is not None:
        rows, least = vstack([rows, found[0]], format="csr"), np.append(least, found[1])
        left = end - seconds_without_compiling()
        if left <= 0:
            return
        program: Any = linprog(costs, -rows, -least, bounds=(0, 1), method="highs-ds", options={"time_limit": left})
        if program.status != 0:
            return
        unsatisfied, dual = np.clip(program.x, 0, 1), np.maximum(-program.ineqlin.marginals, 0)
        yield _exact(pairs, rows, least, dual * float(np.abs(pairs.couplings).max()))
        if program.fun > value + 1e-9 * abs(value):  # cycles that do not matter are dropped as long as it rises
            kept = (dual > 0) | (program.ineqlin.residual < _VIOLATED)
            rows, least, value = rows[kept], least[kept], program.fun


def _exact(pairs: Pairs, rows: Any, least: Array, dual: Array) -> int:
    """Return the bound by duals in quanta, rounded to integers first: a sum of integers, and hence proven."""
    sizes = np.abs(pairs.couplings)
    most = pairs.size + int(np.abs(rows).sum() + np.abs(least).sum()) * (int(dual.max()) + 1)
    bits = _BITS - most.bit_length()  # of fractions of a quantum, or below 0 of quanta that are rounded down
    multiples = np.floor(np.ldexp(dual, bits)).astype(np.int64)
    rest = (sizes << bits if bits >= 0 else sizes >> -bits) - rows.astype(np.int64).T @ multiples
    total = 2 * (int(least.astype(np.int64) @ multiples) + int(np.minimum(rest, 0).sum()))
    return -pairs.size + (-(-total >> bits) if bits >= 0 else total << -bits)


class _Walks:
    """Search of violated inequalities: the graph's bonds at each node, and working space."""

    def __init__(self, pairs: Pairs) -> None:
        self.ends = ends = pairs.ends
        nodes = pairs.nodes
        order = np.argsort(ends.reshape(-1), kind="stable")
        self.start = np.searchsorted(ends.reshape(-1)[order], np.arange(nodes + 1)).astype(np.int64)
        self.neighbour = ends[:, ::-1].reshape(-1)[order].astype(np.int32)
        self.bond = (order // 2).astype(np.int32)
        self.negative = pairs.couplings < 0
        states = 2 * nodes
        self.walk, parent, move, touched = (np.empty(states, np.int64) for _ in range(4))
        heap, keys = (np.empty(8 * len(ends) + 1, kind) for kind in (np.int64, np.float64))
        self.space = np.full(states, np.inf), parent, move, touched, heap, keys

    def violated(self, unsatisfied: Array, end: float) -> tuple[Any, Array] | None:
        """Return coefficients (inequalities, bonds) and least values of violated inequalities, or None.

        Through each bond the shortest closed walk is sought, with both costs of passing it.
        """
        seen: dict[bytes, Integers] = {}
        graph = self.start, self.neighbour, self.bond, self.negative
        for b, (i, j) in enumerate(self.ends.tolist()):
            if seconds_without_compiling() > end:
                return None
            for complement in range(2):
                closing = 1 - unsatisfied[b] if complement else unsatisfied[b]
                last = 2 * j + (1 + self.negative[b] + complement) % 2
                length = _closed_walk(graph, unsatisfied, 2 * i, int(last), float(closing), self.space, self.walk)
                if length:
                    self.walk[length] = 2 * b + complement
                    moves = np.sort(self.walk[: length + 1])
                    seen.setdefault(moves.tobytes(), moves.copy())
        if not seen:
            return None
        cost = _PER_MOVE + np.stack([unsatisfied, 1 - unsatisfied], axis=1).reshape(-1)
        added = sorted(seen.values(), key=lambda one: float(cost[one].sum()))[: len(unsatisfied)]
        row, moves = np.repeat(np.arange(len(added)), [len(one) for one in added]), np.concatenate(added)
        is_complement, shape = (moves % 2).astype(np.float64), (len(added), len(unsatisfied))
        rows: Any = csr_array((1 - 2 * is_complement, (row, moves // 2)), shape=shape)
        return rows, np.asarray(1 - np.bincount(row, is_complement, len(added)))


@step
def _push(heap, keys, size, item, key):  # type: ignore[no-untyped-def]
    at = size
    while at and keys[(at - 1) // 2] > key:
        heap[at], keys[at] = heap[(at - 1) // 2], keys[(at - 1) // 2]
        at = (at - 1) // 2
    heap[at], keys[at] = item, key


@step
def _remove_first(heap, keys, size):  # type: ignore[no-untyped-def]
    item, key, at = heap[size - 1], keys[size - 1], 0
    while 2 * at + 1 < size - 1:
        child = 2 * at + 1
        if child + 1 < size - 1 and keys[child + 1] < keys[child]:
            child += 1
        if keys[child] >= key:
            break
        heap[at], keys[at] = heap[child], keys[child]
        at = child
    heap[at], keys[at] = item, key


@kernel
def _closed_walk(graph, unsatisfied, first, last, closing, space, walk):  # type: ignore[no-untyped-def]
    """Find the shortest path from a node to its copy by Dijkstra's algorithm; write its moves if it is violated.

    State 2 i + layer is node i in a layer. Move 2 b passes bond b at cost u, move 2 b + 1 at cost 1 - u. The heap
    holds states by distance, some of them outdated. ``distance`` begins and ends as infinity everywhere. Returns the
    number of moves, 0 where no path is short enough.
    """
    start, neighbour, bond, negative = graph
    distance, parent, move, touched, heap, keys = space
    distance[first], touched[0], count = closing, first, 1
    heap[0], keys[0], size = first, closing, 1
    while size and heap[0] != last:
        state, key = heap[0], keys[0]
        _remove_first(heap, keys, size)
        size -= 1
        if key > distance[state]:
            continue
        for e in range(start[state // 2], start[state // 2 + 1]):
            for complement in range(2):
                u = unsatisfied[bond[e]]
                further = key + _HOP + (1.0 - u if complement else u)
                other = 2 * neighbour[e] + (state + negative[bond[e]] + complement) % 2
                if further >= 1.0 - _VIOLATED or further >= distance[other]:
                    continue
                if distance[other] == np.inf:
                    touched[count] = other
                    count += 1
                distance[other], parent[other], move[other] = further, state, 2 * bond[e] + complement
                _push(heap, keys, size, other, further)
                size += 1
    length, state = 0, last
    while size and state != first:
        walk[length] = move[state]
        state = parent[state]
        length += 1
    for k in range(count):
        distance[touched[k]] = np.inf
    return length
