"""The order of unpacked replicas in memory: one Philox call serves ``WORDS`` replicas, with a word for each."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

WORDS: Final = 4
"""Replicas that one Philox call serves."""


def by_word(values: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
    """Replica order to the order of ``sweep_general`` along the last axis."""
    shape = values.shape
    return values.reshape(*shape[:-1], -1, WORDS).swapaxes(-1, -2).reshape(shape)


def by_replica(values: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The inverse of ``by_word``."""
    return values.reshape(WORDS, -1).T.reshape(-1)
