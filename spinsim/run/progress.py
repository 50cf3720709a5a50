"""The progress of a run: a bar with the share done and the time left, and how fast it was."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Final, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn

MOST_NAMED: Final = 4
"""Devices of which each is named with its rate; of more, the slowest and the fastest are."""


class Bar:
    """Counts what a run has done and shows it on a terminal's standard error or in a notebook; silent elsewhere.

    Args:
        silent: Whether nothing is shown anywhere.
        columns: Makes what stands before and after the bar, where it is shown.
        fields: Values of the columns' fields.

    Attributes:
        rate: How fast the run itself is; None where there is no such number.
    """

    def __init__(self, silent: bool, columns: Callable[[], tuple[ProgressColumn, ...]], **fields: Any) -> None:
        self._bar: Progress | None = None
        if not silent and _is_seen():
            self._bar = Progress(*columns(), TimeRemainingColumn(), console=Console(stderr=True), transient=True)
            self._task = self._bar.add_task("", total=None, **fields)

    def begin(self, what: str, total: int, done: int = 0) -> None:
        """Start the bar anew for what comes now: how much that is, and how much of it was done before."""
        if self._bar is not None:
            self._bar.reset(self._task, total=total, completed=done, description=what)

    def watch_parts(self, rates: Callable[[], list[float]]) -> None:
        """Take what says how fast each of several devices is."""

    def note(self, words: str) -> None:
        """Show a few words beside the bar."""
        if self._bar is not None:
            self._bar.update(self._task, description=words)

    def advance(self, count: int) -> None:
        """Count what was done since the last call."""
        if self._bar is not None:
            self._bar.update(self._task, advance=count)

    @property
    def rate(self) -> float | None:
        """How fast the run itself is; None where there is no such number."""
        return None

    @property
    def speed(self) -> list[str]:
        """How fast the run was, as lines for its report."""
        return []

    def stop(self) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.stop()

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


class UpdateProgress(Bar):
    """Counts spin updates.

    A pre-run, what a resumed run had done before and the time in which kernels are compiled do not count.
    """

    def __init__(self, silent: bool = False) -> None:
        super().__init__(silent, self._columns, rate="", parts="")
        self._rates: Callable[[], list[float]] = list
        self._done = 0
        self._began: float | None = None
        self._ended: float | None = None
        self._clock: Callable[[], float] = time.perf_counter

    @staticmethod
    def _columns() -> tuple[ProgressColumn, ...]:
        rate = TextColumn("{task.fields[rate]} updates/ns{task.fields[parts]}")
        return TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), rate

    def begin(self, what: str, total: int, done: int = 0) -> None:
        """Start the bar and the clock anew for what comes now: its updates, and how many of them were done before."""
        from spinsim.machine.clock import compiling_seconds

        self._done, self._began = 0, None
        self._clock = lambda: time.perf_counter() - compiling_seconds()
        super().begin(what, total, done)

    def stop(self) -> None:
        """Stop the clock and take the bar away."""
        if self._ended is None:
            self._ended = self._clock()
        super().stop()

    @property
    def seconds(self) -> float:
        """Time from when the engine was ready to the end of the run, so far, without that of compiling."""
        now = self._clock() if self._ended is None else self._ended
        return 0.0 if self._began is None else now - self._began

    @property
    def rate(self) -> float:
        """Updates per nanosecond of the run itself since its engine was ready."""
        return self._done / max(self.seconds, 1e-9) / 1e9

    @property
    def speed(self) -> list[str]:
        """The rate, as a line for the report of the run."""
        return [f"{self.rate:.3g} updates/ns over {self.seconds:.1f} s{_in_words(self._rates())}"]

    def watch_parts(self, rates: Callable[[], list[float]]) -> None:
        """Take what says how fast each of several devices is, in updates/ns."""
        self._rates = rates

    def advance(self, count: int) -> None:
        """Count finished updates; the first call, of none, starts the clock."""
        if self._began is None:
            self._began = self._clock()
        self._done += count
        if self._bar is not None:
            self._bar.update(self._task, advance=count, rate=f"{self.rate:.3g}", parts=_in_words(self._rates()))


def _in_words(rates: list[float]) -> str:
    """How fast each device is while it works, behind the rate of all; nothing where there is one."""
    if len(rates) < 2:
        return ""
    each = [f"{rate:.3g}" for rate in (rates if len(rates) <= MOST_NAMED else (min(rates), max(rates)))]
    between = ", ".join(each[:-1]) + " and " if len(rates) <= MOST_NAMED else f"{each[0]} to "
    return f" (devices while they work: {between}{each[-1]})"


class RowProgress(Bar):
    """Counts finished rows of a file, each of which takes its own time."""

    def __init__(self, silent: bool = False) -> None:
        super().__init__(
            silent, lambda: (BarColumn(), TaskProgressColumn(), TextColumn("{task.completed} of {task.total}"))
        )


def _is_seen() -> bool:
    """Whether somebody can look at a bar that moves."""
    return sys.stderr.isatty() or Console().is_jupyter
