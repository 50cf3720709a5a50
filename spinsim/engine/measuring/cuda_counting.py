"""Counting the present state on a GPU: sums of every replica, from which energies and magnetisations follow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from spinsim.cuda.totals import Totals, TotalsInTurn
from spinsim.engine.measuring.sums import Observables
from spinsim.engine.protocols import Counts


class CudaCounting:
    """The sums of one engine's present state.

    A kernel that makes many rounds may leave the sums of the state in which it ends; they are taken instead of
    counting anew, as long as no sweep has followed.

    Args:
        stream: Of the kernels; the present one of CuPy.
        observables: What follows from the sums.
        shape: Of the sums, (sums, samples, ...), the replicas in order.
        add: Queues adding the present sums to those at addresses, in the order of ``observables.sums``.
    """

    def __init__(
        self,
        stream: Any,
        observables: Observables,
        shape: tuple[int, ...],
        replicas: int,
        add: Callable[[tuple[int, ...]], None],
    ) -> None:
        self.observables, self.shape, self.add, self._replicas = observables, shape, add, replicas
        self._totals = TotalsInTurn(stream)
        self._left: Totals | None = None
        self._left_at = -1

    @property
    def stride(self) -> int:
        """Distance of one sample's sums from the next sample's."""
        return int(np.prod(self.shape[2:]))

    def room(self) -> tuple[int, ...]:
        """Addresses where a kernel may leave the sums of the state in which it ends."""
        if self._left is None:
            self._left = self._totals.reserve(self.shape)
        return self._left.parts

    def left_at(self, half_sweep: int) -> None:
        """A kernel that ends after so many half-sweeps leaves its sums."""
        self._left_at = half_sweep

    def forget(self) -> None:
        """The state is another one: what was left does not count any more."""
        self._left_at = -1

    def take(self, half_sweep: int) -> Totals:
        """The sums of the state after so many half-sweeps, which is the present one."""
        if self._left is not None and self._left_at == half_sweep:
            totals, self._left, self._left_at = self._left, None, -1
        else:
            totals = self._totals.reserve(self.shape)
            self.add(totals.parts)
        return totals

    def give_back(self, totals: Totals) -> None:
        """Take sums back that a kernel just launched has read and cleared."""
        self._totals.give_back(totals)

    def begin(self, half_sweep: int) -> Callable[[], Counts]:
        fetched, names = self._totals.fetch(self.take(half_sweep)), self.observables.sums

        def counts() -> Counts:
            sums = fetched().reshape(len(names), self.shape[1], -1)[..., : self._replicas]
            return self.observables.counts(dict(zip(names, sums, strict=True)))

        return counts
