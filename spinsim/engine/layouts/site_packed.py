"""A word holds 64 sites of one colour of one replica, numbered row by row: ``words[replica, colour, word]``.

Signs of couplings are stored like spins; every bond is stored twice, once for the sites of each colour. The neighbours
of a site have slots: 0 and 1 are the sites at y - 1 and y + 1, 2 the site at the same place of the other colour's row,
3 the other neighbour along x, 4 and 5 the sites at z - 1 and z + 1. A site at x = 2 i has x + 1 in slot 2 and x - 1 in
slot 3, one at x = 2 i + 1 the other way round.

On the CPU a batch is up to 64 consecutive groups of 128 lanes of a colour. Neighbours need no list: they are lanes of
the other colour at a fixed distance. Only sites at a side of the lattice have another distance; ``Seams`` has their
masks. Before an update, the lanes of the other colour that its batches read are copied into a window, with the layer
before the first and the layer after the last. Words at any distance are read from the window into the rows of scratch
of metropolis/steps.py.
"""

from __future__ import annotations

from functools import partial
from itertools import product
from math import gcd, prod
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim.engine.layouts.replica_packed import BATCH, ONE, ROW, ZERO
from spinsim.engine.moves.metropolis.steps import NEAR, SPIN, WIDE_WORDS, mux, unlike
from spinsim.engine.update import Sizes
from spinsim.machine.compiled import kernel, part
from spinsim.machine.intrinsics import set_bits
from spinsim.machine.threads import Threads
from spinsim.model.ising import Ising
from spinsim.packing import mask_of_lanes, odd_lanes, repeating_groups, site_groups
from spinsim.parallel.group import Group

Words = npt.NDArray[np.uint64]

WORD: Final = 64
ALL: Final = ~ZERO
LEAST: Final = 4 * BATCH
LAYERS: Final = 8
"""A window holds ``LEAST`` groups, or this number of layers if that is more, so that copying it is a small cost."""


class Seams(NamedTuple):
    """Masks of the lanes at the sides of a lattice; they repeat after ``groups`` groups.

    ``masks`` uint64 (5, halves, groups) mark the sites of colour 0 at odd x, the first and the last site of a row of a
    colour, and the first and the last row of a plane. One more batch, which repeats the first groups, is appended.
    """

    masks: Words
    groups: int


def seams_of(shape: tuple[int, ...]) -> Seams:
    """Return the masks of a lattice of sides ``shape``."""
    groups, width, height = repeating_groups(shape), shape[0] // 2, shape[1]
    at_sides = (
        lambda lane: lane % width == 0, lambda lane: lane % width == width - 1,
        lambda lane: lane // width % height == 0, lambda lane: lane // width % height == height - 1,
    )  # fmt: skip
    masks = np.stack([odd_lanes(shape), *(mask_of_lanes(groups, one) for one in at_sides)]).transpose(0, 2, 1)
    return Seams(np.ascontiguousarray(masks[..., np.arange(groups + BATCH) % groups]), groups)


@part
def bits_at(words, at):  # type: ignore[no-untyped-def]
    """Return 64 bits of ``words`` from bit ``at`` on, 0 past the end."""
    k, shift = at // WORD, np.uint64(at % WORD)
    word = words[k] >> shift
    if shift and k + 1 < words.size:
        word |= words[k + 1] << (np.uint64(WORD) - shift)
    return word


@part
def bits_around(words, at, lanes):  # type: ignore[no-untyped-def]
    """Return 64 bits of ``words`` from bit ``at`` on, possibly below 0; bit 0 follows the last of ``lanes`` bits."""
    word = bits_at(words, at) if 0 <= at < lanes else words[0] << np.uint64(-at) if -WORD < at < 0 else ZERO
    if at + WORD > lanes:
        at -= lanes
        word |= bits_at(words, at) if at >= 0 else words[0] << np.uint64(-at)
    return word


@part
def copy_bits(count, words, at, target, to):  # type: ignore[no-untyped-def]
    """Copy ``count`` bits of ``words`` from bit ``at`` on into ``target`` from bit ``to`` on."""
    while count > 0:
        place = to % WORD
        n = min(count, WORD - place)
        mask = (ALL >> np.uint64(WORD - n)) << np.uint64(place)
        k = to // WORD
        target[k] = (target[k] & ~mask) | ((bits_at(words, at) << np.uint64(place)) & mask)
        to, at, count = to + n, at + n, count - n


@part
def in_use(word, lanes):  # type: ignore[no-untyped-def]
    """Return a mask of the sites in word number ``word`` of a colour that has ``lanes`` sites."""
    left = lanes - WORD * word
    if left >= WORD:
        return ALL
    return ALL >> np.uint64(WORD - left) if left > 0 else ZERO


@part
def lanes_of(sides):  # type: ignore[no-untyped-def]
    """Return the number of sites of a colour in a row, a layer and a lattice."""
    width, height, depth = sides
    return width, width * height if depth > 1 else width, width * height * depth


@part
def window_of(sides, groups):  # type: ignore[no-untyped-def]
    """Return memory for a window, and how many of ``groups`` groups it serves.

    The first half of a window has its even words, then its odd words, so that each half of successive groups is
    contiguous. The second half has all words in the order of the state.
    """
    _, layer, _ = lanes_of(sides)
    most = max(LEAST, -(-LAYERS * layer // (2 * WORD * BATCH)) * BATCH)
    served = min(most, groups)
    halves = served + layer // WORD + 3
    return np.empty(4 * halves, np.uint64), served


@part
def fill_window(window, first, n, other, halo, colour, sides):  # type: ignore[no-untyped-def]
    """Copy lanes of ``other`` into the window; group ``first`` begins at the returned bit.

    ``halo`` has the words before and after ``other``, (colours, words), and the bit at which the layer before begins.
    """
    # Bits of ``flat`` are lanes of the other colour; at the ends of the lattice, layers come from the halo:
    #
    #     lane    start                                128 first                         stop
    #     flat    | 1 to 64 spare lanes | layer before | lanes of n groups | layer after |
    #             |<---------- WORD margin ----------->|
    #
    #     window  | even words of flat | odd words of flat | flat, as long as both |
    _, layer, lanes = lanes_of(sides)
    halves, margin = window.size // 4, layer // WORD + 1
    flat = window[2 * halves :]
    start = 2 * WORD * first - WORD * margin  # first lane of the window
    stop = min(2 * WORD * (first + n), lanes) + layer
    # Whole words within the lattice.
    low, high = max(start, 0) // WORD, (min(stop, lanes) + WORD - 1) // WORD
    flat[low - start // WORD : high - start // WORD] = other[low:high]
    # Before lane 0: the end of the layer before, from the halo.
    if start < 0:
        begin = max(start, -layer)
        copy_bits(-begin, halo[0][colour], halo[2] + layer + begin, flat, begin - start)
    # After the last lane: the beginning of the layer after.
    if stop > lanes:
        copy_bits(stop - lanes, halo[1][colour], 0, flat, lanes - start)
    # Half 0 of all groups becomes contiguous, and half 1 too.
    even, odd = window[:halves], window[halves : 2 * halves]
    for k in range(halves):
        even[k], odd[k] = flat[2 * k], flat[2 * k + 1]
    return WORD * margin


@part
def words_from(window, word, n):  # type: ignore[no-untyped-def]
    """Return every other word of a window from a word on; they are contiguous there."""
    place = word % 2 * (window.size // 4) + word // 2
    return window[place : place + n]


@part
def near(row, n, window, at, w):  # type: ignore[no-untyped-def]
    """Copy the lanes of a window from bit ``at`` on into a row of scratch."""
    # 64 lanes from bit ``down`` of a word on are the top of this word and the bottom of the next one:
    #
    #     word          | 63 ... down | down - 1 ... 0 |    >> down
    #     word + 1      | 63 ... down | down - 1 ... 0 |    << (64 - down), as two shifts: a shift by 64 is undefined
    down = np.uint64(at % WORD)
    up = np.uint64(WORD - 1) - down
    for half in range(2):
        word = at // WORD + half
        low, high = words_from(window, word, n), words_from(window, word + 1, n)
        for q in range(n):
            w[row + half * BATCH + q] = (low[q] >> down) | ((high[q] << ONE) << up)


@part
def near_of_two(row, n, window, at, there, mask, m, w):  # type: ignore[no-untyped-def]
    """Copy lanes from bit ``at`` on or, where ``mask`` (halves, groups) from ``m`` on is set, from ``there`` on."""
    down, other_down = np.uint64(at % WORD), np.uint64(there % WORD)
    up, other_up = np.uint64(WORD - 1) - down, np.uint64(WORD - 1) - other_down
    for half in range(2):
        word, other, masks = at // WORD + half, there // WORD + half, mask[half, m : m + n]
        low, high = words_from(window, word, n), words_from(window, word + 1, n)
        other_low, other_high = words_from(window, other, n), words_from(window, other + 1, n)
        for q in range(n):
            zero = (low[q] >> down) | ((high[q] << ONE) << up)
            one = (other_low[q] >> other_down) | ((other_high[q] << ONE) << other_up)
            w[row + half * BATCH + q] = mux(masks[q], zero, one)


@part
def near_in_row(n, window, at, width, flip, masks, m, w):  # type: ignore[no-untyped-def]
    """Fill slot 3: the lane after, or the lane before where x is even, with rows as rings."""
    # After: at + 1, but the last site of a row takes the first. Before: at - 1, but the first takes the last.
    near_of_two(NEAR + 3 * ROW, n, window, at + 1, at + 1 - width, masks[2], m, w)
    near_of_two(NEAR + 4 * ROW, n, window, at - 1, at - 1 + width, masks[1], m, w)
    for half in range(2):
        # Sites at odd x take the lane after. Colours alternate, so colour 1 uses the complement of the mask.
        odd = masks[0, half, m : m + n]
        for q in range(n):
            e = half * BATCH + q
            w[NEAR + 3 * ROW + e] = mux(odd[q] ^ flip, w[NEAR + 4 * ROW + e], w[NEAR + 3 * ROW + e])


@part
def gather_near(colour, n, window, at, sides, masks, m, w):  # type: ignore[no-untyped-def]
    """Fill the slots with the neighbours' words of n groups, which begin at bit ``at`` of the window."""
    width, height, depth = sides
    plane = width * height
    # Slot 2: the same lane of the other colour.
    near(NEAR + 2 * ROW, n, window, at, w)
    # Slot 3: the lane before or after; it uses row 4 as scratch, so it comes before slot 4.
    near_in_row(n, window, at, width, ZERO - np.uint64(colour), masks, m, w)
    if depth > 1:
        # Slots 0 and 1: a row back or on. The first and the last row of a plane find theirs at its other end.
        near_of_two(NEAR, n, window, at - width, at + plane - width, masks[3], m, w)
        near_of_two(NEAR + ROW, n, window, at + width, at - plane + width, masks[4], m, w)
        # Slots 4 and 5: a plane back or on; halos continue the lattice, so there are no seams.
        near(NEAR + 4 * ROW, n, window, at - plane, w)
        near(NEAR + 5 * ROW, n, window, at + plane, w)
    else:
        # Square lattice: rows are the layers, and halos continue them.
        near(NEAR, n, window, at - width, w)
        near(NEAR + ROW, n, window, at + width, w)


@part
def apply_signs(slots, first, n, signs, w):  # type: ignore[no-untyped-def]
    """Flip neighbours across negative couplings; ``signs`` are (slot, words)."""
    for k in range(slots):
        sign = signs[k][2 * first : 2 * (first + n)]
        for half in range(2):
            for q in range(n):
                w[NEAR + k * ROW + half * BATCH + q] ^= sign[2 * q + half]


@part
def load(colour, first, n, own, window, at, sides, seams, signs, w):  # type: ignore[no-untyped-def]
    """Load the spins of a batch and its neighbours, with signs of couplings applied; return the number of slots.

    Group ``first`` begins at bit ``at`` of the window.
    """
    slots = 6 if sides[2] > 1 else 4
    for half in range(2):
        for q in range(n):
            w[SPIN + half * BATCH + q] = own[2 * (first + q) + half]
    gather_near(colour, n, window, at, sides, seams[0], first % seams[1], w)
    if signs.size:
        apply_signs(slots, first, n, signs[colour], w)
    return slots


@part
def count_lattice(w, room, state, halo, sides, seams, signs, index, parts):  # type: ignore[no-untyped-def]
    """Do ``count_site`` with scratch and a window."""
    (window, served), groups = room, state.shape[1] // 2
    _, _, lanes = lanes_of(sides)
    up, unsatisfied, up_first = ZERO, ZERO, ZERO
    start, stop = groups * index // parts, groups * (index + 1) // parts
    for colour in range(2):
        for k in range(2 * start, 2 * stop):
            up += set_bits(state[colour, k])
        if colour == 0:
            up_first = up
    # Every bond has one end of colour 0: its sites and their slots count each bond once.
    for chunk in range(start, stop, served):
        of_chunk = min(served, stop - chunk)
        at = fill_window(window, chunk, of_chunk, state[1], halo, 1, sides)
        for first in range(chunk, chunk + of_chunk, BATCH):
            n = min(BATCH, chunk + of_chunk - first)
            slots = load(0, first, n, state[0], window, at + 2 * WORD * (first - chunk), sides, seams, signs, w)
            if first + n == groups:
                for half in range(2):
                    used = in_use(2 * (groups - 1) + half, lanes)
                    e = half * BATCH + n - 1
                    for k in range(slots):  # a lane without a site gets neighbours equal to itself
                        w[NEAR + k * ROW + e] = mux(used, w[SPIN + e], w[NEAR + k * ROW + e])
            for k in range(slots):
                for half in range(2):
                    for q in range(n):
                        unsatisfied += set_bits(unlike(k, half * BATCH + q, w))
    return np.int64(up), np.int64(unsatisfied), np.int64(up_first)


@kernel
def count_site(state, halo, sides, seams, signs, index, parts):  # type: ignore[no-untyped-def]
    """Count spins +1, unsatisfied bonds (each has one end of colour 0) and spins +1 of colour 0, of one replica.

    Only part ``index`` of ``parts`` of each colour's groups is counted. Arguments as in ``sweep_site``.
    """
    w, room = np.empty(WIDE_WORDS, np.uint64), window_of(sides, state.shape[1] // 2)
    return count_lattice(w, room, state, halo, sides, seams, signs, index, parts)


@kernel
def count_lattices(sides, seams, signs, weights, constants, state, first, numbers):  # type: ignore[no-untyped-def]
    """Count ``state`` (samples, replicas, colours, words) into ``numbers`` (numbers, samples, replicas).

    ``weights`` (numbers, 3) weight the counts of ``count_site``; ``constants`` (numbers,) are added. ``first`` is the
    number of the first sample; the list of all samples may repeat.
    """
    w, room = np.empty(WIDE_WORDS, np.uint64), window_of(sides, state.shape[3] // 2)
    _, layer, lanes = lanes_of(sides)
    for k in range(state.shape[0]):
        negative = signs[(first + k) % signs.shape[0]]
        for r in range(state.shape[1]):
            lattice = state[k, r]
            halo = (lattice, lattice, lanes - layer)
            sums = count_lattice(w, room, lattice, halo, sides, seams, negative, 0, 1)
            for number in range(numbers.shape[0]):
                of_all = constants[number]
                for each in range(3):
                    of_all += weights[number, each] * sums[each]
                numbers[number, k, r] = of_all


class Halo:
    """Layers beside a lattice: its own layers, as it is periodic, or for a slab the layers of the neighbouring slabs.

    ``words`` are (samples, replicas, colours, words). A colour has ``layer`` sites in a layer and ``lanes`` sites in
    all; both fill whole words in a slab. ``group`` has the slabs in order; None for whole lattices.
    """

    def __init__(self, words: Words, layer: int, lanes: int, group: Group | None) -> None:
        self._words, self._edge, self._first, self.group = words, layer // WORD, lanes - layer, group
        samples, replicas, colours = words.shape[:3]
        self._copies = np.empty((colours, 2, samples, replicas, self._edge) if group is not None else 0, np.uint64)

    def fetch(self, colour: int) -> None:
        """Get the present layers of a colour; all slabs must call this at once."""
        if self.group is not None:
            mine = self._words[:, :, colour]
            first, last = (np.ascontiguousarray(mine[..., at]) for at in (slice(self._edge), slice(-self._edge, None)))
            self.group.ring(first, last, *self._copies[colour])

    def of(self, sample: int, replica: int) -> tuple[Words, Words, int]:
        """Return words with the layers before and after, (2, words), and the bit at which the layer before begins."""
        if self.group is None:
            return self.periodic(self._words[sample, replica], self._first)
        before, after = (self._copies[:, side, sample, replica] for side in range(2))
        return before, after, 0

    @staticmethod
    def periodic(lattice: Words, first: int) -> tuple[Words, Words, int]:
        """Return the result of ``of`` for a whole lattice, whose last layer begins with lane ``first``."""
        return lattice, lattice, first


_AT_ONCE: Final = 2**22  # approximate couplings that a thread has in memory


def can_be_held(sizes: Sizes) -> bool:
    """Return True if couplings have one magnitude, the field is uniform and the lattice is periodic of even sides.

    Models of space and time use other layouts: no code compares the slices of site-packed spins yet.
    """
    lattice = sizes.lattice
    if lattice is None or not lattice.sides_are_even or sizes.slices > 1 or sizes.in_terms:
        return False
    return sizes.one_magnitude and sizes.one_field


MOST_REPLICAS: Final = 1  # replicas per sample if rows do not fill groups; more are replica-packed
LEAST_SITES: Final = 32  # least sites of such a lattice: with fewer, under an eighth of the lanes are used


def suits(sizes: Sizes, replicas: int) -> bool:
    """Return True if a model ``can_be_held`` and has one replica or a lattice with ``rows_can_be_packed``."""
    if sizes.lattice is None or not can_be_held(sizes):
        return False
    return sizes.lattice.rows_can_be_packed or (replicas <= MOST_REPLICAS and sizes.sites >= LEAST_SITES)


@kernel
def _fill_signs(sides, first, stop, bonds, signs, slab):  # type: ignore[no-untyped-def]
    """Set ``signs`` (colour, slot, word) of one sample from row ``first`` up to ``stop`` of the whole lattice.

    ``bonds`` (axis, x odd, word) has one bit per site, for its bond along the axis, in arrays for even x and for odd x.
    It covers the layer before these rows, then these rows. ``slab`` is the number of the first row in ``signs``.

    The bond before a site belongs to x - 1: it has the same bit number if x is odd, else the bit number before.
    """
    # A row of colour 0 or 1 has ``width`` sites, x = 2 i + odd. Bits of ``bonds``, row by row, begin a layer earlier:
    #
    #     | layer before (``before`` rows) | row first | row first + 1 | ...     each row: bits i = 0 ... width - 1
    #
    # Slots: 0 y - 1, 1 y + 1, 2 and 3 along x, 4 z - 1, 5 z + 1. A bond belongs to its end of lower coordinate.
    dimension, width = len(sides), sides[0] // 2
    before = sides[1] if dimension == 3 else 1
    for colour in range(2):
        own = signs[colour]
        for row in range(first, stop):
            y, to = row % sides[1], (row - slab) * width
            odd, line = (y + row // sides[1] + colour) % 2, row - first + before
            # Row 0 of a plane has its bond to y - 1 in the last row of the same plane.
            at, above = line * width, line + (sides[1] - 1 if y == 0 and dimension == 3 else -1)
            copy_bits(width, bonds[1, odd], above * width, own[0], to)
            copy_bits(width, bonds[1, odd], at, own[1], to)
            # Slot 2 joins x = 2 i and 2 i + 1; this bond belongs to the even end.
            copy_bits(width, bonds[0, 0], at, own[2], to)
            # Slot 3 of an odd x is its own bond; an even x uses the bond of lane i - 1, in a ring.
            if odd:
                copy_bits(width, bonds[0, 1], at, own[3], to)
            else:
                copy_bits(1, bonds[0, 1], at + width - 1, own[3], to)
                copy_bits(width - 1, bonds[0, 1], at, own[3], to + 1)
            if dimension == 3:
                copy_bits(width, bonds[2, odd], at - sides[1] * width, own[4], to)
                copy_bits(width, bonds[2, odd], at, own[5], to)


def build_signs(model: Ising, rows: range) -> npt.NDArray[np.uint64]:
    """Signs of couplings, uint64 (1 or samples, colour, slot, word), set where J < 0; no slots if no J is negative.

    ``rows`` are the rows of the requested sites, numbered through all planes. They form whole planes.
    """
    assert model.lattice is not None  # noqa: S101  (checked by the caller)
    shape = signs_shape(model, rows)
    if model.extreme_couplings[0] >= 0:
        return np.empty((1, shape[1], 0, shape[3]), np.uint64)
    signs = np.zeros(shape, np.uint64)
    if model.one_coupling:
        signs[...] = ALL
        return signs
    sides = model.lattice.shape
    layer, width = prod(sides[1:-1]), sides[0] // 2  # rows of a layer
    step = layer * max(1, _AT_ONCE // (len(sides) * sides[0] * layer))
    step *= WORD // gcd(WORD, step * width)  # threads must not share a word

    def fill(sample: int, first: int) -> None:
        stop = min(first + step, rows.stop)
        _fill_signs(sides, first, stop, _negative_bonds(model, sample, first - layer, stop), signs[sample], rows.start)

    tasks = product(range(len(signs)), range(rows.start, rows.stop, step))
    Threads().run((partial(fill, *task) for task in tasks), signs.size // 2)
    return signs


def signs_shape(model: Ising, rows: range) -> tuple[int, ...]:
    """Shape of the signs of these rows, (1 or samples, colour, slot, word)."""
    assert model.lattice is not None  # noqa: S101  (likewise)
    sides = model.lattice.shape
    return model.coupling_rows, 2, 2 * len(sides), 2 * site_groups(sides[0] * len(rows))


def _negative_bonds(model: Ising, sample: int, first: int, stop: int) -> npt.NDArray[np.uint64]:
    """Bits (axis, x odd, word) of the bonds of rows, set where J < 0; rows below 0 wrap around."""
    assert model.lattice is not None  # noqa: S101  (likewise)
    dimension, half = model.lattice.dimension, model.lattice.shape[0] // 2
    bits = (stop - first) * half
    whole = np.zeros((dimension, 2, -(-bits // WORD) * WORD), np.bool_)
    negative = whole[..., :bits]
    pieces = [(max(0, first), negative[..., max(0, -first) * half :])]
    if first < 0:
        pieces.append((prod(model.lattice.shape[1:]) + first, negative[..., : -first * half]))
    for row, piece in pieces:
        number = 2 * dimension * half * row
        if model.drawn is not None and model.are_yet_to_draw:
            for axis, odd in product(range(dimension), range(2)):
                drawn = piece[axis, odd].view(np.int8)
                model.drawn.draw(drawn, sample, number + dimension * odd + axis, 2 * dimension)
                np.less(drawn, 0, out=piece[axis, odd])
        else:
            given = model.couplings[sample, number : number + piece.size].reshape(-1, 2, dimension)
            np.less(given.transpose(2, 1, 0), 0, out=piece)
    return np.packbits(whole, axis=-1, bitorder="little").view("<u8").astype(np.uint64, copy=False)
