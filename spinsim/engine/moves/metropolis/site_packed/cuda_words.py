"""Sweeps of site-packed lattices on a GPU with a thread for each word of 32 sites, if there are too few groups."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from spinsim.cuda.device import cupy
from spinsim.cuda.launch import ADDRESS, SIZE, record, struct_type
from spinsim.engine.cuda import LaunchedRounds
from spinsim.engine.measuring.cuda import NOTHING
from spinsim.engine.measuring.cuda_comparison import MOST_AT_ONCE
from spinsim.engine.measuring.sums import CudaCounting
from spinsim.engine.moves.exchange_cuda import CudaTempering
from spinsim.engine.moves.metropolis.cuda_spread import SPREAD_THREADS, WORDS, DatedWords, blocks_of_lattice
from spinsim.engine.moves.metropolis.replica_packed.cuda_lattices import LANE_SUMS, NOTES
from spinsim.engine.moves.metropolis.site_packed.cuda_rows import Swept, launches

FILE: Final = "metropolis/site_packed_words.cu"
MEASURING: Final = "tempering/measure_words.cu"
SCRATCH: Final = struct_type(words=ADDRESS, most=SIZE)
WORD_THREADS: Final = 256  # most threads of a block with one lattice
SHARED_THREADS: Final = 128  # threads of a block with several lattices
MOST_TOGETHER: Final = SHARED_THREADS // WORDS  # most lattices of a block


def fits_block(groups: int) -> bool:
    """Return True if a block has a thread for each word of a colour of a lattice."""
    return WORDS * groups <= WORD_THREADS


def blocks_of_several(swept: Swept) -> tuple[tuple[int, int, int], int]:
    """Grid, and threads of a block, for blocks with one small lattice or several."""
    samples, replicas, _, groups, _ = swept.shape
    words, lattices = WORDS * groups, samples * replicas
    together = max(1, SHARED_THREADS // words)
    return (-(-lattices // together), 1, 1), -(-min(lattices, together) * words // 32) * 32


def blocks_of_one(swept: Swept) -> tuple[int, int, int]:
    """Grid of blocks that share a lattice."""
    samples, replicas, _, groups, _ = swept.shape
    return blocks_of_lattice(groups), replicas, samples


class WordSweeps:
    """Sweeps of small lattices, one or several to a block."""

    def __init__(self, swept: Swept) -> None:
        samples, replicas = swept.shape[:2]
        lattices = samples * replicas
        self._stream, self._most = swept.queue.stream, swept.most
        self._grid, self._threads = blocks_of_several(swept)
        counts = {"replicas": np.uint32(replicas), "lattices": np.uint32(lattices)}
        self._launch = swept.ready(FILE, "sweep_words", **counts)

    def sweep(self, half_sweeps: int, half_sweep: int) -> None:
        for several, first in launches(half_sweeps, half_sweep, self._most):
            self._launch(self._stream, self._grid, self._threads, half_sweep=first, half_sweeps=several)


class SpreadSweeps:
    """Sweeps of few lattices by the whole GPU."""

    def __init__(self, swept: Swept) -> None:
        self._stream, self._most, self._grid = swept.queue.stream, swept.most, blocks_of_one(swept)
        self._dated = DatedWords((*swept.shape[:-1], WORDS))
        self._launch = swept.ready(FILE, "sweep_spread", dated=self._dated.array, date=np.uint32(0))

    def sweep(self, half_sweeps: int, half_sweep: int) -> None:
        for several, first in launches(half_sweeps, half_sweep, self._most):
            date = self._dated.advance(several)
            self._launch(
                self._stream, self._grid, SPREAD_THREADS, True, half_sweep=first, half_sweeps=several, date=date
            )


class MeasuredWords(LaunchedRounds):
    """Rounds of a single replica per sample, with measurements in between; one temperature needs no exchange."""

    counts_in_sweeps = True

    def __init__(self, swept: Swept, tempering: CudaTempering, counting: CudaCounting) -> None:
        super().__init__(swept.queue, 2, tempering, None, counting, max(1, swept.most // 2))
        self._is_small, samples = fits_block(swept.shape[3]), swept.shape[0]
        given = {
            "exchange": tempering.record, "sums": np.zeros((), LANE_SUMS), "first_half_sweep": np.uint64(0),
            "sweeps": np.uint32(0), "rounds": np.uint32(0), "notes": np.zeros((), NOTES), "measured": NOTHING,
        }  # fmt: skip
        if self._is_small:
            self._grid, self._threads = blocks_of_several(swept)
            self._launch = swept.ready_for(MEASURING, "measure_words", samples=np.uint32(samples), **given)
            return
        self._grid, self._threads = blocks_of_one(swept), SPREAD_THREADS
        self._dated, numbers = DatedWords((*swept.shape[:-1], WORDS)), MOST_AT_ONCE + 1
        self._added = cupy.zeros((samples, numbers, 2), cupy.uint64)  # the record holds only addresses
        scratch = record(SCRATCH, words=self._added, most=numbers)
        self._launch = swept.ready_for(
            MEASURING, "measure_spread", dated=self._dated.array, date=np.uint32(0), scratch=scratch, **given
        )

    def _start(self, count: int, half_sweeps: int, **arguments: Any) -> None:
        del arguments["first_round"]  # only used by exchanges
        if not self._is_small:
            arguments["date"] = self._dated.advance(half_sweeps)
        self._launch(self._queue.stream, self._grid, self._threads, not self._is_small, **arguments)
