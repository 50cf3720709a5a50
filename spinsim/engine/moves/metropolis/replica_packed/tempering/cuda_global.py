"""Many rounds of sweeps and exchanges in one launch, for replica-packed lattices in global memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from spinsim.cuda.launch import Launch
from spinsim.engine.measuring.cuda import NOTHING
from spinsim.engine.moves.exchange.cuda_rounds import LaunchedRounds
from spinsim.engine.moves.metropolis.packed.cuda_sharing import LATTICE_BARRIER, TICKETS
from spinsim.engine.moves.metropolis.packed.kinds import Kind
from spinsim.engine.moves.metropolis.replica_packed.cuda_lattices import ReplicaLattices
from spinsim.engine.moves.metropolis.replica_packed.cuda_records import GLOBAL_THREADS, LANE_SUMS, NOTES, ROUND_TOTALS
from spinsim.engine.moves.metropolis.replica_packed.cuda_tables import LadderTables


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
