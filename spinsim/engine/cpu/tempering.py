"""Many rounds of parallel tempering of one sample in one call, as rounds of small lattices are short."""

from __future__ import annotations

import numpy as np

from spinsim import rng
from spinsim.compiled import kernel
from spinsim.engine.cpu.counters import count_unsatisfied, count_up, total_energies
from spinsim.engine.cpu.exchange import exchange, lay_tables
from spinsim.engine.cpu.general import sweep_general
from spinsim.engine.cpu.packed import sweep_packed
from spinsim.engine.cpu.packed_wide import sweep_packed_wide
from spinsim.engine.plans import WORDS
from spinsim.packing import LANES


@kernel
def temper_packed(  # type: ignore[no-untyped-def]
    state, bonds, batches, signs, lanes, tables, ladder, exchanged, shape, sample, key, rng_rounds, half_sweep, times
):
    """Sweep all blocks of a sample, exchange temperatures, and so on.

    Args:
        state: uint64 (blocks, sites, 2), changed in place.
        bonds: Edges, negative couplings (bonds,), and |J| and h in quanta.
        batches: ``Batches``.
        signs: uint8, a row of ``Batches.signs``.
        lanes: uint64 (blocks, 2), lanes in use.
        tables: ``Tables`` of the sample: always, planes, thresholds; changed in place.
        ladder: ``Ladder.steps``, copies, and ``PackedPlan.limits``.
        exchanged: A row of ``Exchange``, changed in place.
        shape: Bits of a class, bits of the count, whether there is a field, colours.
        sample: Its number.
        key: The two key words.
        rng_rounds: Philox rounds, 7 or 10.
        half_sweep: Half-sweeps done so far.
        times: Rounds done so far, rounds to do, sweeps of each.
    """
    edges, negative, magnitude, field = bonds
    always, planes, thresholds = tables
    steps, copies, certain, limits = ladder
    place, attempts, accepts, trips, last_end = exchanged
    class_bits, count_bits, has_field, colours = shape
    first, rounds, sweeps = times
    blocks, sites = state.shape[0], state.shape[1]
    up, unsatisfied = np.empty(blocks * LANES, np.int64), np.empty(blocks * LANES, np.int64)
    share = (0, colours, 0, 1)
    for done in range(rounds):
        up[:], unsatisfied[:] = 0, 0
        for b in range(blocks):
            block = rng.counter_block(np.uint64(sample), np.uint64(b))
            if class_bits == 2:
                sweep_packed(state[b], batches, signs, always[b], planes[b], thresholds[b], lanes[b], block, key,
                             rng_rounds, half_sweep, sweeps, share)  # fmt: skip
            else:
                sweep_packed_wide(state[b], batches, signs, always[b], planes[b], thresholds[b], lanes[b], block, key,
                                  rng_rounds, half_sweep, sweeps, share, count_bits, has_field)  # fmt: skip
            if field != 0:
                count_up(state[b], up[b * LANES : (b + 1) * LANES])
            count_unsatisfied(state[b], edges, negative, unsatisfied[b * LANES : (b + 1) * LANES])
        energy = -magnitude * (edges.shape[0] - 2 * unsatisfied) - field * (2 * up - sites)
        exchange(
            energy, steps, copies, first + done, sample, key, rng_rounds, place, attempts, accepts, trips, last_end
        )
        lay_tables(place, certain, limits, always, planes, thresholds)
        half_sweep += np.uint64(sweeps * colours)


@kernel
def temper_unpacked(  # type: ignore[no-untyped-def]
    chunks, size, bonds, plan, couplings, fields, double_beta, ladder, exchanged, zero_acceptance, sample, key,
    rng_rounds, half_sweep, times,
):  # fmt: skip
    """The same of unpacked spins.

    Args:
        chunks: int8, the arrays (sites, 4 * calls) of ``sweep_general`` one after the other, changed in place.
        size: Sites, replicas of a chunk but the last.
        bonds: Edges, and couplings (bonds,) and fields (sites,) in quanta.
        plan: ``GeneralPlan``'s order, colour_start, start, neighbour.
        couplings: A row of its couplings.
        fields: A row of its fields.
        double_beta: Twice the inverse temperature times the quantum, of every temperature.
        ladder: ``Ladder.steps``, copies.
        exchanged: A row of ``Exchange``, changed in place.
        zero_acceptance: Probability of a flip that costs nothing.
        sample: Its number.
        key: The two key words.
        rng_rounds: Philox rounds, 7 or 10.
        half_sweep: Half-sweeps done so far.
        times: Rounds done so far, rounds to do, sweeps of each.
    """
    sites, chunk = size
    edges, bond_couplings, site_fields = bonds
    order, colour_start, start, near = plan
    steps, copies = ladder
    place, attempts, accepts, trips, last_end = exchanged
    before, rounds, sweeps = times
    replicas = place.size
    energy = np.empty(replicas, np.int64)
    for done in range(rounds):
        for first in range(0, replicas, chunk):
            calls = (min(chunk, replicas - first) + WORDS - 1) // WORDS
            width = WORDS * calls
            spins = chunks[first * sites : (first + width) * sites].reshape((sites, width))
            beta = np.empty(width)
            for position in range(width):
                beta[position] = double_beta[
                    place[min(first + position % calls * WORDS + position // calls, replicas - 1)]
                ]
            block = rng.counter_block(np.uint64(sample), np.uint64(first // LANES))
            sweep_general(spins, order, colour_start, start, near, couplings, fields, beta, zero_acceptance, block,
                          np.uint64(first % LANES // WORDS), key, rng_rounds, half_sweep, sweeps)  # fmt: skip
            found, magnetization = np.zeros(width, np.int64), np.zeros(width, np.int64)
            total_energies(spins, edges, bond_couplings, site_fields, found, magnetization)
            for r in range(first, min(first + width, replicas)):
                energy[r] = found[(r - first) % WORDS * calls + (r - first) // WORDS]
        exchange(
            energy, steps, copies, before + done, sample, key, rng_rounds, place, attempts, accepts, trips, last_end
        )
        half_sweep += np.uint64(sweeps * (colour_start.size - 1))
