"""Clusters of periodic lattices by flood, 512 replicas at a time, without labels.

    opened[axis, 8 * site + w]   bonds from a site to the next one along an axis, open or not; words w of replicas
    reached[8 * site + w]        sites that are reached from where the flood began

A flood lets words grow over open bonds with AND and OR until nothing changes, row by row along the first axis: a row
takes what its neighbours along the other axes have reached and passes it on within itself, forward and backward. Rows
are visited in turn, up and down, as long as a neighbour has changed.

The leader of each cluster is found a bit of its rank at a time, from the highest: a flood from all candidates whose bit
is 0 reaches those with bit 1 in the same clusters, which drop out. One candidate of each cluster is left.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim.engine.moves.fortuin_kasteleyn.bonds import ALL, ONE, ZERO
from spinsim.machine.compiled import kernel, step
from spinsim.machine.intrinsics import scan_ring
from spinsim.model.lattice import Lattice

WIDE: Final = 8  # words of a site


class Rows(NamedTuple):
    """Rows of a lattice."""

    near: npt.NDArray[np.int32]  # rows before and after each row along the other axes, (rows, axes, 2)
    rank: npt.NDArray[np.uint32]  # of each site, (sites,)

    @classmethod
    def of(cls, lattice: Lattice, order: npt.NDArray[np.uint32]) -> Rows:
        """Rows of a lattice of one site a cell, whose sites lead in an order."""
        sides = lattice.shape[1:]
        number, rank = np.arange(np.prod(sides, dtype=np.int64)).reshape(sides[::-1]), np.empty_like(order)
        rank[order] = np.arange(order.size, dtype=np.uint32)
        near = np.empty((number.size, len(sides), 2), np.int32)
        for k in range(len(sides)):
            near[:, k] = np.stack([np.roll(number, by, -1 - k).reshape(-1) for by in (1, -1)], axis=-1)
        return cls(near, rank)


@step
def pull(row, other, opened):  # type: ignore[no-untyped-def]
    """Add to a row what another one has reached, over the open bonds between them; bits that differ then."""
    changed = ZERO
    for q in range(row.size):
        joined = row[q] | (other[q] & opened[q])
        changed |= joined ^ row[q]
        row[q] = joined
    return changed


@step
def spread(row, opened):  # type: ignore[no-untyped-def]
    """Pass on what is reached within a row, a ring, until all of it is."""
    last = row.size - WIDE
    left = ONE
    while left:
        scan_ring(row, opened)
        left = ZERO
        for w in range(WIDE):
            left |= (row[w] ^ row[last + w]) & opened[last + w]


@kernel
def flood(opened, reached, near, dirty):  # type: ignore[no-untyped-def]
    """Let ``reached`` grow over ``opened``; ``near`` is that of ``Rows``, ``dirty`` room, uint8 (rows,)."""
    rows, axes = near.shape[:2]
    width = reached.size // rows
    for r in range(rows):
        spread(reached[r * width : (r + 1) * width], opened[0, r * width : (r + 1) * width])
    dirty[:] = 1
    left, forward = 1, True
    while left > 0:
        left = 0
        for n in range(rows):
            r = n if forward else rows - 1 - n
            if dirty[r] == 0:
                continue
            dirty[r] = 0
            begin, changed = r * width, ZERO
            row = reached[begin : begin + width]
            for a in range(axes):
                before, after = near[r, a, 0] * width, near[r, a, 1] * width
                changed |= pull(row, reached[before : before + width], opened[a + 1, before : before + width])
                changed |= pull(row, reached[after : after + width], opened[a + 1, begin : begin + width])
            if changed:
                spread(row, opened[0, begin : begin + width])
                for a in range(axes):
                    dirty[near[r, a, 0]] = dirty[near[r, a, 1]] = 1
                left = 1
        forward = not forward


@kernel
def lead(opened, rows, candidates, reached, dirty):  # type: ignore[no-untyped-def]
    """Set ``candidates`` (words,) to the leaders of clusters; ``reached`` and ``dirty`` are room for floods."""
    near, rank = rows
    bit = 1
    while (1 << bit) < rank.size:
        bit += 1
    candidates[:] = ALL
    while bit > 0:
        bit -= 1
        shift = np.uint64(bit)
        for i in range(rank.size):
            is_zero = ((np.uint64(rank[i]) >> shift) & ONE) - ONE
            for w in range(WIDE * i, WIDE * i + WIDE):
                reached[w] = candidates[w] & is_zero
        flood(opened, reached, near, dirty)
        for i in range(rank.size):
            is_zero = ((np.uint64(rank[i]) >> shift) & ONE) - ONE
            for w in range(WIDE * i, WIDE * i + WIDE):
                candidates[w] &= ~reached[w] | is_zero


@kernel
def flip_flooded(up, opened, chosen, rows, by_leader):  # type: ignore[no-untyped-def]
    """Flip clusters with chosen sites, or only those whose leader is chosen, but none with the ghost.

    Args:
        up: Words of spins, uint64 (sites + 1, 8), changed in place.
        opened: Open bonds, (bonds, 8), axis by axis, those to the ghost last.
        chosen: Sites, (sites, 8).
    """
    near, rank = rows
    sites, axes = rank.size, near.shape[1] + 1
    inside = opened[: axes * sites].reshape(axes, sites * WIDE)
    reached, dirty = np.empty(sites * WIDE, np.uint64), np.empty(near.shape[0], np.uint8)
    seeds = chosen.reshape(sites * WIDE)
    if by_leader:
        leaders = np.empty(sites * WIDE, np.uint64)
        lead(inside, rows, leaders, reached, dirty)
        seeds &= leaders
    flood(inside, seeds, near, dirty)
    if opened.shape[0] > axes * sites:
        reached[:] = opened[axes * sites :].reshape(sites * WIDE)
        flood(inside, reached, near, dirty)
        seeds &= ~reached
    spins = up[:sites].reshape(sites * WIDE)
    spins ^= seeds
