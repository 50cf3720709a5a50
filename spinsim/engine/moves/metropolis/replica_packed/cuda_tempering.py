"""Many rounds of sweeps and exchanges in one launch, for replica-packed lattices in shared memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from spinsim.cuda.device import shared_memory
from spinsim.cuda.launch import Launch, record
from spinsim.engine.measuring.cuda import NOTHING
from spinsim.engine.moves.exchange.cuda_rounds import LaunchedRounds
from spinsim.engine.moves.metropolis.packed.classes import LATTICE_BARRIER, TICKETS, Kind
from spinsim.engine.moves.metropolis.replica_packed.cuda_lattices import ReplicaLattices, shared_bytes
from spinsim.engine.moves.metropolis.replica_packed.cuda_records import (
    BONDS,
    GLOBAL_THREADS,
    HELD_BYTES,
    LANE_SUMS,
    NOTES,
    ROUND_TOTALS,
    TALLIED_GROUPS,
    TALLY_BYTES,
    bond_groups,
)
from spinsim.engine.moves.metropolis.replica_packed.cuda_tables import LadderTables


def fits_with_ladder(lattices: ReplicaLattices, device: int) -> bool:
    """Whether one thread block can temper a sample: 128 replicas at most, in shared memory."""
    threads = lattices.shared_threads
    if not threads or lattices.plan.shape[1] > 1:
        return False
    return shared_bytes(lattices.plan, threads) + HELD_BYTES <= shared_memory(device)


class SharedRounds(LaunchedRounds):
    """Rounds of samples that fit a thread block each.

    Args:
        kinds: The special case of each number of slots; there is one.
        lattices: The spins.
        tables: As for ``LaunchedRounds``.
        given: What else it takes.
    """

    def __init__(self, kinds: dict[int, Kind], lattices: ReplicaLattices, tables: LadderTables, **given: Any) -> None:
        super().__init__(colours=lattices.plan.colours, tables=tables, **given)
        self._lattices, self._plan, self._ladder = lattices, lattices.plan, tables.ladder
        self._threads = self._lattices.shared_threads
        self._tallies = self._is_tallied
        self._launch = self._ready(self._lattices, kinds)

    def _ready(self, lattices: ReplicaLattices, kinds: dict[int, Kind]) -> Launch:
        """The kernel with all arguments but those of a launch."""
        import cupy

        ((slots, kind),) = kinds.items()
        groups = cupy.asarray(bond_groups(lattices.edges.get(), self._plan.negative))
        per, count = self._plan.observables.energy.weights, groups.shape[1]
        self._groups = groups  # the record holds their address alone
        return Launch(
            self._queue.device, "tempering/temper_shared.cu", lattices.expression("temper_shared", slots, kind), {
            **lattices.arguments, "colours": np.int32(self._plan.colours), "lanes": lattices.lanes,
            "ladder": self._ladder, "exchange": self._tempering.record,
            "bonds": record(BONDS, groups=groups, stride=count if len(groups) > 1 else 0, count=count),
            "per_up": np.int64(per["up"]), "per_unsatisfied": np.int64(per["unsatisfied"]), "tallied": np.uint32(0),
            "phantoms": np.uint32(self._plan.phantoms), "first_sites": np.uint32(self._plan.first),
            "sums": np.zeros((), LANE_SUMS), "first_sample": self._queue.first_sample, "first_half_sweep": np.uint64(0),
            "sweeps": np.uint32(0), "first_round": np.uint64(0), "rounds": np.uint32(0),
            "notes": np.zeros((), NOTES), "measured": NOTHING,
        }, shared_bytes(self._plan, self._threads) + TALLY_BYTES * self._threads * self._tallies)  # fmt: skip

    @property
    def _is_tallied(self) -> bool:
        """Whether bonds can be counted while the last colour is updated: each has an end of it, and there is room."""
        needed = shared_bytes(self._plan, self._threads) + TALLY_BYTES * self._threads + HELD_BYTES
        has_room = needed <= shared_memory(self._queue.device)
        return has_room and self._plan.last_colour.size <= TALLIED_GROUPS * self._threads and self._plan.colours == 2

    def _start(self, count: int, half_sweeps: int, **arguments: Any) -> None:
        """Launch a thread block for each sample."""
        self._launch(
            self._queue.stream, (1, 1, self._plan.model.samples), self._threads,
            tallied=self._tallies and half_sweeps > 0, **arguments,
        )  # fmt: skip


def suits_global_rounds(lattices: ReplicaLattices, kinds: dict[int, Kind]) -> bool:
    """Whether bonds can be counted while the last of two colours is updated: each has an end of it.

    A sample has at most 128 replicas, and all sites of a colour one number of bonds.
    """
    plan = lattices.plan
    one_batch = len(plan.batches.slots) == plan.colours == 2
    return not lattices.shared_threads and plan.shape[1] == 1 and one_batch and Kind.ANY not in kinds.values()


class GlobalRounds(LaunchedRounds):
    """Rounds of samples whose lattice several thread blocks share.

    Args:
        kinds: The special case of each number of slots; there is one.
        lattices: The spins.
        tables: As for ``LaunchedRounds``.
        given: What else it takes.
    """

    def __init__(self, kinds: dict[int, Kind], lattices: ReplicaLattices, tables: LadderTables, **given: Any) -> None:
        super().__init__(colours=lattices.plan.colours, tables=tables, **given)
        self._lattices, self._plan, self._ladder = lattices, lattices.plan, tables.ladder
        ((slots, kind),) = kinds.items()
        self._tiles = int(self._lattices.tiles[slots].sum())
        self._drawn = self._arrivals = self._rounds = 0
        self._launch = self._ready(self._lattices, slots, kind)
        self._share = self._lattices.sharing_blocks(self._launch, slots)

    def _ready(self, lattices: ReplicaLattices, slots: int, kind: Kind) -> Launch:
        """The kernel with all arguments but those of a launch."""
        import cupy

        samples = self._plan.model.samples
        self._arrived, self._next = (cupy.zeros(samples, cupy.uint32) for _ in range(2))
        self._totals = cupy.zeros((samples, 2, 128), cupy.uint32)
        per = self._plan.observables.energy.weights
        return Launch(
            self._queue.device, "tempering/temper_global.cu", lattices.expression("temper_global", slots, kind), {
            **lattices.arguments, "colours": np.int32(self._plan.colours), "lanes": lattices.lanes,
            "ladder": self._ladder, "exchange": self._tempering.record,
            "per_unsatisfied": np.int64(per["unsatisfied"]), "phantoms": np.uint32(self._plan.phantoms),
            "first_sites": np.uint32(self._plan.first),
            "sums": np.zeros((), LANE_SUMS), "totals": np.zeros((), ROUND_TOTALS),
            "first_sample": self._queue.first_sample, "first_half_sweep": np.uint64(0), "sweeps": np.uint32(0),
            "first_round": np.uint64(0), "rounds": np.uint32(0), "all_tickets": np.zeros((), TICKETS),
            "barriers": np.zeros((), LATTICE_BARRIER),
            "notes": np.zeros((), NOTES), "measured": NOTHING,
        })  # fmt: skip

    def most(self, sweeps: int) -> int:
        """As many as of any rounds, but none without sweeps, which count bonds."""
        return super().most(sweeps) if sweeps else 0

    def _start(self, count: int, half_sweeps: int, **arguments: Any) -> None:
        """Launch the thread blocks that share samples, all resident at once."""
        self._launch(
            self._queue.stream, (self._share, 1, self._plan.model.samples), GLOBAL_THREADS, self._share > 1,
            totals=(self._totals.data.ptr, self._rounds % 2), all_tickets=(self._next.data.ptr, self._drawn),
            barriers=(self._arrived.data.ptr, self._arrivals), **arguments,
        )  # fmt: skip
        every = arguments["notes"][2]
        barriers = half_sweeps + (count // every if every else 0)  # one more where a measurement is made
        self._drawn = (self._drawn + half_sweeps // self._plan.colours * self._tiles) % 2**32
        self._arrivals = (self._arrivals + barriers * self._share) % 2**32
        self._rounds += count


def launched_rounds(
    kinds: dict[int, Kind], lattices: ReplicaLattices, tables: LadderTables, device: int, **given: Any
) -> LaunchedRounds | None:
    """Rounds of lattices in shared memory, or in global memory; None where they are made one by one.

    Args:
        kinds: The special case of each number of slots.
        lattices: The spins.
        tables: As for ``LaunchedRounds``.
        device: Number of the device.
        given: What else it takes.
    """
    if fits_with_ladder(lattices, device):
        return SharedRounds(kinds, lattices, tables, **given)
    if suits_global_rounds(lattices, kinds):
        return GlobalRounds(kinds, lattices, tables, **given)
    return None
