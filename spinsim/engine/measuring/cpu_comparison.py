"""At how many sites or bonds replicas differ, from packed spins, and the modes that follow."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spinsim.engine.measuring.correlations import Items
from spinsim.machine.compiled import kernel, part
from spinsim.machine.intrinsics import set_bits
from spinsim.packing import LANES

Words = npt.NDArray[np.uint64]
Integers = npt.NDArray[np.int64]
HALF = 64
LOWER = np.uint64(0xFFFFFFFF)
ALL = np.uint64(2**64 - 1)
ONE = np.uint64(1)


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


@part
def words_of_replicas(state, ends, words):  # type: ignore[no-untyped-def]
    """A word for each replica from at most 64 sites (n, 1) or bonds (n, 2); bits past the last are 0."""
    n, is_bond = ends.shape[0], ends.shape[1] == 2
    for block in range(state.shape[0]):
        for half in range(2):
            rows = words[(2 * block + half) * HALF : (2 * block + half + 1) * HALF]
            if is_bond:
                for q in range(n):
                    i, j = np.uint32(ends[q, 0]), np.uint32(ends[q, 1])
                    rows[q] = state[block, i, half] ^ state[block, j, half]
            else:
                for q in range(n):
                    rows[q] = state[block, np.uint32(ends[q, 0]), half]
            rows[n:] = np.uint64(0)
            transpose(rows)


@kernel
def differing_items(state, ends, size, one, other, count):  # type: ignore[no-untyped-def]
    """Add to ``count`` (segments, pairs) the items of each segment in which replicas ``one[p]``, ``other[p]`` differ.

    ``state`` is uint64 (blocks, sites, 2), a bit a replica; the replica past the last one of all blocks has no bit set.
    ``ends`` and ``size`` are those of ``Items``; 64 items at a time, of short segments several, are turned into a word
    for each replica.
    """
    words = np.zeros(state.shape[0] * LANES + 1, np.uint64)
    segments, items = count.shape[0], ends.shape[0]
    together = max(1, HALF // size)
    for segment in range(0, segments, together):
        several = min(together, segments - segment)
        start, stop = segment * size, min(items, (segment + several) * size)
        for first in range(start, stop, HALF):
            words_of_replicas(state, ends[first : min(stop, first + HALF)], words)
            if together == 1:
                row = count[segment]
                for p in range(one.size):
                    row[p] += np.int64(set_bits(words[one[p]] ^ words[other[p]]))
            else:
                mask = (ONE << np.uint64(size)) - ONE
                for k in range(several):
                    row, shift = count[segment + k], np.uint64(k * size)
                    for p in range(one.size):
                        row[p] += np.int64(set_bits((words[one[p]] ^ words[other[p]]) >> shift & mask))


@kernel
def differing_copies(state, holder, pairs, found):  # type: ignore[no-untyped-def]
    """The sites at which copies at equal temperatures differ, int64 (samples, pairs, temperatures).

    ``state`` is uint64 (samples, blocks, sites, 2), ``holder`` the replica at each temperature, (samples, copies,
    temperatures), and ``pairs`` (pairs, 2) are the copies that are compared.
    """
    found[:] = 0
    samples, blocks, sites = state.shape[0], state.shape[1], state.shape[2]
    copies, temperatures = holder.shape[1], holder.shape[2]
    words = np.zeros(blocks * LANES, np.uint64)
    sorted_words = np.empty((copies, temperatures), np.uint64)
    for k in range(samples):
        for first in range(0, sites, HALF):
            n = min(HALF, sites - first)
            for block in range(blocks):
                for half in range(2):
                    rows = words[(2 * block + half) * HALF : (2 * block + half + 1) * HALF]
                    rows[n:] = np.uint64(0)
                    for q in range(n):
                        rows[q] = state[k, block, first + q, half]
                    transpose(rows)
            for c in range(copies):
                for t in range(temperatures):
                    sorted_words[c, t] = words[holder[k, c, t]]
            for p in range(pairs.shape[0]):
                one, other, row = sorted_words[pairs[p, 0]], sorted_words[pairs[p, 1]], found[k, p]
                for t in range(temperatures):
                    row[t] += np.int64(set_bits(one[t] ^ other[t]))


@kernel
def squared_modes(differing, size, wave, found):  # type: ignore[no-untyped-def]
    """|sum over x of v_x exp(i k x)|^2 into ``found`` (pairs,), v_x = size - 2 differing[x], in the order of x.

    ``wave`` is that of correlations.py; plain IEEE operations, none fused: a GPU finds the same bits.
    """
    pairs = found.size
    real, imaginary = np.zeros(pairs), np.zeros(pairs)
    for x in range(differing.shape[0]):
        row, cosine, sine = differing[x], wave[0, x], wave[1, x]
        for p in range(pairs):
            value = np.float64(size - 2 * row[p])
            real[p] += value * cosine
            imaginary[p] += value * sine
    for p in range(pairs):
        found[p] = real[p] * real[p] + imaginary[p] * imaginary[p]


@kernel
def second_and_fourth_powers(differing, size, found):  # type: ignore[no-untyped-def]
    """Sums over x of v_x^2 and v_x^4 into ``found`` (pairs, 2), v_x = size - 2 differing[x] as in ``squared_modes``."""
    for x in range(differing.shape[0]):
        row = differing[x]
        for p in range(row.size):
            value = np.int64(size - 2 * row[p])
            square = value * value
            found[p, 0] += square
            found[p, 1] += square * square


def count_items(words: Words, items: Items, one: Integers, other: Integers) -> Integers:
    """Items of each segment in which replicas of replica-packed words differ, (segments, pairs)."""
    count = np.zeros((items.segments, one.size), np.int64)
    differing_items(words, items.ends, items.size, one, other, count)
    return count
