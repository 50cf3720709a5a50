"""Site-packed spins on the CPU: one task for each (sample, replica), or several that share its words."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property, partial
from typing import Final

import numpy as np
import numpy.typing as npt

from spinsim import packing, rng
from spinsim.acceptance import check_beta, check_one_beta
from spinsim.engine.cpu import CpuEngine, CpuParts, CpuSweeper, Kept, KeptWords, nothing_kept
from spinsim.engine.dynamics import Dynamics
from spinsim.engine.layouts.replica_packed import Blocks
from spinsim.engine.layouts.site_packed import Halo, Words, count_lattices, count_site, seams_of
from spinsim.engine.measuring.cpu_lattices import CpuLatticeComparison
from spinsim.engine.measuring.sums import Counts
from spinsim.engine.moves.exchange import CpuTempering, Ladder, Times
from spinsim.engine.moves.metropolis.classes import lay_one_temperature
from spinsim.engine.moves.metropolis.site_packed.sweep import sweep_site, temper_lattices
from spinsim.engine.moves.metropolis.site_packed.update import SitePlan, SiteTables, sides_of
from spinsim.engine.update import Slab
from spinsim.machine.threads import Threads
from spinsim.model.ising import Ising
from spinsim.packing import of_site_packed, unpacked_spins
from spinsim.parallel.group import Group

ROUND_WORDS: Final = 4  # words updated in the time of a replica's exchange
SPLIT_GROUPS: Final = 2**13  # groups of a colour from which starting threads costs less than a half-sweep


def engine(
    model: Ising, replicas: int, dynamics: Dynamics, threads: int | None = None, slab: Slab | None = None
) -> CpuEngine:
    """Create the engine of couplings of one magnitude and a uniform field on periodic lattices of even sides."""
    plan, pool = SitePlan(model, replicas, dynamics, slab and slab.layers), Threads(threads)
    sides = plan.sides
    full = np.full((replicas, 2), 2**64 - 1, np.uint64)

    def read(words: Words, replica: int) -> npt.NDArray[np.int8]:
        return unpacked_spins(of_site_packed(words[replica], sides), math.prod(sides))

    numbers = plan.first_group, plan.all_groups + plan.first_group
    blocks = Blocks(plan.shape, full, dynamics, pool, plan.groups >= SPLIT_GROUPS, read, numbers=numbers)
    blocks.state[..., -1, :] &= packing.lane_masks(plan.lanes)[-1]
    lattices = SiteLattices(plan, blocks, slab and slab.group)
    count_some = count_lattices.given(lattices.sides, lattices.seams, lattices.signs, *numbers_of(plan))
    sweeper, count = SiteSweeper(plan, blocks, lattices), partial(counts, plan, blocks, lattices, pool, count_some)
    compare = CpuLatticeComparison(plan.lattice, lattices.sides, lattices.seams).compare
    parts = CpuParts(
        packing.Packing.SITE, blocks, sweeper, count, compare, pool,
        bits=lambda sample, replica: of_site_packed(blocks.state[sample, replica], sides),
        kept=KeptWords(sweeper.temper, partial(_counts_of, count_some), blocks.reading),
    )  # fmt: skip
    return CpuEngine(model, replicas, dynamics, parts)


class SiteLattices:
    """Words of a site-packed state and its signs, in the form for kernels.

    Words are (samples, replicas, colours, words). Signs are (1 or samples, colour, slot, word), without slots if no
    coupling is negative. ``sides`` and ``seams`` are as in ``sweep_site``.
    """

    def __init__(self, plan: SitePlan, blocks: Blocks, group: Group | None) -> None:
        self.sides, self.seams = sides_of(plan.sides), seams_of(plan.sides)
        self.words, self.signs = blocks.state.reshape(*plan.shape[:3], -1), plan.signs
        self.halo = Halo(self.words, plan.layer, plan.lanes, group)

    def signs_of(self, sample: int) -> Words:
        return np.asarray(self.signs[sample % len(self.signs)])


def numbers_of(plan: SitePlan) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Weights (numbers, sums) and constants (numbers,) that convert counted sums to ``Counts``."""
    numbers = np.array([one.in_order for one in plan.observables.all], np.int64)
    return np.ascontiguousarray(numbers[:, :-1]), np.ascontiguousarray(numbers[:, -1])


def counts(
    plan: SitePlan, blocks: Blocks, lattices: SiteLattices, threads: Threads, count_some: Callable[..., None],
    samples: slice | None = None,
) -> Counts:  # fmt: skip
    """Energies and magnetisations of every replica, for all or some samples."""
    if blocks.parts == 1 and lattices.halo.group is None:
        begin, end, _ = (samples or slice(None)).indices(plan.shape[0])
        numbers = np.empty((3, end - begin, plan.replicas), np.int64)

        def count_samples(first: int, stop: int) -> None:
            count_some(lattices.words[begin + first : begin + stop], begin + first, numbers[:, first:stop])

        threads.share_out(count_samples, end - begin, blocks.total if samples is None else 0)
        return Counts(*numbers)
    assert samples is None  # noqa: S101  (rounds are not done sample by sample here)
    names = plan.observables.sums
    lattices.halo.fetch(1)
    totals = np.zeros((len(names), blocks.parts, *plan.shape[:2]), np.int64)

    def count(part: int, sample: int, replica: int) -> None:
        lattice, signs = lattices.words[sample, replica], lattices.signs_of(sample)
        halo = lattices.halo.of(sample, replica)
        found = count_site(lattice, halo, lattices.sides, lattices.seams, signs, part, blocks.parts)
        totals[:, part, sample, replica] = found

    blocks.each(count, blocks.parts)
    return plan.observables.counts(dict(zip(names, totals.sum(axis=1), strict=True)))


def _counts_of(count_some: Callable[..., None], words: Words) -> Counts:
    """Do ``counts`` for words (samples, replicas, ...), which may have all samples several times."""
    numbers = np.empty((3, *words.shape[:2]), np.int64)
    count_some(words.reshape(*words.shape[:3], -1), 0, numbers)
    return Counts(*numbers)


class SiteSweeper(CpuSweeper):
    """A ``CpuSweeper`` of site-packed words."""

    def __init__(self, plan: SitePlan, blocks: Blocks, lattices: SiteLattices) -> None:
        self.colours, self.tasks = plan.colours, blocks.count * blocks.parts
        self._plan, self._blocks, self.lattices = plan, blocks, lattices
        self._source = rng.split_seed(plan.dynamics.seed), plan.dynamics.rng_rounds
        self._wide = True if plan.has_field else None
        self._tables: SiteTables  # tables of each replica
        self._of_ladder: SiteTables  # tables of each temperature
        self._rounds: Callable[..., None] | None = None

    def set_beta(self, beta: npt.ArrayLike) -> None:
        plan = self._plan
        if np.ndim(beta) > 0:
            self._tables = plan.tables(check_beta(beta, plan.replicas)[None])
            return
        self._tables = self._of_all  # annealing sets one temperature repeatedly
        self._lay_one(check_one_beta(beta) * plan.model.quantum)

    @cached_property
    def _of_all(self) -> SiteTables:
        return self._plan.tables(np.zeros((1, self._plan.replicas)))

    @cached_property
    def _lay_one(self) -> Callable[[float], int]:
        by_replica = (array[0][:, None] for array in self._of_all)
        lay: Callable[[float], int] = lay_one_temperature.given(
            self._plan.classes.costs[:1], self._plan.dynamics.zero_acceptance, *by_replica
        )
        return lay

    def set_ladder(self, ladder: Ladder) -> None:
        self._of_ladder, self._rounds = self._plan.tables(ladder.beta[None]), None

    def set_places(self, ladder: Ladder, place: npt.NDArray[np.int32]) -> None:
        self._tables = SiteTables._make(array[0][place] for array in self._of_ladder)

    def sweep(self, count: int, half_sweep: int) -> None:
        halo = self.lattices.halo
        prepare = None if halo.group is None else lambda colour: halo.fetch(1 - colour)
        self._blocks.sweep(self._sweep_part, count, half_sweep, self.colours, prepare)

    def _sweep_part(
        self, count: int, half_sweep: int, colours: tuple[int, int], part: int, sample: int, replica: int
    ) -> None:
        where = part, sample, replica
        sweep = self._blocks.prepared(where, self._tables, partial(self._prepared, sample, replica))
        sweep(np.uint64(half_sweep), count, (*colours, part, self._blocks.parts), self._wide)

    def _prepared(self, sample: int, replica: int) -> Callable[..., None]:
        """Return the kernel with the arguments that stay while the tables stay."""
        mine, lattices = slice(replica, replica + 1), self.lattices
        prepared: Callable[..., None] = sweep_site.given(
            lattices.words[sample, replica], lattices.halo.of(sample, replica), lattices.sides, lattices.seams,
            lattices.signs_of(sample), tuple(array[sample % len(array), mine] for array in self._tables),
            self._plan.first_group, (self._plan.dynamics.counter_block(sample, replica), *self._source),
        )  # fmt: skip
        return prepared

    def words_of_round(self, sweeps: int) -> int | None:
        """Return the cost of a round; None if threads or slabs share a lattice in each half-sweep."""
        if self._blocks.parts > 1 or self.lattices.halo.group is not None:
            return None
        return max(1, sweeps) * self._blocks.total + ROUND_WORDS * self._blocks.count

    def temper(
        self, tempering: CpuTempering, times: Times, half_sweep: int, samples: slice, kept: Kept | None = None
    ) -> None:
        count, words, exchanges = kept or nothing_kept(self._blocks.state, tempering)
        plan, lattices = self._plan, self.lattices
        if self._rounds is None:
            self._rounds = temper_lattices.given(
                lattices.sides, lattices.seams, lattices.signs, plan.weights, self._wide,
                (tempering.steps, tempering.ladder.copies), self._source, tuple(array[0] for array in self._of_ladder),
            )  # fmt: skip
        self._rounds(
            lattices.words[samples], *[array[samples] for array in tempering.exchange], samples.start,
            plan.dynamics.first_sample, np.uint64(half_sweep), *times, count,
            words.reshape(*words.shape[:3], lattices.words.shape[-1]), tuple(exchanges),
        )  # fmt: skip
