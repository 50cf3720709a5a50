"""Counting items of replica-packed words on the CPU."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spinsim.engine.measuring.correlations import Items
from spinsim.engine.measuring.cpu_comparison import differing_items

Words = npt.NDArray[np.uint64]
Integers = npt.NDArray[np.int64]


def count_items(words: Words, items: Items, one: Integers, other: Integers) -> Integers:
    """Items of each segment in which replicas of replica-packed words differ, (segments, pairs)."""
    count = np.zeros((items.segments, one.size), np.int64)
    differing_items(words, items.ends, items.size, one, other, count)
    return count
