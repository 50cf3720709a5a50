"""Signs of the couplings of site-packed lattices, which lie like their spins, and the models that can be packed so."""

from __future__ import annotations

from functools import partial
from itertools import product
from math import prod
from typing import Final

import numpy as np
import numpy.typing as npt

from spinsim import packing
from spinsim.engine.update import Outline
from spinsim.machine.compiled import kernel, part
from spinsim.machine.threads import Threads
from spinsim.model.ising import Ising
from spinsim.packing import site_shape

_AT_ONCE: Final = 2**22
"""Couplings that a thread has in memory, about."""


def suits(outline: Outline) -> bool:
    """Return True if couplings have one magnitude, the field is uniform and the lattice's ``rows_can_be_packed``.

    Models of space and time are left to others: nothing compares the slices of site-packed spins yet.
    """
    lattice = outline.lattice
    if lattice is None or not lattice.rows_can_be_packed or outline.slices > 1 or outline.in_terms:
        return False
    return outline.one_magnitude and outline.one_field


def pack(model: Ising, spins: npt.NDArray[np.int8]) -> npt.NDArray[np.uint64]:
    """Words (replicas, colours, rows, groups in a row, 2) of configurations (replicas, sites)."""
    assert model.lattice is not None  # noqa: S101  (``suits`` has looked)
    return np.stack([packing.pack_sites(one, model.lattice.shape) for one in spins])


@part
def _bonds_of_row(slot, odd, y, line, sides):  # type: ignore[no-untyped-def]
    """Axis of a slot's bonds, the line of the sites that number them, and the step along x to these."""
    if slot == 0:
        line += sides[1] - 1 if y == 0 and len(sides) == 3 else -1
    elif slot == 4:
        line -= sides[1]
    axis = (1, 1, 0, 0, 2, 2)[slot]
    step = -1 if (slot == 2 and odd) or (slot == 3 and not odd) else 0
    return axis, line, step


@kernel
def _fill_signs(sides, first, stop, couplings, signs, slab):  # type: ignore[no-untyped-def]
    """``signs`` (colour, slot, row, group, half) of one sample from row ``first`` up to ``stop`` of the whole lattice.

    ``couplings`` are those of the sites of the layer before these rows and of these rows; ``slab`` is the number of the
    first row that ``signs`` has.
    """
    dimension, width = len(sides), sides[0]
    before = sides[1] if dimension == 3 else 1
    for colour in range(2):
        for slot in range(2 * dimension):
            for row in range(first, stop):
                y = row % sides[1]
                odd = (y + row // sides[1] + colour) % 2
                axis, line, step = _bonds_of_row(slot, odd, y, row - first + before, sides)
                for group in range(signs.shape[3]):
                    for half in range(2):
                        word = np.uint64(0)
                        x = 128 * (2 * group + half) + odd + step
                        for bit in range(64):
                            at = x + 2 * bit
                            site = width * line + (at if at >= 0 else at + width)
                            word |= np.uint64(couplings[dimension * site + axis] < 0) << np.uint64(bit)
                        signs[colour, slot, row - slab, group, half] = word


def build_signs(model: Ising, rows: range) -> npt.NDArray[np.uint64] | None:
    """Signs uint64 (1 or samples, colour, slot, row, group, half), set where J < 0; None where none is.

    Args:
        rows: Of the sites whose bonds are wanted, among those of all planes; whole planes.
    """
    assert model.lattice is not None  # noqa: S101  (its caller has looked)
    if model.extreme_couplings[0] >= 0:
        return None
    signs = np.empty(signs_shape(model, rows), np.uint64)
    if model.one_coupling:
        signs[...] = np.uint64(2**64 - 1)
        return signs
    sides = model.lattice.shape
    layer = prod(sides[1:-1])  # its rows
    step = layer * max(1, _AT_ONCE // (len(sides) * sides[0] * layer))

    def fill(sample: int, first: int) -> None:
        stop = min(first + step, rows.stop)
        _fill_signs(sides, first, stop, _couplings(model, sample, first - layer, stop), signs[sample], rows.start)

    tasks = product(range(len(signs)), range(rows.start, rows.stop, step))
    Threads().run((partial(fill, *task) for task in tasks), signs.size // 2)
    return signs


def signs_shape(model: Ising, rows: range) -> tuple[int, ...]:
    """(1 or samples, colour, slot, row, group, half) of the signs of these rows."""
    assert model.lattice is not None  # noqa: S101  (likewise)
    sides = model.lattice.shape
    colours, _, *words = site_shape(sides)
    return model.coupling_rows, colours, 2 * len(sides), len(rows), *words


def _couplings(model: Ising, sample: int, first: int, stop: int) -> npt.NDArray[np.int8]:
    """Numbers below 0 where J of the bonds of rows is, from row ``first`` on; the last row comes before row 0."""
    assert model.lattice is not None  # noqa: S101  (likewise)
    of_row = model.bonds // prod(model.lattice.shape[1:])
    out = np.empty((stop - first) * of_row, np.int8)
    pieces = [(max(0, first), out[max(0, -first) * of_row :])]
    if first < 0:
        pieces.append((model.bonds // of_row + first, out[: -first * of_row]))
    for row, piece in pieces:
        if model.drawn is not None and model.are_yet_to_draw:
            model.drawn.draw(piece, sample, row * of_row)
        else:
            given = model.couplings[sample, row * of_row : row * of_row + len(piece)]
            piece[:] = given if given.dtype == np.int8 else -(given < 0).view(np.int8)
    return out
