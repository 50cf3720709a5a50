"""Totals that kernels add up on the device and the host reads while later sweeps run."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from spinsim.cuda.device import cupy

KEPT: Final = 8  # totals whose pinned memory arrays may share; what is read while there are more is copied


Fetched = Callable[..., npt.NDArray[np.int64]]
"""Waits for totals and returns all of them or a row: arrays of pinned memory, or copies where many are kept."""


class Totals:
    """Sums on the device and the pinned memory that they are copied to.

    Attributes:
        sums: int64 on the device; 0 when a kernel begins to add to them.
        parts: Addresses of ``sums[0]``, ``sums[1]`` and so on.
        cleared: The event behind the zeros for the next kernel.
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.sums: Any = cupy.zeros(shape, cupy.int64)
        self.parts = tuple(part.data.ptr for part in self.sums)
        self.memory: Any = cupy.cuda.alloc_pinned_memory(self.sums.nbytes)
        self.added, self.copied, self.cleared = (cupy.cuda.Event(disable_timing=True) for _ in range(3))
        self.octets = ctypes.c_char * self.sums.nbytes


class TotalsPool:
    """An engine's totals, used again and again.

    A stream of copies fetches and clears them, so that sweeps wait for neither. Totals go from one measurement to the
    next when the function that reads them and what it has returned are gone: it may be called late, several times or
    never.

    Args:
        clears: True if totals must be 0 for the next kernel.
    """

    def __init__(self, sweeps: Any, clears: bool = True) -> None:
        self._sweeps, self._clears = sweeps, clears
        self._copies, self._side_stream = (cupy.cuda.Stream(non_blocking=True) for _ in range(2))
        self._idle: list[Totals] = []
        self._made = 0

    def reserve(self, shape: tuple[int, ...]) -> Totals:
        """Totals, 0 for the kernel that is launched next; ``shape`` is always the same."""
        if self._idle:
            totals = self._idle.pop()
        else:
            with self._copies:  # whose memory pool they belong to: it frees them behind the copies
                totals = Totals(shape)
                self._made += 1
                totals.cleared.record(self._copies)
        self._sweeps.wait_event(totals.cleared)
        return totals

    def give_back(self, totals: Totals) -> None:
        """Take totals that a kernel just launched has read and cleared."""
        totals.cleared.record(self._sweeps)
        self._idle.append(totals)

    def fetch(
        self, totals: Totals, queue_more: Callable[[Any], None] | None = None, rows: range | None = None
    ) -> Fetched:
        """Start copying totals behind the kernel just launched; the function returned waits for them, or one row.

        ``queue_more`` is given a stream where it may queue what adds to them, beside later sweeps. Of ``rows`` alone
        the numbers are copied.
        """
        rows = range(len(totals.sums)) if rows is None else rows
        row = totals.sums.nbytes // len(totals.sums)
        totals.added.record(self._sweeps)
        if queue_more is not None:
            self._side_stream.wait_event(totals.added)
            queue_more(self._side_stream)
            totals.added.record(self._side_stream)
        self._copies.wait_event(totals.added)
        copied = totals.sums[rows.start :].data
        copied.copy_to_host_async(totals.memory.ptr + row * rows.start, row * len(rows), self._copies)
        totals.copied.record(self._copies)
        if self._clears:
            totals.sums.data.memset_async(0, totals.sums.nbytes, self._copies)
        totals.cleared.record(self._copies)
        lent = totals.octets.from_address(totals.memory.ptr)  # lives as long as any array of it
        weakref.finalize(lent, self._give_back_later, totals)

        def fetched(row: int | None = None) -> npt.NDArray[np.int64]:
            totals.copied.synchronize()
            whole = np.frombuffer(lent, np.int64).reshape(totals.sums.shape)
            numbers = whole if row is None else whole[row]
            return numbers.copy() if self._made - len(self._idle) > KEPT else numbers

        return fetched

    def _give_back_later(self, totals: Totals) -> None:
        totals.copied.synchronize()  # pinned memory is not given to others while a copy is under way
        self._idle.append(totals)
