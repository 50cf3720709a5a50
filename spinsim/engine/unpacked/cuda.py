"""Unpacked spins on a GPU: a thread for one or four Philox calls, each of four replicas of a site."""

from __future__ import annotations

import itertools
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from spinsim import packing
from spinsim.acceptance import check_beta
from spinsim.cuda.compile import instance
from spinsim.cuda.device import multiprocessors, require_memory
from spinsim.cuda.launch import Launch
from spinsim.engine.cuda import CudaEngine, check_grid
from spinsim.engine.dynamics import Dynamics
from spinsim.engine.ladder.cuda import Tempering
from spinsim.engine.measuring.cuda_comparison import Comparison, ReplicaComparison
from spinsim.engine.unpacked.layout import WORDS
from spinsim.engine.unpacked.plan import UnpackedPlan
from spinsim.errors import InputError
from spinsim.model.ising import Ising

THREADS: Final = 256
MEASURE_BLOCKS: Final = 2  # of an energy measurement on one multiprocessor
MEASURE_SITES: Final = 255  # at most, that a thread counts spins of
WORD_REPLICAS: Final = 32  # of a column in shared memory, where copies are compared
MEASURE_COLUMNS: Final = 32  # threads side by side in a block, at most


class CudaGeneralEngine(CudaEngine):
    """An ``Engine`` for any couplings and fields."""

    packing = packing.Packing.UNPACKED

    def __init__(self, model: Ising, replicas: int, dynamics: Dynamics, device: int = 0) -> None:
        import cupy

        super().__init__(model, replicas, dynamics, device)
        check_grid(model.samples, 1)
        self._plan = plan = UnpackedPlan(model)
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
                    self._spins[sample] = self._unpacked_start(sample)
        self._launch: Launch | None = None
        self._sums_shape, self._observables = (2, model.samples, self._calls * WORDS), plan.observables

    @property
    def tasks(self) -> int:
        """Samples; replicas run side by side within each."""
        return self.model.samples

    def _unpacked_start(self, sample: int) -> Any:
        """The packed start of one sample, unpacked on the device."""
        import cupy

        blocks, sites = packing.block_count(self.replicas), self.model.sites
        words = cupy.empty((1, blocks, sites, 2), cupy.uint64)
        lanes = cupy.full((blocks, 2), np.uint64(2**64 - 1))
        self._random_start(words, lanes, sample=sample)
        bits = cupy.unpackbits(words[0].transpose(1, 0, 2).reshape(-1).view(cupy.uint8), bitorder="little")
        return 2 * bits.reshape(sites, -1)[:, : self._calls * WORDS].astype(cupy.int8) - 1

    def set_beta(self, beta: npt.ArrayLike) -> None:
        """Set the inverse temperature: a number or one for each replica (replicas,)."""
        import cupy

        with self._here():
            double_beta = cupy.asarray(UnpackedPlan.double_beta(self.model, check_beta(beta, self.replicas)[None]))
            self._make_launch(double_beta, double_beta.astype(cupy.float32))
        self._tempering = None

    def _make_launch(self, double_beta: Any, single_beta: Any) -> None:
        """Make ready for sweeps at temperatures of all samples or, one row alone, of each."""
        couplings, fields = self._strides()
        expression = instance("sweep_general", self._integer, self._calls_a_thread, self.dynamics.rng_rounds)
        self._launch = Launch(self.device, "metropolis/unpacked.cu", expression, {
            "spins": self._spins, "batch": np.uint64(0), "batch_size": np.uint32(0), "start": self._start,
            "near": self._near, "couplings": self._couplings, "coupling_stride": couplings, "fields": self._fields,
            "field_stride": fields, "double_beta": double_beta, "single_beta": single_beta,
            "beta_stride": np.uint32(self._calls if len(double_beta) > 1 else 0),
            "zero_acceptance": np.float64(self.dynamics.zero_acceptance), "sites": np.uint32(self.model.sites),
            "calls": np.uint32(self._calls), "first_sample": np.uint32(0), "first_call": np.uint32(0),
            "half_sweep": np.uint64(0), "key": self._round_keys,
        })  # fmt: skip

    def _prepare_ladder(self, tempering: Tempering) -> None:
        import cupy

        ladder, samples, width = tempering.ladder, self.model.samples, self._calls * WORDS
        double_beta = cupy.empty((samples, width), cupy.float64)
        single_beta = cupy.empty((samples, width), cupy.float32)
        self._make_launch(double_beta, single_beta)
        self._lay = Launch(self.device, "tempering/lay_tables.cu", "lay_betas", {
            "double_beta": double_beta, "single_beta": single_beta,
            "ladder": cupy.asarray(2.0 * self.model.quantum * ladder.beta), "place": tempering.place,
            "samples": np.uint32(samples), "replicas": np.uint32(self.replicas), "width": np.uint32(width),
        })  # fmt: skip

    def _lay_tables(self) -> None:
        self._lay(self.stream, (-(-self.model.samples * self._calls * WORDS // THREADS), 1, 1), THREADS)

    def _compare(self, tempering: Tempering, full: bool) -> Comparison:
        width, others = self._calls * WORDS, (self.device, self.model, tempering, full)
        shape = {"sites": np.uint32(self.model.sites), "width": np.uint32(width)}
        return ReplicaComparison("differing_spins", shape, -(-width // WORD_REPLICAS), None, *others)

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
                        batch=self._order.data.ptr + 4 * first, batch_size=stop - first, half_sweep=self.half_sweep,
                    )  # fmt: skip
                    self.half_sweep += 1

    @cached_property
    def _measure(self) -> tuple[Launch, tuple[int, int, int], int]:
        """The measuring kernel, its grid and the threads of a block."""
        samples, sites, parts = self.model.samples, self.model.sites, self._calls // self._calls_a_thread
        across = -(-parts // MEASURE_COLUMNS)
        columns = -(-parts // across)
        rows = THREADS // columns
        couplings, fields = self._strides()
        expression = instance("total_energy", self._integer, self._calls_a_thread)
        launch = Launch(self.device, "measure/count_unpacked.cu", expression, {
            "spins": self._spins, "sites": np.uint32(sites), "parts": np.uint32(parts), "columns": np.uint32(columns),
            "start": self._start, "near": self._near, "couplings": self._couplings, "coupling_stride": couplings,
            "fields": self._fields, "field_stride": fields, "energies": np.uint64(0), "down": np.uint64(0),
        })  # fmt: skip
        fill = MEASURE_BLOCKS * multiprocessors(self.device) // (across * samples)
        least, most = -(-sites // (rows * MEASURE_SITES)), -(-sites // rows)
        return launch, (max(least, min(fill, most)), across, samples), columns * rows

    def _add_sums(self, to: tuple[int, ...]) -> None:
        energies, down = to
        launch, grid, threads = self._measure
        launch(self.stream, grid, threads, energies=energies, down=down)

    def _words_of_state(self) -> npt.NDArray[np.uint64]:
        return packing.pack(self._spins.get()[..., : self.replicas])

    def _set_words(self, words: npt.NDArray[np.uint64]) -> None:
        self._spins.set(np.ascontiguousarray(packing.unpack(words, self._calls * WORDS)))

    def _present(self) -> Any:
        return self._spins

    def _spins_in(self, state: Any, sample: int, replica: int) -> npt.NDArray[np.int8]:
        return np.asarray(state[sample, :, replica].get())
