"""Spins +1 and unsatisfied bonds of every replica, as exact integers.

Spins are summed with vertical counters: plane p of a column holds bit p of 64 lanes' counts. Bonds are dealt to
BATCH columns, so that each addition works on a row of words; every 255 additions the columns are added up, still as
planes, and what comes of it is emptied into integers.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from spinsim.engine.metropolis.packed.steps import BATCH, ONE, ROW, ZERO
from spinsim.machine.compiled import kernel, part

PLANES: Final = 8
FULL: Final = 2**PLANES - 1
SUM_PLANES: Final = PLANES + BATCH.bit_length() - 1  # of the sum over all columns
ITEM: Final = SUM_PLANES * ROW
CARRY: Final = ITEM  # while columns are added up


@part
def add_row(w, n, depth):  # type: ignore[no-untyped-def]
    """Add the item row to the counters of the first n columns, ``depth`` planes deep."""
    for plane in range(depth):
        for half in range(2):
            for q in range(n):
                e = half * BATCH + q
                low = w[plane * ROW + e]
                w[plane * ROW + e] = low ^ w[ITEM + e]
                w[ITEM + e] &= low


@part
def planes_for(additions):  # type: ignore[no-untyped-def]
    """Counter planes that ``additions`` can reach."""
    depth = 1
    while (1 << depth) <= additions:
        depth += 1
    return depth


@part
def add_up_columns(depth, w):  # type: ignore[no-untyped-def]
    """Add all columns, ``depth`` planes deep, into the first; how many planes the sum has."""
    width = BATCH
    while width > 1:
        width //= 2
        for half in range(2):
            first = half * BATCH
            for q in range(width):
                w[CARRY + q] = ZERO
            for plane in range(depth):
                row = plane * ROW + first
                for q in range(width):
                    one, other, carry = w[row + q], w[row + width + q], w[CARRY + q]
                    differ = one ^ other
                    w[row + q] = differ ^ carry
                    w[CARRY + q] = (one & other) | (differ & carry)
            for q in range(width):
                w[depth * ROW + first + q] = w[CARRY + q]
        depth += 1
    return depth


@part
def empty_into(totals, done, w):  # type: ignore[no-untyped-def]
    """Move the counters, of ``done`` additions, into ``totals`` (128,)."""
    depth = add_up_columns(planes_for(done), w)
    for plane in range(depth):
        for half in range(2):
            word = w[plane * ROW + half * BATCH]
            for bit in range(64):
                totals[half * 64 + bit] += np.int64(word >> np.uint64(bit) & ONE) << plane
    for e in range(depth * ROW):
        w[e] = ZERO


@part
def count_row(done, n, totals, w):  # type: ignore[no-untyped-def]
    """Add the item row; the number of additions since the counters were empty."""
    add_row(w, n, planes_for(done + 1))
    if done + 1 < FULL:
        return done + 1
    empty_into(totals, FULL, w)
    return 0


@kernel
def count_up(state, sites, totals):  # type: ignore[no-untyped-def]
    """Add to ``totals`` (128,) each lane's number of spins +1 at ``sites``; ``state`` is uint64 (all sites, 2)."""
    w = np.zeros(ITEM + ROW, np.uint64)
    done = 0
    for first in range(0, sites.size, BATCH):
        chosen = sites[first : first + BATCH]
        n = chosen.size
        for q in range(n):
            i = chosen[q]
            w[ITEM + q] = state[i, 0]
            w[ITEM + BATCH + q] = state[i, 1]
        done = count_row(done, n, totals, w)
    empty_into(totals, done, w)


@kernel
def count_unsatisfied(state, edges, negative, totals):  # type: ignore[no-untyped-def]
    """Add to ``totals`` (128,) each lane's number of unsatisfied bonds; ``negative`` is 1 where J < 0."""
    w = np.zeros(ITEM + ROW, np.uint64)
    done = 0
    for first in range(0, edges.shape[0], BATCH):
        ends = edges[first : first + BATCH]
        signs = negative[first : first + BATCH]
        n = ends.shape[0]
        for q in range(n):
            i, j = np.uint32(ends[q, 0]), np.uint32(ends[q, 1])
            sign = ZERO - np.uint64(signs[q])
            w[ITEM + q] = state[i, 0] ^ state[j, 0] ^ sign
            w[ITEM + BATCH + q] = state[i, 1] ^ state[j, 1] ^ sign
        done = count_row(done, n, totals, w)
    empty_into(totals, done, w)
