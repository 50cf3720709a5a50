"""Tasks on threads, and signals, which only the main thread receives.

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
"""Number of 128-spin words that a kernel updates or counts in about 50 us, the time for handing a task to a thread."""

_sharing = [1]  # number of processes that share the processors


def share_processors(processes: int) -> None:
    """Set the number of processes, including this one, that share the same processors."""
    _sharing[0] = processes


def available_threads() -> int:
    """Number of processors this process may use, or its share of them."""
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
        """Run all tasks, some of them in the calling thread; a failure is raised when all have ended.

        If all tasks together visit too few ``words`` for a second thread to pay, the caller runs them.
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
                    if other.cancel():  # no thread has begun it
                        task()
            finally:
                others = [other for other in begun if not other.cancelled()]
                failures = [other.exception() for other in others]  # waits for them
            for failure in filter(None, failures):
                raise failure

    def share_out(self, task: Callable[[int, int], None], count: int, words: int | None = None) -> None:
        """Run ``task(first, stop)`` for consecutive parts of ``count`` equal pieces of work, one part for each thread.

        The number of threads is the largest that pays if all pieces together visit ``words`` words.
        """
        parts = min(self._worth(words), count)
        if parts == 1:
            task(0, count)
        else:
            self.run(partial(task, *ends) for ends in pairwise(count * k // parts for k in range(parts + 1)))

    def alone(self, words: int, count: int) -> bool:
        """True if ``share_out`` would give this work to the calling thread only."""
        return min(self._worth(words), count) == 1

    def _worth(self, words: int | None) -> int:
        """Number of threads that pay for this number of words; all threads if it is None."""
        return self.count if words is None else max(1, min(self.count, words // WORTH_A_THREAD))


_ALWAYS: Final = ("SIGINT", "SIGTERM")
_UNLESS_USED: Final = ("SIGHUP", "SIGUSR1", "SIGUSR2")  # batch systems send the last two before a time limit
_STOPPING: Final = [getattr(signal, name) for name in _ALWAYS + _UNLESS_USED if hasattr(signal, name)]


@contextlib.contextmanager
def stopping_on_signals(stop: Callable[[], None]) -> Iterator[None]:
    """Call ``stop`` in the main thread for each signal that asks to stop; in other threads do nothing.

    An ignored hang-up, as under nohup, stays ignored. A program's own handlers of it and of SIGUSR1 and SIGUSR2 stay
    installed.
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
    """Ignore the signals, because another process receives them too and decides when to stop."""
    for number in _STOPPING:
        signal.signal(number, signal.SIG_IGN)
