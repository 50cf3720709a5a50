"""Site-packed spins on the CPU: one task for each (sample, replica), or several that share its rows."""

from __future__ import annotations

import math
from functools import partial
from typing import Final

import numpy as np
import numpy.typing as npt

from spinsim import packing, rng
from spinsim.bits import of_site_packed, unpacked_spins
from spinsim.engine.cpu import CpuEngine, CpuParts, CpuSweeper
from spinsim.engine.dynamics import NO_TEMPERATURE, Dynamics
from spinsim.engine.layouts.replica_packed.cpu_blocks import Blocks
from spinsim.engine.layouts.site_packed.cpu_words import Halo, count_site, differing_lattices, periodic, set_in_layers
from spinsim.engine.measuring.correlations import compared, waves
from spinsim.engine.measuring.cpu import Compared, Integers, Words
from spinsim.engine.measuring.cpu_comparison import squared_modes
from spinsim.engine.moves.exchange.ladder import Ladder
from spinsim.engine.moves.metropolis.site_packed.cpu_sweep import sweep_site
from spinsim.engine.moves.metropolis.site_packed.update import SitePlan, SiteTables
from spinsim.engine.protocols import Counts
from spinsim.engine.update import Slab
from spinsim.errors import InputError
from spinsim.machine.threads import Threads
from spinsim.model.ising import Ising
from spinsim.parallel.group import Group

REFERENCE: Final = -1  # number of a replica that stands for all spins -1
SPLIT_GROUPS: Final = 2**13  # of a colour: from here on, starting threads costs less than a half-sweep


def engine(
    model: Ising, replicas: int, dynamics: Dynamics, threads: int | None = None, slab: Slab | None = None
) -> CpuEngine:
    """The engine of couplings of one magnitude and a uniform field on lattices whose ``rows_can_be_packed``.

    Args:
        slab: What it has of the lattice; None for all.
    """
    plan, pool = SitePlan(model, replicas, dynamics, slab and slab.layers), Threads(threads)
    sides = plan.sides
    full = np.full((replicas, 2), 2**64 - 1, np.uint64)

    def read(words: Words, replica: int) -> npt.NDArray[np.int8]:
        return unpacked_spins(of_site_packed(words[replica], sides), math.prod(sides))

    numbers = plan.first_group, plan.all_groups + plan.first_group
    blocks = Blocks(plan.shape, full, dynamics, pool, plan.groups >= SPLIT_GROUPS, read, numbers=numbers)
    lattices = SiteLattices(plan, blocks, slab and slab.group)
    sweeper, count = SiteSweeper(plan, blocks, lattices), partial(counts, plan, blocks, lattices)
    parts = CpuParts(
        packing.Packing.SITE, blocks, sweeper, count, CpuSiteComparison(plan, lattices).compare, pool,
        bits=lambda sample, replica: of_site_packed(blocks.state[sample, replica], sides),
    )  # fmt: skip
    return CpuEngine(model, replicas, dynamics, parts)


class SiteLattices:
    """The words of a site-packed state and its signs in the form that kernels take.

    Attributes:
        words: The state as (samples, replicas, colours, groups, 2).
        signs: (1 or samples, colour, slot, group, half), without slots where no coupling is negative.
    """

    def __init__(self, plan: SitePlan, blocks: Blocks, group: Group | None) -> None:
        samples, replicas, colours, rows, width, _ = plan.shape
        height = plan.sides[1]
        self.sides = width, height, rows // height
        self.words = blocks.state.reshape(samples, replicas, colours, plan.groups, 2)
        signs = np.empty((1, colours, 0, rows, width, 2), np.uint64) if plan.signs is None else plan.signs
        self.signs = signs.reshape(*signs.shape[:3], plan.groups, 2)
        self.halo = Halo(self.words, plan.edge, group)

    def signs_of(self, sample: int) -> Words:
        return np.asarray(self.signs[sample % len(self.signs)])


def counts(plan: SitePlan, blocks: Blocks, lattices: SiteLattices, samples: slice | None = None) -> Counts:
    """Energies and magnetisations of every replica, always of all samples."""
    assert samples is None  # noqa: S101  (whose rounds are never done sample by sample)
    names = plan.observables.sums
    lattices.halo.fetch(1)
    totals = np.zeros((len(names), blocks.parts, *plan.shape[:2]), np.int64)

    def count(part: int, sample: int, replica: int) -> None:
        lattice, signs = lattices.words[sample, replica], lattices.signs_of(sample)
        halo = lattices.halo.of(sample, replica)
        totals[:, part, sample, replica] = count_site(lattice, halo, lattices.sides, signs, part, blocks.parts)

    blocks.each(count, blocks.parts)
    return plan.observables.counts(dict(zip(names, totals.sum(axis=1), strict=True)))


class SiteSweeper(CpuSweeper):
    """A ``CpuSweeper`` of site-packed words: a round of a lattice of this size is long, and tables are made anew."""

    def __init__(self, plan: SitePlan, blocks: Blocks, lattices: SiteLattices) -> None:
        self.colours, self.tasks = plan.colours, blocks.count * blocks.parts
        self._plan, self._blocks, self.lattices = plan, blocks, lattices
        self._source = rng.split_seed(plan.dynamics.seed), plan.dynamics.rng_rounds
        self._tables: SiteTables | None = None

    def set_beta(self, beta: npt.ArrayLike) -> None:
        self._tables = self._plan.tables(beta)

    def set_places(self, ladder: Ladder, place: npt.NDArray[np.int32]) -> None:
        self._tables = self._plan.tables_at(ladder, place)

    def sweep(self, count: int, half_sweep: int) -> None:
        if self._tables is None:
            raise InputError(NO_TEMPERATURE)
        halo = self.lattices.halo
        prepare = None if halo.group is None else lambda colour: halo.fetch(1 - colour)
        self._blocks.sweep(self._sweep_part, count, half_sweep, self.colours, prepare)

    def _sweep_part(
        self, count: int, half_sweep: int, colours: tuple[int, int], part: int, sample: int, replica: int
    ) -> None:
        assert self._tables is not None  # noqa: S101  (``sweep`` has looked)
        sweep_site(
            self.lattices.words[sample, replica], self.lattices.halo.of(sample, replica), self.lattices.sides,
            self.lattices.signs_of(sample), tuple(array[sample % len(array), replica] for array in self._tables),
            self._plan.first_group, (self._plan.dynamics.counter_block(sample, replica), *self._source),
            np.uint64(half_sweep), count, (*colours, part, self._blocks.parts), self._plan.has_field,
        )  # fmt: skip


class CpuSiteComparison:
    """Comparison of copies at equal temperatures, of site-packed lattices."""

    def __init__(self, plan: SitePlan, lattices: SiteLattices) -> None:
        self._shape, self._groups, self._sides, self._edge = plan.sides, plan.groups, lattices.sides, plan.edge
        self._waves, self._bonds = waves(plan.model.lattice), plan.model.bonds

    def compare(self, words: Words, holder: Integers, found: Compared, samples: slice) -> None:
        of_pairs, sites = found.overlap[0].size, math.prod(self._shape)
        for k, lattices in enumerate(words, samples.start):
            holders = holder[k]
            one, other = compared(holders, holder.shape[1], REFERENCE)
            flat, overlap = lattices.reshape(len(lattices), -1), found.overlap[k]
            differing_lattices(flat, one[:of_pairs], other[:of_pairs], overlap.reshape(-1))
            overlap[...] = sites - 2 * overlap
            if found.link_overlap.size:
                differing = self._differing_bonds(lattices, one[:of_pairs], other[:of_pairs])
                found.link_overlap[k] = self._bonds - 2 * differing.reshape(overlap.shape)
            if found.modes.size:
                in_modes = found.modes[0, k].size
                by_layer = self._differing_in_layers(lattices, one[:in_modes], other[:in_modes])
                for differing, wave, of_axis in zip(by_layer, self._waves, found.modes[:, k], strict=True):
                    squared_modes(differing, sites // len(differing), wave, of_axis.reshape(-1))

    def _differing_bonds(self, words: Words, one: Integers, other: Integers) -> Integers:
        """Return the bonds at which the products of both ends differ, (pairs,)."""
        unsigned = np.empty((2, 0, self._groups, 2), np.uint64)
        flat = words.reshape(len(words), 2, self._groups, 2)
        lattices = (flat[a] ^ flat[b] for a, b in zip(one, other, strict=True))
        halos = ((lattice, periodic(lattice, self._edge)) for lattice in lattices)
        return np.array([count_site(*each, self._sides, unsigned, 0, 1)[1] for each in halos], np.int64)

    def _differing_in_layers(self, words: Words, one: Integers, other: Integers) -> list[Integers]:
        """Return the sites of each layer along each axis at which replicas differ, (layers, pairs)."""
        along = [np.zeros((one.size, side), np.int64) for side in (*self._shape, 1)[:3]]
        for p, (a, b) in enumerate(zip(one, other, strict=True)):
            differing = words[a] if b == REFERENCE else words[a] ^ words[b]
            lattice = differing.reshape(2, math.prod(self._shape[1:]), -1)
            set_in_layers(lattice, self._shape[1], *(counted[p] for counted in along))
        return [np.ascontiguousarray(counted.T) for counted in along[: len(self._shape)]]
