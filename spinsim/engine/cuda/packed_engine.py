"""Replica-packed spins on a GPU: the state has the CPU engine's layout, read as 128-bit words."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from spinsim import packing, rng
from spinsim.engine.base import Counts, Dynamics
from spinsim.engine.cuda.compile import kernel
from spinsim.engine.cuda.device import names, require_memory
from spinsim.engine.plans import PackedPlan
from spinsim.errors import InputError
from spinsim.model.ising import Ising

THREADS: Final = 128
ITEMS_A_THREAD: Final = 64  # of the counting kernels, where there are enough
GRID_LIMIT: Final = 65535  # of a grid's y and z extents
UNBOUNDED: Final = 2**62


class CudaPackedEngine:
    """An ``Engine`` for couplings of one magnitude and a uniform field."""

    packing = packing.Packing.REPLICA

    def __init__(self, model: Ising, replicas: int, dynamics: Dynamics, device: int = 0) -> None:
        import cupy

        self.model, self.replicas, self.dynamics, self.device = model, replicas, dynamics, device
        self._plan = plan = PackedPlan(model, replicas, dynamics, UNBOUNDED)
        self.colours = plan.colours
        self.device_name = names()[device]
        self._key = [np.uint32(word) for word in rng.split_seed(dynamics.seed)]
        samples, blocks, sites, _ = plan.shape
        if max(samples, blocks) > GRID_LIMIT:
            raise InputError(f"{max(samples, blocks)} samples or blocks of replicas exceed a GPU grid: split the run")
        arrays = (plan.batches.order, plan.batches.neighbour, plan.batches.signs, plan.lanes, model.graph.edges)
        needed = sum(a.nbytes for a in arrays) + model.bonds * len(plan.negative) + 8 * int(np.prod(plan.shape))
        require_memory(device, needed, f"the state of {model.name}")
        with cupy.cuda.Device(device):
            self._order, self._neighbour, self._signs, self._lanes, self._edges = (cupy.asarray(a) for a in arrays)
            self._negative = cupy.asarray(np.ascontiguousarray(plan.negative), dtype=cupy.uint8)
            self.state = cupy.empty(plan.shape, cupy.uint64)
            if dynamics.start == "up":
                self.state[:] = self._lanes[None, :, None, :]
            else:
                self._launch("start.cu", f"random_start<{dynamics.rng_rounds}>", sites, self.state, self._lanes,
                             np.uint32(sites), np.uint32(0), np.uint32(0), *self._key)  # fmt: skip
        self.half_sweep = 0
        self._tables: list[Any] | None = None

    @property
    def tasks(self) -> int:
        """Blocks of 128 replicas over all samples."""
        return self._plan.shape[0] * self._plan.shape[1]

    def _launch(self, file: str, expression: str, items: int, *arguments: Any) -> None:
        """Run a kernel over ``items`` (x), blocks of replicas (y) and samples (z)."""
        samples, blocks = self._plan.shape[:2]
        grid = (-(-items // THREADS), blocks, samples)
        kernel(self.device, file, expression)(grid, (THREADS,), arguments)

    def set_beta(self, beta: npt.ArrayLike) -> None:
        """Set the inverse temperature: a number or one for each replica (replicas,)."""
        import cupy

        tables = self._plan.tables(beta)
        with cupy.cuda.Device(self.device):
            self._tables = [cupy.asarray(a) for a in (tables.always, tables.planes, tables.thresholds)]

    def sweep(self, count: int) -> None:
        """Attempt every spin of every replica ``count`` times."""
        import cupy

        with cupy.cuda.Device(self.device):
            for _ in range(count):
                for colour in range(self.colours):
                    start = self._plan.batches.colour_start
                    for batch in range(start[colour], start[colour + 1]):
                        self._update(batch)
                    self.half_sweep += 1

    def _update(self, batch: int) -> None:
        """One launch: the sites of one colour and parity of degree."""
        if self._tables is None:
            raise InputError("no temperature is set: call set_beta before sweep")
        plan, b = self._plan, self._plan.batches
        first, size, offset = int(b.first[batch]), int(b.first[batch + 1] - b.first[batch]), int(b.offset[batch])
        always, planes, thresholds = self._tables
        instance = f"{plan.classes.count_bits}, {str(plan.has_field).lower()}, {self.dynamics.rng_rounds}"
        self._launch(
            "metropolis_replica.cu",
            f"sweep_replica<{instance}>",
            size,
            self.state,
            self._order[first:],
            self._neighbour[offset:],
            self._signs.reshape(-1)[offset:],
            np.uint32(size),
            np.int32(b.slots[batch]),
            np.uint32(b.base[batch]),
            np.int32(b.parity[batch]),
            np.uint64(b.signs.shape[1] if len(b.signs) > 1 else 0),
            np.uint32(self.model.sites),
            always,
            planes,
            thresholds,
            self._lanes,
            np.uint32(0),
            np.uint32(0),
            np.uint64(self.half_sweep),
            *self._key,
        )

    def counts(self) -> Counts:
        """Energy and magnetisation of every replica."""
        import cupy

        samples, blocks, sites, _ = self._plan.shape
        stride = self.model.bonds if len(self._negative) > 1 else 0
        with cupy.cuda.Device(self.device):
            up, unsatisfied = cupy.zeros((2, samples, blocks, packing.LANES), cupy.int64)
            self._launch("measure.cu", "count_up", -(-sites // ITEMS_A_THREAD), self.state, np.uint32(sites), up)
            if self.model.bonds:
                self._launch("measure.cu", "count_unsatisfied", -(-self.model.bonds // ITEMS_A_THREAD), self.state,
                             np.uint32(sites), self._edges, self._negative, np.uint64(stride),
                             np.uint64(self.model.bonds), unsatisfied)  # fmt: skip
            return self._plan.counts(cupy.asnumpy(up), cupy.asnumpy(unsatisfied))

    def spins(self, sample: int, replica: int) -> npt.NDArray[np.int8]:
        """One configuration, shape (sites,), +1 or -1."""
        block, lane = divmod(replica, packing.LANES)
        words = self.state[sample, block, :, lane // 64].get()
        return packing.unpack_lane(words, lane % 64)
