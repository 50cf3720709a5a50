"""Replica-packed spins on the CPU: one task for each (sample, block of 128 replicas)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

import numpy as np
import numpy.typing as npt

from spinsim import packing, rng
from spinsim.engine.base import Counts, Dynamics
from spinsim.engine.cpu.base import CpuEngine
from spinsim.engine.cpu.counters import count_unsatisfied, count_up
from spinsim.engine.cpu.packed import BATCH, sweep_packed
from spinsim.engine.cpu.packed_wide import sweep_packed_wide
from spinsim.engine.cpu.start import fill_start
from spinsim.engine.cpu.threads import Threads
from spinsim.engine.plans import PackedPlan
from spinsim.engine.tables import Tables
from spinsim.errors import InputError
from spinsim.model.ising import Ising

SPLIT_SITES: Final = 2**14  # from here on, starting threads costs less than a half-sweep of one block


class PackedEngine(CpuEngine):
    """An ``Engine`` for couplings of one magnitude and a uniform field."""

    packing = packing.Packing.REPLICA

    def __init__(self, model: Ising, replicas: int, dynamics: Dynamics, threads: int | None = None) -> None:
        self.model, self.replicas, self.dynamics = model, replicas, dynamics
        self._plan = PackedPlan(model, replicas, dynamics, BATCH)
        self.colours = self._plan.colours
        self._threads = Threads(threads)
        self.half_sweep = 0
        self.state = np.empty(self._plan.shape, np.uint64)
        self._tables: Tables | None = None
        self._each(self._start)

    def _each(self, task: Callable[[int, int], None]) -> None:
        samples, blocks = self.state.shape[:2]
        self._threads.run(partial(task, s, b) for s in range(samples) for b in range(blocks))

    def _start(self, sample: int, block: int) -> None:
        counter = rng.counter_block(np.uint64(sample), np.uint64(block))
        d = self.dynamics
        fill_start(self.state[sample, block], self._plan.lanes[block], d.start, d.seed, counter, d.rng_rounds)

    @property
    def tasks(self) -> int:
        """Blocks of 128 replicas over all samples."""
        return self.state.shape[0] * self.state.shape[1]

    def set_beta(self, beta: npt.ArrayLike) -> None:
        """Set the inverse temperature: a number or one for each replica (replicas,)."""
        self._tables = self._plan.tables(beta)

    def sweep(self, count: int) -> None:
        """Attempt every spin of every replica ``count`` times."""
        parts = self._threads.count // self.tasks
        if parts < 2 or self.model.sites < SPLIT_SITES:
            self._each(partial(self._sweep_block, count, self.half_sweep, (0, self.colours, 0, 1)))
        else:
            for half_sweep in range(self.half_sweep, self.half_sweep + count * self.colours):
                self._share_half_sweep(half_sweep, parts)
        self.half_sweep += count * self.colours

    def _share_half_sweep(self, half_sweep: int, parts: int) -> None:
        """One colour, the sites of every block dealt to ``parts`` threads."""
        colour = half_sweep % self.colours
        samples, blocks = self.state.shape[:2]
        self._threads.run(
            partial(self._sweep_block, 1, half_sweep, (colour, colour + 1, part, parts), sample, block)
            for sample in range(samples)
            for block in range(blocks)
            for part in range(parts)
        )

    def _sweep_block(
        self, count: int, half_sweep: int, share: tuple[int, int, int, int], sample: int, block: int
    ) -> None:
        if self._tables is None:
            raise InputError("no temperature is set: call set_beta before sweep")
        tables, plan = self._tables, self._plan
        arguments = (
            self.state[sample, block],
            plan.batches,
            plan.batches.signs[sample % len(plan.negative)],
            tables.always[block],
            tables.planes[block],
            tables.thresholds[block],
            plan.lanes[block],
            rng.counter_block(np.uint64(sample), np.uint64(block)),
            rng.split_seed(self.dynamics.seed),
            self.dynamics.rng_rounds,
            np.uint64(half_sweep),
            count,
            share,
        )
        if plan.classes.bits == 2:
            sweep_packed(*arguments)
        else:
            sweep_packed_wide(*arguments, plan.classes.count_bits, plan.has_field)

    def counts(self) -> Counts:
        """Energy and magnetisation of every replica."""
        samples, blocks = self.state.shape[:2]
        up = np.zeros((samples, blocks, packing.LANES), np.int64)
        unsatisfied = np.zeros_like(up)

        def count(sample: int, block: int) -> None:
            state = self.state[sample, block]
            count_up(state, up[sample, block])
            negative = self._plan.negative[sample % len(self._plan.negative)]
            count_unsatisfied(state, self.model.graph.edges, negative, unsatisfied[sample, block])

        self._each(count)
        return self._plan.counts(up, unsatisfied)

    def spins(self, sample: int, replica: int) -> npt.NDArray[np.int8]:
        """One configuration, shape (sites,), +1 or -1."""
        return packing.unpack_replica(self.state[sample], replica)
