"""Replica-packed spins on the CPU: one task for each (sample, block of 128 replicas)."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from typing import Final

import numpy as np
import numpy.typing as npt

from spinsim import packing, rng
from spinsim.acceptance import check_one_beta
from spinsim.engine.cpu import CpuEngine, CpuParts, CpuSweeper, Kept, KeptWords, Words, nothing_kept
from spinsim.engine.dynamics import Dynamics
from spinsim.engine.layouts.replica_packed import BATCH, WORDS, Blocks, count_lattices, count_sites, count_unsatisfied
from spinsim.engine.measuring.cpu import CpuReplicaComparison
from spinsim.engine.measuring.sums import Counts
from spinsim.engine.moves.exchange import CpuTempering, Ladder, Times, exchange, keep_exchange
from spinsim.engine.moves.metropolis.classes import (
    Classes,
    Limits,
    Tables,
    bits_up_to,
    cheap_bits,
    empty_tables,
    lay_one_temperature,
    lay_tables,
)
from spinsim.engine.moves.metropolis.replica_packed.batches import Costs
from spinsim.engine.moves.metropolis.replica_packed.cpu_sweep import (
    sweep_and_tally,
    sweep_by_degree,
    sweep_packed,
    sweep_wide,
)
from spinsim.engine.moves.metropolis.replica_packed.update import PackedRun, ReplicaPlan, TermPlan
from spinsim.engine.moves.metropolis.steps import SCRATCH_WORDS, scratch_of
from spinsim.machine.compiled import kernel, step
from spinsim.machine.threads import Threads
from spinsim.model.graph import MOST_TERMS
from spinsim.model.ising import Ising
from spinsim.packing import LANES, of_replica_packed


@step
def sweep_and_count(  # type: ignore[no-untyped-def]
    work, state, batches, signs, tables, lanes, source, half_sweep, sweeps, share, bonds, wide, cheap, sample, sums
):
    """Sweep a block; add up its unsatisfied bonds of each term, and its spins +1 if the energy needs them.

    ``wide`` and ``cheap`` are as in ``temper_samples``.
    """
    edges, negative, further_edges, further_negative, lone, positive, phantoms = bonds
    row, (up, unsatisfied, of_term_1) = sample % negative.shape[0], sums
    tallied = False
    if wide is not None:
        count_bits, has_field = wide
        sweep_wide(state, batches, signs, tables, lanes, source, half_sweep, sweeps, share, count_bits, has_field)
        if has_field:
            count_sites(state, batches.order, None, up)
        if further_edges.size:
            count_unsatisfied(state, further_edges, further_negative[row], of_term_1)
    elif cheap is not None:
        cheap_bits, starts = cheap
        of_sample = starts[sample % starts.shape[0]]
        sweep_by_degree(state, batches, signs, tables, lanes, source, half_sweep, sweeps, share, cheap_bits, of_sample)
        count_sites(state, lone, positive[sample % positive.shape[0]], unsatisfied)
    else:
        scratch, counters = work
        tallied = share[1] == 2 and sweeps > 0  # each bond then has one end of the last colour
        counted = unsatisfied if tallied else unsatisfied[:0]
        sweep_and_tally(
            scratch, (counted, counters), state, batches, signs, tables, lanes, source, half_sweep, sweeps, share
        )
    if tallied:
        unsatisfied -= phantoms
    else:
        count_unsatisfied(state, edges, negative[row], unsatisfied)


@kernel
def temper_samples(  # type: ignore[no-untyped-def]
    bonds, weights, batches, lanes, wide, cheap, ladder, source, state, always, planes, thresholds, place, attempts,
    accepts, trips, last_end, first, first_in_run, half_sweep, before, rounds, sweeps, times, words, exchanges,
):  # fmt: skip
    """Repeatedly sweep all blocks of consecutive samples and exchange temperatures.

    If ``wide`` or ``cheap`` is None, its sweep is left out of the machine code.

    Args:
        weights: |J| of each of two terms and h, in quanta.
        wide: For ``sweep_wide``, if the class has the spin or two terms: bits of each count, and True in a field.
        cheap: For ``sweep_by_degree``, if sites are grouped by degree: bits of cheap classes, and ``starts``.
        ladder: Colours, ``Ladder.steps``, copies, the tables that sites use, and limits of each temperature.
        state, always, ...: State, ``Tables`` and ``Exchange`` of the samples, changed in place.
        first, first_in_run: Number in the model of the first of these samples, and in the run of the model's first.
        times: Number of times that ``rounds`` rounds are done. After each time, the state and the exchanges of all
            samples are copied to ``words`` and ``exchanges``, first time first, unless these have no rows.
    """
    (colours, steps, copies, used, certain, limits), (key, rng_rounds) = ladder, source
    first_magnitude, second_magnitude, field = weights
    share = np.int64(0), colours, np.int64(0), np.int64(1)
    work = scratch_of(SCRATCH_WORDS), np.zeros(WORDS, np.uint64)
    replicas, terms = state.shape[1] * LANES, steps.shape[1]
    sums, energy = np.empty((3, replicas), np.int64), np.empty((replicas, terms), np.int64)
    for k in range(state.shape[0]):
        sample, now = first + k, half_sweep
        number, signs = first_in_run + sample, batches.signs[sample % batches.signs.shape[0]]
        for done in range(times * rounds):
            sums[:] = 0
            for b in range(state.shape[1]):
                block, mine = rng.counter_block(np.uint64(number), np.uint64(b)), slice(b * LANES, (b + 1) * LANES)
                of_block = always[k, b], planes[k, b], thresholds[k, b]
                sweep_and_count(
                    work, state[k, b], batches, signs, of_block, lanes[b], (block, key, rng_rounds), now, sweeps, share,
                    bonds, wide, cheap, sample, (sums[0, mine], sums[1, mine], sums[2, mine]),
                )  # fmt: skip
            for r in range(replicas):  # up to a constant, which cancels in exchanges
                energy[r, 0] = 2 * (first_magnitude * sums[1, r] - field * sums[0, r])
                if terms > 1:
                    energy[r, 1] = 2 * second_magnitude * sums[2, r]
            exchange(energy, steps, copies, before + done, number, key, rng_rounds,
                     place[k], attempts[k], accepts[k], trips[k], last_end[k])  # fmt: skip
            lay_tables(place[k], used, certain, limits, always[k], planes[k], thresholds[k])
            now += np.uint64(sweeps * colours)
            if words.shape[0] and (done + 1) % rounds == 0:
                row = done // rounds * state.shape[0] + k
                words[row] = state[k]
                keep_exchange((place[k], attempts[k], accepts[k], trips[k], last_end[k]), row, exchanges)


COSTS: Final = Costs(width=8, batch=1600, site=480, bond=40)  # for 128 replicas, in cycles of a processor with AVX-512
ROUND_WORDS: Final = 256  # words updated at one temperature in the time of a block's exchange and tables
LADDER_WORDS: Final = 2  # factor of this time with a temperature for each lane
SPLIT_SITES: Final = 2**14  # from here on, starting threads costs less than a half-sweep of one block


def engine(model: Ising, replicas: int, dynamics: Dynamics, threads: int | None = None) -> CpuEngine:
    return engine_of(ReplicaPlan(model, replicas, dynamics, BATCH, COSTS), threads, packing.Packing.REPLICA)


def engine_of_terms(model: Ising, replicas: int, dynamics: Dynamics, threads: int | None) -> CpuEngine:
    """Create the engine of the anisotropic update."""
    plan = TermPlan(model, replicas, dynamics, BATCH)
    return engine_of(plan, threads, packing.Packing.ANISOTROPIC, (MOST_TERMS,))


def engine_of(
    plan: PackedRun, threads: int | None, name: packing.Packing, temperatures: tuple[int, ...] = (1,)
) -> CpuEngine:
    """Create the engine of a run; ``name`` and ``temperatures`` are as in ``CpuParts``."""
    model, pool = plan.model, Threads(threads)
    large = model.sites >= SPLIT_SITES
    read_all = partial(of_replica_packed, replicas=plan.replicas)
    blocks = Blocks(plan.shape, plan.lanes, plan.dynamics, pool, large, packing.unpack_replica, read_all)
    numbers = np.array([one.in_order for one in plan.observables.all])
    weights, constants = np.ascontiguousarray(numbers[:, :-1]), np.ascontiguousarray(numbers[:, -1])
    count_some = count_lattices.given(plan.batches.order, plan.first, plan.counted, weights, constants)
    sweeper, count = ReplicaSweeper(plan, blocks), partial(counts, plan, blocks, pool, count_some)
    has_terms = len(temperatures) > 1 or len(plan.observables.terms) > 0
    kept = None if has_terms else KeptWords(sweeper.temper, partial(_counts_of, plan, count_some), blocks.reading)
    compare = CpuReplicaComparison(model).compare
    parts = CpuParts(name, blocks, sweeper, count, compare, pool, temperatures, kept=kept)
    return CpuEngine(model, plan.replicas, plan.dynamics, parts)


def counts(
    plan: PackedRun, blocks: Blocks, threads: Threads, count_some: Callable[..., None], samples: slice | None = None
) -> Counts:
    """Energies (by term too, if there are two) and magnetisations of every replica, for all or some samples.

    ``count_some`` is ``count_lattices`` with the arguments of the plan.
    """
    begin, end, _ = (samples or slice(None)).indices(plan.shape[0])
    numbers = np.empty((3 + len(plan.observables.terms), end - begin, plan.replicas), np.int64)
    lattices, number = blocks.state[begin:end].reshape(-1, *plan.shape[2:]), plan.shape[1]

    def count(first: int, stop: int) -> None:
        count_some(lattices[first:stop], begin * number + first, number, numbers, begin)

    threads.share_out(count, len(lattices), blocks.total if samples is None else 0)
    energy, magnetization, staggered, *terms = numbers
    return Counts(energy, magnetization, staggered, np.stack(terms, axis=-1) if terms else None)


def _counts_of(plan: PackedRun, count_some: Callable[..., None], words: Words) -> Counts:
    """Do ``counts`` for words (samples, blocks, sites, 2), which may have all samples several times."""
    numbers = np.empty((3, len(words), plan.replicas), np.int64)
    count_some(words.reshape(-1, *words.shape[2:]), 0, words.shape[1], numbers, 0)
    return Counts(*numbers)


class ReplicaSweeper(CpuSweeper):
    """A ``CpuSweeper`` of replica-packed words."""

    def __init__(self, plan: PackedRun, blocks: Blocks) -> None:
        self.colours, self.tasks = plan.colours, blocks.count
        self._plan, self._blocks = plan, blocks
        self._source = rng.split_seed(plan.dynamics.seed), plan.dynamics.rng_rounds
        self._tables: Tables
        self._limits: Limits
        self._rounds: Callable[..., None] | None = None
        self._cheap_bits = 0

    def set_beta(self, beta: npt.ArrayLike) -> None:
        plan, classes = self._plan, self._plan.classes
        if np.ndim(beta) > 0 or not isinstance(classes, Classes):
            self._tables, limits = plan.tables(beta)
            self._cheap_bits = cheap_bits(limits) if plan.by_degree else 0
            return
        self._tables = self._of_all  # annealing sets one temperature repeatedly; one block's tables serve all
        self._cheap_bits = bits_up_to(self._lay_one(check_one_beta(beta) * plan.model.quantum))

    @cached_property
    def _of_all(self) -> Tables:
        return empty_tables(self._plan.classes, 1, 1)

    @cached_property
    def _lay_one(self) -> Callable[[float], int]:
        tables, dynamics = self._of_all, self._plan.dynamics
        lay: Callable[[float], int] = lay_one_temperature.given(
            self._plan.classes.costs, dynamics.zero_acceptance, tables.always[0], tables.planes[0], tables.thresholds[0]
        )
        return lay

    def set_ladder(self, ladder: Ladder) -> None:
        self._limits, self._rounds = self._plan.limits(ladder.beta), None
        self._tables = empty_tables(self._plan.classes, self._plan.model.samples, self._plan.replicas)
        self._cheap_bits = cheap_bits(self._limits) if self._plan.by_degree else 0

    def set_places(self, ladder: Ladder, place: npt.NDArray[np.int32]) -> None:
        for k, row in enumerate(place):
            lay_tables(row, self._plan.used_tables, *self._limits, *self._tables_of(k))

    def _tables_of(self, sample: int) -> tuple[npt.NDArray[np.uint64], ...]:
        tables, k = self._tables, sample % len(self._tables.always)
        return tables.always[k], tables.planes[k], tables.thresholds[k]

    def sweep(self, count: int, half_sweep: int) -> None:
        self._blocks.sweep(self._sweep_part, count, half_sweep, self.colours)

    def _sweep_part(
        self, count: int, half_sweep: int, colours: tuple[int, int], part: int, sample: int, block: int
    ) -> None:
        """Sweep a part of a block, as called by ``Blocks.sweep``."""
        plan = self._plan
        sweep = self._blocks.prepared((part, sample, block), self._tables, partial(self._prepared, sample, block))
        times = np.uint64(half_sweep), count, (*colours, part, self._blocks.parts)
        if plan.by_degree:
            sweep(*times, self._cheap_bits, plan.starts[sample % len(plan.starts)])
        elif plan.counts_of_class is not None:
            sweep(*times, *plan.counts_of_class)
        else:
            sweep(*times)

    def _prepared(self, sample: int, block: int) -> Callable[..., None]:
        """Return the kernel with the arguments that stay while the tables stay: annealing calls it repeatedly."""
        plan = self._plan
        kernel = sweep_by_degree if plan.by_degree else sweep_packed if plan.counts_of_class is None else sweep_wide
        prepared: Callable[..., None] = kernel.given(
            self._blocks.state[sample, block], plan.batches, plan.batches.signs[sample % len(plan.batches.signs)],
            tuple(array[block % len(array)] for array in self._tables_of(sample)), plan.lanes[block],
            (plan.dynamics.counter_block(sample, block), *self._source),
        )  # fmt: skip
        return prepared

    def words_of_round(self, sweeps: int) -> int | None:
        """Return the cost of a round; None if threads share a block in each half-sweep."""
        if self._blocks.parts > 1:
            return None
        return LADDER_WORDS * max(1, sweeps) * self._blocks.total + ROUND_WORDS * self._blocks.count

    def temper(
        self, tempering: CpuTempering, times: Times, half_sweep: int, samples: slice, kept: Kept | None = None
    ) -> None:
        count, words, exchanges = kept or nothing_kept(self._blocks.state, tempering)
        plan, tables, limits = self._plan, self._tables, self._limits
        if self._rounds is None:
            ladder = self.colours, tempering.steps, tempering.ladder.copies, plan.used_tables, *limits
            self._rounds = temper_samples.given(
                plan.counted, plan.weights, plan.batches, plan.lanes, plan.counts_of_class,
                (self._cheap_bits, plan.starts) if plan.by_degree else None, ladder, self._source,
            )  # fmt: skip
        self._rounds(
            self._blocks.state[samples], tables.always[samples], tables.planes[samples], tables.thresholds[samples],
            *[array[samples] for array in tempering.exchange], samples.start, plan.dynamics.first_sample,
            np.uint64(half_sweep), *times, count, words, tuple(exchanges),
        )  # fmt: skip

    def end_rounds(self, tempering: CpuTempering) -> None:
        """Do nothing: rounds have set the tables."""
