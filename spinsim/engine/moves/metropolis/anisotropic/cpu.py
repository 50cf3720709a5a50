"""An energy of two terms on the CPU: one task for each (sample, block of 128 replicas)."""

from __future__ import annotations

from functools import partial

import numpy as np

from spinsim import packing
from spinsim.bits import of_replica_packed
from spinsim.engine.cpu import CpuEngine, CpuParts
from spinsim.engine.dynamics import Dynamics
from spinsim.engine.layouts.replica_packed.adders import BATCH
from spinsim.engine.layouts.replica_packed.cpu_blocks import Blocks
from spinsim.engine.layouts.replica_packed.cpu_counting import count_unsatisfied, count_up
from spinsim.engine.measuring.cpu import CpuReplicaComparison
from spinsim.engine.moves.exchange.cpu import CpuTempering
from spinsim.engine.moves.metropolis.anisotropic.cpu_sweep import sweep_terms, temper_terms
from spinsim.engine.moves.metropolis.anisotropic.plan import TermPlan
from spinsim.engine.moves.metropolis.packed.cpu_sweeper import TableSweeper
from spinsim.engine.moves.metropolis.replica_packed.cpu import SPLIT_SITES
from spinsim.engine.protocols import Counts
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


class TermSweeper(TableSweeper[TermPlan]):
    """A ``CpuSweeper`` of an energy of two terms."""

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
