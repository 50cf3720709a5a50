"""The update of 128 replicas of a site whose energy has two terms, with the steps of packed/wide_steps.py."""

from __future__ import annotations

import numpy as np

from spinsim import rng
from spinsim.engine.layouts.replica_packed.adders import ONE, ROW
from spinsim.engine.moves.metropolis.packed.steps import CLASS, SPIN, collect_flips, finish_lanes, prefixes, scatter
from spinsim.engine.moves.metropolis.packed.wide_steps import WIDE_WORDS, compare_wide, decide_wide
from spinsim.engine.moves.metropolis.replica_packed.cpu_sweep import gather, share_of_batches
from spinsim.engine.moves.metropolis.replica_packed.cpu_sweep_in_field import count_slots
from spinsim.machine.compiled import kernel


@kernel
def sweep_terms(  # type: ignore[no-untyped-def]
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
    has_field,
):
    """``sweep_packed`` of ``TermBatches``; ``count_bits`` are those of each term, the tables of each kind of sites."""
    k0, k1 = key
    w = np.empty(WIDE_WORDS, np.uint64)
    tail = np.empty(ROW + 1, np.int64)
    site, lane = np.empty(64 * ROW, np.uint64), np.empty(64 * ROW, np.uint64)
    first_bits, second_bits = count_bits
    counted = first_bits + second_bits
    class_bits = counted + 1 if has_field else counted
    for _ in range(sweeps):
        for colour in range(share[0], share[1]):
            low_sweep = rng.low32(half_sweep)
            first, stop = share_of_batches(batches.colour_start, colour, share)
            for b in range(first, stop):
                kind, ours, others = batches.kind[b], batches.slots[b, 0], batches.slots[b, 1]
                sites = batches.order[batches.first[b] : batches.first[b + 1]]
                n = sites.size
                start, middle = batches.offset[b], batches.offset[b] + ours * n
                bonds, further = slice(start, middle), slice(middle, middle + others * n)
                gather(SPIN, state, sites, w)
                count_slots(n, ours, 0, first_bits, state, batches.neighbour[bonds], signs[bonds], w, CLASS)
                count_slots(n, others, 0, second_bits, state, batches.neighbour[further], signs[further], w,
                            CLASS + first_bits * ROW)  # fmt: skip
                if has_field:
                    for e in range(ROW):
                        w[CLASS + counted * ROW + e] = w[SPIN + e]
                decide_wide(n, class_bits, always[kind], lanes, w)  # what gains is in ``always``, as with a field
                prefixes(sites, block, low_sweep, k0, k1, w)
                compare_wide(n, class_bits, planes[kind], half_sweep, k0, k1, rounds, w)
                words = collect_flips(n, lanes, w, tail)
                finish_lanes(
                    words, class_bits, thresholds[kind], sites, block, half_sweep, k0, k1, rounds, w, tail, site, lane
                )
                scatter(state, sites, w)
            half_sweep += ONE
