"""Exchanges of temperatures of one sample on the CPU."""

from __future__ import annotations

import numpy as np

from spinsim import rng
from spinsim.acceptance import LARGEST_EXPONENT, exp_reduced
from spinsim.engine.tempering.ladder import FROM_COLD, FROM_HOT
from spinsim.machine.compiled import kernel, part

SWAP = np.uint64(rng.Stream.SWAP)
SHIFT = np.uint64(32)
TWO_64 = 2.0**64
HALVES = 0.5 ** np.arange(128.0)  # the powers of two that a probability can have, exactly


@part
def uniforms(first, round_, sample, key, rounds, random):  # type: ignore[no-untyped-def]
    """The uniforms of ``random.size`` pairs from number ``first`` on, every other one."""
    k0, k1 = key
    word1 = rng.counter_block(np.uint64(sample), np.uint64(0))
    word2, word3 = rng.low32(np.uint64(round_)), rng.counter_plane(np.uint64(round_), SWAP, np.uint64(0))
    for i in range(random.size):
        x0, x1, _, _ = rng.philox(np.uint64(first + 2 * i), word1, word2, word3, k0, k1, rounds)
        random[i] = (rng.low32(x0) << SHIFT) | rng.low32(x1)


@part
def probabilities(cost):  # type: ignore[no-untyped-def]
    """Replace costs by exp(-cost), 1 where nothing is lost."""
    for i in range(cost.size):
        mantissa, power = exp_reduced(-min(max(cost[i], 0.0), LARGEST_EXPONENT))
        cost[i] = mantissa * HALVES[np.int64(-power)]


@kernel
def exchange(energy, steps, copies, round_, sample, key, rounds, place, attempts, accepts, trips, last_end):  # type: ignore[no-untyped-def]
    """One round of a sample, from ``energy`` (replicas, terms) in quanta, ``steps`` (pairs, terms) and ``Exchange``."""
    pairs = steps.shape[0]
    temperatures, even = pairs + 1, round_ % 2
    tried = (temperatures - even) // 2
    holder = np.empty(temperatures, np.int64)
    cost, random = np.zeros(tried), np.empty(tried, np.uint64)
    for copy in range(copies):
        first = copy * temperatures
        for r in range(first, first + temperatures):
            holder[place[r]] = r
        cost[:] = 0.0
        for i in range(tried):
            t = even + 2 * i
            cold, hot = holder[t], holder[t + 1]
            for term in range(steps.shape[1]):
                cost[i] += steps[t, term] * np.float64(energy[hot, term] - energy[cold, term])
        uniforms(copy * pairs + even, round_, sample, key, rounds, random)
        probabilities(cost)
        for i in range(tried):
            t = even + 2 * i
            attempts[t] += 1
            if cost[i] < 1.0 and random[i] >= np.uint64(cost[i] * TWO_64):
                continue
            cold, hot = holder[t], holder[t + 1]
            accepts[t] += 1
            place[cold], place[hot] = t + 1, t
            holder[t], holder[t + 1] = hot, cold
        cold, hot = holder[0], holder[pairs]
        trips[hot] += last_end[hot] == FROM_COLD
        last_end[hot] = FROM_HOT
        if cold != hot and last_end[cold] == FROM_HOT:
            last_end[cold] = FROM_COLD
