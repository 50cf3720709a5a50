"""Common parts of launches of many rounds, wherever the lattices lie."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Final, Protocol

from spinsim.engine.cuda_queue import Queue
from spinsim.engine.measuring.cuda import Measurements, Measuring
from spinsim.engine.measuring.cuda_counting import CudaCounting
from spinsim.engine.moves.exchange.cuda import CudaTempering

NO_NOTES: Final = 0, 0, 0


class Tables(Protocol):
    """Temperatures as sweeps read them."""

    are_laid: bool  # True if they are those of the present places


class LaunchedRounds(ABC):
    """``MeasuredRounds`` of samples whose lattices stay where they are for a launch.

    Args:
        tables: Of its places; rounds leave them as they were.
        counting: Takes the sums of the state in which a launch ends.
    """

    def __init__(
        self,
        queue: Queue,
        colours: int,
        tempering: CudaTempering,
        tables: Tables,
        counting: CudaCounting,
        most_sweeps: int,
    ) -> None:
        self._queue, self._colours = queue, colours
        self._tempering, self._tables, self._counting = tempering, tables, counting
        self._most_sweeps = most_sweeps

    def most(self, sweeps: int) -> int:
        return self._most_sweeps // max(1, sweeps)

    def temper(self, rounds: int, sweeps: int, half_sweep: int) -> None:
        self._queue_rounds(rounds, sweeps, half_sweep, notes=NO_NOTES)

    def measured(self, rounds: int, sweeps: int, half_sweep: int, measuring: Measuring, into: Measurements) -> None:
        notes = into.address(0), into.held.address(0), rounds
        self._queue_rounds(into.count * rounds, sweeps, half_sweep, notes=notes, measured=measuring.record)

    def _queue_rounds(self, rounds: int, sweeps: int, half_sweep: int, **notes: Any) -> None:
        """Queue many rounds in one launch; ``notes`` are those of measurements."""
        half_sweeps = rounds * sweeps * self._colours
        self._start(
            rounds, half_sweeps, sums=self._counting.room(), first_half_sweep=half_sweep, sweeps=sweeps,
            first_round=self._tempering.round, rounds=rounds, **notes,
        )  # fmt: skip
        self._tempering.round += rounds
        self._counting.left_at(half_sweep + half_sweeps)
        self._tables.are_laid = False

    @abstractmethod
    def _start(self, count: int, half_sweeps: int, **arguments: Any) -> None:
        """Launch ``count`` rounds of so many half-sweeps in all, with arguments that all kernels of rounds take."""
