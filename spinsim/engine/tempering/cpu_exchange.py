"""Exchanges of temperatures of one sample on the CPU."""

from __future__ import annotations

import numpy as np

from spinsim import rng
from spinsim.acceptance import LARGEST_EXPONENT, exp_reduced
from spinsim.engine.tempering.ladder import FROM_COLD, FROM_HOT
from spinsim.machine.compiled import kernel

SWAP = np.uint64(rng.Stream.SWAP)
SHIFT = np.uint64(32)
TWO_64 = 2.0**64
ZERO, ONE = np.uint64(0), np.uint64(1)


@kernel
def exchange(energy, steps, copies, round_, sample, key, rounds, place, attempts, accepts, trips, last_end):  # type: ignore[no-untyped-def]
    """One round of a sample, from ``energy`` (replicas, terms) in quanta, ``steps`` (pairs, terms) and ``Exchange``."""
    k0, k1 = key
    pairs = steps.shape[0]
    temperatures = pairs + 1
    word1 = rng.counter_block(np.uint64(sample), np.uint64(0))
    word3 = rng.counter_plane(np.uint64(round_), SWAP, np.uint64(0))
    holder = np.empty(temperatures, np.int64)
    for copy in range(copies):
        first = copy * temperatures
        for r in range(first, first + temperatures):
            holder[place[r]] = r
        for t in range(round_ % 2, pairs, 2):
            cold, hot = holder[t], holder[t + 1]
            attempts[t] += 1
            cost = 0.0
            for term in range(steps.shape[1]):
                cost += steps[t, term] * np.float64(energy[hot, term] - energy[cold, term])
            if cost > 0.0:
                group = np.uint64(copy * pairs + t)
                x0, x1, _, _ = rng.philox(group, word1, rng.low32(np.uint64(round_)), word3, k0, k1, rounds)
                uniform = (rng.low32(x0) << SHIFT) | rng.low32(x1)
                mantissa, power = exp_reduced(-min(cost, LARGEST_EXPONENT))
                probability = np.ldexp(mantissa, np.int64(power))
                if probability < 1.0 and uniform >= np.uint64(probability * TWO_64):
                    continue
            accepts[t] += 1
            place[cold], place[hot] = t + 1, t
        for r in range(first, first + temperatures):
            if place[r] == temperatures - 1:
                trips[r] += last_end[r] == FROM_COLD
                last_end[r] = FROM_HOT
            elif place[r] == 0 and last_end[r] == FROM_HOT:
                last_end[r] = FROM_COLD
