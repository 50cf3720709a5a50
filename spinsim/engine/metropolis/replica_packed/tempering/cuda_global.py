"""Many rounds of sweeps and exchanges in one launch, for replica-packed lattices in global memory."""

from __future__ import annotations

import numpy as np

from spinsim.cuda.device import multiprocessors
from spinsim.cuda.launch import Launch
from spinsim.engine.cuda_queue import Queue
from spinsim.engine.measuring.cuda_counting import CudaCounting
from spinsim.engine.metropolis.packed.cuda_sharing import LATTICE_BARRIER, TICKETS
from spinsim.engine.metropolis.packed.kinds import Kind
from spinsim.engine.metropolis.replica_packed.cuda_lattices import WARP, ReplicaLattices
from spinsim.engine.metropolis.replica_packed.cuda_records import GLOBAL_THREADS, LANE_SUMS, ROUND_TOTALS
from spinsim.engine.metropolis.replica_packed.cuda_tables import LadderTables
from spinsim.engine.metropolis.replica_packed.tempering.cuda_shared import phantoms
from spinsim.engine.tempering.cuda import CudaTempering


def suits_global_rounds(lattices: ReplicaLattices, kinds: dict[int, Kind]) -> bool:
    """Whether bonds can be counted while the last of two colours is updated: each has an end of it.

    A sample has at most 128 replicas, and all sites of a colour one number of bonds.
    """
    plan = lattices.plan
    one_batch = len(plan.batches.slots) == plan.colours == 2
    return not lattices.shared_threads and plan.shape[1] == 1 and one_batch and Kind.ANY not in kinds.values()


class GlobalRounds:
    """``ManyRounds`` of samples whose lattice several thread blocks share.

    Args:
        queue: Where launches are queued.
        lattices: The spins.
        tempering: The ladder.
        tables: Of its places; rounds leave them as they were.
        counting: Takes the sums of the state in which a launch ends.
        kinds: The special case of each number of slots; there is one.
        most_sweeps: Sweeps of one launch.
    """

    def __init__(
        self,
        queue: Queue,
        lattices: ReplicaLattices,
        tempering: CudaTempering,
        tables: LadderTables,
        counting: CudaCounting,
        kinds: dict[int, Kind],
        most_sweeps: int,
    ) -> None:
        self._queue, self._plan, self._most_sweeps = queue, lattices.plan, most_sweeps
        self._tempering, self._tables, self._counting = tempering, tables, counting
        ((slots, kind),) = kinds.items()
        self._tiles = int(lattices.tiles[slots].sum())
        self._drawn = self._arrivals = self._rounds = 0
        self._launch = self._ready(lattices, slots, kind)
        samples = self._plan.model.samples
        room = self._launch.blocks_at_once(GLOBAL_THREADS) * multiprocessors(queue.device) // samples
        self._share = min(max(1, room), -(-int(lattices.tiles[slots].max()) // (GLOBAL_THREADS // WARP)))

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
            "ladder": self._tables.ladder, "exchange": self._tempering.record,
            "per_unsatisfied": np.int64(per["unsatisfied"]), "phantoms": np.uint32(phantoms(self._plan)),
            "first_sites": np.uint32(self._plan.first),
            "sums": np.zeros((), LANE_SUMS), "totals": np.zeros((), ROUND_TOTALS), "first_sample": np.uint32(0),
            "first_half_sweep": np.uint64(0), "sweeps": np.uint32(0), "first_round": np.uint64(0),
            "rounds": np.uint32(0), "all_tickets": np.zeros((), TICKETS), "barriers": np.zeros((), LATTICE_BARRIER),
        })  # fmt: skip

    def most(self, sweeps: int) -> int:
        """How many rounds of so many sweeps one launch takes; 0 where they must go one by one."""
        return self._most_sweeps // sweeps if sweeps else 0

    def temper(self, rounds: int, sweeps: int, half_sweep: int) -> None:
        """Queue a launch, after so many half-sweeps."""
        half_sweeps = rounds * sweeps * self._plan.colours
        self._launch(
            self._queue.stream, (self._share, 1, self._plan.model.samples), GLOBAL_THREADS, self._share > 1,
            sums=self._counting.room(), totals=(self._totals.data.ptr, self._rounds % 2), first_half_sweep=half_sweep,
            sweeps=sweeps, first_round=self._tempering.round, rounds=rounds,
            all_tickets=(self._next.data.ptr, self._drawn), barriers=(self._arrived.data.ptr, self._arrivals),
        )  # fmt: skip
        self._drawn = (self._drawn + rounds * sweeps * self._tiles) % 2**32
        self._arrivals = (self._arrivals + half_sweeps * self._share) % 2**32
        self._rounds += rounds
        self._tempering.round += rounds
        self._counting.left_at(half_sweep + half_sweeps)
        self._tables.are_laid = False
