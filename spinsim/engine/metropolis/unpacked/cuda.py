"""Unpacked spins on a GPU: a thread for one or four Philox calls, each of four replicas of a site."""

from __future__ import annotations

import itertools
from functools import cached_property, partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from spinsim import packing
from spinsim.acceptance import check_beta, check_betas
from spinsim.cuda.compile import instance
from spinsim.cuda.device import multiprocessors, require_memory
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
from spinsim.engine.metropolis.unpacked.plan import UnpackedPlan
from spinsim.engine.metropolis.unpacked.replica_order import WORDS
from spinsim.engine.tempering.cuda import CudaTempering, Placed
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


class UnpackedSpins:
    """The spins of an unpacked run, int8 (samples, sites, width), and what kernels read of its model.

    Args:
        model: What is simulated.
        replicas: Replicas of each sample.
        dynamics: How they start.
        plan: What devices share.
        queue: Where its work is queued; the present device and stream of CuPy.

    Attributes:
        model: As given.
        replicas: As given.
        plan: As given.
        calls: Philox calls of a site.
        calls_a_thread: Of them, those of one thread: 4 or 16 replicas.
        width: Replicas rounded up to whole calls.
        present: The spins.
        order: Sites, colour by colour.
        middle: Where neighbours by bonds of term 1 begin.
    """

    replica_axis = 2

    def __init__(self, model: Ising, replicas: int, dynamics: Dynamics, plan: UnpackedPlan, queue: Queue) -> None:
        import cupy

        self.model, self.replicas, self.plan, self._queue = model, replicas, plan, queue
        self.calls = -(-replicas // WORDS)
        self.calls_a_thread, self.width = 1 if self.calls % 4 else 4, self.calls * WORDS
        arrays = (plan.order, plan.start, plan.middle, plan.neighbour, plan.couplings, plan.fields)
        state, packed = model.samples * model.sites * self.width, 16 * model.sites * packing.block_count(replicas)
        require_memory(queue.device, sum(a.nbytes for a in arrays) + state + packed, f"the state of {model.name}")
        on_device = (cupy.asarray(array) for array in arrays)
        self.order, self._start, self.middle, self._near, self._couplings, self._fields = on_device
        self.present = cupy.ones((model.samples, model.sites, self.width), cupy.int8)
        if dynamics.start == "random":
            for sample in range(model.samples):
                self.present[sample] = self._unpacked_start(sample)

    def _unpacked_start(self, sample: int) -> Any:
        """The packed start of one sample, unpacked on the device."""
        import cupy

        blocks, sites = packing.block_count(self.replicas), self.model.sites
        words = cupy.empty((1, blocks, sites, 2), cupy.uint64)
        lanes = cupy.full((blocks, 2), np.uint64(2**64 - 1))
        self._queue.start_at_random(words, lanes, sample=sample)
        bits = cupy.unpackbits(words[0].transpose(1, 0, 2).reshape(-1).view(cupy.uint8), bitorder="little")
        return 2 * bits.reshape(sites, -1)[:, : self.width].astype(cupy.int8) - 1

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

    def words(self) -> npt.NDArray[np.uint64]:
        """The words of a snapshot: replica-packed."""
        return packing.pack(self.present.get()[..., : self.replicas])

    def set_words(self, words: npt.NDArray[np.uint64]) -> None:
        """Go back to the words of a snapshot."""
        self.present.set(np.ascontiguousarray(packing.unpack(words, self.width)))

    def read(self, state: Any, sample: int, replica: int) -> npt.NDArray[np.int8]:
        """One configuration of a state."""
        return np.asarray(state[sample, :, replica].get())


class UnpackedSweeper:
    """A ``CudaSweeper`` of unpacked spins.

    Args:
        queue: Where sweeps are queued.
        spins: The spins.
        zero_acceptance: Probability of a flip that costs nothing.
    """

    rounds = measured_rounds = None  # there is no kernel of many rounds

    def __init__(self, queue: Queue, spins: UnpackedSpins, zero_acceptance: float) -> None:
        self.colours, self.tasks = spins.plan.colours, spins.model.samples  # replicas run side by side within each
        self._queue, self._spins, self._zero_acceptance = queue, spins, zero_acceptance
        self._launch: Launch | None = None
        self._lay: Launch | None = None
        self._rows = 0  # of temperatures that change: samples times terms

    def _make_launch(self, double_beta: Any, single_beta: Any) -> None:
        """Make ready for sweeps at temperatures (samples, terms, width); all samples share one row."""
        spins, (rows, terms, _) = self._spins, double_beta.shape
        expression = instance("sweep_general", spins.integer, spins.calls_a_thread, self._queue.rng_rounds, terms)
        self._launch = Launch(self._queue.device, "metropolis/unpacked.cu", expression, {
            **spins.arguments, "middle": spins.middle, "batch": np.uint64(0), "batch_size": np.uint32(0),
            "double_beta": double_beta, "single_beta": single_beta,
            "beta_stride": np.uint32(terms * spins.calls if rows > 1 else 0),
            "zero_acceptance": np.float64(self._zero_acceptance), "calls": np.uint32(spins.calls),
            "first_sample": self._queue.first_sample, "first_call": self._queue.first_block * CALLS_A_BLOCK,
            "half_sweep": np.uint64(0), "key": self._queue.keys,
        })  # fmt: skip

    def set_beta(self, beta: npt.ArrayLike) -> None:
        """Take an inverse temperature, one for each replica (replicas,), or of each of two terms (replicas, 2)."""
        import cupy

        spins = self._spins
        check = check_betas if spins.plan.terms > 1 and np.ndim(beta) > 1 else check_beta
        double_beta = cupy.asarray(UnpackedPlan.double_beta(spins.model, check(beta, spins.replicas)[None]))
        self._make_launch(double_beta, double_beta.astype(cupy.float32))
        self._lay = None

    def set_ladder(self, placed: Placed) -> None:
        """Make room for temperatures of each sample's replicas."""
        import cupy

        ladder, model, width = placed.ladder, self._spins.model, self._spins.width
        by_term = np.ascontiguousarray(ladder.beta.reshape(ladder.temperatures, -1).T)
        shape = model.samples, len(by_term), width
        double_beta, single_beta = cupy.empty(shape, cupy.float64), cupy.empty(shape, cupy.float32)
        self._make_launch(double_beta, single_beta)
        self._rows = shape[0] * shape[1]
        self._lay = Launch(self._queue.device, "tempering/lay_tables.cu", "lay_betas", {
            "double_beta": double_beta, "single_beta": single_beta,
            "ladder": cupy.asarray(2.0 * model.quantum * by_term), "place": placed.place,
            "samples": np.uint32(model.samples), "terms": np.uint32(len(by_term)),
            "temperatures": np.uint32(ladder.temperatures), "replicas": np.uint32(self._spins.replicas),
            "width": np.uint32(width),
        })  # fmt: skip

    def lay_tables(self) -> None:
        """Queue what gives replicas the temperatures of their places."""
        if self._lay is not None:
            grid = -(-self._rows * self._spins.width // THREADS), 1, 1
            self._lay(self._queue.stream, grid, THREADS)

    def sweep(self, count: int, half_sweep: int) -> None:
        """Queue ``count`` attempts of every spin, after so many half-sweeps."""
        if self._launch is None:
            raise InputError(NO_TEMPERATURE)
        spins = self._spins
        starts, threads = spins.plan.colour_start.tolist(), spins.calls // spins.calls_a_thread
        for _ in range(count):
            for first, stop in itertools.pairwise(starts):
                grid = (-(-(stop - first) * threads // THREADS), spins.model.samples, 1)
                self._launch(
                    self._queue.stream, grid, THREADS,
                    batch=spins.order.data.ptr + 4 * first, batch_size=stop - first, half_sweep=half_sweep,
                )  # fmt: skip
                half_sweep += 1
