"""Sweeps of site-packed lattices on a GPU by a thread for each word of 32 sites, where threads would be too few."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from spinsim.cuda.compile import instance
from spinsim.cuda.device import cupy, multiprocessors
from spinsim.cuda.launch import Launch
from spinsim.engine.cuda_queue import Queue
from spinsim.engine.moves.metropolis.classes import Kind
from spinsim.engine.moves.metropolis.site_packed.cuda_rows import launches

WORDS: Final = 4  # of a group
WORD_THREADS: Final = 256  # of a block that has a lattice for itself, at most
SHARED_THREADS: Final = 128  # of one that has several
MOST_TOGETHER: Final = SHARED_THREADS // WORDS  # lattices of a block
SPREAD_THREADS: Final = 128  # of each of the blocks that share a lattice
SPREAD_BLOCKS: Final = 4  # of these on one multiprocessor


def fits_block(groups: int) -> bool:
    """Return True if a block has a thread for each word of a colour of a lattice."""
    return WORDS * groups <= WORD_THREADS


def fits_gpu(groups: int, lattices: int, device: int) -> bool:
    """Return True if a GPU has a resident thread for each word of a colour of all lattices."""
    blocks = lattices * -(-WORDS * groups // SPREAD_THREADS)
    return blocks <= SPREAD_BLOCKS * multiprocessors(device)


class WordSweeps:
    """Sweeps of small lattices, one or several to a block; arguments are those of ``RowSweeps``."""

    def __init__(
        self, queue: Queue, arguments: dict[str, Any], shape: tuple[int, ...], rule: tuple[int, bool, bool], kind: Kind,
        most: int,
    ) -> None:  # fmt: skip
        samples, replicas, _, groups, _ = shape
        words, lattices = WORDS * groups, samples * replicas
        together = max(1, SHARED_THREADS // words)
        self._stream, self._most, self._grid = queue.stream, most, (-(-lattices // together), 1, 1)
        self._threads = -(-min(lattices, together) * words // 32) * 32
        expression = instance("sweep_words", *rule, int(kind), queue.rng_rounds)
        self._launch = Launch(queue.device, "metropolis/site_packed_words.cu", expression, {
            **arguments, "replicas": np.uint32(replicas), "lattices": np.uint32(lattices),
            "first_sample": queue.first_sample, "first_replica": queue.first_block, "half_sweep": np.uint64(0),
            "half_sweeps": np.uint32(1), "key": queue.keys,
        })  # fmt: skip

    def sweep(self, half_sweeps: int, half_sweep: int) -> None:
        for several, first in launches(half_sweeps, half_sweep, self._most):
            self._launch(self._stream, self._grid, self._threads, half_sweep=first, half_sweeps=several)


class SpreadSweeps:
    """Sweeps of few lattices by all of the GPU; arguments are those of ``RowSweeps``."""

    def __init__(
        self, queue: Queue, arguments: dict[str, Any], shape: tuple[int, ...], rule: tuple[int, bool, bool], kind: Kind,
        most: int,
    ) -> None:  # fmt: skip
        samples, replicas, colours, groups, _ = shape
        words = WORDS * groups
        self._stream, self._most = queue.stream, most
        self._grid = -(-words // SPREAD_THREADS), replicas, samples
        self._date = 1
        expression = instance("sweep_spread", *rule, int(kind), queue.rng_rounds)
        self._launch = Launch(queue.device, "metropolis/site_packed_words.cu", expression, {
            **arguments, "dated": cupy.zeros((samples, replicas, colours, words), cupy.uint64),
            "first_sample": queue.first_sample, "first_replica": queue.first_block, "half_sweep": np.uint64(0),
            "half_sweeps": np.uint32(1), "date": np.uint32(0), "key": queue.keys,
        })  # fmt: skip

    def sweep(self, half_sweeps: int, half_sweep: int) -> None:
        for several, first in launches(half_sweeps, half_sweep, self._most):
            self._launch(
                self._stream, self._grid, SPREAD_THREADS, True, half_sweep=first, half_sweeps=several, date=self._date
            )
            self._date = (self._date + several + 1) % 2**32
