"""At how many sites replicas differ, from packed spins."""

from __future__ import annotations

import numpy as np

from spinsim.compiled import kernel, part, set_bits
from spinsim.packing import LANES

HALF = 64
LOWER = np.uint64(0xFFFFFFFF)


@part
def transpose(rows):  # type: ignore[no-untyped-def]
    """Bit b of ``rows[r]`` goes to bit r of ``rows[b]``, 64 words (Warren, Hacker's Delight, 7-3)."""
    mask, width = LOWER, 32
    while width:
        shift = np.uint64(width)
        for r in range(HALF):
            if r & width == 0:
                swapped = ((rows[r] >> shift) ^ rows[r + width]) & mask
                rows[r] ^= swapped << shift
                rows[r + width] ^= swapped
        width >>= 1
        mask ^= mask << np.uint64(width)


@kernel
def differing_replicas(state, one, other, count):  # type: ignore[no-untyped-def]
    """Add to ``count`` (pairs,) the sites at which replicas ``one[p]`` and ``other[p]`` of ``state`` differ.

    ``state`` is uint64 (blocks, sites, 2), a bit a replica; 64 sites at a time are turned into a word a replica.
    """
    blocks, sites = state.shape[0], state.shape[1]
    words = np.zeros(blocks * LANES, np.uint64)
    for first in range(0, sites, HALF):
        n = min(HALF, sites - first)
        for block in range(blocks):
            for half in range(2):
                rows = words[(2 * block + half) * HALF : (2 * block + half + 1) * HALF]
                for q in range(n):
                    rows[q] = state[block, first + q, half]
                for q in range(n, HALF):
                    rows[q] = np.uint64(0)
                transpose(rows)
        for p in range(one.size):
            count[p] += np.int64(set_bits(words[one[p]] ^ words[other[p]]))


@kernel
def differing_lattices(state, one, other, count):  # type: ignore[no-untyped-def]
    """The same for ``state`` uint64 (replicas, words), a bit a site."""
    for p in range(one.size):
        a, b = state[one[p]], state[other[p]]
        total = np.int64(0)
        for i in range(a.size):
            total += np.int64(set_bits(a[i] ^ b[i]))
        count[p] = total
