"""Copies of packed configurations on the CPU."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from spinsim.engine.resampling.moves import Moves
from spinsim.machine.compiled import kernel

LANES_WORTH_THREADS: Final = 2**17
"""Spins that are copied in about 100 microseconds, in which threads take their tasks over."""

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


def copy_whole(words: npt.NDArray[np.uint64], moves: Moves) -> None:
    """Make copies in words (samples, replicas, ...)."""
    for sample, source, target in zip(*(array.tolist() for array in moves), strict=True):
        words[sample, target] = words[sample, source]
