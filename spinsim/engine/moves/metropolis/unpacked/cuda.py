"""Any couplings and fields on a GPU: spins are bits of words, a thread has a site of 32 replicas."""

from __future__ import annotations

from functools import cached_property, partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from spinsim import packing
from spinsim.cuda.compile import instance
from spinsim.cuda.launch import Launch
from spinsim.engine.cuda import CudaEngine, CudaParts
from spinsim.engine.cuda_queue import Queue, check_grid
from spinsim.engine.dynamics import NO_TEMPERATURE, Dynamics
from spinsim.engine.measuring.cuda_counting import CudaCounting
from spinsim.engine.moves.exchange.cuda import GivenPlaces, Placed
from spinsim.engine.moves.metropolis.replica_packed.cuda import compare, squares
from spinsim.engine.moves.metropolis.unpacked.cuda_spins import SpinSweeper
from spinsim.engine.moves.metropolis.unpacked.cuda_words import WORD, WORDS, SlotPlan, UnpackedSpins
from spinsim.engine.moves.metropolis.unpacked.tempering.cuda import UnpackedRounds, fits_with_ladder
from spinsim.errors import InputError
from spinsim.model.ising import Ising

UPDATES_A_LAUNCH: Final = 2**35  # so that a launch stays well below a second
SWEEPS_A_LAUNCH: Final = 1000


def engine(model: Ising, replicas: int, dynamics: Dynamics, device: int) -> CudaEngine:
    """The engine of any couplings and fields."""
    plan, queue = SlotPlan(model, replicas, dynamics), Queue(device, dynamics)
    check_grid(model.samples, plan.shape[1] * WORDS)
    with queue.here():
        spins = UnpackedSpins(plan, queue)
        shape = len(plan.observables.sums), *plan.shape[:2], packing.LANES
        counting = CudaCounting(queue.stream, plan.observables, shape, replicas, spins.add)
    parts = CudaParts(
        packing=packing.Packing.UNPACKED,
        queue=queue,
        state=spins,
        sweeper=UnpackedSweeper(queue, spins, counting),
        counting=counting,
        compare=partial(compare, plan, device),
        temperatures=tuple(range(1, plan.plan.terms + 1)),
        squares=partial(squares, plan, device),
    )
    return CudaEngine(model, replicas, parts)


class UnpackedSweeper(SpinSweeper):
    """A ``CudaSweeper`` of unpacked spins.

    Args:
        queue: Where sweeps are queued.
        spins: The spins.
        counting: Takes the sums of the state in which many rounds end.
    """

    def __init__(self, queue: Queue, spins: UnpackedSpins, counting: CudaCounting) -> None:
        super().__init__(queue, spins, spins.plan.plan.colours, spins.plan.plan.terms)
        self._unpacked, self._counting = spins, counting

    def _make_launch(self, double_beta: Any, single_beta: Any) -> None:
        """Make ready for sweeps at temperatures (samples, terms, width); all samples share one row."""
        spins, (rows, terms, width) = self._unpacked, double_beta.shape
        how, coldest = spins.grouping, self._single_coldest
        expression = instance("sweep_unpacked", spins.integer, terms, how.held, self._queue.rng_rounds)
        self._launch = Launch(self._queue.device, "metropolis/unpacked.cu", expression, {
            **spins.arguments, "replicas": np.uint32(spins.replicas), "double_beta": double_beta,
            "single_beta": single_beta, "beta_stride": np.uint64(terms * width if rows > 1 else 0),
            "coldest": coldest[0], "coldest_other": coldest[-1],
            "half_sweep": np.uint64(0), "half_sweeps": np.uint32(0),
        }, how.shared_bytes(spins.model.sites, terms))  # fmt: skip
        self._grid = how.blocks, -(-spins.replicas // (WORD * how.words)), spins.model.samples
        self.rounds = self.measured_rounds = None

    @property
    def _single_coldest(self) -> npt.NDArray[np.float32]:
        """The largest 2 beta in quanta of each term."""
        return np.minimum(self._coldest, np.finfo(np.float32).max).astype(np.float32)

    def set_ladder(self, placed: Placed) -> None:
        """Make room for temperatures of each sample's replicas."""
        super().set_ladder(placed)
        spins, queue = self._unpacked, self._queue
        if isinstance(placed, GivenPlaces) or not fits_with_ladder(spins, placed.ladder, queue.device):
            return
        rounds = UnpackedRounds(
            spins, self._single_coldest[0], queue, placed, colours=self.colours, tables=self, counting=self._counting,
            most_sweeps=self._most_sweeps,
        )  # fmt: skip
        if rounds.together:
            self.rounds = self.measured_rounds = rounds

    @cached_property
    def _most_sweeps(self) -> int:
        """Sweeps of one launch."""
        updates = self._unpacked.model.sites * self._unpacked.width * self._unpacked.model.samples
        return max(1, min(UPDATES_A_LAUNCH // updates, SWEEPS_A_LAUNCH))

    def sweep(self, count: int, half_sweep: int) -> None:
        """Queue ``count`` attempts of every spin, after so many half-sweeps."""
        if self._launch is None:
            raise InputError(NO_TEMPERATURE)
        if not self.are_laid:
            self.lay_tables()
        how = self._unpacked.grouping
        most, left = self._most_sweeps * self.colours if how.held else 1, count * self.colours
        while left:
            several = min(left, most)
            self._launch(self._queue.stream, self._grid, how.threads, half_sweep=half_sweep, half_sweeps=several)
            half_sweep += several
            left -= several
