"""Replica-packed spins on a GPU.

Few lattices are spread over the GPU. Others stay in shared memory for many sweeps, or lie in global memory and are
shared by several thread blocks each.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from typing import Final

import numpy as np

from spinsim import packing
from spinsim.cuda.compile import instance
from spinsim.cuda.device import cupy
from spinsim.cuda.launch import Launch
from spinsim.engine.cuda import CudaEngine, CudaParts, CudaSweeper
from spinsim.engine.cuda_queue import Queue, check_grid
from spinsim.engine.dynamics import Dynamics
from spinsim.engine.layouts.replica_packed_cuda import OrderedWords, WordRun, place_of
from spinsim.engine.measuring.correlations import Quantities
from spinsim.engine.measuring.cuda import CudaSquares
from spinsim.engine.measuring.cuda_comparison import (
    Compared,
    Comparison,
    InTime,
    Layout,
    Products,
    compare_replicas,
    fits_in_time,
)
from spinsim.engine.measuring.sums import CudaCounting
from spinsim.engine.moves.exchange import Ladder
from spinsim.engine.moves.exchange_cuda import CudaTempering, GivenPlaces, ReplicaPlaces
from spinsim.engine.moves.metropolis.classes import LATTICE_BARRIER, TICKETS, Kind, Limits, kind_of
from spinsim.engine.moves.metropolis.cuda_spread import SPREAD_THREADS, WORDS
from spinsim.engine.moves.metropolis.replica_packed.cuda_lattices import (
    COSTS,
    GLOBAL_THREADS,
    TILE_SITES,
    WARP,
    DegreeLattices,
    DegreeSweeper,
    DeviceTables,
    ReplicaLattices,
    TableSweeper,
    TermLattices,
    TermSweeper,
    shared_bytes,
)
from spinsim.engine.moves.metropolis.replica_packed.cuda_rounds import launched_rounds
from spinsim.engine.moves.metropolis.replica_packed.update import FEW_BONDS, ReplicaPlan, TermPlan, is_field_in_class
from spinsim.model.graph import MOST_TERMS
from spinsim.model.ising import Ising

UNBOUNDED: Final = 2**62
MOST_BONDS: Final = 31  # most bonds of a site in kernels that do not group sites by degree

AS_BONDS: Final = range(1000, 12_000)  # sites of graphs in shared memory whose tempering launches do not limit


def groups_by_degree(model: Ising) -> bool:
    """Return True if sites are grouped by degree: if counts need it, or if it beats classes with the field."""
    if model.magnitude is None or model.uniform_field is None or model.graph.largest_degree > MOST_BONDS:
        return True
    few = model.uniform_field == 0 or model.graph.largest_degree <= FEW_BONDS
    return not few and model.sites in AS_BONDS and not is_field_in_class(model, always=False)


def engine(model: Ising, replicas: int, dynamics: Dynamics, device: int) -> CudaEngine:
    """Create the engine of a model with couplings of one magnitude and a uniform field."""
    many = groups_by_degree(model)
    largest, costs = (TILE_SITES, COSTS) if many else (UNBOUNDED, None)
    plan = ReplicaPlan(model, replicas, dynamics, largest, costs, many, not many)
    plan.classes = plan.classes.without_gains(*plan.used_tables)
    queue = Queue(device, dynamics)
    check_grid(*plan.shape[:2])
    if many:
        with queue.here():
            of_degrees = DegreeLattices(plan, queue)
        return engine_of(plan, queue, of_degrees, lambda _: DegreeSweeper(queue, of_degrees), packing.Packing.REPLICA)
    with queue.here():
        lattices = ReplicaLattices(plan, queue)
    return engine_of(plan, queue, lattices, partial(ReplicaSweeper, queue, lattices), packing.Packing.REPLICA)


def engine_of_terms(model: Ising, replicas: int, dynamics: Dynamics, device: int) -> CudaEngine:
    """Create the engine of a model with two terms, each of couplings of one magnitude, in a uniform field."""
    plan, queue = TermPlan(model, replicas, dynamics, UNBOUNDED), Queue(device, dynamics)
    check_grid(*plan.shape[:2])
    with queue.here():
        lattices = TermLattices(plan, queue)
    return engine_of(
        plan, queue, lattices, lambda _: TermSweeper(queue, lattices), packing.Packing.ANISOTROPIC, (MOST_TERMS,)
    )


def engine_of(
    plan: WordRun, queue: Queue, state: OrderedWords,
    sweeper: Callable[[CudaCounting], CudaSweeper], name: packing.Packing, temperatures: tuple[int, ...] = (1,),
) -> CudaEngine:  # fmt: skip
    """Create the engine of replica words; ``sweeper`` makes the sweeper, other arguments are as in ``CudaParts``."""
    device = queue.device
    with queue.here():
        shape = len(plan.observables.sums), *plan.shape[:2], packing.LANES
        counting = CudaCounting(queue.stream, plan.observables, shape, plan.replicas, state.add)

    def squares(ladder: Ladder) -> CudaSquares:
        place = place_of(plan.batches.order)
        return CudaSquares(device, plan.model, ladder, place, "squares_of_replicas", plan.shape[1], {})

    compared = partial(compare, plan, device)
    parts = CudaParts(name, queue, state, sweeper(counting), counting, compared, temperatures, squares)
    return CudaEngine(plan.model, plan.replicas, parts)


def compare(plan: WordRun, device: int, tempering: CudaTempering, wanted: Quantities) -> Comparison:
    blocks = plan.shape[1]
    width = {"sites": np.uint32(plan.model.sites), "blocks": np.uint32(blocks)}
    columns = blocks * packing.LANES // WARP
    expression = instance("differing_replicas", columns if blocks == 1 else 0)
    comparison = Compared(device, plan.model, tempering, wanted)
    place, graph, in_time, products = place_of(plan.batches.order), plan.model.graph, None, None
    shape = plan.model.samples, blocks
    if comparison.times and fits_in_time(graph.slices):
        in_time = InTime(device, place[graph.world_lines()], comparison.times, shape, plan.replicas, tempering.pairs(0))
    if wanted.even:
        layout = Layout("products_of_replicas", expression, shape, WORDS, width, columns, place)
        products = Products(comparison, layout)
    return compare_replicas(comparison, expression, width, columns, place, in_time, products)


class InShared:
    """Sweeps of lattices in shared memory, one thread block each."""

    def __init__(self, queue: Queue, lattices: ReplicaLattices, tables: DeviceTables, kinds: dict[int, Kind]) -> None:
        ((slots, kind),) = kinds.items()
        samples, blocks = lattices.plan.shape[:2]
        self._stream, self._threads, self._grid = queue.stream, lattices.shared_threads, (1, blocks, samples)
        self._tables = tables  # the record holds only addresses
        expression = lattices.expression("sweep_shared", slots, kind)
        self._launch = Launch(queue.device, "metropolis/replica_packed_shared.cu", expression, {
            **lattices.arguments, **lattices.in_colours,
            "tables": tables.record, "first_sample": queue.first_sample, "first_block": queue.first_block,
            "half_sweep": np.uint64(0), "sweeps": np.uint32(0),
        }, shared_bytes(lattices.plan, self._threads))  # fmt: skip

    def sweep(self, sweeps: int, half_sweep: int) -> None:
        self._launch(self._stream, self._grid, self._threads, half_sweep=half_sweep, sweeps=sweeps)


class FromGlobal:
    """Sweeps of lattices in global memory; thread blocks take their tiles by ticket."""

    def __init__(self, queue: Queue, lattices: ReplicaLattices, tables: DeviceTables, kinds: dict[int, Kind]) -> None:
        self._stream, self._plan = queue.stream, lattices.plan
        self._tiles = {slots: [int(count) for count in tiles] for slots, tiles in lattices.tiles.items()}
        self._tables = tables  # the record holds only addresses
        samples, blocks = lattices.plan.shape[:2]
        self._arrived, self._next = (cupy.zeros(samples * blocks, cupy.uint32) for _ in range(2))
        self._arrivals = self._drawn = 0
        self._lattices = lattices
        self._launches = {slots: self._ready(queue, lattices, slots, kind) for slots, kind in kinds.items()}

    @cached_property
    def _shares(self) -> dict[int, int]:
        """Number of thread blocks per lattice, for each kernel, which must be compiled before."""
        return {slots: self._lattices.sharing_blocks(launch, slots) for slots, launch in self._launches.items()}

    def _ready(self, queue: Queue, lattices: ReplicaLattices, slots: int, kind: Kind) -> Launch:
        """Return the kernel with all arguments except the launch's."""
        expression = lattices.expression("sweep_replica", slots, kind)
        return Launch(queue.device, "metropolis/replica_packed.cu", expression, {
            **lattices.arguments, **lattices.in_colours,
            "tables": self._tables.record, "first_sample": queue.first_sample, "first_block": queue.first_block,
            "half_sweep": np.uint64(0), "half_sweeps": np.uint32(0), "all_tickets": np.zeros((), TICKETS),
            "barriers": np.zeros((), LATTICE_BARRIER),
        })  # fmt: skip

    def sweep(self, sweeps: int, half_sweep: int) -> None:
        """Queue sweeps: in one launch if all sites have one kernel, else in one launch per half-sweep and kernel."""
        half_sweeps = sweeps * self._plan.colours
        if len(self._launches) == 1:
            self._sweep_half(half_sweeps, half_sweep)
            return
        for done in range(half_sweeps):
            self._sweep_half(1, half_sweep + done)

    def _sweep_half(self, half_sweeps: int, half_sweep: int) -> None:
        """Queue half-sweeps in one launch for each number of slots; if there are several, ``half_sweeps`` must be 1."""
        samples, blocks = self._plan.shape[:2]
        whole, rest = divmod(half_sweeps, self._plan.colours)
        for slots, launch in self._launches.items():
            tiles, share = self._tiles[slots], self._shares[slots]
            launch(
                self._stream, (share, blocks, samples), GLOBAL_THREADS, share > 1,
                half_sweep=half_sweep, half_sweeps=half_sweeps, all_tickets=(self._next.data.ptr, self._drawn),
                barriers=(self._arrived.data.ptr, self._arrivals),
            )  # fmt: skip
            if slots:  # then tickets are drawn
                drawn = whole * sum(tiles) + sum(tiles[(half_sweep + k) % len(tiles)] for k in range(rest))
                self._drawn = (self._drawn + drawn) % 2**32
            self._arrivals = (self._arrivals + (half_sweeps - 1) * share) % 2**32


class Spread:
    """Sweeps of few lattices, each spread over the GPU."""

    def __init__(self, queue: Queue, lattices: ReplicaLattices, tables: DeviceTables, kinds: dict[int, Kind]) -> None:
        ((slots, kind),) = kinds.items()
        self._stream, self._lattices = queue.stream, lattices
        self._tables = tables  # the record holds only addresses
        expression = lattices.expression("sweep_spread_replica", slots, kind)
        self._launch = Launch(queue.device, "metropolis/replica_packed_spread.cu", expression, {
            **lattices.arguments, "dated": lattices.dated.array, "tables": tables.record,
            "first_sample": queue.first_sample, "first_block": queue.first_block, "half_sweep": np.uint64(0),
            "sweeps": np.uint32(0), "date": np.uint32(0),
        })  # fmt: skip

    def sweep(self, sweeps: int, half_sweep: int) -> None:
        date, grid = self._lattices.dated.advance(2 * sweeps), self._lattices.spread_grid
        self._launch(self._stream, grid, SPREAD_THREADS, True, half_sweep=half_sweep, sweeps=sweeps, date=date)


class ReplicaSweeper(TableSweeper):
    """A ``CudaSweeper`` of replica-packed words."""

    def __init__(self, queue: Queue, lattices: ReplicaLattices, counting: CudaCounting) -> None:
        super().__init__(queue, lattices, lattices.plan)
        self._packed, self._counting = lattices, counting
        self._kinds: dict[int, Kind] = {}

    def _make_ready(self, tables: DeviceTables, limits: Limits) -> None:
        lattices, plan = self._packed, self._packed.plan
        has_kinds = lattices.fixed or plan.has_field
        kind = kind_of(plan.classes, plan.dynamics.zero_acceptance, limits) if has_kinds else Kind.ANY
        self._kinds = {slots: kind if slots in (4, 6) else min(kind, Kind.PLAIN) for slots in lattices.slots}
        launches: type[InShared | FromGlobal | Spread] = InShared if lattices.in_shared else FromGlobal
        if lattices.are_spread(self._kinds):
            launches = Spread
        self._launches = launches(self._queue, lattices, tables, self._kinds)

    def set_ladder(self, places: ReplicaPlaces) -> None:
        super().set_ladder(places)
        if self._on_ladder is None or isinstance(places, GivenPlaces):
            return  # exchanges are made elsewhere
        self.rounds = launched_rounds(
            self._kinds, self._packed, self._on_ladder, self._queue.device, queue=self._queue, tempering=places,
            counting=self._counting, most_sweeps=self.most_sweeps,
        )  # fmt: skip

    def _queue_sweeps(self, count: int, half_sweep: int) -> None:
        most = self.most_sweeps
        for done in range(0, count, most):
            self._launches.sweep(min(most, count - done), half_sweep + done * self.colours)
