"""Unpacked spins on the CPU: one task for each (sample, chunk of replicas)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial

import numpy as np
import numpy.typing as npt

from spinsim import packing, rng
from spinsim.acceptance import check_beta, check_betas
from spinsim.engine.cpu import CpuEngine, CpuParts
from spinsim.engine.dynamics import NO_TEMPERATURE, Dynamics
from spinsim.engine.layouts.unpacked.cpu import WORDS, by_replica, by_word, sum_spins, total_energies
from spinsim.engine.measuring.cpu import CpuReplicaComparison
from spinsim.engine.moves.exchange.cpu import CpuTempering
from spinsim.engine.moves.exchange.ladder import Ladder
from spinsim.engine.moves.metropolis.unpacked.cpu_sweep import sweep_general
from spinsim.engine.moves.metropolis.unpacked.cpu_sweep_terms import sweep_general_terms
from spinsim.engine.moves.metropolis.unpacked.plan import UnpackedPlan
from spinsim.engine.moves.metropolis.unpacked.tempering.cpu import temper_unpacked
from spinsim.engine.moves.resample.moves import Moves
from spinsim.engine.protocols import Counts, Spins
from spinsim.engine.start.at_random import fill_start
from spinsim.errors import InputError
from spinsim.machine.threads import Threads
from spinsim.model.ising import Ising

SMALLEST_CHUNK = 32
LONG_ROUND = 2**17  # updates of a sample from which on its chunks are worth a thread each in every round


def engine(model: Ising, replicas: int, dynamics: Dynamics, threads: int | None = None) -> CpuEngine:
    """The engine of any couplings and fields."""
    plan, pool = model.once(UnpackedPlan), Threads(threads)
    chunks = Chunks(model, replicas, dynamics, pool)
    parts = CpuParts(
        packing=packing.Packing.UNPACKED,
        state=chunks,
        sweeper=UnpackedSweeper(model, plan, dynamics, chunks),
        counts=partial(counts, model, chunks, plan),
        comparison=CpuReplicaComparison(model, replicas),
        threads=pool,
        temperatures=tuple(range(1, plan.terms + 1)),
    )
    return CpuEngine(model, replicas, dynamics, parts)


class Chunks:
    """Spins of all samples in chunks of replicas, each a task; int8 (sites, width) in the order of ``by_word``.

    Args:
        model: What is simulated.
        replicas: Replicas of each sample.
        dynamics: How they start.
        threads: Which work on them.

    Attributes:
        size: Replicas of a chunk, but for the last: a block of 128, less where that would leave threads idle.
        firsts: First replica of each chunk of a sample.
        memory: The chunks of each sample one after the other, int8 (samples, width of all times sites).
        threads: As given.
    """

    def __init__(self, model: Ising, replicas: int, dynamics: Dynamics, threads: Threads) -> None:
        self.model, self.replicas, self.threads = model, replicas, threads
        self.size = packing.LANES
        while self.size > SMALLEST_CHUNK and model.samples * -(-replicas // self.size) < threads.count:
            self.size //= 2
        self.firsts = range(0, replicas, self.size)
        width = self.firsts[-1] + self.width(self.firsts[-1])
        self.memory = np.empty((model.samples, width * model.sites), np.int8)
        self._views = [[self._view(k, first) for first in self.firsts] for k in range(model.samples)]
        for sample, chunks in enumerate(self._views):
            for first, chunk in zip(self.firsts, chunks, strict=True):
                chunk[:] = self._initial(dynamics, sample, first)

    def width(self, first: int) -> int:
        """Replicas of the chunk from ``first`` on, rounded up to whole Philox calls."""
        return -(-min(self.size, self.replicas - first) // WORDS) * WORDS

    def _view(self, sample: int, first: int) -> npt.NDArray[np.int8]:
        sites, width = self.model.sites, self.width(first)
        return self.memory[sample, first * sites : (first + width) * sites].reshape(sites, width)

    def _initial(self, dynamics: Dynamics, sample: int, first: int) -> npt.NDArray[np.int8]:
        """Start spins of a chunk."""
        block, lane = divmod(first, packing.LANES)
        words = np.empty((1, 1, self.model.sites, 2), np.uint64)
        fill_start(words[0, 0], packing.lane_masks(packing.LANES)[0], dynamics, sample, block)
        spins = packing.unpack(words, packing.LANES)[0, :, lane : lane + self.width(first)]
        return np.ascontiguousarray(by_word(spins))

    @property
    def count(self) -> int:
        """Chunks of all samples."""
        return self.model.samples * len(self.firsts)

    @property
    def nbytes(self) -> int:
        """Bytes of the spins."""
        return self.memory.nbytes

    def each(self, task: Callable[[int, int], None]) -> None:
        """Run ``task(sample, first)`` for all chunks."""
        self.threads.run(partial(task, s, first) for s in range(self.model.samples) for first in self.firsts)

    def of(self, sample: int, first: int) -> npt.NDArray[np.int8]:
        """The chunk from replica ``first`` on, (sites, width), which may be changed."""
        return self._views[sample][first // self.size]

    def words_of(self, samples: slice) -> npt.NDArray[np.uint64]:
        """Returns the spins of some samples as replica-packed words."""
        return np.stack([self._words_of(k) for k in range(self.model.samples)[samples]])

    def _words_of(self, sample: int) -> npt.NDArray[np.uint64]:
        spins = np.stack([self.spins(sample, r) for r in range(self.replicas)], axis=1)
        return np.asarray(packing.pack(spins[None])[0])

    def words(self) -> npt.NDArray[np.uint64]:
        """The words of a snapshot: replica-packed."""
        return self.words_of(slice(None))

    def set_words(self, words: npt.NDArray[np.uint64]) -> None:
        """Go back to the words of a snapshot."""
        spins = packing.unpack(words, packing.LANES * words.shape[1])
        for k, chunks in enumerate(self._views):
            for first, chunk in zip(self.firsts, chunks, strict=True):
                chunk[:] = by_word(spins[k, :, first : first + chunk.shape[1]])

    def copy(self, moves: Moves) -> None:
        """Copy configurations."""
        for sample, source, target in zip(*(array.tolist() for array in moves), strict=True):
            give, take = (self._views[sample][replica // self.size] for replica in (source, target))
            take[:, self._column(take, target)] = give[:, self._column(give, source)]

    def _column(self, chunk: npt.NDArray[np.int8], replica: int) -> int:
        """Where a replica stands in its chunk."""
        lane = replica % self.size
        return int(lane % WORDS * (chunk.shape[1] // WORDS) + lane // WORDS)

    def spins(self, sample: int, replica: int) -> npt.NDArray[np.int8]:
        """One configuration, shape (sites,), +1 or -1."""
        return self._read(self._views, sample, replica)

    def kept(self) -> Spins:
        """The present configurations, whatever comes later."""
        return partial(self._read, [[chunk.copy() for chunk in chunks] for chunks in self._views])

    def _read(self, chunks: list[list[npt.NDArray[np.int8]]], sample: int, replica: int) -> npt.NDArray[np.int8]:
        spins = chunks[sample][replica // self.size]
        return spins[:, self._column(spins, replica)].copy()


def counts(model: Ising, chunks: Chunks, plan: UnpackedPlan) -> Counts:
    """Energies, of each term too where there are two, and magnetisations of every replica."""
    found = np.zeros((plan.terms + 2, model.samples, chunks.replicas), np.int64)
    first_sublattice = plan.order[: plan.first]

    def count(sample: int, first: int) -> None:
        spins = chunks.of(sample, first)
        sums = np.zeros((len(found), spins.shape[1]), np.int64)
        couplings, fields = model.once(_in_quanta, sample)
        total_energies(spins, plan.edges, plan.of_first, couplings[plan.bonds], fields, sums[:-2], sums[-2])
        sum_spins(spins, first_sublattice, sums[-1])
        last = min(first + chunks.size, chunks.replicas)
        for target, source in zip(found, sums, strict=True):
            target[sample, first:last] = by_replica(source)[: last - first]

    chunks.each(count)
    *energies, magnetization, of_first = found
    staggered = 2 * of_first - magnetization if first_sublattice.size else of_first
    by_term = np.stack(energies, axis=-1) if plan.terms > 1 else None
    return Counts(np.sum(energies, axis=0), magnetization, staggered, by_term)


def _in_quanta(model: Ising, sample: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """J of each bond and h of each site of a sample, in quanta."""
    return model.integer_couplings(sample), model.integer_fields(sample)


class ChunkSweeper(ABC):
    """Temperatures of a ``CpuSweeper`` of chunks, each of which is swept by itself.

    Args:
        model: What is simulated.
        colours: Half-sweeps in a sweep.
        terms: Inverse temperatures that a replica may have.
        dynamics: How replicas move.
        chunks: The spins.
    """

    def __init__(self, model: Ising, colours: int, terms: int, dynamics: Dynamics, chunks: Chunks) -> None:
        self.colours, self.tasks = colours, chunks.count
        self._model, self._terms, self._chunks = model, terms, chunks
        self._key, self._dynamics = rng.split_seed(dynamics.seed), dynamics
        self._double_beta: npt.NDArray[np.float64] | None = None

    def set_beta(self, beta: npt.ArrayLike) -> None:
        """Take an inverse temperature, one for each replica (replicas,), or of each of two terms (replicas, 2)."""
        check = check_betas if self._terms > 1 and np.ndim(beta) > 1 else check_beta
        self._double_beta = UnpackedPlan.double_beta(self._model, check(beta, self._chunks.replicas)[None])

    def set_ladder(self, ladder: Ladder) -> None:  # noqa: B027  (no sweeper of chunks has tables)
        """Nothing to prepare: there are no tables."""

    def set_places(self, ladder: Ladder, place: npt.NDArray[np.int32]) -> None:
        """Give replicas the temperatures ``place`` (samples, replicas) of a ladder."""
        self._double_beta = UnpackedPlan.double_beta(self._model, ladder.beta[place])

    def sweep(self, count: int, half_sweep: int) -> None:
        """Attempt every spin ``count`` times, after so many half-sweeps."""
        if self._double_beta is None:
            raise InputError(NO_TEMPERATURE)
        self._chunks.each(partial(self._sweep_chunk, self._double_beta, count, half_sweep))

    @abstractmethod
    def _sweep_chunk(
        self, double_beta: npt.NDArray[np.float64], count: int, half_sweep: int, sample: int, first: int
    ) -> None:
        """Sweep the chunk of a sample that begins with replica ``first``.

        ``double_beta`` is as ``UnpackedPlan.double_beta`` makes it.
        """


class UnpackedSweeper(ChunkSweeper):
    """A ``CpuSweeper`` of unpacked spins.

    Args:
        model: What is simulated.
        plan: What devices share.
        dynamics: How replicas move.
        chunks: The spins.
    """

    def __init__(self, model: Ising, plan: UnpackedPlan, dynamics: Dynamics, chunks: Chunks) -> None:
        super().__init__(model, plan.colours, plan.terms, dynamics, chunks)
        self._plan = plan

    def _sweep_chunk(
        self, double_beta: npt.NDArray[np.float64], count: int, half_sweep: int, sample: int, first: int
    ) -> None:
        plan = self._plan
        block, lane = divmod(first, packing.LANES)
        of_terms = double_beta[sample % len(double_beta), :, first : first + self._chunks.width(first)]
        of_chunk = np.ascontiguousarray(by_word(of_terms))
        order, state = (plan.order, plan.colour_start, plan.start), self._chunks.of(sample, first)
        rest = (
            plan.neighbour,
            plan.couplings[sample % len(plan.couplings)],
            plan.fields[sample % len(plan.fields)],
            of_chunk if len(of_chunk) > 1 else of_chunk[0],
            self._dynamics.zero_acceptance,
            self._dynamics.counter_block(sample, block),
            np.uint64(lane // WORDS),
            self._key,
            self._dynamics.rng_rounds,
            np.uint64(half_sweep),
            count,
        )
        if len(of_chunk) > 1:
            sweep_general_terms(state, *order, plan.middle, *rest)
        else:
            sweep_general(state, *order, *rest)

    def temper(self, tempering: CpuTempering, rounds: int, sweeps: int, half_sweep: int) -> bool:
        """Do all rounds of a sample in one call, unless its chunks are worth a thread each in every round."""
        model, plan, ladder, chunks = self._model, self._plan, tempering.ladder, self._chunks
        idle = model.samples < chunks.threads.count and len(chunks.firsts) > 1
        if idle and model.sites * chunks.replicas * sweeps >= LONG_ROUND:
            return False
        double_beta = UnpackedPlan.double_beta(model, ladder.beta[None])[0]

        def task(k: int) -> None:
            couplings, fields = model.once(_in_quanta, k)
            temper_unpacked(
                chunks.memory[k],
                (model.sites, chunks.size),
                (plan.edges, plan.of_first, couplings[plan.bonds], fields),
                (plan.order, plan.colour_start, plan.start, plan.middle, plan.neighbour),
                plan.couplings[k % len(plan.couplings)],
                plan.fields[k % len(plan.fields)],
                double_beta,
                (tempering.steps, ladder.copies),
                tempering.of_sample(k),
                self._dynamics.zero_acceptance,
                self._dynamics.first_sample + k,
                self._key,
                self._dynamics.rng_rounds,
                np.uint64(half_sweep),
                (tempering.round, rounds, sweeps),
            )

        chunks.threads.run(partial(task, k) for k in range(model.samples))
        tempering.round += rounds
        self.set_places(ladder, tempering.exchange.place)
        return True
