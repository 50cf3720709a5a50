"""Replica-packed spins on a GPU, kernel data of their models, and tables for given temperatures or a ladder's.

The state is ``state[sample, block, place, half]``; place i holds site ``batches.order[i]``. Few lattices are spread
over a GPU; others stay in shared memory or lie in global memory. Graphs whose degrees differ much stay in shared memory
if they are small. Larger ones, and models whose energy has two terms, lie in global memory, with one launch for each
half-sweep.
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
from spinsim.engine.moves.metropolis.classes import PLANES, Kind, Limits, Tables, TermClasses, cheap_bits, empty_tables
from spinsim.engine.moves.metropolis.cuda_spread import WORDS, DatedWords, blocks_of_lattice, fits_gpu
from spinsim.engine.moves.metropolis.replica_packed.batches import Batches, Costs
from spinsim.engine.moves.metropolis.replica_packed.update import PackedRun, ReplicaPlan, TermPlan
from spinsim.model.graph import MOST_TERMS
from spinsim.packing import LANES

PLACE: Final = 16  # bytes of one place
TAIL_ROOM: Final = 64  # groups that fit a warp's queue of undecided lanes
TAIL_WORDS: Final = 11  # words of such a group, without its classes
CLASS_BIT_WORDS: Final = 4  # words of each bit of its classes
GROUPED: Final = 3  # bonds in one word of ``bond_groups``
PLACE_BITS: Final = 15  # bits of each place in it
SLOTS: Final = 7  # most slots in a record of eight words; the first word is the site
GLOBAL_THREADS: Final = 128  # threads of a thread block of a lattice in global memory
LADDER_BYTES: Final = 5600  # most bytes of a sample's ladder in shared memory
TALLY_BYTES: Final = 84  # bytes of a thread that counts bonds during updates
TALLIED_GROUPS: Final = 18  # most groups that such a thread updates
SUMS_A_LANE: Final = 3  # sums per lane that blocks of a spread lattice add up, alternating between two words
SUM_PLACES: Final = 4 * LANES  # places in memory of one such sum for all lanes

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
    """Return each place's site and its neighbours' places in bytes, (sites, 8), and signs as bytes 0 or 255.

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
    """Pack the bonds of a place to up to three others in a word, (1 or samples, groups); places must be below 2^15."""
    low, high = ends.min(axis=1), ends.max(axis=1)
    by_place = np.lexsort((high, low))
    low, high, negative = low[by_place], high[by_place], negative.take(by_place, axis=1)
    number = np.arange(low.size) - np.searchsorted(low, low)  # number among the bonds with the same lower end
    opens = np.flatnonzero(number % GROUPED == 0)
    sizes = np.diff(opens, append=low.size)
    by_word = np.lexsort((low[opens], number[opens]))  # so that neighbouring threads read neighbouring words
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
LEAST_SHARED_THREADS, MOST_SHARED_THREADS = 32, 512  # threads of a lattice in shared memory
SITES_A_THREAD: Final = 8  # sites of a colour per thread in shared memory: fewer leave queues half empty
WAITING_SITES: Final = 700
"""Sites that a block updates in shared memory in the time that blocks sharing a lattice wait per sweep."""
GLOBAL_COST: Final = 1.08
"""Time of an update in global memory relative to shared memory, on a full multiprocessor."""


def shared_bytes(plan: ReplicaPlan, threads: int) -> int:
    """Shared memory of one lattice, its tables and the queues of its warps."""
    rows = 1 + (2 * (1 + PLANES) << plan.classes.bits)
    return 16 * (plan.model.sites + rows) + threads // WARP * tail_bytes(plan.classes.bits)


def shared_threads(plan: ReplicaPlan, room: int, processors: int) -> int:
    """Threads of a lattice in ``room`` bytes of shared memory: enough to fill the device, or 0 if it does not fit."""
    threads, wanted = LEAST_SHARED_THREADS, wanted_threads(plan, processors)
    while 2 * threads <= wanted and shared_bytes(plan, 2 * threads) <= room:
        threads *= 2
    return threads if shared_bytes(plan, threads) <= room else 0


def wanted_threads(plan: ReplicaPlan, processors: int) -> int:
    """Threads of a lattice in shared memory that fill the device, without a limit of memory."""
    lattices, most = plan.shape[0] * plan.shape[1], MOST_SHARED_THREADS
    return min(max(most * processors // lattices, plan.model.sites // (plan.colours * SITES_A_THREAD)), most)


def is_shared_faster(plan: ReplicaPlan, processors: int, threads: int = MOST_SHARED_THREADS) -> bool:
    """Return True if one thread block per lattice, in shared memory, is faster than several in global memory.

    One block is slower if there are few lattices, if the last ones leave most multiprocessors idle, or if the lattice
    leaves room for only few of the wanted ``threads``.
    """
    if 4 * threads <= wanted_threads(plan, processors):
        return False
    lattices, sites = plan.shape[0] * plan.shape[1], plan.model.sites
    busiest = -(-lattices // processors)  # lattices on one multiprocessor
    return busiest * sites <= WAITING_SITES + GLOBAL_COST * sites * lattices / processors


class ReplicaLattices(CountedWords):
    """State of a replica-packed run, and its model as kernels read it.

    Attributes:
        shared_threads: Threads of a lattice in shared memory; 0 if lattices do not fit.
        fixed: True if kernels are compiled for fixed numbers of bonds.
        slots: Numbers of bonds with a kernel each; 0: any number.
        in_shared: True if lattices that are not spread are swept in shared memory: they fit, and this is faster.
        arguments: Arguments of all kernels; kernels for batches of any colours also take ``in_colours``.
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
        """Name the instance of a kernel for sites of ``slots`` bonds; 0 for any number."""
        classes, has_field = self.plan.classes, self.plan.has_field
        return instance(function, slots, classes.count_bits, has_field, int(kind), self._queue.rng_rounds)

    @cached_property
    def tiles(self) -> dict[int, npt.NDArray[np.int64]]:
        """Number of tiles of 32 sites in each colour, for each number of slots with a kernel."""
        batches = self.plan.batches
        size = -(-np.diff(batches.first) // WARP)
        tiles = {}
        for slots in self.slots:
            mine = np.where(batches.slots == slots, size, 0) if slots else size
            tiles[slots] = np.add.reduceat(mine, batches.colour_start[:-1])
        return tiles

    def sharing_blocks(self, launch: Launch, slots: int) -> int:
        """Return how many thread blocks share the tiles of a lattice, with all lattices resident at once."""
        samples, blocks = self.plan.shape[:2]
        room = launch.blocks_at_once(GLOBAL_THREADS) * multiprocessors(self._queue.device) // (samples * blocks)
        return min(max(1, room), -(-int(self.tiles[slots].max()) // (GLOBAL_THREADS // WARP)))

    @property
    def _most_places(self) -> int:
        """Number of sites of the larger colour."""
        return int(np.diff(self.plan.batches.first).max())

    def are_spread(self, kinds: dict[int, Kind]) -> bool:
        """Return True if lattices are fastest spread over the GPU: few, with one number of bonds per colour."""
        samples, blocks = self.plan.shape[:2]
        return self.in_halves(kinds) and fits_gpu(self._most_places, samples * blocks, self._queue.device)

    def in_halves(self, kinds: dict[int, Kind]) -> bool:
        """Return True if there are two colours, one number of bonds, and a kernel of one special case."""
        two = len(self.plan.batches.slots) == self.plan.colours == 2
        return two and self.fixed and len(kinds) == 1 and Kind.ANY not in kinds.values()

    @cached_property
    def spread_grid(self) -> tuple[int, int, int]:
        """Grid of blocks of lattices spread over the GPU: a thread has a word of each colour."""
        samples, blocks = self.plan.shape[:2]
        return blocks_of_lattice(self._most_places), blocks, samples

    @cached_property
    def dated(self) -> DatedWords:
        """Words in the form for such blocks, (samples, blocks, sites, 4)."""
        return DatedWords((*self.plan.shape[:3], WORDS))


SWEEPS_A_LAUNCH: Final = 1000


class DeviceTables:
    """Tables on the device, for all blocks of all samples or one block for all."""

    def __init__(self, lattices: CountedWords, arrays: list[Any]) -> None:
        self._lattices, self.arrays = lattices, arrays
        self.are_shared = arrays[0].shape[:2] == (1, 1)

    @classmethod
    def of(cls, lattices: CountedWords, tables: Tables, can_share: bool = False) -> DeviceTables:
        """Copy tables from the host; one block's tables are repeated for all unless the kernel can share them."""
        given = tables.always, tables.planes, tables.thresholds
        words = cupy.asarray(np.concatenate([a.reshape(-1) for a in given]))  # one copy takes as long as one of three
        ends = np.cumsum([a.size for a in given]).tolist()
        arrays = [words[end - a.size : end].reshape(a.shape) for a, end in zip(given, ends, strict=True)]
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
    """Tables of a ladder's places, rewritten after exchanges; ``are_laid`` is False if they are out of date."""

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
    updates_a_launch = 2**37  # so that a launch takes well below a second

    def __init__(self, queue: Queue, lattices: CountedWords, plan: PackedRun) -> None:
        self.colours, self.tasks = plan.colours, plan.shape[0] * plan.shape[1]
        self._queue, self._lattices, self._plan = queue, lattices, plan
        self._on_ladder: LadderTables | None = None
        self._tables: DeviceTables  # launches hold only their addresses

    @property
    def most_sweeps(self) -> int:
        most = self.updates_a_launch // (LANES * self._plan.model.sites * self.tasks)
        return max(1, min(most, SWEEPS_A_LAUNCH))

    @abstractmethod
    def _make_ready(self, tables: DeviceTables, limits: Limits) -> None:
        """Prepare sweeps for any tables of temperatures within ``limits``."""

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


TILE_SITES: Final = 32  # sites of a warp's tile
COSTS: Final = Costs(width=1, batch=32 * 1000, site=0, bond=40, doubling=True)  # instructions of a thread, times 32
MOST_THREADS: Final = 512
RESIDENT_WARPS: Final = 16  # warps of a multiprocessor, as registers allow
QUEUE_BYTES: Final = 768  # bytes of a warp's queue of undecided lanes
TREE_BITS: Final = (2, 3, 4)  # bits of cheap classes with a kernel; the last one also serves more

TILE: Final = struct_type(**dict.fromkeys(("first", "size", "most", "offset"), np.uint32))
DEGREE_BONDS: Final = struct_type(sites=ADDRESS, wanted=ADDRESS, stride=SIZE, site_stride=SIZE)


def tiles(batches: Batches, in_fields: bool) -> npt.NDArray[np.void]:
    table = np.empty(len(batches.slots), TILE)
    table["first"], table["size"] = batches.first[:-1], np.diff(batches.first)
    table["most"], table["offset"] = batches.slots + (batches.most << 16 if in_fields else 0), batches.offset
    return table


def sites_with_units(plan: ReplicaPlan) -> npt.NDArray[np.uint32]:
    """Site of each place, and its bonds and field in the kernel's form, (1 or samples, sites, 2)."""
    order = plan.batches.order
    own = plan.graph.degrees()[order].astype(np.int64)[None]
    if plan.fields is not None:
        fields = plan.fields[:, order]
        own = own + (np.abs(fields) << 8) + (np.asarray(fields > 0, np.int64) << 16)
    table = np.empty((*own.shape, 2), np.uint32)
    table[..., 0], table[..., 1] = order, own
    return table


def wanted(batches: Batches) -> npt.NDArray[np.uint32]:
    """Bonds of each tile, (1 or samples, bonds): twice the neighbour's place, plus 1 if the coupling is below 0."""
    return np.ascontiguousarray(2 * place_of(batches.order)[batches.neighbour] + batches.signs)


def row_bytes(bits: int) -> int:
    """Shared memory for the rows of 2^bits cheap classes and the lanes in use."""
    return 16 * (1 + (2 * (1 + PLANES) << bits))


class DegreeLattices(CountedWords):
    """State of a graph of any degrees, and the kernel's data: tiles of sites of similar degree."""

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
        """Return the threads of a block, and True if it holds a lattice."""
        room, lattices = shared_memory(device), plan.shape[0] * plan.shape[1]
        lattice, most = 16 * plan.model.sites, row_bytes(plan.classes.bits)
        in_shared = lattice + most + RESIDENT_WARPS * QUEUE_BYTES <= room
        blocks_together = min(4, room // (lattice + row_bytes(TREE_BITS[0])), -(-lattices // multiprocessors(device)))
        warps = min(self.most_tiles, RESIDENT_WARPS // max(1, blocks_together)) if in_shared else 4
        return 32 * warps, in_shared

    def launch(self, tables: DeviceTables, bits: int) -> Launch:
        """Return the kernel for temperatures with 2^bits cheap classes."""
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
    updates_a_launch = 2**35  # so that a launch takes well below a second

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


TERM_THREADS: Final = 128  # threads of a sweeping block
RESIDENT_BLOCKS: Final = 4  # such blocks on one multiprocessor: more would only start when these end
TERM_BATCH: Final = struct_type(
    first=np.uint32, size=np.uint32, slots=(np.uint32, MOST_TERMS), kind=np.uint32, offset=np.uint32
)
TERM_MODEL: Final = struct_type(
    order=ADDRESS, neighbour=ADDRESS, signs=ADDRESS, sign_stride=SIZE, first_bits=np.uint32, field=np.uint32
)


TERM_BONDS: Final = {(2, 2): 4, (4, 2): 5, (6, 2): 5}
"""Bonds of each of the two terms at all sites, for which there is a kernel, and the bits of their classes."""


def bonds_of_kernel(classes: TermClasses, limits: Limits) -> tuple[int, int]:
    """Return the bonds of each term for which there is a kernel; (0, 0) for the kernel of any bonds.

    Its kernel always accepts a flip that costs energy in no term and gains energy in one, so no temperature may be
    infinite.
    """
    first, second = classes.kinds[0].tolist()
    if len(classes.kinds) > 1 or classes.field or TERM_BONDS.get((first, second)) != classes.bits:
        return 0, 0
    index = np.arange(2**classes.bits)
    excess = 2 * (index & (2 ** classes.count_bits[0] - 1)) - first, 2 * (index >> classes.count_bits[0]) - second
    gains = (np.minimum(*excess) >= 0) & (np.maximum(*excess) > 0)
    return (first, second) if limits.certain[0, gains].all() else (0, 0)


class TermLattices(CountedWords):
    """Spins of a run, and its model as kernels read it."""

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
        # Plain numbers, because a launch of a small lattice takes no longer than passing its arguments.
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
        """Queue one launch for each batch of each half-sweep."""
        starts, launch, stream = self._plan.batches.colour_start, self._launch, self._queue.stream
        for done in range(count * self.colours):
            colour = (half_sweep + done) % self.colours
            for grid, batch in self._batches[starts[colour] : starts[colour + 1]]:
                launch(stream, grid, TERM_THREADS, batch=batch, half_sweep=half_sweep + done)
