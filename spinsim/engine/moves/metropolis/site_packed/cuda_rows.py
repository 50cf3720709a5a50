"""Sweeps of site-packed lattices on a GPU where rows begin anywhere in words: blocks share a lattice group by group."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from spinsim.cuda.compile import instance
from spinsim.cuda.device import cupy, has_clusters, multiprocessors
from spinsim.cuda.launch import Launch
from spinsim.engine.cuda_queue import Queue
from spinsim.engine.moves.metropolis.classes import LATTICE_BARRIER, Kind
from spinsim.packing import LANES

BLOCKS: Final = 4  # on one multiprocessor
BYTES: Final = 32  # of a group of both colours
WORD_THREADS: Final = 512  # of a block of words, at most
LEAST_THREADS: Final = 32
IN_SHARED: Final = 2**17 + 2**16  # bytes of a lattice that a block holds, at most
OF_CLUSTER: Final = 8  # blocks that share such a lattice, where there are few
LEAST_GROUPS: Final = 64  # of a colour that a cluster is given


def launches(half_sweeps: int, half_sweep: int, most: int) -> Iterator[tuple[int, int]]:
    """Half-sweeps of each launch, at most so many, and the number of its first one."""
    for first in range(half_sweep, half_sweep + half_sweeps, most):
        yield min(most, half_sweep + half_sweeps - first), first


class WordSweeps:
    """Sweeps of lattices in shared memory at the temperatures of tables; arguments are those of ``RowSweeps``.

    Each has a block, or a cluster of blocks, for itself.
    """

    def __init__(
        self, queue: Queue, arguments: dict[str, Any], shape: tuple[int, ...], rule: tuple[int, bool, bool], kind: Kind,
        sides: tuple[int, int, int], most: int, blocks: int,
    ) -> None:  # fmt: skip
        samples, replicas, _, groups, _ = shape
        self._stream, self._most, self._grid = queue.stream, most, (blocks, replicas, samples)
        warps = -(-4 * -(-groups // blocks) // LEAST_THREADS)
        self._threads = min(WORD_THREADS, LEAST_THREADS * warps)
        expression = instance("sweep_words", *rule, int(kind), queue.rng_rounds, blocks)
        self._launch = Launch(queue.device, "metropolis/site_packed_words.cu", expression, {
            **arguments, "readers": cupy.asarray(readers_of(sides, groups, blocks)), "first_sample": queue.first_sample,
            "first_replica": queue.first_block, "half_sweep": np.uint64(0), "half_sweeps": np.uint32(1),
            "key": queue.keys,
        }, BYTES * groups)  # fmt: skip

    def sweep(self, half_sweeps: int, half_sweep: int) -> None:
        for several, first in launches(half_sweeps, half_sweep, self._most):
            self._launch(self._stream, self._grid, self._threads, half_sweep=first, half_sweeps=several)


def blocks_in_shared(groups: int, lattices: int, device: int) -> int:
    """Blocks that share a lattice in their shared memory; 0 where it does not fit."""
    if BYTES * groups > IN_SHARED:
        return 0
    are_few = lattices * OF_CLUSTER <= multiprocessors(device) and groups >= LEAST_GROUPS
    return OF_CLUSTER if are_few and has_clusters(device) else 1


def readers_of(sides: tuple[int, int, int], groups: int, blocks: int) -> npt.NDArray[np.uint32]:
    """A bit for each block that looks at lanes of a group of the other colour, (groups,).

    Block b has the groups from ``groups * b // blocks`` on.
    """
    width, height, depth = sides
    plane, lanes = width * height, width * height * depth
    away = [0, 1, width - 1, width] + ([plane - width, plane] if depth > 1 else [])
    rank = np.searchsorted(groups * np.arange(1, blocks + 1) // blocks, np.arange(groups), side="right")
    readers, first = np.zeros(groups, np.uint32), LANES * np.arange(groups)
    own = np.uint32(1) << rank.astype(np.uint32)
    for distance in {sign * far for far in away for sign in (1, -1)}:
        begin, end = (first + distance) % lanes, (first + LANES - 1 + distance) % lanes
        for seen in (begin // LANES, end // LANES):
            np.bitwise_or.at(readers, seen, own)
        readers[-1] |= np.bitwise_or.reduce(own[begin > end], initial=0)  # which may be short
    return readers


class RowSweeps:
    """Sweeps at the temperatures of tables, by as many blocks as the device holds at once.

    Args:
        arguments: Of the kernel, those that say what the lattices are: ``state``, ``rows``, ``signs`` and ``tables``.
        shape: Of the state, (samples, replicas, colours, groups, halves).
        rule: Dimension, and if there are signs and a field.
        threads: Of a block.
        most: Half-sweeps of a launch.
    """

    def __init__(
        self, queue: Queue, arguments: dict[str, Any], shape: tuple[int, ...], rule: tuple[int, bool, bool], kind: Kind,
        threads: int, most: int,
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
