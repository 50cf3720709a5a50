"""Who is copied when a population is resampled: sums of weights in one order, the same bits on every processor."""

from __future__ import annotations

from typing import Final

import numpy as np

from spinsim.acceptance import exp_reduced
from spinsim.machine.compiled import kernel

LEAST: Final = -700.0
"""Exponent of a weight, of which nothing is left beside 1."""
_POWERS: Final = 0.5 ** np.arange(1024.0)


@kernel
def choose_parents(exponent, family, uniform, populations, parent, total, copied):  # type: ignore[no-untyped-def]
    """Choose the parent of each replica, of populations one after the other, so many of each sample.

    With the expected numbers of copies added up to x_i, replica i is copied as often as there are whole numbers n with
    x_{i-1} <= n + uniform < x_i. Replicas are added up family by family, so that a family's copies are rounded
    together. Who is copied keeps its place, and further copies go to the places of others in turn.

    Args:
        exponent: Of the weights, at most 0, (all populations, size).
        family: Of each replica, a replica of its population by its number in the sample, likewise.
        uniform: Between 0 and 1, (all populations,).
        populations: Of a sample.
        parent: Takes the parent of each replica by its number in the sample, (all populations, size).
        total: Takes sums of weights, (all populations,).
        copied: Takes how many are copied, likewise.
    """
    size = exponent.shape[1]
    weight, start = np.empty(size), np.empty(size + 1, np.int64)
    order, copies = np.empty(size, np.int64), np.empty(size, np.int64)
    for part in range(uniform.size):
        first = part % populations * size
        for i in range(size):
            mantissa, power = exp_reduced(max(exponent[part, i], LEAST))
            weight[i] = mantissa * _POWERS[np.int64(-power)]
        start[:] = 0
        for i in range(size):
            start[family[part, i] - first + 1] += 1
        for i in range(size):
            start[i + 1] += start[i]
        for i in range(size):
            own = family[part, i] - first
            order[start[own]] = i
            start[own] += 1
        running = 0.0
        for i in range(size):
            running += weight[order[i]]
        total[part] = running
        scale, running, below = size / running, 0.0, 0
        for i in range(size):
            running += weight[order[i]]
            upto = min(max(np.int64(np.ceil(running * scale - uniform[part])), 0), size) if i < size - 1 else size
            copies[order[i]] = upto - below
            below = upto
        spare, left, found = -1, 0, 0
        for i in range(size):
            parent[part, i] = first + i
            found += copies[i] > 0
            if copies[i] == 0:
                while left == 0:
                    spare += 1
                    left = max(copies[spare] - 1, 0)
                parent[part, i] = first + spare
                left -= 1
        copied[part] = found
