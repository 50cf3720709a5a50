"""An energy of two terms on the CPU: one task for each (sample, block of 128 replicas)."""

from __future__ import annotations

from functools import partial

import numpy as np
import numpy.typing as npt

from spinsim import packing, rng
from spinsim.bits import of_replica_packed
from spinsim.engine.cpu import CpuEngine, CpuParts
from spinsim.engine.dynamics import NO_TEMPERATURE, Dynamics
from spinsim.engine.measuring.cpu import CpuReplicaComparison
from spinsim.engine.metropolis.anisotropic.cpu_sweep import sweep_terms
from spinsim.engine.metropolis.anisotropic.cpu_tempering import temper_terms
from spinsim.engine.metropolis.anisotropic.plan import TermPlan
from spinsim.engine.metropolis.packed.cpu_blocks import Blocks
from spinsim.engine.metropolis.packed.kinds import Limits
from spinsim.engine.metropolis.packed.lane_tables import Tables, empty_tables
from spinsim.engine.metropolis.packed.steps import BATCH
from spinsim.engine.metropolis.replica_packed.cpu import SPLIT_SITES
from spinsim.engine.metropolis.replica_packed.cpu_counting import count_unsatisfied, count_up
from spinsim.engine.metropolis.replica_packed.tempering.cpu import lay_tables
from spinsim.engine.protocols import Counts
from spinsim.engine.tempering.cpu import CpuTempering
from spinsim.engine.tempering.ladder import Ladder
from spinsim.errors import InputError
from spinsim.machine.threads import Threads
from spinsim.model.ising import Ising
from spinsim.model.terms import MOST_TERMS


def engine(model: Ising, replicas: int, dynamics: Dynamics, threads: int | None = None) -> CpuEngine:
    """The engine of a model of two terms, each of couplings of one magnitude, in a uniform field."""
    plan, pool = TermPlan(model, replicas, dynamics, BATCH), Threads(threads)
    large = model.sites >= SPLIT_SITES
    read_all = partial(of_replica_packed, replicas=replicas)
    blocks = Blocks(plan.shape, plan.lanes, dynamics, pool, large, packing.unpack_replica, read_all)
    parts = CpuParts(
        packing=packing.Packing.ANISOTROPIC,
        state=blocks,
        sweeper=TermSweeper(plan, blocks, pool),
        counts=partial(counts, plan, blocks),
        comparison=CpuReplicaComparison(model, replicas),
        threads=pool,
        temperatures=(MOST_TERMS,),
    )
    return CpuEngine(model, replicas, dynamics, parts)


def counts(plan: TermPlan, blocks: Blocks) -> Counts:
    """Energies, by term too, and magnetisation of every replica."""
    names = plan.observables.sums
    samples, number = plan.shape[:2]
    sums = np.zeros((len(names), samples, number, packing.LANES), np.int64)
    first, others = plan.batches.order[: plan.first], plan.batches.order[plan.first :]

    def count(_: int, sample: int, block: int) -> None:
        state, (up, *unsatisfied, up_first) = blocks.state[sample, block], sums[:, sample, block]
        count_up(state, first, up_first)
        count_up(state, others, up)
        up += up_first
        for edges, negative, totals in zip(plan.edges, plan.negative, unsatisfied, strict=True):
            count_unsatisfied(state, edges, negative[sample % len(negative)], totals)

    blocks.each(count)
    of_replicas = sums.reshape(len(names), samples, -1)[..., : plan.replicas]
    return plan.observables.counts(dict(zip(names, of_replicas, strict=True)))


class TermSweeper:
    """A ``CpuSweeper`` of an energy of two terms.

    Args:
        plan: What devices share.
        blocks: The words.
        threads: Samples are tempered side by side.
    """

    def __init__(self, plan: TermPlan, blocks: Blocks, threads: Threads) -> None:
        self.colours, self.tasks = plan.colours, blocks.count
        self._plan, self._blocks, self._threads = plan, blocks, threads
        self._key, self._rng_rounds = rng.split_seed(plan.dynamics.seed), plan.dynamics.rng_rounds
        self._tables: Tables | None = None
        self._limits: Limits | None = None

    def set_beta(self, beta: npt.ArrayLike) -> None:
        """Take an inverse temperature, one for each replica (replicas,), or of each term (replicas, 2)."""
        self._tables, self._limits = self._plan.tables(beta), None

    def set_ladder(self, ladder: Ladder) -> None:
        """Make room for tables of each sample."""
        self._limits = self._plan.limits(ladder.beta)
        self._tables = empty_tables(self._plan.classes, self._plan.model.samples, self._plan.replicas)

    def set_places(self, ladder: Ladder, place: npt.NDArray[np.int32]) -> None:
        """Give replicas the temperatures ``place`` (samples, replicas) of a ladder."""
        assert self._limits is not None  # noqa: S101  (there is a ladder)
        for k, row in enumerate(place):
            lay_tables(row, (0, self._plan.classes.tables), *self._limits, *self._tables_of(k))

    def _tables_of(self, sample: int) -> tuple[npt.NDArray[np.uint64], ...]:
        """The tables of one sample, or those of all."""
        if self._tables is None:
            raise InputError(NO_TEMPERATURE)
        tables = self._tables.always, self._tables.planes, self._tables.thresholds
        return tuple(array[sample % len(array)] for array in tables)

    def sweep(self, count: int, half_sweep: int) -> None:
        """Attempt every spin ``count`` times, after so many half-sweeps."""
        self._tables_of(0)  # refuses before threads begin
        self._blocks.sweep(self._sweep_part, count, half_sweep, self.colours)

    def _sweep_part(
        self, count: int, half_sweep: int, colours: tuple[int, int], part: int, sample: int, block: int
    ) -> None:
        plan = self._plan
        sweep_terms(
            self._blocks.state[sample, block],
            plan.batches,
            plan.batches.signs[sample % len(plan.batches.signs)],
            *(array[block] for array in self._tables_of(sample)),
            plan.lanes[block],
            plan.dynamics.counter_block(sample, block),
            self._key,
            self._rng_rounds,
            np.uint64(half_sweep),
            count,
            (*colours, part, self._blocks.parts),
            plan.classes.count_bits,
            plan.classes.field != 0,
        )

    def temper(self, tempering: CpuTempering, rounds: int, sweeps: int, half_sweep: int) -> bool:
        """Do all rounds of a sample in one call, where its blocks need no threads that meet."""
        if self._blocks.parts > 1:
            return False
        plan, limits = self._plan, self._limits
        assert limits is not None  # noqa: S101  (there is a ladder)
        ladder = (tempering.steps, tempering.ladder.copies, *limits)
        classes = plan.classes

        def task(k: int) -> None:
            (first, second), (ones, others) = plan.edges, (signs[k % len(signs)] for signs in plan.negative)
            temper_terms(
                self._blocks.state[k],
                (first, ones, second, others, classes.magnitudes, classes.field),
                plan.batches,
                plan.batches.signs[k % len(plan.batches.signs)],
                plan.lanes,
                self._tables_of(k),
                ladder,
                tempering.of_sample(k),
                (classes.count_bits, classes.field != 0, self.colours),
                plan.dynamics.first_sample + k,
                self._key,
                self._rng_rounds,
                np.uint64(half_sweep),
                (tempering.round, rounds, sweeps),
            )

        self._threads.run(partial(task, k) for k in range(plan.model.samples))
        tempering.round += rounds
        return True
