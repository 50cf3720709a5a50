"""The replica-packed update in a uniform field, for degrees up to 31, with the steps of packed/wide_steps.py."""

from __future__ import annotations

import numpy as np

from spinsim import rng
from spinsim.engine.layouts.replica_packed.adders import BATCH, ONE, ROW, ZERO
from spinsim.engine.moves.metropolis.packed.steps import (
    CLASS,
    NEAR,
    SPIN,
    collect_flips,
    finish_lanes,
    prefixes,
    scatter,
)
from spinsim.engine.moves.metropolis.packed.wide_steps import (
    WIDE_WORDS,
    compare_wide,
    decide_wide,
)
from spinsim.engine.moves.metropolis.replica_packed.cpu_sweep import gather, share_of_batches, slot
from spinsim.machine.compiled import kernel, part


@part
def count_slots(n, slots, base, count_bits, state, neighbour, signs, w, row):  # type: ignore[no-untyped-def]
    """Unsatisfied bonds of any number of slots, added one by one into ``count_bits`` bit planes from ``row`` on."""
    for b in range(count_bits):
        start = ZERO - np.uint64((base >> b) & 1)
        for e in range(ROW):
            w[row + b * ROW + e] = start
    for k in range(slots):
        gather(NEAR, state, slot(neighbour, k, n), w)
        sign = slot(signs, k, n)
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
def sweep_packed_in_field(  # type: ignore[no-untyped-def]
    state,
    batches,
    signs,
    always,
    planes,
    thresholds,
    lanes,
    block,
    key,
    rounds,
    half_sweep,
    sweeps,
    share,
    count_bits,
):
    """``sweep_packed`` for ``count_bits`` up to 5, with the spin as the class's top bit."""
    k0, k1 = key
    w = np.empty(WIDE_WORDS, np.uint64)
    tail = np.empty(ROW + 1, np.int64)
    site, lane = np.empty(64 * ROW, np.uint64), np.empty(64 * ROW, np.uint64)
    class_bits = count_bits + 1
    for _ in range(sweeps):
        for colour in range(share[0], share[1]):
            low_sweep = rng.low32(half_sweep)
            first, stop = share_of_batches(batches.colour_start, colour, share)
            for b in range(first, stop):
                slots, parity = batches.slots[b], batches.parity[b]
                sites = batches.order[batches.first[b] : batches.first[b + 1]]
                n = sites.size
                bonds = slice(batches.offset[b], batches.offset[b] + slots * n)
                gather(SPIN, state, sites, w)
                count_slots(n, slots, batches.base[b], count_bits, state, batches.neighbour[bonds], signs[bonds], w,
                            CLASS)  # fmt: skip
                for e in range(ROW):
                    w[CLASS + count_bits * ROW + e] = w[SPIN + e]
                decide_wide(n, class_bits, always[parity], lanes, w)
                prefixes(sites, block, low_sweep, k0, k1, w)
                compare_wide(n, class_bits, planes[parity], half_sweep, k0, k1, rounds, w)
                words = collect_flips(n, lanes, w, tail)
                finish_lanes(
                    words, class_bits, thresholds[parity], sites, block, half_sweep, k0, k1, rounds, w, tail, site, lane
                )
                scatter(state, sites, w)
            half_sweep += ONE
