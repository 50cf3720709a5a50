"""Unpacked spins on a GPU: a thread for one or four Philox calls, each of four replicas of a site."""

from __future__ import annotations

import itertools
from functools import cached_property, partial
from typing import Any, Final

import numpy as np

from spinsim import packing
from spinsim.cuda.compile import instance
from spinsim.cuda.device import multiprocessors
from spinsim.cuda.launch import Launch
from spinsim.engine.cuda import CudaEngine, CudaParts
from spinsim.engine.cuda_queue import Queue, check_grid
from spinsim.engine.dynamics import NO_TEMPERATURE, Dynamics
from spinsim.engine.measuring.correlations import Wanted
from spinsim.engine.measuring.cuda_comparison import Compared, Comparison
from spinsim.engine.measuring.cuda_counting import CudaCounting
from spinsim.engine.measuring.in_time.cuda_local import CudaSquares
from spinsim.engine.measuring.in_time.cuda_products import Layout, Products
from spinsim.engine.measuring.lists.cuda import compare_replicas
from spinsim.engine.metropolis.unpacked.cuda_spins import SpinBytes, SpinSweeper
from spinsim.engine.metropolis.unpacked.plan import UnpackedPlan
from spinsim.engine.metropolis.unpacked.replica_order import WORDS
from spinsim.engine.tempering.cuda import CudaTempering
from spinsim.engine.tempering.ladder import Ladder
from spinsim.errors import InputError
from spinsim.model.ising import Ising

THREADS: Final = 256
MEASURE_BLOCKS: Final = 2  # of an energy measurement on one multiprocessor
MEASURE_SITES: Final = 255  # at most, that a thread counts spins of
WORD_REPLICAS: Final = 32  # of a column in shared memory, where copies are compared
CALLS_A_BLOCK: Final = np.uint32(packing.LANES // WORDS)  # of 128 replicas
MEASURE_COLUMNS: Final = 32  # threads side by side in a block, at most


def engine(model: Ising, replicas: int, dynamics: Dynamics, device: int) -> CudaEngine:
    """The engine of any couplings and fields."""
    plan, queue = UnpackedPlan(model), Queue(device, dynamics)
    check_grid(model.samples, 1)
    with queue.here():
        spins = UnpackedSpins(model, replicas, dynamics, plan, queue)
        shape = len(plan.observables.sums), model.samples, spins.width
        counting = CudaCounting(queue.stream, plan.observables, shape, replicas, spins.add)
    parts = CudaParts(
        packing=packing.Packing.UNPACKED,
        queue=queue,
        state=spins,
        sweeper=UnpackedSweeper(queue, spins, dynamics.zero_acceptance),
        counting=counting,
        compare=partial(compare, model, spins.width, device),
        temperatures=tuple(range(1, plan.terms + 1)),
        squares=partial(squares, model, spins.width, device),
    )
    return CudaEngine(model, replicas, parts)


def compare(model: Ising, width: int, device: int, tempering: CudaTempering, wanted: Wanted) -> Comparison:
    """What compares copies of a ladder, as fully as is wanted."""
    shape = {"sites": np.uint32(model.sites), "width": np.uint32(width)}
    columns, kernel, products = -(-width // WORD_REPLICAS), "differing_spins", None
    what = Compared(device, model, tempering, wanted)
    if wanted.even:
        layout = Layout("products_of_spins", kernel, (model.samples, 1), width // 4, shape, columns, None, packed=False)
        products = Products(what, layout)
    return compare_replicas(what, kernel, shape, columns, None, products=products)


def squares(model: Ising, width: int, device: int, ladder: Ladder) -> CudaSquares:
    """Returns what adds up squares along world lines."""
    words = {"words": np.uint32(width // WORDS)}
    return CudaSquares(device, model, ladder, None, "squares_of_spins", packing.block_count(width), words)


class UnpackedSpins(SpinBytes):
    """The spins of an unpacked run, and what kernels read of its model.

    Args:
        model: What is simulated.
        replicas: Replicas of each sample.
        dynamics: How they start.
        plan: What devices share.
        queue: Where its work is queued; the present device and stream of CuPy.

    Attributes:
        plan: As given.
        calls_a_thread: Philox calls of one thread: 4 or 16 replicas.
        order: Sites, colour by colour.
        middle: Where neighbours by bonds of term 1 begin.
    """

    def __init__(self, model: Ising, replicas: int, dynamics: Dynamics, plan: UnpackedPlan, queue: Queue) -> None:
        import cupy

        self.plan = plan
        arrays = (plan.order, plan.start, plan.middle, plan.neighbour, plan.couplings, plan.fields)
        super().__init__(model, replicas, dynamics, queue, sum(a.nbytes for a in arrays))
        self.calls_a_thread = 1 if self.calls % 4 else 4
        on_device = (cupy.asarray(array) for array in arrays)
        self.order, self._start, self.middle, self._near, self._couplings, self._fields = on_device

    @property
    def integer(self) -> str:
        """The type of couplings and fields in kernels."""
        return "int" if self.plan.couplings.dtype == np.int32 else "long long"

    @property
    def arguments(self) -> dict[str, Any]:
        """What kernels take: spins, neighbours, couplings and fields, with stride 0 where samples share them."""
        strides = [np.uint64(a.shape[1] if len(a) > 1 else 0) for a in (self.plan.couplings, self.plan.fields)]
        return {
            "spins": self.present, "sites": np.uint32(self.model.sites), "start": self._start, "near": self._near,
            "couplings": self._couplings, "coupling_stride": strides[0], "fields": self._fields,
            "field_stride": strides[1],
        }  # fmt: skip

    @cached_property
    def _count(self) -> tuple[tuple[list[Launch], Launch], tuple[int, int, int], int]:
        """The kernels that count bonds of each term and the first sublattice, their grid and the threads of a block."""
        samples, sites, parts = self.model.samples, self.model.sites, self.calls // self.calls_a_thread
        across = -(-parts // MEASURE_COLUMNS)
        columns = -(-parts // across)
        rows = THREADS // columns
        file, width = "measuring/count_unpacked.cu", {"parts": np.uint32(parts), "columns": np.uint32(columns)}
        expression = instance("total_energy", self.integer, self.calls_a_thread)
        arguments = {**self.arguments, **width, "energies": np.uint64(0), "down": np.uint64(0)}
        bonds: tuple[dict[str, Any], ...] = ({"stop": self._start[1:]},)
        if self.plan.terms > 1:
            others = {"start": self.middle, "stop": self._start[1:], "fields": np.uint64(0)}  # fields belong to term 0
            bonds = {"stop": self.middle}, others
        of_terms = [Launch(self._queue.device, file, expression, arguments | given) for given in bonds]
        first = Launch(self._queue.device, file, instance("count_down", self.calls_a_thread), {
            "spins": self.present, "sites": np.uint32(sites), **width, "chosen": self.order,
            "count": np.uint32(self.plan.first), "down_first": np.uint64(0),
        })  # fmt: skip
        fill = MEASURE_BLOCKS * multiprocessors(self._queue.device) // (across * samples)
        least, most = -(-sites // (rows * MEASURE_SITES)), -(-sites // rows)
        return (of_terms, first), (max(least, min(fill, most)), across, samples), columns * rows

    def add(self, to: tuple[int, ...]) -> None:
        """Queue adding to the sums of ``plan.observables``; the last, of the first sublattice, may be left out."""
        names = self.plan.observables.sums[:-1]
        down, of_first = to[names.index("down")], to[len(names) :]
        (of_terms, first), grid, threads = self._count
        energies = (address for address, name in zip(to, names, strict=False) if name != "down")
        for launch, energy in zip(of_terms, energies, strict=True):
            launch(self._queue.stream, grid, threads, energies=energy, down=down)
            down = 0  # spins are counted once
        if of_first and self.plan.first:
            first(self._queue.stream, grid, threads, down_first=of_first[0])


class UnpackedSweeper(SpinSweeper):
    """A ``CudaSweeper`` of unpacked spins.

    Args:
        queue: Where sweeps are queued.
        spins: The spins.
        zero_acceptance: Probability of a flip that costs nothing.
    """

    def __init__(self, queue: Queue, spins: UnpackedSpins, zero_acceptance: float) -> None:
        super().__init__(queue, spins, spins.plan.colours, spins.plan.terms)
        self._unpacked, self._zero_acceptance = spins, zero_acceptance

    def _make_launch(self, double_beta: Any, single_beta: Any) -> None:
        """Make ready for sweeps at temperatures (samples, terms, width); all samples share one row."""
        spins, (rows, terms, _) = self._unpacked, double_beta.shape
        expression = instance("sweep_general", spins.integer, spins.calls_a_thread, self._queue.rng_rounds, terms)
        self._launch = Launch(self._queue.device, "metropolis/unpacked.cu", expression, {
            **spins.arguments, "middle": spins.middle, "batch": np.uint64(0), "batch_size": np.uint32(0),
            "double_beta": double_beta, "single_beta": single_beta,
            "beta_stride": np.uint32(terms * spins.calls if rows > 1 else 0),
            "zero_acceptance": np.float64(self._zero_acceptance), "calls": np.uint32(spins.calls),
            "first_sample": self._queue.first_sample, "first_call": self._queue.first_block * CALLS_A_BLOCK,
            "half_sweep": np.uint64(0), "key": self._queue.keys,
        })  # fmt: skip

    def sweep(self, count: int, half_sweep: int) -> None:
        """Queue ``count`` attempts of every spin, after so many half-sweeps."""
        if self._launch is None:
            raise InputError(NO_TEMPERATURE)
        spins = self._unpacked
        starts, threads = spins.plan.colour_start.tolist(), spins.calls // spins.calls_a_thread
        for _ in range(count):
            for first, stop in itertools.pairwise(starts):
                grid = (-(-(stop - first) * threads // THREADS), spins.model.samples, 1)
                self._launch(
                    self._queue.stream, grid, THREADS,
                    batch=spins.order.data.ptr + 4 * first, batch_size=stop - first, half_sweep=half_sweep,
                )  # fmt: skip
                half_sweep += 1
