"""Site-packed spins on a GPU: warps share a lattice tile by tile, and stay for many half-sweeps."""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim import packing
from spinsim.acceptance import check_beta
from spinsim.cuda.compile import instance
from spinsim.cuda.device import cupy, multiprocessors
from spinsim.cuda.launch import Launch, record
from spinsim.engine.cuda import CudaEngine, CudaParts, CudaSweeper
from spinsim.engine.cuda_queue import Queue, check_grid
from spinsim.engine.dynamics import Dynamics
from spinsim.engine.measuring.correlations import Wanted
from spinsim.engine.measuring.cuda_comparison import Compared, Comparison
from spinsim.engine.measuring.sums import CudaCounting
from spinsim.engine.moves.exchange.cuda import LADDER, CudaTempering, ReplicaPlaces
from spinsim.engine.moves.metropolis.packed.classes import APART, LATTICE_BARRIER, NEIGHBOUR_BARRIER, TICKETS, Kind
from spinsim.engine.moves.metropolis.site_packed.cuda_lattices import (
    SHARE,
    SLAB_BARRIER,
    UNIFORM_TABLES,
    SiteLattices,
    compare_lattices,
    divisor,
)
from spinsim.engine.moves.metropolis.site_packed.update import SitePlan
from spinsim.engine.update import Slab
from spinsim.model.ising import Ising

THREADS: Final = 128
BLOCKS: Final = 4  # on one multiprocessor, where its shared memory allows it
WARP: Final = 32
MOST_ACROSS: Final = 64  # tiles side by side, so that a block can wait for all blocks beside it
UPDATES_A_LAUNCH: Final = 2**37  # so that a launch stays well below a second
HALF_SWEEPS_A_LAUNCH: Final = 2000


def engine(model: Ising, replicas: int, dynamics: Dynamics, device: int, slab: Slab | None = None) -> CudaEngine:
    """The engine of couplings of one magnitude and a uniform field on lattices whose ``rows_can_be_packed``."""
    plan, queue = SitePlan(model, replicas, dynamics, slab and slab.layers), Queue(device, dynamics)
    check_grid(model.samples, replicas)
    with queue.here():
        lattices = SiteLattices(plan, queue, slab and slab.group)
        shape = len(plan.observables.sums), model.samples, replicas
        counting = CudaCounting(queue.stream, plan.observables, shape, replicas, lattices.add)

    def compare(tempering: CudaTempering, wanted: Wanted) -> Comparison:
        return compare_lattices(Compared(device, model, tempering, wanted), lattices.slab)

    sweeper = SiteSweeper(queue, lattices)
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
    tiles: int  # tiles that are taken by ticket, which are all but the edges
    edges: int  # tiles that touch other slabs, which are taken first
    layers: int  # layers of a tile that a thread takes: 1 where each warp has one tile, else 2
    blocks: int  # thread blocks that take them
    reach: int  # how far before and behind a block those are whose tiles touch its own, where each warp has one tile


def share_out(lattices: SiteLattices, blocks: int, processors: int) -> Share:
    """Tiles for all warps, where ``blocks`` blocks can be resident on each of the multiprocessors."""
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


class SharedSweeps:
    """Sweeps at the temperatures of tables, by as many blocks as the device holds at once."""

    def __init__(self, queue: Queue, lattices: SiteLattices, tables: list[Any], kind: Kind) -> None:
        self._stream, self._plan, self._count = queue.stream, lattices.plan, lattices.count
        self._halo = lattices.halo
        self._tables = tables  # the record holds addresses alone
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
        always, planes, thresholds = self._tables
        stride = plan.replicas if len(always) > 1 else 0
        tables = record(UNIFORM_TABLES, always=always, planes=planes, thresholds=thresholds, stride=stride)
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
        most = min(UPDATES_A_LAUNCH // (packing.LANES * self._plan.groups * self._count), HALF_SWEEPS_A_LAUNCH)
        while half_sweeps:
            several = min(half_sweeps, max(1, most))
            if self._halo.is_copied:
                several = 1
                self._halo.fetch(1 - half_sweep % 2)
            self._queue_launch(several, half_sweep)
            half_sweep += several
            half_sweeps -= several

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
        together = 1 if share.layers == 1 else share.blocks  # that arrive at one count
        self._arrivals = (self._arrivals + (several - 1) * together) % 2**32


class SiteSweeper(CudaSweeper):
    """A ``CudaSweeper`` of site-packed words, whose lattices are too large to be tempered in one launch."""

    def __init__(self, queue: Queue, lattices: SiteLattices) -> None:
        self.colours, self.tasks = lattices.plan.colours, lattices.count
        self._queue, self._lattices, self._plan = queue, lattices, lattices.plan
        self._sweeps: SharedSweeps
        self._lay: Launch | None = None

    def set_beta(self, beta: npt.ArrayLike) -> None:
        values = check_beta(beta, self._plan.replicas)
        arrays = [cupy.asarray(array) for array in self._plan.tables(values[None])]
        self._sweeps, self._lay = SharedSweeps(self._queue, self._lattices, arrays, self._plan.kind(values)), None

    def set_ladder(self, places: ReplicaPlaces) -> None:
        plan, beta = self._plan, places.ladder.beta
        classes, parts = 2**plan.classes.bits, plan.shape[:2]
        of_one = plan.tables(np.zeros((1, 1)))  # at any temperature: for its shapes and types
        always, planes, thresholds = arrays = [cupy.empty((*parts, *a.shape[2:]), a.dtype) for a in of_one]
        self._sweeps = SharedSweeps(self._queue, self._lattices, arrays, plan.kind(beta))
        self._limits = certain, limits = [cupy.asarray(a) for a in plan.limits(beta)]
        self._lay = Launch(self._queue.device, "tempering/lay_tables.cu", "lay_uniform_tables", {
            "always": always, "planes": planes, "thresholds": thresholds,
            "ladder": record(LADDER, limits=limits, certain=certain, temperatures=beta.size), "place": places.place,
            "replicas": np.uint32(self.tasks), "classes": np.uint32(classes),
        })  # fmt: skip

    def lay_tables(self) -> None:
        if self._lay is not None:
            self._lay(self._queue.stream, (-(-self.tasks // THREADS), 1, 1), THREADS)

    def sweep(self, count: int, half_sweep: int) -> None:
        self._sweeps.sweep(count * self.colours, half_sweep)
