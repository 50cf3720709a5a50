"""Replica-packed update: the models that it suits, its runs in the form for every device, memory and engines.

``ReplicaPlan`` is a run of a model of one term. ``TermPlan`` is a run with two terms (the anisotropic update); its flip
classes follow from the unsatisfied bonds of each term.
"""

from __future__ import annotations

from functools import cached_property, partial
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from spinsim import packing
from spinsim.acceptance import acceptance, acceptance_of_terms, check_beta, check_betas
from spinsim.engine.dynamics import Dynamics
from spinsim.engine.layouts.replica_packed import CountedBonds
from spinsim.engine.measuring.sums import Linear, observables_of_spins, of_up_and_unsatisfied
from spinsim.engine.moves.metropolis.classes import (
    LEAST_COUNT_BITS,
    MAX_COUNT_BITS,
    MAX_DEGREE,
    MAX_DEGREE_IN_FIELD,
    Classes,
    Limits,
    Tables,
    TermClasses,
    build_tables,
    distinct_of,
)
from spinsim.engine.moves.metropolis.replica_packed.batches import Batches, Costs, build_batches, build_batches_of_terms
from spinsim.engine.update import Pace, Sizes, Update, by_sites, bytes_with_adjacency
from spinsim.errors import InputError
from spinsim.model.graph import MOST_TERMS, colouring
from spinsim.model.hamiltonian import bonds_of_units, most_units
from spinsim.model.ising import Ising
from spinsim.packing import Packing

OTHER_SHIFT: Final = MAX_COUNT_BITS  # in a site's start: bits that differ if the spin is against the field
UP_SHIFT: Final = 2 * MAX_COUNT_BITS  # in a site's start: set if the field is above 0
COLUMNS: Final = 8  # columns read at once; the same number of words follow the last site


def starts(
    batches: Batches, units: npt.NDArray[np.int64], fields: npt.NDArray[np.int64] | None
) -> npt.NDArray[np.uint64]:
    """Initial counts of each site of ``batches.order``, (1 or samples, sites and some words), or (1, 0).

    The lowest bits count unsatisfied phantom bonds. Then come the bits that differ if the field is unsatisfied, and one
    that is set if the field is above 0. ``units`` are the bonds of each site, including those to the spin that is
    always +1.
    """
    if fields is None:
        return np.empty((1, 0), np.uint64)
    order, sizes = batches.order, np.diff(batches.first)
    units, fields = units[order], fields[:, order]
    bits = np.array([max(LEAST_COUNT_BITS, int(most).bit_length()) for most in batches.most])
    full = (1 << np.repeat(bits, sizes)) - 2 + units % 2
    base = (full - units) // 2
    other = base ^ (base + np.abs(fields[0]))
    begins = np.zeros((len(fields), order.size + COLUMNS), np.uint64)
    begins[:, : order.size] = (fields > 0).astype(np.int64) << UP_SHIFT | other << OTHER_SHIFT | base
    return begins


def lone_bonds(fields: npt.NDArray[np.int64] | None) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint8]]:
    """Return ``lone`` and ``positive`` of ``CountedBonds`` for fields in units, (1 or samples, sites)."""
    if fields is None:
        return np.empty(0, np.uint32), np.empty((1, 0), np.uint8)
    units = np.abs(fields[0])
    sites = np.repeat(np.arange(units.size, dtype=np.uint32), units)
    return sites, np.ascontiguousarray(fields[:, sites] > 0, np.uint8)


FEW_BONDS: Final = 7  # with at most this number of bonds and the spin there are 16 classes
FEW_UNITS: Final = 31  # most units without the spin for 16 classes


def is_field_in_class(model: Ising, always: bool) -> bool:
    """Return True if a uniform field is in the class of sites of at most 31 bonds, though it could count as bonds.

    This is so if it gives fewer classes, or if ``always``.
    """
    degree, units = model.graph.largest_degree, model.once(most_units)
    if always or units is None:
        return degree <= MAX_DEGREE_IN_FIELD
    return units > (FEW_UNITS if degree <= FEW_BONDS else MAX_DEGREE)


class ModelPlan:
    """Part of a plan that follows from the model and from the batch size of the kernels.

    Args:
        model: Model with couplings of one magnitude and a uniform field, or with couplings and fields of few units.
        largest_batch: Most sites that the engine's kernel takes at once.
        costs: Costs of batches in that kernel, to group sites of similar degree; else None.
        mixed: True if batches may mix sites of even and odd degree.
        in_class: True if a uniform field is part of the class whenever possible.

    Attributes:
        graph: The counted bonds; a coupling of several units has one parallel bond per unit.
        negative: True where a bond's coupling is below 0, (1 or samples, bonds).
        units: Number of bonds that each site counts, including those to a spin that is always +1, (sites,).
        fields: Number of bonds to that spin, negative if the field is, (1 or samples, sites); None if the class has the
            field.
        used_tables: First and last plus one of the tables that sites use; there is one for each parity of the degree.
        by_degree: True if sites are grouped by degree: the class has no field and counts have more than three bits.
        first: Sites of the first sublattice, which come first in the order; 0 if the model is not bipartite.
        observables: Observables from counts of spins +1, of spins +1 of the first sublattice and of unsatisfied bonds.

    Raises:
        InputError: for a model that cannot be replica-packed.
    """

    def __init__(
        self, model: Ising, largest_batch: int, costs: Costs | None = None, mixed: bool = False, in_class: bool = False
    ) -> None:
        units = bonds_of_units(model, is_field_in_class(model, in_class))
        if units is None:
            raise InputError(f"model {model.name} has couplings or fields of many sizes: it cannot be replica-packed")
        self.graph, self.negative, self.fields, self.units = units.graph, units.negative, units.fields, units.units
        self.has_field, by_units = units.field != 0, units.fields is not None or model.magnitude is None
        least = 2**LEAST_COUNT_BITS if by_units else 0
        self.classes = Classes.of(max(int(self.units.max()), least), units.magnitude, units.field)
        self.counts_of_class = ((self.classes.count_bits, 0), True) if self.has_field else None
        self.weights = units.magnitude, 0, units.field
        self.by_degree = self.classes.count_bits > LEAST_COUNT_BITS and not self.has_field
        colour = colouring(model.graph)
        self.colours = int(colour.max()) + 1
        self.batches = build_batches(
            self.graph, colour, self.classes, self.negative, largest_batch, costs if self.by_degree else None, mixed,
            None if self.fields is None else self.units,
        )  # fmt: skip
        self.first = int(self.batches.first[self.batches.colour_start[1]]) if model.is_bipartite else 0
        self.starts, self.lone = starts(self.batches, self.units, self.fields), lone_bonds(self.fields)
        bonds = self.graph.bonds + self.lone[0].size
        self.observables = of_up_and_unsatisfied(model.sites, bonds, units.magnitude, units.field, self.first)
        parity = self.units % 2
        self.used_tables = int(parity.min()), int(parity.max()) + 1


class ReplicaPlan(ModelPlan):
    """Run of a model of one term."""

    def __init__(
        self, model: Ising, replicas: int, dynamics: Dynamics, largest_batch: int, costs: Costs | None = None,
        mixed: bool = False, in_class: bool = False,
    ) -> None:  # fmt: skip
        shared = model.once(ModelPlan, largest_batch, costs, mixed, in_class)  # shared by many runs
        vars(self).update(vars(shared))
        self.model, self.replicas, self.dynamics = model, replicas, dynamics
        self.lanes = packing.lane_masks(replicas)
        self.shape = (model.samples, len(self.lanes), model.sites, 2)

    @cached_property
    def last_colour(self) -> npt.NDArray[np.uint32]:
        return self.batches.order[self.batches.first[self.batches.colour_start[-2]] :]

    @cached_property
    def phantoms(self) -> int:
        """Number of unsatisfied phantom bonds counted with the bonds of the last colour."""
        degree = self.units[self.last_colour]
        return int((self.classes.padded_degree(0) + degree % 2 - degree).sum()) // 2

    @cached_property
    def counted(self) -> CountedBonds:
        edges, negative = self.graph.edges, self.negative
        return CountedBonds(edges, negative, edges[:0], negative[:, :0], *self.lone, self.phantoms)

    def tables(self, beta: npt.ArrayLike) -> tuple[Tables, Limits]:
        """Acceptance tables for one inverse temperature or each replica's (replicas,), and the limits behind them."""
        distinct, place = distinct_of(check_beta(beta, self.replicas))
        limits = self.limits(distinct)
        return build_tables(limits, place), limits

    def limits(self, beta: npt.NDArray[np.float64]) -> Limits:
        costs = self.classes.costs[..., None]
        return Limits(*acceptance(costs, beta * self.model.quantum, self.dynamics.zero_acceptance))


WORD_BYTES: Final = 16  # bytes of a site of 128 replicas
MOST_UNITS: Final = 127  # most units of a site's couplings and field: beyond, local fields are faster for hot replicas
UNIT_BYTES: Final = 64  # bytes of a bond, which is stored once for each unit of its coupling


def suits(sizes: Sizes, _: int) -> bool:
    """Return True for one term, with one magnitude of couplings and a uniform field, or few units of both."""
    if sizes.in_terms:
        return False
    if sizes.one_magnitude and sizes.one_field:
        largest = MAX_DEGREE_IN_FIELD if sizes.in_field else MAX_DEGREE
        if sizes.largest_degree <= largest:
            return True
    units, most = sizes.most_units, MOST_UNITS
    if units is None:
        return False
    if sizes.one_magnitude:  # fields may then be as strong as bonds
        most = max(most, min(MAX_DEGREE, 2 * sizes.largest_degree))
    return units <= most


def needed_bytes(sizes: Sizes, replicas: int) -> int:
    units = 0 if sizes.one_magnitude and sizes.one_field else sizes.sites * (sizes.most_units or 0) // 2
    return bytes_with_adjacency(sizes, replicas, WORD_BYTES) + units * UNIT_BYTES


REPLICA_PACKED: Final = Update(
    Packing.REPLICA, suits, needed_bytes, by_sites, f"{__package__}.cpu:engine", f"{__package__}.cuda:engine"
)


class TermPlan:
    """A ``PackedRun`` of a model of two terms, each with couplings of one magnitude, and a uniform field."""

    by_degree = False
    starts = np.empty((1, 0), np.uint64)

    def __init__(self, model: Ising, replicas: int, dynamics: Dynamics, largest_batch: int) -> None:
        terms, magnitudes, field = model.terms, model.term_magnitudes, model.uniform_field
        if terms is None or magnitudes is None or field is None:
            raise InputError(f"model {model.name} has no two terms of one magnitude each: state the term of every bond")
        self.model, self.replicas, self.dynamics = model, replicas, dynamics
        colour, negative = colouring(model.graph), model.negative_bonds()
        self.colours = int(colour.max()) + 1
        self.batches, kinds = build_batches_of_terms(model.graph, terms, colour, negative, largest_batch)
        self.first = int(np.count_nonzero(colour == 0)) if model.is_bipartite else 0
        grounds = [-size * int(np.count_nonzero(terms == term)) for term, size in enumerate(magnitudes)]
        of_first = Linear({"up": -2 * field, "unsatisfied_0": 2 * magnitudes[0]}, grounds[0] + field * model.sites)
        of_second = Linear({"unsatisfied_1": 2 * magnitudes[1]}, grounds[1])
        sums = ("up", "unsatisfied_0", "unsatisfied_1", "up_first")
        self.observables = observables_of_spins(sums, model.sites, self.first, of_first, of_second)
        self.classes = TermClasses(kinds, magnitudes, field)
        self.used_tables = 0, self.classes.tables
        mine = [terms == term for term in range(MOST_TERMS)]
        edges, others = (np.ascontiguousarray(model.graph.edges[bonds]) for bonds in mine)
        signs, other_signs = (np.ascontiguousarray(negative[:, bonds]) for bonds in mine)
        self.counted = CountedBonds(edges, signs, others, other_signs, *lone_bonds(None), 0)
        self.counts_of_class, self.weights = (self.classes.count_bits, field != 0), (*magnitudes, field)
        self.lanes = packing.lane_masks(replicas)
        self.shape = (model.samples, len(self.lanes), model.sites, 2)

    def tables(self, beta: npt.ArrayLike) -> tuple[Tables, Limits]:
        """Acceptance tables for inverse temperatures as in ``check_betas``, and the limits that they follow from."""
        distinct, place = distinct_of(check_betas(beta, self.replicas))
        limits = self.limits(distinct)
        return build_tables(limits, place), limits

    def limits(self, beta: npt.NDArray[np.float64]) -> Limits:
        """Limits that decide flips at pairs of inverse temperatures (temperatures, 2): (kind, class, temperature)."""
        costs = self.classes.costs()[:, :, None]
        scaled = beta * self.model.quantum
        certain, thresholds = acceptance_of_terms(costs, scaled, self.dynamics.zero_acceptance)
        return Limits(np.ascontiguousarray(certain), np.ascontiguousarray(thresholds))  # in the form that kernels read


PackedRun: TypeAlias = ReplicaPlan | TermPlan  # run with a replica-packed state, for any energy


def suits_terms(sizes: Sizes, _: int) -> bool:
    """Return True for two terms of one magnitude each and a uniform field, if classes have at most six bits."""
    degrees = sizes.degrees_of_terms
    return degrees is not None and sizes.one_field and TermClasses.fit(degrees, sizes.in_field)


ANISOTROPIC: Final = Update(
    *(Packing.ANISOTROPIC, suits_terms, partial(bytes_with_adjacency, bytes_a_site=WORD_BYTES), by_sites),
    *(f"{__package__}.cpu:engine_of_terms", f"{__package__}.cuda:engine_of_terms"),
    pace=Pace(600, in_one_call=False),
)
