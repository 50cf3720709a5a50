"""Site-packed words on the CPU: the words beside those of a batch, the layers beside a lattice, and counting.

A batch is up to 64 groups that follow one another in the rows of a colour. Its neighbours' words need no list: those
along y and z are the same groups of other rows, those along x the same group of the row's other colour, as it is and
shifted by one lane. They go into rows of scratch as those of packed/steps.py do.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from spinsim.engine.layouts.replica_packed.cpu_counting import BATCH, ONE, ROW, ZERO
from spinsim.engine.measuring.cpu_comparison import HALF, transpose
from spinsim.engine.moves.metropolis.packed.steps import NEAR, SPIN, WIDE_WORDS, mux, unlike
from spinsim.machine.compiled import kernel, part
from spinsim.machine.intrinsics import set_bits
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
    """Spins +1, unsatisfied bonds and spins +1 of colour 0, of one replica.

    Of each colour's groups those of part ``index`` of ``parts`` are counted.

    Every bond has one end of colour 0. Arguments as in ``sweep_site``.
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

    Args:
        words: The state as (samples, replicas, colours, groups, 2).
        group: Who has the slabs, in their order; None where the lattice is whole.
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
