"""What CPU engines share: they do at once what is asked of them."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

from spinsim import rng
from spinsim.engine.base import Counts, Dynamics
from spinsim.engine.cpu.start import fill_start
from spinsim.engine.cpu.threads import Threads
from spinsim.errors import InputError

AnyTables = TypeVar("AnyTables")


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


class BlockEngine(CpuEngine, Generic[AnyTables]):
    """A ``CpuEngine`` of packed words: a task for each (sample, block), or several that share its sites.

    Args:
        shape: Of the state, uint64 (samples, blocks, ..., 2).
        lanes: Lanes in use, uint64 (blocks, 2).
        dynamics: How replicas move.
        threads: CPU threads, None for all.
        large: Whether a half-sweep of one block is worth starting threads for.
    """

    colours: int

    def __init__(
        self,
        shape: tuple[int, ...],
        lanes: npt.NDArray[np.uint64],
        dynamics: Dynamics,
        threads: int | None,
        large: bool,
    ) -> None:
        self.dynamics, self._lanes = dynamics, lanes
        self.half_sweep = 0
        self.state = np.empty(shape, np.uint64)
        self._threads = Threads(threads)
        self._parts = max(1, self._threads.count // (shape[0] * shape[1])) if large else 1
        self._tables: AnyTables | None = None
        self._each(self._start)

    def _each(self, task: Callable[[int, int, int], None], parts: int = 1) -> None:
        """Run ``task(part, sample, block)`` for all of them."""
        samples, blocks = self.state.shape[:2]
        self._threads.run(partial(task, p, s, b) for s in range(samples) for b in range(blocks) for p in range(parts))

    def _start(self, _: int, sample: int, block: int) -> None:
        counter, d = rng.counter_block(np.uint64(sample), np.uint64(block)), self.dynamics
        words = self.state[sample, block].reshape(-1, 2)
        fill_start(words, self._lanes[block], d.start, d.seed, counter, d.rng_rounds)

    def sweep(self, count: int) -> None:
        """Attempt every spin of every replica ``count`` times."""
        if self._tables is None:
            raise InputError("no temperature is set: call set_beta before sweep")
        end = self.half_sweep + count * self.colours
        if self._parts == 1:
            self._each(partial(self._sweep_part, self._tables, count, self.half_sweep, (0, self.colours)))
        else:
            for half_sweep in range(self.half_sweep, end):
                colour = half_sweep % self.colours
                task = partial(self._sweep_part, self._tables, 1, half_sweep, (colour, colour + 1))
                self._each(task, self._parts)
        self.half_sweep = end

    @abstractmethod
    def _sweep_part(
        self,
        tables: AnyTables,
        count: int,
        half_sweep: int,
        colours: tuple[int, int],
        part: int,
        sample: int,
        block: int,
    ) -> None:
        """Sweep ``count`` times from ``half_sweep`` on, in some colours, one of the parts that share a block."""
