"""Acceptance tables of replica-packed spins on a GPU: of given temperatures, or of the places of a ladder."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from spinsim.cuda.launch import Launch, record
from spinsim.engine.cuda_queue import Queue
from spinsim.engine.moves.exchange.cuda import LADDER, Placed
from spinsim.engine.moves.metropolis.packed.classes import Limits, SomeClasses, Tables, empty_tables
from spinsim.engine.moves.metropolis.replica_packed.cuda_records import TABLES
from spinsim.model.ising import Ising
from spinsim.packing import LANES


class PlanWithTables(Protocol):
    """A run whose replicas have tables.

    Attributes:
        model: What is simulated.
        replicas: Of each sample.
        shape: Of the state, (samples, blocks, sites, 2).
    """

    model: Ising
    replicas: int
    shape: tuple[int, int, int, int]

    @property
    def classes(self) -> SomeClasses:
        """Flip classes."""

    def limits(self, beta: npt.NDArray[np.float64]) -> Limits:
        """What decides flips at the inverse temperatures of a ladder."""


class WithTables(Protocol):
    """Lattices whose sweeps read tables.

    Attributes:
        lanes: Lanes in use, on the device.
    """

    lanes: Any

    @property
    def plan(self) -> PlanWithTables:
        """What devices share."""


class DeviceTables:
    """Tables on the device; those of a ladder are laid again when exchanges have changed places.

    Args:
        lattices: Whose sweeps read them.
        arrays: always, planes, thresholds, as ``Tables`` has them.

    Attributes:
        arrays: As given.
    """

    def __init__(self, lattices: WithTables, arrays: list[Any]) -> None:
        self._lattices, self.arrays = lattices, arrays

    @classmethod
    def of(cls, lattices: WithTables, tables: Tables, are_shared: bool = False) -> DeviceTables:
        """Copies of tables on the host; those of one block are repeated for all unless the kernel can share them."""
        import cupy

        arrays = [cupy.asarray(a) for a in (tables.always, tables.planes, tables.thresholds)]
        blocks = lattices.plan.shape[1]
        if not are_shared and len(arrays[0][0]) < blocks:
            of_one, arrays = arrays, [cupy.empty((len(a), blocks, *a.shape[2:]), a.dtype) for a in arrays]
            for all_blocks, one in zip(arrays, of_one, strict=True):
                all_blocks[:] = one
        return cls(lattices, arrays)

    @property
    def record(self) -> npt.NDArray[np.void]:
        """The tables as kernels take them."""
        always, planes, thresholds = self.arrays
        stride = self._lattices.plan.shape[1] if len(always) > 1 else 0
        lanes = self._lattices.lanes
        return record(TABLES, always=always, planes=planes, thresholds=thresholds, lanes=lanes, stride=stride)


class LadderTables(DeviceTables):
    """Tables of a ladder's places.

    Args:
        queue: Where they are laid.
        lattices: Whose sweeps read them.
        placed: Where replicas are on the ladder.

    Attributes:
        ladder: Limits of each temperature, as kernels take them.
        are_laid: Whether they are those of the present places.
    """

    def __init__(self, queue: Queue, lattices: WithTables, placed: Placed) -> None:
        import cupy

        plan, beta = lattices.plan, placed.ladder.beta
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
            "place": placed.place, "replicas": np.uint32(plan.replicas), "kinds": np.uint32(plan.classes.tables),
            "classes": np.uint32(2**plan.classes.bits),
        })  # fmt: skip

    def lay(self) -> None:
        """Queue laying them."""
        self.are_laid = True
        self._lay(self._stream, self._grid, LANES)
