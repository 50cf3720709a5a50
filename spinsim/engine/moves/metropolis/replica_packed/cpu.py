"""Replica-packed spins on the CPU: one task for each (sample, block of 128 replicas)."""

from __future__ import annotations

from functools import cached_property, partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from spinsim import packing
from spinsim.acceptance import check_one_beta
from spinsim.bits import of_replica_packed
from spinsim.engine.cpu import CpuEngine, CpuParts
from spinsim.engine.dynamics import Dynamics
from spinsim.engine.layouts.replica_packed.adders import BATCH
from spinsim.engine.layouts.replica_packed.cpu_blocks import Blocks
from spinsim.engine.layouts.replica_packed.cpu_counting import count_lattices, count_lone
from spinsim.engine.measuring.cpu import CpuReplicaComparison
from spinsim.engine.moves.exchange.cpu import CpuTempering
from spinsim.engine.moves.metropolis.packed.batches import Costs
from spinsim.engine.moves.metropolis.packed.classes import Limits, Tables, bits_up_to, cheap_bits, empty_tables
from spinsim.engine.moves.metropolis.packed.cpu_sweeper import TableSweeper, lay_one_temperature
from spinsim.engine.moves.metropolis.replica_packed.cpu_sweep import sweep_packed
from spinsim.engine.moves.metropolis.replica_packed.cpu_sweep_in_field import sweep_packed_in_field
from spinsim.engine.moves.metropolis.replica_packed.cpu_tempering import temper_samples, temper_samples_in_field
from spinsim.engine.moves.metropolis.replica_packed.degrees.cpu_sweep import sweep_by_degree, temper_by_degree
from spinsim.engine.moves.metropolis.replica_packed.plan import ReplicaPlan
from spinsim.engine.protocols import Counts
from spinsim.machine.threads import Threads
from spinsim.model.ising import Ising

COSTS: Final = Costs(width=8, batch=1600, site=480, bond=40)  # of 128 replicas, in cycles of a processor with AVX-512
ROUND_WORDS: Final = 256  # words that are updated at one temperature in the time of a block's exchange and tables
LADDER_WORDS: Final = 2  # the same of a word with a temperature for each lane
SPLIT_SITES: Final = 2**14  # from here on, starting threads costs less than a half-sweep of one block


def engine(model: Ising, replicas: int, dynamics: Dynamics, threads: int | None = None) -> CpuEngine:
    """The engine of a model that ``suits``."""
    plan, pool = ReplicaPlan(model, replicas, dynamics, BATCH, COSTS), Threads(threads)
    large = model.sites >= SPLIT_SITES
    read_all = partial(of_replica_packed, replicas=replicas)
    blocks = Blocks(plan.shape, plan.lanes, dynamics, pool, large, packing.unpack_replica, read_all)
    parts = CpuParts(
        packing=packing.Packing.REPLICA,
        state=blocks,
        sweeper=ReplicaSweeper(plan, blocks, pool),
        counts=partial(counts, plan, blocks, pool),
        comparison=CpuReplicaComparison(model, replicas),
        threads=pool,
    )
    return CpuEngine(model, replicas, dynamics, parts)


def counts(plan: ReplicaPlan, blocks: Blocks, threads: Threads) -> Counts:
    """Energies and magnetisations of every replica."""
    (samples, number), names = plan.shape[:2], plan.observables.sums
    lattices = blocks.state.reshape(blocks.count, *plan.shape[2:])
    sites, positive = plan.lone
    sums = np.zeros((blocks.count, len(names), packing.LANES), np.int64)

    def count(first: int, stop: int) -> None:
        count_lattices(
            lattices[first:stop], plan.batches.order, plan.first, plan.graph.edges, plan.negative, first, number,
            sums[first:stop],
        )  # fmt: skip
        for k in range(first, stop if sites.size else first):
            count_lone(lattices[k], sites, positive[k // number % len(positive)], sums[k, 1])

    threads.share_out(count, blocks.count, blocks.total)
    by_name = np.ascontiguousarray(sums.swapaxes(0, 1)).reshape(len(names), samples, -1)[..., : plan.replicas]
    return plan.observables.counts(dict(zip(names, by_name, strict=True)))


class ReplicaSweeper(TableSweeper[ReplicaPlan]):
    """A ``CpuSweeper`` of replica-packed words."""

    _cheap_bits = 0

    def set_beta(self, beta: npt.ArrayLike) -> None:
        """Take an inverse temperature or one for each replica (replicas,)."""
        if np.ndim(beta) > 0:
            super().set_beta(beta)
            return
        plan = self._plan  # as annealing does, again and again: a block's tables serve all
        if self._tables is not self._of_all:
            self._tables, self._limits = self._of_all, None
        scaled = check_one_beta(beta) * plan.model.quantum
        last = lay_one_temperature(plan.classes.costs, scaled, plan.dynamics.zero_acceptance, *self._tables_of(0))
        self._cheap_bits = bits_up_to(last)

    @cached_property
    def _of_all(self) -> Tables:
        """Room for the tables of one temperature."""
        return empty_tables(self._plan.classes, 1, 1)

    def _look_at(self, limits: Limits) -> None:
        """Find which classes are cheap."""
        if self._plan.by_degree:
            self._cheap_bits = cheap_bits(limits)

    def _sweep_part(
        self, count: int, half_sweep: int, colours: tuple[int, int], part: int, sample: int, block: int
    ) -> None:
        plan, (always, planes, thresholds) = self._plan, self._tables_of(sample)
        of_block = block % len(always)
        arguments = (
            self._blocks.state[sample, block],
            plan.batches,
            plan.batches.signs[sample % len(plan.negative)],
            always[of_block],
            planes[of_block],
            thresholds[of_block],
            plan.lanes[block],
            plan.dynamics.counter_block(sample, block),
            self._key,
            self._rng_rounds,
            np.uint64(half_sweep),
            count,
            (*colours, part, self._blocks.parts),
        )
        if plan.by_degree:
            sweep_by_degree(*arguments, self._cheap_bits, plan.starts[sample % len(plan.starts)])
        elif plan.has_field:
            sweep_packed_in_field(*arguments, plan.classes.count_bits)
        else:
            sweep_packed(*arguments)

    def temper(self, tempering: CpuTempering, rounds: int, sweeps: int, half_sweep: int) -> bool:
        """Do all rounds of a sample in one call, where its blocks need no threads that meet."""
        if self._blocks.parts > 1:
            return False
        plan, model, limits = self._plan, self._plan.model, self._limits
        assert limits is not None  # noqa: S101  (there is a ladder)
        ladder = (tempering.steps, tempering.ladder.copies, *limits)
        rounds_of: Any
        shape: tuple[Any, ...]
        if plan.by_degree:
            rounds_of, shape = temper_by_degree, (self._cheap_bits, self.colours, plan.used_tables)
            rest: tuple[Any, ...] = *plan.lone, plan.starts
        elif plan.has_field:
            shape = plan.classes.count_bits, self.colours, plan.used_tables
            rounds_of, rest = temper_samples_in_field, (plan.classes.field,)
        else:
            shape = self.colours, plan.used_tables, plan.phantoms
            rounds_of, rest = temper_samples, ()
        assert self._tables is not None  # noqa: S101  (likewise)
        tables = self._tables.always, self._tables.planes, self._tables.thresholds

        def task(first: int, stop: int) -> None:
            mine = slice(first, stop)
            rounds_of(
                self._blocks.state[mine],
                (plan.graph.edges, plan.negative, plan.classes.magnitude, *rest),
                plan.batches, plan.lanes, tuple(array[mine] for array in tables), ladder,
                tuple(array[mine] for array in tempering.exchange), shape, (first, plan.dynamics.first_sample),
                self._key, self._rng_rounds, np.uint64(half_sweep), (tempering.round, rounds, sweeps),
            )  # fmt: skip

        words = LADDER_WORDS * max(1, sweeps) * self._blocks.total + ROUND_WORDS * self._blocks.count
        self._threads.share_out(task, model.samples, rounds * words)
        tempering.round += rounds
        return True
