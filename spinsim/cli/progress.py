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
    """Counts spin updates and shows them on a terminal's standard error; silent elsewhere.

    Attributes:
        rate: Updates per nanosecond since the engine was ready; of the run itself, not of a pre-run.
        seconds: Time since then.
    """

    def __init__(self, silent: bool) -> None:
        self._done = 0
        self._began: float | None = None
        self._bar: Progress | None = None
        if not silent and sys.stderr.isatty():
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

    def begin(self, what: str, updates: int) -> None:
        """Start the bar and the clock anew for what comes now and its number of updates."""
        self._done, self._began = 0, None
        if self._bar is not None:
            self._bar.reset(self._task, total=updates, description=what)

    @property
    def seconds(self) -> float:
        """Time since the engine was ready."""
        return 0.0 if self._began is None else time.perf_counter() - self._began

    @property
    def rate(self) -> float:
        """Updates per nanosecond so far."""
        return self._done / max(self.seconds, 1e-9) / 1e9

    def advance(self, updates: int) -> None:
        """Count finished updates; the first call, of none, starts the clock."""
        if self._began is None:
            self._began = time.perf_counter()
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


@contextmanager
def counted(total: int, silent: bool) -> Iterator[Callable[[int], None]]:
    """A bar of tasks done; gives the function that counts them."""
    if silent or not sys.stderr.isatty():
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
