"""Many rounds of parallel tempering of replica-packed samples in one call."""

from __future__ import annotations

import numpy as np

from spinsim import rng
from spinsim.engine.layouts.replica_packed.cpu_counting import WORDS, count_sites, count_unsatisfied
from spinsim.engine.moves.exchange.cpu import exchange
from spinsim.engine.moves.metropolis.packed.classes import lay_tables
from spinsim.engine.moves.metropolis.packed.steps import SCRATCH_WORDS, scratch_of
from spinsim.engine.moves.metropolis.replica_packed.cpu_degrees import sweep_by_degree
from spinsim.engine.moves.metropolis.replica_packed.cpu_sweep import sweep_and_tally, sweep_wide
from spinsim.machine.compiled import kernel, step
from spinsim.packing import LANES


@step
def sweep_and_count(  # type: ignore[no-untyped-def]
    work, state, batches, signs, tables, lanes, source, half_sweep, sweeps, share, bonds, wide, cheap, sample, sums
):
    """Sweep a block and add up its spins +1, where the energy has them, and unsatisfied bonds of each term.

    ``wide`` and ``cheap`` are those of ``temper_samples``, as a sweep takes them.
    """
    edges, negative, further_edges, further_negative, lone, positive, phantoms = bonds
    row, (up, unsatisfied, of_term_1) = sample % negative.shape[0], sums
    tallied = False
    if wide is not None:
        count_bits, has_field = wide
        sweep_wide(state, batches, signs, tables, lanes, source, half_sweep, sweeps, share, count_bits, has_field)
        if has_field:
            count_sites(state, batches.order, None, up)
        if further_edges.size:
            count_unsatisfied(state, further_edges, further_negative[row], of_term_1)
    elif cheap is not None:
        cheap_bits, starts = cheap
        of_sample = starts[sample % starts.shape[0]]
        sweep_by_degree(state, batches, signs, tables, lanes, source, half_sweep, sweeps, share, cheap_bits, of_sample)
        count_sites(state, lone, positive[sample % positive.shape[0]], unsatisfied)
    else:
        scratch, counters = work
        tallied = share[1] == 2 and sweeps > 0  # then each bond has one end of the last colour
        counted = unsatisfied if tallied else unsatisfied[:0]
        sweep_and_tally(
            scratch, (counted, counters), state, batches, signs, tables, lanes, source, half_sweep, sweeps, share
        )
    if tallied:
        unsatisfied -= phantoms
    else:
        count_unsatisfied(state, edges, negative[row], unsatisfied)


@kernel
def temper_samples(  # type: ignore[no-untyped-def]
    bonds, weights, batches, lanes, wide, cheap, ladder, source, state, always, planes, thresholds, place, attempts,
    accepts, trips, last_end, first, first_in_run, half_sweep, before, rounds, sweeps,
):  # fmt: skip
    """Sweep all blocks of consecutive samples, exchange temperatures, and so on.

    The sweep of an argument that is None, ``wide`` or ``cheap``, is no part of the machine code.

    Args:
        weights: |J| of each of two terms and h, in quanta.
        batches: ``Batches``, of the model.
        lanes: uint64 (blocks, 2), lanes in use.
        wide: Of ``sweep_wide``, if the class has the spin or two terms: bits of each count, whether there is a field.
        cheap: Of ``sweep_by_degree``, if sites of like degree stand together: bits of cheap classes, ``starts``.
        ladder: Colours, ``Ladder.steps``, copies, the tables that sites look at, and limits of each temperature.
        source: The two key words and the Philox rounds, 7 or 10.
        state: uint64 (samples, blocks, sites, 2), changed in place.
        always, planes, thresholds: ``Tables`` of the samples, changed in place.
        place, attempts, accepts, trips, last_end: ``Exchange`` of the samples, changed in place.
        first, first_in_run: Number of the first of the samples in the model, and of the model's first in the run.
        before, rounds, sweeps: Rounds done so far, rounds to do, sweeps of each.
    """
    (colours, steps, copies, used, certain, limits), (key, rng_rounds) = ladder, source
    first_magnitude, second_magnitude, field = weights
    share = np.int64(0), colours, np.int64(0), np.int64(1)
    work = scratch_of(SCRATCH_WORDS), np.zeros(WORDS, np.uint64)
    replicas, terms = state.shape[1] * LANES, steps.shape[1]
    sums, energy = np.empty((3, replicas), np.int64), np.empty((replicas, terms), np.int64)
    for k in range(state.shape[0]):
        sample, now = first + k, half_sweep
        number, signs = first_in_run + sample, batches.signs[sample % batches.signs.shape[0]]
        for done in range(rounds):
            sums[:] = 0
            for b in range(state.shape[1]):
                block, mine = rng.counter_block(np.uint64(number), np.uint64(b)), slice(b * LANES, (b + 1) * LANES)
                of_block = always[k, b], planes[k, b], thresholds[k, b]
                sweep_and_count(
                    work, state[k, b], batches, signs, of_block, lanes[b], (block, key, rng_rounds), now, sweeps, share,
                    bonds, wide, cheap, sample, (sums[0, mine], sums[1, mine], sums[2, mine]),
                )  # fmt: skip
            for r in range(replicas):  # up to a constant, which no exchange knows
                energy[r, 0] = 2 * (first_magnitude * sums[1, r] - field * sums[0, r])
                if terms > 1:
                    energy[r, 1] = 2 * second_magnitude * sums[2, r]
            exchange(energy, steps, copies, before + done, number, key, rng_rounds,
                     place[k], attempts[k], accepts[k], trips[k], last_end[k])  # fmt: skip
            lay_tables(place[k], used, certain, limits, always[k], planes[k], thresholds[k])
            now += np.uint64(sweeps * colours)
