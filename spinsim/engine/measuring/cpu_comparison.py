"""Counts of the sites or bonds at which replicas differ, from packed spins, and the modes derived from them.

Words of sites (a bit per replica) are transposed to words of replicas (a bit per item), eight columns of 64 words at a
time. Words are sorted by copy and temperature. The XOR of two words has a bit for each item at which the copies differ.
Vector units count the bits of many such words at once.
"""

from __future__ import annotations

from collections.abc import Sequence
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
TOGETHER: Final = 4  # words of sites, of two halves each, transposed together
COLUMNS: Final = 2 * TOGETHER


class WordList(NamedTuple):
    """Sites or bonds in words of up to 64, in groups of TOGETHER words, and layers of sites along some axes.

    A *part* is the set of a layer's sites in one word. Parts are ordered by group, then by layer.
    """

    ends: npt.NDArray[np.int32]  # sites (items, 1), or both ends of bonds (items, 2), int32
    start: Integers  # word w has the items from ``start[w]`` to before ``start[w + 1]``
    first_part: Integers  # group g has the parts from ``first_part[g]`` to before ``first_part[g + 1]``
    word: Integers  # word number of each part within its group
    mask: Words  # bits of each part in its word
    is_last: npt.NDArray[np.bool_]  # True for the last part of a layer
    wave: npt.NDArray[np.float64]  # cosine and sine at each layer, (layers, 2)
    size: Integers  # sites of each layer, (layers,)
    axis: Integers  # axis for which the layer is the last, else -1, (layers,)


class Along(NamedTuple):
    """Layers along an axis."""

    axis: int
    layers: Items  # sites layer by layer
    wave: npt.NDArray[np.float64]  # cosine and sine at each layer, (2, layers)


def word_list(items: Items, along: Sequence[Along] = ()) -> WordList:
    """Return the words of items, and the parts of layers in these words."""
    n = len(items.ends)
    start = np.minimum(np.arange(0, n + HALF, HALF), n)
    place = np.empty(n, np.int64)
    if along:
        place[items.ends[:, 0]] = np.arange(n)
    parts: list[tuple[int, int, int, int]] = []
    number = 0
    for one in along:
        for layer in range(one.layers.segments):
            sites = one.layers.ends[layer * one.layers.size : (layer + 1) * one.layers.size, 0]
            words, bits = np.divmod(np.sort(place[sites]), HALF)
            for word in np.unique(words).tolist():
                mask = int(np.bitwise_or.reduce(np.uint64(1) << bits[words == word].astype(np.uint64)))
                parts.append((word // TOGETHER, number, word % TOGETHER, mask))
            number += 1
    parts.sort()
    groups = -(-(len(start) - 1) // TOGETHER)
    of_group, of_layer, in_group, masks = np.array(parts, np.uint64).reshape(-1, 4).T
    ends_axis = [one.axis if k + 1 == one.layers.segments else -1 for one in along for k in range(one.layers.segments)]
    return WordList(
        items.ends, start, np.searchsorted(of_group, np.arange(groups + 1)), in_group.astype(np.int64),
        np.ascontiguousarray(masks), np.append(of_layer[1:] != of_layer[:-1], True)[: len(parts)],
        np.ascontiguousarray(np.concatenate([np.empty((0, 2)), *(one.wave.T for one in along)])),
        np.array([one.layers.size for one in along for _ in range(one.layers.segments)], np.int64),
        np.array(ends_axis, np.int64),
    )  # fmt: skip


def word_lists(sites: Items, along: Sequence[Along]) -> list[WordList]:
    """Return one list with layers along all axes if sites fill few words, else a list per axis, in its own order."""
    if len(sites.ends) <= TOGETHER * HALF or not along:
        return [word_list(sites, along)]
    return [word_list(one.layers, [one]) for one in along]


@part
def swap_blocks(rows, width, mask):  # type: ignore[no-untyped-def]
    """Swap the off-diagonal blocks of ``width`` bits of rows (64 * COLUMNS,)."""
    # A column is a square of 64 bits by 64 bits; its rows r and r + width exchange blocks of ``width`` bits:
    #
    #     row r            [ high  | low ]          high of row r  <->  low of row r + width
    #     row r + width    [ high  | low ]          by three XORs, for all COLUMNS columns side by side
    shift, step = np.uint64(width), width * COLUMNS
    for first in range(0, HALF * COLUMNS, 2 * step):
        low, high = rows[first : first + step], rows[first + step : first + 2 * step]
        for e in range(step):
            swapped = ((low[e] >> shift) ^ high[e]) & mask
            low[e] ^= swapped << shift
            high[e] ^= swapped


@part
def transpose_columns(rows):  # type: ignore[no-untyped-def]
    """Transpose each column: bit b of row r goes to bit r of row b (Warren, Hacker's Delight, 7-3).

    ``rows`` are (64 * COLUMNS,), row by row. Stages are written out, because loops of constant length vectorise.
    """
    swap_blocks(rows, 32, np.uint64(0x00000000FFFFFFFF))
    swap_blocks(rows, 16, np.uint64(0x0000FFFF0000FFFF))
    swap_blocks(rows, 8, np.uint64(0x00FF00FF00FF00FF))
    swap_blocks(rows, 4, np.uint64(0x0F0F0F0F0F0F0F0F))
    swap_blocks(rows, 2, np.uint64(0x3333333333333333))
    swap_blocks(rows, 1, np.uint64(0x5555555555555555))


@part
def transpose_words(state, ends, start, first, rows, words):  # type: ignore[no-untyped-def]
    """Transpose the words of ``WordList`` from ``first`` on into ``words`` (TOGETHER, replicas), 0 past the last.

    ``state`` is uint64 (blocks, sites, 2); ``rows`` is scratch, (64 * COLUMNS,).
    """
    # rows[q COLUMNS + 2 k + half], 8 words to a row; bit r is replica r of the half:
    #
    #               word 0         word 1         word 2         word 3
    #     item q    half 0, half 1 half 0, half 1 half 0, half 1 half 0, half 1
    #
    # After the transpose, row r of column 2 k + half is replica r of the half, and bit q of it is item q of word k.
    is_bond = ends.shape[1] == 2
    for block in range(state.shape[0]):
        lattice = state[block]
        for k in range(TOGETHER):
            begin, stop = start[min(first + k, start.size - 1)], start[min(first + k + 1, start.size - 1)]
            items = ends[begin:stop]
            for q in range(items.shape[0]):
                i, e = np.uint32(items[q, 0]), np.uint32(q * COLUMNS + 2 * k)
                low, high = lattice[i, 0], lattice[i, 1]
                # A bond's bit is the XOR of its ends: 1 where they differ.
                if is_bond:
                    j = np.uint32(items[q, 1])
                    low ^= lattice[j, 0]
                    high ^= lattice[j, 1]
                rows[e] = low
                rows[e + np.uint32(1)] = high
            # A list's last word may be shorter: its other rows are 0.
            for q in range(items.shape[0], HALF):
                e = np.uint32(q * COLUMNS + 2 * k)
                rows[e] = np.uint64(0)
                rows[e + np.uint32(1)] = np.uint64(0)
        transpose_columns(rows)
        for k in range(TOGETHER):
            low = words[k, block * LANES : block * LANES + HALF]
            high = words[k, block * LANES + HALF : (block + 1) * LANES]
            for r in range(HALF):
                e = np.uint32(r * COLUMNS + 2 * k)
                low[r] = rows[e]
                high[r] = rows[e + np.uint32(1)]


@part
def compare_copies(word, holder, by_copy, differ):  # type: ignore[no-untyped-def]
    """Set ``differ`` to the bits of a word (replicas,) in each copy, then to the bits in which pairs of copies differ.

    The word is sorted by ``holder`` (copies, temperatures) into ``by_copy``. Pairs of neighbours come first, (0, 1),
    (1, 2), ..., then (0, 2), (1, 3), ... and so on, so that loops are long.
    """
    # differ:   | copy 0 | copy 1 | ... | 0 ^ 1 | 1 ^ 2 | ... | 0 ^ 2 | 1 ^ 3 | ... |      each block: all temperatures
    copies, temperatures = holder.shape
    for copy in range(copies):
        for t in range(temperatures):
            by_copy[copy * temperatures + t] = word[np.uint32(holder[copy, t])]
    for e in range(by_copy.size):
        differ[e] = by_copy[e]
    first = by_copy.size
    for apart in range(temperatures, by_copy.size if differ.size > first else 0, temperatures):
        n = by_copy.size - apart
        one, other, row = by_copy[:n], by_copy[apart:], differ[first : first + n]
        for e in range(n):
            row[e] = one[e] ^ other[e]
        first += n


@part
def by_pair(values, copies, ordered):  # type: ignore[no-untyped-def]
    """Reorder values from the order of ``compare_copies`` to ``ordered`` (pairs, then copies if wanted, temperatures).

    It loops over temperatures, as ``compare_copies`` does: an array assignment takes seconds to compile.
    """
    temperatures = ordered.shape[1]
    pairs, first = values.size // temperatures - copies, copies
    for apart in range(1, copies if pairs else 1):
        for one in range(copies - apart):
            pair = one * (2 * copies - one - 1) // 2 + apart - 1
            for t in range(temperatures):
                ordered[pair, t] = values[(first + one) * temperatures + t]
        first += copies - apart
    for copy in range(ordered.shape[0] - pairs):
        for t in range(temperatures):
            ordered[pairs + copy, t] = values[copy * temperatures + t]


@part
def count_bits(words, mask, count):  # type: ignore[no-untyped-def]
    """Add to ``count`` (n,) the number of set bits of ``words`` (n,) within a mask."""
    for e in range(count.size):
        count[e] += np.int64(set_bits(words[e] & mask))


@part
def add_wave(size, cosine, sine, count, real, imaginary):  # type: ignore[no-untyped-def]
    """Add (size - 2 count) times cosine and sine, by unfused IEEE operations, so that a GPU gets the same bits.

    All arrays are (n,); ``count`` is set to 0.
    """
    for e in range(count.size):
        value = np.float64(size - 2 * count[e])
        real[e] += value * cosine
        imaginary[e] += value * sine
        count[e] = 0


@part
def square_waves(real, imaginary, squares):  # type: ignore[no-untyped-def]
    """Set ``squares`` (n,) to the squared modes, and clear the waves."""
    for e in range(squares.size):
        squares[e] = real[e] * real[e] + imaginary[e] * imaginary[e]
        real[e] = imaginary[e] = 0.0


@kernel
def compare_ladder(orders, bonds, state, holder, overlap, link_overlap, modes, begin, end):  # type: ignore[no-untyped-def]
    """Compare copies at equal temperatures of samples from ``begin`` to before ``end``, as ``Compared`` describes.

    ``orders`` are lists of sites: one with layers along all axes, or one per axis.
    """
    mine, is_first = slice(begin, end), True
    for sites in orders:
        if is_first or modes.shape[0]:
            compare_words(sites, state, holder[mine], overlap[mine], is_first, modes[:, mine])
        is_first = False
    if link_overlap.shape[1]:
        compare_words(bonds, state, holder[mine], link_overlap[mine], True, modes[:, mine, :0])


@kernel
def compare_words(items, state, holder, overlap, is_wanted, modes):  # type: ignore[no-untyped-def]
    """Compare copies of some samples; ``holder`` has their replicas at each temperature.

    If ``is_wanted``, set ``overlap`` (samples, pairs, temperatures) to the sum over items of the product of both
    copies. Set ``modes`` (axes, samples, pairs, then copies if wanted, temperatures) to |sum over x of v_x exp(i k
    x)|^2, with v_x = size - 2 differing[x] added up in the order of x.
    """
    # turned[w, replica]    64 items of one replica, in one word
    # differ[w, place]      places as in ``compare_copies``: the first ``own`` are single copies, the others are pairs
    # first                 0 if single copies have modes too, else ``own``
    copies, temperatures = holder.shape[1:]
    rows, turned = np.empty(HALF * COLUMNS, np.uint64), np.empty((TOGETHER, state.shape[1] * LANES), np.uint64)
    pairs, own = overlap.shape[1], copies * temperatures
    n = own + pairs * temperatures
    by_copy, differ = np.empty(own, np.uint64), np.empty((TOGETHER, n), np.uint64)
    count, of_items, squares = np.zeros(n, np.int64), np.empty(n, np.int64), np.empty(n)
    real, imaginary, first = np.zeros(n), np.zeros(n), 0 if modes.shape[2] > pairs else own
    for k in range(state.shape[0]):
        of_items[:], layer = 0, 0
        for group in range(items.first_part.size - 1):
            # TOGETHER words of items at a time, from replicas in a word to items in a word.
            transpose_words(state[k], items.ends, items.start, group * TOGETHER, rows, turned)
            for w in range(min(TOGETHER, items.start.size - 1 - group * TOGETHER)):
                compare_copies(turned[w], holder[k], by_copy, differ[w])
                if is_wanted:
                    count_bits(differ[w, own:], ALL, of_items[own:])
            # Each part adds its bits to its layer; a layer's last part turns the count into a term of the wave.
            for piece in range(items.first_part[group], items.first_part[group + 1]):
                count_bits(differ[items.word[piece], first:], items.mask[piece], count[first:])
                if items.is_last[piece]:
                    add_wave(items.size[layer], items.wave[layer, 0], items.wave[layer, 1], count[first:],
                             real[first:], imaginary[first:])  # fmt: skip
                    # The last layer of an axis completes its modes.
                    if items.axis[layer] >= 0:
                        square_waves(real, imaginary, squares)
                        by_pair(squares, copies, modes[items.axis[layer], k])
                    layer += 1
        if is_wanted:
            # Items that agree minus items that differ.
            for e in range(own, n):
                of_items[e] = items.ends.shape[0] - 2 * of_items[e]
            by_pair(of_items, copies, overlap[k])


@part
def transpose(rows):  # type: ignore[no-untyped-def]
    """Transpose 64 words: bit b of ``rows[r]`` goes to bit r of ``rows[b]`` (Warren, Hacker's Delight, 7-3)."""
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
    """Make a word for each replica from at most 64 sites (n, 1) or bonds (n, 2); bits past the last are 0."""
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
    """Add to ``count`` (segments, pairs) the items of each segment where replicas ``one[p]`` and ``other[p]`` differ.

    ``state`` is uint64 (blocks, sites, 2), a bit per replica; the replica number after the last of all blocks has no
    bit set. ``ends`` and ``size`` are as in ``Items``. Up to 64 items at a time, from one or several segments, are
    transposed to a word for each replica.
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
def second_and_fourth_powers(differing, size, powers):  # type: ignore[no-untyped-def]
    """Add the sums over x of v_x^2 and v_x^4 to ``powers`` (pairs, 2), with v_x = size - 2 differing[x]."""
    for x in range(differing.shape[0]):
        row = differing[x]
        for p in range(row.size):
            value = np.int64(size - 2 * row[p])
            square = value * value
            powers[p, 0] += square
            powers[p, 1] += square * square


def count_items(words: Words, items: Items, one: Integers, other: Integers) -> Integers:
    """Count the items of each segment at which replicas of replica-packed words differ, (segments, pairs)."""
    count = np.zeros((items.segments, one.size), np.int64)
    differing_items(words, items.ends, items.size, one, other, count)
    return count
