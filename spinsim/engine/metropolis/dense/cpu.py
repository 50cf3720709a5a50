"""Dense models on the CPU: unpacked spins in chunks of replicas, each with its local fields."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spinsim import packing
from spinsim.engine.cpu import CpuEngine, CpuParts
from spinsim.engine.dynamics import Dynamics
from spinsim.engine.measuring.cpu import CpuReplicaComparison
from spinsim.engine.metropolis.dense.cpu_sweep import begin_fields, energies_from_fields, sweep_dense
from spinsim.engine.metropolis.dense.plan import DensePlan
from spinsim.engine.metropolis.unpacked.cpu import Chunks, ChunkSweeper
from spinsim.engine.metropolis.unpacked.replica_order import WORDS, by_replica, by_word
from spinsim.engine.protocols import Counts
from spinsim.engine.resampling.moves import Moves
from spinsim.engine.tempering.cpu import CpuTempering
from spinsim.machine.threads import Threads
from spinsim.model.ising import Ising


def engine(model: Ising, replicas: int, dynamics: Dynamics, threads: int | None = None) -> CpuEngine:
    """The engine of dense models."""
    plan, pool = model.once(DensePlan), Threads(threads)
    state = WithFields(model, replicas, dynamics, pool, plan)
    parts = CpuParts(
        packing=packing.Packing.UNPACKED,
        state=state,
        sweeper=DenseSweeper(model, plan, dynamics, state),
        counts=state.counts,
        comparison=CpuReplicaComparison(model, replicas),
        threads=pool,
    )
    return CpuEngine(model, replicas, dynamics, parts)


class WithFields(Chunks):
    """Spins of all samples in chunks of replicas, and their local fields.

    Args:
        model: What is simulated.
        replicas: Replicas of each sample.
        dynamics: How they start.
        threads: Which work on them.
        plan: What devices share.
    """

    def __init__(self, model: Ising, replicas: int, dynamics: Dynamics, threads: Threads, plan: DensePlan) -> None:
        super().__init__(model, replicas, dynamics, threads)
        self._plan = plan
        self._fields: dict[tuple[int, int], npt.NDArray[np.signedinteger]] = {}  # of chunks, (width, sites)

    def set_words(self, words: npt.NDArray[np.uint64]) -> None:
        """Go back to the words of a snapshot."""
        super().set_words(words)
        self._fields.clear()

    def copy(self, moves: Moves) -> None:
        """Copy configurations and their local fields, of chunks that have them."""
        super().copy(moves)
        for sample, source, target in zip(*(array.tolist() for array in moves), strict=True):
            first, into = (self.firsts[replica // self.size] for replica in (source, target))
            if (sample, into) not in self._fields:
                continue
            give, take = self.fields_of(sample, first), self.fields_of(sample, into)
            take[self._column(self.of(sample, into), target)] = give[self._column(self.of(sample, first), source)]

    def fields_of(self, sample: int, first: int) -> npt.NDArray[np.signedinteger]:
        """Local fields of the chunk from replica ``first`` on, (width, sites) in the order of visits."""
        if (sample, first) not in self._fields:
            couplings, all_down = self._plan.rows(sample)
            fields = np.tile(all_down, (self.width(first), 1))
            begin_fields(self.of(sample, first), fields, self._plan.order, couplings)
            self._fields[sample, first] = fields
        return self._fields[sample, first]

    def counts(self) -> Counts:
        """Energies and magnetisations of every replica."""
        energy = np.zeros((self.model.samples, self.replicas), np.int64)
        magnetization = np.zeros_like(energy)
        plan = self._plan

        def count(sample: int, first: int) -> None:
            spins, fields = self.of(sample, first), self.fields_of(sample, first)
            found = np.zeros((2, spins.shape[1]), np.int64)
            energies_from_fields(spins, fields, plan.order, plan.fields[sample % len(plan.fields)], *found)
            last = min(first + self.size, self.replicas)
            for target, source in zip((energy, magnetization), found, strict=True):
                target[sample, first:last] = by_replica(source)[: last - first]

        self.each(count)
        return Counts(energy, magnetization, np.zeros_like(energy))


class DenseSweeper(ChunkSweeper):
    """A ``CpuSweeper`` of dense models.

    Args:
        model: What is simulated.
        plan: What devices share.
        dynamics: How replicas move.
        state: The spins and their local fields.
    """

    def __init__(self, model: Ising, plan: DensePlan, dynamics: Dynamics, state: WithFields) -> None:
        super().__init__(model, plan.colours, 1, dynamics, state)
        self._plan, self._state = plan, state

    def _sweep_chunk(
        self, double_beta: npt.NDArray[np.float64], count: int, half_sweep: int, sample: int, first: int
    ) -> None:
        plan, (block, lane) = self._plan, divmod(first, packing.LANES)
        of_chunk = double_beta[sample % len(double_beta), 0, first : first + self._state.width(first)]
        sweep_dense(
            self._state.of(sample, first),
            self._state.fields_of(sample, first),
            (plan.order, plan.colour, plan.colours),
            plan.rows(sample)[0],
            np.ascontiguousarray(by_word(of_chunk)),
            self._dynamics.zero_acceptance,
            (self._dynamics.counter_block(sample, block), np.uint64(lane // WORDS)),
            (*self._key, self._dynamics.rng_rounds),
            np.uint64(half_sweep),
            count,
        )

    def temper(self, tempering: CpuTempering, rounds: int, sweeps: int, half_sweep: int) -> bool:
        """There is no kernel of many rounds, as those of dense models are long."""
        return False
