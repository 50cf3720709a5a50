"""The update of 128 replicas of a site whose energy has two terms, with the steps of packed/wide_steps.py."""

from __future__ import annotations

import numpy as np

from spinsim import rng
from spinsim.engine.layouts.replica_packed.adders import ONE, ROW
from spinsim.engine.layouts.replica_packed.cpu_counting import count_unsatisfied, count_up
from spinsim.engine.moves.exchange.cpu import exchange
from spinsim.engine.moves.metropolis.packed.cpu_sweeper import lay_tables
from spinsim.engine.moves.metropolis.packed.steps import CLASS, SPIN, collect_flips, finish_lanes, prefixes, scatter
from spinsim.engine.moves.metropolis.packed.wide_steps import WIDE_WORDS, compare_wide, decide_wide
from spinsim.engine.moves.metropolis.replica_packed.cpu_sweep import gather, share_of_batches
from spinsim.engine.moves.metropolis.replica_packed.cpu_sweep_in_field import count_slots
from spinsim.machine.compiled import kernel
from spinsim.packing import LANES


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


@kernel
def temper_terms(  # type: ignore[no-untyped-def]
    state, bonds, batches, signs, lanes, tables, ladder, exchanged, shape, sample, key, rng_rounds, half_sweep, times
):
    """Sweep all blocks of a sample, exchange temperatures, and so on.

    Args:
        state: uint64 (blocks, sites, 2), changed in place.
        bonds: Edges and negative couplings of term 0, those of term 1, |J| of each term and h in quanta.
        batches: ``TermBatches``.
        signs: uint8, a row of ``TermBatches.signs``.
        lanes: uint64 (blocks, 2), lanes in use.
        tables: ``Tables`` of the sample: always, planes, thresholds; changed in place.
        ladder: ``Ladder.steps``, copies, and ``TermPlan.limits``.
        exchanged: A row of ``Exchange``, changed in place.
        shape: Bits of each count, whether there is a field, colours.
        sample: Its number.
        key: The two key words.
        rng_rounds: Philox rounds, 7 or 10.
        half_sweep: Half-sweeps done so far.
        times: Rounds done so far, rounds to do, sweeps of each.
    """
    first_edges, first_negative, second_edges, second_negative, magnitudes, field = bonds
    always, planes, thresholds = tables
    steps, copies, certain, limits = ladder
    place, attempts, accepts, trips, last_end = exchanged
    count_bits, has_field, colours = shape
    before, rounds, sweeps = times
    blocks = state.shape[0]
    sums = np.empty((3, blocks * LANES), np.int64)
    up, first, second = sums[0], sums[1], sums[2]
    energy = np.empty((blocks * LANES, 2), np.int64)
    share = (np.int64(0), colours, np.int64(0), np.int64(1))
    for done in range(rounds):
        up[:], first[:], second[:] = 0, 0, 0
        for b in range(blocks):
            block, mine = rng.counter_block(np.uint64(sample), np.uint64(b)), slice(b * LANES, (b + 1) * LANES)
            sweep_terms(state[b], batches, signs, always[b], planes[b], thresholds[b], lanes[b], block, key,
                        rng_rounds, half_sweep, sweeps, share, count_bits, has_field)  # fmt: skip
            if has_field:
                count_up(state[b], batches.order, up[mine])
            count_unsatisfied(state[b], first_edges, first_negative, first[mine])
            count_unsatisfied(state[b], second_edges, second_negative, second[mine])
        for r in range(blocks * LANES):  # assigning arrays would compile the message of a shape that does not fit
            energy[r, 0] = 2 * (magnitudes[0] * first[r] - field * up[r])
            energy[r, 1] = 2 * magnitudes[1] * second[r]
        exchange(energy, steps, copies, before + done, sample, key, rng_rounds,
                 place, attempts, accepts, trips, last_end)  # fmt: skip
        lay_tables(place, (np.int64(0), limits.shape[0]), certain, limits, always, planes, thresholds)
        half_sweep += np.uint64(sweeps * colours)
