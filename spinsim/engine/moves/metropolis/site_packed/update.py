"""The site-packed update, for periodic lattices of even sides: its run, memory and counters."""

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
    *(Packing.SITE, suits, needed_bytes, counters, f"{__package__}.cpu:engine", f"{__package__}.cuda:engine"),
    together=1,
    in_slabs=True,
)


def sides_of(shape: tuple[int, ...]) -> tuple[int, int, int]:
    """Sites of a colour in a row, rows in a plane and planes of a lattice of these sides."""
    x, y, *z = shape
    return x // 2, y, z[0] if z else 1
