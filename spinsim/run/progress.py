"""Progress of a run: a bar with the share done and the time left, its rate, and estimates of its duration."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Timer
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

from spinsim.errors import InputError
from spinsim.machine.compiled import compiling_seconds, seconds_without_compiling, told_of_compiling
from spinsim.machine.memory import readable
from spinsim.run.execute import in_memory
from spinsim.run.plan import Plan, Watch
from spinsim.run.recording import TimedError

if TYPE_CHECKING:
    from rich.progress import Progress, Task

COMPILING: Final = "compiling kernels, once: half a minute to two minutes"
"""First runs took 25 s (an anneal) to 95 s (a ladder) of processor time; a process compiles on one core."""
PATIENCE: Final = 1.0  # seconds of compiling until a line reports it
MOST_NAMED: Final = 4  # up to this number, each device is named with its rate; otherwise the slowest and the fastest


@contextmanager
def compiling_told(silent: bool = False) -> Iterator[None]:
    """Print a line, once, after kernels have been compiled for a while, if there is no terminal with a bar.

    The line goes to standard error. CuPy does not distinguish loading GPU kernels from disk from compiling, but loading
    takes less time.
    """
    if silent or _is_seen():
        yield
        return
    before, timers, told = compiling_seconds(), list[Timer](), Event()

    def tell() -> None:
        told.set()
        sys.stderr.write(f"{COMPILING} ...\n")
        sys.stderr.flush()

    def listen(busy: bool) -> None:
        while timers:
            timers.pop().cancel()
        if busy and not told.is_set():
            timers.append(Timer(max(0.0, PATIENCE + before - compiling_seconds()), tell))
            timers[-1].daemon = True
            timers[-1].start()

    with told_of_compiling(listen):
        try:
            yield
        finally:
            listen(False)


class Bar:
    """Progress bar on a terminal's standard error or in a notebook; elsewhere it only counts.

    While kernels are compiled, the bar only shows that. It counts spin updates, and the time since the engine was
    ready. Pre-runs, earlier work of a resumed run and compile time do not count. With ``rows`` it counts finished rows
    of a file, which can differ in duration.
    """

    def __init__(self, silent: bool = False, rows: bool = False) -> None:
        self._counts_rows = rows
        self._bar: Progress | None = None
        self._listening = told_of_compiling(self._show_compiling)
        self._rates: Callable[[], list[float]] = list
        self._done = 0
        self._began: float | None = None
        self._ended: float | None = None
        if not silent and _is_seen():  # Rich takes as long to load as a small run
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

            words, about = TextColumn("{task.description}"), TextColumn("{task.fields[about]}")
            columns = words, BarColumn(), TaskProgressColumn(), about, TimeRemainingColumn()
            self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
            self._task = self._bar.add_task("", total=None, about="")
            self._compiling = self._bar.add_task(COMPILING, total=None, visible=False, about="")

    def begin(self, stage: str, total: int, done: int = 0) -> None:
        """Restart the bar and the clock for a new stage, with its total amount of work and the part done before."""
        self._done, self._began = 0, None
        if self._bar is not None:
            self._bar.reset(self._task, total=total, completed=done, description=stage)
        self._show()

    def advance(self, count: int) -> None:
        """Count finished work; the first call, with 0, starts the clock."""
        if self._began is None:
            self._began = seconds_without_compiling()
        self._done += count
        self._show(advance=count)

    def note(self, words: str) -> None:
        self._show(description=words)

    def watch_parts(self, rates: Callable[[], list[float]]) -> None:
        """Set the function that returns the rate of each of several devices."""
        self._rates = rates

    def _show(self, **fields: Any) -> None:
        if self._bar is not None:
            self._bar.update(self._task, **fields)
            self._bar.update(self._task, about=self._about(self._bar.tasks[self._task]))

    def _show_compiling(self, busy: bool) -> None:
        if self._bar is not None:
            self._bar.update(self._compiling, visible=busy)
            self._bar.update(self._task, visible=not busy)

    def _about(self, task: Task) -> str:
        if self._counts_rows:
            return f"{task.completed:g} of {task.total:g}"
        return (f"{self.rate:.3g} updates/ns" if self._done else "") + _in_words(self._rates())

    @property
    def seconds(self) -> float:
        now = seconds_without_compiling() if self._ended is None else self._ended
        return 0.0 if self._began is None else now - self._began

    @property
    def rate(self) -> float | None:
        """Updates per nanosecond of the run so far; None if rows are counted."""
        return None if self._counts_rows else self._done / max(self.seconds, 1e-9) / 1e9

    @property
    def speed(self) -> list[str]:
        rate = self.rate
        if not rate:  # rows are counted, or all was solved without a sweep
            return []
        return [f"{rate:.3g} updates/ns over {self.seconds:.1f} s{_in_words(self._rates())}"]

    def stop(self) -> None:
        if self._ended is None:
            self._ended = seconds_without_compiling()
        if self._bar is not None:
            self._bar.stop()

    def __enter__(self) -> Self:
        self._listening.__enter__()
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listening.__exit__(None, None, None)
        self.stop()


def _in_words(rates: list[float]) -> str:
    if len(rates) < 2:
        return ""
    each = [f"{rate:.3g}" for rate in (rates if len(rates) <= MOST_NAMED else (min(rates), max(rates)))]
    between = ", ".join(each[:-1]) + " and " if len(rates) <= MOST_NAMED else f"{each[0]} to "
    return f" (devices while they work: {between}{each[-1]})"


def _is_seen() -> bool:
    if sys.stderr.isatty() or "IPython" not in sys.modules:
        return sys.stderr.isatty()
    from rich.console import Console

    return Console().is_jupyter


ENOUGH: Final = 1.0  # seconds of a run that suffice for an estimate
_MINUTE, _HOUR, _DAY = 60, 3600, 86400


class RunEstimate(NamedTuple):
    """Time and file size that a run will take."""

    seconds: float | None  # from the ready engine to the end; None for a search, whose end is unknown
    rate: float  # attempted spin updates per nanosecond
    file_bytes: int  # largest size of its finished file; compressible data take less
    rows: str  # which measurements its series have, in words; empty if they have all

    @property
    def lines(self) -> list[str]:
        time = [] if self.seconds is None else [time_line(self.seconds, self.rate)]
        return [*time, size_line(self.file_bytes, self.rows)]

    @property
    def numbers(self) -> dict[str, Any]:
        return {"seconds": self.seconds, "updates_per_ns": self.rate, "file_bytes": self.file_bytes}


def time_line(seconds: float, rate: float) -> str:
    return f"Time     about {duration(seconds)} at {rate:.3g} updates/ns"


def size_line(file_bytes: int, rows: str) -> str:
    about = f"; {rows}" if rows else ""
    return f"File     at most {readable(file_bytes)} before compression, when it is finished{about}"


def duration(seconds: float) -> str:
    if seconds < 2 * _MINUTE:
        return f"{max(1, round(seconds))} s"
    if seconds < 2 * _HOUR:
        return f"{seconds / _MINUTE:.0f} min"
    return f"{seconds / _HOUR:.1f} h" if seconds < 2 * _DAY else f"{seconds / _DAY:.1f} days"


class Timing:
    """Estimates the rate of a run from its updates as they come.

    ``on_rate`` is called once, when the rate is known, with the seconds of the whole run (None for a search)
    and the rate.
    """

    def __init__(self, on_rate: Callable[[float | None, float], None]) -> None:
        self._on_rate, self._total, self._before = on_rate, 0, 0
        self._moments: list[tuple[float, int]] = []
        self._is_run, self._is_told = False, False

    def begin(self, stage: str, updates: int, done: int = 0) -> None:
        """Begin a stage; the run itself has no name."""
        self._is_run, self._total, self._before, self._moments = not stage, updates, done, []

    def advance(self, updates: int) -> None:
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
        """Updates per nanosecond in the later half of the time so far, because a run begins slowly; 0 before any."""
        if not self._moments:
            return 0.0
        (began, _), (now, done) = self._moments[0], self._moments[-1]
        since, before = next(moment for moment in self._moments if moment[0] >= (began + now) / 2)
        if done == before:
            (since, before) = self._moments[0]
        return max(1, done - before) / max(now - since, 1e-9) / 1e9


class _EnoughError(Exception):
    """The run has been timed for long enough."""


def estimated(plan: Plan[Any]) -> RunEstimate:
    """Time the beginning of a run, without keeping rows or writing files, and estimate the whole run.

    A ladder that a pre-run places is placed first.
    """
    numbers: dict[str, Any] = {}

    def on_rate(seconds: float | None, rate: float) -> None:
        numbers.update(seconds=seconds, rate=rate)
        raise _EnoughError

    timing = Timing(on_rate)
    began = seconds_without_compiling()
    watch = Watch(
        on_stage=timing.begin,
        on_updates=timing.advance,
        on_size=lambda file_bytes, rows: numbers.update(file_bytes=file_bytes, rows=rows),
        keeps_rows=False,
    )
    try:
        in_memory(plan, watch)
    except _EnoughError:
        pass
    except TimedError:
        numbers.update(seconds=seconds_without_compiling() - began, rate=timing.rate)
    if "file_bytes" not in numbers:
        raise InputError("the length of such a run is not known before: run it, and stop it where it takes too long")
    return RunEstimate(**numbers)
