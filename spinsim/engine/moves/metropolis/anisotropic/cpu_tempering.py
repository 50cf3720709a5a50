"""Many rounds of tempering of a sample whose energy has two terms in one call, as rounds of small models are short."""

from __future__ import annotations

import numpy as np

from spinsim import rng
from spinsim.engine.layouts.replica_packed.cpu_counting import count_unsatisfied, count_up
from spinsim.engine.moves.exchange.cpu import exchange
from spinsim.engine.moves.metropolis.anisotropic.cpu_sweep import sweep_terms
from spinsim.engine.moves.metropolis.packed.cpu_tables import lay_tables
from spinsim.machine.compiled import kernel
from spinsim.packing import LANES


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
