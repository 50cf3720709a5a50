"""The update of an energy of two terms: what it suits, its run as every device needs it, memory, engines."""

from __future__ import annotations

from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from spinsim import packing
from spinsim.acceptance import acceptance_of_terms, check_betas
from spinsim.engine.dynamics import Dynamics
from spinsim.engine.layouts.replica_packed.cpu_counting import CountedBonds
from spinsim.engine.measuring.sums import Linear, observables_of_spins
from spinsim.engine.moves.metropolis.packed.batches import build_batches_of_terms
from spinsim.engine.moves.metropolis.packed.classes import Limits, Tables, TermClasses, build_tables, distinct_of
from spinsim.engine.moves.metropolis.replica_packed.update import WORD_BYTES, ReplicaPlan, lone_bonds
from spinsim.engine.update import Outline, Pace, Update, by_sites, bytes_with_adjacency
from spinsim.errors import InputError
from spinsim.model.graph import MOST_TERMS, colouring
from spinsim.model.ising import Ising
from spinsim.packing import Packing


class TermPlan:
    """A ``PackedRun`` of a model of two terms, of couplings of one magnitude in each and a uniform field."""

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
        """Acceptance tables for inverse temperatures as ``check_betas`` takes them, and what they follow from."""
        distinct, place = distinct_of(check_betas(beta, self.replicas))
        limits = self.limits(distinct)
        return build_tables(limits, place), limits

    def limits(self, beta: npt.NDArray[np.float64]) -> Limits:
        """Limits that decide flips at pairs of inverse temperatures (temperatures, 2): (kind, class, temperature)."""
        costs = self.classes.costs()[:, :, None]
        scaled = beta * self.model.quantum
        certain, thresholds = acceptance_of_terms(costs, scaled, self.dynamics.zero_acceptance)
        return Limits(np.ascontiguousarray(certain), np.ascontiguousarray(thresholds))  # as kernels read them


PackedRun: TypeAlias = ReplicaPlan | TermPlan  # a run whose state is replica-packed, whatever its energy is


def suits(outline: Outline) -> bool:
    """Return True for two terms of one magnitude each and a uniform field, if classes have at most six bits."""
    degrees = outline.degrees_of_terms
    return degrees is not None and outline.one_field and TermClasses.fit(degrees, outline.in_field)


def needed_bytes(outline: Outline, replicas: int) -> int:
    return bytes_with_adjacency(outline, replicas, WORD_BYTES)


ENGINE_ON_CPU: Final = "spinsim.engine.moves.metropolis.replica_packed.cpu:engine_of_terms"
UPDATE: Final = Update(
    *(Packing.ANISOTROPIC, suits, needed_bytes, by_sites, ENGINE_ON_CPU, f"{__package__}.cuda:engine"),
    pace=Pace(600, in_one_call=False),
)
