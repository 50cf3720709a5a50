"""Rounds of sweeps and exchanges of replica-packed samples on a GPU, many per launch."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from spinsim.cuda.device import cupy, shared_memory
from spinsim.cuda.launch import Launch, record
from spinsim.engine.cuda import LaunchedRounds
from spinsim.engine.measuring.cuda import NOTHING
from spinsim.engine.moves.metropolis.classes import LATTICE_BARRIER, TICKETS, Kind
from spinsim.engine.moves.metropolis.cuda_spread import SPREAD_THREADS
from spinsim.engine.moves.metropolis.replica_packed.cuda_lattices import (
    BLOCK_SUMS,
    BONDS,
    GLOBAL_THREADS,
    LADDER_BYTES,
    LANE_SUMS,
    NOTES,
    ROUND_TOTALS,
    SUM_PLACES,
    SUMS_A_LANE,
    TALLIED_GROUPS,
    TALLY_BYTES,
    LadderTables,
    ReplicaLattices,
    bond_groups,
    shared_bytes,
)
from spinsim.packing import LANES


def fits_with_ladder(lattices: ReplicaLattices, device: int) -> bool:
    """Return True if one thread block can temper a sample: at most 128 replicas, in shared memory."""
    threads = lattices.shared_threads
    if not threads or lattices.plan.shape[1] > 1:
        return False
    return shared_bytes(lattices.plan, threads) + LADDER_BYTES <= shared_memory(device)


class ReplicaRounds(LaunchedRounds):
    """Rounds of replica-packed samples; ``kinds`` has the special case of their only number of slots."""

    def __init__(self, kinds: dict[int, Kind], lattices: ReplicaLattices, tables: LadderTables, **given: Any) -> None:
        super().__init__(colours=lattices.plan.colours, tables=tables, **given)
        self._lattices, self._plan, self._ladder = lattices, lattices.plan, tables.ladder
        ((self._slots, self._kind),) = kinds.items()

    def _ready(self, name: str, arguments: dict[str, Any], shared_bytes: int = 0) -> Launch:
        """Return a kernel with all arguments except the launch's; ``arguments`` are specific to this kernel."""
        expression = self._lattices.expression(name, self._slots, self._kind)
        return Launch(self._queue.device, f"tempering/{name}.cu", expression, {
            **self._lattices.arguments, "lanes": self._lattices.lanes,
            "ladder": self._ladder, "exchange": self._tempering.record,
            "per_unsatisfied": np.int64(self._plan.observables.energy.weights["unsatisfied"]),
            "phantoms": np.uint32(self._plan.phantoms), "first_sites": np.uint32(self._plan.first),
            "sums": np.zeros((), LANE_SUMS), "first_sample": self._queue.first_sample, "first_half_sweep": np.uint64(0),
            "sweeps": np.uint32(0), "first_round": np.uint64(0), "rounds": np.uint32(0),
            "notes": np.zeros((), NOTES), "measured": NOTHING, **arguments,
        }, shared_bytes)  # fmt: skip


class SharedRounds(ReplicaRounds):
    """Rounds of samples that each fit a thread block."""

    def __init__(self, kinds: dict[int, Kind], lattices: ReplicaLattices, tables: LadderTables, **given: Any) -> None:
        super().__init__(kinds, lattices, tables, **given)
        self._threads = lattices.shared_threads
        # If memory allows, bonds can be counted while the last of two colours is updated, because each has one end of
        # it.
        needed = shared_bytes(self._plan, self._threads) + TALLY_BYTES * self._threads + LADDER_BYTES
        is_small = self._plan.last_colour.size <= TALLIED_GROUPS * self._threads and self._plan.colours == 2
        self._tallies = is_small and needed <= shared_memory(self._queue.device)
        self._groups = groups = cupy.asarray(bond_groups(lattices.edges.get(), self._plan.negative))
        stride = groups.shape[1] if len(groups) > 1 else 0
        self._launch = self._ready("temper_shared", {
            **lattices.in_colours, "bonds": record(BONDS, groups=groups, stride=stride, count=groups.shape[1]),
            "per_up": np.int64(self._plan.observables.energy.weights["up"]), "tallied": np.uint32(0),
        }, shared_bytes(self._plan, self._threads) + TALLY_BYTES * self._threads * self._tallies)  # fmt: skip

    def _start(self, count: int, half_sweeps: int, **arguments: Any) -> None:
        self._launch(
            self._queue.stream, (1, 1, self._plan.model.samples), self._threads,
            tallied=self._tallies and half_sweeps > 0, **arguments,
        )  # fmt: skip


def suits_global_rounds(lattices: ReplicaLattices, kinds: dict[int, Kind]) -> bool:
    """Return True if bonds can be counted while the last of two colours is updated, because each has one end of it.

    A sample must have at most 128 replicas, one number of bonds at all sites of a colour, and no field.
    """
    return lattices.plan.shape[1] == 1 and lattices.in_halves(kinds) and not lattices.plan.has_field


class GlobalRounds(ReplicaRounds):
    """Rounds of samples whose lattices are shared by several thread blocks."""

    counts_in_sweeps = True

    def __init__(self, kinds: dict[int, Kind], lattices: ReplicaLattices, tables: LadderTables, **given: Any) -> None:
        super().__init__(kinds, lattices, tables, **given)
        self._tiles, samples = int(lattices.tiles[self._slots].sum()), self._plan.model.samples
        self._drawn = self._arrivals = self._rounds = 0
        self._arrived, self._next = (cupy.zeros(samples, cupy.uint32) for _ in range(2))
        self._totals = cupy.zeros((samples, 2, 128), cupy.uint32)
        own = {
            **lattices.in_colours,
            "totals": np.zeros((), ROUND_TOTALS),
            "all_tickets": np.zeros((), TICKETS),
            "barriers": np.zeros((), LATTICE_BARRIER),
        }
        self._launch = self._ready("temper_global", own)

    @cached_property
    def _share(self) -> int:
        return self._lattices.sharing_blocks(self._launch, self._slots)

    def _start(self, count: int, half_sweeps: int, **arguments: Any) -> None:
        """Launch the thread blocks that share samples, all resident at once."""
        self._launch(
            self._queue.stream, (self._share, 1, self._plan.model.samples), GLOBAL_THREADS, self._share > 1,
            totals=(self._totals.data.ptr, self._rounds % 2), all_tickets=(self._next.data.ptr, self._drawn),
            barriers=(self._arrived.data.ptr, self._arrivals), **arguments,
        )  # fmt: skip
        every = arguments["notes"][2]
        barriers = half_sweeps + (count // every if every else 0)  # one more for each measurement
        self._drawn = (self._drawn + half_sweeps // self._plan.colours * self._tiles) % 2**32
        self._arrivals = (self._arrivals + barriers * self._share) % 2**32
        self._rounds += count


class SpreadRounds(ReplicaRounds):
    """Rounds of few samples, each spread over the GPU."""

    counts_in_sweeps = True

    def __init__(self, kinds: dict[int, Kind], lattices: ReplicaLattices, tables: LadderTables, **given: Any) -> None:
        super().__init__(kinds, lattices, tables, **given)
        samples = self._plan.model.samples
        self._sums = [cupy.zeros((samples, 2 * SUMS_A_LANE, size), cupy.uint32) for size in (SUM_PLACES, LANES)]
        self._launch = self._ready("temper_spread", {
            "per_up": np.int64(self._plan.observables.energy.weights["up"]),
            "all_blocks": record(BLOCK_SUMS, sums=self._sums[0], before=self._sums[1]),
            "dated": lattices.dated.array, "date": np.uint32(0),
        })  # fmt: skip

    def _start(self, count: int, half_sweeps: int, **arguments: Any) -> None:
        self._launch(
            self._queue.stream, self._lattices.spread_grid, SPREAD_THREADS, True,
            date=self._lattices.dated.advance(half_sweeps), **arguments,
        )  # fmt: skip


def launched_rounds(
    kinds: dict[int, Kind], lattices: ReplicaLattices, tables: LadderTables, device: int, **given: Any
) -> LaunchedRounds | None:
    """Create rounds for lattices that are spread, in shared or in global memory; None if rounds are made one by one."""
    if lattices.plan.shape[1] == 1 and lattices.are_spread(kinds):
        return SpreadRounds(kinds, lattices, tables, **given)
    fits = fits_with_ladder(lattices, device)
    if suits_global_rounds(lattices, kinds) and not (fits and lattices.in_shared):
        return GlobalRounds(kinds, lattices, tables, **given)
    return SharedRounds(kinds, lattices, tables, **given) if fits else None
