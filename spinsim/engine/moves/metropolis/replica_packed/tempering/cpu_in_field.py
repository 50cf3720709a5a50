"""Many rounds of parallel tempering of replica-packed samples in a field in one call.

A kernel of its own, so that runs without a field do not wait for its sweeps to be compiled.
"""

from __future__ import annotations

import numpy as np

from spinsim import rng
from spinsim.engine.layouts.replica_packed.cpu_counting import count_unsatisfied, count_up
from spinsim.engine.moves.exchange.cpu import exchange
from spinsim.engine.moves.metropolis.packed.cpu_tables import lay_tables
from spinsim.engine.moves.metropolis.replica_packed.cpu_sweep_in_field import sweep_packed_in_field
from spinsim.machine.compiled import kernel
from spinsim.packing import LANES


@kernel
def temper_samples_in_field(  # type: ignore[no-untyped-def]
    state, bonds, batches, lanes, tables, ladder, exchanged, shape, firsts, key, rng_rounds, half_sweep, times
):
    """``temper_samples`` with the uniform field behind |J| in ``bonds``, in quanta.

    ``shape`` are bits of the count, colours and the tables that sites look at.
    """
    edges, negative, magnitude, field = bonds
    always, planes, thresholds = tables
    steps, copies, certain, limits = ladder
    place, attempts, accepts, trips, last_end = exchanged
    count_bits, colours, used = shape
    blocks, sites = state.shape[1], state.shape[2]
    energy = np.empty((blocks * LANES, 1), np.int64)
    share = (np.int64(0), colours, np.int64(0), np.int64(1))
    for k in range(state.shape[0]):
        row = (firsts[0] + k) % negative.shape[0]
        sample, now = firsts[1] + firsts[0] + k, half_sweep
        for done in range(times[1]):
            for b in range(blocks):
                block = rng.counter_block(np.uint64(sample), np.uint64(b))
                sweep_packed_in_field(state[k, b], batches, batches.signs[row], always[k, b], planes[k, b],
                                      thresholds[k, b], lanes[b], block, key, rng_rounds, now, times[2], share,
                                      count_bits)  # fmt: skip
                up, unsatisfied = np.zeros(LANES, np.int64), np.zeros(LANES, np.int64)
                count_up(state[k, b], batches.order, up)
                count_unsatisfied(state[k, b], edges, negative[row], unsatisfied)
                for lane in range(LANES):
                    satisfied = edges.shape[0] - 2 * unsatisfied[lane]
                    energy[b * LANES + lane, 0] = -magnitude * satisfied - field * (2 * up[lane] - sites)
            exchange(energy, steps, copies, times[0] + done, sample, key, rng_rounds,
                     place[k], attempts[k], accepts[k], trips[k], last_end[k])  # fmt: skip
            lay_tables(place[k], used, certain, limits, always[k], planes[k], thresholds[k])
            now += np.uint64(times[2] * colours)
