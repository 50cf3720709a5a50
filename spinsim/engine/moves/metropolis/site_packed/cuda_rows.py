"""Sweeps of site-packed lattices on a GPU for rows that begin anywhere in words: blocks share a lattice by groups."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import numpy as np

from spinsim.cuda.compile import instance
from spinsim.cuda.device import cupy, multiprocessors
from spinsim.cuda.launch import Launch
from spinsim.engine.cuda_queue import Queue
from spinsim.engine.moves.metropolis.classes import LATTICE_BARRIER, Kind

BLOCKS: Final = 4  # blocks on one multiprocessor


def launches(half_sweeps: int, half_sweep: int, most: int) -> Iterator[tuple[int, int]]:
    """Yield the number of half-sweeps of each launch, at most ``most``, and the number of its first half-sweep."""
    for first in range(half_sweep, half_sweep + half_sweeps, most):
        yield min(most, half_sweep + half_sweeps - first), first


class Swept(NamedTuple):
    """Lattices swept at the temperatures of tables, for rows that may begin anywhere in words."""

    queue: Queue
    arguments: dict[str, Any]  # kernel arguments of the lattices: ``state``, ``rows``, ``signs`` and ``tables``
    shape: tuple[int, ...]  # shape of the state, (samples, replicas, colours, groups, halves)
    rule: tuple[int, bool, bool]  # dimension, True with signs, True in a field
    kind: Kind
    most: int  # most half-sweeps of a launch

    def ready(self, file: str, name: str, **own: Any) -> Launch:
        """Return a kernel of half-sweeps with all arguments; ``own`` are its additional ones."""
        return self.ready_for(file, name, half_sweep=np.uint64(0), half_sweeps=np.uint32(1), **own)

    def ready_for(self, file: str, name: str, **own: Any) -> Launch:
        """Return any kernel that sweeps, with the same arguments."""
        queue, expression = self.queue, instance(name, *self.rule, int(self.kind), self.queue.rng_rounds)
        return Launch(queue.device, file, expression, {
            **self.arguments, "first_sample": queue.first_sample, "first_replica": queue.first_block,
            "key": queue.keys, **own,
        })  # fmt: skip


class RowSweeps:
    """Sweeps by as many blocks of ``threads`` threads as are resident on the device."""

    def __init__(self, swept: Swept, threads: int) -> None:
        queue, (samples, replicas, _, groups, _) = swept.queue, swept.shape
        self._stream, self._threads, self._most = queue.stream, threads, swept.most
        barriers = np.zeros((), LATTICE_BARRIER)
        self._launch = swept.ready("metropolis/site_packed_rows.cu", "sweep_rows", barriers=barriers)
        there = min(BLOCKS, self._launch.blocks_at_once(threads)) * multiprocessors(queue.device)
        self._grid = min(-(-groups // threads), max(1, there // (samples * replicas))), replicas, samples
        self._arrived, self._arrivals = cupy.zeros(samples * replicas, cupy.uint32), 0

    def sweep(self, half_sweeps: int, half_sweep: int) -> None:
        blocks = self._grid[0]
        for several, first in launches(half_sweeps, half_sweep, self._most):
            self._launch(
                self._stream, self._grid, self._threads, blocks > 1, half_sweep=first, half_sweeps=several,
                barriers=(self._arrived.data.ptr, self._arrivals),
            )  # fmt: skip
            if blocks > 1:
                self._arrivals = (self._arrivals + (several - 1) * blocks) % 2**32
