"""Unpacked spins on the CPU: one task for each (sample, chunk of replicas)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from functools import partial

import numpy as np
import numpy.typing as npt

from spinsim import packing, rng
from spinsim.acceptance import check_beta, check_betas
from spinsim.engine.cpu import CpuEngine, CpuParts, CpuSweeper
from spinsim.engine.dynamics import Dynamics
from spinsim.engine.layouts.unpacked import WORDS, Chunks, InChunks, by_word, count_chunks
from spinsim.engine.measuring.cpu import CpuReplicaComparison
from spinsim.engine.moves.exchange.cpu import CpuTempering, Times
from spinsim.engine.moves.exchange.ladder import Ladder
from spinsim.engine.moves.metropolis.unpacked.cpu_sweep import sweep_general, temper_chunks
from spinsim.engine.moves.metropolis.unpacked.update import UnpackedPlan
from spinsim.engine.protocols import Counts
from spinsim.machine.threads import Threads
from spinsim.model.ising import Ising

UPDATES_A_WORD = 8  # that take as long as that of a packed word


def engine(model: Ising, replicas: int, dynamics: Dynamics, threads: int | None = None) -> CpuEngine:
    plan, pool = model.once(UnpackedPlan), Threads(threads)
    chunks = Chunks(model, replicas, dynamics, pool)
    sweeper, count = UnpackedSweeper(model, plan, dynamics, chunks), partial(counts, model, chunks, plan)
    parts = CpuParts(packing.Packing.UNPACKED, chunks, sweeper, count, CpuReplicaComparison(model).compare, pool)
    return CpuEngine(model, replicas, dynamics, parts._replace(temperatures=tuple(range(1, plan.terms + 1))))


def counts(model: Ising, chunks: Chunks, plan: UnpackedPlan, samples: slice | None = None) -> Counts:
    """Energies, of each term too where there are two, and magnetisations of every replica, of all or some samples."""
    mine, sublattice = range(model.samples)[samples or slice(None)], plan.order[: plan.first]
    counted = np.empty((plan.terms + 2, len(mine), chunks.replicas), np.int64)
    constants = plan.edges, plan.of_first, *model.once(_in_quanta, plan), sublattice, chunks.size

    def count(sample: int, stop: int, first: int, last: int) -> None:
        counted_here = counted[:, sample - mine.start : stop - mine.start]
        count_chunks(*constants, chunks.memory[sample:stop], sample, first, last, counted_here)

    if samples is None:
        chunks.each(lambda sample, first: count(sample, sample + 1, first, first + chunks.size))
    else:
        count(mine.start, mine.stop, 0, chunks.replicas)
    *energies, magnetization, of_first = counted
    staggered = 2 * of_first - magnetization if sublattice.size else of_first
    if plan.terms == 1:
        return Counts(energies[0], magnetization, staggered)
    return Counts(np.sum(energies, axis=0), magnetization, staggered, np.stack(energies, axis=-1))


def _in_quanta(model: Ising, plan: UnpackedPlan) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """J of each bond of the plan, (1 or samples, bonds), and h of each site, (1 or samples, sites), in quanta."""
    couplings = np.stack([model.integer_couplings(k)[plan.bonds] for k in range(len(model.couplings))])
    return couplings, np.stack([model.integer_fields(k) for k in range(len(model.fields))])


class ChunkSweeper(CpuSweeper):
    """Temperatures, of so many terms, and rounds of a ``CpuSweeper`` of chunks, each of which is swept by itself."""

    long_round: int  # updates of a sample from which on its chunks are worth a thread each in every round

    def __init__(self, model: Ising, colours: int, terms: int, dynamics: Dynamics, chunks: InChunks) -> None:
        self.colours, self.tasks = colours, chunks.count
        self._model, self._terms, self._in_chunks = model, terms, chunks
        self._key, self._dynamics = rng.split_seed(dynamics.seed), dynamics
        self._double_beta: npt.NDArray[np.float64]

    @abstractmethod
    def _sweep_chunk(
        self, double_beta: npt.NDArray[np.float64], count: int, half_sweep: int, sample: int, first: int
    ) -> None:
        """Sweep the chunk of a sample that begins with replica ``first``.

        ``double_beta`` is as ``UnpackedPlan.double_beta`` makes it.
        """

    def set_beta(self, beta: npt.ArrayLike) -> None:
        check = check_betas if self._terms > 1 and np.ndim(beta) > 1 else check_beta
        self._double_beta = UnpackedPlan.double_beta(self._model, check(beta, self._in_chunks.replicas)[None])

    def set_places(self, ladder: Ladder, place: npt.NDArray[np.int32]) -> None:
        self._double_beta = UnpackedPlan.double_beta(self._model, ladder.beta[place])

    def sweep(self, count: int, half_sweep: int) -> None:
        self._in_chunks.each(partial(self._sweep_chunk, self._double_beta, count, half_sweep), count)

    def words_of_round(self, sweeps: int) -> int | None:
        """None where chunks of a sample are worth a thread each in every round."""
        model, chunks = self._model, self._in_chunks
        idle = model.samples < chunks.threads.count and len(chunks.firsts) > 1
        if idle and model.sites * chunks.replicas * sweeps >= self.long_round:
            return None
        return model.samples * model.sites * chunks.replicas * max(1, sweeps) // UPDATES_A_WORD


class UnpackedSweeper(ChunkSweeper):
    """A ``CpuSweeper`` of unpacked spins."""

    long_round = 2**17

    def __init__(self, model: Ising, plan: UnpackedPlan, dynamics: Dynamics, chunks: Chunks) -> None:
        super().__init__(model, plan.colours, plan.terms, dynamics, chunks)
        self._plan, self._chunks = plan, chunks
        self._rounds: tuple[CpuTempering, Callable[..., None]] | None = None

    def _sweep_chunk(
        self, double_beta: npt.NDArray[np.float64], count: int, half_sweep: int, sample: int, first: int
    ) -> None:
        plan = self._plan
        block, lane = divmod(first, packing.LANES)
        of_terms = double_beta[sample % len(double_beta), :, first : first + self._chunks.width(first)]
        of_chunk = np.ascontiguousarray(by_word(of_terms))
        sweep_general(
            self._chunks.of(sample, first), plan.order, plan.colour_start, plan.start,
            plan.middle if len(of_chunk) > 1 else None, plan.neighbour, plan.couplings[sample % len(plan.couplings)],
            plan.fields[sample % len(plan.fields)], of_chunk if len(of_chunk) > 1 else of_chunk[0],
            self._dynamics.zero_acceptance, self._dynamics.counter_block(sample, block), np.uint64(lane // WORDS),
            self._key, self._dynamics.rng_rounds, np.uint64(half_sweep), count,
        )  # fmt: skip

    def temper(self, tempering: CpuTempering, times: Times, half_sweep: int, samples: slice) -> None:
        model, plan, dynamics = self._model, self._plan, self._dynamics
        if self._rounds is None or self._rounds[0] is not tempering:
            double_beta = UnpackedPlan.double_beta(model, tempering.ladder.beta[None])[0]
            rounds = temper_chunks.given(
                self._chunks.size, (plan.edges, plan.of_first, *model.once(_in_quanta, plan)),
                (plan.order, plan.colour_start, plan.start, plan.neighbour),
                plan.middle if len(double_beta) > 1 else None, plan.couplings, plan.fields, double_beta,
                (tempering.steps, tempering.ladder.copies), dynamics.zero_acceptance, self._key, dynamics.rng_rounds,
            )  # fmt: skip
            self._rounds = tempering, rounds
        self._rounds[1](
            self._chunks.memory[samples], *[array[samples] for array in tempering.exchange], samples.start,
            dynamics.first_sample, np.uint64(half_sweep), *times,
        )  # fmt: skip
