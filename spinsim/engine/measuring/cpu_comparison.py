"""At how many sites or bonds replicas differ, from packed spins, and the modes that follow.

Words of sites, a bit a replica, are turned into words of replicas, a bit an item, eight columns of 64 words at a time.
Each word is sorted by copy and temperature, (copies, temperatures); the XOR of two rows has a bit for each item at
which copies differ, (pairs, temperatures), and vector units count the bits of many such words at once.
"""

from __future__ import annotations

from typing import Final, NamedTuple

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
TOGETHER: Final = 4  # words of sites, of two halves each, that are turned together
COLUMNS: Final = 2 * TOGETHER


class WordList(NamedTuple):
    """Sites or bonds in words of up to 64; a *part* of a word is of one segment.

    Attributes:
        ends: Sites (items, 1), or both ends of bonds (items, 2), int32.
        start: Word w has the items from ``start[w]`` to before ``start[w + 1]``.
        first_part: Word w has the parts from ``first_part[w]`` to before ``first_part[w + 1]``.
        shift: First bit of each part.
        mask: Its bits after that shift.
        is_last: True if it is the last part of its segment.
    """

    ends: npt.NDArray[np.int32]
    start: Integers
    first_part: Integers
    shift: Words
    mask: Words
    is_last: npt.NDArray[np.bool_]


def word_list(items: Items) -> WordList:
    """Return the words of items: short segments share one, long ones have several."""
    together, n = max(1, HALF // items.size), len(items.ends)
    start, first_part = [0], [0]
    shift, mask, is_last = [], [], []
    for segment in range(0, items.segments, together):
        several = min(together, items.segments - segment)
        stop = min(n, (segment + several) * items.size)
        while start[-1] < stop:
            start.append(min(stop, start[-1] + HALF))
            for k in range(several):
                shift.append(k * items.size)
                mask.append(2 ** min(HALF, items.size) - 1)
                is_last.append(start[-1] == stop)
            first_part.append(len(shift))
    lists = np.array(start, np.int64), np.array(first_part, np.int64), np.array(shift, np.uint64)
    return WordList(items.ends, *lists, np.array(mask, np.uint64), np.array(is_last, np.bool_))


@part
def swap_blocks(rows, width, mask):  # type: ignore[no-untyped-def]
    """Swap the blocks of ``width`` beside the diagonal, of rows (64 * COLUMNS,)."""
    shift, step = np.uint64(width), width * COLUMNS
    for first in range(0, HALF * COLUMNS, 2 * step):
        low, high = rows[first : first + step], rows[first + step : first + 2 * step]
        for e in range(step):
            swapped = ((low[e] >> shift) ^ high[e]) & mask
            low[e] ^= swapped << shift
            high[e] ^= swapped


@part
def transpose_columns(rows):  # type: ignore[no-untyped-def]
    """Bit b of row r goes to bit r of row b in each column (Warren, Hacker's Delight, 7-3).

    ``rows`` are (64 * COLUMNS,), row by row. Stages are written out, as loops of constant length are vectors.
    """
    swap_blocks(rows, 32, np.uint64(0x00000000FFFFFFFF))
    swap_blocks(rows, 16, np.uint64(0x0000FFFF0000FFFF))
    swap_blocks(rows, 8, np.uint64(0x00FF00FF00FF00FF))
    swap_blocks(rows, 4, np.uint64(0x0F0F0F0F0F0F0F0F))
    swap_blocks(rows, 2, np.uint64(0x3333333333333333))
    swap_blocks(rows, 1, np.uint64(0x5555555555555555))


@part
def turn_words(state, ends, start, first, rows, found):  # type: ignore[no-untyped-def]
    """Turn the words of ``WordList`` from ``first`` on into ``found`` (TOGETHER, replicas); past the last they are 0.

    ``state`` is uint64 (blocks, sites, 2); ``rows`` are room, (64 * COLUMNS,).
    """
    is_bond = ends.shape[1] == 2
    for block in range(state.shape[0]):
        lattice = state[block]
        for k in range(TOGETHER):
            begin, stop = start[min(first + k, start.size - 1)], start[min(first + k + 1, start.size - 1)]
            items = ends[begin:stop]
            for q in range(items.shape[0]):
                i, e = np.uint32(items[q, 0]), np.uint32(q * COLUMNS + 2 * k)
                low, high = lattice[i, 0], lattice[i, 1]
                if is_bond:
                    j = np.uint32(items[q, 1])
                    low ^= lattice[j, 0]
                    high ^= lattice[j, 1]
                rows[e] = low
                rows[e + np.uint32(1)] = high
            for q in range(items.shape[0], HALF):
                e = np.uint32(q * COLUMNS + 2 * k)
                rows[e] = np.uint64(0)
                rows[e + np.uint32(1)] = np.uint64(0)
        transpose_columns(rows)
        for k in range(TOGETHER):
            low = found[k, block * LANES : block * LANES + HALF]
            high = found[k, block * LANES + HALF : (block + 1) * LANES]
            for r in range(HALF):
                e = np.uint32(r * COLUMNS + 2 * k)
                low[r] = rows[e]
                high[r] = rows[e + np.uint32(1)]


@part
def compare_part(word, shift, mask, holder, pairs, by_copy, differ):  # type: ignore[no-untyped-def]
    """Set ``differ`` (pairs, then copies, temperatures) to the bits of a part at which copies differ, or are set.

    ``word`` (replicas,) is sorted by ``holder`` (copies, temperatures) into ``by_copy``, of the same shape.
    """
    for copy in range(holder.shape[0]):
        for t in range(holder.shape[1]):
            by_copy[copy, t] = (word[np.uint32(holder[copy, t])] >> shift) & mask
    number = pairs.shape[0]
    for p in range(number):
        i, j = np.uint32(pairs[p, 0]), np.uint32(pairs[p, 1])
        for t in range(holder.shape[1]):
            differ[p, t] = by_copy[i, t] ^ by_copy[j, t]
    for copy in range(differ.shape[0] - number):
        for t in range(holder.shape[1]):
            differ[number + copy, t] = by_copy[copy, t]


@part
def count_bits(words, count):  # type: ignore[no-untyped-def]
    """Add to ``count`` (n,) the bits of ``words`` (n,)."""
    for e in range(count.size):
        count[e] += np.int64(set_bits(words[e]))


@part
def add_wave(size, cosine, sine, count, real, imaginary):  # type: ignore[no-untyped-def]
    """Add (size - 2 count) times a cosine and a sine, by plain IEEE operations, none fused: a GPU finds the same bits.

    All arrays are (n,); ``count`` is emptied.
    """
    for e in range(count.size):
        value = np.float64(size - 2 * count[e])
        real[e] += value * cosine
        imaginary[e] += value * sine
        count[e] = 0


@part
def square_waves(real, imaginary, found):  # type: ignore[no-untyped-def]
    """Set ``found`` (n,) to the squared modes."""
    for e in range(found.size):
        found[e] = real[e] * real[e] + imaginary[e] * imaginary[e]


@kernel
def count_differing(state, holder, pairs, items, found):  # type: ignore[no-untyped-def]
    """Set ``found`` (samples, pairs, temperatures) to the items of ``WordList`` at which copies differ.

    ``state`` is uint64 (samples, blocks, sites, 2), ``holder`` the replica at each temperature, (samples, copies,
    temperatures), and ``pairs`` (pairs, 2) are the copies that are compared.
    """
    rows, turned = np.empty(HALF * COLUMNS, np.uint64), np.empty((TOGETHER, state.shape[1] * LANES), np.uint64)
    by_copy, differ = np.empty(holder.shape[1:], np.uint64), np.empty(found.shape[1:], np.uint64)
    for k in range(state.shape[0]):
        count = found[k].reshape(-1)
        count[:] = 0
        for first in range(0, items.start.size - 1, TOGETHER):
            turn_words(state[k], items.ends, items.start, first, rows, turned)
            for w in range(first, min(first + TOGETHER, items.start.size - 1)):
                compare_part(turned[w - first], np.uint64(0), ALL, holder[k], pairs, by_copy, differ)
                count_bits(differ.reshape(-1), count)


@kernel
def find_modes(state, holder, pairs, layers, size, wave, found, differing):  # type: ignore[no-untyped-def]
    """Set ``found`` (samples, pairs, then copies if wanted, temperatures) to squared modes along one axis.

    These are |sum over x of v_x exp(i k x)|^2, v_x = size - 2 differing[x], added up in the order of x, of pairs of
    copies and of each copy's own spins. ``differing`` (samples, pairs, temperatures) is set to the sums over x of
    differing[x], unless it has no pairs.

    Args:
        state, holder, pairs: As ``count_differing`` takes them.
        layers: ``WordList`` of the sites, whose segments are layers of ``size``.
        size: Sites of a layer.
        wave: Cosine and sine at each layer, (2, layers).
    """
    rows, turned = np.empty(HALF * COLUMNS, np.uint64), np.empty((TOGETHER, state.shape[1] * LANES), np.uint64)
    by_copy, differ = np.empty(holder.shape[1:], np.uint64), np.empty(found.shape[1:], np.uint64)
    words = differ.reshape(-1)
    count, real, imaginary = np.zeros(words.size, np.int64), np.empty(words.size), np.empty(words.size)
    for k in range(state.shape[0]):
        real[:] = 0.0
        imaginary[:] = 0.0
        total, x = differing[k].reshape(-1), 0
        total[:] = 0
        for first in range(0, layers.start.size - 1, TOGETHER):
            turn_words(state[k], layers.ends, layers.start, first, rows, turned)
            for w in range(first, min(first + TOGETHER, layers.start.size - 1)):
                for piece in range(layers.first_part[w], layers.first_part[w + 1]):
                    shift, mask = layers.shift[piece], layers.mask[piece]
                    compare_part(turned[w - first], shift, mask, holder[k], pairs, by_copy, differ)
                    count_bits(words, count)
                    if layers.is_last[piece]:
                        for e in range(total.size):
                            total[e] += count[e]
                        add_wave(size, wave[0, x], wave[1, x], count, real, imaginary)
                        x += 1
        square_waves(real, imaginary, found[k].reshape(-1))


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
