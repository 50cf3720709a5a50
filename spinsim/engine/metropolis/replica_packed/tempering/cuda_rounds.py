"""What launches of many rounds have in common, wherever the lattices lie."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Final

from spinsim.engine.cuda_queue import Queue
from spinsim.engine.measuring.cuda import Measurements, Measuring
from spinsim.engine.measuring.cuda_counting import CudaCounting
from spinsim.engine.metropolis.replica_packed.cuda_lattices import ReplicaLattices
from spinsim.engine.metropolis.replica_packed.cuda_tables import LadderTables
from spinsim.engine.tempering.cuda import CudaTempering

NO_NOTES: Final = 0, 0, 0


class LaunchedRounds(ABC):
    """``MeasuredRounds`` of samples of at most 128 replicas.

    Args:
        queue: Where launches are queued.
        lattices: The spins.
        tempering: The ladder.
        tables: Of its places; rounds leave them as they were.
        counting: Takes the sums of the state in which a launch ends.
        most_sweeps: Sweeps of one launch.
    """

    def __init__(
        self,
        queue: Queue,
        lattices: ReplicaLattices,
        tempering: CudaTempering,
        tables: LadderTables,
        counting: CudaCounting,
        most_sweeps: int,
    ) -> None:
        self._queue, self._lattices, self._plan = queue, lattices, lattices.plan
        self._tempering, self._tables, self._counting = tempering, tables, counting
        self._most_sweeps = most_sweeps

    def most(self, sweeps: int) -> int:
        """How many rounds of so many sweeps one launch takes; 0 where they must go one by one."""
        return self._most_sweeps // max(1, sweeps)

    def temper(self, rounds: int, sweeps: int, half_sweep: int) -> None:
        """Queue a launch, after so many half-sweeps."""
        self._queue_rounds(rounds, sweeps, half_sweep, notes=NO_NOTES)

    def measured(self, rounds: int, sweeps: int, half_sweep: int, measuring: Measuring, into: Measurements) -> None:
        """Queue a launch of ``rounds`` rounds before each of the measurements."""
        notes = into.address(0), into.held.address(0), rounds
        self._queue_rounds(into.count * rounds, sweeps, half_sweep, notes=notes, measured=measuring.record)

    def _queue_rounds(self, rounds: int, sweeps: int, half_sweep: int, **notes: Any) -> None:
        """Queue many rounds in one launch; ``notes`` are those of measurements."""
        half_sweeps = rounds * sweeps * self._plan.colours
        self._start(
            rounds, half_sweeps, sums=self._counting.room(), first_half_sweep=half_sweep, sweeps=sweeps,
            first_round=self._tempering.round, rounds=rounds, **notes,
        )  # fmt: skip
        self._tempering.round += rounds
        self._counting.left_at(half_sweep + half_sweeps)
        self._tables.are_laid = False

    @abstractmethod
    def _start(self, count: int, half_sweeps: int, **arguments: Any) -> None:
        """Launch ``count`` rounds of so many half-sweeps in all, with arguments that both kernels take."""
