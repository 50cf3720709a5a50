"""Replica-packed spins on a GPU: the state has the CPU engine's layout, read as 128-bit words."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from spinsim import packing
from spinsim.acceptance import ZERO_ACCEPTANCE
from spinsim.engine.base import Counts, Dynamics
from spinsim.engine.batches import Batches
from spinsim.engine.cuda.compile import kernel
from spinsim.engine.cuda.device import multiprocessors, names, require_memory, shared_memory
from spinsim.engine.plans import PackedPlan
from spinsim.engine.cuda.records import round_keys, site_records, struct
from spinsim.engine.tables import PLANES
from spinsim.errors import InputError
from spinsim.model.ising import Ising

THREADS: Final = 128
SWEEP_THREADS: Final = 128  # as in metropolis_replica.cu
SHARED_THREADS: Final = 256
RESIDENT_THREADS: Final = 512  # of the global form on one multiprocessor
SITES_A_THREAD: Final = 8  # at most; more give no better use of the queues
TAIL_ROOM: Final = 64  # as in tail.cuh
SWEEPS_A_LAUNCH: Final = 256  # so that a launch stays well below a second
ITEMS_A_THREAD: Final = 64  # of the counting kernels, where there are enough
GRID_LIMIT: Final = 65535  # of a grid's y and z extents
UNBOUNDED: Final = 2**62


def batch_table(batches: Batches) -> npt.NDArray[np.uint32]:
    """``Batch`` of replica_site.cuh, a row for each batch."""
    columns = (batches.first[:-1], np.diff(batches.first), batches.slots, batches.base, batches.parity, batches.offset)
    return np.ascontiguousarray(np.stack(columns, axis=1).astype(np.uint32))


def shared_bytes(plan: PackedPlan) -> int:
    """Shared memory that holds one lattice, its tables and the queues of its warps."""
    rows = 1 + (2 * (1 + PLANES) << plan.classes.bits)
    return 16 * (plan.model.sites + rows) + SHARED_THREADS // 32 * tail_bytes(plan.classes.bits)


def tail_bytes(class_bits: int) -> int:
    """Size of ``TailEntries`` in tail.cuh."""
    return 4 * TAIL_ROOM * (10 + 4 * class_bits)


class CudaPackedEngine:
    """An ``Engine`` for couplings of one magnitude and a uniform field."""

    packing = packing.Packing.REPLICA

    def __init__(self, model: Ising, replicas: int, dynamics: Dynamics, device: int = 0) -> None:
        import cupy

        self.model, self.replicas, self.dynamics, self.device = model, replicas, dynamics, device
        self._plan = plan = PackedPlan(model, replicas, dynamics, UNBOUNDED)
        self.colours = plan.colours
        self.device_name = names()[device]
        self._round_keys = round_keys(dynamics.seed)
        self._in_shared = shared_bytes(plan) <= shared_memory(device)
        mixed = len(set(plan.batches.slots.tolist())) > 1
        self._fixed = plan.classes.count_bits == 3 and not (mixed and self._in_shared)  # one number of slots a kernel
        samples, blocks, sites, _ = plan.shape
        if max(samples, blocks) > GRID_LIMIT:
            raise InputError(f"{max(samples, blocks)} samples or blocks of replicas exceed a GPU grid: split the run")
        if self._fixed:
            lists: tuple[npt.NDArray[Any], ...] = site_records(plan.batches)
        else:
            lists = plan.batches.order, plan.batches.neighbour, plan.batches.signs
        negative = plan.negative.astype(np.uint8)
        arrays = (*lists, plan.lanes, negative, model.graph.edges)
        needed = sum(a.nbytes for a in arrays) + 8 * int(np.prod(plan.shape))
        require_memory(device, needed, f"the state of {model.name}")
        with cupy.cuda.Device(device):
            *self._lists, self._lanes, self._negative, self._edges = (cupy.asarray(array) for array in arrays)
            lanes, stride = self._lanes, lists[-1][0].size if len(negative) > 1 else 0
            if self._fixed:
                self._model = struct(0, 0, 0, 0, *self._lists, stride // 8)
            else:
                self._model = struct(*self._lists, stride, 0, 0, 0)
            self._batches = cupy.asarray(batch_table(plan.batches))
            self._colour_start = cupy.asarray(plan.batches.colour_start.astype(np.int32))
            self.state = cupy.empty(plan.shape, cupy.uint64)
            if dynamics.start == "up":
                self.state[:] = lanes[None, :, None, :]
            else:
                self._launch("start.cu", f"random_start<{dynamics.rng_rounds}>", sites, self.state, lanes,
                             np.uint32(sites), np.uint32(0), np.uint32(0), self._round_keys)  # fmt: skip
        self._resident = multiprocessors(device) * RESIDENT_THREADS
        self.half_sweep = 0
        self._tables: npt.NDArray[np.void] | None = None
        self._table_arrays: list[Any] = []

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
            self._table_arrays = [cupy.asarray(a) for a in (tables.always, tables.planes, tables.thresholds)]
        self._tables = struct(*self._table_arrays, self._lanes)
        default = self.dynamics.zero_acceptance == ZERO_ACCEPTANCE and not self._plan.has_field
        self._plain = self._fixed and default and not tables.always.any()

    def sweep(self, count: int) -> None:
        """Attempt every spin of every replica ``count`` times."""
        import cupy

        if self._tables is None:
            raise InputError("no temperature is set: call set_beta before sweep")
        with cupy.cuda.Device(self.device):
            if self._in_shared:
                for done in range(0, count, SWEEPS_A_LAUNCH):
                    self._sweep_in_shared(min(SWEEPS_A_LAUNCH, count - done))
            else:
                for _ in range(count):
                    self._sweep_from_global()

    def _instance(self, function: str, slots: int) -> str:
        """The template instance for sites of ``slots`` bonds, or of any number where ``slots`` is 0."""
        plan, plain = self._plan, self._plain and slots > 0
        flags = f"{plan.classes.count_bits}, {str(plan.has_field).lower()}, {str(plain).lower()}"
        return f"{function}<{slots}, {flags}, {self.dynamics.rng_rounds}>"

    def _sweep_in_shared(self, sweeps: int) -> None:
        """Many sweeps in one launch, a thread block for each lattice."""
        plan = self._plan
        samples, blocks, sites, _ = plan.shape
        slots = int(plan.batches.slots.max()) if self._fixed else 0
        function = kernel(self.device, "metropolis_shared.cu", self._instance("sweep_shared", slots))
        size = shared_bytes(plan)
        function.max_dynamic_shared_size_bytes = size
        arguments = (
            self.state, np.uint32(sites), self._batches, self._colour_start, np.int32(self.colours), self._model,
            self._tables, np.uint32(0), np.uint32(0), np.uint64(self.half_sweep), np.uint32(sweeps), self._round_keys,
        )  # fmt: skip
        function((1, blocks, samples), (SHARED_THREADS,), arguments, shared_mem=size)
        self.half_sweep += sweeps * self.colours

    def _sweep_from_global(self) -> None:
        """One sweep, a launch for each batch."""
        batches = self._plan.batches
        samples, blocks, sites, _ = self._plan.shape
        for colour in range(self.colours):
            for batch in range(batches.colour_start[colour], batches.colour_start[colour + 1]):
                size = int(batches.first[batch + 1] - batches.first[batch])
                each = min(SITES_A_THREAD, max(1, size * samples * blocks // self._resident))
                slots = int(batches.slots[batch]) if self._fixed else 0
                function = kernel(self.device, "metropolis_replica.cu", self._instance("sweep_replica", slots))
                function((-(-size // (SWEEP_THREADS * each)), blocks, samples), (SWEEP_THREADS,), (
                    self.state, np.uint32(sites), self._batches, np.uint32(batch), np.uint32(each), self._model,
                    self._tables, np.uint32(0), np.uint32(0), np.uint64(self.half_sweep), self._round_keys,
                ))  # fmt: skip
            self.half_sweep += 1

    def wait(self) -> None:
        """Return when the device is done."""
        import cupy

        cupy.cuda.Device(self.device).synchronize()

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
