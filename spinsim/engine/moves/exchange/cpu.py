"""Parallel tempering on the CPU: rounds of exchanges of each sample, and how far a ladder has come."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from spinsim import rng
from spinsim.acceptance import LARGEST_EXPONENT, exp_reduced
from spinsim.engine.dynamics import Dynamics
from spinsim.engine.moves.exchange.ladder import FROM_COLD, FROM_HOT, Ladder
from spinsim.engine.protocols import Counts
from spinsim.machine.compiled import kernel, part
from spinsim.model.ising import Ising

SWAP = np.uint64(rng.Stream.SWAP)
SHIFT = np.uint64(32)
TWO_64 = 2.0**64
Times = tuple[int, int, int]  # rounds done so far, rounds to do, sweeps of each
HALVES = 0.5 ** np.arange(128.0)  # the powers of two that a probability can have, exactly


@part
def uniforms(group, round_, sample, key, rounds, random):  # type: ignore[no-untyped-def]
    """The uniforms of pairs of these numbers."""
    k0, k1 = key
    word1 = rng.counter_block(np.uint64(sample), np.uint64(0))
    word2, word3 = rng.low32(np.uint64(round_)), rng.counter_plane(np.uint64(round_), SWAP, np.uint64(0))
    for i in range(group.size):
        x0, x1, _, _ = rng.philox(np.uint64(group[i]), word1, word2, word3, k0, k1, rounds)
        random[i] = (rng.low32(x0) << SHIFT) | rng.low32(x1)


@part
def decide(cost, random, accepted):  # type: ignore[no-untyped-def]
    """1 where a uniform lies below exp(-cost) or nothing is lost, else 0."""
    for i in range(cost.size):
        mantissa, power = exp_reduced(-min(max(cost[i], 0.0), LARGEST_EXPONENT))
        probability = mantissa * HALVES[np.int64(-power)]
        accepted[i] = np.int64((probability >= 1.0) | (random[i] < np.uint64(probability * TWO_64)))


@kernel
def exchange(energy, steps, copies, round_, sample, key, rounds, place, attempts, accepts, trips, last_end):  # type: ignore[no-untyped-def]
    """One round of a sample, from ``energy`` (replicas, terms) in quanta, ``steps`` (pairs, terms) and ``Exchange``.

    All copies are decided in one loop, and exchanged without branches, whose outcome nobody could predict.
    """
    pairs, even = steps.shape[0], round_ % 2
    temperatures = pairs + 1
    tried = (temperatures - even) // 2
    holder, group = np.empty(copies * temperatures, np.int64), np.empty(copies * tried, np.int64)
    cost, random = np.zeros(copies * tried), np.empty(copies * tried, np.uint64)
    accepted = np.empty(copies * tried, np.int64)
    for copy in range(copies):
        first, before = copy * temperatures, copy * tried
        holds = holder[first : first + temperatures]
        for r in range(first, first + temperatures):
            holds[place[r]] = r
        for i in range(tried):
            group[before + i] = copy * pairs + even + 2 * i
        for term in range(steps.shape[1]):
            for i in range(tried):
                t = even + 2 * i
                cost[before + i] += steps[t, term] * np.float64(energy[holds[t + 1], term] - energy[holds[t], term])
    uniforms(group, round_, sample, key, rounds, random)
    decide(cost, random, accepted)
    for copy in range(copies):
        holds = holder[copy * temperatures : (copy + 1) * temperatures]
        exchanged = accepted[copy * tried : (copy + 1) * tried]
        for i in range(tried):
            t = even + 2 * i
            cold, hot = holds[t], holds[t + 1]
            swapped = (cold ^ hot) & -exchanged[i]
            holds[t], holds[t + 1] = cold ^ swapped, hot ^ swapped
            attempts[t] += 1
            accepts[t] += exchanged[i]
        for t in range(temperatures):
            place[holds[t]] = t
        cold, hot = holds[0], holds[pairs]
        trips[hot] += last_end[hot] == FROM_COLD
        last_end[hot] = FROM_HOT
        if cold != hot and last_end[cold] == FROM_HOT:
            last_end[cold] = FROM_COLD


class CpuTempering:
    """Exchanges of one engine's replicas, whatever its update."""

    def __init__(self, ladder: Ladder, model: Ising, dynamics: Dynamics) -> None:
        self.ladder, self.steps = ladder, ladder.steps(model)
        self.exchange, self.round = ladder.begin(model.samples), 0
        self._key, self._dynamics = rng.split_seed(dynamics.seed), dynamics

    def attempt(self, counts: Counts) -> None:
        copies = self.ladder.copies
        energy = counts.energy[..., None] if self.ladder.beta.ndim == 1 else counts.by_term
        for k, row in enumerate(energy, self._dynamics.first_sample):
            state = self.of_sample(k - self._dynamics.first_sample)
            exchange(row, self.steps, copies, self.round, k, self._key, self._dynamics.rng_rounds, *state)
        self.round += 1

    def of_sample(self, sample: int) -> tuple[npt.NDArray[Any], ...]:
        """The arrays of ``exchange`` of one sample, which kernels change in place."""
        return tuple(array[sample] for array in self.exchange)
