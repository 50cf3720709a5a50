"""The update of an energy of two terms: what it suits, its run as every device needs it, memory, engines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from spinsim import packing
from spinsim.acceptance import acceptance_of_terms, check_betas
from spinsim.engine.dynamics import Dynamics
from spinsim.engine.layouts.replica_packed.cpu_counting import BATCH, CountedBonds
from spinsim.engine.measuring.sums import Linear, observables_of_spins
from spinsim.engine.moves.metropolis.packed.batches import build_batches_of_terms
from spinsim.engine.moves.metropolis.packed.classes import Limits, Tables, tables_of_lanes
from spinsim.engine.moves.metropolis.replica_packed.update import WORD_BYTES, LoneBonds, pack
from spinsim.engine.protocols import Engine
from spinsim.engine.update import Outline, Pace, Update, by_sites, bytes_with_adjacency, engine_of
from spinsim.errors import InputError
from spinsim.model.graph import MOST_TERMS, colouring
from spinsim.model.ising import Ising
from spinsim.packing import Packing

LEAST_CLASS_BITS, MOST_CLASS_BITS = 4, 6  # of which kernels are made


def bits_of_counts(degrees: tuple[int, ...], in_field: bool) -> tuple[int, int]:
    """Bits of the count of each term, where sites have at most so many bonds of it."""
    first, second = (max(1, degree.bit_length()) for degree in degrees)
    return first, max(second, LEAST_CLASS_BITS - in_field - first)


@dataclass(frozen=True)
class TermClasses:
    """Flip classes of a model of two terms."""

    kinds: npt.NDArray[np.int64]  # bonds of each term, phantom ones included, of every kind of site, (kinds, 2)
    magnitudes: tuple[int, ...]  # |J| of each term in quanta
    field: int  # h in quanta

    @property
    def count_bits(self) -> tuple[int, int]:
        return bits_of_counts(tuple(self.kinds.max(axis=0).tolist()), bool(self.field))

    @property
    def bits(self) -> int:
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
        largest_batch: Sites that the engine's kernel takes at once.

    Attributes:
        edges: Bonds of each term, (bonds of it, 2).
        negative: Of each term which couplings are below 0, (1 or samples, bonds of it).
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
        grounds = [-size * int(np.count_nonzero(terms == term)) for term, size in enumerate(magnitudes)]
        of_first = Linear({"up": -2 * field, "unsatisfied_0": 2 * magnitudes[0]}, grounds[0] + field * model.sites)
        of_second = Linear({"unsatisfied_1": 2 * magnitudes[1]}, grounds[1])
        sums = ("up", "unsatisfied_0", "unsatisfied_1", "up_first")
        self.observables = observables_of_spins(sums, model.sites, self.first, of_first, of_second)
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


def suits(outline: Outline) -> bool:
    """Return True for two terms of one magnitude each and a uniform field, if classes have at most six bits."""
    degrees, field = outline.degrees_of_terms, outline.in_field
    if degrees is None or not outline.one_field:
        return False
    return sum(bits_of_counts(degrees, field)) + field <= MOST_CLASS_BITS


def needed_bytes(outline: Outline, replicas: int) -> int:
    return bytes_with_adjacency(outline, replicas, WORD_BYTES)


def _on_cpu(model: Ising, replicas: int, dynamics: Dynamics, threads: int | None) -> Engine:
    from spinsim.engine.moves.metropolis.replica_packed import cpu

    plan = TermPlan(model, replicas, dynamics, BATCH)
    return cpu.engine_of(plan, threads, Packing.ANISOTROPIC, (MOST_TERMS,))


on_cuda = engine_of(f"{__package__}.cuda")

UPDATE: Final = Update(
    *(Packing.ANISOTROPIC, suits, needed_bytes, by_sites, pack, _on_cpu, on_cuda), pace=Pace(600, in_one_call=False)
)
