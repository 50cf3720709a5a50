"""Lattices in rows: a word has 32 sites of a row, or of several short rows, so that clusters grow by whole words.

A lattice has rows where sites L u to L u + L - 1 lie side by side, and each bond joins neighbours of a row or equal
positions of two rows. A row has ceil(L / 32) words, or else 32 / G bits of a word, G the largest power of two that
leaves room for L and divides the number of rows U. Row u is then part u // (U / G) of word u % (U / G), so that
neighbouring rows lie at the same bits of two words. Across a border between parts they lie a part further.

A GPU visits 32 words at a time, which do not see what is reached in each other until the next visit. So rows near each
other are visited one after the other: words are numbered by the rows' places in blocks of 2^b x 2^c rows, as many as
there are visits, then by blocks.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim.engine.moves.houdayer.move import Bonds
from spinsim.model.ising import Ising

WIDTH: Final = 32
NOBODY: Final = 2**32 - 1  # a position without site
TURN_BITS: Final = 5
SLOTS: Final = 4

Words = npt.NDArray[np.uint32]


class Rows(NamedTuple):
    """Words of rows."""

    site_at: Words  # site at each position, (words, 32), or ``NOBODY``
    near: Words  # words to which bonds lead, (words, 4), each as 128 times its number, and how many bits further
    # words before and behind in the row, (words, 2), likewise, with the last bit of the former and its own
    beside: Words
    slots: int  # how many of the four are used
    allowed: Words  # positions that have the bond of a slot, (1 or samples, slots, words)
    # positions that have a bond with the one before in their row, (1 or samples, words); before the first position
    # comes the last one
    along: Words
    words_a_row: int  # words of a row
    last: int  # bit of the last position of a row, counted from its first in its last word
    low: int  # first positions of rows, or of words of longer rows, as bits of a word

    @property
    def is_masked(self) -> bool:
        """True if sites of a word differ in which bonds they have with other rows."""
        itself = np.arange(len(self.site_at)) << TURN_BITS + 2
        sites = np.bitwise_or.reduce(_bit(np.arange(WIDTH)) * (self.site_at != NOBODY).astype(np.uint32), axis=1)
        return bool(np.any((self.near.T[: self.slots] != itself) & (self.allowed != sites)))


def _bit(number: npt.NDArray[np.int64]) -> Words:
    return (np.uint64(1) << number.astype(np.uint64)).astype(np.uint32)


def _numbered(rows: int, sides: tuple[int, ...], words: int) -> npt.NDArray[np.int64]:
    """Numbers of so many rows, of ``words`` in all, on a lattice of these sides across the rows, the first fastest."""
    left, phase = np.arange(rows), np.zeros(rows, np.int64)
    sides = (*sides[:-1], rows)
    bits = (-(-words // WIDTH) - 1).bit_length()
    for axis, side in enumerate(sides):
        own = bits // len(sides) + (axis < bits % len(sides))
        phase = phase << own | left % side % 2**own
        left = left // side
    number = np.empty(rows, np.int64)
    number[np.argsort(phase, kind="stable")] = np.arange(rows)
    return number


def rows_of(model: Ising, bonds: Bonds) -> Rows | None:
    """Rows of a model's lattice, or of sites in time; None where there are none."""
    lattice, sites = model.lattice, model.sites
    length = lattice.shape[0] if lattice else model.graph.slices
    if length < 3 or sites % length:
        return None
    rows, parts = sites // length, max(1, WIDTH // 2 ** (length - 1).bit_length())
    while rows % parts:
        parts //= 2
    a_row, beside, wide = -(-length // WIDTH), rows // parts, WIDTH // parts
    row, x = np.divmod(np.arange(sites), length)
    number = _numbered(beside, lattice.shape[1:] if lattice else (), beside * a_row)
    word, bit = number[row % beside] * a_row + x // WIDTH, row // beside * wide + x % WIDTH
    words = beside * a_row
    site_at = np.full((words, WIDTH), NOBODY, np.uint32)
    site_at[word, bit] = np.arange(sites)

    one, other = (np.concatenate([model.graph.edges[:, end] for end in ends]) for ends in ((0, 1), (1, 0)))
    in_row, step = row[one] == row[other], x[one] - x[other]
    if not np.where(in_row, np.isin(np.abs(step), (1, length - 1)), step == 0).all():
        return None
    across = ~in_row
    turn = (bit[other] - bit[one]) % WIDTH
    leads = (word[one] * words + word[other]) * WIDTH + turn
    kinds = np.unique(leads[across])
    slot = np.arange(len(kinds)) - np.searchsorted(kinds // (words * WIDTH), kinds // (words * WIDTH))
    slots = int(slot.max(initial=-1)) + 1
    if slots > SLOTS:
        return None
    code = np.arange(words) << TURN_BITS + 2
    near = np.repeat(code[:, None], SLOTS, axis=1)
    near[kinds // (words * WIDTH), slot] = code[kinds // WIDTH % words] + kinds % WIDTH
    in_row, top = np.arange(words).reshape(-1, a_row), np.full(a_row, WIDTH - 1)
    top[-1] = (length - 1) % WIDTH
    beside = [code[np.roll(in_row, by, axis=1)] + last for by, last in ((1, np.roll(top, 1)), (-1, top))]

    allowed = np.zeros((len(bonds.start), slots, words), np.uint32)
    along = np.zeros((len(bonds.start), words), np.uint32)
    for k, start in enumerate(bonds.start):
        one, other = np.repeat(np.arange(sites), np.diff(start)), bonds.neighbour[start[0] : start[-1]]
        in_row, step = row[one] == row[other], x[one] - x[other]
        before = in_row & ((step == 1) | (step == 1 - length))
        np.bitwise_or.at(along[k], word[one[before]], _bit(bit[one[before]]))
        one, other = one[~in_row], other[~in_row]
        leads = (word[one] * words + word[other]) * WIDTH + (bit[other] - bit[one]) % WIDTH
        np.bitwise_or.at(allowed[k], (slot[np.searchsorted(kinds, leads)], word[one]), _bit(bit[one]))
    low = sum(1 << part * wide for part in range(parts))
    near, besides = near.astype(np.uint32), np.stack(beside, axis=-1).reshape(words, 2).astype(np.uint32)
    return Rows(site_at, near, besides, slots, allowed, along, a_row, int(top[-1]), low)
