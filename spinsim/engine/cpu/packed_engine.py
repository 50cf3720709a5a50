"""Replica-packed spins on the CPU: one task for each (sample, block of 128 replicas)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

import numpy as np
import numpy.typing as npt

from spinsim import packing, rng
from spinsim.engine.base import Counts, Dynamics
from spinsim.engine.cpu.batches import build_batches
from spinsim.engine.cpu.counters import count_unsatisfied, count_up
from spinsim.engine.cpu.packed import sweep_packed
from spinsim.engine.cpu.packed_wide import sweep_packed_wide
from spinsim.engine.cpu.start import fill_start
from spinsim.engine.cpu.threads import Threads
from spinsim.engine.tables import Classes, Tables, build_tables
from spinsim.errors import InputError
from spinsim.model.colouring import colouring
from spinsim.model.ising import Ising

SPLIT_SITES: Final = 2**14  # from here on, starting threads costs less than a half-sweep of one block


class PackedEngine:
    """An ``Engine`` for couplings of one magnitude and a uniform field."""

    packing = packing.Packing.REPLICA

    def __init__(self, model: Ising, replicas: int, dynamics: Dynamics, threads: int | None = None) -> None:
        magnitude, field = model.magnitude, model.uniform_field
        if magnitude is None or field is None:
            raise InputError(f"model {model.name} has couplings or fields of many sizes: it cannot be replica-packed")
        self.model, self.replicas, self.dynamics = model, replicas, dynamics
        self._magnitude, self._field = magnitude, field
        self._classes = Classes.of(int(model.graph.degrees().max()), magnitude, field)
        colour = colouring(model.graph)
        self.colours = int(colour.max()) + 1
        self._negative = model.negative_bonds()
        self._batches = build_batches(model.graph, colour, self._classes, self._negative)
        self._lanes = packing.lane_masks(replicas)
        self._threads = Threads(threads)
        self.half_sweep = 0
        self.state = np.empty((model.samples, len(self._lanes), model.sites, 2), np.uint64)
        self._tables: Tables | None = None
        self._each(self._start)

    def _each(self, task: Callable[[int, int], None]) -> None:
        samples, blocks = self.state.shape[:2]
        self._threads.run(partial(task, s, b) for s in range(samples) for b in range(blocks))

    def _start(self, sample: int, block: int) -> None:
        counter = rng.counter_block(np.uint64(sample), np.uint64(block))
        d = self.dynamics
        fill_start(self.state[sample, block], self._lanes[block], d.start, d.seed, counter, d.rng_rounds)

    @property
    def tasks(self) -> int:
        """Blocks of 128 replicas over all samples."""
        return self.state.shape[0] * self.state.shape[1]

    def set_beta(self, beta: npt.ArrayLike) -> None:
        """Set the inverse temperature: a number or one for each replica (replicas,)."""
        betas = np.broadcast_to(np.asarray(beta, np.float64) * self.model.quantum, self.replicas)
        self._tables = build_tables(self._classes, betas, self.dynamics.zero_acceptance)

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
        tables = self._tables
        arguments = (
            self.state[sample, block],
            self._batches,
            self._batches.signs[sample % len(self._negative)],
            tables.always[block],
            tables.planes[block],
            tables.thresholds[block],
            self._lanes[block],
            rng.counter_block(np.uint64(sample), np.uint64(block)),
            rng.split_seed(self.dynamics.seed),
            self.dynamics.rng_rounds,
            np.uint64(half_sweep),
            count,
            share,
        )
        if self._classes.bits == 2:
            sweep_packed(*arguments)
        else:
            sweep_packed_wide(*arguments, self._classes.count_bits, self._field != 0)

    def counts(self) -> Counts:
        """Energy and magnetisation of every replica."""
        samples, blocks = self.state.shape[:2]
        up = np.zeros((samples, blocks, packing.LANES), np.int64)
        unsatisfied = np.zeros_like(up)

        def count(sample: int, block: int) -> None:
            state = self.state[sample, block]
            count_up(state, up[sample, block])
            negative = self._negative[sample % len(self._negative)]
            count_unsatisfied(state, self.model.graph.edges, negative, unsatisfied[sample, block])

        self._each(count)
        up, unsatisfied = (x.reshape(samples, -1)[:, : self.replicas] for x in (up, unsatisfied))
        magnetization = 2 * up - self.model.sites
        energy = -self._magnitude * (self.model.bonds - 2 * unsatisfied) - self._field * magnetization
        return Counts(energy, magnetization)

    def spins(self, sample: int, replica: int) -> npt.NDArray[np.int8]:
        """One configuration, shape (sites,), +1 or -1."""
        return packing.unpack_replica(self.state[sample], replica)
