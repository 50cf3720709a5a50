"""Unpacked spins on the CPU: one task for each (sample, chunk of replicas)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

import numpy as np
import numpy.typing as npt

from spinsim import packing, rng
from spinsim.acceptance import check_beta
from spinsim.engine.cpu import ByReplicas
from spinsim.engine.dynamics import Dynamics
from spinsim.engine.ladder.ladder import Ladder
from spinsim.engine.protocols import Counts, Spins
from spinsim.engine.random_start import fill_start
from spinsim.engine.unpacked.cpu_counting import total_energies
from spinsim.engine.unpacked.cpu_sweep import sweep_general
from spinsim.engine.unpacked.cpu_tempering import temper_unpacked
from spinsim.engine.unpacked.layout import WORDS, by_replica, by_word
from spinsim.engine.unpacked.plan import UnpackedPlan
from spinsim.errors import InputError
from spinsim.model.ising import Ising
from spinsim.threads import Threads

SMALLEST_CHUNK = 32
LONG_ROUND = 2**17  # updates of a sample from which on its chunks are worth a thread each in every round


class GeneralEngine(ByReplicas):
    """An ``Engine`` for any couplings and fields."""

    packing = packing.Packing.UNPACKED

    def __init__(self, model: Ising, replicas: int, dynamics: Dynamics, threads: int | None = None) -> None:
        self.model, self.replicas, self.dynamics = model, replicas, dynamics
        self._plan = UnpackedPlan(model)
        self.colours = self._plan.colours
        self._threads = Threads(threads)
        self._chunk = self._chunk_size()
        self._double_beta: npt.NDArray[np.float64] | None = None
        self.half_sweep = 0
        firsts = range(0, replicas, self._chunk)
        width = firsts[-1] + self._width(firsts[-1])
        self._spins = np.empty((model.samples, width * model.sites), np.int8)
        self._chunks = [[self._part(sample, first) for first in firsts] for sample in range(model.samples)]
        for sample, chunks in enumerate(self._chunks):
            for first, chunk in zip(firsts, chunks, strict=True):
                chunk[:] = self._initial(sample, first)

    def _chunk_size(self) -> int:
        """Replicas a task: a block of 128, less where that would leave threads idle."""
        chunk = packing.LANES
        while chunk > SMALLEST_CHUNK and self.model.samples * -(-self.replicas // chunk) < self._threads.count:
            chunk //= 2
        return chunk

    def _width(self, first: int) -> int:
        """Replicas of the chunk from ``first`` on, rounded up to whole Philox calls."""
        return -(-min(self._chunk, self.replicas - first) // WORDS) * WORDS

    def _part(self, sample: int, first: int) -> npt.NDArray[np.int8]:
        """The chunk from replica ``first`` on, (sites, width); chunks of a sample lie one after the other."""
        sites, width = self.model.sites, self._width(first)
        return self._spins[sample, first * sites : (first + width) * sites].reshape(sites, width)

    def _initial(self, sample: int, first: int) -> npt.NDArray[np.int8]:
        """Start spins of a chunk, in the order of ``sweep_general``."""
        block, lane = divmod(first, packing.LANES)
        words = np.empty((1, 1, self.model.sites, 2), np.uint64)
        counter = rng.counter_block(np.uint64(sample), np.uint64(block))
        d = self.dynamics
        fill_start(words[0, 0], packing.lane_masks(packing.LANES)[0], d.start, d.seed, counter, d.rng_rounds)
        spins = packing.unpack(words, packing.LANES)[0, :, lane : lane + self._width(first)]
        return np.ascontiguousarray(by_word(spins))

    def _each(self, task: Callable[[int, int], None]) -> None:
        chunks = range(0, self.replicas, self._chunk)
        self._threads.run(partial(task, s, first) for s in range(self.model.samples) for first in chunks)

    @property
    def tasks(self) -> int:
        """Chunks of replicas over all samples."""
        return sum(len(chunks) for chunks in self._chunks)

    def set_beta(self, beta: npt.ArrayLike) -> None:
        """Set the inverse temperature: a number or one for each replica (replicas,)."""
        self._double_beta = UnpackedPlan.double_beta(self.model, check_beta(beta, self.replicas)[None])
        self._ladder = None

    def _set_places(self, ladder: Ladder, samples: Iterable[int]) -> None:
        self._double_beta = UnpackedPlan.double_beta(self.model, ladder.beta[self._exchange.place])

    def temper(self, rounds: int, sweeps: int) -> None:
        """``rounds`` times: sweep ``sweeps`` times, then try to exchange neighbouring temperatures."""
        model, plan, ladder = self.model, self._plan, self._on_ladder()
        idle = model.samples < self._threads.count and len(self._chunks[0]) > 1
        if idle and model.sites * self.replicas * sweeps >= LONG_ROUND:
            super().temper(rounds, sweeps)
            return
        double_beta = UnpackedPlan.double_beta(model, ladder.beta[None])[0]
        key = rng.split_seed(self.dynamics.seed)

        def task(k: int) -> None:
            temper_unpacked(
                self._spins[k],
                (model.sites, self._chunk),
                (model.graph.edges, model.integer_couplings(k), model.integer_fields(k)),
                (plan.order, plan.colour_start, plan.start, plan.neighbour),
                plan.couplings[k % len(plan.couplings)],
                plan.fields[k % len(plan.fields)],
                double_beta,
                (ladder.steps(model), ladder.copies),
                tuple(array[k] for array in self._exchange),
                self.dynamics.zero_acceptance,
                k,
                key,
                self.dynamics.rng_rounds,
                np.uint64(self.half_sweep),
                (self._round, rounds, sweeps),
            )

        self._threads.run(partial(task, k) for k in range(model.samples))
        self._round += rounds
        self.half_sweep += rounds * sweeps * self.colours
        self._set_places(ladder, range(model.samples))

    def sweep(self, count: int) -> None:
        """Attempt every spin of every replica ``count`` times."""
        self._each(partial(self._sweep_chunk, count))
        self.half_sweep += count * self.colours

    def _sweep_chunk(self, count: int, sample: int, first: int) -> None:
        if self._double_beta is None:
            raise InputError("no temperature is set: call set_beta before sweep")
        plan = self._plan
        block, lane = divmod(first, packing.LANES)
        double_beta = self._double_beta[sample % len(self._double_beta), first : first + self._width(first)]
        sweep_general(
            self._chunks[sample][first // self._chunk],
            plan.order,
            plan.colour_start,
            plan.start,
            plan.neighbour,
            plan.couplings[sample % len(plan.couplings)],
            plan.fields[sample % len(plan.fields)],
            np.ascontiguousarray(by_word(double_beta)),
            self.dynamics.zero_acceptance,
            rng.counter_block(np.uint64(sample), np.uint64(block)),
            np.uint64(lane // WORDS),
            rng.split_seed(self.dynamics.seed),
            self.dynamics.rng_rounds,
            np.uint64(self.half_sweep),
            count,
        )

    def _words_of_state(self) -> npt.NDArray[np.uint64]:
        return np.stack([self._words_of(k) for k in range(self.model.samples)])

    def _set_words(self, words: npt.NDArray[np.uint64]) -> None:
        spins = packing.unpack(words, packing.LANES * words.shape[1])
        for k, chunks in enumerate(self._chunks):
            for c, chunk in enumerate(chunks):
                first = c * self._chunk
                chunk[:] = by_word(spins[k, :, first : first + chunk.shape[1]])

    def counts(self) -> Counts:
        """Energy and magnetisation of every replica."""
        energy = np.zeros((self.model.samples, self.replicas), np.int64)
        magnetization = np.zeros_like(energy)

        def count(sample: int, first: int) -> None:
            spins = self._chunks[sample][first // self._chunk]
            sums = np.zeros((2, spins.shape[1]), np.int64)
            couplings, fields = self.model.integer_couplings(sample), self.model.integer_fields(sample)
            total_energies(spins, self.model.graph.edges, couplings, fields, sums[0], sums[1])
            last = min(first + self._chunk, self.replicas)
            for target, source in ((energy, sums[0]), (magnetization, sums[1])):
                target[sample, first:last] = by_replica(source)[: last - first]

        self._each(count)
        return Counts(energy, magnetization)

    def _words_of(self, sample: int) -> npt.NDArray[np.uint64]:
        spins = np.stack([self.spins(sample, r) for r in range(self.replicas)], axis=1)
        return np.asarray(packing.pack(spins[None])[0])

    def spins(self, sample: int, replica: int) -> npt.NDArray[np.int8]:
        """One configuration, shape (sites,), +1 or -1."""
        return self._spins_in(self._chunks, sample, replica)

    @property
    def _state_bytes(self) -> int:
        return self._spins.nbytes

    def _keep_spins(self) -> Spins:
        return partial(self._spins_in, [[chunk.copy() for chunk in chunks] for chunks in self._chunks])

    def _spins_in(self, state: list[list[npt.NDArray[np.int8]]], sample: int, replica: int) -> npt.NDArray[np.int8]:
        chunk, lane = divmod(replica, self._chunk)
        spins = state[sample][chunk]
        calls = spins.shape[1] // WORDS
        return spins[:, lane % WORDS * calls + lane // WORDS].copy()
