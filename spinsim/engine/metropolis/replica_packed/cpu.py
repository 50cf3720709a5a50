"""Replica-packed spins on the CPU: one task for each (sample, block of 128 replicas)."""

from __future__ import annotations

from functools import partial
from typing import Final

import numpy as np
import numpy.typing as npt

from spinsim import packing, rng
from spinsim.bits import of_replica_packed
from spinsim.engine.cpu import CpuEngine, CpuParts
from spinsim.engine.dynamics import NO_TEMPERATURE, Dynamics
from spinsim.engine.measuring.cpu import CpuReplicaComparison
from spinsim.engine.metropolis.packed.cpu_blocks import Blocks
from spinsim.engine.metropolis.packed.kinds import Limits
from spinsim.engine.metropolis.packed.lane_tables import Tables, empty_tables
from spinsim.engine.metropolis.packed.steps import BATCH
from spinsim.engine.metropolis.replica_packed.cpu_counting import count_lattices
from spinsim.engine.metropolis.replica_packed.cpu_sweep import sweep_packed
from spinsim.engine.metropolis.replica_packed.cpu_sweep_wide import sweep_packed_wide
from spinsim.engine.metropolis.replica_packed.plan import ReplicaPlan
from spinsim.engine.metropolis.replica_packed.tempering.cpu import lay_tables, temper_samples
from spinsim.engine.protocols import Counts
from spinsim.engine.tempering.cpu import CpuTempering
from spinsim.engine.tempering.ladder import Ladder
from spinsim.errors import InputError
from spinsim.machine.threads import Threads
from spinsim.model.ising import Ising

SPLIT_SITES: Final = 2**14  # from here on, starting threads costs less than a half-sweep of one block


def engine(model: Ising, replicas: int, dynamics: Dynamics, threads: int | None = None) -> CpuEngine:
    """The engine of a model of couplings of one magnitude and a uniform field."""
    plan, pool = ReplicaPlan(model, replicas, dynamics, BATCH), Threads(threads)
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
    sums = np.zeros((blocks.count, len(names), packing.LANES), np.int64)

    def count(first: int, stop: int) -> None:
        count_lattices(
            lattices[first:stop], plan.batches.order, plan.first, plan.model.graph.edges, plan.negative, first, number,
            sums[first:stop],
        )  # fmt: skip

    threads.share_out(count, blocks.count)
    by_name = np.ascontiguousarray(sums.swapaxes(0, 1)).reshape(len(names), samples, -1)[..., : plan.replicas]
    return plan.observables.counts(dict(zip(names, by_name, strict=True)))


class ReplicaSweeper:
    """A ``CpuSweeper`` of replica-packed words.

    Args:
        plan: What devices share.
        blocks: The words.
        threads: Samples are tempered side by side.
    """

    def __init__(self, plan: ReplicaPlan, blocks: Blocks, threads: Threads) -> None:
        self.colours, self.tasks = plan.colours, blocks.count
        self._plan, self._blocks, self._threads = plan, blocks, threads
        self._key, self._rng_rounds = rng.split_seed(plan.dynamics.seed), plan.dynamics.rng_rounds
        self._tables: Tables | None = None
        self._limits: Limits | None = None

    def set_beta(self, beta: npt.ArrayLike) -> None:
        """Take an inverse temperature or one for each replica (replicas,)."""
        self._tables, self._limits = self._plan.tables(beta), None

    def set_ladder(self, ladder: Ladder) -> None:
        """Make room for tables of each sample."""
        self._limits = self._plan.limits(ladder.beta)
        self._tables = empty_tables(self._plan.classes, self._plan.model.samples, self._plan.replicas)

    def set_places(self, ladder: Ladder, place: npt.NDArray[np.int32]) -> None:
        """Give replicas the temperatures ``place`` (samples, replicas) of a ladder."""
        assert self._limits is not None  # noqa: S101  (there is a ladder)
        for k, row in enumerate(place):
            lay_tables(row, self._plan.parities, *self._limits, *self._tables_of(k))

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
        arguments = (
            self._blocks.state[sample, block],
            plan.batches,
            plan.batches.signs[sample % len(plan.negative)],
            *(array[block] for array in self._tables_of(sample)),
            plan.lanes[block],
            plan.dynamics.counter_block(sample, block),
            self._key,
            self._rng_rounds,
            np.uint64(half_sweep),
            count,
            (*colours, part, self._blocks.parts),
        )
        if plan.classes.bits == 2:
            sweep_packed(*arguments)
        else:
            sweep_packed_wide(*arguments, plan.classes.count_bits, plan.has_field)

    def temper(self, tempering: CpuTempering, rounds: int, sweeps: int, half_sweep: int) -> bool:
        """Do all rounds of a sample in one call, where its blocks need no threads that meet."""
        if self._blocks.parts > 1:
            return False
        plan, model, limits = self._plan, self._plan.model, self._limits
        assert limits is not None  # noqa: S101  (there is a ladder)
        ladder = (tempering.steps, tempering.ladder.copies, *limits)
        shape = plan.classes.bits, plan.classes.count_bits, plan.has_field, self.colours, plan.parities, plan.phantoms
        assert self._tables is not None  # noqa: S101  (likewise)
        tables = self._tables.always, self._tables.planes, self._tables.thresholds

        def task(first: int, stop: int) -> None:
            mine = slice(first, stop)
            temper_samples(
                self._blocks.state[mine],
                (model.graph.edges, plan.negative, plan.classes.magnitude, plan.classes.field),
                plan.batches, plan.lanes, tuple(array[mine] for array in tables), ladder,
                tuple(array[mine] for array in tempering.exchange), shape, (first, plan.dynamics.first_sample),
                self._key, self._rng_rounds, np.uint64(half_sweep), (tempering.round, rounds, sweeps),
            )  # fmt: skip

        self._threads.share_out(task, model.samples)
        tempering.round += rounds
        return True
