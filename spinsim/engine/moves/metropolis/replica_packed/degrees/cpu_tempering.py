"""Many rounds of parallel tempering of graphs whose degrees differ much, in one call.

A kernel of its own, so that runs of other models do not wait for its sweeps to be compiled.
"""

from __future__ import annotations

import numpy as np

from spinsim import rng
from spinsim.engine.layouts.replica_packed.cpu_counting import count_lone, count_unsatisfied
from spinsim.engine.moves.exchange.cpu import exchange
from spinsim.engine.moves.metropolis.packed.cpu_tables import lay_tables
from spinsim.engine.moves.metropolis.replica_packed.degrees.cpu_sweep import sweep_by_degree
from spinsim.machine.compiled import kernel
from spinsim.packing import LANES


@kernel
def temper_by_degree(  # type: ignore[no-untyped-def]
    state, bonds, batches, lanes, tables, ladder, exchanged, shape, firsts, key, rng_rounds, half_sweep, times
):
    """``temper_samples`` of graphs without a field in the class.

    ``bonds`` are their ends and signs, |J|, and what fields.py says of fields; ``shape`` are bits of cheap classes,
    colours and tables in use.
    """
    edges, negative, magnitude, lone, positive, starts = bonds
    always, planes, thresholds = tables
    steps, copies, certain, limits = ladder
    place, attempts, accepts, trips, last_end = exchanged
    cheap_bits, colours, used = shape
    blocks = state.shape[1]
    energy = np.empty((blocks * LANES, 1), np.int64)
    share, number = (np.int64(0), colours, np.int64(0), np.int64(1)), edges.shape[0] + lone.size
    for k in range(state.shape[0]):
        row = (firsts[0] + k) % negative.shape[0]
        sample, now = firsts[1] + firsts[0] + k, half_sweep
        for done in range(times[1]):
            for b in range(blocks):
                block = rng.counter_block(np.uint64(sample), np.uint64(b))
                sweep_by_degree(state[k, b], batches, batches.signs[row], always[k, b], planes[k, b], thresholds[k, b],
                                lanes[b], block, key, rng_rounds, now, times[2], share, cheap_bits,
                                starts[(firsts[0] + k) % starts.shape[0]])  # fmt: skip
                unsatisfied = np.zeros(LANES, np.int64)
                count_unsatisfied(state[k, b], edges, negative[row], unsatisfied)
                count_lone(state[k, b], lone, positive[(firsts[0] + k) % positive.shape[0]], unsatisfied)
                for lane in range(LANES):
                    energy[b * LANES + lane, 0] = -magnitude * (number - 2 * unsatisfied[lane])
            exchange(energy, steps, copies, times[0] + done, sample, key, rng_rounds,
                     place[k], attempts[k], accepts[k], trips[k], last_end[k])  # fmt: skip
            lay_tables(place[k], used, certain, limits, always[k], planes[k], thresholds[k])
            now += np.uint64(times[2] * colours)
