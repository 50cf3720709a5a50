"""What engines of one packing share, whatever the device: the order of the sites, the tables, integers from counts."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim import packing
from spinsim.acceptance import ZERO_ACCEPTANCE, acceptance, check_beta
from spinsim.engine.base import Counts, Dynamics, is_site_packed
from spinsim.engine.batches import build_batches
from spinsim.engine.exchange import Ladder
from spinsim.engine.site_signs import build_signs
from spinsim.engine.tables import OWN_PLANES, Classes, SiteTables, Tables, build_site_tables, build_tables
from spinsim.errors import InputError
from spinsim.model.colouring import adjacency, colouring
from spinsim.model.ising import Ising

WORDS = 4  # replicas served by one Philox call of the general update


class Linear(NamedTuple):
    """``one`` times the first of two sums, ``other`` times the second and a constant."""

    one: int
    other: int
    constant: int

    def of(self, one: npt.NDArray[np.int64], other: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Exact integers."""
        return self.one * one + self.other * other + self.constant


class Observables(NamedTuple):
    """What follows from the two sums that a counting kernel makes of every replica.

    Attributes:
        energy: Total energy in quanta.
        magnetization: Sum of spins.
    """

    energy: Linear
    magnetization: Linear

    def counts(self, one: npt.NDArray[np.int64], other: npt.NDArray[np.int64]) -> Counts:
        """Of the two sums, (samples, replicas)."""
        return Counts(self.energy.of(one, other), self.magnetization.of(one, other))


def _of_up_and_unsatisfied(model: Ising, magnitude: int, field: int) -> Observables:
    """From the spins +1 and the unsatisfied bonds of a model of one magnitude and a uniform field."""
    ground = field * model.sites - magnitude * model.bonds  # all spins -1, all bonds satisfied
    return Observables(Linear(-2 * field, 2 * magnitude, ground), Linear(2, 0, -model.sites))


class Limits(NamedTuple):
    """What decides flips at some temperatures, (parity of the degree, class, temperature).

    Attributes:
        certain: Whether a flip needs no random number.
        thresholds: Else its threshold.
    """

    certain: npt.NDArray[np.bool_]
    thresholds: npt.NDArray[np.uint64]


class PackedPlan:
    """A replica-packed run of a model.

    Args:
        model: Couplings of one magnitude and a uniform field.
        replicas: Replicas of each sample.
        dynamics: How they move.
        largest_batch: Sites that the engine's kernel takes at once.

    Attributes:
        shape: Of the packed state, (samples, blocks, sites, 2).
        batches: The order of the sites.
        negative: Which couplings are below 0, (1 or samples, bonds).
        lanes: Lanes in use, uint64 (blocks, 2).
        classes: Flip classes.
        has_field: Whether the spin is part of the class.
        colours: Half-sweeps in a sweep.
        observables: From the spins +1 and the unsatisfied bonds.

    Raises:
        InputError: for a model that cannot be replica-packed.
    """

    def __init__(self, model: Ising, replicas: int, dynamics: Dynamics, largest_batch: int) -> None:
        magnitude, field = model.magnitude, model.uniform_field
        if magnitude is None or field is None:
            raise InputError(f"model {model.name} has couplings or fields of many sizes: it cannot be replica-packed")
        self.model, self.replicas, self.dynamics = model, replicas, dynamics
        self.observables = _of_up_and_unsatisfied(model, magnitude, field)
        self.has_field = field != 0
        self.classes = Classes.of(int(model.graph.degrees().max()), magnitude, field)
        colour = colouring(model.graph)
        self.colours = int(colour.max()) + 1
        self.negative = model.negative_bonds()
        self.batches = build_batches(model.graph, colour, self.classes, self.negative, largest_batch)
        self.lanes = packing.lane_masks(replicas)
        self.shape = (model.samples, len(self.lanes), model.sites, 2)

    def tables(self, beta: npt.ArrayLike) -> Tables:
        """Acceptance tables for an inverse temperature or one for each replica (replicas,)."""
        betas = check_beta(beta, self.replicas) * self.model.quantum
        return build_tables(self.classes, betas, self.dynamics.zero_acceptance)

    def limits(self, beta: npt.NDArray[np.float64]) -> Limits:
        """What decides flips at inverse temperatures ``beta``."""
        costs = self.classes.costs()[..., None]
        return Limits(*acceptance(costs, beta * self.model.quantum, self.dynamics.zero_acceptance))


class SitePlan:
    """A site-packed run of a model.

    Args:
        model: Couplings of one magnitude and a uniform field on a lattice whose ``rows_fill_groups``.
        replicas: Replicas of each sample.
        dynamics: How they move.

    Attributes:
        shape: Of the packed state, (samples, replicas, colours, rows, groups in a row, 2).
        lattice: The model's lattice.
        groups: Groups of 128 lanes of one colour.
        signs: As ``site_signs.build_signs`` makes them; None where no coupling is below 0.
        classes: Flip classes.
        has_field: Whether the spin is part of the class.
        colours: Half-sweeps in a sweep.
        observables: From the spins +1 and the unsatisfied bonds.

    Raises:
        InputError: for a model that cannot be site-packed.
    """

    colours = 2

    def __init__(self, model: Ising, replicas: int, dynamics: Dynamics) -> None:
        lattice, magnitude, field = model.lattice, model.magnitude, model.uniform_field
        if lattice is None or magnitude is None or field is None or not is_site_packed(model):
            raise InputError(
                f"model {model.name} cannot be site-packed: take couplings of one magnitude, a uniform field and a "
                "periodic lattice of even sides, the first a multiple of 256"
            )
        self.model, self.replicas, self.dynamics = model, replicas, dynamics
        self.observables = _of_up_and_unsatisfied(model, magnitude, field)
        self.lattice = lattice
        self.has_field = field != 0
        self.classes = Classes.of(2 * lattice.dimension, magnitude, field)
        self.shape = (model.samples, replicas, *packing.site_shape(lattice.shape))
        self.groups = model.sites // (2 * packing.LANES)
        self.signs = build_signs(lattice.shape, model.negative_bonds())

    def tables(self, beta: npt.ArrayLike) -> SiteTables:
        """Acceptance tables for an inverse temperature or one for each replica (replicas,)."""
        return self._tables(check_beta(beta, self.replicas)[None])

    def tables_at(self, ladder: Ladder, place: npt.NDArray[np.int32]) -> SiteTables:
        """The tables of samples whose replicas are at temperatures ``place`` (samples, replicas) of a ladder."""
        return self._tables(ladder.beta[place])

    def _tables(self, beta: npt.NDArray[np.float64]) -> SiteTables:
        return build_site_tables(self.classes, beta * self.model.quantum, self.dynamics.zero_acceptance)

    def limits(self, beta: npt.NDArray[np.float64]) -> Limits:
        """What decides flips at inverse temperatures ``beta``, of even degrees alone."""
        costs = self.classes.costs()[:1, :, None]
        return Limits(*acceptance(costs, beta * self.model.quantum, self.dynamics.zero_acceptance))


class Kind(IntEnum):
    """Special cases of the packed update with kernels of their own, ``Kind`` of group.cuh.

    ANY: none. PLAIN: only gains flip for certain, no field, the default zero-cost rule. COLD: besides, only the
    smallest cost is accepted with a probability of 2^-OWN_PLANES or more.
    """

    ANY = 0
    PLAIN = 1
    COLD = 2


def kind_of(plan: PackedPlan | SitePlan, beta: npt.NDArray[np.float64]) -> Kind:
    """The special case of a run at inverse temperatures ``beta``; its sites of odd degree are at most ``PLAIN``."""
    limits = plan.limits(np.unique(beta))
    if plan.has_field or plan.dynamics.zero_acceptance != ZERO_ACCEPTANCE or limits.certain.any():
        return Kind.ANY
    return Kind.PLAIN if (limits.thresholds[0, :2] >> np.uint64(64 - OWN_PLANES)).any() else Kind.COLD


class GeneralPlan:
    """An unpacked run of a model.

    Attributes:
        order: Sites, colour by colour.
        colour_start: Colour c has ``order[colour_start[c]:colour_start[c + 1]]``.
        start: Those of site i are ``neighbour[start[i]:start[i + 1]]``.
        neighbour: Neighbours in compressed rows.
        couplings: J of each neighbour in quanta, (1 or samples, neighbours), int32 where local fields fit, else int64.
        fields: h in quanta, (1 or samples, sites), of the same type.
        colours: Half-sweeps in a sweep.
        observables: From energies and the spins -1.
    """

    def __init__(self, model: Ising) -> None:
        self.observables = Observables(Linear(1, 0, 0), Linear(0, -2, model.sites))
        near = adjacency(model.graph)
        colour = colouring(model.graph)
        self.colours = int(colour.max()) + 1
        self.order = np.argsort(colour, kind="stable").astype(np.uint32)
        self.colour_start = np.searchsorted(colour[self.order], np.arange(self.colours + 1))
        self.start, self.neighbour = near.start, near.neighbour.astype(np.uint32)
        width = np.int32 if 2 * model.largest_local_field < 2**31 else np.int64
        rows = range(len(model.couplings)), range(len(model.fields))
        self.couplings = np.stack([model.integer_couplings(k)[near.bond].astype(width) for k in rows[0]])
        self.fields = np.stack([model.integer_fields(k).astype(width) for k in rows[1]])

    @staticmethod
    def double_beta(model: Ising, beta: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Twice ``beta`` (1 or samples, replicas) times the quantum, of replicas padded to whole Philox calls."""
        padding = np.repeat(beta[:, -1:], -beta.shape[1] % WORDS, axis=1)
        return np.asarray(2.0 * model.quantum * np.append(beta, padding, axis=1))
