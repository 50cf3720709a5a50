"""Site-packed spins on a GPU: warps share a lattice by tiles, and run for many half-sweeps.

The state has the CPU's layout, read as 128-bit words. A slab of a lattice reads layers before its first and after its
last one: its own layers, copies from other slabs, or layers in their memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property
from math import prod
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim import packing
from spinsim.acceptance import check_beta
from spinsim.cuda.compile import instance
from spinsim.cuda.device import Reached, cupy, multiprocessors, offer, reach, require_memory, shared
from spinsim.cuda.launch import ADDRESS, SIZE, Launch, record, round_keys, struct_type
from spinsim.engine.cuda import CudaEngine, CudaParts, CudaSweeper
from spinsim.engine.cuda_queue import Queue, check_grid
from spinsim.engine.dynamics import Dynamics
from spinsim.engine.layouts.site_packed import seams_of, signs_shape
from spinsim.engine.measuring.correlations import Quantities
from spinsim.engine.measuring.cuda_comparison import (
    GRID_LIMIT,
    SUCCESSIVE,
    TILE,
    Compared,
    Comparison,
    Counting,
    Part,
    PartSums,
    Struct,
)
from spinsim.engine.measuring.cuda_comparison import THREADS as COMPARE_THREADS
from spinsim.engine.measuring.sums import CudaCounting
from spinsim.engine.moves.exchange_cuda import LADDER, CudaTempering, GivenPlaces, ReplicaPlaces
from spinsim.engine.moves.metropolis.classes import APART, LATTICE_BARRIER, NEIGHBOUR_BARRIER, TICKETS, Kind
from spinsim.engine.moves.metropolis.cuda_spread import fits_gpu
from spinsim.engine.moves.metropolis.site_packed.cuda_rows import RowSweeps, Swept, launches
from spinsim.engine.moves.metropolis.site_packed.cuda_words import MeasuredWords, SpreadSweeps, WordSweeps, fits_block
from spinsim.engine.moves.metropolis.site_packed.update import SitePlan, sides_of
from spinsim.engine.moves.resample import Moves
from spinsim.engine.update import Slab
from spinsim.errors import InputError
from spinsim.model.ising import Ising
from spinsim.packing import LANES, Bits, of_site_packed, rows_fill_groups, unpacked_spins
from spinsim.parallel.group import Group

SLAB: Final = struct_type(**dict.fromkeys(("width", "height", "depth", "first_row", "parity"), np.uint32))
ANY_ROWS: Final = struct_type(
    **dict.fromkeys(("width", "height", "depth", "groups", "repeating"), np.uint32), masks=ADDRESS
)
HALO: Final = struct_type(before=(ADDRESS, 2), after=(ADDRESS, 2), stride=SIZE)
SIGNS: Final = struct_type(negative=ADDRESS, stride=SIZE)
UNIFORM_TABLES: Final = struct_type(always=ADDRESS, planes=ADDRESS, thresholds=ADDRESS, stride=SIZE)
DIVISOR: Final = struct_type(number=np.uint32, inverse=np.uint32)
SLAB_BARRIER: Final = struct_type(
    own=LATTICE_BARRIER,
    **dict.fromkeys(("before", "after", "to_before", "to_after", "edges"), ADDRESS),
    done=np.uint32,
    edge_tiles=np.uint32,
)
SHARE: Final = struct_type(columns=np.uint32, tiles=np.uint32, across=DIVISOR, width=DIVISOR)


def divisor(number: int) -> tuple[int, int]:
    """Return a ``DIVISOR``: a number and its inverse, by which kernels divide."""
    return number, (2**32 // number + 1) % 2**32


COLOURS: Final = 2


def edge_of(plan: SitePlan) -> int:
    """Number of groups of a colour in a layer."""
    return plan.layer // LANES


class Halo:
    """Layers beside a lattice, in place: in its own memory or, for a slab, in the memory of other GPUs.

    Slabs wait for each other within a kernel by ``flags``. The memory in ``kept`` stays open as long as this object.
    """

    is_copied = False  # True if layers must be fetched before each half-sweep

    def __init__(self, layers: npt.NDArray[np.void], flags: Flags | None = None, kept: Sequence[Reached] = ()) -> None:
        self.record, self.flags, self._kept = layers, flags, kept

    def fetch(self, colour: int) -> None:
        """Queue getting the present layers of a colour; all slabs must call this at once."""


class CopiedHalo(Halo):
    """Copies of the layers beside a slab, received from other slabs."""

    is_copied = True

    def __init__(self, plan: SitePlan, present: Any, group: Group) -> None:
        samples, replicas = plan.shape[:2]
        lattices, edge = present.reshape(samples, replicas, COLOURS, -1, 2), edge_of(plan)
        self._group = group
        self._edges = [(lattices[:, :, c, :edge], lattices[:, :, c, -edge:]) for c in range(COLOURS)]
        self._neighbour_edges = cupy.zeros((2, COLOURS, samples, replicas, edge_of(plan), 2), cupy.uint64)
        before, after = (tuple(of_colour.data.ptr for of_colour in side) for side in self._neighbour_edges)
        super().__init__(record(HALO, before=before, after=after, stride=edge_of(plan)))

    def fetch(self, colour: int) -> None:
        first, last = (cupy.ascontiguousarray(layer) for layer in self._edges[colour])
        self._group.ring(first, last, self._neighbour_edges[0, colour], self._neighbour_edges[1, colour])


class Flags:
    """Numbers of half-sweeps for which the edges of slabs are done; each slab informs its neighbours.

    ``own`` is uint32 (3, lattices) in this GPU's memory: a row for the slab before, a row for the slab after, and a row
    of own counts. ``before`` and ``after`` are the addresses of these slabs' arrays.
    """

    def __init__(self, own: Any, before: int, after: int) -> None:
        self._own = own
        first, second, edges = (row.data.ptr for row in own)
        self._addresses = first, second, before + own[0].nbytes, after, edges
        self._done = 0

    def next(self, half_sweeps: int) -> tuple[int, ...]:
        """Members of a ``SLAB_BARRIER``, without its first and last, for a launch of ``half_sweeps`` half-sweeps."""
        done = self._done
        self._done = (done + half_sweeps) % 2**32
        return *self._addresses, done


def _within(plan: SitePlan, before: tuple[int, int], after: tuple[int, int]) -> npt.NDArray[np.void]:
    """Last layers of one slab and first layers of another; a slab is given by its address and number of groups."""
    (start, groups), (next_start, next_groups) = before, after
    last = tuple(start + 16 * (groups * (colour + 1) - edge_of(plan)) for colour in range(COLOURS))
    first = tuple(next_start + 16 * next_groups * colour for colour in range(COLOURS))
    return record(HALO, before=last, after=first, stride=2 * groups)


def halo_of(plan: SitePlan, present: Any, queue: Queue, group: Group | None) -> Halo:
    """Layers beside spins. The spins of a slab must be a ``shared`` array; all slabs must call this at once."""
    if group is None:
        whole = present.data.ptr, plan.groups
        return Halo(_within(plan, whole, whole))
    lattices = plan.shape[0] * plan.shape[1]
    own = shared((3, lattices), np.uint32)
    own[:] = 0
    mine = np.stack([offer(queue.device, array) for array in (present, own)])
    groups, sides = [np.empty(1, np.int64) for _ in range(2)], [np.empty_like(mine) for _ in range(2)]
    group.ring(*[np.array([plan.groups])] * 2, *groups)
    group.ring(mine, mine, *sides)
    spins, flags = ([reach(queue.device, mine[k], side[k]) for side in sides] for k in range(2))
    fits = lattices == 1 or all(side[0] == plan.groups for side in groups)  # one stride must fit both sides
    near = [side for side in (*spins, *flags) if side is not None]
    if group.sum(np.array([fits and len(near) == 4], np.int64))[0] == group.size:
        before, after, *tells = (side.address for side in near)
        layers = _within(plan, (before, int(groups[0][0])), (after, int(groups[1][0])))
        return Halo(layers, Flags(own, *tells), near)
    return CopiedHalo(plan, present, group)


DRAW_THREADS: Final = 256  # threads of a block that draws signs
COUNT_THREADS: Final = 256  # threads of a counting block
COUNT_BLOCKS: Final = 4  # counting blocks on one multiprocessor


class SiteLattices:
    """State of a site-packed run, and its model as kernels read it; ``group`` has the slabs of a cut lattice."""

    replica_axis = 1

    def __init__(self, plan: SitePlan, queue: Queue, group: Group | None) -> None:
        self.plan, self._queue = plan, queue
        if 16 * plan.groups >= 2**32:
            raise InputError(f"{plan.model.sites} sites are too many for one GPU: at most 2^36 less one group on each")
        sides, (samples, replicas) = plan.sides, plan.shape[:2]
        self.dimension, self.count, self.is_signed = len(sides), samples * replicas, plan.is_signed
        self.fills_groups = rows_fill_groups(sides)
        if not self.fills_groups and plan.lanes >= 2**31:
            raise InputError(f"{plan.model.sites} sites are too many in rows of {sides[0]}: take a multiple of 256")
        self.in_row, self.height, self.depth = sides_of(sides)  # sites of a colour in a row, rows in a plane, planes
        words = prod(plan.shape) + (prod(signs_shape(plan.model, plan.rows)) if plan.is_signed else 0)
        require_memory(queue.device, 8 * words, f"the state of {plan.model.name}")
        self._signs = self._signs_of_model()
        self.present = shared(plan.shape, np.uint64) if group else cupy.empty(plan.shape, cupy.uint64)
        if plan.dynamics.start == "up":
            self.present[:] = np.uint64(2**64 - 1)
        else:
            lanes = cupy.full((replicas, 2), np.uint64(2**64 - 1))
            if plan.groups == plan.all_groups:
                queue.start_at_random(self.present.reshape(samples, replicas, 2 * plan.groups, 2), lanes)
            else:
                self._start_slabs(lanes)
        self.present[..., -1, :] &= cupy.asarray(packing.lane_masks(plan.lanes)[-1])
        self.halo = halo_of(plan, self.present, queue, group)
        self.geometry = self._slab() if self.fills_groups else self.any_rows
        self.kind = "Slab" if self.fills_groups else "AnyRows"  # type of its geometry
        stride = 4 * self.dimension * plan.groups if len(self._signs) > 1 else 0
        signs = record(SIGNS, negative=self._signs, stride=stride)
        self.arguments = {"state": self.present, "slab": self.geometry, "halo": self.halo.record, "signs": signs}

    @property
    def width(self) -> int:
        """Number of groups in a row, if rows fill groups."""
        return self.in_row // LANES

    def _slab(self) -> npt.NDArray[np.void]:
        return record(
            SLAB, width=self.width, height=self.height, depth=self.depth,
            first_row=self.plan.first_group // self.width, parity=0,
        )  # fmt: skip

    @cached_property
    def any_rows(self) -> npt.NDArray[np.void]:
        """Geometry of a whole lattice, for rows that may begin anywhere in words."""
        masks, repeating = seams_of(self.plan.sides)
        self._masks = cupy.asarray(np.ascontiguousarray(masks[..., :repeating].transpose(0, 2, 1)))
        return record(
            ANY_ROWS, width=self.in_row, height=self.height, depth=self.depth, groups=self.plan.groups,
            repeating=repeating, masks=self._masks,
        )  # fmt: skip

    def _signs_of_model(self) -> Any:
        """Signs of couplings as in layouts/site_packed.py: drawn here, or copied if the host has couplings."""
        plan, drawn, lattice = self.plan, self.plan.model.drawn, self.plan.model.lattice
        if not plan.is_signed:
            return cupy.empty(0, cupy.uint64)
        if lattice is None or drawn is None or drawn.limit is None or not plan.model.are_yet_to_draw:
            return cupy.asarray(plan.signs)
        signs = cupy.empty(signs_shape(plan.model, plan.rows), cupy.uint64)
        shape, words = (*lattice.shape, 1), signs[0].size
        Launch(self._queue.device, "metropolis/site_packed_signs.cu", instance("draw_signs", self.dimension), {
            "signs": signs, "words": np.uint64(words), "width": np.uint32(self.in_row), "height": np.uint32(shape[1]),
            "depth": np.uint32(shape[2]), "first_row": np.uint32(plan.rows.start), "rows": np.uint32(len(plan.rows)),
            "first_sample": np.uint32(drawn.first), "limit": np.uint64(drawn.limit), "key": round_keys(drawn.seed),
        })(self._queue.stream, (-(-words // DRAW_THREADS), len(signs), 1), DRAW_THREADS)  # fmt: skip
        return signs

    def _start_slabs(self, lanes: Any) -> None:
        """Set random spins if the words of a slab are not contiguous in the whole lattice."""
        plan = self.plan
        for sample, replica, colour in np.ndindex(*plan.shape[:3]):
            words, first = self.present[sample, replica, colour], plan.all_groups * colour + plan.first_group
            self._queue.start_at_random(
                words.reshape(1, 1, plan.groups, 2), lanes[:1], sample=sample, block=replica, site=first
            )

    @cached_property
    def _count(self) -> tuple[Launch, int]:
        """Counting kernel, and the number of its blocks that share a lattice."""
        expression = instance("count_site", self.dimension, self.is_signed, self.kind)
        launch = Launch(self._queue.device, "measuring/count_site_packed.cu", expression, {
            **{name: self.arguments[name] for name in ("state", "halo", "signs")}, "lattice": self.geometry,
            "up": np.uint64(0), "unsatisfied": np.uint64(0), "up_first": np.uint64(0),
        })  # fmt: skip
        most = max(1, COUNT_BLOCKS * multiprocessors(self._queue.device) // self.count)
        return launch, min(most, -(-self.plan.groups // COUNT_THREADS))

    def add(self, to: tuple[int, ...]) -> None:
        """Queue adding spins +1, unsatisfied bonds and, given a third address, spins +1 of colour 0."""
        up, unsatisfied, up_first = (*to, 0)[:3]
        samples, replicas = self.plan.shape[:2]
        self.halo.fetch(1)
        launch, blocks = self._count
        grid = blocks, replicas, samples
        launch(self._queue.stream, grid, COUNT_THREADS, up=up, unsatisfied=unsatisfied, up_first=up_first)

    def words(self) -> npt.NDArray[np.uint64]:
        return np.asarray(self.present.get())

    def set_words(self, words: npt.NDArray[np.uint64]) -> None:
        self.present.set(words)

    def copy(self, moves: Moves) -> None:
        for sample, source, target in zip(*(array.tolist() for array in moves), strict=True):
            self.present[sample, target] = self.present[sample, source]

    def read(self, state: Any, sample: int, replica: int) -> npt.NDArray[np.int8]:
        sides = self.plan.sides
        return unpacked_spins(of_site_packed(state[sample, replica].get(), sides), prod(sides))

    def bits(self, sample: int, replica: int) -> Bits:
        return of_site_packed(self.present[sample, replica].get(), self.plan.sides)

    def copied_bits(self, sample: int, replica: int) -> Callable[[], Bits]:
        """Copy a lattice within GPU memory, if it fits, and return a function that reads the copy as bits."""
        try:
            words = self.present[sample, replica].copy()
        except cupy.cuda.memory.OutOfMemoryError:
            words = self.present[sample, replica].get()
        return lambda: of_site_packed(cupy.asnumpy(words), self.plan.sides)


COMPARE_BLOCKS: Final = 8  # comparing blocks on one multiprocessor
TILES_A_THREAD: Final = 16  # tiles of rows per thread, in a column of words
MOST_WORDS: Final = 2**20  # most words of 128 sites compared by a block


def compare_lattices(comparison: Compared, lattices: SiteLattices) -> Comparison:
    sites = comparison.model.sites
    parts = [Part(side, sites // side, comparison.count, axis) for axis, side in enumerate(comparison.sides)]
    sums = PartSums(comparison, parts, in_succession=True)
    return Comparison(comparison, sums, LatticeCounting(comparison, sums, lattices))


class LatticeCounting(Counting):
    """Counts the items at which copies differ, by whole words, row by row."""

    def __init__(self, comparison: Compared, part_sums: PartSums, lattices: SiteLattices) -> None:
        self._comparison, self._part_sums, self._words = comparison, part_sums, 2 * lattices.plan.groups
        state, pairs, which = np.uint64(0), comparison.tempering.pairs(0), np.zeros((), SUCCESSIVE)
        if not comparison.full:
            self._add = self._kernel("differing_lattices", {
                "state": state, "words": np.uint32(self._words), "which": which, "pairs": pairs, "same": np.uint64(0),
            })  # fmt: skip
            self._layers: list[Launch] = []
            return
        geometry, kind, edge = lattices.geometry, lattices.kind, np.uint32(edge_of(lattices.plan))
        self._add = self._kernel(instance("differing_bonds", len(comparison.sides), kind), {
            "state": state, "geometry": geometry, "layer": edge, "which": which, "pairs": pairs, "same": np.uint64(0),
        })  # fmt: skip
        given = {"state": state, "geometry": geometry, "which": which, "pairs": pairs}
        z = part_sums.sums[2] if len(comparison.sides) > 2 else np.uint64(0)
        tiles = -(-comparison.model.sites // (2 * comparison.sides[0] * TILE))
        stripes = np.uint32(-(-tiles // TILES_A_THREAD))
        self._layers = [
            self._kernel(instance("layers_of_rows", kind), given | {"along_y": part_sums.sums[1], "along_z": z}),
            self._kernel(
                instance("layers_of_columns", kind), given | {"along_x": part_sums.sums[0], "stripes": stripes}
            ),
        ]

    def _kernel(self, expression: str, arguments: dict[str, Any]) -> Launch:
        return Launch(self._comparison.device, "measuring/overlaps_site_packed.cu", expression, arguments)

    def _shares(self, compared: int, samples: int) -> int:
        fill = COMPARE_BLOCKS * multiprocessors(self._comparison.device) // max(1, compared * samples)
        return min(-(-self._words // COMPARE_THREADS), max(fill, -(-self._words // MOST_WORDS)), 65535)

    def queue_totals(self, stream: Any, state: Any, pairs: Struct, totals: Struct, count: int, words: int) -> None:
        """Queue the overlaps or, in a full comparison, the link overlaps of all samples."""
        compared, samples = self._comparison.pairs, self._comparison.model.samples
        same = totals["links" if self._comparison.full else "overlap"]
        for first in range(0, count * samples if compared else 0, GRID_LIMIT):
            several = min(GRID_LIMIT, count * samples - first)
            which = record(SUCCESSIVE, first=first, samples=samples, words=words)
            grid = compared, self._shares(compared, several), several
            self._add(stream, grid, COMPARE_THREADS, state=state, which=which, pairs=pairs, same=same)

    def queue_parts(
        self, stream: Any, state: Any, pairs: Struct, totals: Struct, samples: range, which: Struct
    ) -> None:
        for sums in self._part_sums.sums:
            sums.data.memset_async(0, sums.nbytes, stream)
        grid = self._comparison.count, self._shares(self._comparison.count, len(samples)), len(samples)
        for launch in self._layers:
            launch(stream, grid, COMPARE_THREADS, state=state, pairs=pairs, which=which)


THREADS: Final = 128
BLOCKS: Final = 4  # blocks on one multiprocessor, if its shared memory suffices
WARP: Final = 32
MOST_ACROSS: Final = 64  # most tiles per layer, so that a block can wait for all neighbouring blocks
UPDATES_A_LAUNCH: Final = 2**37  # so that a launch takes well below a second
HALF_SWEEPS_A_LAUNCH: Final = 2000


def engine(model: Ising, replicas: int, dynamics: Dynamics, device: int, slab: Slab | None = None) -> CudaEngine:
    """Create the engine of couplings of one magnitude and a uniform field on periodic lattices of even sides."""
    plan, queue = SitePlan(model, replicas, dynamics, slab and slab.layers), Queue(device, dynamics)
    check_grid(model.samples, replicas)
    with queue.here():
        lattices = SiteLattices(plan, queue, slab and slab.group)
        shape = len(plan.observables.sums), model.samples, replicas
        counting = CudaCounting(queue.stream, plan.observables, shape, replicas, lattices.add)

    def compare(tempering: CudaTempering, wanted: Quantities) -> Comparison:
        return compare_lattices(Compared(device, model, tempering, wanted), lattices)

    sweeper = SiteSweeper(queue, lattices, counting)
    parts = CudaParts(
        packing.Packing.SITE,
        queue,
        lattices,
        sweeper,
        counting,
        compare,
        bits=lattices.bits,
        copied_bits=lattices.copied_bits,
    )
    return CudaEngine(model, replicas, parts)


class Share(NamedTuple):
    """Tiles of a lattice and the warps that share them."""

    record: npt.NDArray[np.void]  # tiles, as the kernel reads them
    tiles: int  # tiles taken by ticket, which are all but the edges
    edges: int  # tiles that touch other slabs, which are taken first
    layers: int  # layers of a tile that a thread takes: 1 if each warp has one tile, else 2
    blocks: int  # thread blocks that take the tiles
    reach: int  # largest distance between blocks with touching tiles, if each warp has one tile


def share_out(lattices: SiteLattices, blocks: int, processors: int) -> Share:
    """Divide tiles among all warps, if ``blocks`` blocks can be resident on each multiprocessor."""
    width, height, depth = lattices.width, lattices.height, lattices.depth
    layer, layers = (width * height, depth) if lattices.dimension == 3 else (width, height)
    columns = math.gcd(layer, WARP)
    across, warps = layer // columns, THREADS // WARP
    most = max(1, blocks * processors // lattices.count)

    def tiles(layers_a_thread: int) -> int:
        return across * -(-layers * columns // (layers_a_thread * WARP))

    waits = lattices.halo.flags is not None
    each = 1 if tiles(1) <= most * warps and across <= MOST_ACROSS and not waits else 2
    edges = min(2 * across, tiles(2)) if waits else 0
    between = tiles(each) - edges
    shared = record(SHARE, columns=columns, tiles=between, across=divisor(across), width=divisor(width))
    used = min(most, -(-tiles(each) // warps))
    reach = -(-(2 * across - 1) // warps) + (tiles(each) % warps > 0)  # a tile's layers and one more
    return Share(shared, between, edges, each, used, min(reach, used // 2))


def tables_record(plan: SitePlan, tables: list[Any]) -> npt.NDArray[np.void]:
    """Record of the addresses of tables; the caller must keep the tables."""
    always, planes, thresholds = tables
    stride = plan.replicas if len(always) > 1 else 0
    return record(UNIFORM_TABLES, always=always, planes=planes, thresholds=thresholds, stride=stride)


def half_sweeps_a_launch(plan: SitePlan) -> int:
    updates = packing.LANES * prod(plan.shape[:2]) * plan.groups
    return max(1, min(UPDATES_A_LAUNCH // updates, HALF_SWEEPS_A_LAUNCH))


class SharedSweeps:
    """Sweeps at the temperatures of tables, by as many blocks as are resident on the device."""

    def __init__(self, queue: Queue, lattices: SiteLattices, tables: list[Any], kind: Kind) -> None:
        self._stream, self._plan, self._count = queue.stream, lattices.plan, lattices.count
        self._halo = lattices.halo
        self._tables = tables
        blocks = BLOCKS
        while True:
            self._share = share = share_out(lattices, blocks, multiprocessors(queue.device))
            self._launch = self._ready(queue, lattices, share, kind)
            room = self._launch.blocks_at_once(THREADS)
            if room >= blocks:
                break
            blocks = room
        self._next = cupy.zeros(self._count, cupy.uint32)
        self._arrived = cupy.zeros(self._count * (share.blocks * APART if share.layers == 1 else 1), cupy.uint32)
        self._arrivals = self._drawn = 0

    def _ready(self, queue: Queue, lattices: SiteLattices, share: Share, kind: Kind) -> Launch:
        plan, dimension, signed, slots = self._plan, lattices.dimension, lattices.is_signed, 2 * lattices.dimension
        tables = tables_record(plan, self._tables)
        barrier = NEIGHBOUR_BARRIER if share.layers == 1 else LATTICE_BARRIER
        slabs = lattices.halo.flags is not None
        if slabs:
            barrier = SLAB_BARRIER
        rule = plan.has_field, int(kind), share.layers, queue.rng_rounds, slabs
        expression = instance("sweep_site", dimension, signed, *rule)
        return Launch(queue.device, "metropolis/site_packed.cu", expression, {
            **lattices.arguments, "tables": tables, "share": share.record, "first_sample": queue.first_sample,
            "first_replica": queue.first_block, "half_sweep": np.uint64(0), "half_sweeps": np.uint32(1),
            "all_tickets": np.zeros((), TICKETS), "barriers": np.zeros((), barrier), "key": queue.keys,
        }, 16 * THREADS * (slots + 1 + signed * slots))  # fmt: skip

    def sweep(self, half_sweeps: int, half_sweep: int) -> None:
        most = 1 if self._halo.is_copied else half_sweeps_a_launch(self._plan)
        for several, first in launches(half_sweeps, half_sweep, most):
            self._halo.fetch(1 - first % 2)
            self._queue_launch(several, first)

    def _queue_launch(self, several: int, half_sweep: int) -> None:
        share, flags = self._share, self._halo.flags
        samples, replicas = self._plan.shape[:2]
        barriers: tuple[Any, ...] = (self._arrived.data.ptr, self._arrivals)
        if share.layers == 1:
            barriers = *barriers, share.reach
        if flags is not None:
            barriers = barriers, *flags.next(several), share.edges
        self._launch(
            self._stream, (share.blocks, replicas, samples), THREADS, share.blocks > 1,
            half_sweep=half_sweep, half_sweeps=several, barriers=barriers,
            all_tickets=(self._next.data.ptr, self._drawn),
        )  # fmt: skip
        if share.layers > 1:
            draws = share.tiles + min(share.edges, share.blocks * (THREADS // WARP))
            self._drawn = (self._drawn + several * draws) % 2**32
        together = 1 if share.layers == 1 else share.blocks  # blocks that arrive at one count
        self._arrivals = (self._arrivals + (several - 1) * together) % 2**32


Sweeps = SharedSweeps | RowSweeps | WordSweeps | SpreadSweeps


class SiteSweeper(CudaSweeper):
    """A ``CudaSweeper`` of site-packed words.

    For a single replica per sample, one launch takes many measurements; for several, it takes one step of a tempering
    round.
    """

    def __init__(self, queue: Queue, lattices: SiteLattices, counting: CudaCounting) -> None:
        self.colours, self.tasks = lattices.plan.colours, lattices.count
        self._queue, self._lattices, self._plan, self._counting = queue, lattices, lattices.plan, counting
        self._sweeps: Sweeps
        self._lay: Launch | None = None

    def set_beta(self, beta: npt.ArrayLike) -> None:
        values = check_beta(beta, self._plan.replicas)
        arrays = [cupy.asarray(array) for array in self._plan.tables(values[None])]
        self._sweeps, self._lay, self.rounds = self._sweeps_at(arrays, self._plan.kind(values)), None, None

    def set_ladder(self, places: ReplicaPlaces) -> None:
        plan, beta = self._plan, places.ladder.beta
        classes, parts = 2**plan.classes.bits, plan.shape[:2]
        of_one = plan.tables(np.zeros((1, 1)))  # any temperature: only shapes and types are used
        always, planes, thresholds = arrays = [cupy.empty((*parts, *a.shape[2:]), a.dtype) for a in of_one]
        self._sweeps, self.rounds = self._sweeps_at(arrays, plan.kind(beta)), None
        is_alone = plan.replicas == 1 and isinstance(self._sweeps, WordSweeps | SpreadSweeps)
        if is_alone and not isinstance(places, GivenPlaces):
            self.rounds = MeasuredWords(self._swept(arrays, plan.kind(beta)), places, self._counting)
        self._limits = certain, limits = [cupy.asarray(a) for a in plan.limits(beta)]
        self._lay = Launch(self._queue.device, "tempering/lay_tables.cu", "lay_uniform_tables", {
            "always": always, "planes": planes, "thresholds": thresholds,
            "ladder": record(LADDER, limits=limits, certain=certain, temperatures=beta.size), "place": places.place,
            "replicas": np.uint32(self.tasks), "classes": np.uint32(classes),
        })  # fmt: skip

    def _sweeps_at(self, tables: list[Any], kind: Kind) -> Sweeps:
        lattices, plan, self._tables = self._lattices, self._plan, tables  # records hold only addresses
        alone = fits_block(plan.groups)
        is_small = alone or fits_gpu(plan.groups, self.tasks, self._queue.device)
        if lattices.fills_groups and not (is_small and plan.groups == plan.all_groups):
            return SharedSweeps(self._queue, lattices, tables, kind)
        swept = self._swept(tables, kind)
        if alone:
            return WordSweeps(swept)
        return SpreadSweeps(swept) if is_small else RowSweeps(swept, THREADS)

    def _swept(self, tables: list[Any], kind: Kind) -> Swept:
        lattices, plan = self._lattices, self._plan
        given = {
            "state": lattices.present, "rows": lattices.any_rows, "signs": lattices.arguments["signs"],
            "tables": tables_record(plan, tables),
        }  # fmt: skip
        rule = lattices.dimension, lattices.is_signed, plan.has_field
        return Swept(self._queue, given, plan.shape, rule, kind, half_sweeps_a_launch(plan))

    def lay_tables(self) -> None:
        if self._lay is not None:
            self._lay(self._queue.stream, (-(-self.tasks // THREADS), 1, 1), THREADS)

    def sweep(self, count: int, half_sweep: int) -> None:
        self._sweeps.sweep(count * self.colours, half_sweep)
