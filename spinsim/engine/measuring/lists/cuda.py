"""Comparing replica-packed and unpacked copies on a GPU by lists of sites and bonds."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from spinsim.cuda.device import multiprocessors, shared_memory
from spinsim.cuda.launch import Launch, address, record
from spinsim.engine.measuring.correlations import Items, all_bonds, all_sites, layers
from spinsim.engine.measuring.cuda_comparison import (
    BLOCKS,
    COLUMN,
    COMPARED,
    COUNTED_PARTS,
    GRID_LIMIT,
    ITEMS,
    PARTS,
    SPARE_BYTES,
    THREADS,
    TILE,
    TOTALS,
    Beside,
    Compared,
    Comparison,
    Part,
    PartSums,
    Struct,
)
from spinsim.engine.measuring.in_time.cuda import InTime
from spinsim.engine.measuring.in_time.items import pairs_in_time, slices
from spinsim.errors import InputError

TIME: Final = 0  # the axis of time of a lattice that has one; its layers are slices where a cell has one site


def compare_replicas(
    what: Compared,
    kernel: str,
    width: dict[str, np.uint32],
    columns: int,
    place: npt.NDArray[np.uint32] | None,
    in_time: InTime | None = None,
    products: Beside | None = None,
) -> Comparison:
    """Returns the comparison of replica-packed and unpacked spins.

    Args:
        what: What is compared.
        kernel: Name of the counting kernel.
        width: Its arguments that say how wide a state is.
        columns: Of 32 replicas.
        place: Where each site stands; None: at its number.
        in_time: What counts pairs in time; None: lists as for all else.
        products: What counts products of neighbours in space, if they are wanted.
    """
    items, parts = _listed(what)
    in_layers = any(part.are_slices for part in parts)
    more, of_time = _listed_in_time(what, what.times if in_time is None else (), in_layers)
    items, parts = items + more, parts + of_time
    held = PartSums(what, parts)
    return Comparison(what, held, ListCounting(what, held, items, kernel, width, columns, place), in_time, products)


def _listed(what: Compared) -> tuple[list[Items], list[Part]]:
    """Lists of sites and bonds, and what is counted of each."""
    model, lattice = what.model, what.model.lattice
    if not what.sides or not lattice:
        items = [all_sites(model), *([all_bonds(model)] if what.full else [])]
        return items, [Part(each.segments, each.size, what.pairs, is_bonds=each.ends.shape[1] == 2) for each in items]
    items = [layers(lattice, axis) for axis in range(lattice.dimension)]
    linked = [bool(what.pairs) and side > 1 and lattice.joins_layers for side in what.sides]
    parts = [
        Part(
            each.segments, each.size, what.count, axis, is_linked=linked[axis],
            are_slices=bool(what.powers) and axis == TIME and each.segments == model.graph.slices,
        )
        for axis, each in enumerate(items)
    ]  # fmt: skip
    if not lattice.joins_layers:
        bonds = all_bonds(model)
        items.append(bonds)
        parts.append(Part(bonds.segments, bonds.size, what.pairs, is_bonds=True))
    return items, parts


def _listed_in_time(what: Compared, times: tuple[int, ...], in_layers: bool) -> tuple[list[Items], list[Part]]:
    """Lists of slices, where they are no layers, and of pairs in time, and what is counted of each."""
    items, parts = [], []
    if what.powers and not in_layers:
        items.append(slices(what.model.graph))
        parts.append(Part(items[-1].segments, items[-1].size, what.count, are_slices=True))
    if times:
        items.append(pairs_in_time(what.model.graph.world_lines(), times))
        parts.append(Part(items[-1].segments, items[-1].size, what.count, are_times=True))
    return items, parts


class ListCounting:
    """``CopyCounting`` by lists of sites and bonds, of which 32 at a time become a word for each replica.

    Args:
        what: What is compared.
        held: The sums of its parts.
        items: The lists, one for each part.
        kernel: As for ``compare_replicas``, and so on.
        width: Arguments of the kernel.
        columns: Of 32 replicas.
        place: Where each site stands.

    Raises:
        InputError: for more replicas than a thread block can compare.
    """

    def __init__(
        self,
        what: Compared,
        held: PartSums,
        items: list[Items],
        kernel: str,
        width: dict[str, np.uint32],
        columns: int,
        place: npt.NDArray[np.uint32] | None,
    ) -> None:
        import cupy

        self._lists = [cupy.asarray(_placed(each.ends, place)) for each in items]
        self._chunks = -(-what.count // COMPARED)
        room = shared_memory(what.device) - 4 * COMPARED
        tiles = max(2, min(room // BLOCKS - SPARE_BYTES, room) // (columns * 4 * COLUMN))
        shared = tiles * columns * 4 * COLUMN + 4 * min(COMPARED, what.count)
        if shared > room or self._chunks > GRID_LIMIT:
            raise InputError(
                f"{what.tempering.ladder.replicas} replicas are too many for overlaps on this GPU: take fewer copies"
            )
        self._shares = self._share_out(what, held, items)
        periodic = bool(what.model.lattice and what.model.lattice.periodic)
        counted = [
            record(
                ITEMS, places=address(array), sums=0 if sums is None else address(sums),
                ends=each.ends.shape[1], count=len(each.ends), size=each.size, segments=each.segments,
                compared=part.compared, shares=shares, are_bonds=part.is_bonds, linked=part.is_linked,
                periodic=periodic,
            ).item()
            for array, sums, each, part, shares in zip(
                self._lists, held.sums, items, held.parts, self._shares, strict=True
            )
        ]  # fmt: skip
        counted += [np.zeros((), ITEMS).item()] * (PARTS - len(counted))
        self._count = Launch(what.device, "measuring/overlaps.cu", kernel, {
            "state": np.uint64(0), **width, "tiles": np.uint32(tiles), "first": np.uint32(0),
            "parts": record(COUNTED_PARTS, part=counted), "totals": np.zeros((), TOTALS),
            "pairs": what.tempering.pairs(0),
        }, shared)  # fmt: skip

    def _share_out(self, what: Compared, held: PartSums, items: list[Items]) -> list[int]:
        """Returns how many thread blocks take each part: all are there at once, if samples are not more."""
        groups = [-(-each.segments // max(1, TILE // each.size)) for each in items]
        wanted = BLOCKS * multiprocessors(what.device) // (held.together * max(1, self._chunks) * len(groups))
        return [max(1, min(several, wanted)) for several in groups]

    def queue_totals(self, stream: Any, state: Any, pairs: Struct, totals: Struct) -> None:
        """Nothing to queue: the parts hold all sites and bonds."""

    def queue_parts(self, stream: Any, state: Any, pairs: Struct, totals: Struct, samples: range) -> None:
        """Queue the sums of some samples' parts, and what they take from the totals."""
        grid = sum(self._shares), self._chunks, len(samples)
        self._count(stream, grid, THREADS, state=state, pairs=pairs, totals=totals, first=samples.start)


def _placed(ends: npt.NDArray[np.int32], place: npt.NDArray[np.uint32] | None) -> npt.NDArray[np.int32]:
    """Returns the places in memory of these sites."""
    return np.ascontiguousarray(ends if place is None else place[ends].astype(np.int32))
