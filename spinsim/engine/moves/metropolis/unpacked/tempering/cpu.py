"""Many rounds of parallel tempering of one unpacked sample in one call, as rounds of small models are short."""

from __future__ import annotations

import numpy as np

from spinsim import rng
from spinsim.engine.layouts.unpacked.cpu import WORDS, total_energies
from spinsim.engine.moves.exchange.cpu import exchange
from spinsim.engine.moves.metropolis.unpacked.cpu_sweep import sweep_general
from spinsim.engine.moves.metropolis.unpacked.cpu_sweep_terms import sweep_general_terms
from spinsim.machine.compiled import kernel
from spinsim.packing import LANES


@kernel
def temper_unpacked(  # type: ignore[no-untyped-def]
    chunks, size, bonds, plan, couplings, fields, double_beta, ladder, exchanged, zero_acceptance, sample, key,
    rng_rounds, half_sweep, times,
):  # fmt: skip
    """The same of unpacked spins.

    Args:
        chunks: int8, the arrays (sites, 4 * calls) of ``sweep_general`` one after the other, changed in place.
        size: Sites, replicas of a chunk but the last.
        bonds: Edges, those of term 0 first, how many these are, and couplings (bonds,) and fields (sites,) in quanta.
        plan: ``UnpackedPlan``'s order, colour_start, start, middle, neighbour.
        couplings: A row of its couplings.
        fields: A row of its fields.
        double_beta: Twice the inverse temperatures of 1 or 2 terms times the quantum, (terms, temperatures).
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
    edges, of_first, bond_couplings, site_fields = bonds
    order, colour_start, start, middle, near = plan
    steps, copies = ladder
    place, attempts, accepts, trips, last_end = exchanged
    before, rounds, sweeps = times
    replicas, terms = place.size, double_beta.shape[0]
    for done in range(rounds):
        energy = np.zeros((replicas, terms), np.int64)
        for first in range(0, replicas, chunk):
            calls = (min(chunk, replicas - first) + WORDS - 1) // WORDS
            width = WORDS * calls
            spins = chunks[first * sites : (first + width) * sites].reshape((sites, width))
            beta = np.empty((terms, width))
            for position in range(width):
                at = place[min(first + position % calls * WORDS + position // calls, replicas - 1)]
                for term in range(terms):
                    beta[term, position] = double_beta[term, at]
            block = rng.counter_block(np.uint64(sample), np.uint64(first // LANES))
            call = np.uint64(first % LANES // WORDS)
            if terms == 1:
                sweep_general(spins, order, colour_start, start, near, couplings, fields, beta[0], zero_acceptance,
                              block, call, key, rng_rounds, half_sweep, sweeps)  # fmt: skip
            else:
                sweep_general_terms(spins, order, colour_start, start, middle, near, couplings, fields, beta,
                                    zero_acceptance, block, call, key, rng_rounds, half_sweep, sweeps)  # fmt: skip
            found, magnetization = np.zeros((terms, width), np.int64), np.zeros(width, np.int64)
            total_energies(spins, edges, of_first if terms > 1 else edges.shape[0], bond_couplings, site_fields, found,
                           magnetization)  # fmt: skip
            for r in range(first, min(first + width, replicas)):
                for term in range(terms):
                    energy[r, term] = found[term, (r - first) % WORDS * calls + (r - first) // WORDS]
        exchange(
            energy, steps, copies, before + done, sample, key, rng_rounds, place, attempts, accepts, trips, last_end
        )
        half_sweep += np.uint64(sweeps * (colour_start.size - 1))
