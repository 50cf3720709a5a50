"""A word holds 64 sites of one replica: of one row and colour, ``words[replica, colour, row, group of 128, half]``.

Signs of couplings lie like spins, and every bond stands twice, once for the sites of each colour. The neighbours of a
site stand in slots: 0 and 1 are those at y - 1 and y + 1, 2 the one at the same place of the other colour's row, 3 the
other one along x, 4 and 5 those at z - 1 and z + 1. A site at x = 2 i has x + 1 in slot 2 and x - 1 in slot 3, one at
x = 2 i + 1 the other way round.

On the CPU a batch is up to 64 groups that follow one another in the rows of a colour. Its neighbours' words need no
list: those along y and z are the same groups of other rows, those along x the same group of the row's other colour, as
it is and shifted by one lane. They go into rows of scratch as those of metropolis/steps.py do.
"""

from __future__ import annotations

from functools import partial
from itertools import product
from math import prod
from typing import Final

import numpy as np
import numpy.typing as npt

from spinsim.engine.layouts.replica_packed import BATCH, ONE, ROW, ZERO
from spinsim.engine.measuring.cpu_comparison import HALF, transpose
from spinsim.engine.moves.metropolis.steps import NEAR, SPIN, WIDE_WORDS, mux, unlike
from spinsim.engine.update import Sizes
from spinsim.machine.compiled import kernel, part
from spinsim.machine.intrinsics import set_bits
from spinsim.machine.threads import Threads
from spinsim.model.ising import Ising
from spinsim.packing import site_shape
from spinsim.parallel.group import Group

Words = npt.NDArray[np.uint64]

LAST: Final = np.uint64(63)
UP: Final = NEAR + 6 * ROW  # the row that slot 6 has in the replica-packed update
EDGE: Final = UP + BATCH


@part
def copy(row, words, w):  # type: ignore[no-untyped-def]
    """Words (n, 2) that follow one another into one row of scratch."""
    for half in range(2):
        for q in range(words.shape[0]):
            w[row + half * BATCH + q] = words[q, half]


@part
def copy_turned(row, first, n, period, distance, words, w):  # type: ignore[no-untyped-def]
    """Groups ``distance`` after ``first``, ``first + 1``, ... in rings of ``period`` groups."""
    at = 0
    while at < n:
        place = (first + at) % period
        source = place + distance if place + distance < period else place + distance - period
        m = min(n - at, period - max(place, source))
        source += first + at - place
        copy(row + at, words[source : source + m], w)
        at += m


@part
def copy_groups(row, start, n, before, other, after, words):  # type: ignore[no-untyped-def]
    """Groups ``start`` on, counted from the first of ``other``, which lies between ``before`` and ``after``."""
    edge, groups = before.shape[0], other.shape[0]
    if start >= 0 and start + n <= groups:
        copy(row, other[start : start + n], words)
        return
    first = min(n, max(0, -start))
    last = min(n, max(0, start + n - groups))
    if first > 0:
        copy(row, before[edge + start : edge + start + first], words)
    copy(row + first, other[start + first : start + n - last], words)
    if last > 0:
        copy(row + n - last, after[start + n - last - groups : start + n - groups], words)


@part
def find_edges(other, colour, first, n, sides, w):  # type: ignore[no-untyped-def]
    """Prepare ``shift``: a mask of groups whose lanes look at the next lane, and the words beside them.

    UP gets all bits set for such a group, none where lanes look at the one before; EDGE the word that has what the last
    or the first lane looks at.
    """
    width, height, _ = sides
    row = first // width
    g, y = first - row * width, row % height
    up = (y + row // height + colour) % 2
    for q in range(n):
        after = g + 1 if g + 1 < width else 0
        before = g - 1 if g > 0 else width - 1
        line = first + q - g
        w[UP + q] = ZERO - np.uint64(up)
        w[EDGE + q] = other[line + after, 0] if up else other[line + before, 1]
        g = after
        if g == 0:
            y = y + 1 if y + 1 < height else 0
            up ^= np.int64(y > 0)  # the first row of a plane is like the last of the one before


@part
def shift(row, n, w):  # type: ignore[no-untyped-def]
    """Slot 2's words moved by one lane, up or down, into another row."""
    for q in range(n):
        low, high, up, edge = w[NEAR + 2 * ROW + q], w[NEAR + 2 * ROW + BATCH + q], w[UP + q], w[EDGE + q]
        w[row + q] = mux(up, (low << ONE) | (edge >> LAST), (low >> ONE) | (high << LAST))
        w[row + BATCH + q] = mux(up, (high << ONE) | (low >> LAST), (high >> ONE) | (edge << LAST))


@part
def gather_near(other, before, after, colour, first, n, sides, w):  # type: ignore[no-untyped-def]
    """The neighbours' words of groups ``first`` to ``first + n - 1`` into rows NEAR on, in the order of the slots."""
    width, height, depth = sides
    plane = width * height
    if depth > 1:
        copy_turned(NEAR, first, n, plane, plane - width, other, w)
        copy_turned(NEAR + ROW, first, n, plane, width, other, w)
        copy_groups(NEAR + 4 * ROW, first - plane, n, before, other, after, w)
        copy_groups(NEAR + 5 * ROW, first + plane, n, before, other, after, w)
    else:
        copy_groups(NEAR, first - width, n, before, other, after, w)
        copy_groups(NEAR + ROW, first + width, n, before, other, after, w)
    copy(NEAR + 2 * ROW, other[first : first + n], w)
    find_edges(other, colour, first, n, sides, w)
    shift(NEAR + 3 * ROW, n, w)


@part
def apply_signs(slots, first, n, signs, w):  # type: ignore[no-untyped-def]
    """Neighbours beyond negative couplings count with the opposite spin; ``signs`` (slot, group, 2)."""
    for k in range(slots):
        sign = signs[k][first : first + n]
        for half in range(2):
            for q in range(n):
                w[NEAR + k * ROW + half * BATCH + q] ^= sign[q, half]


@part
def load(colour, first, n, own, other, before, after, sides, signs, w):  # type: ignore[no-untyped-def]
    """Spins of a batch and its neighbours as the couplings see them; the number of slots."""
    slots = 6 if sides[2] > 1 else 4
    copy(SPIN, own[first : first + n], w)
    gather_near(other, before, after, colour, first, n, sides, w)
    if signs.size:
        apply_signs(slots, first, n, signs[colour], w)
    return slots


@kernel
def count_site(state, halo, sides, signs, index, parts):  # type: ignore[no-untyped-def]
    """Spins +1, unsatisfied bonds (each has one end of colour 0) and spins +1 of colour 0, of one replica.

    Of each colour's groups those of part ``index`` of ``parts`` are counted. Arguments as in ``sweep_site``.
    """
    w = np.empty(WIDE_WORDS, np.uint64)
    groups = state.shape[1]
    up, unsatisfied, up_first = ZERO, ZERO, ZERO
    start, stop = groups * index // parts, groups * (index + 1) // parts
    for colour in range(2):
        for i in range(start, stop):
            up += set_bits(state[colour, i, 0]) + set_bits(state[colour, i, 1])
        if colour == 0:
            up_first = up
    for first in range(start, stop, BATCH):
        n = min(BATCH, stop - first)
        slots = load(0, first, n, state[0], state[1], halo[0][1], halo[1][1], sides, signs, w)
        for k in range(slots):
            for half in range(2):
                for q in range(n):
                    unsatisfied += set_bits(unlike(k, half * BATCH + q, w))
    return np.int64(up), np.int64(unsatisfied), np.int64(up_first)


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


class Halo:
    """The layers beside a lattice: its own, which is periodic, or of a slab those of the slabs beside it.

    ``words`` are (samples, replicas, colours, groups, 2); ``group`` has the slabs in order, None where lattices are
    whole.
    """

    def __init__(self, words: Words, edge: int, group: Group | None) -> None:
        self._words, self._edge, self.group = words, edge, group
        samples, replicas, colours = words.shape[:3]
        self._copies = np.empty((colours, 2, samples, replicas, edge, 2) if group is not None else 0, np.uint64)

    def fetch(self, colour: int) -> None:
        """Get the present layers of a colour; all slabs do so at once."""
        if self.group is not None:
            mine = self._words[:, :, colour]
            first, last = (np.ascontiguousarray(mine[:, :, at]) for at in (slice(self._edge), slice(-self._edge, None)))
            self.group.ring(first, last, *self._copies[colour])

    @staticmethod
    def periodic(lattice: Words, edge: int) -> tuple[Words, Words]:
        """The layers before and after a whole lattice (2, groups, 2), which are its last and its first."""
        return lattice[:, -edge:], lattice[:, :edge]

    def of(self, sample: int, replica: int) -> tuple[Words, Words]:
        """The layers before and after, each (2, groups, 2)."""
        if self.group is None:
            return self.periodic(self._words[sample, replica], self._edge)
        before, after = (self._copies[:, side, sample, replica] for side in range(2))
        return before, after


_AT_ONCE: Final = 2**22  # couplings that a thread has in memory, about


def suits(sizes: Sizes) -> bool:
    """Return True if couplings have one magnitude, the field is uniform and the lattice's ``rows_can_be_packed``.

    Models of space and time are left to others: nothing compares the slices of site-packed spins yet.
    """
    lattice = sizes.lattice
    if lattice is None or not lattice.rows_can_be_packed or sizes.slices > 1 or sizes.in_terms:
        return False
    return sizes.one_magnitude and sizes.one_field


@kernel
def _fill_signs(sides, first, stop, bonds, signs, slab):  # type: ignore[no-untyped-def]
    """``signs`` (colour, slot, row, group, half) of one sample from row ``first`` up to ``stop`` of the whole lattice.

    ``bonds`` (axis, x odd, line, word) has a bit for each site with x even, then odd, of the layer before these rows
    and of these rows: that of its bond along the axis. ``slab`` is the number of the first row that ``signs`` has.

    A site has the bond of x - 1 before it, which is that of the same bit where x is odd, else that of the bit before.
    """
    dimension, words = len(sides), 2 * signs.shape[3]
    before = sides[1] if dimension == 3 else 1
    for colour in range(2):
        for row in range(first, stop):
            y = row % sides[1]
            odd, line = (y + row // sides[1] + colour) % 2, row - first + before
            above = line + (sides[1] - 1 if y == 0 and dimension == 3 else -1)
            for w in range(words):
                group, half = w // 2, w % 2
                word = bonds[0, 1, line, w]
                if not odd:
                    word = (word << np.uint64(1)) | (bonds[0, 1, line, w - 1 if w else words - 1] >> np.uint64(63))
                signs[colour, 0, row - slab, group, half] = bonds[1, odd, above, w]
                signs[colour, 1, row - slab, group, half] = bonds[1, odd, line, w]
                signs[colour, 2, row - slab, group, half] = bonds[0, 0, line, w]
                signs[colour, 3, row - slab, group, half] = word
                if dimension == 3:
                    signs[colour, 4, row - slab, group, half] = bonds[2, odd, line - sides[1], w]
                    signs[colour, 5, row - slab, group, half] = bonds[2, odd, line, w]


def build_signs(model: Ising, rows: range) -> npt.NDArray[np.uint64]:
    """Signs uint64 (1 or samples, colour, slot, row, group, half), set where J < 0; without slots where none is.

    ``rows`` are those of the sites whose bonds are wanted, among those of all planes; whole planes.
    """
    assert model.lattice is not None  # noqa: S101  (its caller has looked)
    shape = signs_shape(model, rows)
    if model.extreme_couplings[0] >= 0:
        return np.empty((1, shape[1], 0, *shape[3:]), np.uint64)
    signs = np.empty(shape, np.uint64)
    if model.one_coupling:
        signs[...] = np.uint64(2**64 - 1)
        return signs
    sides = model.lattice.shape
    layer = prod(sides[1:-1])  # its rows
    step = layer * max(1, _AT_ONCE // (len(sides) * sides[0] * layer))

    def fill(sample: int, first: int) -> None:
        stop = min(first + step, rows.stop)
        _fill_signs(sides, first, stop, _negative_bonds(model, sample, first - layer, stop), signs[sample], rows.start)

    tasks = product(range(len(signs)), range(rows.start, rows.stop, step))
    Threads().run((partial(fill, *task) for task in tasks), signs.size // 2)
    return signs


def signs_shape(model: Ising, rows: range) -> tuple[int, ...]:
    """(1 or samples, colour, slot, row, group, half) of the signs of these rows."""
    assert model.lattice is not None  # noqa: S101  (likewise)
    sides = model.lattice.shape
    colours, _, *words = site_shape(sides)
    return model.coupling_rows, colours, 2 * len(sides), len(rows), *words


def _negative_bonds(model: Ising, sample: int, first: int, stop: int) -> npt.NDArray[np.uint64]:
    """Bits (axis, x odd, line, word) of the bonds of rows, set where J < 0; the last row comes before row 0."""
    assert model.lattice is not None  # noqa: S101  (likewise)
    dimension, half = model.lattice.dimension, model.lattice.shape[0] // 2
    negative = np.empty((dimension, 2, (stop - first) * half), np.bool_)
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
    words = np.packbits(negative.reshape(dimension, 2, stop - first, half), axis=-1, bitorder="little").view("<u8")
    return words.astype(np.uint64, copy=False)
