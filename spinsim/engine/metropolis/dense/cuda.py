"""Dense models on a GPU: a thread block has a group of replicas, whose spins stay in shared memory for many sweeps."""

from __future__ import annotations

from functools import cached_property, partial
from typing import Any, Final

import numpy as np

from spinsim import packing
from spinsim.cuda.compile import instance
from spinsim.cuda.device import shared_memory
from spinsim.cuda.launch import Launch
from spinsim.engine.cuda import CudaEngine, CudaParts
from spinsim.engine.cuda_queue import Queue, check_grid
from spinsim.engine.dynamics import NO_TEMPERATURE, Dynamics
from spinsim.engine.measuring.cuda_counting import CudaCounting
from spinsim.engine.measuring.sums import of_energy_and_down
from spinsim.engine.metropolis.dense.matrix import (
    DEEPEST,
    HELD,
    LARGE_GROUPS,
    PARTS_OF_CODES,
    SITES,
    STAGE,
    entry,
    matrix,
)
from spinsim.engine.metropolis.dense.plan import DensePlan
from spinsim.engine.metropolis.unpacked.cuda_spins import CALLS_A_BLOCK, SpinBytes, SpinSweeper, compare
from spinsim.errors import InputError
from spinsim.model.ising import Ising

THREADS: Final = 512
STAGES: Final = 3  # of couplings that a warp has room for
APART: Final = 4  # fields between one replica's and the next one's
GAP: Final = 64  # bytes between replicas' spins
LARGE: Final = 4096  # replicas from which on groups are of 32, as reading couplings takes longest
UPDATES_A_LAUNCH: Final = 2**31  # so that a launch stays well below a second, but for few replicas


def group_bytes(sites: int, size: int, wide: bool, replicas: int) -> int:
    """Shared memory of a group of replicas at most, of couplings of so many bytes and fields of 32 or 64 bits."""
    depth = -(-sites // DEEPEST) * DEEPEST
    fields = (8 if wide else 4) * (SITES + APART) * (1 if size else PARTS_OF_CODES)
    alone = THREADS // 32 * STAGES * STAGE + SITES**2 * entry(size)().itemsize
    return replicas * (depth + GAP + fields + 4 * SITES + 4) + alone


def fits(sites: int, device: int) -> bool:
    """Whether a group of 16 replicas fits, whatever the couplings."""
    return max(group_bytes(sites, 0, False, 16), group_bytes(sites, 8, True, 16)) <= shared_memory(device)


def engine(model: Ising, replicas: int, dynamics: Dynamics, device: int) -> CudaEngine:
    """The engine of dense models."""
    plan, queue = DensePlan(model), Queue(device, dynamics)
    check_grid(model.samples, 1)
    with queue.here():
        spins = DenseSpins(model, replicas, dynamics, plan, queue)
        observables = of_energy_and_down(model)
        shape = len(observables.sums), model.samples, spins.width
        counting = CudaCounting(queue.stream, observables, shape, replicas, spins.add)
    parts = CudaParts(
        packing=packing.Packing.UNPACKED,
        queue=queue,
        state=spins,
        sweeper=DenseSweeper(queue, spins, dynamics.zero_acceptance),
        counting=counting,
        compare=partial(compare, model, spins.width, device),
    )
    return CudaEngine(model, replicas, parts)


class DenseSpins(SpinBytes):
    """The spins of a dense run, and what kernels read of its model.

    Args:
        model: What is simulated.
        replicas: Replicas of each sample.
        dynamics: How they start.
        plan: What devices share.
        queue: Where its work is queued; the present device and stream of CuPy.

    Attributes:
        plan: As given.
        matrix: The couplings.
        group: Replicas of a thread block.
        kind: Parameters of its kernels: bytes of a coupling, type of fields, replicas, how deep spins are in registers.
        shared: Its bytes of shared memory.
        grid: Thread blocks.
        arguments: What kernels take.
        visits: What those that sweep take besides.
    """

    def __init__(self, model: Ising, replicas: int, dynamics: Dynamics, plan: DensePlan, queue: Queue) -> None:
        import cupy

        self.plan, self.matrix = plan, matrix(plan)
        super().__init__(model, replicas, dynamics, queue, self.matrix.stages.nbytes + self.matrix.own.nbytes)
        stages, own, size, wide, unit, depth = self.matrix
        room = shared_memory(queue.device)
        many = size in LARGE_GROUPS and self.width >= LARGE and group_bytes(model.sites, size, wide, 32) <= room
        self.group = 32 if many else 16
        held = depth // DEEPEST if size == 0 and depth <= max(HELD) * DEEPEST else 0
        self.kind = size, "long long" if wide else "int", self.group, held
        self.shared = group_bytes(model.sites, size, wide, self.group)
        self.grid = -(-self.width // self.group), model.samples, 1
        padded = own.shape[1] * SITES
        order, colour = np.zeros((2, padded), np.uint32)
        order[: model.sites], colour[: model.sites] = plan.order, plan.colour
        fields = np.zeros((len(plan.fields), padded), np.int64 if wide else np.int32)
        fields[:, : model.sites] = plan.fields
        self.arguments = {
            "spins": self.present, "sites": np.uint32(model.sites), "width": np.uint32(self.width),
            "depth": np.uint32(depth), "order": cupy.asarray(order), "couplings": cupy.asarray(stages),
            "coupling_stride": _stride(stages, stages.shape[1]), "fields": cupy.asarray(fields),
            "field_stride": _stride(fields, padded), "unit": np.uint32(unit),
        }  # fmt: skip
        self.visits = {
            "colour": cupy.asarray(colour), "colours": np.uint32(plan.colours), "own": cupy.asarray(own),
            "own_stride": _stride(own, own[0].nbytes),
        }  # fmt: skip

    @cached_property
    def _count(self) -> Launch:
        expression = instance("energies_dense", *self.kind)
        sums = {"energies": np.uint64(0), "down": np.uint64(0)}
        return Launch(self._queue.device, "metropolis/dense.cu", expression, self.arguments | sums, self.shared)

    def add(self, to: tuple[int, ...]) -> None:
        """Queue adding energies and spins -1 to sums at addresses; there is no first sublattice."""
        self._count(self._queue.stream, self.grid, THREADS, energies=to[0], down=to[1])


def _stride(rows: Any, length: int) -> np.uint64:
    """From one sample's row to the next one's; 0 where samples share one."""
    return np.uint64(length if len(rows) > 1 else 0)


class DenseSweeper(SpinSweeper):
    """A ``CudaSweeper`` of dense models.

    Args:
        queue: Where sweeps are queued.
        spins: The spins.
        zero_acceptance: Probability of a flip that costs nothing.
    """

    def __init__(self, queue: Queue, spins: DenseSpins, zero_acceptance: float) -> None:
        super().__init__(queue, spins, spins.plan.colours, terms=1)
        self._dense, self._zero_acceptance = spins, zero_acceptance

    def _make_launch(self, double_beta: Any, single_beta: Any) -> None:
        """Make ready for sweeps at temperatures (samples, 1, width); all samples share one row."""
        spins, queue = self._dense, self._queue
        expression = instance("sweep_dense", *spins.kind, queue.rng_rounds)
        self._launch = Launch(queue.device, "metropolis/dense.cu", expression, {
            **spins.arguments, **spins.visits, "double_beta": double_beta,
            "beta_stride": np.uint32(spins.width if len(double_beta) > 1 else 0),
            "zero_acceptance": np.float64(self._zero_acceptance), "first_sample": queue.first_sample,
            "first_call": queue.first_block * CALLS_A_BLOCK, "half_sweep": np.uint64(0), "count": np.uint32(0),
            "key": queue.keys,
        }, spins.shared)  # fmt: skip

    def sweep(self, count: int, half_sweep: int) -> None:
        """Queue ``count`` attempts of every spin, after so many half-sweeps."""
        if self._launch is None:
            raise InputError(NO_TEMPERATURE)
        spins = self._dense
        most = max(1, UPDATES_A_LAUNCH // (spins.model.sites * spins.width * spins.model.samples))
        while count:
            several = min(count, most)
            self._launch(self._queue.stream, spins.grid, THREADS, half_sweep=half_sweep, count=several)
            half_sweep += several * self.colours
            count -= several
