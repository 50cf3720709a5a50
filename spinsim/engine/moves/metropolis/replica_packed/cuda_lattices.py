"""Replica-packed spins on a GPU, what kernels read of their models, and tables of given temperatures or of a ladder's.

``state[sample, block, place, half]``; place i is site ``batches.order[i]``. Few lattices are spread over a GPU, others
stay in shared memory or lie in global memory. Graphs whose degrees differ much stay in shared memory where they are
small, others lie in global memory, and so do models whose energy has two terms, with one launch for each half-sweep.
"""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from spinsim.cuda.compile import instance
from spinsim.cuda.device import cupy, multiprocessors, shared_memory
from spinsim.cuda.launch import ADDRESS, SIZE, Launch, record, struct_type
from spinsim.engine.cuda import CudaSweeper
from spinsim.engine.cuda_queue import Queue
from spinsim.engine.layouts.replica_packed_cuda import CountedWords, place_of
from spinsim.engine.moves.exchange_cuda import LADDER, ReplicaPlaces
from spinsim.engine.moves.metropolis.classes import (
    PLANES,
    Kind,
    Limits,
    Tables,
    TermClasses,
    cheap_bits,
    empty_tables,
)
from spinsim.engine.moves.metropolis.cuda_spread import WORDS, DatedWords, blocks_of_lattice, fits_gpu
from spinsim.engine.moves.metropolis.replica_packed.batches import Batches, Costs
from spinsim.engine.moves.metropolis.replica_packed.update import PackedRun, ReplicaPlan, TermPlan
from spinsim.model.graph import MOST_TERMS
from spinsim.packing import LANES

PLACE: Final = 16  # bytes of one place
TAIL_ROOM: Final = 64  # groups that a warp's queue of undecided lanes holds
TAIL_WORDS: Final = 11  # of such a group, besides those of its classes
CLASS_BIT_WORDS: Final = 4  # of each bit of its classes
GROUPED: Final = 3  # bonds of one word of ``bond_groups``
PLACE_BITS: Final = 15  # of each place there
SLOTS: Final = 7  # at most, in a record of eight words whose first is the site
GLOBAL_THREADS: Final = 128  # of a thread block of a lattice in global memory
LADDER_BYTES: Final = 5600  # of a sample's ladder in shared memory, at most
TALLY_BYTES: Final = 84  # of a thread that counts bonds while it updates
TALLIED_GROUPS: Final = 18  # that such a thread updates, at most
SUMS_A_LANE: Final = 3  # that blocks of a lattice that is spread over the GPU add up, two words each in turn
SUM_PLACES: Final = 4 * LANES  # in memory, of one of them for all lanes

BATCH: Final = struct_type(**dict.fromkeys(("first", "size", "slots", "base", "parity", "offset"), np.uint32))
MODEL: Final = struct_type(
    order=ADDRESS, neighbour=ADDRESS, signs=ADDRESS, sign_stride=SIZE, near=ADDRESS, negative=ADDRESS,
    negative_stride=SIZE,
)  # fmt: skip
TABLES: Final = struct_type(always=ADDRESS, planes=ADDRESS, thresholds=ADDRESS, lanes=ADDRESS, stride=SIZE)
BONDS: Final = struct_type(groups=ADDRESS, stride=SIZE, count=SIZE)
LANE_SUMS: Final = struct_type(up=ADDRESS, unsatisfied=ADDRESS, up_first=ADDRESS)
BLOCK_SUMS: Final = struct_type(sums=ADDRESS, before=ADDRESS)
ROUND_TOTALS: Final = struct_type(rows=ADDRESS, first=np.uint32)
NOTES: Final = struct_type(to=ADDRESS, copies=ADDRESS, every=SIZE)


def site_records(batches: Batches) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint8]]:
    """For each place its site and the places of its neighbours in bytes, (sites, 8), and signs as bytes 0 or 255.

    Signs have the shape (1 or samples, sites, 8).

    Only for batches of at most seven slots.
    """
    place = place_of(batches.order)
    near = np.zeros((batches.order.size, 1 + SLOTS), np.uint32)
    negative = np.zeros((len(batches.signs), batches.order.size, 1 + SLOTS), np.uint8)
    near[:, 0] = batches.order
    for b, slots in enumerate(batches.slots):
        sites = slice(batches.first[b], batches.first[b + 1])
        size = sites.stop - sites.start
        flat = slice(batches.offset[b], batches.offset[b] + slots * size)
        near[sites, 1 : 1 + slots] = PLACE * place[batches.neighbour[flat]].reshape(slots, size).T
        signs = batches.signs[:, flat].reshape(-1, slots, size)
        negative[:, sites, :slots] = 255 * signs.transpose(0, 2, 1)
    return near, negative


def bond_groups(ends: npt.NDArray[np.integer[Any]], negative: npt.NDArray[np.bool_]) -> npt.NDArray[np.uint64]:
    """Words of the bonds of one place with up to three others, (1 or samples, groups); places are below 2^15."""
    low, high = ends.min(axis=1), ends.max(axis=1)
    by_place = np.lexsort((high, low))
    low, high, negative = low[by_place], high[by_place], negative.take(by_place, axis=1)
    number = np.arange(low.size) - np.searchsorted(low, low)  # among the bonds of the same lower end
    opens = np.flatnonzero(number % GROUPED == 0)
    sizes = np.diff(opens, append=low.size)
    by_word = np.lexsort((low[opens], number[opens]))  # threads side by side then read words side by side
    opens, sizes = opens[by_word], sizes[by_word]
    word = np.tile(low[opens].astype(np.uint64), (len(negative), 1))
    for k in range(GROUPED):
        there = sizes > k
        bond = np.where(there, opens + k, opens)
        other, sign = np.where(there, high[bond], low[opens]), there & negative.take(bond, axis=1)
        word |= other.astype(np.uint64) << np.uint64(PLACE_BITS * (k + 1))
        word |= sign.astype(np.uint64) << np.uint64(PLACE_BITS * (GROUPED + 1) + k)
    return word


def batch_table(batches: Batches) -> npt.NDArray[np.uint32]:
    table = np.empty(len(batches.slots), BATCH)
    table["first"], table["size"] = batches.first[:-1], np.diff(batches.first)
    for name in ("slots", "base", "parity", "offset"):
        table[name] = getattr(batches, name)
    return table.view(np.uint32)


def tail_bytes(class_bits: int) -> int:
    return 4 * TAIL_ROOM * (TAIL_WORDS + CLASS_BIT_WORDS * class_bits)


WARP: Final = 32
LEAST_SHARED_THREADS, MOST_SHARED_THREADS = 32, 512  # of a lattice in shared memory
SITES_A_THREAD: Final = 8  # of one colour, of a lattice in shared memory: fewer leave queues half empty
WAITING_SITES: Final = 700
"""Sites that a block updates in shared memory while blocks that share a lattice wait for each other in a sweep."""
GLOBAL_COST: Final = 1.08
"""Time of an update in global memory, by that in shared memory, of a multiprocessor that is full."""


def shared_bytes(plan: ReplicaPlan, threads: int) -> int:
    """Shared memory that holds one lattice, its tables and the queues of its warps."""
    rows = 1 + (2 * (1 + PLANES) << plan.classes.bits)
    return 16 * (plan.model.sites + rows) + threads // WARP * tail_bytes(plan.classes.bits)


def shared_threads(plan: ReplicaPlan, room: int, processors: int) -> int:
    """Threads of a lattice in ``room`` bytes of shared memory: enough to fill the device; 0 where it does not fit."""
    threads, wanted = LEAST_SHARED_THREADS, wanted_threads(plan, processors)
    while 2 * threads <= wanted and shared_bytes(plan, 2 * threads) <= room:
        threads *= 2
    return threads if shared_bytes(plan, threads) <= room else 0


def wanted_threads(plan: ReplicaPlan, processors: int) -> int:
    """Threads of a lattice in shared memory that fill the device, however much room there is."""
    lattices, most = plan.shape[0] * plan.shape[1], MOST_SHARED_THREADS
    return min(max(most * processors // lattices, plan.model.sites // (plan.colours * SITES_A_THREAD)), most)


def is_shared_faster(plan: ReplicaPlan, processors: int, threads: int = MOST_SHARED_THREADS) -> bool:
    """Return True if one thread block for each lattice, in shared memory, is faster than several, in global memory.

    One block is slower where there are few lattices, where the last ones leave most multiprocessors idle, and where
    the lattice leaves room for few of the ``threads`` that it wants.
    """
    if 4 * threads <= wanted_threads(plan, processors):
        return False
    lattices, sites = plan.shape[0] * plan.shape[1], plan.model.sites
    busiest = -(-lattices // processors)  # lattices of one multiprocessor
    return busiest * sites <= WAITING_SITES + GLOBAL_COST * sites * lattices / processors


class ReplicaLattices(CountedWords):
    """The state of a replica-packed run, and its model as kernels read it.

    Attributes:
        shared_threads: Threads of a lattice in shared memory; 0 where lattices do not fit.
        fixed: True if kernels know how many bonds a site has.
        slots: Numbers of bonds that have a kernel each; 0: any number.
        in_shared: True if lattices are swept in shared memory where they are not spread: they fit, and that is faster.
        arguments: What kernels take of them; those that take batches of any colours take ``in_colours`` too.
    """

    plan: ReplicaPlan

    def __init__(self, plan: ReplicaPlan, queue: Queue) -> None:
        processors = multiprocessors(queue.device)
        self.shared_threads = shared_threads(plan, shared_memory(queue.device), processors)
        slots = set(plan.batches.slots.tolist())
        self.fixed = plan.classes.count_bits == 3 and not (len(slots) > 1 and self.shared_threads)
        self.slots = slots if self.fixed else {0}
        self.in_shared = self.shared_threads > 0 and (
            not self.fixed or is_shared_faster(plan, processors, self.shared_threads)
        )
        order, place = plan.batches.order, place_of(plan.batches.order)
        if self.fixed:
            lists: tuple[npt.NDArray[Any], ...] = site_records(plan.batches)
        else:
            lists = order, place[plan.batches.neighbour], plan.batches.signs
        super().__init__(plan, queue, lists)
        stride = lists[-1][0].size if len(plan.negative) > 1 else 0
        if self.fixed:
            given = dict(zip(("near", "negative"), self.lists, strict=True), negative_stride=stride // 8)
        else:
            given = dict(zip(("order", "neighbour", "signs"), self.lists, strict=True), sign_stride=stride)
        self.arguments = {
            "state": self.present, "sites": np.uint32(plan.model.sites), "key": queue.keys,
            "model": record(MODEL, **dict.fromkeys(MODEL.names or (), 0) | given),
            "batches": cupy.asarray(batch_table(plan.batches)),
        }  # fmt: skip
        self.in_colours = {
            "colour_start": cupy.asarray(plan.batches.colour_start.astype(np.int32)), "colours": np.int32(plan.colours)
        }  # fmt: skip

    def expression(self, function: str, slots: int, kind: Kind) -> str:
        """The instance of a kernel for sites of ``slots`` bonds, 0 for any number."""
        classes, has_field = self.plan.classes, self.plan.has_field
        return instance(function, slots, classes.count_bits, has_field, int(kind), self._queue.rng_rounds)

    @cached_property
    def tiles(self) -> dict[int, npt.NDArray[np.int64]]:
        """Tiles of 32 sites of each colour, for each number of slots that has a kernel."""
        batches = self.plan.batches
        size = -(-np.diff(batches.first) // WARP)
        tiles = {}
        for slots in self.slots:
            mine = np.where(batches.slots == slots, size, 0) if slots else size
            tiles[slots] = np.add.reduceat(mine, batches.colour_start[:-1])
        return tiles

    def sharing_blocks(self, launch: Launch, slots: int) -> int:
        """Returns how many thread blocks share the tiles of a lattice, those of all lattices resident at once."""
        samples, blocks = self.plan.shape[:2]
        room = launch.blocks_at_once(GLOBAL_THREADS) * multiprocessors(self._queue.device) // (samples * blocks)
        return min(max(1, room), -(-int(self.tiles[slots].max()) // (GLOBAL_THREADS // WARP)))

    @property
    def _most_places(self) -> int:
        """Sites of the larger colour."""
        return int(np.diff(self.plan.batches.first).max())

    def are_spread(self, kinds: dict[int, Kind]) -> bool:
        """Return True if lattices are fastest spread over the GPU: they are few, with one number of bonds a colour."""
        samples, blocks = self.plan.shape[:2]
        return self.in_halves(kinds) and fits_gpu(self._most_places, samples * blocks, self._queue.device)

    def in_halves(self, kinds: dict[int, Kind]) -> bool:
        """Return True if sites of two colours have one number of bonds and one kernel of a special case."""
        two = len(self.plan.batches.slots) == self.plan.colours == 2
        return two and self.fixed and len(kinds) == 1 and Kind.ANY not in kinds.values()

    @cached_property
    def spread_grid(self) -> tuple[int, int, int]:
        """Blocks of lattices that are spread over the GPU: a thread has a word of each colour."""
        samples, blocks = self.plan.shape[:2]
        return blocks_of_lattice(self._most_places), blocks, samples

    @cached_property
    def dated(self) -> DatedWords:
        """Words as such blocks read them, (samples, blocks, sites, 4)."""
        return DatedWords((*self.plan.shape[:3], WORDS))


SWEEPS_A_LAUNCH: Final = 1000


class DeviceTables:
    """Tables on the device, of all blocks of all samples or of one block for all of them."""

    def __init__(self, lattices: CountedWords, arrays: list[Any]) -> None:
        self._lattices, self.arrays = lattices, arrays
        self.are_shared = arrays[0].shape[:2] == (1, 1)

    @classmethod
    def of(cls, lattices: CountedWords, tables: Tables, can_share: bool = False) -> DeviceTables:
        """Copies of tables on the host; those of one block are repeated for all unless the kernel can share them."""
        arrays = [cupy.asarray(a) for a in (tables.always, tables.planes, tables.thresholds)]
        blocks = lattices.plan.shape[1]
        if not can_share and len(arrays[0][0]) < blocks:
            of_one, arrays = arrays, [cupy.empty((len(a), blocks, *a.shape[2:]), a.dtype) for a in arrays]
            for all_blocks, one in zip(arrays, of_one, strict=True):
                all_blocks[:] = one
        return cls(lattices, arrays)

    @property
    def record(self) -> npt.NDArray[np.void]:
        always, planes, thresholds = self.arrays
        stride = self._lattices.plan.shape[1] if len(always) > 1 else 0
        lanes = self._lattices.lanes
        return record(TABLES, always=always, planes=planes, thresholds=thresholds, lanes=lanes, stride=stride)


class LadderTables(DeviceTables):
    """Tables of a ladder's places, laid again when exchanges have changed them: ``are_laid`` is False until then."""

    def __init__(self, queue: Queue, lattices: CountedWords, places: ReplicaPlaces) -> None:
        plan, beta = lattices.plan, places.ladder.beta
        room = empty_tables(plan.classes, plan.model.samples, plan.replicas)
        super().__init__(lattices, [cupy.empty(a.shape, a.dtype) for a in (room.always, room.planes, room.thresholds)])
        self._limits = certain, limits = [cupy.asarray(a) for a in plan.limits(beta)]
        self.ladder = record(LADDER, limits=limits, certain=certain, temperatures=len(beta))
        samples, blocks = plan.shape[:2]
        self.are_laid, self._stream = False, queue.stream
        self._grid = blocks, samples, plan.classes.tables * 2**plan.classes.bits
        always, planes, thresholds = self.arrays
        self._lay = Launch(queue.device, "tempering/lay_tables.cu", "lay_tables", {
            "always": always, "planes": planes, "thresholds": thresholds, "ladder": self.ladder,
            "place": places.place, "replicas": np.uint32(plan.replicas), "kinds": np.uint32(plan.classes.tables),
            "classes": np.uint32(2**plan.classes.bits),
        })  # fmt: skip

    def lay(self) -> None:
        self.are_laid = True
        self._lay(self._stream, self._grid, LANES)


class TableSweeper(CudaSweeper):
    """Temperatures of a ``CudaSweeper`` whose sweeps read tables."""

    shares_tables = False  # True if kernels can read one block's tables for all
    updates_a_launch = 2**37  # so that a launch stays well below a second

    def __init__(self, queue: Queue, lattices: CountedWords, plan: PackedRun) -> None:
        self.colours, self.tasks = plan.colours, plan.shape[0] * plan.shape[1]
        self._queue, self._lattices, self._plan = queue, lattices, plan
        self._on_ladder: LadderTables | None = None
        self._tables: DeviceTables  # which launches know by their addresses alone

    @property
    def most_sweeps(self) -> int:
        most = self.updates_a_launch // (LANES * self._plan.model.sites * self.tasks)
        return max(1, min(most, SWEEPS_A_LAUNCH))

    @abstractmethod
    def _make_ready(self, tables: DeviceTables, limits: Limits) -> None:
        """Make ready for sweeps, whatever tables will hold of the temperatures that ``limits`` are of."""

    @abstractmethod
    def _queue_sweeps(self, count: int, half_sweep: int) -> None: ...

    def set_beta(self, beta: npt.ArrayLike) -> None:
        tables, limits = self._plan.tables(beta)
        self._tables = DeviceTables.of(self._lattices, tables, self.shares_tables)
        self._on_ladder = self.rounds = None
        self._make_ready(self._tables, limits)

    def set_ladder(self, places: ReplicaPlaces) -> None:
        self._tables = self._on_ladder = LadderTables(self._queue, self._lattices, places)
        self.rounds = None
        self._make_ready(self._on_ladder, self._plan.limits(places.ladder.beta))

    def lay_tables(self) -> None:
        if self._on_ladder is not None:
            self._on_ladder.lay()

    def sweep(self, count: int, half_sweep: int) -> None:
        if self._on_ladder is not None and not self._on_ladder.are_laid:
            self._on_ladder.lay()
        self._queue_sweeps(count, half_sweep)


TILE_SITES: Final = 32  # of a warp
COSTS: Final = Costs(width=1, batch=32 * 1000, site=0, bond=40, doubling=True)  # instructions of a thread, 32 for each
MOST_THREADS: Final = 512
RESIDENT_WARPS: Final = 16  # of a multiprocessor, with the registers that a thread takes
QUEUE_BYTES: Final = 768  # of a warp's undecided lanes
TREE_BITS: Final = (2, 3, 4)  # of cheap classes that have a kernel; the last one takes more of them too

TILE: Final = struct_type(**dict.fromkeys(("first", "size", "most", "offset"), np.uint32))
DEGREE_BONDS: Final = struct_type(sites=ADDRESS, wanted=ADDRESS, stride=SIZE, site_stride=SIZE)


def tiles(batches: Batches, in_fields: bool) -> npt.NDArray[np.void]:
    table = np.empty(len(batches.slots), TILE)
    table["first"], table["size"] = batches.first[:-1], np.diff(batches.first)
    table["most"], table["offset"] = batches.slots + (batches.most << 16 if in_fields else 0), batches.offset
    return table


def sites_with_units(plan: ReplicaPlan) -> npt.NDArray[np.uint32]:
    """Site of each place, and its bonds and field as the kernel reads them, (1 or samples, sites, 2)."""
    order = plan.batches.order
    own = plan.graph.degrees()[order].astype(np.int64)[None]
    if plan.fields is not None:
        fields = plan.fields[:, order]
        own = own + (np.abs(fields) << 8) + (np.asarray(fields > 0, np.int64) << 16)
    table = np.empty((*own.shape, 2), np.uint32)
    table[..., 0], table[..., 1] = order, own
    return table


def wanted(batches: Batches) -> npt.NDArray[np.uint32]:
    """Bonds of each tile, (1 or samples, bonds): twice the neighbour's place, plus 1 where the coupling is below 0."""
    return np.ascontiguousarray(2 * place_of(batches.order)[batches.neighbour] + batches.signs)


def row_bytes(bits: int) -> int:
    """Shared memory of the rows of 2^bits cheap classes and of lanes in use."""
    return 16 * (1 + (2 * (1 + PLANES) << bits))


class DegreeLattices(CountedWords):
    """The state of a graph of any degrees, and what the kernel reads of it: tiles of sites of like degree."""

    plan: ReplicaPlan

    def __init__(self, plan: ReplicaPlan, queue: Queue) -> None:
        batches = plan.batches
        super().__init__(plan, queue, (sites_with_units(plan), wanted(batches)))
        self._sites, self._wanted = self.lists
        self._tiles = cupy.asarray(tiles(batches, plan.fields is not None).view(np.uint32))
        self._colour_start = cupy.asarray(batches.colour_start.astype(np.int32))
        self.most_tiles = int(np.diff(batches.colour_start).max())
        self.threads, self.in_shared = self._threads(plan, queue.device)

    def _threads(self, plan: ReplicaPlan, device: int) -> tuple[int, bool]:
        """Threads of a block, and whether it holds a lattice."""
        room, lattices = shared_memory(device), plan.shape[0] * plan.shape[1]
        lattice, most = 16 * plan.model.sites, row_bytes(plan.classes.bits)
        in_shared = lattice + most + RESIDENT_WARPS * QUEUE_BYTES <= room
        blocks_together = min(4, room // (lattice + row_bytes(TREE_BITS[0])), -(-lattices // multiprocessors(device)))
        warps = min(self.most_tiles, RESIDENT_WARPS // max(1, blocks_together)) if in_shared else 4
        return 32 * warps, in_shared

    def launch(self, tables: DeviceTables, bits: int) -> Launch:
        """The kernel at temperatures that have 2^bits cheap classes."""
        queue, plan = self._queue, self.plan
        tree = min(bits, TREE_BITS[-1])
        shared = row_bytes(bits) + self.threads // 32 * QUEUE_BYTES + (16 * plan.model.sites if self.in_shared else 0)
        stride, site_stride = (array[0].size if len(array) > 1 else 0 for array in (self._wanted, self._sites))
        bonds = record(
            DEGREE_BONDS, sites=self._sites, wanted=self._wanted, stride=stride, site_stride=site_stride // 2
        )
        expression = instance("sweep_degrees", tree, self.in_shared, plan.fields is not None, queue.rng_rounds)
        return Launch(queue.device, "metropolis/replica_packed_degrees.cu", expression, {
            "state": self.present, "sites": np.uint32(plan.model.sites), "tiles": self._tiles,
            "colour_start": self._colour_start, "colours": np.uint32(plan.colours),
            "bonds": bonds, "tables": tables.record,
            "are_shared": np.uint32(tables.are_shared), "classes": np.uint32(2**plan.classes.bits),
            "cheap_bits": np.uint32(bits), "first_sample": queue.first_sample, "first_block": queue.first_block,
            "half_sweep": np.uint64(0), "half_sweeps": np.uint32(0), "key": queue.keys,
        }, shared)  # fmt: skip


class DegreeSweeper(TableSweeper):
    """A ``CudaSweeper`` of graphs of any degrees."""

    shares_tables = True
    updates_a_launch = 2**35  # so that a launch stays well below a second

    def __init__(self, queue: Queue, lattices: DegreeLattices) -> None:
        super().__init__(queue, lattices, lattices.plan)
        self._degrees = lattices

    def _make_ready(self, tables: DeviceTables, limits: Limits) -> None:
        self._launch = self._degrees.launch(tables, min(cheap_bits(limits), self._plan.classes.bits))

    def _queue_sweeps(self, count: int, half_sweep: int) -> None:
        lattices, half_sweeps = self._degrees, count * self.colours
        samples, blocks = lattices.plan.shape[:2]
        share, most = 1, self.most_sweeps * self.colours
        if not lattices.in_shared:
            share, most = -(-lattices.most_tiles * TILE_SITES // lattices.threads), 1
        for done in range(0, half_sweeps, most):
            grid, now = (share, blocks, samples), min(most, half_sweeps - done)
            self._launch(self._queue.stream, grid, lattices.threads, half_sweep=half_sweep + done, half_sweeps=now)


TERM_THREADS: Final = 128  # of a block that sweeps
RESIDENT_BLOCKS: Final = 4  # such blocks on one multiprocessor: more would only begin where these end
TERM_BATCH: Final = struct_type(
    first=np.uint32, size=np.uint32, slots=(np.uint32, MOST_TERMS), kind=np.uint32, offset=np.uint32
)
TERM_MODEL: Final = struct_type(
    order=ADDRESS, neighbour=ADDRESS, signs=ADDRESS, sign_stride=SIZE, first_bits=np.uint32, field=np.uint32
)


TERM_BONDS: Final = {(2, 2): 4, (4, 2): 5, (6, 2): 5}
"""Bonds of both terms of all sites for which there is a kernel, and the bits of their classes."""


def bonds_of_kernel(classes: TermClasses, limits: Limits) -> tuple[int, int]:
    """Bonds of each term that a kernel knows, (0, 0) for that of any bonds.

    It takes for certain what no term makes cost energy and one makes gain it, so no temperature may be infinite.
    """
    first, second = classes.kinds[0].tolist()
    if len(classes.kinds) > 1 or classes.field or TERM_BONDS.get((first, second)) != classes.bits:
        return 0, 0
    index = np.arange(2**classes.bits)
    excess = 2 * (index & (2 ** classes.count_bits[0] - 1)) - first, 2 * (index >> classes.count_bits[0]) - second
    gains = (np.minimum(*excess) >= 0) & (np.maximum(*excess) > 0)
    return (first, second) if limits.certain[0, gains].all() else (0, 0)


class TermLattices(CountedWords):
    """The spins of a run, and its model as kernels read it."""

    plan: TermPlan

    def __init__(self, plan: TermPlan, queue: Queue) -> None:
        batches = plan.batches
        super().__init__(plan, queue, (batches.order, place_of(batches.order)[batches.neighbour], batches.signs))
        order, neighbour, signs = self.lists
        self.model = record(
            TERM_MODEL, order=order, neighbour=neighbour, signs=signs, first_bits=plan.classes.count_bits[0],
            sign_stride=batches.signs.shape[1] if len(batches.signs) > 1 else 0, field=plan.classes.field != 0,
        )  # fmt: skip


class TermSweeper(TableSweeper):
    """A ``CudaSweeper`` of an energy of two terms; there is no kernel of many rounds."""

    def __init__(self, queue: Queue, lattices: TermLattices) -> None:
        plan, batches = lattices.plan, lattices.plan.batches
        super().__init__(queue, lattices, plan)
        self._state, self._model, self._classes = lattices.present, lattices.model, plan.classes
        samples, blocks = plan.shape[:2]
        most = max(1, RESIDENT_BLOCKS * multiprocessors(queue.device) // (samples * blocks))
        slots = zip(batches.of_term_0.tolist(), (batches.slots - batches.of_term_0).tolist(), strict=True)
        sizes, others = np.diff(batches.first).tolist(), (batches.parity.tolist(), batches.offset.tolist())
        # Plain numbers, as a launch of small lattices takes no longer than handing over its arguments.
        rows = zip(batches.first[:-1].tolist(), sizes, slots, *others, strict=True)
        self._batches = [((min(most, -(-row[1] // TERM_THREADS)), blocks, samples), row) for row in rows]

    def _make_ready(self, tables: DeviceTables, limits: Limits) -> None:
        queue, classes = self._queue, self._classes
        bonds = bonds_of_kernel(classes, limits)
        expression = instance("sweep_terms", classes.bits, *bonds, queue.rng_rounds)
        self._launch = Launch(queue.device, "metropolis/anisotropic.cu", expression, {
            "state": self._state, "sites": np.uint32(self._plan.model.sites), "batch": np.zeros((), TERM_BATCH),
            "model": self._model, "tables": tables.record, "kinds": np.uint32(self._classes.tables),
            "first_sample": queue.first_sample, "first_block": queue.first_block, "half_sweep": np.uint64(0),
            "key": queue.keys,
        })  # fmt: skip

    def _queue_sweeps(self, count: int, half_sweep: int) -> None:
        """One launch for each batch of each half-sweep."""
        starts, launch, stream = self._plan.batches.colour_start, self._launch, self._queue.stream
        for done in range(count * self.colours):
            colour = (half_sweep + done) % self.colours
            for grid, batch in self._batches[starts[colour] : starts[colour + 1]]:
                launch(stream, grid, TERM_THREADS, batch=batch, half_sweep=half_sweep + done)
