"""Seeds of several problems that one call takes."""

from __future__ import annotations

from operator import index
from typing import Any

import numpy as np


def seeds_of(seed: Any, count: int) -> list[Any]:
    """Return the seed of each of several problems: ``seed + k``, modulo 2^64, from a drawn one where it is None.

    What is no seed is returned as it is, for whoever takes it to refuse.
    """
    if seed is None:
        seed = int(np.random.SeedSequence().generate_state(1, np.uint64)[0])
    try:
        first = index(seed)
    except TypeError:
        return [seed] * count
    if isinstance(seed, bool | np.bool_) or not 0 <= first < 2**64:
        return [seed] * count
    return [(first + k) % 2**64 for k in range(count)]
