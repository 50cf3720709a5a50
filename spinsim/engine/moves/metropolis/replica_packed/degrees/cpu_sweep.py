"""The replica-packed update of sites of any degrees, in fields that count as bonds, with the steps of cheap_steps.py.

Batches may be of a few sites: no references are counted, and indices are unsigned, so that no sign is looked at.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from spinsim import rng
from spinsim.engine.layouts.replica_packed.adders import BATCH, ONE, ROW, ZERO
from spinsim.engine.moves.metropolis.packed.steps import NEAR, SPIN, collect_flips, finish_lanes, prefixes, scatter
from spinsim.engine.moves.metropolis.replica_packed.cpu_sweep import gather, share_of_batches
from spinsim.engine.moves.metropolis.replica_packed.degrees.cheap_steps import (
    CHEAP_WORDS,
    add_seven_bonds,
    add_three_bonds,
    compare_cheap,
    decide_cheap,
    start_count,
    start_in_fields,
)
from spinsim.machine.compiled import kernel, part
from spinsim.machine.intrinsics import borrowed

HALF: Final = np.uint64(BATCH)


@part
def gather_wanted(row, first, n, state, neighbour, signs, w):  # type: ignore[no-untyped-def]
    """Spins that satisfy bonds from number ``first`` on of n sites: neighbours' words, flipped where the sign is 1."""
    for q in range(n):
        at, to = np.uint64(first + q), np.uint64(row + q)
        j, sign = neighbour[at], ZERO - np.uint64(signs[at])
        w[to] = state[j, 0] ^ sign
        w[to + HALF] = state[j, 1] ^ sign


@part
def satisfy(row, n, w):  # type: ignore[no-untyped-def]
    """A row of bonds that are satisfied."""
    for half in range(2):
        for q in range(n):
            e = half * BATCH + q
            w[np.uint64(row + e)] = w[SPIN + e]


@part
def count_by_sevens(n, columns, slots, first, count_bits, state, neighbour, signs, w):  # type: ignore[no-untyped-def]
    """Add unsatisfied bonds of n sites to bit planes, in ``columns`` columns of which the last may be of no site."""
    done = 0
    while done < slots:
        together = 3 if slots - done <= 3 else 7
        for k in range(together):
            if done < slots:
                gather_wanted(NEAR + k * ROW, first + done * n, n, state, neighbour, signs, w)
            else:
                satisfy(NEAR + k * ROW, columns, w)
            done += 1
        if together == 3:
            add_three_bonds(columns, count_bits, w)
        else:
            add_seven_bonds(columns, count_bits, w)


@part
def bits_of_count(most):  # type: ignore[no-untyped-def]
    """K of classes.py for sites of so many bonds."""
    bits = 3
    while most >> bits:
        bits += 1
    return bits


@kernel
def sweep_by_degree(  # type: ignore[no-untyped-def]
    state, batches, signs, tables, lanes, source, half_sweep, sweeps, share, cheap_bits, starts
):
    """``sweep_packed`` for sites of any degrees.

    ``cheap_bits`` are those of cheap_steps.py at these temperatures, ``starts`` a sample's of plan.py.
    """
    (always, planes, thresholds), (block, (k0, k1), rounds) = tables, source
    owned = np.zeros(CHEAP_WORDS, np.uint64), np.empty(ROW + 1, np.int64), np.empty((2, 64 * ROW), np.uint64)
    w, tail, site, lane = borrowed(owned[0]), borrowed(owned[1]), borrowed(owned[2][0]), borrowed(owned[2][1])
    state, signs, planes, thresholds, lanes, starts = (
        borrowed(state), borrowed(signs), borrowed(planes), borrowed(thresholds), borrowed(lanes), borrowed(starts)
    )  # fmt: skip
    certain = borrowed(always.reshape((always.shape[0], 1, always.shape[1], 2)))
    first_of, offset, order = borrowed(batches.first), borrowed(batches.offset), borrowed(batches.order)
    neighbour, slots_of, parities = borrowed(batches.neighbour), borrowed(batches.slots), borrowed(batches.parity)
    most_of = borrowed(batches.most)
    colour_start = borrowed(batches.colour_start)
    for _ in range(sweeps):
        for colour in range(share[0], share[1]):
            low_sweep = rng.low32(half_sweep)
            first, stop = share_of_batches(colour_start, colour, share)
            for b in range(first, stop):
                slots, parity = slots_of[b], parities[b]
                sites = order[first_of[b] : first_of[b + 1]]
                n = sites.size
                columns = (n + 7) & ~7  # of whole vectors
                count_bits = bits_of_count(most_of[b])
                class_bits, bits = count_bits - 1, min(count_bits - 1, cheap_bits)
                gather(SPIN, state, sites, w)
                if starts.size:
                    start_in_fields(columns, count_bits, first_of[b], starts, w)
                else:
                    start_count(columns, count_bits, ((1 << count_bits) - 2 + parity - slots) // 2, w)
                count_by_sevens(n, columns, slots, offset[b], count_bits, state, neighbour, signs, w)
                decide_cheap(columns, bits, class_bits, certain, parity, lanes, w)
                prefixes(sites, block, low_sweep, k0, k1, w)
                compare_cheap(columns, bits, planes, parity, half_sweep, k0, k1, rounds, w)
                words = collect_flips(n, lanes, w, tail)
                of_class = thresholds[parity, thresholds.shape[1] - (1 << class_bits) :]
                finish_lanes(words, class_bits, of_class, sites, block, half_sweep, k0, k1, rounds, w, tail, site, lane)
                scatter(state, sites, w)
            half_sweep += ONE
    return owned[0].size + owned[1].size + owned[2].size  # so that they live until here
