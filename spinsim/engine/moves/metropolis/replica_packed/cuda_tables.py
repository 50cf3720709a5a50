"""Acceptance tables of replica-packed spins on a GPU: of given temperatures, or of the places of a ladder."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from spinsim.cuda.device import cupy
from spinsim.cuda.launch import Launch, record
from spinsim.engine.cuda import CudaSweeper
from spinsim.engine.cuda_queue import Queue
from spinsim.engine.dynamics import NO_TEMPERATURE
from spinsim.engine.layouts.replica_packed.cuda_words import CountedWords
from spinsim.engine.moves.exchange.cuda import LADDER, ReplicaPlaces
from spinsim.engine.moves.metropolis.packed.classes import Limits, Tables, empty_tables
from spinsim.engine.moves.metropolis.replica_packed.cuda_lattices import TABLES
from spinsim.engine.moves.metropolis.replica_packed.update import PackedRun
from spinsim.errors import InputError
from spinsim.packing import LANES

SWEEPS_A_LAUNCH: Final = 1000


class DeviceTables:
    """Tables on the device; those of a ladder are laid again when exchanges have changed places.

    Attributes:
        are_shared: True if they are those of one block, for all blocks of all samples.
    """

    def __init__(self, lattices: CountedWords, arrays: list[Any]) -> None:
        self._lattices, self.arrays = lattices, arrays
        self.are_shared = arrays[0].shape[:2] == (1, 1)

    @classmethod
    def of(cls, lattices: CountedWords, tables: Tables, can_share: bool = False) -> DeviceTables:
        """Copies of tables on the host; those of one block are repeated for all unless the kernel can share them."""
        arrays = [cupy.asarray(a) for a in (tables.always, tables.planes, tables.thresholds)]
        blocks = lattices.plan.shape[1]
        if not can_share and len(arrays[0][0]) < blocks:
            of_one, arrays = arrays, [cupy.empty((len(a), blocks, *a.shape[2:]), a.dtype) for a in arrays]
            for all_blocks, one in zip(arrays, of_one, strict=True):
                all_blocks[:] = one
        return cls(lattices, arrays)

    @property
    def record(self) -> npt.NDArray[np.void]:
        always, planes, thresholds = self.arrays
        stride = self._lattices.plan.shape[1] if len(always) > 1 else 0
        lanes = self._lattices.lanes
        return record(TABLES, always=always, planes=planes, thresholds=thresholds, lanes=lanes, stride=stride)


class LadderTables(DeviceTables):
    """Tables of a ladder's places.

    Attributes:
        ladder: Limits of each temperature, as kernels take them.
        are_laid: True if they are those of the present places.
    """

    def __init__(self, queue: Queue, lattices: CountedWords, places: ReplicaPlaces) -> None:
        plan, beta = lattices.plan, places.ladder.beta
        room = empty_tables(plan.classes, plan.model.samples, plan.replicas)
        super().__init__(lattices, [cupy.empty(a.shape, a.dtype) for a in (room.always, room.planes, room.thresholds)])
        self._limits = certain, limits = [cupy.asarray(a) for a in plan.limits(beta)]
        self.ladder = record(LADDER, limits=limits, certain=certain, temperatures=len(beta))
        samples, blocks = plan.shape[:2]
        self.are_laid, self._stream = False, queue.stream
        self._grid = blocks, samples, plan.classes.tables * 2**plan.classes.bits
        always, planes, thresholds = self.arrays
        self._lay = Launch(queue.device, "tempering/lay_tables.cu", "lay_tables", {
            "always": always, "planes": planes, "thresholds": thresholds, "ladder": self.ladder,
            "place": places.place, "replicas": np.uint32(plan.replicas), "kinds": np.uint32(plan.classes.tables),
            "classes": np.uint32(2**plan.classes.bits),
        })  # fmt: skip

    def lay(self) -> None:
        self.are_laid = True
        self._lay(self._stream, self._grid, LANES)


class TableSweeper(CudaSweeper):
    """Temperatures of a ``CudaSweeper`` whose sweeps read tables.

    Attributes:
        shares_tables: True if kernels can read one block's tables for all.
        updates_a_launch: So that a launch stays well below a second.
    """

    shares_tables = False
    updates_a_launch = 2**37

    def __init__(self, queue: Queue, lattices: CountedWords, plan: PackedRun) -> None:
        self.colours, self.tasks = plan.colours, plan.shape[0] * plan.shape[1]
        self._queue, self._lattices, self._plan = queue, lattices, plan
        self._on_ladder: LadderTables | None = None
        self._tables: DeviceTables | None = None  # launches know addresses alone

    @property
    def most_sweeps(self) -> int:
        most = self.updates_a_launch // (LANES * self._plan.model.sites * self.tasks)
        return max(1, min(most, SWEEPS_A_LAUNCH))

    @abstractmethod
    def _make_ready(self, tables: DeviceTables, limits: Limits) -> None:
        """Make ready for sweeps, whatever tables will hold of the temperatures that ``limits`` are of."""

    @abstractmethod
    def _queue_sweeps(self, count: int, half_sweep: int) -> None: ...

    def set_beta(self, beta: npt.ArrayLike) -> None:
        tables, limits = self._plan.tables(beta)
        self._tables = DeviceTables.of(self._lattices, tables, self.shares_tables)
        self._on_ladder = self.rounds = None
        self._make_ready(self._tables, limits)

    def set_ladder(self, places: ReplicaPlaces) -> None:
        self._tables = self._on_ladder = LadderTables(self._queue, self._lattices, places)
        self.rounds = None
        self._make_ready(self._on_ladder, self._plan.limits(places.ladder.beta))

    def lay_tables(self) -> None:
        if self._on_ladder is not None:
            self._on_ladder.lay()

    def sweep(self, count: int, half_sweep: int) -> None:
        if self._tables is None:
            raise InputError(NO_TEMPERATURE)
        if self._on_ladder is not None and not self._on_ladder.are_laid:
            self._on_ladder.lay()
        self._queue_sweeps(count, half_sweep)
