"""Site-packed spins on the CPU: one task for each (sample, replica), or several that share its rows."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final

import numpy as np
import numpy.typing as npt

from spinsim import packing, rng
from spinsim.engine.cpu import BlockEngine, Integers, Words
from spinsim.engine.dynamics import Dynamics
from spinsim.engine.ladder.ladder import Ladder
from spinsim.engine.protocols import Counts
from spinsim.engine.site_packed.cpu_comparison import differing_lattices, set_in_layers
from spinsim.engine.site_packed.cpu_sweep import count_site, sweep_site
from spinsim.engine.site_packed.plan import SitePlan
from spinsim.engine.site_packed.tables import SiteTables
from spinsim.model.ising import Ising

SPLIT_GROUPS: Final = 2**13  # of a colour: from here on, starting threads costs less than a half-sweep


class SiteEngine(BlockEngine[SiteTables]):
    """An ``Engine`` for couplings of one magnitude and a uniform field on lattices whose ``rows_fill_groups``."""

    packing = packing.Packing.SITE
    colours = SitePlan.colours

    def __init__(self, model: Ising, replicas: int, dynamics: Dynamics, threads: int | None = None) -> None:
        self.model, self.replicas = model, replicas
        self._plan = plan = SitePlan(model, replicas, dynamics)
        samples, _, colours, rows, width, _ = plan.shape
        height = plan.lattice.shape[1]
        self._sides = width, height, rows // height
        signs = np.empty((1, colours, 0, rows, width, 2), np.uint64) if plan.signs is None else plan.signs
        self._signs = signs.reshape(*signs.shape[:3], plan.groups, 2)
        full = np.full((replicas, 2), 2**64 - 1, np.uint64)
        super().__init__(plan.shape, full, dynamics, threads, plan.groups >= SPLIT_GROUPS)
        self._words = self.state.reshape(samples, replicas, colours, plan.groups, 2)

    @property
    def tasks(self) -> int:
        """Replicas over all samples, times the threads that share the rows of each."""
        return self.model.samples * self.replicas * self._parts

    def set_beta(self, beta: npt.ArrayLike) -> None:
        """Set the inverse temperature: a number or one for each replica (replicas,)."""
        self._tables, self._ladder = self._plan.tables(beta), None

    def _set_places(self, ladder: Ladder, samples: Iterable[int]) -> None:
        self._tables = self._plan.tables_at(ladder, self._exchange.place)

    def _sweep_part(
        self,
        tables: SiteTables,
        count: int,
        half_sweep: int,
        colours: tuple[int, int],
        part: int,
        sample: int,
        block: int,
    ) -> None:
        sweep_site(
            self._words[sample, block],
            self._sides,
            self._signs[sample % len(self._signs)],
            tables.always[sample % len(tables.always), block],
            tables.planes[sample % len(tables.planes), block],
            tables.thresholds[sample % len(tables.thresholds), block],
            rng.counter_block(np.uint64(sample), np.uint64(block)),
            rng.split_seed(self.dynamics.seed),
            self.dynamics.rng_rounds,
            np.uint64(half_sweep),
            count,
            (*colours, part, self._parts),
            self._plan.has_field,
        )

    def counts(self) -> Counts:
        """Energy and magnetisation of every replica."""
        totals = np.zeros((2, self._parts, *self.state.shape[:2]), np.int64)

        def count(part: int, sample: int, replica: int) -> None:
            signs = self._signs[sample % len(self._signs)]
            found = count_site(self._words[sample, replica], self._sides, signs, part, self._parts)
            totals[:, part, sample, replica] = found

        self._each(count, self._parts)
        up, unsatisfied = totals.sum(axis=1)
        return self._plan.observables.counts({"up": up, "unsatisfied": unsatisfied})

    _reference = -1

    def _words_of(self, sample: int) -> Words:
        return np.asarray(self._words[sample])

    def _differing(self, words: Words, one: Integers, other: Integers) -> Integers:
        count = np.zeros(one.size, np.int64)
        differing_lattices(words.reshape(self.replicas, -1), one, other, count)
        return count

    def _differing_bonds(self, words: Words, one: Integers, other: Integers) -> Integers:
        unsigned = np.empty((2, 0, self._plan.groups, 2), np.uint64)
        lattices = (words[a] ^ words[b] for a, b in zip(one, other, strict=True))
        return np.array([count_site(lattice, self._sides, unsigned, 0, 1)[1] for lattice in lattices], np.int64)

    def _differing_in_layers(self, words: Words, one: Integers, other: Integers) -> list[Integers]:
        shape = self._plan.lattice.shape
        along = [np.zeros((one.size, side), np.int64) for side in (*shape, 1)[:3]]
        for p, (a, b) in enumerate(zip(one, other, strict=True)):
            differing = words[a] if b == self._reference else words[a] ^ words[b]
            lattice = differing.reshape(2, math.prod(shape[1:]), -1)
            set_in_layers(lattice, shape[1], *(counts[p] for counts in along))
        return [np.ascontiguousarray(counts.T) for counts in along[: len(shape)]]

    def _spins_in(self, state: npt.NDArray[np.uint64], sample: int, replica: int) -> npt.NDArray[np.int8]:
        return packing.unpack_sites(state[sample, replica], self._plan.lattice.shape)
