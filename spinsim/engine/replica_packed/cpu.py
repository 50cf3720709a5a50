"""Replica-packed spins on the CPU: one task for each (sample, block of 128 replicas)."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Final

import numpy as np
import numpy.typing as npt

from spinsim import packing, rng
from spinsim.engine.cpu import BlockEngine, ByReplicas
from spinsim.engine.dynamics import Dynamics
from spinsim.engine.ladder.ladder import Ladder
from spinsim.engine.packed.steps import BATCH
from spinsim.engine.protocols import Counts
from spinsim.engine.replica_packed.cpu_counting import count_unsatisfied, count_up
from spinsim.engine.replica_packed.cpu_sweep import sweep_packed
from spinsim.engine.replica_packed.cpu_sweep_wide import sweep_packed_wide
from spinsim.engine.replica_packed.cpu_tempering import lay_tables, temper_packed
from spinsim.engine.replica_packed.plan import ReplicaPlan
from spinsim.engine.replica_packed.tables import Tables, empty_tables
from spinsim.model.ising import Ising

SPLIT_SITES: Final = 2**14  # from here on, starting threads costs less than a half-sweep of one block


class PackedEngine(ByReplicas, BlockEngine[Tables]):
    """An ``Engine`` for couplings of one magnitude and a uniform field."""

    packing = packing.Packing.REPLICA

    def __init__(self, model: Ising, replicas: int, dynamics: Dynamics, threads: int | None = None) -> None:
        self.model, self.replicas = model, replicas
        self._plan = plan = ReplicaPlan(model, replicas, dynamics, BATCH)
        self.colours = plan.colours
        super().__init__(plan.shape, plan.lanes, dynamics, threads, model.sites >= SPLIT_SITES)

    @property
    def tasks(self) -> int:
        """Blocks of 128 replicas over all samples."""
        return self.state.shape[0] * self.state.shape[1]

    def set_beta(self, beta: npt.ArrayLike) -> None:
        """Set the inverse temperature: a number or one for each replica (replicas,)."""
        self._tables, self._ladder = self._plan.tables(beta), None

    def _set_places(self, ladder: Ladder, samples: Iterable[int]) -> None:
        if self._round == 0:
            self._limits = self._plan.limits(ladder.beta)
            self._tables = empty_tables(self._plan.classes, self.model.samples, self.replicas)
        tables = self._tables
        assert tables is not None  # noqa: S101
        for k in samples:
            place = self._exchange.place[k]
            lay_tables(place, *self._limits, tables.always[k], tables.planes[k], tables.thresholds[k])

    def temper(self, rounds: int, sweeps: int) -> None:
        """``rounds`` times: sweep ``sweeps`` times, then try to exchange neighbouring temperatures."""
        if self._parts > 1:
            super().temper(rounds, sweeps)
            return
        on_ladder = self._on_ladder()
        plan, model, tables = self._plan, self.model, self._tables
        assert tables is not None and model.magnitude is not None and model.uniform_field is not None  # noqa: S101, PT018
        numbers = model.magnitude, model.uniform_field
        ladder = (on_ladder.steps(model), on_ladder.copies, *self._limits)
        shape = plan.classes.bits, plan.classes.count_bits, plan.has_field, self.colours
        key = rng.split_seed(self.dynamics.seed)

        def task(k: int) -> None:
            row = k % len(plan.negative)
            temper_packed(
                self.state[k],
                (model.graph.edges, plan.negative[row], *numbers),
                plan.batches,
                plan.batches.signs[row],
                self._lanes,
                (tables.always[k], tables.planes[k], tables.thresholds[k]),
                ladder,
                tuple(array[k] for array in self._exchange),
                shape,
                k,
                key,
                self.dynamics.rng_rounds,
                np.uint64(self.half_sweep),
                (self._round, rounds, sweeps),
            )

        self._threads.run(partial(task, k) for k in range(model.samples))
        self._round += rounds
        self.half_sweep += rounds * sweeps * self.colours

    def _sweep_part(
        self,
        tables: Tables,
        count: int,
        half_sweep: int,
        colours: tuple[int, int],
        part: int,
        sample: int,
        block: int,
    ) -> None:
        plan = self._plan
        arguments = (
            self.state[sample, block],
            plan.batches,
            plan.batches.signs[sample % len(plan.negative)],
            tables.always[sample % len(tables.always), block],
            tables.planes[sample % len(tables.planes), block],
            tables.thresholds[sample % len(tables.thresholds), block],
            self._lanes[block],
            rng.counter_block(np.uint64(sample), np.uint64(block)),
            rng.split_seed(self.dynamics.seed),
            self.dynamics.rng_rounds,
            np.uint64(half_sweep),
            count,
            (*colours, part, self._parts),
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

        def count(_: int, sample: int, block: int) -> None:
            state = self.state[sample, block]
            count_up(state, up[sample, block])
            negative = self._plan.negative[sample % len(self._plan.negative)]
            count_unsatisfied(state, self.model.graph.edges, negative, unsatisfied[sample, block])

        self._each(count)
        up, unsatisfied = (x.reshape(samples, -1)[:, : self.replicas] for x in (up, unsatisfied))
        return self._plan.observables.counts({"up": up, "unsatisfied": unsatisfied})

    def _words_of(self, sample: int) -> npt.NDArray[np.uint64]:
        return np.asarray(self.state[sample])

    def _spins_in(self, state: npt.NDArray[np.uint64], sample: int, replica: int) -> npt.NDArray[np.int8]:
        return packing.unpack_replica(state[sample], replica)
