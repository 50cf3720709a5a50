"""Copies of packed configurations on the CPU."""

from __future__ import annotations

from functools import partial
from typing import Final

import numpy as np
import numpy.typing as npt

from spinsim.engine.moves.resample.moves import Moves, first_moves
from spinsim.machine.compiled import kernel
from spinsim.machine.threads import Threads

LANES_WORTH_THREADS: Final = 2**17
"""Spins that are copied in about 100 microseconds, in which threads take their tasks over."""

REPLICA_PACKED: Final = 4
"""Axes of replica-packed words; site-packed ones have six, with a row of words for each replica."""
_ONE = np.uint64(1)


@kernel
def copy_lanes(words, sample, source, target):  # type: ignore[no-untyped-def]
    """Give replicas ``target`` the bits of ``source`` in words (samples, blocks, groups, 2)."""
    for i in range(source.size):
        give, take = words[sample[i], source[i] // 128], words[sample[i], target[i] // 128]
        from_half, to_half = source[i] // 64 % 2, target[i] // 64 % 2
        from_bit, to_bit = np.uint64(source[i] % 64), np.uint64(target[i] % 64)
        kept = ~(_ONE << to_bit)
        for group in range(give.shape[0]):
            bit = (give[group, from_half] >> from_bit) & _ONE
            take[group, to_half] = (take[group, to_half] & kept) | (bit << to_bit)


def copy_replicas(words: npt.NDArray[np.uint64], moves: Moves, threads: Threads) -> None:
    """Make copies in the words of a snapshot, replica-packed or site-packed, which have the shapes of packing.py."""
    samples, blocks = words.shape[:2]
    if words.ndim > REPLICA_PACKED:
        for sample, source, target in zip(*(array.tolist() for array in moves), strict=True):
            words[sample, target] = words[sample, source]
    elif moves.target.size * words.shape[2] < LANES_WORTH_THREADS:
        copy_lanes(words, *moves)
    else:
        threads.share_out(partial(_copy_to, words, moves, first_moves(moves, samples, blocks)), samples * blocks)


def _copy_to(words: npt.NDArray[np.uint64], moves: Moves, first: npt.NDArray[np.int64], part: int, stop: int) -> None:
    """Make the copies to some of the blocks of all samples, which no other thread writes."""
    copy_lanes(words, *(each[first[part] : first[stop]] for each in moves))
