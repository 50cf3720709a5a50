"""Tasks on threads, and signals, of which only the main thread hears.

Kernels release the interpreter lock, and tasks share nothing that they write.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import pairwise
from types import FrameType
from typing import Final

from spinsim.errors import InputError

WORTH_A_THREAD: Final = 2**12
"""Words of 128 spins that a kernel updates or counts in about the time in which a thread takes a task over, 50 us."""

_sharing = [1]  # processes that share the processors


def share_processors(processes: int) -> None:
    """Say that so many processes, this one among them, work on the same processors."""
    _sharing[0] = processes


def available_threads() -> int:
    """Processors this process may use, or its share of them."""
    there = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, there // _sharing[0])


class Threads:
    """A pool of ``count`` threads (default: all processors)."""

    def __init__(self, count: int | None = None) -> None:
        if count is not None and count < 1:
            raise InputError(f"{count} threads cannot work: give at least 1")
        self.count = count or available_threads()
        self._pool = ThreadPoolExecutor(self.count - 1) if self.count > 1 else None  # the caller works too

    def run(self, tasks: Iterable[Callable[[], None]], words: int | None = None) -> None:
        """Run every task, some of them in the calling thread; a failure is raised when all have ended.

        Where all of them together visit so few ``words`` that a second thread would not pay, the caller runs them.
        """
        work = list(tasks)
        if self._pool is None or len(work) == 1 or self._worth(words) == 1:
            for task in work:
                task()
        else:
            begun = [self._pool.submit(task) for task in work[1:]]
            try:
                work[0]()
                for task, other in zip(work[:0:-1], reversed(begun), strict=True):
                    if other.cancel():  # no thread has come to it yet
                        task()
            finally:
                others = [other for other in begun if not other.cancelled()]
                failures = [other.exception() for other in others]  # which waits for them
            for failure in filter(None, failures):
                raise failure

    def share_out(self, task: Callable[[int, int], None], count: int, words: int | None = None) -> None:
        """Run ``task(first, stop)`` for consecutive parts of so many equal pieces of work, one part for each thread.

        Threads are as many as pay where all pieces together visit so many ``words``.
        """
        parts = min(self._worth(words), count)
        if parts == 1:
            task(0, count)
        else:
            self.run(partial(task, *ends) for ends in pairwise(count * k // parts for k in range(parts + 1)))

    def alone(self, words: int, count: int) -> bool:
        """True if ``share_out`` would leave as much to the calling thread."""
        return min(self._worth(words), count) == 1

    def _worth(self, words: int | None) -> int:
        """Number of threads that so many words are worth, all where nobody says how many words they are."""
        return self.count if words is None else max(1, min(self.count, words // WORTH_A_THREAD))


_ALWAYS: Final = ("SIGINT", "SIGTERM")
_UNLESS_USED: Final = ("SIGHUP", "SIGUSR1", "SIGUSR2")  # batch systems send the last two ahead of a time limit
_STOPPING: Final = [getattr(signal, name) for name in _ALWAYS + _UNLESS_USED if hasattr(signal, name)]


@contextlib.contextmanager
def stopping_on_signals(stop: Callable[[], None]) -> Iterator[None]:
    """Call ``stop`` for each signal that asks to stop, in the main thread; other threads hear none.

    A hang-up that is ignored, as under nohup, stays ignored, and a program's own handlers of it and of the signals for
    users stay where they are.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def handler(number: int, frame: FrameType | None) -> None:
        stop()

    free = [n for n in _STOPPING if n.name in _ALWAYS or signal.getsignal(n) is signal.SIG_DFL]
    before = {number: signal.signal(number, handler) for number in free}
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)


def ignore_signals() -> None:
    """Leave the decision when to stop to another process, which the same signals tell."""
    for number in _STOPPING:
        signal.signal(number, signal.SIG_IGN)
