"""Lattices spread over a GPU: one thread for each word of 32 lanes of a colour, all resident at once."""

from __future__ import annotations

from typing import Any, Final

from spinsim.cuda.device import cupy, multiprocessors

WORDS: Final = 4  # words of a group of 128 lanes, one thread each
SPREAD_THREADS: Final = 128  # threads of each block that shares a lattice
SPREAD_BLOCKS: Final = 4  # such blocks on one multiprocessor
MOST_BLOCKS: Final = 2**10 - 1  # most blocks of a lattice, because sums count them in ten bits


def blocks_of_lattice(groups: int) -> int:
    """Number of blocks that share a lattice with ``groups`` groups per colour."""
    return -(-WORDS * groups // SPREAD_THREADS)


def fits_gpu(groups: int, lattices: int, device: int) -> bool:
    """Return True if a GPU has a resident thread for each word of a colour of all lattices."""
    blocks = blocks_of_lattice(groups)
    return blocks <= MOST_BLOCKS and lattices * blocks <= SPREAD_BLOCKS * multiprocessors(device)


class DatedWords:
    """Words with dates, which increase by one in each half-sweep, for successive launches.

    Attributes:
        array: uint64 of any shape, whose upper halves are dates.
    """

    first_date = 1  # because words are 0 at first

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.array: Any = cupy.zeros(shape, cupy.uint64)
        self._date = self.first_date

    def advance(self, half_sweeps: int) -> int:
        """Return the date at the start of a launch of ``half_sweeps`` half-sweeps; all words are older."""
        date, self._date = self._date, (self._date + half_sweeps + 1) % 2**32
        return date
