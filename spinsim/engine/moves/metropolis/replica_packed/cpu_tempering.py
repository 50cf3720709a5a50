"""Many rounds of parallel tempering of replica-packed samples without a field in one call."""

from __future__ import annotations

import numpy as np

from spinsim import rng
from spinsim.engine.layouts.replica_packed.cpu_counting import WORDS, count_unsatisfied, count_up
from spinsim.engine.moves.exchange.cpu import exchange
from spinsim.engine.moves.metropolis.packed.cpu_sweeper import lay_tables
from spinsim.engine.moves.metropolis.replica_packed.cpu_sweep import scratch_of_sweeps, sweep_and_tally
from spinsim.engine.moves.metropolis.replica_packed.cpu_sweep_in_field import sweep_packed_in_field
from spinsim.machine.compiled import body, kernel
from spinsim.packing import LANES


@body
def temper_packed(  # type: ignore[no-untyped-def]
    state, bonds, batches, signs, lanes, tables, ladder, exchanged, shape, sample, key, rng_rounds, half_sweep, times
):
    """Sweep all blocks of a sample, exchange temperatures, and so on.

    Args:
        state: uint64 (blocks, sites, 2), changed in place.
        bonds: Edges, negative couplings (bonds,), and |J| in quanta.
        batches: ``Batches``.
        signs: uint8, a row of ``Batches.signs``.
        lanes: uint64 (blocks, 2), lanes in use.
        tables: ``Tables`` of the sample: always, planes, thresholds; changed in place.
        ladder: ``Ladder.steps``, copies, and ``ReplicaPlan.limits``.
        exchanged: A row of ``Exchange``, changed in place.
        shape: Colours, the tables that sites look at, and phantom bonds of the last colour that are always unsatisfied.
        sample: Its number.
        key: The two key words.
        rng_rounds: Philox rounds, 7 or 10.
        half_sweep: Half-sweeps done so far.
        times: Rounds done so far, rounds to do, sweeps of each.
    """
    edges, negative, magnitude = bonds
    always, planes, thresholds = tables
    steps, copies, certain, limits = ladder
    place, attempts, accepts, trips, last_end = exchanged
    colours, used, phantoms = shape
    first, rounds, sweeps = times
    blocks = state.shape[0]
    unsatisfied, energy = np.empty(blocks * LANES, np.int64), np.empty((blocks * LANES, 1), np.int64)
    share = (np.int64(0), colours, np.int64(0), np.int64(1))
    scratch, counters = scratch_of_sweeps(), np.zeros(WORDS, np.uint64)
    tallied = colours == 2 and sweeps > 0  # then each bond has one end of the last colour
    for done in range(rounds):
        unsatisfied[:] = 0
        for b in range(blocks):
            block = rng.counter_block(np.uint64(sample), np.uint64(b))
            totals = unsatisfied[b * LANES : (b + 1) * LANES]
            counted = totals if tallied else totals[:0]
            sweep_and_tally(scratch, (counted, counters), state[b], batches, signs, always[b], planes[b],
                            thresholds[b], lanes[b], block, key, rng_rounds, half_sweep, sweeps, share)  # fmt: skip
            if tallied:
                totals -= phantoms
            else:
                count_unsatisfied(state[b], edges, negative, totals)
        for r in range(unsatisfied.size):
            energy[r, 0] = -magnitude * (edges.shape[0] - 2 * unsatisfied[r])
        exchange(energy, steps, copies, first + done, sample, key, rng_rounds,
                 place, attempts, accepts, trips, last_end)  # fmt: skip
        lay_tables(place, used, certain, limits, always, planes, thresholds)
        half_sweep += np.uint64(sweeps * colours)


@kernel
def temper_samples(  # type: ignore[no-untyped-def]
    state, bonds, batches, lanes, tables, ladder, exchanged, shape, firsts, key, rng_rounds, half_sweep, times
):
    """``temper_packed`` of consecutive samples, the rows of what ``tables`` and so on hold.

    The first of these is number ``firsts[0]`` of the model, whose own first is number ``firsts[1]`` of the run.
    Negative couplings of ``bonds`` and ``batches.signs`` have a row for each sample of the model, or one for all.
    """
    edges, negative, magnitude = bonds
    always, planes, thresholds = tables
    place, attempts, accepts, trips, last_end = exchanged
    first, first_of_model = firsts
    for k in range(state.shape[0]):
        row = (first + k) % negative.shape[0]
        temper_packed(
            state[k], (edges, negative[row], magnitude), batches, batches.signs[row], lanes,
            (always[k], planes[k], thresholds[k]), ladder,
            (place[k], attempts[k], accepts[k], trips[k], last_end[k]), shape, first_of_model + first + k, key,
            rng_rounds, half_sweep, times,
        )  # fmt: skip


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
