"""How long a run will take and how large its file will be, from a short timing of the run itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from spinsim.errors import InputError
from spinsim.machine.clock import seconds_without_compiling
from spinsim.machine.memory import readable
from spinsim.run.common import Plan, Watch
from spinsim.run.sampled import TimedError

ENOUGH: Final = 1.0
"""Seconds of a run that tell how long all of it takes."""
_MINUTE, _HOUR, _DAY = 60, 3600, 86400


class Outlook(NamedTuple):
    """Time and room that a run will take."""

    seconds: float | None  # from when its engine is ready to its end; None of a search, whose end nobody knows
    rate: float  # attempted spin updates per nanosecond
    file_bytes: int  # size of its finished file at most; what can be compressed takes less
    rows: str  # which measurements its series have, in words; empty where they have all

    @property
    def lines(self) -> list[str]:
        """The same, as lines for people."""
        return [
            *([] if self.seconds is None else [time_line(self.seconds, self.rate)]),
            size_line(self.file_bytes, self.rows),
        ]

    @property
    def numbers(self) -> dict[str, Any]:
        """The same, for ``--json``."""
        return {"seconds": self.seconds, "updates_per_ns": self.rate, "file_bytes": self.file_bytes}


def time_line(seconds: float, rate: float) -> str:
    """Return a line on how long a run takes."""
    return f"Time     about {duration(seconds)} at {rate:.3g} updates/ns"


def size_line(file_bytes: int, rows: str) -> str:
    """Return a line on how large a file will be."""
    return f"File     at most {readable(file_bytes)} when it is finished{f'; {rows}' if rows else ''}"


def duration(seconds: float) -> str:
    """Return a time in the unit that suits it."""
    if seconds < 2 * _MINUTE:
        return f"{max(1, round(seconds))} s"
    if seconds < 2 * _HOUR:
        return f"{seconds / _MINUTE:.0f} min"
    return f"{seconds / _HOUR:.1f} h" if seconds < 2 * _DAY else f"{seconds / _DAY:.1f} days"


class Timing:
    """Learns from the updates of a run as they come how fast it is.

    Args:
        on_rate: Called once with the seconds that all of the run takes, None of a search, and the rate, when that is
            known.
    """

    def __init__(self, on_rate: Callable[[float | None, float], None]) -> None:
        self._on_rate, self._total, self._before = on_rate, 0, 0
        self._moments: list[tuple[float, int]] = []
        self._is_run, self._is_told = False, False

    def begin(self, stage: str, updates: int, done: int = 0) -> None:
        """Take in the stage that begins: the run itself has no name."""
        self._is_run, self._total, self._before, self._moments = not stage, updates, done, []

    def advance(self, updates: int) -> None:
        """Take in updates that are done."""
        if not self._is_run or self._is_told:
            return
        done = self._moments[-1][1] if self._moments else 0
        self._moments.append((seconds_without_compiling(), done + updates))
        (began, _), (now, _) = self._moments[0], self._moments[-1]
        if now - began >= ENOUGH:
            self._is_told = True
            rate = self.rate
            self._on_rate((self._total - self._before) / (rate * 1e9) if self._total else None, rate)

    @property
    def rate(self) -> float:
        """Updates per nanosecond in the later half of the time so far, as a run begins slowly; 0 before any."""
        if not self._moments:
            return 0.0
        (began, _), (now, done) = self._moments[0], self._moments[-1]
        since, before = next(moment for moment in self._moments if moment[0] >= (began + now) / 2)
        if done == before:
            (since, before) = self._moments[0]
        return max(1, done - before) / max(now - since, 1e-9) / 1e9


class _EnoughError(Exception):
    """The run has been timed for long enough."""


def outlook(plan: Plan[Any]) -> Outlook:
    """Time the beginning of a run, keeping no row and writing nothing, and say what all of it will take.

    A ladder that is to be placed is placed first.

    Raises:
        InputError: where the run cannot begin, and for a job that does not simulate.
    """
    found: dict[str, Any] = {}

    def on_rate(seconds: float | None, rate: float) -> None:
        found.update(seconds=seconds, rate=rate)
        raise _EnoughError

    timing = Timing(on_rate)
    began = seconds_without_compiling()
    watch = Watch(
        on_stage=timing.begin,
        on_updates=timing.advance,
        on_size=lambda file_bytes, rows: found.update(file_bytes=file_bytes, rows=rows),
        keeps_rows=False,
    )
    try:
        plan.in_memory(watch)
    except _EnoughError:
        pass
    except TimedError:
        found.update(seconds=seconds_without_compiling() - began, rate=timing.rate)
    if "file_bytes" not in found:
        raise InputError("the length of such a run is not known before: run it, and stop it where it takes too long")
    return Outlook(**found)
