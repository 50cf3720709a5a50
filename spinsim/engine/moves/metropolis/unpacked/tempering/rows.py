"""Bonds in rows whose signs pick an exact sum of their couplings: what rounds of a GPU count energies from."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim.cuda.records import ADDRESS, SIZE, struct_type
from spinsim.engine.moves.metropolis.unpacked.cuda_words import SlotPlan
from spinsim.engine.moves.metropolis.unpacked.slots import ROW, SLOTS

DIGIT_BITS: Final = 24  # of each digit but the highest of couplings of 64 bits, so that six of them fit 32 bits
COUNTED_BONDS: Final = struct_type(near=ADDRESS, couplings=ADDRESS, digits=SIZE, stride=SIZE, rows=SIZE)


class CountedRows(NamedTuple):
    """Each bond once, at its end of the higher place, and fields, which are bonds to a neighbour that is always +1.

    Attributes:
        near: Places of neighbours, uint32 (rows, ``ROW``): that behind the last for a field; behind them, and in slots
            of no bond, the row's own place.
        couplings: J or h in quanta in digits, int32 (digits, 1 or samples, rows, ``ROW``), 0 in slots of no bond.
    """

    near: npt.NDArray[np.uint32]
    couplings: npt.NDArray[np.int32]


def counted_rows(plan: SlotPlan) -> CountedRows:
    """The rows of an unpacked run."""
    start, _, near, couplings, fields = plan.exact()
    sites = len(start) - 1
    place, in_field = np.repeat(np.arange(sites), np.diff(start)), np.flatnonzero(fields.any(axis=0))
    bonds = np.flatnonzero(near < place)
    own, other = np.append(place[bonds], in_field), np.append(near[bonds], np.full(in_field.size, sites))
    size = max(len(couplings), len(fields))
    of_bonds, of_fields = (np.broadcast_to(a, (size, a.shape[1])) for a in (couplings[:, bonds], fields[:, in_field]))
    values = np.concatenate([of_bonds, of_fields], axis=1)
    order = np.argsort(own, kind="stable")
    own, other, values = own[order], other[order], values[:, order]
    count = np.bincount(own, minlength=sites)
    slot = np.arange(own.size) - np.repeat(np.cumsum(count) - count, count)
    depth = -(-count // SLOTS)
    row = (np.cumsum(depth) - depth)[own] + slot // SLOTS
    places = np.repeat(np.repeat(np.arange(sites), depth)[:, None], ROW, axis=1).astype(np.uint32)
    places[row, slot % SLOTS] = other
    digits = [values] if values.dtype == np.int32 else [values & (2**DIGIT_BITS - 1), values >> DIGIT_BITS]
    in_rows: npt.NDArray[Any] = np.zeros((len(digits), size, *places.shape), np.int32)
    for to, digit in zip(in_rows, digits, strict=True):
        to[:, row, slot % SLOTS] = digit
    return CountedRows(places, in_rows)
