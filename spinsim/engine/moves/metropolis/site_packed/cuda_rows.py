"""Sweeps of site-packed lattices on a GPU where rows begin anywhere in words: blocks share a lattice group by group."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from spinsim.cuda.compile import instance
from spinsim.cuda.device import cupy, multiprocessors
from spinsim.cuda.launch import Launch
from spinsim.engine.cuda_queue import Queue
from spinsim.engine.moves.metropolis.classes import LATTICE_BARRIER, Kind

BLOCKS: Final = 4  # on one multiprocessor


def launches(half_sweeps: int, half_sweep: int, most: int) -> Iterator[tuple[int, int]]:
    """Half-sweeps of each launch, at most so many, and the number of its first one."""
    for first in range(half_sweep, half_sweep + half_sweeps, most):
        yield min(most, half_sweep + half_sweeps - first), first


class RowSweeps:
    """Sweeps at the temperatures of tables, by as many blocks as the device holds at once.

    Args:
        arguments: Of the kernel, those that say what the lattices are: ``state``, ``rows``, ``signs`` and ``tables``.
        shape: Of the state, (samples, replicas, colours, groups, halves).
        rule: Dimension, and if there are signs and a field.
        most: Half-sweeps of a launch.
        threads: Of a block.
    """

    def __init__(
        self, queue: Queue, arguments: dict[str, Any], shape: tuple[int, ...], rule: tuple[int, bool, bool], kind: Kind,
        most: int, threads: int,
    ) -> None:  # fmt: skip
        samples, replicas, _, groups, _ = shape
        self._stream, self._threads, self._most = queue.stream, threads, most
        expression = instance("sweep_rows", *rule, int(kind), queue.rng_rounds)
        self._launch = Launch(queue.device, "metropolis/site_packed_rows.cu", expression, {
            **arguments, "first_sample": queue.first_sample, "first_replica": queue.first_block,
            "half_sweep": np.uint64(0), "half_sweeps": np.uint32(1), "barriers": np.zeros((), LATTICE_BARRIER),
            "key": queue.keys,
        })  # fmt: skip
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
