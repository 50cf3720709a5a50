"""Signs of a site-packed lattice's couplings: every bond stands twice, once for the sites of each colour.

The neighbours of a site stand in slots: 0 and 1 are those at y - 1 and y + 1, 2 the one at the same place of the other
colour's row, 3 the other one along x, 4 and 5 those at z - 1 and z + 1. A site at x = 2 i has x + 1 in slot 2 and x - 1
in slot 3, one at x = 2 i + 1 the other way round.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spinsim.machine.compiled import kernel, part
from spinsim.model.ising import Ising
from spinsim.packing import site_shape


@part
def _bonds_of_row(slot, odd, y, z, shape):  # type: ignore[no-untyped-def]
    """Axis of a slot's bonds, first site of the row that numbers them and the step along x to that site."""
    if slot == 0:
        y = (y if y > 0 else shape[1]) - 1
    elif slot == 4:
        z = (z if z > 0 else shape[2]) - 1
    axis = (1, 1, 0, 0, 2, 2)[slot]
    step = -1 if (slot == 2 and odd) or (slot == 3 and not odd) else 0
    return axis, shape[0] * (y + shape[1] * z), step


@kernel
def _fill_signs(shape, dimension, first_row, couplings, signs):  # type: ignore[no-untyped-def]
    """``signs`` (colour, slot, row, group, half) of one sample's bonds, from a row on; ``shape`` has three sides."""
    width = shape[0]
    for colour in range(2):
        for slot in range(2 * dimension):
            for row in range(signs.shape[2]):
                y, z = (first_row + row) % shape[1], (first_row + row) // shape[1]
                odd = (y + z + colour) % 2
                axis, first, step = _bonds_of_row(slot, odd, y, z, shape)
                for group in range(signs.shape[3]):
                    for half in range(2):
                        word = np.uint64(0)
                        x = 128 * (2 * group + half) + odd + step
                        for bit in range(64):
                            at = x + 2 * bit
                            site = first + (at if at >= 0 else at + width)
                            word |= np.uint64(couplings[dimension * site + axis] < 0) << np.uint64(bit)
                        signs[colour, slot, row, group, half] = word


def build_signs(model: Ising, rows: range) -> npt.NDArray[np.uint64] | None:
    """Signs uint64 (1 or samples, colour, slot, row, group, half), set where J < 0; None where none is.

    Args:
        model: On a lattice whose rows can be packed.
        rows: Of the sites whose bonds are wanted, among those of all planes.
    """
    assert model.lattice is not None  # noqa: S101  (its caller has looked)
    if model.extreme_couplings[0] >= 0:
        return None
    shape = model.lattice.shape
    signs = np.empty(signs_shape(model, rows), np.uint64)
    sides = (*shape, 1)[:3]
    for sample, of_sample in enumerate(signs):
        if model.one_coupling:
            of_sample[...] = np.uint64(2**64 - 1)
        else:
            _fill_signs(sides, len(shape), rows.start, _int8_row(model, sample), of_sample)
    return signs


def signs_shape(model: Ising, rows: range) -> tuple[int, ...]:
    """(1 or samples, colour, slot, row, group, half) of the signs of these rows."""
    assert model.lattice is not None  # noqa: S101  (likewise)
    shape = model.lattice.shape
    colours, _, *words = site_shape(shape)
    return model.coupling_rows, colours, 2 * len(shape), len(rows), *words


def _int8_row(model: Ising, sample: int) -> npt.NDArray[np.int8]:
    """Numbers of one sample's bonds that are below 0 where J is; drawn ones of large lattices are not kept."""
    if model.drawn is not None and model.are_yet_to_draw and not model.graph.is_listed:
        (drawn,) = model.drawn.of_samples(sample, sample + 1).rows(model.bonds)
        return np.asarray(drawn)
    row = model.couplings[sample]
    return np.ascontiguousarray(row if row.dtype == np.int8 else -(row < 0).view(np.int8))
