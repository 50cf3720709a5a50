"""What CPU engines share: they do at once what is asked of them."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable

from spinsim.engine.base import Counts


class CpuEngine(ABC):
    """The part of an ``Engine`` that follows from working synchronously."""

    device_name = "cpu"

    @abstractmethod
    def sweep(self, count: int) -> None:
        """Attempt every spin of every replica ``count`` times."""

    @abstractmethod
    def counts(self) -> Counts:
        """Energy and magnetisation of every replica."""

    def timed_sweep(self, count: int) -> float:
        """Sweep and return the seconds it took."""
        began = time.perf_counter()
        self.sweep(count)
        return time.perf_counter() - began

    def wait(self) -> None:  # noqa: B027  (it is what every CPU engine does)
        """Nothing to wait for: sweeps return when they are done."""

    def begin_counts(self) -> Callable[[], Counts]:
        """The present energies and magnetisations, taken at once."""
        counts = self.counts()
        return lambda: counts
