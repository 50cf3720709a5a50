"""Many rounds of sweeps and exchanges in one launch, for replica-packed lattices in shared memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from spinsim.cuda.device import shared_memory
from spinsim.cuda.launch import Launch, record
from spinsim.engine.measuring.cuda import NOTHING
from spinsim.engine.moves.exchange.cuda_rounds import LaunchedRounds
from spinsim.engine.moves.metropolis.packed.kinds import Kind
from spinsim.engine.moves.metropolis.replica_packed.cuda_lattices import ReplicaLattices, shared_bytes
from spinsim.engine.moves.metropolis.replica_packed.cuda_records import (
    BONDS,
    HELD_BYTES,
    LANE_SUMS,
    NOTES,
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
