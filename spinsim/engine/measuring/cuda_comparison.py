"""Overlaps, link overlaps and modes on a GPU: kernels compare copies and leave what follows from their sums there."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim.cuda.device import multiprocessors, require_memory, shared_memory
from spinsim.cuda.launch import Launch
from spinsim.cuda.records import SIZE, address, record, struct_type
from spinsim.engine.ladder.cuda import CudaTempering
from spinsim.engine.measuring.correlations import Floats, Items, all_bonds, all_sites, by_kind, layers, waves
from spinsim.errors import InputError
from spinsim.model.ising import Ising

GRID_LIMIT: Final = 65535  # of a grid's y and z extents
THREADS: Final = 256
COMPARED: Final = 1024  # pairs of replicas, and replicas alone, that a thread block takes
COLUMN: Final = 33  # words of 32 replicas in shared memory
PARTS: Final = 4  # of a launch, at most
TILE: Final = 32  # items of a word
BLOCKS: Final = 3  # on one multiprocessor, as registers allow
SPARE_BYTES: Final = 4096  # of a block's share of shared memory, for the replicas it compares and the system
SUMS_BYTES: Final = 2**28  # of samples that are compared in one launch


class Part(NamedTuple):
    """Segments that are counted together.

    Attributes:
        segments: How many.
        size: Items of a segment.
        compared: Pairs of replicas, those of copies first.
        axis: The axis whose layers they are, or none.
        is_bonds: Whether items are bonds, else sites.
        is_linked: Whether bonds from each layer to the next are counted too.
    """

    segments: int
    size: int
    compared: int
    axis: int | None = None
    is_bonds: bool = False
    is_linked: bool = False


class Outcome(NamedTuple):
    """Where the sums of a part lie and where what follows from them goes, 0 where it is not asked for."""

    sums: int = 0
    links: int = 0
    segments: int = 0
    compared: int = 0
    size: int = 0
    totals: int = 0
    link_totals: int = 0
    wave: int = 0
    modes: int = 0


ITEMS: Final = struct_type(  # a part as the counting kernel reads it
    **dict.fromkeys(
        ("places", "sums", "links", "ends", "count", "size", "segments", "compared", "shares", "periodic"), SIZE
    )
)
COUNTED_PARTS: Final = struct_type(part=(ITEMS, PARTS))
OUTCOME: Final = struct_type(**dict.fromkeys(Outcome._fields, SIZE))
OUTCOMES: Final = struct_type(part=(OUTCOME, PARTS))


class Comparison(ABC):
    """What copies at equal temperatures of one ladder have in common.

    Args:
        device: Number of the device.
        model: What is simulated.
        tempering: Its ladder.
        full: Whether link overlaps and modes are asked for, not overlaps alone.

    Attributes:
        shape: (samples, pairs of copies, temperatures).
        compared: Pairs of replicas of a sample, and where there are modes each replica alone.
        axes: Of modes.
    """

    def __init__(self, device: int, model: Ising, tempering: CudaTempering, full: bool) -> None:
        import cupy

        self.device, self.model, self.tempering, self.full = device, model, tempering, full
        ladder = tempering.ladder
        self.shape = model.samples, len(tempering.copies), ladder.temperatures
        self._pairs = self.shape[1] * self.shape[2]
        self._sides = model.lattice.shape if full and model.lattice else ()
        self.axes = len(self._sides)
        self.compared = self._pairs + (ladder.replicas if self._sides else 0)
        self._waves = [cupy.asarray(of_axis) for of_axis in (waves(model.lattice) if full else [])]
        self.parts = self._make_parts()
        shapes = [(part.segments, part.compared) for part in self.parts]
        linked = [(part.segments, self._pairs if part.is_linked else 0) for part in self.parts]
        bytes_a_sample = 4 * sum(rows * columns for rows, columns in shapes + linked)
        self._together = min(model.samples, max(1, SUMS_BYTES // max(1, bytes_a_sample)))
        require_memory(device, self._together * bytes_a_sample, f"comparing copies of {model.name}")
        self.sums, self.links = (
            [cupy.empty((self._together, *shape), cupy.uint32) for shape in each] for each in (shapes, linked)
        )
        self._finish = Launch(device, "measure/overlaps.cu", "finish_sums", {
            "outcomes": np.zeros((), OUTCOMES), "axes": np.uint32(self.axes),
            "pairs": np.uint32(self._pairs), "first": np.uint32(0),
        })  # fmt: skip

    @abstractmethod
    def _make_parts(self) -> list[Part]:
        """What is counted."""

    @abstractmethod
    def _queue_sums(self, stream: Any, state: Any, pairs: npt.NDArray[np.void], first: int, samples: int) -> None:
        """Queue the sums of some samples' parts."""

    def _queue_totals(  # noqa: B027  (parts may hold them all)
        self, stream: Any, state: Any, pairs: npt.NDArray[np.void], overlaps: int, links: int
    ) -> None:
        """Queue what brings all samples' differing sites and bonds to totals at two addresses, beside the parts."""

    def queue(self, stream: Any, state: Any, to: dict[str, int]) -> None:
        """Queue the comparison of a state on the device.

        Args:
            stream: Where.
            state: Spins as the engine holds them.
            to: Addresses of ``holder``, which is read, of ``overlap`` and ``link_overlap``, which hold what they are
                where no site or bond differs, and of ``modes``, (samples, compared, axes).
        """
        overlaps, links, modes = to["overlap"], to["link_overlap"], to["modes"]
        pairs, at = self.tempering.pairs(to["holder"]), address(state)
        self._queue_totals(stream, at, pairs, overlaps, links)
        outcomes = [self._outcome(k, overlaps, links, modes) for k in range(len(self.parts))]
        outcomes += [Outcome()] * (PARTS - len(outcomes))
        for first in range(0, self.model.samples if self.parts and self.compared else 0, self._together):
            samples = min(self._together, self.model.samples - first)
            self._queue_sums(stream, at, pairs, first, samples)
            grid = -(-self.compared // THREADS), len(self.parts), samples
            self._finish(stream, grid, THREADS, outcomes=(outcomes,), first=first)

    def _outcome(self, number: int, overlaps: int, links: int, modes: int) -> Outcome:
        """What follows from the sums of a part; the first part holds all sites."""
        part = self.parts[number]
        wave, to = (0, 0) if part.axis is None else (address(self._waves[part.axis]), modes)
        return Outcome(
            sums=address(self.sums[number]), links=address(self.links[number]) if part.is_linked else 0,
            segments=part.segments, compared=part.compared, size=part.size,
            totals=links if part.is_bonds else overlaps if number == 0 else 0,
            link_totals=links if part.is_linked else 0, wave=wave, modes=to,
        )  # fmt: skip

    def by_kind(self, modes: Floats) -> tuple[Floats, Floats]:
        """Modes (samples, compared, axes) of pairs of copies and of copies."""
        if not self.axes:
            modes = np.empty((self.shape[0], self._pairs + self.tempering.ladder.replicas, 0))
        return by_kind(modes, self.shape)


class ReplicaComparison(Comparison):
    """Of replica-packed and unpacked spins.

    Args:
        kernel: Name of the counting kernel.
        width: Its arguments that say how wide a state is.
        columns: Of 32 replicas.
        place: Where each site stands; None: at its number.
        others: As for ``Comparison``.
    """

    def __init__(
        self,
        kernel: str,
        width: dict[str, np.uint32],
        columns: int,
        place: npt.NDArray[np.uint32] | None,
        *others: Any,
    ) -> None:
        import cupy

        super().__init__(*others)
        self._lists = [cupy.asarray(_placed(items.ends, place)) for items in self._items]
        self._chunks = -(-self.compared // COMPARED)
        room = shared_memory(self.device) - 4 * COMPARED
        self._tiles = max(2, min(room // BLOCKS - SPARE_BYTES, room) // (columns * 4 * COLUMN))
        shared = self._tiles * columns * 4 * COLUMN + 4 * min(COMPARED, self.compared)
        if shared > room or self._chunks > GRID_LIMIT:
            raise InputError(
                f"{self.tempering.ladder.replicas} replicas are too many for overlaps on this GPU: take fewer copies"
            )
        self._shares = self._share_out()
        periodic = bool(self.model.lattice and self.model.lattice.periodic)
        counted = [
            record(
                ITEMS, places=address(array), sums=address(sums), links=address(links) if part.is_linked else 0,
                ends=items.ends.shape[1], count=len(items.ends), size=items.size, segments=items.segments,
                compared=part.compared, shares=shares, periodic=periodic,
            ).item()
            for array, sums, links, items, part, shares in zip(
                self._lists, self.sums, self.links, self._items, self.parts, self._shares, strict=True
            )
        ]  # fmt: skip
        counted += [np.zeros((), ITEMS).item()] * (PARTS - len(counted))
        self._count = Launch(self.device, "measure/overlaps.cu", kernel, {
            "state": np.uint64(0), **width, "tiles": np.uint32(self._tiles), "first": np.uint32(0),
            "parts": record(COUNTED_PARTS, part=counted), "pairs": self.tempering.pairs(0),
        }, shared)  # fmt: skip

    def _make_parts(self) -> list[Part]:
        model, lattice = self.model, self.model.lattice
        if self._sides and lattice:
            self._items: list[Items] = [layers(lattice, axis) for axis in range(lattice.dimension)]
            linked = [bool(self._pairs) and side > 1 and lattice.joins_layers for side in self._sides]
            parts = [
                Part(items.segments, items.size, self.compared, axis, is_linked=linked[axis])
                for axis, items in enumerate(self._items)
            ]
            if not lattice.joins_layers:
                bonds = all_bonds(model)
                self._items.append(bonds)
                parts.append(Part(bonds.segments, bonds.size, self._pairs, is_bonds=True))
            return parts
        self._items = [all_sites(model), *([all_bonds(model)] if self.full else [])]
        return [
            Part(items.segments, items.size, self._pairs, is_bonds=items.ends.shape[1] == 2) for items in self._items
        ]

    def _share_out(self) -> list[int]:
        """Thread blocks of each part: as many as are there at once, if samples are not more."""
        groups = [-(-items.segments // max(1, TILE // items.size)) for items in self._items]
        wanted = BLOCKS * multiprocessors(self.device) // (self._together * max(1, self._chunks) * len(groups))
        return [max(1, min(several, wanted)) for several in groups]

    def _queue_sums(self, stream: Any, state: Any, pairs: npt.NDArray[np.void], first: int, samples: int) -> None:
        grid = sum(self._shares), self._chunks, samples
        self._count(stream, grid, THREADS, state=state, pairs=pairs, first=first)


def _placed(ends: npt.NDArray[np.int32], place: npt.NDArray[np.uint32] | None) -> npt.NDArray[np.int32]:
    """Sites as places in memory."""
    return np.ascontiguousarray(ends if place is None else place[ends].astype(np.int32))
