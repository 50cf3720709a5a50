"""A run of an energy of two terms as every device needs it: the order of the sites, couplings, acceptance limits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from spinsim import packing
from spinsim.acceptance import acceptance_of_terms, check_betas
from spinsim.engine.dynamics import Dynamics
from spinsim.engine.layouts.replica_packed.cpu_counting import CountedBonds
from spinsim.engine.measuring.sums import Integers, Linear, Observables
from spinsim.engine.moves.metropolis.packed.batches import build_batches_of_terms
from spinsim.engine.moves.metropolis.packed.classes import Limits, Tables, tables_of_lanes
from spinsim.engine.moves.metropolis.replica_packed.plan import LoneBonds
from spinsim.errors import InputError
from spinsim.model.graph import MOST_TERMS, colouring
from spinsim.model.ising import Ising

LEAST_CLASS_BITS, MOST_CLASS_BITS = 4, 6  # of which kernels are made


def bits_of_counts(degrees: tuple[int, ...], in_field: bool) -> tuple[int, int]:
    """Bits of the count of each term, where sites have at most so many bonds of it."""
    first, second = (max(1, degree.bit_length()) for degree in degrees)
    return first, max(second, LEAST_CLASS_BITS - in_field - first)


@dataclass(frozen=True)
class TermClasses:
    """Flip classes of a model of two terms.

    Attributes:
        kinds: Bonds of each term, phantom ones included, of every kind of site, (kinds, 2).
        magnitudes: |J| of each term in quanta.
        field: h in quanta.
    """

    kinds: npt.NDArray[np.int64]
    magnitudes: tuple[int, ...]
    field: int

    @property
    def count_bits(self) -> tuple[int, int]:
        """Bits of the count of each term."""
        return bits_of_counts(tuple(self.kinds.max(axis=0).tolist()), bool(self.field))

    @property
    def bits(self) -> int:
        """Bits of a class."""
        return sum(self.count_bits) + bool(self.field)

    @property
    def tables(self) -> int:
        """Kinds of sites, each with a table of its own."""
        return len(self.kinds)

    def costs(self) -> npt.NDArray[np.int64]:
        """Flip costs of each term in quanta, (kinds, classes, 2); no site has a class of more bonds than its kind."""
        first, second = self.count_bits
        index = np.arange(2**self.bits)
        counts = np.stack([index & (2**first - 1), index >> first & (2**second - 1)], axis=-1)
        costs = 2 * np.array(self.magnitudes) * (self.kinds[:, None] - 2 * counts)
        costs[..., 0] += 2 * self.field * np.where(index >> (first + second), 1, -1)
        return np.asarray(costs)


class TermPlan:
    """A ``PackedRun`` of a model of two terms.

    Args:
        model: Couplings of one magnitude in each term, and a uniform field.
        replicas: Replicas of each sample.
        dynamics: How they move.
        largest_batch: Sites that the engine's kernel takes at once.

    Attributes:
        edges: Bonds of each term, (bonds of it, 2).
        negative: Of each term which couplings are below 0, (1 or samples, bonds of it).
        classes: Flip classes.

    Raises:
        InputError: for a model without two such terms.
    """

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
        self.observables = observables_of(model, magnitudes, field, self.first)
        self.classes = TermClasses(kinds, magnitudes, field)
        self.used_tables = 0, self.classes.tables
        mine = [terms == term for term in range(MOST_TERMS)]
        self.edges = [np.ascontiguousarray(model.graph.edges[bonds]) for bonds in mine]
        self.negative = [np.ascontiguousarray(negative[:, bonds]) for bonds in mine]
        self.lanes = packing.lane_masks(replicas)
        self.shape = (model.samples, len(self.lanes), model.sites, 2)

    @property
    def counts_of_class(self) -> tuple[tuple[int, int], bool]:
        return self.classes.count_bits, self.classes.field != 0

    @property
    def weights(self) -> tuple[int, int, int]:
        first, second = self.classes.magnitudes
        return first, second, self.classes.field

    @property
    def counted(self) -> CountedBonds:
        (edges, others), (negative, others_negative) = self.edges, self.negative
        return CountedBonds(edges, negative, others, others_negative, *LoneBonds.of(None), 0)

    def tables(self, beta: npt.ArrayLike) -> tuple[Tables, Limits]:
        """Acceptance tables for inverse temperatures as ``check_betas`` takes them, and what they follow from."""
        betas = check_betas(beta, self.replicas)
        lanes = np.concatenate([betas, np.tile(betas[-1:], (self.shape[1] * packing.LANES - self.replicas, 1))])
        distinct, place = np.unique(lanes, axis=0, return_inverse=True)
        limits = self.limits(distinct)
        return tables_of_lanes(limits, place.reshape(-1)), limits

    def limits(self, beta: npt.NDArray[np.float64]) -> Limits:
        """Limits that decide flips at pairs of inverse temperatures (temperatures, 2): (kind, class, temperature)."""
        costs = self.classes.costs()[:, :, None]
        scaled = beta * self.model.quantum
        certain, thresholds = acceptance_of_terms(costs, scaled, self.dynamics.zero_acceptance)
        return Limits(np.ascontiguousarray(certain), np.ascontiguousarray(thresholds))  # as kernels read them


def observables_of(model: Ising, magnitudes: tuple[int, ...], field: int, first: int) -> Observables:
    """From spins +1, ``up``, unsatisfied bonds of each term, and the spins +1 of the first sublattice, ``up_first``.

    Args:
        model: Bonds of two terms, each with couplings of one magnitude, and a uniform field, which belongs to term 0.
        magnitudes: |J| of each term in quanta.
        field: h in quanta.
        first: Sites of the first sublattice, 0 where the model is not bipartite.
    """
    assert model.terms is not None  # noqa: S101  (there are two)
    names = ("up", "unsatisfied_0", "unsatisfied_1", "up_first")
    ground = [-magnitude * int(np.count_nonzero(model.terms == term)) for term, magnitude in enumerate(magnitudes)]
    ground[0] += field * model.sites
    weights = np.array([[-2 * field, 2 * magnitudes[0], 0, 0], [0, 0, 2 * magnitudes[1], 0]])
    there = 1 if first else 0

    def linear(of_sums: Integers, constant: int) -> Linear:
        return Linear(dict(zip(names, of_sums.tolist(), strict=True)), constant)

    return Observables(
        energy=linear(weights.sum(axis=0), sum(ground)),
        magnetization=linear(np.array([2, 0, 0, 0]), -model.sites),
        staggered_magnetization=linear(np.array([-2 * there, 0, 0, 4]), there * (model.sites - 2 * first)),
        terms=tuple(map(linear, weights, ground)),
    )
