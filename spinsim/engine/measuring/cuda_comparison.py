"""Overlaps, link overlaps and modes on a GPU; kernels compare copies, using lists of sites and bonds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim.cuda.device import cupy, multiprocessors, require_memory, shared_memory
from spinsim.cuda.launch import SIZE, Launch, address, record, struct_type
from spinsim.engine.measuring.correlations import (
    Correlations,
    Items,
    Quantities,
    all_bonds,
    all_bonds_in_space,
    all_sites,
    by_kind,
    ends_of_bonds,
    layers,
    lines_of_bonds,
    modes_by_kind,
    pairs_in_time,
    slices,
    waves,
)
from spinsim.engine.moves.exchange_cuda import CudaTempering
from spinsim.errors import InputError
from spinsim.model.ising import Ising

TIME_THREADS: Final = 256
WORLD_LINES: Final = 8  # most lines that a thread block holds in shared memory
MOST_SLICES: Final = 2048
LINE_WORDS: Final = 4608  # words of 128 replicas per thread block: one line twice, or all lines of 512 slices


def fits_in_time(slices: int) -> bool:
    """Return True if a thread block can hold a world line."""
    return 1 < slices <= MOST_SLICES


class InTime:
    """Counts pairs in time whose spins, or products of neighbouring spins, differ.

    ``places`` (lines, slices) are the places of the spins or products; ``shape`` is (samples, blocks).
    """

    def __init__(
        self, device: int, places: npt.NDArray[np.integer], times: tuple[int, ...], shape: tuple[int, int],
        replicas: int, pairs: npt.NDArray[np.void],
    ) -> None:  # fmt: skip
        (lines, slices), sites = places.shape, np.uint32(places.size)
        stretch = slices + max(times)
        together = min(lines, WORLD_LINES, LINE_WORDS // stretch)
        totals = cupy.zeros((*shape, len(times), 128), cupy.uint32)
        self._shape, self._chunks, self._replicas, self._times = shape, -(-lines // together), replicas, len(times)
        self._count = Launch(device, "measuring/in_time.cu", "correlate_in_time", {
            "state": np.uint64(0), "sites": sites, "places": cupy.asarray(places.astype(np.int32)),
            "lines": np.uint32(lines), "slices": np.uint32(slices), "stretch": np.uint32(stretch),
            "together": np.uint32(together), "totals": totals,
            "times": cupy.asarray(np.array(times, np.uint32)), "count": np.uint32(len(times)),
        }, 16 * together * stretch)  # fmt: skip
        self._sort = Launch(device, "measuring/in_time.cu", "sort_in_time", {
            "totals": totals, "blocks": np.uint32(shape[1]), "sites": sites,
            "count": np.uint32(len(times)), "pairs": pairs, "replicas": np.uint32(replicas), "in_time": np.uint64(0),
        })  # fmt: skip

    def queue(self, stream: Any, state: int, pairs: npt.NDArray[np.void], to: int) -> None:
        """Queue writing the correlations (samples, replicas, times) of a state at an address to the address ``to``."""
        samples, blocks = self._shape
        self._count(stream, (self._chunks, blocks, samples), TIME_THREADS, state=state)
        grid = -(-self._replicas // TIME_THREADS), samples, self._times
        self._sort(stream, grid, TIME_THREADS, pairs=pairs, in_time=to)


GRID_LIMIT: Final = 65535  # largest y and z extent of a grid
THREADS: Final = 256
COMPARED: Final = 1024  # pairs of replicas, and unpaired replicas, per thread block
COLUMN: Final = 33  # words of 32 replicas in shared memory
PARTS: Final = 8  # most parts of a launch: five axes, bonds, slices, times
TILE: Final = 32  # items of a word
BLOCKS: Final = 3  # blocks per multiprocessor, as registers allow
SPARE_BYTES: Final = 4096  # part of a block's shared memory for the list of replicas and for the system
SUMS_BYTES: Final = 2**28  # most bytes of the sums of samples compared in one launch
AT_ONCE: Final = 10  # consecutive measurements compared and added up together
MOST_AT_ONCE: Final = 64  # the same limit for a small problem
SMALL_BYTES: Final = 2**22  # most bytes of their states, of their numbers, or of their sums


class Part(NamedTuple):
    """Segments that are counted together; segments without a meaning need only their total."""

    segments: int
    size: int  # items of a segment
    compared: int  # pairs of replicas, pairs of copies first
    axis: int | None = None  # axis whose layers are the segments, or None
    is_bonds: bool = False  # True if items are bonds, else sites
    is_linked: bool = False  # True to also count bonds from each layer to the next
    are_slices: bool = False  # True if segments are slices; powers of their sums are added up
    are_times: bool = False  # True if segments are pairs in time; each sum is a result

    @property
    def is_total(self) -> bool:
        """True if only the total is needed."""
        return self.axis is None and not (self.are_slices or self.are_times)


class Outcome(NamedTuple):
    """Addresses of a part's sums and of the results derived from them; 0 if not requested."""

    sums: int = 0
    segments: int = 0
    compared: int = 0
    size: int = 0
    totals: int = 0
    wave: int = 0
    modes: int = 0
    powers: int = 0
    in_time: int = 0


ITEMS: Final = struct_type(  # a part as read by the counting kernel
    **dict.fromkeys(("places", "sums", "ends", "count", "size", "segments", "compared", "shares"), SIZE),
    **dict.fromkeys(("are_bonds", "linked", "periodic"), SIZE),
)
TOTALS: Final = struct_type(overlap=SIZE, links=SIZE)
SUCCESSIVE: Final = struct_type(first=np.uint32, samples=np.uint32, words=SIZE)
COUNTED_PARTS: Final = struct_type(part=(ITEMS, PARTS))
OUTCOME: Final = struct_type(**dict.fromkeys(Outcome._fields, SIZE))
OUTCOMES: Final = struct_type(part=(OUTCOME, PARTS))


class Compared:
    """Choice of the copies of a ladder that are compared, and of the quantities.

    Attributes:
        full: True if more than overlaps is requested.
        shape: (samples, pairs of copies, temperatures).
        sides: Sides of the lattice if there are modes, else empty.
        powers: Number of powers of slice sums: 2, or 0 without time.
        count: Pairs of replicas of a sample, plus its single replicas if spins have modes, slices or times.
    """

    def __init__(self, device: int, model: Ising, tempering: CudaTempering, wanted: Quantities) -> None:
        self.device, self.model, self.tempering, self.wanted = device, model, tempering, wanted
        self.full, self.times = full, times = wanted.full, wanted.times
        ladder = tempering.ladder
        self.shape = model.samples, len(tempering.copies), ladder.temperatures
        self.pairs = self.shape[1] * self.shape[2]
        self.sides = model.embedding.shape if full and model.embedding else ()
        self.powers = 2 if full and model.graph.slices > 1 else 0
        has_unpaired = (self.sides and wanted.magnetization_modes) or self.powers or times
        self.count = self.pairs + (ladder.replicas if has_unpaired else 0)

    @property
    def unpaired(self) -> int:
        """Number of single replicas of a sample, the last of ``count``."""
        return self.count - self.pairs


class PartSums:
    """Sums of parts on the device, for the ``together`` samples that are compared in one launch.

    Each part has uint32 (samples, segments, compared), or None if only its total is needed. The samples belong to one
    measurement, or to ``measurements`` consecutive ones that are compared together.
    """

    def __init__(self, compared: Compared, parts: list[Part], in_succession: bool = False) -> None:
        bytes_a_sample = 4 * sum(part.segments * part.compared for part in parts if not part.is_total)
        small = SMALL_BYTES // max(1, bytes_a_sample * compared.model.samples)
        measurements = max(AT_ONCE, min(MOST_AT_ONCE, small)) if in_succession else 1
        self.parts, self.measurements = parts, measurements
        self.together = min(
            measurements * compared.model.samples, max(1, SUMS_BYTES // max(1, bytes_a_sample)), GRID_LIMIT
        )
        require_memory(compared.device, self.together * bytes_a_sample, f"comparing copies of {compared.model.name}")
        self.sums: list[Any] = [
            None if part.is_total else cupy.empty((self.together, part.segments, part.compared), cupy.uint32)
            for part in parts
        ]


Struct = npt.NDArray[np.void]  # a struct as kernels take it


class Counting:
    """Counts the items at which copies differ; each layout has its own class."""

    def queue_totals(self, stream: Any, state: Any, pairs: Struct, totals: Struct, count: int, words: int) -> None:
        """Queue the totals that do not follow from parts; by default parts contain all sites and bonds.

        They cover all samples of ``count`` measurements, whose numbers are ``words`` words apart.
        """

    def queue_parts(
        self, stream: Any, state: Any, pairs: Struct, totals: Struct, samples: range, which: Struct
    ) -> None:
        """Queue the sums of some samples' parts, and subtract their share from the totals.

        ``samples`` are numbered through all measurements; ``which`` states them for kernels.
        """
        raise NotImplementedError


class Comparison:
    """Comparison of copies at equal temperatures of one ladder."""

    def __init__(
        self, compared: Compared, part_sums: PartSums, counting: Counting,
        in_time: InTime | None = None, products: Products | None = None,
    ) -> None:  # fmt: skip
        self._in_time, self._products = in_time, products
        self.compared, self._part_sums, self._counting, self.axes = compared, part_sums, counting, len(compared.sides)
        self._waves = [cupy.asarray(of_axis) for of_axis in (waves(compared.model.embedding) if compared.full else [])]
        self._finish = Launch(compared.device, "measuring/overlaps.cu", "finish_sums", {
            "outcomes": np.zeros((), OUTCOMES), "axes": np.uint32(self.axes),
            "pairs": np.uint32(compared.pairs), "which": np.zeros((), SUCCESSIVE),
        })  # fmt: skip

    @property
    def at_once(self) -> int:
        """Most consecutive measurements that are compared together."""
        return self._part_sums.measurements

    def queue(self, stream: Any, state: Any, to: dict[str, int], count: int = 1, words: int = 0) -> None:
        """Queue the comparison of ``count`` consecutive states on the device.

        Args:
            to: Addresses of arrays of the first measurement. ``holder`` is read. ``overlap`` and ``link_overlap`` must
                hold their values for equal copies. ``modes`` (samples, compared, axes), ``powers`` (samples, compared,
                2) and ``in_time`` (samples, replicas, times) are written.
            words: Distance in words from a number of one measurement to the same number of the next.
        """
        compared, parts, together = self.compared, self._part_sums.parts, self._part_sums.together
        pairs, at = compared.tempering.pairs(to["holder"]), address(state)
        totals = record(TOTALS, overlap=to["overlap"], links=to["link_overlap"])
        self._counting.queue_totals(stream, at, pairs, totals, count, words)
        if self._in_time is not None:
            self._in_time.queue(stream, at, pairs, to["in_time"])
        if self._products is not None:
            self._products.queue(stream, at, to)
        outcomes = [self._outcome(k, to) for k, part in enumerate(parts) if not part.is_total]
        wanted = len(outcomes)
        outcomes += [Outcome()] * (PARTS - wanted)
        all_samples = count * compared.model.samples if parts and compared.count else 0
        for first in range(0, all_samples, together):
            samples = range(first, min(first + together, all_samples))
            which = record(SUCCESSIVE, first=first, samples=compared.model.samples, words=words)
            self._counting.queue_parts(stream, at, pairs, totals, samples, which)
            if wanted:
                grid = -(-compared.count // THREADS), wanted, len(samples)
                self._finish(stream, grid, THREADS, outcomes=(outcomes,), which=which)

    def _outcome(self, number: int, to: dict[str, int]) -> Outcome:
        """Results derived from the sums of a part; the first part has all sites."""
        part = self._part_sums.parts[number]
        wave, modes = (0, 0) if part.axis is None else (address(self._waves[part.axis]), to["modes"])
        return Outcome(
            sums=address(self._part_sums.sums[number]), segments=part.segments, compared=part.compared, size=part.size,
            totals=0 if number else to["overlap"], wave=wave, modes=modes,
            powers=to["powers"] if part.are_slices else 0, in_time=to["in_time"] if part.are_times else 0,
        )  # fmt: skip

    def correlations(self, measured: dict[str, Any]) -> Correlations:
        compared, ladder = self.compared, self.compared.tempering.ladder
        before = measured["in_time"].shape[:-2]  # (samples,), or (measurements, samples)
        none = (*before, compared.pairs + ladder.replicas, 0)
        modes = measured["modes"] if self.axes else np.empty(none)
        powers = measured["powers"] if compared.powers else np.empty(none, np.int64)
        by_place = *before, ladder.copies, ladder.temperatures
        in_time = measured["in_time"].reshape(*by_place, -1 if compared.times else 0)
        of_spins = compared.wanted.magnetization_modes
        kinds = *modes_by_kind(modes, compared.shape, ladder.copies, of_spins), *by_kind(powers, compared.shape)
        even = measured["even_in_time"].reshape(*by_place, -1 if compared.wanted.even else 0)
        return Correlations(
            measured["overlap"], measured["link_overlap"], *kinds, in_time, even, measured["link_overlap_in_space"]
        )


PRODUCTS_THREADS: Final = 256


@dataclass(frozen=True)
class Layout:
    """Layout of spins on a device, which products share."""

    kernel: str  # name of the kernel that makes products
    compares: str  # name of the kernel that compares lists of them
    shape: tuple[int, int]  # (samples, blocks)
    words: int  # words of 32 bits of a site in a block
    width: dict[str, np.uint32]  # kernel arguments for the width of a state
    columns: int  # columns of 32 replicas
    place: npt.NDArray[np.uint32] | None  # place of each site; None: its number


class Products:
    """Makes the products of both ends of each bond in space at each slice, and compares and correlates them."""

    def __init__(self, compared: Compared, layout: Layout) -> None:
        graph, (samples, blocks) = compared.model.graph, layout.shape
        ends = ends_of_bonds(graph)
        count, size = len(ends), samples * blocks * len(ends) * layout.words
        require_memory(compared.device, 4 * size, f"products of neighbours of {compared.model.name}")
        self._products = cupy.empty(size, cupy.uint32)
        places = ends if layout.place is None else layout.place[ends].astype(np.int32)
        self._grid = -(-count // PRODUCTS_THREADS), blocks, samples
        self._make = Launch(compared.device, "measuring/products.cu", layout.kernel, {
            "state": np.uint64(0), "sites": np.uint32(compared.model.sites), "words": np.uint32(layout.words),
            "ends": cupy.asarray(np.ascontiguousarray(places)), "bonds": np.uint32(count), "to": self._products,
            "links": np.uint64(0), "pairs": np.uint32(compared.pairs),
        })  # fmt: skip
        of_products = Compared(
            compared.device, compared.model, compared.tempering, compared.wanted._replace(full=False, even=False)
        )
        items, lines = [all_bonds_in_space(graph)], lines_of_bonds(graph)
        parts, in_time = [Part(items[0].segments, items[0].size, compared.pairs)], None
        if fits_in_time(graph.slices):
            replicas, pairs = compared.tempering.ladder.replicas, compared.tempering.pairs(0)
            in_time = InTime(compared.device, lines, compared.times, layout.shape, replicas, pairs)
        else:
            items.append(pairs_in_time(lines, compared.times))
            parts.append(Part(items[1].segments, items[1].size, of_products.count, are_times=True))
        width = {name: np.uint32(count) if name == "sites" else value for name, value in layout.width.items()}
        part_sums = PartSums(of_products, parts)
        counting = ListCounting(of_products, part_sums, items, layout.compares, width, layout.columns, None)
        self._comparison = Comparison(of_products, part_sums, counting, in_time)

    def queue(self, stream: Any, state: int, to: dict[str, int]) -> None:
        """Queue the ``link_overlap_in_space`` and ``even_in_time`` of the state at an address."""
        links = to["link_overlap_in_space"]
        self._make(stream, self._grid, PRODUCTS_THREADS, state=state, links=links)
        addresses = {"holder": to["holder"], "overlap": links, "in_time": to["even_in_time"]}
        nowhere = dict.fromkeys(("link_overlap", "modes", "powers"), 0)
        self._comparison.queue(stream, address(self._products), nowhere | addresses)


TIME: Final = 0  # time axis of a lattice with time; its layers are slices if a cell has one site


def compare_replicas(
    compared: Compared, kernel: str, width: dict[str, np.uint32], columns: int, place: npt.NDArray[np.uint32] | None,
    in_time: InTime | None = None, products: Products | None = None,
) -> Comparison:  # fmt: skip
    """Create the comparison of replica-packed or unpacked spins.

    ``width`` has the kernel's arguments for the width of a state. ``place`` is the place of each site, None if places
    are site numbers. Without ``in_time``, pairs in time are counted by lists, like everything else.
    """
    items, parts = _listed(compared)
    in_layers = any(part.are_slices for part in parts)
    more, of_time = _listed_in_time(compared, compared.times if in_time is None else (), in_layers)
    items, parts = items + more, parts + of_time
    part_sums = PartSums(compared, parts, in_succession=in_time is None and products is None)
    return Comparison(
        compared, part_sums, ListCounting(compared, part_sums, items, kernel, width, columns, place), in_time, products
    )


def _listed(compared: Compared) -> tuple[list[Items], list[Part]]:
    model, lattice = compared.model, compared.model.embedding
    if not compared.sides or not lattice:
        items = [all_sites(model), *([all_bonds(model)] if compared.full else [])]
        return items, [
            Part(each.segments, each.size, compared.pairs, is_bonds=each.ends.shape[1] == 2) for each in items
        ]
    items = [layers(lattice, axis) for axis in range(lattice.dimension)]
    joins_layers = model.lattice is not None and lattice.joins_layers
    linked = [bool(compared.pairs) and side > 1 and joins_layers for side in compared.sides]
    parts = [
        Part(
            each.segments, each.size, compared.count, axis, is_linked=linked[axis],
            are_slices=bool(compared.powers) and axis == TIME and each.segments == model.graph.slices,
        )
        for axis, each in enumerate(items)
    ]  # fmt: skip
    if not joins_layers:
        bonds = all_bonds(model)
        items.append(bonds)
        parts.append(Part(bonds.segments, bonds.size, compared.pairs, is_bonds=True))
    return items, parts


def _listed_in_time(compared: Compared, times: tuple[int, ...], in_layers: bool) -> tuple[list[Items], list[Part]]:
    """Lists and parts for pairs in time, and for slices that are not layers."""
    items, parts = [], []
    if compared.powers and not in_layers:
        items.append(slices(compared.model.graph))
        parts.append(Part(items[-1].segments, items[-1].size, compared.count, are_slices=True))
    if times:
        items.append(pairs_in_time(compared.model.graph.world_lines(), times))
        parts.append(Part(items[-1].segments, items[-1].size, compared.count, are_times=True))
    return items, parts


class ListCounting(Counting):
    """Counts differences of copies by lists of sites and bonds; 32 items at a time become a word for each replica."""

    def __init__(
        self, compared: Compared, part_sums: PartSums, items: list[Items], kernel: str, width: dict[str, np.uint32],
        columns: int, place: npt.NDArray[np.uint32] | None,
    ) -> None:  # fmt: skip
        self._lists = [cupy.asarray(_memory_places(each.ends, place)) for each in items]
        self._chunks = -(-compared.count // COMPARED)
        room = shared_memory(compared.device) - 4 * COMPARED
        tiles = max(2, min(room // BLOCKS - SPARE_BYTES, room) // (columns * 4 * COLUMN))
        shared = tiles * columns * 4 * COLUMN + 4 * min(COMPARED, compared.count)
        if shared > room or self._chunks > GRID_LIMIT:
            replicas = compared.tempering.ladder.replicas
            raise InputError(f"{replicas} replicas are too many for overlaps on this GPU: take fewer copies")
        self._shares = self._share_out(compared, part_sums, items)
        periodic = bool(compared.model.lattice and compared.model.lattice.periodic)
        counted = [
            record(
                ITEMS, places=address(array), sums=0 if sums is None else address(sums),
                ends=each.ends.shape[1], count=len(each.ends), size=each.size, segments=each.segments,
                compared=part.compared, shares=shares, are_bonds=part.is_bonds, linked=part.is_linked,
                periodic=periodic,
            ).item()
            for array, sums, each, part, shares in zip(
                self._lists, part_sums.sums, items, part_sums.parts, self._shares, strict=True
            )
        ]  # fmt: skip
        counted += [np.zeros((), ITEMS).item()] * (PARTS - len(counted))
        self._count = Launch(compared.device, "measuring/overlaps.cu", kernel, {
            "state": np.uint64(0), **width, "tiles": np.uint32(tiles),
            "which": np.zeros((), SUCCESSIVE), "parts": record(COUNTED_PARTS, part=counted),
            "totals": np.zeros((), TOTALS), "pairs": compared.tempering.pairs(0),
        }, shared)  # fmt: skip

    def _share_out(self, compared: Compared, part_sums: PartSums, items: list[Items]) -> list[int]:
        """Return the number of thread blocks for each part; all are resident at once if there are few samples."""
        groups = [-(-each.segments // max(1, TILE // each.size)) for each in items]
        wanted = BLOCKS * multiprocessors(compared.device) // (part_sums.together * max(1, self._chunks) * len(groups))
        return [max(1, min(several, wanted)) for several in groups]

    def queue_parts(
        self, stream: Any, state: Any, pairs: Struct, totals: Struct, samples: range, which: Struct
    ) -> None:
        grid = sum(self._shares), self._chunks, len(samples)
        self._count(stream, grid, THREADS, state=state, pairs=pairs, totals=totals, which=which)


def _memory_places(ends: npt.NDArray[np.int32], place: npt.NDArray[np.uint32] | None) -> npt.NDArray[np.int32]:
    """Return the places in memory of the sites ``ends``."""
    return np.ascontiguousarray(ends if place is None else place[ends].astype(np.int32))
