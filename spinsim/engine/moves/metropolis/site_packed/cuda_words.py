"""Sweeps of site-packed lattices on a GPU by a thread for each word of 32 sites, where threads would be too few."""

from __future__ import annotations

from typing import Final

import numpy as np

from spinsim.cuda.device import cupy, multiprocessors
from spinsim.engine.moves.metropolis.site_packed.cuda_rows import Swept, launches

FILE: Final = "metropolis/site_packed_words.cu"
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
    """Sweeps of small lattices, one or several to a block."""

    def __init__(self, swept: Swept) -> None:
        samples, replicas, _, groups, _ = swept.shape
        words, lattices = WORDS * groups, samples * replicas
        together = max(1, SHARED_THREADS // words)
        self._stream, self._most, self._grid = swept.queue.stream, swept.most, (-(-lattices // together), 1, 1)
        self._threads = -(-min(lattices, together) * words // 32) * 32
        counts = {"replicas": np.uint32(replicas), "lattices": np.uint32(lattices)}
        self._launch = swept.ready(FILE, "sweep_words", **counts)

    def sweep(self, half_sweeps: int, half_sweep: int) -> None:
        for several, first in launches(half_sweeps, half_sweep, self._most):
            self._launch(self._stream, self._grid, self._threads, half_sweep=first, half_sweeps=several)


class SpreadSweeps:
    """Sweeps of few lattices by all of the GPU."""

    def __init__(self, swept: Swept) -> None:
        samples, replicas, colours, groups, _ = swept.shape
        words = WORDS * groups
        self._stream, self._most = swept.queue.stream, swept.most
        self._grid = -(-words // SPREAD_THREADS), replicas, samples
        self._date = 1
        dated = cupy.zeros((samples, replicas, colours, words), cupy.uint64)
        self._launch = swept.ready(FILE, "sweep_spread", dated=dated, date=np.uint32(0))

    def sweep(self, half_sweeps: int, half_sweep: int) -> None:
        for several, first in launches(half_sweeps, half_sweep, self._most):
            self._launch(
                self._stream, self._grid, SPREAD_THREADS, True, half_sweep=first, half_sweeps=several, date=self._date
            )
            self._date = (self._date + several + 1) % 2**32
