"""Replica-packed spins on a GPU: ``state[sample, block, place, half]``, place i holding site ``batches.order[i]``."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from spinsim import packing
from spinsim.acceptance import check_beta
from spinsim.cuda.compile import instance
from spinsim.cuda.device import multiprocessors, require_memory, shared_memory
from spinsim.cuda.launch import Launch
from spinsim.cuda.records import record
from spinsim.engine.cuda import CudaEngine, check_grid
from spinsim.engine.dynamics import Dynamics
from spinsim.engine.ladder.cuda import LADDER, Tempering
from spinsim.engine.measuring.cuda import NOTHING, Measurements, Measuring
from spinsim.engine.measuring.cuda_comparison import Comparison, ReplicaComparison
from spinsim.engine.measuring.cuda_totals import Totals
from spinsim.engine.packed.classes import PLANES
from spinsim.engine.packed.cuda_sharing import LATTICE_BARRIER, TICKETS
from spinsim.engine.packed.kinds import Kind, kind_of
from spinsim.engine.replica_packed.cuda_records import (
    BONDS,
    HELD_BYTES,
    LANE_SUMS,
    MODEL,
    NOTES,
    TABLES,
    TALLIED_GROUPS,
    TALLY_BYTES,
    batch_table,
    bond_groups,
    places,
    site_records,
    tail_bytes,
)
from spinsim.engine.replica_packed.plan import ReplicaPlan
from spinsim.engine.replica_packed.tables import empty_tables
from spinsim.errors import InputError
from spinsim.model.ising import Ising

THREADS: Final = 128  # of a lattice in global memory
WARP: Final = 32
LEAST_SHARED_THREADS, MOST_SHARED_THREADS = 32, 512  # of a lattice in shared memory
SITES_A_THREAD: Final = 8  # of one colour, of a lattice in shared memory: fewer leave queues half empty
UPDATES_A_LAUNCH: Final = 2**37  # so that a launch stays well below a second
SWEEPS_A_LAUNCH: Final = 1000
COUNT_THREADS: Final = 256  # of a block that counts
ITEMS_A_THREAD: Final = 24  # sites or bonds that a thread counts, at most 31
UNBOUNDED: Final = 2**62


def shared_bytes(plan: ReplicaPlan, threads: int) -> int:
    """Shared memory that holds one lattice, its tables and the queues of its warps."""
    rows = 1 + (2 * (1 + PLANES) << plan.classes.bits)
    return 16 * (plan.model.sites + rows) + threads // 32 * tail_bytes(plan.classes.bits)


def shared_threads(plan: ReplicaPlan, room: int, processors: int) -> int:
    """Threads of a lattice in ``room`` bytes of shared memory: enough to fill the device; 0 where it does not fit."""
    least, most = LEAST_SHARED_THREADS, MOST_SHARED_THREADS
    lattices = plan.shape[0] * plan.shape[1]
    wanted = max(most * processors // lattices, plan.model.sites // (plan.colours * SITES_A_THREAD))
    threads = least
    while 2 * threads <= min(wanted, most) and shared_bytes(plan, 2 * threads) <= room:
        threads *= 2
    return threads if shared_bytes(plan, threads) <= room else 0


class CudaPackedEngine(CudaEngine):
    """An ``Engine`` for couplings of one magnitude and a uniform field."""

    packing = packing.Packing.REPLICA

    def __init__(self, model: Ising, replicas: int, dynamics: Dynamics, device: int = 0) -> None:
        import cupy

        super().__init__(model, replicas, dynamics, device)
        self._plan = plan = ReplicaPlan(model, replicas, dynamics, UNBOUNDED)
        self.colours = plan.colours
        check_grid(*plan.shape[:2])
        self._shared_threads = shared_threads(plan, shared_memory(device), multiprocessors(device))
        slots = set(plan.batches.slots.tolist())
        self._fixed = plan.classes.count_bits == 3 and not (len(slots) > 1 and self._shared_threads)
        self._slots = slots if self._fixed else {0}  # each has a kernel; 0: any number
        order, place = plan.batches.order, places(plan.batches)
        if self._fixed:
            lists: tuple[npt.NDArray[Any], ...] = site_records(plan.batches)
        else:
            lists = order, place[plan.batches.neighbour], plan.batches.signs
        negative = plan.negative.astype(np.uint8)
        arrays = (*lists, plan.lanes, negative, place[model.graph.edges].view(np.int32))
        needed = sum(a.nbytes for a in (*arrays, order)) + 8 * int(np.prod(plan.shape))
        require_memory(device, needed, f"the state of {model.name}")
        with self._here():
            *self._lists, self._lanes, self._negative, self._edges = (cupy.asarray(array) for array in arrays)
            stride = lists[-1][0].size if len(negative) > 1 else 0
            if self._fixed:
                given = dict(zip(("near", "negative"), self._lists, strict=True), negative_stride=stride // 8)
            else:
                given = dict(zip(("order", "neighbour", "signs"), self._lists, strict=True), sign_stride=stride)
            self._model = record(MODEL, **dict.fromkeys(MODEL.names or (), 0) | given)
            self._batches = cupy.asarray(batch_table(plan.batches))
            self._colour_start = cupy.asarray(plan.batches.colour_start.astype(np.int32))
            self.state = cupy.empty(plan.shape, cupy.uint64)
            if dynamics.start == "up":
                self.state[:] = self._lanes[None, :, None, :]
            else:
                self._random_start(self.state, self._lanes, cupy.asarray(order))
        self._launches: dict[int, Launch] = {}
        self._counted: Totals | None = None  # what the kernel of many rounds leaves, at half-sweep ``_counted_at``
        self._counted_at = -1
        self._sums_shape = 2, *plan.shape[:2], packing.LANES
        self._observables = plan.observables

    @property
    def tasks(self) -> int:
        """Blocks of 128 replicas over all samples."""
        return self._plan.shape[0] * self._plan.shape[1]

    def set_beta(self, beta: npt.ArrayLike) -> None:
        """Set the inverse temperature: a number or one for each replica (replicas,)."""
        import cupy

        tables = self._plan.tables(beta)
        with self._here():
            self._tables = [cupy.asarray(a) for a in (tables.always, tables.planes, tables.thresholds)]
            self._make_launches(check_beta(beta, self.replicas))
        self._tempering, self._laid = None, True

    def _make_launches(self, beta: npt.NDArray[np.float64]) -> None:
        """Make ready for sweeps at inverse temperatures ``beta``, whatever the tables will hold of them."""
        import cupy

        self._arrived, self._next = (cupy.zeros(self.tasks, cupy.uint32) for _ in range(2))
        self._arrivals = self._drawn = 0
        kind = kind_of(self._plan, beta) if self._fixed else Kind.ANY
        odd = min(kind, Kind.PLAIN)  # for sites of odd degree
        launch = self._shared_launch if self._shared_threads else self._global_launch
        self._kinds = {slots: odd if slots % 2 else kind for slots in self._slots}
        self._launches = {slots: launch(slots, kind) for slots, kind in self._kinds.items()}
        if not self._shared_threads:
            self._shares = {slots: self._share(slots, launch) for slots, launch in self._launches.items()}

    def _share(self, slots: int, launch: Launch) -> int:
        """Thread blocks for each lattice in global memory, all resident at once."""
        room = launch.blocks_at_once(THREADS) * multiprocessors(self.device) // self.tasks
        return min(max(1, room), -(-int(self._tiles[slots].max()) // (THREADS // WARP)))

    def _tables_record(self) -> npt.NDArray[np.void]:
        always, planes, thresholds = self._tables
        stride = self._plan.shape[1] if len(always) > 1 else 0
        return record(TABLES, always=always, planes=planes, thresholds=thresholds, lanes=self._lanes, stride=stride)

    def _prepare_ladder(self, tempering: Tempering) -> None:
        import cupy

        plan, beta = self._plan, tempering.ladder.beta
        tables = empty_tables(plan.classes, self.model.samples, self.replicas)
        self._tables = [cupy.empty(a.shape, a.dtype) for a in (tables.always, tables.planes, tables.thresholds)]
        self._make_launches(beta)
        self._limits = [cupy.asarray(a) for a in plan.limits(beta)]
        certain, limits = self._limits
        always, planes, thresholds = self._tables
        self._lay = Launch(self.device, "tempering/lay_tables.cu", "lay_tables", {
            "always": always, "planes": planes, "thresholds": thresholds,
            "ladder": record(LADDER, limits=limits, certain=certain, temperatures=beta.size), "place": tempering.place,
            "replicas": np.uint32(self.replicas), "classes": np.uint32(2**plan.classes.bits),
        })  # fmt: skip
        self._rounds = self._temper_launch(tempering) if self._fits_with_ladder else None

    @property
    def _fits_with_ladder(self) -> bool:
        """Whether one thread block can temper a sample: 128 replicas at most, in shared memory."""
        if not self._shared_threads or self._plan.shape[1] > 1:
            return False
        return shared_bytes(self._plan, self._shared_threads) + HELD_BYTES <= shared_memory(self.device)

    @property
    def _last_colour(self) -> npt.NDArray[np.uint32]:
        """Its sites."""
        batches = self._plan.batches
        return batches.order[batches.first[batches.colour_start[-2]] :]

    @property
    def _is_tallied(self) -> bool:
        """Whether bonds can be counted while the last colour is updated: each has an end of it, and there is room."""
        threads = self._shared_threads
        needed = shared_bytes(self._plan, threads) + TALLY_BYTES * threads + HELD_BYTES
        fits = needed <= shared_memory(self.device) and self._last_colour.size <= TALLIED_GROUPS * threads
        return fits and self.colours == 2

    @property
    def _phantoms(self) -> int:
        """Unsatisfied phantom bonds that are counted with them."""
        degree = self.model.graph.degrees()[self._last_colour]
        return int((self._plan.classes.padded_degree(0) + degree % 2 - degree).sum()) // 2

    def _temper_launch(self, tempering: Tempering) -> Launch:
        """Many rounds of sweeps and exchanges of lattices in shared memory."""
        import cupy

        (slots,) = self._slots
        certain, limits = self._limits
        self._tallies, threads = self._is_tallied, self._shared_threads
        self._groups = groups = cupy.asarray(bond_groups(self._edges.get(), self._plan.negative))
        per, count = self._plan.observables.energy.weights, groups.shape[1]
        expression = self._instance("temper_shared", slots, self._kinds[slots])
        return Launch(self.device, "tempering/temper_shared.cu", expression, {
            "state": self.state, "sites": np.uint32(self.model.sites), "batches": self._batches,
            "colour_start": self._colour_start, "colours": np.int32(self.colours), "model": self._model,
            "lanes": self._lanes,
            "ladder": record(LADDER, limits=limits, certain=certain, temperatures=tempering.ladder.temperatures),
            "exchange": tempering.record,
            "bonds": record(BONDS, groups=groups, stride=count if len(groups) > 1 else 0, count=count),
            "per_up": np.int64(per["up"]), "per_unsatisfied": np.int64(per["unsatisfied"]), "tallied": np.uint32(0),
            "phantoms": np.uint32(self._phantoms),
            "sums": np.zeros((), LANE_SUMS), "first_sample": np.uint32(0), "first_half_sweep": np.uint64(0),
            "sweeps": np.uint32(0), "first_round": np.uint64(0), "rounds": np.uint32(0),
            "notes": np.zeros((), NOTES), "measured": NOTHING, "key": self._round_keys,
        }, shared_bytes(self._plan, threads) + TALLY_BYTES * threads * self._tallies)  # fmt: skip

    def temper(self, rounds: int, sweeps: int) -> None:
        """``rounds`` times: sweep ``sweeps`` times, then try to exchange neighbouring temperatures."""
        self._on_ladder()
        most = self._most_sweeps // max(1, sweeps)
        if self._rounds is None or not most:
            super().temper(rounds, sweeps)
            return
        with self._here():
            for done in range(0, rounds, most):
                self._temper_in_shared(min(most, rounds - done), sweeps)

    def _temper_in_shared(self, rounds: int, sweeps: int, **notes: Any) -> None:
        """Many rounds in one launch; ``notes`` are those of measurements."""
        tempering = self._on_ladder()
        assert self._rounds is not None  # noqa: S101  (callers have looked)
        if self._counted is None:
            self._counted = self._totals.take(self._sums_shape)
        self._rounds(
            self.stream, (1, 1, self.model.samples), self._shared_threads,
            tallied=self._tallies and sweeps > 0, sums=self._counted.parts, first_half_sweep=self.half_sweep,
            sweeps=sweeps, first_round=tempering.round, rounds=rounds, **({"notes": (0, 0, 0)} | notes),
        )  # fmt: skip
        self.half_sweep += rounds * sweeps * self.colours
        tempering.round += rounds
        self._counted_at, self._laid = self.half_sweep, False

    def _temper_into(self, measuring: Measuring, measurements: Measurements, rounds: int, sweeps: int) -> None:
        all_rounds = measurements.count * rounds
        if self._rounds is None or not 0 < all_rounds * max(1, sweeps) <= self._most_sweeps:
            super()._temper_into(measuring, measurements, rounds, sweeps)
            return
        notes = measurements.address(0), measurements.held.address(0), rounds
        self._temper_in_shared(all_rounds, sweeps, notes=notes, measured=measuring.record)

    def _take_counted(self) -> Totals | None:
        if self._counted_at != self.half_sweep:
            return None
        counted, self._counted, self._counted_at = self._counted, None, -1
        return counted

    def _lay_tables(self) -> None:
        self._laid = True
        samples, blocks = self._plan.shape[:2]
        self._lay(self.stream, (blocks, samples, 1), packing.LANES)

    def _compare(self, tempering: Tempering, full: bool) -> Comparison:
        blocks, place = self._plan.shape[1], places(self._plan.batches)
        width = {"sites": np.uint32(self.model.sites), "blocks": np.uint32(blocks)}
        columns, others = blocks * packing.LANES // WARP, (self.device, self.model, tempering, full)
        expression = instance("differing_replicas", columns if blocks == 1 else 0)
        return ReplicaComparison(expression, width, columns, place, *others)

    def sweep(self, count: int) -> None:
        """Attempt every spin of every replica ``count`` times."""
        if not self._launches:
            raise InputError("no temperature is set: call set_beta before sweep")
        most = self._most_sweeps
        with self._here():
            if not self._laid:
                self._lay_tables()
            for done in range(0, count, most):
                sweeps = min(most, count - done)
                if self._shared_threads:
                    self._sweep_in_shared(sweeps)
                elif len(self._launches) == 1:
                    self._sweep_from_global(sweeps * self.colours)
                else:
                    for _ in range(sweeps * self.colours):
                        self._sweep_from_global(1)

    @property
    def _most_sweeps(self) -> int:
        """Sweeps of one launch."""
        most = UPDATES_A_LAUNCH // (packing.LANES * self.model.sites * self.tasks)
        return max(1, min(most, SWEEPS_A_LAUNCH))

    def _instance(self, function: str, slots: int, kind: Kind) -> str:
        """The kernel for sites of ``slots`` bonds, 0 for any number."""
        plan = self._plan
        return instance(function, slots, plan.classes.count_bits, plan.has_field, int(kind), self.dynamics.rng_rounds)

    def _shared_launch(self, slots: int, kind: Kind) -> Launch:
        """Many sweeps of lattices in shared memory."""
        return Launch(self.device, "metropolis/replica_packed_shared.cu", self._instance("sweep_shared", slots, kind), {
            "state": self.state, "sites": np.uint32(self.model.sites), "batches": self._batches,
            "colour_start": self._colour_start, "colours": np.int32(self.colours), "model": self._model,
            "tables": self._tables_record(), "first_sample": np.uint32(0), "first_block": np.uint32(0),
            "half_sweep": np.uint64(0), "sweeps": np.uint32(0), "key": self._round_keys,
        }, shared_bytes(self._plan, self._shared_threads))  # fmt: skip

    def _global_launch(self, slots: int, kind: Kind) -> Launch:
        """Half-sweeps of lattices in global memory."""
        return Launch(self.device, "metropolis/replica_packed.cu", self._instance("sweep_replica", slots, kind), {
            "state": self.state, "sites": np.uint32(self.model.sites), "batches": self._batches,
            "colour_start": self._colour_start, "colours": np.uint32(self.colours), "model": self._model,
            "tables": self._tables_record(), "first_sample": np.uint32(0), "first_block": np.uint32(0),
            "half_sweep": np.uint64(0), "half_sweeps": np.uint32(0), "all_tickets": np.zeros((), TICKETS),
            "barriers": np.zeros((), LATTICE_BARRIER), "key": self._round_keys,
        })  # fmt: skip

    def _sweep_in_shared(self, sweeps: int) -> None:
        """Many sweeps in one launch, a thread block for each lattice."""
        samples, blocks = self._plan.shape[:2]
        (launch,) = self._launches.values()
        launch(self.stream, (1, blocks, samples), self._shared_threads, half_sweep=self.half_sweep, sweeps=sweeps)
        self.half_sweep += sweeps * self.colours

    def _sweep_from_global(self, half_sweeps: int) -> None:
        """Half-sweeps in one launch for each number of slots; ``half_sweeps`` is 1 where there are several."""
        samples, blocks = self._plan.shape[:2]
        whole, rest = divmod(half_sweeps, self.colours)
        colours = (self.half_sweep + np.arange(rest)) % self.colours
        for slots, launch in self._launches.items():
            tiles = self._tiles[slots]
            share = self._shares[slots]
            launch(
                self.stream, (share, blocks, samples), THREADS, share > 1,
                half_sweep=self.half_sweep, half_sweeps=half_sweeps, all_tickets=(self._next.data.ptr, self._drawn),
                barriers=(self._arrived.data.ptr, self._arrivals),
            )  # fmt: skip
            if slots:  # tickets are drawn
                drawn = whole * int(tiles.sum()) + int(tiles[colours].sum())
                self._drawn = (self._drawn + drawn) % 2**32
            self._arrivals = (self._arrivals + (half_sweeps - 1) * share) % 2**32
        self.half_sweep += half_sweeps

    @cached_property
    def _tiles(self) -> dict[int, npt.NDArray[np.int64]]:
        """Tiles of 32 sites of each colour, for each number of slots that has a kernel."""
        batches = self._plan.batches
        size = -(-np.diff(batches.first) // WARP)
        tiles = {}
        for slots in self._slots:
            mine = np.where(batches.slots == slots, size, 0) if slots else size
            tiles[slots] = np.add.reduceat(mine, batches.colour_start[:-1])
        return tiles

    @cached_property
    def _count(self) -> Launch:
        """The counting kernel."""
        bonds = self.model.bonds
        return Launch(self.device, "measure/count_replica_packed.cu", "count_replica", {
            "state": self.state, "sites": np.uint32(self.model.sites), "edges": self._edges,
            "negative": self._negative, "sign_stride": np.uint64(bonds if len(self._negative) > 1 else 0),
            "bonds": np.uint32(bonds), "up": np.uint64(0), "unsatisfied": np.uint64(0),
        })  # fmt: skip

    def _add_sums(self, to: tuple[int, ...]) -> None:
        up, unsatisfied = to
        samples, blocks, sites, _ = self._plan.shape
        grid = -(-max(self.model.bonds, sites) // (COUNT_THREADS * ITEMS_A_THREAD)), blocks, samples
        self._count(self.stream, grid, COUNT_THREADS, up=up, unsatisfied=unsatisfied)

    def _words_of_state(self) -> npt.NDArray[np.uint64]:
        return np.ascontiguousarray(self.state.get()[:, :, places(self._plan.batches)])

    def _set_words(self, words: npt.NDArray[np.uint64]) -> None:
        self.state.set(np.ascontiguousarray(words[:, :, self._plan.batches.order]))
        self._counted_at = -1

    def _present(self) -> Any:
        return self.state

    def _spins_in(self, state: Any, sample: int, replica: int) -> npt.NDArray[np.int8]:
        block, lane = divmod(replica, packing.LANES)
        words = state[sample, block, :, lane // 64].get()
        spins = np.empty(self.model.sites, np.int8)
        spins[self._plan.batches.order] = packing.unpack_lane(words, lane % 64)
        return spins
