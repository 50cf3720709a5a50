"""The replica-packed update of many classes: in a uniform field, for degrees up to 31, or of an energy of two terms.

Bit planes of a site's class, lowest first: unsatisfied bonds of term 0, those of term 1 if there are two terms, and in
a field whether the spin is +1.
"""

from __future__ import annotations

import numpy as np

from spinsim.engine.layouts.replica_packed.adders import BATCH, ONE, ROW, ZERO
from spinsim.engine.moves.metropolis.packed.steps import CLASS, NEAR, SPIN, scatter, scratch_of
from spinsim.engine.moves.metropolis.packed.wide_steps import WIDE_WORDS, find_flips_wide
from spinsim.engine.moves.metropolis.replica_packed.cpu_sweep import gather, share_of_batches, slot
from spinsim.machine.compiled import kernel, step


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
            half_sweep += ONE
