"""Graphs whose degrees differ much on a GPU: small ones stay in shared memory, others lie in global memory."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from spinsim.cuda.compile import instance
from spinsim.cuda.device import cupy, multiprocessors, shared_memory
from spinsim.cuda.launch import ADDRESS, SIZE, Launch, record, struct_type
from spinsim.engine.cuda_queue import Queue
from spinsim.engine.layouts.replica_packed.cuda_words import CountedWords, place_of
from spinsim.engine.moves.metropolis.packed.batches import Batches, Costs
from spinsim.engine.moves.metropolis.packed.classes import PLANES, Limits, cheap_bits
from spinsim.engine.moves.metropolis.replica_packed.cuda_lattices import DeviceTables, TableSweeper
from spinsim.engine.moves.metropolis.replica_packed.update import ReplicaPlan

TILE_SITES: Final = 32  # of a warp
COSTS: Final = Costs(width=1, batch=32 * 1000, site=0, bond=40, doubling=True)  # instructions of a thread, 32 for each
MOST_THREADS: Final = 512
RESIDENT_WARPS: Final = 16  # of a multiprocessor, with the registers that a thread takes
QUEUE_BYTES: Final = 768  # of a warp's undecided lanes
TREE_BITS: Final = (2, 3, 4)  # of cheap classes that have a kernel; the last one takes more of them too

TILE: Final = struct_type(**dict.fromkeys(("first", "size", "most", "offset"), np.uint32))
BONDS: Final = struct_type(sites=ADDRESS, wanted=ADDRESS, stride=SIZE, site_stride=SIZE)


def tiles(batches: Batches, in_fields: bool) -> npt.NDArray[np.void]:
    table = np.empty(len(batches.slots), TILE)
    table["first"], table["size"] = batches.first[:-1], np.diff(batches.first)
    table["most"], table["offset"] = batches.slots + (batches.most << 16 if in_fields else 0), batches.offset
    return table


def sites_with_units(plan: ReplicaPlan) -> npt.NDArray[np.uint32]:
    """Site of each place, and its bonds and field as the kernel reads them, (1 or samples, sites, 2)."""
    order = plan.batches.order
    own = plan.graph.degrees()[order].astype(np.int64)[None]
    if plan.fields is not None:
        fields = plan.fields[:, order]
        own = own + (np.abs(fields) << 8) + (np.asarray(fields > 0, np.int64) << 16)
    table = np.empty((*own.shape, 2), np.uint32)
    table[..., 0], table[..., 1] = order, own
    return table


def wanted(batches: Batches) -> npt.NDArray[np.uint32]:
    """Bonds of each tile, (1 or samples, bonds): twice the neighbour's place, plus 1 where the coupling is below 0."""
    return np.ascontiguousarray(2 * place_of(batches.order)[batches.neighbour] + batches.signs)


def row_bytes(bits: int) -> int:
    """Shared memory of the rows of 2^bits cheap classes and of lanes in use."""
    return 16 * (1 + (2 * (1 + PLANES) << bits))


class DegreeLattices(CountedWords):
    """The state of a graph of any degrees, and what the kernel reads of it: tiles of sites of like degree."""

    plan: ReplicaPlan

    def __init__(self, plan: ReplicaPlan, queue: Queue) -> None:
        batches = plan.batches
        super().__init__(plan, queue, (sites_with_units(plan), wanted(batches)))
        self._sites, self._wanted = self.lists
        self._tiles = cupy.asarray(tiles(batches, plan.fields is not None).view(np.uint32))
        self._colour_start = cupy.asarray(batches.colour_start.astype(np.int32))
        self.most_tiles = int(np.diff(batches.colour_start).max())
        self.threads, self.in_shared = self._threads(plan, queue.device)

    def _threads(self, plan: ReplicaPlan, device: int) -> tuple[int, bool]:
        """Threads of a block, and whether it holds a lattice."""
        room, lattices = shared_memory(device), plan.shape[0] * plan.shape[1]
        lattice, most = 16 * plan.model.sites, row_bytes(plan.classes.bits)
        in_shared = lattice + most + RESIDENT_WARPS * QUEUE_BYTES <= room
        blocks_together = min(4, room // (lattice + row_bytes(TREE_BITS[0])), -(-lattices // multiprocessors(device)))
        warps = min(self.most_tiles, RESIDENT_WARPS // max(1, blocks_together)) if in_shared else 4
        return 32 * warps, in_shared

    def launch(self, tables: DeviceTables, bits: int) -> Launch:
        """The kernel at temperatures that have 2^bits cheap classes."""
        queue, plan = self._queue, self.plan
        tree = min(bits, TREE_BITS[-1])
        shared = row_bytes(bits) + self.threads // 32 * QUEUE_BYTES + (16 * plan.model.sites if self.in_shared else 0)
        stride, site_stride = (array[0].size if len(array) > 1 else 0 for array in (self._wanted, self._sites))
        bonds = record(BONDS, sites=self._sites, wanted=self._wanted, stride=stride, site_stride=site_stride // 2)
        expression = instance("sweep_degrees", tree, self.in_shared, plan.fields is not None, queue.rng_rounds)
        return Launch(queue.device, "metropolis/replica_packed_degrees.cu", expression, {
            "state": self.present, "sites": np.uint32(plan.model.sites), "tiles": self._tiles,
            "colour_start": self._colour_start, "colours": np.uint32(plan.colours),
            "bonds": bonds, "tables": tables.record,
            "are_shared": np.uint32(tables.are_shared), "classes": np.uint32(2**plan.classes.bits),
            "cheap_bits": np.uint32(bits), "first_sample": queue.first_sample, "first_block": queue.first_block,
            "half_sweep": np.uint64(0), "half_sweeps": np.uint32(0), "key": queue.keys,
        }, shared)  # fmt: skip


class DegreeSweeper(TableSweeper):
    """A ``CudaSweeper`` of graphs of any degrees."""

    shares_tables = True
    updates_a_launch = 2**35  # so that a launch stays well below a second

    def __init__(self, queue: Queue, lattices: DegreeLattices) -> None:
        super().__init__(queue, lattices, lattices.plan)
        self._degrees = lattices

    def _make_ready(self, tables: DeviceTables, limits: Limits) -> None:
        self._launch = self._degrees.launch(tables, min(cheap_bits(limits), self._plan.classes.bits))

    def _queue_sweeps(self, count: int, half_sweep: int) -> None:
        lattices, half_sweeps = self._degrees, count * self.colours
        samples, blocks = lattices.plan.shape[:2]
        share, most = 1, self.most_sweeps * self.colours
        if not lattices.in_shared:
            share, most = -(-lattices.most_tiles * TILE_SITES // lattices.threads), 1
        for done in range(0, half_sweeps, most):
            grid, now = (share, blocks, samples), min(most, half_sweeps - done)
            self._launch(self._queue.stream, grid, lattices.threads, half_sweep=half_sweep + done, half_sweeps=now)
