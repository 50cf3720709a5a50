"""The progress bar: share done, rate in updates/ns and time left."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn


class UpdateProgress:
    """Counts spin updates and shows them on a terminal's standard error or in a notebook; silent elsewhere.

    Attributes:
        rate: Updates per nanosecond of the run itself since its engine was ready. A pre-run, what a resumed run had
            done before and the time in which kernels are compiled do not count.
        seconds: Time since then, without that of compiling.
    """

    def __init__(self, silent: bool = False) -> None:
        self._done = 0
        self._began: float | None = None
        self._clock: Callable[[], float] = time.perf_counter
        self._bar: Progress | None = None
        if not silent and _is_seen():
            self._bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                TaskProgressColumn(),
                TextColumn("{task.fields[rate]} updates/ns"),
                TimeRemainingColumn(),
                console=Console(stderr=True),
                transient=True,
            )
            self._task = self._bar.add_task("", total=None, rate="")

    def begin(self, what: str, updates: int, done: int = 0) -> None:
        """Start the bar and the clock anew for what comes now: its updates, and how many of them were done before."""
        from spinsim.compiled import compiling_seconds

        self._done, self._began = 0, None
        self._clock = lambda: time.perf_counter() - compiling_seconds()
        if self._bar is not None:
            self._bar.reset(self._task, total=updates, completed=done, description=what)

    @property
    def seconds(self) -> float:
        """Time since the engine was ready."""
        return 0.0 if self._began is None else self._clock() - self._began

    @property
    def rate(self) -> float:
        """Updates per nanosecond so far."""
        return self._done / max(self.seconds, 1e-9) / 1e9

    def advance(self, updates: int) -> None:
        """Count finished updates; the first call, of none, starts the clock."""
        if self._began is None:
            self._began = self._clock()
        self._done += updates
        if self._bar is not None:
            self._bar.update(self._task, advance=updates, rate=f"{self.rate:.3g}")

    def stop(self) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.stop()

    def __enter__(self) -> UpdateProgress:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def _is_seen() -> bool:
    """Whether somebody can look at a bar that moves."""
    return sys.stderr.isatty() or Console().is_jupyter


@contextmanager
def counted(total: int, silent: bool) -> Iterator[Callable[[int], None]]:
    """A bar of tasks done; gives the function that counts them."""
    if silent or not _is_seen():
        yield lambda count: None
        return
    bar = Progress(
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.completed} of {task.total}"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    task = bar.add_task("", total=total)
    with bar:
        yield lambda count: bar.update(task, advance=count)
