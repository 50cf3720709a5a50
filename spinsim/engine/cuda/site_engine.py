"""Site-packed spins on a GPU: the state has the CPU engine's layout, read as 128-bit words."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim import packing
from spinsim.engine.base import Counts, Dynamics
from spinsim.engine.cuda.base import CudaEngine, check_grid
from spinsim.engine.cuda.device import multiprocessors, require_memory
from spinsim.engine.cuda.instances import instance
from spinsim.engine.cuda.launch import Launch
from spinsim.engine.cuda.records import struct
from spinsim.engine.plans import SitePlan, is_plain
from spinsim.errors import InputError
from spinsim.model.ising import Ising

THREADS: Final = 128  # as in metropolis_site.cu
RESIDENT_BLOCKS: Final = 4  # on one multiprocessor
WARP: Final = 32
HALF_SWEEPS_A_LAUNCH: Final = 2000  # where all blocks are resident
COUNT_THREADS: Final = 256
COUNT_GROUPS: Final = 8  # of a thread of the counting kernel


class Share(NamedTuple):
    """How warps share a lattice.

    Attributes:
        record: ``Share`` of metropolis_site.cu.
        tiles: Tiles of the lattice.
        blocks: Thread blocks that take them.
        resident: Whether the blocks stay for many half-sweeps.
    """

    record: npt.NDArray[np.void]
    tiles: int
    blocks: int
    resident: bool


def divisor(number: int) -> tuple[int, int]:
    """``Divisor`` of metropolis_site.cu."""
    return number, (2**32 // number + 1) % 2**32


def words(*values: int) -> npt.NDArray[np.void]:
    """32-bit integers as a C struct."""
    return np.array(values, [(f"m{i}", np.uint32) for i in range(len(values))])


class CudaSiteEngine(CudaEngine):
    """An ``Engine`` for couplings of one magnitude and a uniform field on lattices whose ``rows_fill_groups``."""

    packing = packing.Packing.SITE
    colours = SitePlan.colours

    def __init__(self, model: Ising, replicas: int, dynamics: Dynamics, device: int = 0) -> None:
        import cupy

        super().__init__(model, replicas, dynamics, device)
        self._plan = plan = SitePlan(model, replicas, dynamics)
        check_grid(model.samples, replicas)
        if 16 * plan.groups >= 2**32:
            raise InputError(f"{model.sites} sites are too many for one GPU lattice: at most 2^36 less one group")
        lattice = plan.lattice
        self._dimension = lattice.dimension
        self._width, self._height = lattice.shape[0] // (2 * packing.LANES), lattice.shape[1]
        self._depth = lattice.shape[2] if lattice.dimension == 3 else 1
        signs = np.empty(0, np.uint64) if plan.signs is None else plan.signs
        require_memory(device, signs.nbytes + 8 * int(np.prod(plan.shape)), f"the state of {model.name}")
        with self._here():
            self._signs = cupy.asarray(signs)
            self.state = cupy.empty(plan.shape, cupy.uint64)
            if dynamics.start == "up":
                self.state[:] = np.uint64(2**64 - 1)
            else:
                lanes = cupy.full((replicas, 2), np.uint64(2**64 - 1))
                groups = 2 * plan.groups
                Launch(device, "start.cu", f"random_start<{dynamics.rng_rounds}>", {
                    "state": self.state, "lanes": lanes, "sites": np.uint32(groups), "sample": np.uint32(0),
                    "block": np.uint32(0), "key": self._round_keys,
                })(self.stream, (-(-groups // THREADS), replicas, model.samples), THREADS)  # fmt: skip
        self._launch: Launch | None = None
        self._count: Launch | None = None

    @property
    def tasks(self) -> int:
        """Replicas over all samples."""
        return self.model.samples * self.replicas

    def _slab(self) -> npt.NDArray[np.void]:
        """``Slab`` of slab.cuh: the whole lattice."""
        return words(self._width, self._height, self._depth, 0, 0)

    def _halo(self) -> npt.NDArray[np.void]:
        """``Halo``: the lattice's own last and first row or plane of each colour, as it is periodic."""
        groups, first = self._plan.groups, self.state.data.ptr
        edge = self._width * (self._height if self._dimension == 3 else 1)
        before = (first + 16 * (groups * (colour + 1) - edge) for colour in range(2))
        after = (first + 16 * groups * colour for colour in range(2))
        return struct(*before, *after, 2 * groups)

    def _negative(self) -> npt.NDArray[np.void]:
        """``Signs``."""
        return struct(self._signs, 4 * self._dimension * self._plan.groups if len(self._signs) > 1 else 0)

    def _share(self) -> Share:
        """Tiles for all warps, and how many blocks take them."""
        columns = WARP
        while self._width % columns:
            columns //= 2
        at_once, half, warps = WARP // columns, self._height // 2, THREADS // WARP
        across, rows = self._width // columns, -(-half * self._depth // at_once)
        blocks = max(1, RESIDENT_BLOCKS * multiprocessors(self.device) // self.tasks)
        resident = 2 * across * rows <= blocks * warps  # a group for each thread
        tiles = across * rows * (2 if resident else 1)
        record = words(columns, tiles, resident, *divisor(across), *divisor(half))
        return Share(record, tiles, min(blocks, -(-tiles // warps)), resident)

    def set_beta(self, beta: npt.ArrayLike) -> None:
        """Set the inverse temperature: a number or one for each replica (replicas,)."""
        import cupy

        plan, d = self._plan, self.dynamics
        tables = plan.tables(beta)
        plain, signed = is_plain(plan, tables), plan.signs is not None
        share = self._share()
        self._grid = share.blocks, self.replicas, self.model.samples
        slots = 2 * self._dimension
        with self._here():
            self._tables = [cupy.asarray(a) for a in (tables.always, tables.planes, tables.thresholds)]
            self._arrived = cupy.zeros(1, cupy.uint32)
            self._next = cupy.zeros(self.tasks, cupy.uint32)
        self._tickets_a_launch = 0 if share.resident else share.tiles + share.blocks * THREADS // WARP
        self._half_sweeps_a_launch = HALF_SWEEPS_A_LAUNCH if share.resident else 1
        self._launch = Launch(
            self.device, "metropolis_site.cu",
            instance("sweep_site", self._dimension, signed, plan.has_field, plain, share.resident, d.rng_rounds), {
                "state": self.state, "slab": self._slab(), "halo": self._halo(), "signs": self._negative(),
                "tables": struct(*self._tables), "share": share.record, "sample": np.uint32(0),
                "replica": np.uint32(0),
                "half_sweep": np.uint64(0), "half_sweeps": np.uint32(1),
                "tickets": struct(self._next, 0), "barrier": struct(self._arrived, 0),
                "key": self._round_keys,
            }, 16 * THREADS * (slots + 1 + signed * slots), share.resident,
        )  # fmt: skip
        self._arrivals = self._drawn = 0

    def sweep(self, count: int) -> None:
        """Attempt every spin of every replica ``count`` times."""
        if self._launch is None:
            raise InputError("no temperature is set: call set_beta before sweep")
        left = count * self.colours
        with self._here():
            while left:
                several = min(left, self._half_sweeps_a_launch)
                self._launch(
                    self.stream, self._grid, THREADS,
                    half_sweep=self.half_sweep, half_sweeps=several, barrier=(self._arrived.data.ptr, self._arrivals),
                    tickets=(self._next.data.ptr, self._drawn),
                )  # fmt: skip
                self.half_sweep += several
                self._drawn = (self._drawn + self._tickets_a_launch) % 2**32
                self._arrivals = (self._arrivals + several * math.prod(self._grid)) % 2**32
                left -= several

    def begin_counts(self) -> Callable[[], Counts]:
        """Ask for the present energies and magnetisations; the function returned waits for them."""
        import cupy

        samples, replicas = self._plan.shape[:2]
        with self._here():
            totals = cupy.zeros((2, samples, replicas), cupy.int64)
            if self._count is None:
                expression = instance("count_site", self._dimension, self._plan.signs is not None)
                self._count = Launch(self.device, "measure_site.cu", expression, {
                    "state": self.state, "slab": self._slab(), "halo": self._halo(), "signs": self._negative(),
                    "up": np.uint64(0), "unsatisfied": np.uint64(0),
                })  # fmt: skip
            grid = -(-self._plan.groups // (COUNT_THREADS * COUNT_GROUPS)), replicas, samples
            up, unsatisfied = totals.data.ptr, totals[1].data.ptr
            self._count(self.stream, grid, COUNT_THREADS, up=up, unsatisfied=unsatisfied)
        fetched = self._fetch(totals)
        return lambda: self._plan.counts(*fetched())

    def spins(self, sample: int, replica: int) -> npt.NDArray[np.int8]:
        """One configuration, shape (sites,), +1 or -1."""
        with self._here():
            state = self.state[sample, replica].get()
        return packing.unpack_sites(state, self._plan.lattice.shape)
