"""Lattices that are spread over a GPU: a thread for each word of 32 lanes of a colour, all resident at once."""

from __future__ import annotations

from typing import Any, Final

from spinsim.cuda.device import cupy, multiprocessors

WORDS: Final = 4  # of a group of 128 lanes, a thread each
SPREAD_THREADS: Final = 128  # of each of the blocks that share a lattice
SPREAD_BLOCKS: Final = 4  # of these on one multiprocessor
MOST_BLOCKS: Final = 2**10 - 1  # of a lattice, as words that are added up count them in ten bits


def blocks_of_lattice(groups: int) -> int:
    """Blocks that share a lattice of so many groups a colour."""
    return -(-WORDS * groups // SPREAD_THREADS)


def fits_gpu(groups: int, lattices: int, device: int) -> bool:
    """Return True if a GPU has a resident thread for each word of a colour of all lattices."""
    blocks = blocks_of_lattice(groups)
    return blocks <= MOST_BLOCKS and lattices * blocks <= SPREAD_BLOCKS * multiprocessors(device)


class DatedWords:
    """Words beside a date that each half-sweep raises by one, for launches one after the other.

    Attributes:
        array: uint64 of any shape, whose upper halves are dates.
    """

    first_date = 1  # as words are 0 at first

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.array: Any = cupy.zeros(shape, cupy.uint64)
        self._date = self.first_date

    def advance(self, half_sweeps: int) -> int:
        """The date at which a launch of so many half-sweeps begins: all words are older."""
        date, self._date = self._date, (self._date + half_sweeps + 1) % 2**32
        return date
