"""Signs of the couplings of site-packed lattices, which lie like their spins, and the models that can be packed so."""

from __future__ import annotations

from functools import partial
from itertools import product
from math import prod
from typing import Final

import numpy as np
import numpy.typing as npt

from spinsim.engine.update import Outline
from spinsim.machine.compiled import kernel
from spinsim.machine.threads import Threads
from spinsim.model.ising import Ising
from spinsim.packing import site_shape

_AT_ONCE: Final = 2**22  # couplings that a thread has in memory, about


def suits(outline: Outline) -> bool:
    """Return True if couplings have one magnitude, the field is uniform and the lattice's ``rows_can_be_packed``.

    Models of space and time are left to others: nothing compares the slices of site-packed spins yet.
    """
    lattice = outline.lattice
    if lattice is None or not lattice.rows_can_be_packed or outline.slices > 1 or outline.in_terms:
        return False
    return outline.one_magnitude and outline.one_field


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
