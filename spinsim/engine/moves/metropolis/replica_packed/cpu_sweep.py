"""The replica-packed Metropolis update: 128 replicas of a site at once, by the steps of packed/steps.py.

A block is 128 replicas of all sites, in words whose bit r is set where the spin of a replica is +1:

    state[site, 0]    replicas 0 to 63
    state[site, 1]    replicas 64 to 127

A batch of n sites becomes rows of scratch, in which word q is half 0 of its q-th site and word BATCH + q half 1:

    SPIN              the sites themselves
    NEAR + k ROW      their neighbours in slot k, turned over where the coupling is below 0
    CLASS + b ROW     bit b of how many bonds of each lane are unsatisfied
    FLIP              lanes that flip

``sweep_wide`` has more classes: in a uniform field, for degrees up to 31, or of an energy of two terms. Bit planes of a
site's class, lowest first: unsatisfied bonds of term 0, those of term 1 if there are two terms, and in a field whether
the spin is +1.
"""

from __future__ import annotations

import numpy as np

from spinsim.engine.layouts.replica_packed.cpu_counting import BATCH, ROW, ZERO, add_count, empty_into, finish_addition
from spinsim.engine.moves.metropolis.packed.steps import (
    CLASS,
    FLIP,
    NEAR,
    SCRATCH_WORDS,
    SPIN,
    WIDE_WORDS,
    count_unlike,
    find_flips,
    find_flips_wide,
    scatter,
    scratch_of,
)
from spinsim.machine.compiled import kernel, step


@step
def gather(row, state, sites, w):  # type: ignore[no-untyped-def]
    """Words of some sites into one row."""
    for q in range(sites.size):
        j = sites[q]
        w[row + q] = state[j, 0]
        w[row + BATCH + q] = state[j, 1]


@step
def gather_signed(row, state, sites, signs, w):  # type: ignore[no-untyped-def]
    """Words of neighbours into one row, turned over where the coupling to them is below 0."""
    for q in range(sites.size):
        j, sign = sites[q], ZERO - np.uint64(signs[q])
        w[row + q] = state[j, 0] ^ sign
        w[row + BATCH + q] = state[j, 1] ^ sign


@step
def slot(k, n):  # type: ignore[no-untyped-def]
    """Where slot k of n sites is. Slices, not sums, as indices: they need no check for negative ones."""
    return slice(k * n, (k + 1) * n)


@step
def share_of_batches(colour_start, colour, share):  # type: ignore[no-untyped-def]
    """First and last plus one of the batches that part ``share[2]`` of ``share[3]`` has of a colour."""
    start, count = colour_start[colour], colour_start[colour + 1] - colour_start[colour]
    return start + count * share[2] // share[3], start + count * (share[2] + 1) // share[3]


@step
def tally(n, parity, done, totals, w, counters):  # type: ignore[no-untyped-def]
    """Count the unsatisfied bonds of a batch after its update; the number of additions that the counters hold.

    A site of class k had k of six bonds, phantoms among them, or of seven where its degree is odd; a flip leaves the
    others.
    """
    for half in range(2):
        for q in range(n):
            e = half * BATCH + q
            flip, low, middle, high = w[FLIP + e], w[CLASS + e], w[CLASS + ROW + e], w[CLASS + 2 * ROW + e]
            if parity:
                add_count(counters, e, low ^ flip, middle ^ flip, high ^ flip)
            else:
                add_count(counters, e, low, middle ^ (flip & ~low), high ^ (flip & ~(low & middle)))
    return finish_addition(done, n, totals, counters)


@kernel
def sweep_packed(state, batches, signs, tables, lanes, source, half_sweep, sweeps, share):  # type: ignore[no-untyped-def]
    """``sweep_and_tally`` with scratch of its own, and nothing counted."""
    nothing = np.empty(0, np.int64), np.empty(0, np.uint64)
    scratch = scratch_of(SCRATCH_WORDS)
    sweep_and_tally(scratch, nothing, state, batches, signs, tables, lanes, source, half_sweep, sweeps, share)


@kernel
def sweep_and_tally(  # type: ignore[no-untyped-def]
    scratch, counted, state, batches, signs, tables, lanes, source, half_sweep, sweeps, share
):
    """Update one block of 128 replicas of one sample, degree at most 7, no field.

    Args:
        scratch: ``scratch_of(SCRATCH_WORDS)``.
        counted: Totals (128,), to which the unsatisfied bonds of the last colour, phantoms too, are added after its
            last update, and counters, which are 0 and stay so; both empty where nothing is counted.
        state: uint64 (sites, 2), changed in place.
        signs: uint8, a row of ``Batches.signs``.
        tables: ``always``, ``planes`` and ``thresholds`` of this block, as ``Tables`` has them.
        lanes: uint64 (2,), lanes in use.
        source: Counter word 1, the two key words, and the Philox rounds, 7 or 10.
        share: What to do of a sweep: the colours ``share[0]`` to ``share[1] - 1``, and of their batches part
            ``share[2]`` of ``share[3]``. Parts of one colour may run side by side.
    """
    (w, tail, site, lane), (totals, counters) = scratch, counted
    (always, planes, thresholds), (block, (k0, k1), rounds) = tables, source
    added = 0
    for sweep in range(sweeps):
        for colour in range(share[0], share[1]):
            counts = totals.size > 0 and sweep + 1 == sweeps and colour + 1 == share[1]
            first, stop = share_of_batches(batches.colour_start, colour, share)
            for b in range(first, stop):
                slots, parity = batches.slots[b], batches.parity[b]
                sites = batches.order[batches.first[b] : batches.first[b + 1]]
                n = sites.size
                bonds = slice(batches.offset[b], batches.offset[b] + slots * n)
                neighbour, sign = batches.neighbour[bonds], signs[bonds]
                gather(SPIN, state, sites, w)
                for k in range(slots):
                    gather_signed(NEAR + k * ROW, state, neighbour[slot(k, n)], sign[slot(k, n)], w)
                count_unlike(n, slots, w)
                find_flips(
                    n, always[parity], planes[parity], thresholds[parity], lanes, sites, block, half_sweep, k0, k1,
                    rounds, w, tail, site, lane,
                )  # fmt: skip
                scatter(state, sites, w)
                if counts:
                    added = tally(n, parity, added, totals, w, counters)
            half_sweep += np.uint64(1)
    if added:
        empty_into(totals, added, counters)


@step
def count_slots(n, slots, base, count_bits, state, neighbour, signs, w, row):  # type: ignore[no-untyped-def]
    """Unsatisfied bonds of any number of slots, added one by one into ``count_bits`` bit planes from ``row`` on."""
    for b in range(count_bits):
        start = ZERO - np.uint64((base >> b) & 1)
        for e in range(ROW):
            w[row + b * ROW + e] = start
    for k in range(slots):
        gather(NEAR, state, neighbour[slot(k, n)], w)
        sign = signs[slot(k, n)]
        for half in range(2):
            for q in range(n):
                e = half * BATCH + q
                w[NEAR + e] = w[SPIN + e] ^ w[NEAR + e] ^ (ZERO - np.uint64(sign[q]))
        for b in range(count_bits):
            for half in range(2):
                for q in range(n):
                    e = half * BATCH + q
                    low = w[row + b * ROW + e]
                    w[row + b * ROW + e] = low ^ w[NEAR + e]
                    w[NEAR + e] &= low


@kernel
def sweep_wide(  # type: ignore[no-untyped-def]
    state, batches, signs, tables, lanes, source, half_sweep, sweeps, share, count_bits, has_field
):
    """``sweep_packed`` with ``count_bits`` planes for the bonds of each of two terms, and the spin's on top in a field.

    Where there is one term, ``count_bits[1]`` is 0. All flips that gain energy are in ``always``.
    """
    w, tail, site, lane = scratch_of(WIDE_WORDS)
    (always, planes, thresholds), (block, (k0, k1), rounds), (first_bits, second_bits) = tables, source, count_bits
    counted = first_bits + second_bits
    class_bits = counted + 1 if has_field else counted
    for _ in range(sweeps):
        for colour in range(share[0], share[1]):
            first, stop = share_of_batches(batches.colour_start, colour, share)
            for b in range(first, stop):
                slots, ours, parity = batches.slots[b], batches.of_term_0[b], batches.parity[b]
                sites = batches.order[batches.first[b] : batches.first[b + 1]]
                n, start = sites.size, batches.offset[b]
                middle = start + ours * n
                bonds, others = slice(start, middle), slice(middle, start + slots * n)
                gather(SPIN, state, sites, w)
                count_slots(n, ours, batches.base[b], first_bits, state, batches.neighbour[bonds], signs[bonds], w,
                            CLASS)  # fmt: skip
                if second_bits:
                    count_slots(n, slots - ours, 0, second_bits, state, batches.neighbour[others], signs[others], w,
                                CLASS + first_bits * ROW)  # fmt: skip
                if has_field:
                    for e in range(ROW):
                        w[CLASS + counted * ROW + e] = w[SPIN + e]
                find_flips_wide(
                    n, class_bits, always[parity], planes[parity], thresholds[parity], lanes, sites, block, half_sweep,
                    k0, k1, rounds, w, tail, site, lane,
                )  # fmt: skip
                scatter(state, sites, w)
            half_sweep += np.uint64(1)
