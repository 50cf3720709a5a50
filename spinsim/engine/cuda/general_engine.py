"""Unpacked spins on a GPU: a thread for one or four Philox calls, each of four replicas of a site."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from spinsim import packing
from spinsim.engine.base import Counts, Dynamics
from spinsim.engine.cuda.base import CudaEngine, check_grid
from spinsim.engine.cuda.compile import kernel
from spinsim.engine.cuda.device import require_memory
from spinsim.engine.cuda.instances import instance
from spinsim.engine.cuda.launch import Launch
from spinsim.engine.plans import WORDS, GeneralPlan
from spinsim.errors import InputError
from spinsim.model.ising import Ising

THREADS: Final = 256
MEASURE_ROWS: Final = 512  # blocks over the sites in an energy measurement


class CudaGeneralEngine(CudaEngine):
    """An ``Engine`` for any couplings and fields."""

    packing = packing.Packing.UNPACKED

    def __init__(self, model: Ising, replicas: int, dynamics: Dynamics, device: int = 0) -> None:
        import cupy

        super().__init__(model, replicas, dynamics, device)
        check_grid(model.samples, 1)
        self._plan = plan = GeneralPlan(model)
        self.colours = plan.colours
        self._calls = -(-replicas // WORDS)
        self._calls_a_thread = 1 if self._calls % 4 else 4  # 4 or 16 replicas
        arrays = (plan.order, plan.start, plan.neighbour, plan.couplings, plan.fields)
        state = model.samples * model.sites * self._calls * WORDS
        packed = 16 * model.sites * packing.block_count(replicas)
        require_memory(device, sum(a.nbytes for a in arrays) + state + packed, f"the state of {model.name}")
        with self._here():
            self._order, self._start, self._near, self._couplings, self._fields = (cupy.asarray(a) for a in arrays)
            self._spins = cupy.ones((model.samples, model.sites, self._calls * WORDS), cupy.int8)
            if dynamics.start == "random":
                for sample in range(model.samples):
                    self._spins[sample] = self._random_start(sample)
        self._launch: Launch | None = None
        self._count: Launch | None = None

    @property
    def tasks(self) -> int:
        """Samples; replicas run side by side within each."""
        return self.model.samples

    def _random_start(self, sample: int) -> Any:
        """The packed start of one sample, unpacked on the device."""
        import cupy

        blocks, sites = packing.block_count(self.replicas), self.model.sites
        words = cupy.empty((1, blocks, sites, 2), cupy.uint64)
        lanes = cupy.full((blocks, 2), np.uint64(2**64 - 1))
        start = kernel(self.device, "start.cu", f"random_start<{self.dynamics.rng_rounds}>")
        grid = (-(-sites // THREADS), blocks, 1)
        start(grid, (THREADS,), (words, lanes, np.uint32(sites), np.uint32(sample), np.uint32(0), self._round_keys))
        bits = cupy.unpackbits(words[0].transpose(1, 0, 2).reshape(-1).view(cupy.uint8), bitorder="little")
        return 2 * bits.reshape(sites, -1)[:, : self._calls * WORDS].astype(cupy.int8) - 1

    def set_beta(self, beta: npt.ArrayLike) -> None:
        """Set the inverse temperature: a number or one for each replica (replicas,)."""
        import cupy

        with self._here():
            double_beta = cupy.asarray(GeneralPlan.double_beta(self.model, beta, self.replicas))
            single_beta = double_beta.astype(cupy.float32)
        couplings, fields = self._strides()
        expression = instance("sweep_general", self._integer, self._calls_a_thread, self.dynamics.rng_rounds)
        self._launch = Launch(self.device, "metropolis_general.cu", expression, {
            "spins": self._spins, "batch": np.uint64(0), "size": np.uint32(0), "start": self._start,
            "near": self._near, "couplings": self._couplings, "coupling_stride": couplings, "fields": self._fields,
            "field_stride": fields, "double_beta": double_beta,
            "single_beta": single_beta,
            "zero_acceptance": np.float64(self.dynamics.zero_acceptance), "sites": np.uint32(self.model.sites),
            "calls": np.uint32(self._calls), "sample": np.uint32(0), "call": np.uint32(0),
            "half_sweep": np.uint64(0), "key": self._round_keys,
        })  # fmt: skip

    @property
    def _integer(self) -> str:
        return "int" if self._plan.couplings.dtype == np.int32 else "long long"

    def _strides(self) -> tuple[np.uint64, np.uint64]:
        """Distances between samples' couplings and fields, 0 where all samples share them."""
        plan = self._plan
        return tuple(np.uint64(a.shape[1] if len(a) > 1 else 0) for a in (plan.couplings, plan.fields))  # type: ignore[return-value]

    def sweep(self, count: int) -> None:
        """Attempt every spin of every replica ``count`` times."""
        if self._launch is None:
            raise InputError("no temperature is set: call set_beta before sweep")
        starts, threads = self._plan.colour_start.tolist(), self._calls // self._calls_a_thread
        with self._here():
            for _ in range(count):
                for first, stop in itertools.pairwise(starts):
                    grid = (-(-(stop - first) * threads // THREADS), self.model.samples, 1)
                    self._launch(
                        self.stream, grid, THREADS,
                        batch=self._order.data.ptr + 4 * first, size=stop - first, half_sweep=self.half_sweep,
                    )  # fmt: skip
                    self.half_sweep += 1

    def begin_counts(self) -> Callable[[], Counts]:
        """Ask for the present energies and magnetisations; the function returned waits for them."""
        import cupy

        width = self._calls * WORDS
        couplings, fields = self._strides()
        with self._here():
            sums = cupy.zeros((3, self.model.samples, width), cupy.int64)
            if self._count is None:
                self._count = Launch(self.device, "measure.cu", instance("total_energy", self._integer), {
                    "spins": self._spins, "sites": np.uint32(self.model.sites), "width": np.uint32(width),
                    "start": self._start, "near": self._near, "couplings": self._couplings,
                    "coupling_stride": couplings, "fields": self._fields, "field_stride": fields,
                    "bonds": np.uint64(0), "single": np.uint64(0), "magnetization": np.uint64(0),
                })  # fmt: skip
            grid = (-(-width // (THREADS * WORDS)), min(MEASURE_ROWS, self.model.sites), self.model.samples)
            bonds, single, magnetization = (part.data.ptr for part in sums)
            self._count(self.stream, grid, THREADS, bonds=bonds, single=single, magnetization=magnetization)
        fetched = self._fetch(sums)

        def counts() -> Counts:
            bonds, single, magnetization = fetched()[..., : self.replicas]
            return Counts(bonds // 2 + single, magnetization)

        return counts

    def spins(self, sample: int, replica: int) -> npt.NDArray[np.int8]:
        """One configuration, shape (sites,), +1 or -1."""
        with self._here():
            return np.asarray(self._spins[sample, :, replica].get())
