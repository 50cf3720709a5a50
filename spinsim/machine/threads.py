"""Independent tasks on threads: the kernels release the interpreter lock, and tasks share nothing they write."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import pairwise
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

    def _worth(self, words: int | None) -> int:
        """Number of threads that so many words are worth, all where nobody says how many words they are."""
        return self.count if words is None else max(1, min(self.count, words // WORTH_A_THREAD))
