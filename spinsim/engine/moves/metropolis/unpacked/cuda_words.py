"""Spins of any couplings and fields as bits of words on a GPU: where they lie, who updates them, what is counted."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np

from spinsim import packing
from spinsim.cuda.compile import instance
from spinsim.cuda.device import multiprocessors, require_memory, shared_memory
from spinsim.cuda.launch import ADDRESS, SIZE, Launch, record, struct_type
from spinsim.engine.cuda_queue import Queue
from spinsim.engine.layouts.replica_packed.cuda_words import COUNT_THREADS, ITEMS_A_THREAD, OrderedWords
from spinsim.engine.moves.metropolis.unpacked.slots import SLOTS, SlotPlan

WORD: Final = 32  # replicas of a thread, sites of a warp where it has one word of each
WORDS: Final = packing.LANES // WORD  # of a block of 128 replicas
SUMS_BYTES: Final = 4 << SLOTS  # of a row
MOST_THREADS: Final = 512
RESIDENT_WARPS: Final = 16  # of a multiprocessor, with the registers that a thread takes
GLOBAL_THREADS: Final = 128  # of a block whose lattices lie in global memory
MEASURE_THREADS: Final = 256
MEASURE_BLOCKS: Final = 2  # of an energy measurement on one multiprocessor
MEASURE_REPLICAS: Final = 16  # of a thread
MEASURE_COLUMNS: Final = 32  # threads side by side in a block, at most

SLOTS_TYPE: Final = struct_type(
    near=ADDRESS, couplings=ADDRESS, stride=SIZE, levels=ADDRESS, level_start=ADDRESS, terms=SIZE
)
EXACT_TYPE: Final = struct_type(
    **dict.fromkeys(("start", "middle", "near", "couplings", "fields"), ADDRESS),
    coupling_stride=SIZE,
    field_stride=SIZE,
)


class Grouping(NamedTuple):
    """Words of 32 replicas and the thread blocks that they are shared out to."""

    words: int  # of a thread block
    threads: int  # of a thread block
    in_shared: bool  # True if it holds its lattices in shared memory
    blocks: int  # thread blocks that share the sites of a colour

    def shared_bytes(self, sites: int, terms: int) -> int:
        """Shared memory of a block: temperatures, lattices, sums, which begin at a multiple of a row's bytes."""
        sums = self.threads // WORD * (WORD // self.words) * SUMS_BYTES + SUMS_BYTES
        return 4 * WORD * self.words * terms + sums + (4 * (sites + 1) * self.words if self.in_shared else 0)


def grouping(plan: SlotPlan, room: int, processors: int) -> Grouping:
    """The grouping that fills a device of so many multiprocessors, each with ``room`` bytes of shared memory."""
    sites, terms, samples = plan.model.sites, plan.plan.terms, plan.model.samples
    colour, columns = int(np.diff(plan.plan.colour_start).max()), -(-plan.replicas // WORD)
    most = min(WORDS, 1 << (columns - 1).bit_length())
    words = next((w for w in (WORDS, WORDS // 2) if w <= most and 2 * samples * -(-columns // w) >= 3 * processors), 1)
    groups = samples * -(-columns // words)
    tiles = -(-colour * words // WORD)
    one_block = Grouping(words, WORD * min(tiles, RESIDENT_WARPS), True, 1)
    if one_block.shared_bytes(sites, terms) <= room and (2 * groups >= processors or tiles <= 2 * RESIDENT_WARPS):
        for blocks_together in (4, 2):
            several = Grouping(words, WORD * min(tiles, RESIDENT_WARPS // blocks_together), True, 1)
            if (
                -(-groups // processors) >= blocks_together
                and blocks_together * (several.shared_bytes(sites, terms) + 1024) <= room
            ):
                return several
        return one_block
    return Grouping(most, GLOBAL_THREADS, False, -(-colour * most // GLOBAL_THREADS))


class UnpackedSpins(OrderedWords):
    """The spins of an unpacked run, and what kernels read of its model.

    Attributes:
        grouping: How replicas and sites are shared out.
        order: Sites, colour by colour.
        colour_start: Where each colour begins, and where the last ends.
        slots: Rows of slots, as kernels take them.
        width: Replicas rounded up to whole blocks.
        integer: The type of couplings and fields in kernels.
    """

    def __init__(self, plan: SlotPlan, queue: Queue) -> None:
        import cupy

        self.plan, self._queue, rows = plan, queue, plan.batches
        self.model, self.replicas, self.width = plan.model, plan.replicas, packing.LANES * plan.shape[1]
        self.integer = "int" if plan.plan.couplings.dtype == np.int32 else "long long"
        arrays = [*plan.exact(), rows.near, rows.couplings, rows.levels.view(np.uint32), rows.level_start, rows.order]
        needed = sum(a.nbytes for a in arrays) + 8 * int(np.prod(plan.shape))
        require_memory(queue.device, needed, f"the state of {plan.model.name}")
        self.grouping = grouping(plan, shared_memory(queue.device), multiprocessors(queue.device))
        self._arrays = [cupy.asarray(np.ascontiguousarray(array)) for array in arrays]
        self._start, self._middle, self._near, self._couplings, self._fields, *slots, self.order = self._arrays
        self.colour_start = cupy.asarray(plan.plan.colour_start.astype(np.uint32))
        of_slots = dict(zip(("near", "couplings", "levels", "level_start"), slots, strict=True))
        self.slots = record(SLOTS_TYPE, **of_slots, stride=_stride(rows.couplings), terms=plan.plan.terms)
        self.exact = record(
            EXACT_TYPE, start=self._start, middle=self._middle, near=self._near, couplings=self._couplings,
            fields=self._fields, coupling_stride=_stride(self._couplings), field_stride=_stride(self._fields),
        )  # fmt: skip
        super().__init__(plan, queue, cupy.asarray(packing.lane_masks(plan.replicas)))

    @property
    def arguments(self) -> dict[str, Any]:
        plan, dynamics, queue = self.plan.plan, self.plan.dynamics, self._queue
        return {
            "state": self.present, "sites": np.uint32(self.model.sites), "blocks": np.uint32(self.plan.shape[1]),
            "words": np.uint32(self.grouping.words), "order": self.order, "colour_start": self.colour_start,
            "colours": np.uint32(plan.colours), "slots": self.slots, "exact": self.exact,
            "zero_acceptance": np.float64(dynamics.zero_acceptance), "first_sample": queue.first_sample,
            "first_block": queue.first_block, "key": queue.keys,
        }  # fmt: skip

    @cached_property
    def _energies(self) -> list[Launch]:
        file, terms = "measuring/count_unpacked.cu", self.plan.plan.terms
        columns = min(MEASURE_COLUMNS, self.width // MEASURE_REPLICAS)
        common = {
            "state": self.present, "sites": np.uint32(self.model.sites), "blocks": np.uint32(self.plan.shape[1]),
            "columns": np.uint32(columns), "near": self._near, "couplings": self._couplings,
            "coupling_stride": np.uint64(_stride(self._couplings)), "energies": np.uint64(0),
        }  # fmt: skip
        fields = {"fields": self._fields, "field_stride": np.uint64(_stride(self._fields))}
        none = {"fields": np.uint64(0), "field_stride": np.uint64(0)}  # they belong to term 0
        bonds = [{"start": self._start, "stop": self._start[1:]} | fields]
        if terms > 1:
            bonds = [{"start": self._start, "stop": self._middle} | fields]
            bonds.append({"start": self._middle, "stop": self._start[1:]} | none)
        expression = instance("total_energy", self.integer)
        return [Launch(self._queue.device, file, expression, common | given) for given in bonds]

    @cached_property
    def _spins_up(self) -> Launch:
        none = dict.fromkeys(("edges", "negative", "sign_stride", "unsatisfied", "up", "up_first"), np.uint64(0))
        return Launch(self._queue.device, "measuring/count_replica_packed.cu", "count_replica", {
            "state": self.present, "sites": np.uint32(self.model.sites), "bonds": np.uint32(0),
            "first_sites": np.uint32(self.plan.plan.first), **none,
        })  # fmt: skip

    @cached_property
    def _energy_grid(self) -> tuple[int, int, int]:
        """Thread blocks that add up energies: shares of the sites, columns of replicas, samples."""
        columns = self.width // MEASURE_REPLICAS
        across, rows = -(-columns // MEASURE_COLUMNS), MEASURE_THREADS // min(MEASURE_COLUMNS, columns)
        fill = MEASURE_BLOCKS * multiprocessors(self._queue.device) // (across * self.model.samples)
        return max(1, min(fill, -(-self.model.sites // rows))), across, self.model.samples

    def add(self, to: tuple[int, ...]) -> None:
        """Queue adding to the sums of ``plan.observables``; the last, of the first sublattice, may be left out."""
        names, stream = self.plan.observables.sums[:-1], self._queue.stream
        samples, blocks, sites, _ = self.plan.shape
        energies = (address for address, name in zip(to, names, strict=False) if name != "up")
        for launch, energy in zip(self._energies, energies, strict=True):
            launch(stream, self._energy_grid, MEASURE_THREADS, energies=energy)
        grid = -(-sites // (COUNT_THREADS * ITEMS_A_THREAD)), blocks, samples
        up_first = (*to[len(names) :], 0)[0] if self.plan.plan.first else 0
        self._spins_up(stream, grid, COUNT_THREADS, up=to[names.index("up")], up_first=up_first)


def _stride(rows: Any) -> int:
    """From one sample's rows to the next one's; 0 where samples share them."""
    return rows[0].size if len(rows) > 1 else 0
