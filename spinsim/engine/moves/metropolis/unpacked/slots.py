"""Bonds in rows of up to six, whose signs pick a sum of their couplings: what unpacked sweeps of a GPU read.

Sites of a colour stand in the order of their numbers of rows, most first. The first rows of all of them are a level,
the second ones the next, and so on: a level is as long as there are sites with so many rows, and threads side by side
read rows side by side. A field is a bond to a neighbour that is always +1 and stands behind all sites.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from spinsim.cuda.records import struct_type
from spinsim.engine.moves.metropolis.unpacked.plan import UnpackedPlan

SLOTS: Final = 6  # bonds of a row
ROW: Final = 8  # numbers of a row in memory; the seventh coupling is the error of a site's sum
EXACT: Final = 2.0**24  # sums of integers below it are exact in single precision
ROUNDINGS: Final = 12  # of a sum of one row: of couplings, of six additions, of temperatures and products
LEVEL: Final = struct_type(offset=np.uint32, count=np.uint32)


@dataclass(frozen=True)
class SlotRows:
    """Rows of slots of all sites, and the order of the sites.

    Attributes:
        order: Sites, colour by colour.
        near: Places of neighbours, uint32 (rows, ``ROW``): that behind the last for a field, the site's own in slots of
            no bond.
        couplings: J or h in quanta, float32 (1 or samples, rows, ``ROW``), 0 in slots of no bond.
        levels: ``LEVEL`` of each level, those of a colour and term side by side, colour by colour.
        level_start: Where those of each colour and term begin, and how many there are.
    """

    order: npt.NDArray[np.uint32]
    near: npt.NDArray[np.uint32]
    couplings: npt.NDArray[np.float32]
    levels: npt.NDArray[np.void]
    level_start: npt.NDArray[np.uint32]


class Placing:
    """Where the rows of an unpacked run stand.

    Attributes:
        order: As ``SlotRows`` has it.
        place: Of each site in it.
        levels: As ``SlotRows`` has them.
        level_start: Likewise.
        own: The place of each row's site.
    """

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
    """The rows of an unpacked run."""
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
