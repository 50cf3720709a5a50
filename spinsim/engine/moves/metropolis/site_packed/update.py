"""Site-packed update, for periodic lattices of even sides: its run, memory and counters."""

from __future__ import annotations

from functools import cached_property
from math import prod
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim import packing
from spinsim.acceptance import acceptance
from spinsim.engine.dynamics import Dynamics
from spinsim.engine.layouts.site_packed import build_signs, can_be_held, suits
from spinsim.engine.measuring.sums import of_up_and_unsatisfied
from spinsim.engine.moves.metropolis.classes import PLANES, Classes, Kind, Limits, kind_of
from spinsim.engine.update import Counters, ModelSizes, Sizes, Update
from spinsim.errors import InputError
from spinsim.model.graph import MOST_LISTED
from spinsim.model.ising import Ising
from spinsim.packing import Packing


class SiteTables(NamedTuple):
    """Thresholds of every replica, equal in all lanes, for each sample or, with length 1, all; even degrees only."""

    always: npt.NDArray[np.uint32]  # ``[sample, replica, class]``: all bits set if no random number is needed
    planes: npt.NDArray[np.uint32]  # ``[sample, replica, plane, class]``: bit ``63 - plane``, repeated in all bits
    thresholds: npt.NDArray[np.uint64]  # ``[sample, replica, class]``: the thresholds of acceptance.py


def build_site_tables(classes: Classes, beta: npt.NDArray[np.float64], zero_acceptance: float) -> SiteTables:
    """Build the tables for ``beta`` (1 or samples, replicas), each replica's inverse temperature times the quantum."""
    always, threshold = acceptance(classes.costs[0], beta[..., None], zero_acceptance)
    shift = np.arange(63, 63 - PLANES, -1, dtype=np.uint64)[:, None]
    bits = (threshold[..., None, :] >> shift & np.uint64(1)).astype(np.uint32)
    full = np.uint32(0xFFFFFFFF)
    return SiteTables(always.astype(np.uint32) * full, bits * full, threshold)


class SitePlan:
    """Site-packed run of a model.

    Args:
        model: Model with couplings of one magnitude and a uniform field, on a periodic lattice of even sides.
        layers: Rows or, in three dimensions, planes of a slab of the lattice: an even number, from an even one on,
            whose sites fill groups. None for the whole lattice.

    Attributes:
        shape: Shape of the packed state, (samples, replicas, colours, groups, 2).
        groups: Number of groups of 128 lanes of one colour in the slab.
        layer: Number of sites of a colour in a layer.
        lanes: Number of sites of a colour in the slab.
        first_group: Number of the slab's first group among all groups of one colour of the lattice.
        all_groups: Number of groups of one colour of the lattice.
        rows: Rows of the slab, numbered through all planes of the lattice.
        observables: Observables from counts of spins +1, of spins +1 of the first sublattice (colour 0) and of
            unsatisfied bonds. A bond belongs to the slab with its site of colour 0.
    """

    colours = 2

    def __init__(self, model: Ising, replicas: int, dynamics: Dynamics, layers: range | None = None) -> None:
        lattice, magnitude, field = model.lattice, model.magnitude, model.uniform_field
        if lattice is None or magnitude is None or field is None or not can_be_held(ModelSizes(model)):
            raise InputError(
                f"model {model.name} cannot be site-packed: take couplings of one magnitude, a uniform field and a "
                "periodic lattice of even sides"
            )
        self.model, self.replicas, self.dynamics, self.lattice = model, replicas, dynamics, lattice
        layers = layers or range(lattice.shape[-1])
        self.sides = (*lattice.shape[:-1], len(layers))
        sites, rows = prod(self.sides), prod(lattice.shape[1:-1])
        self.observables = of_up_and_unsatisfied(sites, lattice.dimension * sites, magnitude, field, sites // 2)
        self.weights, self.has_field = (magnitude, field), field != 0
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
        """Return the tables of replicas at inverse temperatures (1 or samples, replicas)."""
        return build_site_tables(self.classes, beta * self.model.quantum, self.dynamics.zero_acceptance)

    def limits(self, beta: npt.NDArray[np.float64]) -> Limits:
        """Limits that decide flips at inverse temperatures ``beta``, for even degrees only."""
        costs = self.classes.costs[:1, :, None]
        return Limits(*acceptance(costs, beta * self.model.quantum, self.dynamics.zero_acceptance))

    def kind(self, beta: npt.NDArray[np.float64]) -> Kind:
        return min(kind_of(self.classes, self.dynamics.zero_acceptance, self.limits(np.unique(beta))), Kind.PLAIN)


def needed_bytes(sizes: Sizes, replicas: int) -> int:
    """Upper limit of a run's memory: no adjacency, and two signs for each bond unless couplings are equal.

    For a lattice without a bond list, lowest states are held as bits.
    """
    bonds, sites, samples = sizes.bonds, sizes.sites, sizes.samples
    if bonds > MOST_LISTED:
        signs = 0 if sizes.one_coupling else samples * bonds // 4
        return signs + samples * (sites // 2 + replicas * (3 * sites // 8 + 512))  # state, and two copies for saving
    drawn = 0 if sizes.one_coupling else bonds * (8 + 8 * samples)
    return bonds * 24 + drawn + samples * (sites * 4 + replicas * (sites // 8 + 512))


def counters(sizes: Sizes, replicas: int) -> Counters:
    """Fields of the random counter: a group is 128 sites, and every replica is a block."""
    return Counters(2 * packing.site_groups(sizes.sites), replicas, "replicas of a site-packed lattice")


UPDATE: Final = Update(
    *(Packing.SITE, suits, needed_bytes, counters, f"{__package__}.cpu:engine", f"{__package__}.cuda:engine"),
    together=1,
    in_slabs=True,
)


def sides_of(shape: tuple[int, ...]) -> tuple[int, int, int]:
    """Number of sites of a colour in a row, rows in a plane and planes, for a lattice of sides ``shape``."""
    x, y, *z = shape
    return x // 2, y, z[0] if z else 1
