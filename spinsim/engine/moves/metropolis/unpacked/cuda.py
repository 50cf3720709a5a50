"""Any couplings and fields on a GPU: spins are bits of words, a thread has a site of 32 replicas.

Rounds of sweeps and exchanges are one launch where shared memory holds lattices and ladder.
"""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property, partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from spinsim import packing
from spinsim.acceptance import check_beta, check_betas
from spinsim.cuda.compile import instance
from spinsim.cuda.device import cupy, multiprocessors, shared_memory
from spinsim.cuda.launch import ADDRESS, SIZE, Launch, record, struct_type
from spinsim.engine.cuda import CudaEngine, CudaSweeper, LaunchedRounds
from spinsim.engine.cuda_queue import Queue, check_grid
from spinsim.engine.dynamics import Dynamics
from spinsim.engine.measuring.cuda import NOTHING
from spinsim.engine.measuring.sums import CudaCounting
from spinsim.engine.moves.exchange.cuda import CudaTempering, GivenPlaces, ReplicaPlaces
from spinsim.engine.moves.exchange.ladder import Ladder
from spinsim.engine.moves.metropolis.packed.classes import LATTICE_BARRIER
from spinsim.engine.moves.metropolis.replica_packed.cuda import engine_of
from spinsim.engine.moves.metropolis.replica_packed.cuda_lattices import NOTES
from spinsim.engine.moves.metropolis.unpacked.cuda_words import WORD, WORDS, SlotPlan, UnpackedSpins
from spinsim.engine.moves.metropolis.unpacked.update import UnpackedPlan
from spinsim.model.ising import Ising

LAY_THREADS: Final = 256


class SpinSweeper(CudaSweeper):
    """Temperatures of a ``CudaSweeper`` of single replicas; its launch is made anew when they change."""

    are_laid = True  # False if replicas have other temperatures than those of their present places

    def __init__(self, queue: Queue, model: Ising, replicas: int, width: int, colours: int, terms: int) -> None:
        self.colours, self.tasks = colours, model.samples  # replicas run side by side within each
        self._queue, self._model, self._replicas, self._width, self._terms = queue, model, replicas, width, terms
        self._launch: Launch
        self._lay: Launch | None = None
        self._rows = 0  # of temperatures that change: samples times terms
        self._coldest = np.zeros(terms)  # largest 2 beta times the quantum, of each term

    @abstractmethod
    def _make_launch(self, double_beta: Any, single_beta: Any) -> None: ...

    def set_beta(self, beta: npt.ArrayLike) -> None:
        check = check_betas if self._terms > 1 and np.ndim(beta) > 1 else check_beta
        values = UnpackedPlan.double_beta(self._model, check(beta, self._replicas)[None])
        padded = np.pad(values, [(0, 0), (0, 0), (0, self._width - values.shape[-1])], "edge")
        self._coldest = np.broadcast_to(values[0].max(axis=-1), self._terms)
        single_beta = np.minimum(padded, np.finfo(np.float32).max).astype(np.float32)
        self._make_launch(cupy.asarray(padded), cupy.asarray(single_beta))
        self._lay = None

    def set_ladder(self, places: ReplicaPlaces) -> None:
        ladder, model, width = places.ladder, self._model, self._width
        by_term = np.ascontiguousarray(ladder.beta.reshape(ladder.temperatures, -1).T)
        shape = model.samples, len(by_term), width
        double_beta, single_beta = cupy.empty(shape, cupy.float64), cupy.empty(shape, cupy.float32)
        self._coldest = 2.0 * model.quantum * np.broadcast_to(by_term.max(axis=-1), self._terms)
        self._make_launch(double_beta, single_beta)
        self._rows = shape[0] * shape[1]
        self._lay = Launch(self._queue.device, "tempering/lay_tables.cu", "lay_betas", {
            "double_beta": double_beta, "single_beta": single_beta,
            "ladder": cupy.asarray(2.0 * model.quantum * by_term), "place": places.place,
            "samples": np.uint32(model.samples), "terms": np.uint32(len(by_term)),
            "temperatures": np.uint32(ladder.temperatures), "replicas": np.uint32(self._replicas),
            "width": np.uint32(width),
        })  # fmt: skip

    def lay_tables(self) -> None:
        self.are_laid = True
        if self._lay is not None:
            grid = -(-self._rows * self._width // LAY_THREADS), 1, 1
            self._lay(self._queue.stream, grid, LAY_THREADS)


TOLD: Final = struct_type(all=ADDRESS, replicas=SIZE)
LEFT_SUMS: Final = struct_type(energy=ADDRESS, up=ADDRESS, up_first=ADDRESS)
BYTES_OF_OWN: Final = 8 + 4 + 4  # of a block's replica: temperature twice, spins +1
BYTES_OF_ALL: Final = 8 + 4 + 4 + 1  # of a sample's replica: energy, place, holder, end of the ladder


def shared_bytes(spins: UnpackedSpins, ladder: Ladder) -> int:
    """Shared memory of a thread block that has the ladder of its sample beside what sweeps need."""
    how, padding = spins.grouping, 4
    own, every = WORD * how.words, WORD * how.words * groups(spins)
    ladder_bytes = BYTES_OF_OWN * own + 8 * (ladder.temperatures + 1) + BYTES_OF_ALL * every + padding
    return how.shared_bytes(spins.model.sites, 1) + ladder_bytes


def groups(spins: UnpackedSpins) -> int:
    return -(-spins.replicas // (WORD * spins.grouping.words))


def fits_with_ladder(spins: UnpackedSpins, ladder: Ladder, device: int) -> bool:
    """Return True if thread blocks hold lattices and ladder, and the energy is one, of one term."""
    fits = spins.grouping.in_shared and shared_bytes(spins, ladder) <= shared_memory(device)
    return fits and spins.plan.plan.terms == 1


class UnpackedRounds(LaunchedRounds):
    """Rounds of samples whose replicas one thread block has, or several that are resident together."""

    def __init__(
        self, spins: UnpackedSpins, coldest: np.float32, queue: Queue, tempering: CudaTempering, **given: Any
    ) -> None:
        super().__init__(queue=queue, tempering=tempering, **given)
        self._threads, self._groups, self._samples = spins.grouping.threads, groups(spins), spins.model.samples
        every = WORD * spins.grouping.words * self._groups
        shares = self._samples if self._groups > 1 else 0
        self._told = cupy.zeros((2, shares, 2, every), cupy.int64)
        self._arrived, self._arrivals = cupy.zeros(self._samples, cupy.uint32), 0
        self._launch = self._ready(spins, coldest, every)
        self.together = self._samples  # of one launch; 0 where not even the blocks of one are resident together
        if self._groups > 1:  # else the compiled kernel need not be there yet
            resident = self._launch.blocks_at_once(self._threads) * multiprocessors(queue.device)
            self.together = min(self._samples, resident // self._groups)

    def _ready(self, spins: UnpackedSpins, coldest: np.float32, every: int) -> Launch:
        queue, plan, ladder = self._queue, spins.plan.plan, self._tempering.ladder
        two_beta = cupy.asarray(2.0 * spins.model.quantum * np.ascontiguousarray(ladder.beta.reshape(-1)))
        expression = instance("temper_unpacked", spins.integer, queue.rng_rounds)
        return Launch(queue.device, "tempering/temper_unpacked.cu", expression, {
            **spins.arguments, "samples": np.uint32(self._samples),
            "ladder": two_beta, "coldest": coldest, "exchange": self._tempering.record,
            "told": record(TOLD, all=self._told, replicas=every), "bonds": spins.counted_bonds,
            "first_sites": np.uint32(plan.first), "sums": np.zeros((), LEFT_SUMS), "first_here": np.uint32(0),
            "first_half_sweep": np.uint64(0), "sweeps": np.uint32(0),
            "first_round": np.uint64(0), "rounds": np.uint32(0),
            "barriers": np.zeros((), LATTICE_BARRIER), "notes": np.zeros((), NOTES), "measured": NOTHING,
        }, shared_bytes(spins, ladder))  # fmt: skip

    def _start(self, count: int, half_sweeps: int, **arguments: Any) -> None:
        """Launch the thread blocks of as many samples as are resident together, again and again."""
        for first in range(0, self._samples, self.together):
            grid = self._groups, 1, min(self.together, self._samples - first)
            self._launch(
                self._queue.stream, grid, self._threads, self._groups > 1, first_here=first,
                barriers=(self._arrived.data.ptr, self._arrivals), **arguments,
            )  # fmt: skip
        self._arrivals = (self._arrivals + count * self._groups) % 2**32


UPDATES_A_LAUNCH: Final = 2**35  # so that a launch stays well below a second
SWEEPS_A_LAUNCH: Final = 1000


def engine(model: Ising, replicas: int, dynamics: Dynamics, device: int) -> CudaEngine:
    plan, queue = SlotPlan(model, replicas, dynamics), Queue(device, dynamics)
    check_grid(model.samples, plan.shape[1] * WORDS)
    with queue.here():
        spins = UnpackedSpins(plan, queue)
    temperatures = tuple(range(1, plan.plan.terms + 1))
    sweeper = partial(UnpackedSweeper, queue, spins)
    return engine_of(plan, queue, spins, sweeper, packing.Packing.UNPACKED, temperatures)


class UnpackedSweeper(SpinSweeper):
    """A ``CudaSweeper`` of unpacked spins."""

    def __init__(self, queue: Queue, spins: UnpackedSpins, counting: CudaCounting) -> None:
        plan = spins.plan.plan
        super().__init__(queue, spins.model, spins.replicas, spins.width, plan.colours, plan.terms)
        self._unpacked, self._counting = spins, counting

    def _make_launch(self, double_beta: Any, single_beta: Any) -> None:
        """Make ready for sweeps at temperatures (samples, terms, width); all samples share one row."""
        spins, (rows, terms, width) = self._unpacked, double_beta.shape
        how, coldest = spins.grouping, self._single_coldest
        expression = instance("sweep_unpacked", spins.integer, terms, how.in_shared, self._queue.rng_rounds)
        self._launch = Launch(self._queue.device, "metropolis/unpacked.cu", expression, {
            **spins.arguments, "replicas": np.uint32(spins.replicas), "double_beta": double_beta,
            "single_beta": single_beta, "beta_stride": np.uint64(terms * width if rows > 1 else 0),
            "coldest": coldest[0], "coldest_other": coldest[-1],
            "half_sweep": np.uint64(0), "half_sweeps": np.uint32(0),
        }, how.shared_bytes(spins.model.sites, terms))  # fmt: skip
        self._grid = how.blocks, -(-spins.replicas // (WORD * how.words)), spins.model.samples
        self.rounds = None

    @property
    def _single_coldest(self) -> npt.NDArray[np.float32]:
        return np.minimum(self._coldest, np.finfo(np.float32).max).astype(np.float32)

    def set_ladder(self, places: ReplicaPlaces) -> None:
        super().set_ladder(places)
        spins, queue = self._unpacked, self._queue
        if isinstance(places, GivenPlaces) or not fits_with_ladder(spins, places.ladder, queue.device):
            return
        rounds = UnpackedRounds(
            spins, self._single_coldest[0], queue, places, colours=self.colours, tables=self, counting=self._counting,
            most_sweeps=self._most_sweeps,
        )  # fmt: skip
        if rounds.together:
            self.rounds = rounds

    @cached_property
    def _most_sweeps(self) -> int:
        updates = self._unpacked.model.sites * self._unpacked.width * self._unpacked.model.samples
        return max(1, min(UPDATES_A_LAUNCH // updates, SWEEPS_A_LAUNCH))

    def sweep(self, count: int, half_sweep: int) -> None:
        if not self.are_laid:
            self.lay_tables()
        how = self._unpacked.grouping
        most, left = self._most_sweeps * self.colours if how.in_shared else 1, count * self.colours
        while left:
            several = min(left, most)
            self._launch(self._queue.stream, self._grid, how.threads, half_sweep=half_sweep, half_sweeps=several)
            half_sweep += several
            left -= several
