"""Bonds in rows of up to six, whose signs pick a sum of their couplings: what unpacked kernels of a GPU read.

Sites of a colour stand in the order of their numbers of rows, most first. The first rows of all of them are a level,
the second ones the next, and so on: a level is as long as there are sites with so many rows, and threads side by side
read rows side by side. A field is a bond to a neighbour that is always +1 and stands behind all sites.

Rounds of tempering in one launch count energies from rows of another kind, which have each bond once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim import packing
from spinsim.cuda.launch import ADDRESS, SIZE, struct_type
from spinsim.engine.dynamics import Dynamics
from spinsim.engine.measuring.sums import of_energies_and_up, of_energy_and_up
from spinsim.engine.moves.metropolis.unpacked.plan import UnpackedPlan
from spinsim.model.ising import Ising

SLOTS: Final = 6  # bonds of a row
ROW: Final = 8  # numbers of a row in memory; the seventh coupling is the error of a site's sum
EXACT: Final = 2.0**24  # sums of integers below it are exact in single precision
ROUNDINGS: Final = 12  # of a sum of one row: of couplings, of six additions, of temperatures and products
LEVEL: Final = struct_type(offset=np.uint32, count=np.uint32)


@dataclass(frozen=True)
class SlotRows:
    """Rows of slots of all sites, and the order of the sites."""

    order: npt.NDArray[np.uint32]  # sites, colour by colour
    # places of neighbours, uint32 (rows, ``ROW``): that behind the last for a field, the site's own in slots of no bond
    near: npt.NDArray[np.uint32]
    couplings: npt.NDArray[np.float32]  # J or h in quanta, float32 (1 or samples, rows, ``ROW``), 0 in slots of no bond
    levels: npt.NDArray[np.void]  # ``LEVEL`` of each level, those of a colour and term side by side, colour by colour
    level_start: npt.NDArray[np.uint32]  # where those of each colour and term begin, and how many there are


class Placing:
    """Where the rows of an unpacked run stand."""

    def __init__(self, plan: UnpackedPlan, depth: list[npt.NDArray[np.int64]]) -> None:
        sites, begin = plan.order.size, np.asarray(plan.colour_start)
        colour = np.empty(sites, np.int64)
        colour[plan.order] = np.repeat(np.arange(plan.colours), np.diff(begin))
        self.order = np.lexsort((*(-each for each in reversed(depth)), colour)).astype(np.uint32)
        self.place = np.empty(sites, np.int64)
        self.place[self.order] = np.arange(sites)
        self._colour, self._within = colour, self.place - begin[colour]
        levels: list[tuple[int, int]] = []
        own, self.level_start, rows = [np.empty(0, np.int64)], [0], 0
        self._offset = np.zeros((len(depth), plan.colours, max(1, *(int(each.max()) for each in depth))), np.int64)
        for c in range(plan.colours):
            for term, each in enumerate(depth):
                mine = each[self.order[begin[c] : begin[c + 1]]]
                for level in range(int(mine.max(initial=0))):
                    levels.append((rows, 1 + int(np.flatnonzero(mine > level)[-1])))
                    own.append(begin[c] + np.arange(levels[-1][1]))
                    self._offset[term, c, level], rows = rows, rows + levels[-1][1]
                self.level_start.append(len(levels))
        self.levels, self.own = np.array(levels, LEVEL), np.concatenate(own)

    def row(self, term: int, site: npt.NDArray[np.int64], slot: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The rows that have these slots of sites, counted within a term."""
        return np.asarray(self._offset[term, self._colour[site], slot // SLOTS] + self._within[site])


def slot_rows(plan: UnpackedPlan) -> SlotRows:
    bounds = [(plan.start[:-1], plan.middle), (plan.middle, plan.start[1:])][: plan.terms]
    in_field = plan.fields.any(axis=0)
    used = [stop - first + (in_field if term == 0 else 0) for term, (first, stop) in enumerate(bounds)]
    depth = [-(-each // SLOTS) for each in used]
    placing, sites = Placing(plan, depth), plan.order.size
    near = np.repeat(placing.own[:, None], ROW, axis=1).astype(np.uint32)
    couplings = np.zeros((max(len(plan.couplings), len(plan.fields)), *near.shape), np.float32)
    for term, (first, stop) in enumerate(bounds):
        degree = stop - first
        site = np.repeat(np.arange(sites), degree)
        slot = np.arange(site.size) - np.repeat(np.cumsum(degree) - degree, degree)
        at, row = np.repeat(first, degree) + slot, placing.row(term, site, slot)
        near[row, slot % SLOTS] = placing.place[plan.neighbour[at]]
        couplings[:, row, slot % SLOTS] = plan.couplings[:, at]
        sizes = np.stack([np.bincount(site, np.abs(of_sample[at]), sites) for of_sample in plan.couplings])
        if term == 0:
            there = np.flatnonzero(in_field)
            slot, row = degree[there] % SLOTS, placing.row(0, there, degree[there])
            near[row, slot] = sites
            couplings[:, row, slot] = plan.fields[:, there]
            sizes = sizes + np.abs(plan.fields)
        there = np.flatnonzero(depth[term])
        errors = np.where((sizes < EXACT) & (plan.terms == 1), 0.0, sizes * (ROUNDINGS + depth[term]) / EXACT)
        couplings[:, placing.row(term, there, 0 * there), SLOTS] = errors[:, there]
    start = np.array(placing.level_start, np.uint32)
    return SlotRows(placing.order, near, couplings, placing.levels, start)


class SlotPlan:
    """A run whose words a GPU holds in the order of its rows of slots.

    Attributes:
        batches: The rows, which know the order of the sites.
        observables: From energies, spins +1 and those of the first sublattice.
    """

    def __init__(self, model: Ising, replicas: int, dynamics: Dynamics) -> None:
        self.model, self.replicas, self.dynamics = model, replicas, dynamics
        self.plan = model.once(UnpackedPlan)
        self.batches: SlotRows = slot_rows(self.plan)
        self.shape = model.samples, packing.block_count(replicas), model.sites, 2
        self.observables = (of_energy_and_up if self.plan.terms == 1 else of_energies_and_up)(model, self.plan.first)

    def exact(self) -> tuple[npt.NDArray[Any], ...]:
        """Compressed rows of neighbours by places: start, middle, neighbours, couplings and fields."""
        plan, order = self.plan, self.batches.order
        degree = np.diff(plan.start)[order]
        start = np.append(0, np.cumsum(degree))
        at = np.repeat(plan.start[order] - start[:-1], degree) + np.arange(plan.neighbour.size)
        place = np.empty_like(order)
        place[order] = np.arange(order.size, dtype=order.dtype)
        middle = start[:-1] + (plan.middle - plan.start[:-1])[order]
        return start, middle, place[plan.neighbour[at]], plan.couplings[:, at], plan.fields[:, order]


DIGIT_BITS: Final = 24  # of each digit but the highest of couplings of 64 bits, so that six of them fit 32 bits
COUNTED_BONDS: Final = struct_type(near=ADDRESS, couplings=ADDRESS, digits=SIZE, stride=SIZE, rows=SIZE)


class CountedRows(NamedTuple):
    """Each bond once, at its end of the higher place, and fields, which are bonds to a neighbour that is always +1."""

    # places of neighbours, uint32 (rows, ``ROW``): that behind the last for a field; behind them, and in slots of no
    # bond, the row's own place
    near: npt.NDArray[np.uint32]
    # J or h in quanta in digits, int32 (digits, 1 or samples, rows, ``ROW``), 0 in slots of no bond
    couplings: npt.NDArray[np.int32]


def counted_rows(plan: SlotPlan) -> CountedRows:
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
