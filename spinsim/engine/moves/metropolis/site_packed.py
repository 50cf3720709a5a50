"""The site-packed update, for periodic lattices with long rows: its run, memory and counters, and its sweep on the CPU.

There is one task for each (sample, replica), or several that share its rows. 128 sites of one row and colour are
updated at once, by the steps of steps.py.
"""

from __future__ import annotations

import math
from functools import cached_property, partial
from math import prod
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim import packing, rng
from spinsim.acceptance import acceptance, check_beta
from spinsim.engine.cpu import CpuEngine, CpuParts, CpuSweeper
from spinsim.engine.dynamics import Dynamics
from spinsim.engine.layouts.replica_packed import BATCH, ONE, ROW, ZERO, Blocks
from spinsim.engine.layouts.site_packed import (
    WORD,
    Halo,
    build_signs,
    can_be_held,
    count_site,
    differing_lattices,
    fill_window,
    in_use,
    lanes_of,
    load,
    seams_of,
    set_in_layers,
    suits,
    window_of,
)
from spinsim.engine.measuring.correlations import compared, waves
from spinsim.engine.measuring.cpu import Compared, Integers, Words
from spinsim.engine.measuring.cpu_comparison import squared_modes
from spinsim.engine.measuring.sums import Counts, of_up_and_unsatisfied
from spinsim.engine.moves.exchange import Ladder
from spinsim.engine.moves.metropolis.classes import PLANES, Classes, Kind, Limits, kind_of
from spinsim.engine.moves.metropolis.steps import (
    CLASS,
    FLIP,
    SPIN,
    WIDE_WORDS,
    count_unlike,
    find_flips,
    find_flips_wide,
    scratch_of,
)
from spinsim.engine.update import Counters, ModelSizes, Sizes, Slab, Update
from spinsim.errors import InputError
from spinsim.machine.compiled import kernel, part
from spinsim.machine.threads import Threads
from spinsim.model.graph import MOST_LISTED
from spinsim.model.ising import Ising
from spinsim.packing import Packing, of_site_packed, unpacked_spins
from spinsim.parallel.group import Group


class SiteTables(NamedTuple):
    """Thresholds of every replica, the same in all lanes, of each sample or, of length 1, of all: of even degrees."""

    always: npt.NDArray[np.uint32]  # ``[sample, replica, class]``: all bits where no random number is needed
    planes: npt.NDArray[np.uint32]  # ``[sample, replica, plane, class]``: bit ``63 - plane`` in every bit
    thresholds: npt.NDArray[np.uint64]  # ``[sample, replica, class]``: the thresholds of acceptance.py


def build_site_tables(classes: Classes, beta: npt.NDArray[np.float64], zero_acceptance: float) -> SiteTables:
    """The tables for ``beta`` (1 or samples, replicas): inverse temperature times the quantum of each replica."""
    always, threshold = acceptance(classes.costs[0], beta[..., None], zero_acceptance)
    shift = np.arange(63, 63 - PLANES, -1, dtype=np.uint64)[:, None]
    bits = (threshold[..., None, :] >> shift & np.uint64(1)).astype(np.uint32)
    full = np.uint32(0xFFFFFFFF)
    return SiteTables(always.astype(np.uint32) * full, bits * full, threshold)


class SitePlan:
    """A site-packed run of a model.

    Args:
        model: Couplings of one magnitude and a uniform field on a periodic lattice of even sides.
        layers: The rows or, in three dimensions, planes of a slab of the lattice, an even number from an even one on,
            whose sites fill groups; None for the whole lattice.

    Attributes:
        shape: Of the packed state, (samples, replicas, colours, groups, 2).
        groups: Groups of 128 lanes of one colour in the slab.
        layer: Sites of a colour in a layer.
        lanes: Sites of a colour in the slab.
        first_group: Number of the slab's first group among those of one colour of the lattice.
        all_groups: Groups of one colour of the lattice.
        rows: Of the slab, among those of all planes of the lattice.
        observables: From the spins +1, those of the first sublattice, which is colour 0, and the unsatisfied bonds; a
            bond belongs to the slab that has its site of colour 0.
    """

    colours = 2

    def __init__(self, model: Ising, replicas: int, dynamics: Dynamics, layers: range | None = None) -> None:
        lattice, magnitude, field = model.lattice, model.magnitude, model.uniform_field
        if lattice is None or magnitude is None or field is None or not can_be_held(ModelSizes(model)):
            raise InputError(
                f"model {model.name} cannot be site-packed: take couplings of one magnitude, a uniform field and a "
                "periodic lattice of even sides"
            )
        self.model, self.replicas, self.dynamics = model, replicas, dynamics
        layers = layers or range(lattice.shape[-1])
        self.sides = (*lattice.shape[:-1], len(layers))
        sites, rows = prod(self.sides), prod(lattice.shape[1:-1])
        self.observables = of_up_and_unsatisfied(sites, lattice.dimension * sites, magnitude, field, sites // 2)
        self.has_field = field != 0
        self.classes = Classes.of(2 * lattice.dimension, magnitude, field)
        self.shape = (model.samples, replicas, *packing.site_shape(self.sides))
        self.groups, self.all_groups = (packing.site_groups(number) for number in (sites, model.sites))
        self.layer, self.lanes = sites // (2 * len(layers)), sites // 2
        self.first_group = self.layer * layers.start // packing.LANES
        self.rows = range(rows * layers.start, rows * layers.stop)
        self.is_signed = model.extreme_couplings[0] < 0

    @cached_property
    def signs(self) -> npt.NDArray[np.uint64]:
        return build_signs(self.model, self.rows)

    def tables(self, beta: npt.NDArray[np.float64]) -> SiteTables:
        """The tables of replicas at inverse temperatures (1 or samples, replicas)."""
        return build_site_tables(self.classes, beta * self.model.quantum, self.dynamics.zero_acceptance)

    def limits(self, beta: npt.NDArray[np.float64]) -> Limits:
        """Limits that decide flips at inverse temperatures ``beta``, of even degrees alone."""
        costs = self.classes.costs[:1, :, None]
        return Limits(*acceptance(costs, beta * self.model.quantum, self.dynamics.zero_acceptance))

    def kind(self, beta: npt.NDArray[np.float64]) -> Kind:
        return min(kind_of(self.classes, self.dynamics.zero_acceptance, self.limits(np.unique(beta))), Kind.PLAIN)


def needed_bytes(sizes: Sizes, replicas: int) -> int:
    """Memory that a run takes at most: it has no adjacency, and two signs for each bond unless couplings are equal.

    Of a lattice whose bonds are not listed lowest states are held as bits.
    """
    bonds, sites, samples = sizes.bonds, sizes.sites, sizes.samples
    if bonds > MOST_LISTED:
        signs = 0 if sizes.one_coupling else samples * bonds // 4
        return signs + samples * (sites // 2 + replicas * (3 * sites // 8 + 512))  # the state, and two copies to save
    drawn = 0 if sizes.one_coupling else bonds * (8 + 8 * samples)
    return bonds * 24 + drawn + samples * (sites * 4 + replicas * (sites // 8 + 512))


def counters(sizes: Sizes, replicas: int) -> Counters:
    """Fields of the random counter: a group is 128 sites, and every replica is a block."""
    return Counters(2 * packing.site_groups(sizes.sites), replicas, "replicas of a site-packed lattice")


UPDATE: Final = Update(
    *(Packing.SITE, suits, needed_bytes, counters, f"{__name__}:engine", f"{__name__}_cuda:engine"),
    together=1,
    in_slabs=True,
)


ALL: Final = ~ZERO
COUNT_BITS: Final = 3


@part
def spread(rows):  # type: ignore[no-untyped-def]
    words = np.empty((rows.shape[0], rows.shape[1], 2), np.uint64)
    for i in range(rows.shape[0]):
        for c in range(rows.shape[1]):
            words[i, c, 0] = words[i, c, 1] = ALL if rows[i, c] else ZERO
    return words


@part
def flip(first, n, own, w):  # type: ignore[no-untyped-def]
    for half in range(2):
        for q in range(n):
            own[2 * (first + q) + half] = w[SPIN + half * BATCH + q] ^ w[FLIP + half * BATCH + q]


@kernel
def sweep_site(  # type: ignore[no-untyped-def]
    state, halo, sides, seams, signs, tables, number, source, half_sweep, sweeps, share, has_field
):
    """Update one replica of one sample.

    Args:
        state: uint64 (colour, word), changed in place.
        halo: The layers before and after it, as ``Halo.of`` has them.
        sides: Sites of a colour in a row, rows in a plane, planes (1 for a square lattice).
        seams: Masks of the lanes at sides, and the groups after which they repeat.
        signs: uint64 (colour, slot, word), or of size 0 where no coupling is negative.
        tables: ``always``, ``planes`` and ``thresholds`` of this replica, as ``SiteTables`` has them.
        number: Counter word 0 of the first group.
        source, share: As ``sweep_and_tally`` takes them, ``share`` of the groups of a colour.
    """
    w, tail, site, lane = scratch_of(WIDE_WORDS)
    (always, planes, thresholds), (block, (k0, k1), rounds) = tables, source
    used = np.full(2, ALL)
    certain, bits = spread(always.reshape((1, -1)))[0], spread(planes)
    own = np.empty((thresholds.size, 128), np.uint64)
    for c in range(thresholds.size):
        own[c] = thresholds[c]
    numbers = np.empty(BATCH, np.int64)
    groups = state.shape[1] // 2
    _, _, lanes = lanes_of(sides)
    start, stop = groups * share[2] // share[3], groups * (share[2] + 1) // share[3]
    window, served = window_of(sides, stop - start)
    for _ in range(sweeps):
        for colour in range(share[0], share[1]):
            mine, other = state[colour], state[1 - colour]
            for chunk in range(start, stop, served):
                of_chunk = min(served, stop - chunk)
                at = fill_window(window, chunk, of_chunk, other, halo, 1 - colour, sides)
                for first in range(chunk, chunk + of_chunk, BATCH):
                    n = min(BATCH, chunk + of_chunk - first)
                    sites = numbers[:n]
                    for q in range(n):
                        sites[q] = number + first + q
                    place = at + 2 * WORD * (first - chunk)
                    count_unlike(n, load(colour, first, n, mine, window, place, sides, seams, signs, w), w)
                    if has_field:
                        for e in range(ROW):
                            w[CLASS + COUNT_BITS * ROW + e] = w[SPIN + e]
                        find_flips_wide(
                            n, COUNT_BITS + 1, certain, bits, own, used, sites, block, half_sweep, k0, k1, rounds, w,
                            tail, site, lane,
                        )  # fmt: skip
                    else:
                        find_flips(
                            n, certain, bits, own, used, sites, block, half_sweep, k0, k1, rounds, w, tail, site, lane
                        )
                    flip(first, n, mine, w)
            if stop == groups:  # lanes that are no sites draw after those that are, and stay 0
                for half in range(2):
                    mine[2 * (groups - 1) + half] &= in_use(2 * (groups - 1) + half, lanes)
            half_sweep += ONE


REFERENCE: Final = -1  # number of a replica that stands for all spins -1
SPLIT_GROUPS: Final = 2**13  # of a colour: from here on, starting threads costs less than a half-sweep


def engine(
    model: Ising, replicas: int, dynamics: Dynamics, threads: int | None = None, slab: Slab | None = None
) -> CpuEngine:
    """The engine of couplings of one magnitude and a uniform field on lattices whose ``rows_can_be_packed``."""
    plan, pool = SitePlan(model, replicas, dynamics, slab and slab.layers), Threads(threads)
    sides = plan.sides
    full = np.full((replicas, 2), 2**64 - 1, np.uint64)

    def read(words: Words, replica: int) -> npt.NDArray[np.int8]:
        return unpacked_spins(of_site_packed(words[replica], sides), math.prod(sides))

    numbers = plan.first_group, plan.all_groups + plan.first_group
    blocks = Blocks(plan.shape, full, dynamics, pool, plan.groups >= SPLIT_GROUPS, read, numbers=numbers)
    blocks.state[..., -1, :] &= packing.lane_masks(plan.lanes)[-1]
    lattices = SiteLattices(plan, blocks, slab and slab.group)
    sweeper, count = SiteSweeper(plan, blocks, lattices), partial(counts, plan, blocks, lattices)
    parts = CpuParts(
        packing.Packing.SITE, blocks, sweeper, count, CpuSiteComparison(plan, lattices).compare, pool,
        bits=lambda sample, replica: of_site_packed(blocks.state[sample, replica], sides),
    )  # fmt: skip
    return CpuEngine(model, replicas, dynamics, parts)


class SiteLattices:
    """The words of a site-packed state and its signs in the form that kernels take.

    Words are (samples, replicas, colours, words), signs (1 or samples, colour, slot, word), without slots where no
    coupling is negative; ``sides`` and ``seams`` are as ``sweep_site`` takes them.
    """

    def __init__(self, plan: SitePlan, blocks: Blocks, group: Group | None) -> None:
        self.sides, self.seams = sides_of(plan.sides), seams_of(plan.sides)
        self.words, self.signs = blocks.state.reshape(*plan.shape[:3], -1), plan.signs
        self.halo = Halo(self.words, plan.layer, plan.lanes, group)

    def signs_of(self, sample: int) -> Words:
        return np.asarray(self.signs[sample % len(self.signs)])


def sides_of(shape: tuple[int, ...]) -> tuple[int, int, int]:
    """Sites of a colour in a row, rows in a plane and planes of a lattice of these sides."""
    x, y, *z = shape
    return x // 2, y, z[0] if z else 1


def counts(plan: SitePlan, blocks: Blocks, lattices: SiteLattices, samples: slice | None = None) -> Counts:
    """Energies and magnetisations of every replica, always of all samples."""
    assert samples is None  # noqa: S101  (whose rounds are never done sample by sample)
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


class SiteSweeper(CpuSweeper):
    """A ``CpuSweeper`` of site-packed words: a round of a lattice of this size is long, and tables are made anew."""

    def __init__(self, plan: SitePlan, blocks: Blocks, lattices: SiteLattices) -> None:
        self.colours, self.tasks = plan.colours, blocks.count * blocks.parts
        self._plan, self._blocks, self.lattices = plan, blocks, lattices
        self._source = rng.split_seed(plan.dynamics.seed), plan.dynamics.rng_rounds
        self._tables: SiteTables

    def set_beta(self, beta: npt.ArrayLike) -> None:
        self._tables = self._plan.tables(check_beta(beta, self._plan.replicas)[None])

    def set_places(self, ladder: Ladder, place: npt.NDArray[np.int32]) -> None:
        self._tables = self._plan.tables(ladder.beta[place])

    def sweep(self, count: int, half_sweep: int) -> None:
        halo = self.lattices.halo
        prepare = None if halo.group is None else lambda colour: halo.fetch(1 - colour)
        self._blocks.sweep(self._sweep_part, count, half_sweep, self.colours, prepare)

    def _sweep_part(
        self, count: int, half_sweep: int, colours: tuple[int, int], part: int, sample: int, replica: int
    ) -> None:
        sweep_site(
            self.lattices.words[sample, replica], self.lattices.halo.of(sample, replica), self.lattices.sides,
            self.lattices.seams, self.lattices.signs_of(sample),
            tuple(array[sample % len(array), replica] for array in self._tables),
            self._plan.first_group, (self._plan.dynamics.counter_block(sample, replica), *self._source),
            np.uint64(half_sweep), count, (*colours, part, self._blocks.parts), self._plan.has_field,
        )  # fmt: skip


class CpuSiteComparison:
    """Comparison of copies at equal temperatures, of site-packed lattices."""

    def __init__(self, plan: SitePlan, lattices: SiteLattices) -> None:
        self._shape, self._sides, self._seams = plan.sides, lattices.sides, lattices.seams
        self._first = plan.lanes - plan.layer  # of the last layer
        self._waves, self._bonds = waves(plan.model.lattice), plan.model.bonds

    def compare(self, words: Words, holder: Integers, results: Compared, samples: slice) -> None:
        of_pairs, sites = results.overlap[0].size, math.prod(self._shape)
        for k, lattices in enumerate(words, samples.start):
            holders = holder[k]
            one, other = compared(holders, holder.shape[1], REFERENCE)
            flat, overlap = lattices.reshape(len(lattices), -1), results.overlap[k]
            differing_lattices(flat, one[:of_pairs], other[:of_pairs], overlap.reshape(-1))
            overlap[...] = sites - 2 * overlap
            if results.link_overlap.size:
                differing = self._differing_bonds(lattices, one[:of_pairs], other[:of_pairs])
                results.link_overlap[k] = self._bonds - 2 * differing.reshape(overlap.shape)
            if results.modes.size:
                in_modes = results.modes[0, k].size
                by_layer = self._differing_in_layers(lattices, one[:in_modes], other[:in_modes])
                for differing, wave, of_axis in zip(by_layer, self._waves, results.modes[:, k], strict=True):
                    squared_modes(differing, sites // len(differing), wave, of_axis.reshape(-1))

    def _differing_bonds(self, words: Words, one: Integers, other: Integers) -> Integers:
        """Return the bonds at which the products of both ends differ, (pairs,)."""
        unsigned = np.empty((2, 0, 0), np.uint64)
        flat = words.reshape(len(words), 2, -1)
        lattices = (flat[a] ^ flat[b] for a, b in zip(one, other, strict=True))
        halos = ((lattice, Halo.periodic(lattice, self._first)) for lattice in lattices)
        counted = (count_site(*each, self._sides, self._seams, unsigned, 0, 1) for each in halos)
        return np.array([unsatisfied for _, unsatisfied, _ in counted], np.int64)

    def _differing_in_layers(self, words: Words, one: Integers, other: Integers) -> list[Integers]:
        """Return the sites of each layer along each axis at which replicas differ, (layers, pairs)."""
        along = [np.zeros((one.size, side), np.int64) for side in (*self._shape, 1)[:3]]
        for p, (a, b) in enumerate(zip(one, other, strict=True)):
            differing = words[a] if b == REFERENCE else words[a] ^ words[b]
            set_in_layers(differing.reshape(2, -1), *self._sides[:2], *(counted[p] for counted in along))
        return [np.ascontiguousarray(counted.T) for counted in along[: len(self._shape)]]
