"""Packed words of every (sample, block) on the CPU, and the threads that work on them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import numpy.typing as npt

from spinsim.engine.dynamics import Dynamics, fill_start
from spinsim.engine.moves.resample import Moves, copy_replicas
from spinsim.engine.protocols import KeptSpins, Spins, room_like
from spinsim.machine.threads import Threads
from spinsim.packing import Bits

Words = npt.NDArray[np.uint64]
SweepPart = Callable[[int, int, tuple[int, int], int, int, int], None]
"""Sweeps so many times, from a half-sweep on, in colours from the first to before the second, one of the parts that
share the block of a sample: (count, half_sweep, colours, part, sample, block)."""


class Blocks:
    """The state of a packed engine: a task for each (sample, block), or several that share its sites.

    Args:
        shape: Of the state, uint64 (samples, blocks, ..., 2).
        large: True if a half-sweep of one block is worth starting threads for.
        read: Finds the configuration of a replica in the words of a sample.
        read_all: Finds those of all replicas there as bits, if that is faster than one by one.
        numbers: In which a block's words are cut into equal parts, each of which begins with the group of a number.

    Attributes:
        total: Words of 128 spins of all samples.
        parts: How many threads share a block in each half-sweep.
    """

    def __init__(
        self, shape: tuple[int, ...], lanes: Words, dynamics: Dynamics, threads: Threads, large: bool,
        read: Callable[[Words, int], npt.NDArray[np.int8]], read_all: Callable[[Words], Bits] | None = None,
        numbers: Sequence[int] = (0,),
    ) -> None:  # fmt: skip
        self.state = np.empty(shape, np.uint64)
        self.count, self.total, self.nbytes = shape[0] * shape[1], self.state.size // 2, self.state.nbytes
        self.parts = max(1, threads.count // self.count) if large else 1
        self._threads, self._read, self._read_all = threads, read, read_all

        def start(_: int, sample: int, block: int) -> None:
            words = self.state[sample, block].reshape(len(numbers), -1, 2)
            for first, part in zip(numbers, words, strict=True):
                fill_start(part, lanes[block], dynamics, sample, block, first)

        self.each(start)

    def each(self, task: Callable[[int, int, int], None], parts: int = 1, times: int | None = None) -> None:
        """Run ``task(part, sample, block)`` for all of them; ``times`` is how often a task visits its words."""
        samples, blocks = self.state.shape[:2]
        if samples * blocks * parts == 1:
            task(0, 0, 0)
            return
        tasks = (partial(task, p, s, b) for s in range(samples) for b in range(blocks) for p in range(parts))
        self._threads.run(tasks, None if times is None else times * self.total)

    def sweep(
        self, sweep_part: SweepPart, count: int, half_sweep: int, colours: int,
        prepare: Callable[[int], None] | None = None,
    ) -> None:  # fmt: skip
        """Sweep all blocks ``count`` times from a half-sweep on, with threads that meet after each where they share.

        ``prepare`` is called before each half-sweep, with its colour.
        """
        if self.parts == 1 and prepare is None:
            self.each(partial(sweep_part, count, half_sweep, (0, colours)), times=count)
            return
        for each in range(half_sweep, half_sweep + count * colours):
            colour = each % colours
            if prepare is not None:
                prepare(colour)
            self.each(partial(sweep_part, 1, each, (colour, colour + 1)), self.parts)

    def words_of(self, samples: slice) -> Words:
        return np.asarray(self.state[samples])

    def words(self) -> Words:
        return self.state.copy()

    def set_words(self, words: Words) -> None:
        self.state[:] = words

    def copy(self, moves: Moves) -> None:
        copy_replicas(self.state, moves, self._threads)

    def spins(self, sample: int, replica: int) -> npt.NDArray[np.int8]:
        return self._read(self.state[sample], replica)

    def keep(self) -> tuple[Callable[[slice], None], Spins]:
        (keep, copy), read_all = room_like(self.state), self._read_all
        bits = None if read_all is None else lambda sample: read_all(copy[sample])
        return keep, KeptSpins(lambda sample, replica: self._read(copy[sample], replica), bits)
