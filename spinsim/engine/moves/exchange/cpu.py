"""Parallel tempering on the CPU: the ladder of one engine's replicas and how far its exchange has come."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from spinsim import rng
from spinsim.engine.dynamics import Dynamics
from spinsim.engine.moves.exchange.cpu_exchange import exchange
from spinsim.engine.moves.exchange.ladder import Exchange, Ladder
from spinsim.engine.protocols import Counts
from spinsim.model.ising import Ising


class CpuTempering:
    """Exchanges of one engine's replicas, whatever its update.

    Args:
        ladder: Temperatures of each copy.
        model: What is simulated.
        dynamics: How replicas move.

    Attributes:
        ladder: As given.
        steps: ``Ladder.steps`` of the model, (temperatures - 1, terms).
        exchange: Where every replica is, and what has been tried.
        round: Rounds of exchanges done.
    """

    def __init__(self, ladder: Ladder, model: Ising, dynamics: Dynamics) -> None:
        self.ladder, self.steps = ladder, ladder.steps(model)
        self.exchange, self.round = ladder.begin(model.samples), 0
        self._key, self._dynamics = rng.split_seed(dynamics.seed), dynamics

    def attempt(self, counts: Counts) -> None:
        """Do one round of exchanges of all samples."""
        copies = self.ladder.copies
        energy = counts.energy[..., None] if self.ladder.beta.ndim == 1 else counts.by_term
        for k, row in enumerate(energy, self._dynamics.first_sample):
            state = self.of_sample(k - self._dynamics.first_sample)
            exchange(row, self.steps, copies, self.round, k, self._key, self._dynamics.rng_rounds, *state)
        self.round += 1

    def of_sample(self, sample: int) -> tuple[npt.NDArray[Any], ...]:
        """The arrays of ``exchange`` of one sample, which kernels change in place."""
        return tuple(array[sample] for array in self.exchange)

    def restore(self, exchange: Exchange, rounds: int) -> None:
        """Go on from a state after so many rounds."""
        self.exchange, self.round = exchange, rounds
