"""At how many sites replicas of a site-packed lattice differ, in all and in each layer."""

from __future__ import annotations

import numpy as np

from spinsim.engine.measuring.cpu_comparison import (
    HALF,
    transpose,
)
from spinsim.machine.compiled import kernel
from spinsim.machine.intrinsics import set_bits


@kernel
def differing_lattices(state, one, other, count):  # type: ignore[no-untyped-def]
    """The sites at which replicas of ``state`` uint64 (replicas, words), a bit a site, differ."""
    for p in range(one.size):
        a, b = state[one[p]], state[other[p]]
        total = np.int64(0)
        for i in range(a.size):
            total += np.int64(set_bits(a[i] ^ b[i]))
        count[p] = total


@kernel
def set_in_layers(lattice, height, along_x, along_y, along_z):  # type: ignore[no-untyped-def]
    """Add to each axis's layers the bits set in a site-packed ``lattice``, uint64 (colours, rows, words).

    Rows of equal parity hold the same x: 64 of them at a time are turned into a word for each x.
    """
    rows, words = lattice.shape[1], lattice.shape[2]
    for row in range(rows):
        count = np.int64(0)
        for colour in range(2):
            for w in range(words):
                count += np.int64(set_bits(lattice[colour, row, w]))
        along_y[row % height] += count
        along_z[row // height] += count
    turned, half = np.empty(HALF, np.uint64), height // 2
    for colour in range(2):
        for parity in range(2):
            for w in range(words):
                for first in range(0, rows // 2, HALF):
                    n = min(HALF, rows // 2 - first)
                    for q in range(n):
                        z = (first + q) // half
                        y = 2 * ((first + q) % half) + (z + parity) % 2
                        turned[q] = lattice[colour, y + height * z, w]
                    turned[n:] = np.uint64(0)
                    transpose(turned)
                    for b in range(HALF):
                        along_x[2 * (HALF * w + b) + (parity + colour) % 2] += np.int64(set_bits(turned[b]))
