"""Couplings and fields that are few units: bonds of several sizes as bonds of one, several side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim.model.graph import Graph

if TYPE_CHECKING:
    from spinsim.model.ising import Ising


class Units(NamedTuple):
    """Couplings and fields as multiples of a unit.

    Attributes:
        unit: In quanta, the largest of which all of them are multiples.
        weights: |J| of each bond in it, (bonds,).
        fields: |h| of each site in it, (sites,).
    """

    unit: int
    weights: npt.NDArray[np.int64]
    fields: npt.NDArray[np.int64]

    def of_sites(self, graph: Graph) -> npt.NDArray[np.int64]:
        """Sum of |J| of each site's bonds and of its |h|, in units, (sites,)."""
        of_bonds = np.bincount(graph.edges.reshape(-1), np.repeat(self.weights, 2), graph.sites)
        return of_bonds.astype(np.int64) + self.fields


def weights_of(model: Ising) -> tuple[int, npt.NDArray[np.int64]] | None:
    """The largest unit in quanta of which all |J| are multiples, and |J| of each bond in it, (bonds,).

    None where a J is 0 or samples differ in |J|, as they would then move otherwise alone than together.
    """
    sizes = np.abs(model.couplings)
    if model.bonds == 0 or not sizes.all() or (len(sizes) > 1 and np.any(sizes != sizes[0])):
        return None
    quanta = np.rint(sizes[0] / model.quantum).astype(np.int64)
    unit = int(np.gcd.reduce(quanta))
    return unit, quanta // unit


def units_of(model: Ising) -> Units | None:
    """Couplings and fields in the largest unit of which all |J| and |h| are multiples.

    None on lattices, where there are no ``weights`` and where samples differ in |h|.
    """
    if model.lattice is not None or model.weights is None:
        return None
    sizes = np.abs(model.fields)
    if len(sizes) > 1 and np.any(sizes != sizes[0]):
        return None
    of_bonds, weights = model.weights
    quanta = np.rint(sizes[0] / model.quantum).astype(np.int64)
    unit = int(np.gcd(of_bonds, np.gcd.reduce(quanta)))
    return Units(unit, weights * (of_bonds // unit), quanta // unit)


def most_units(model: Ising) -> int | None:
    """Sum of |J| of a site's bonds and of its |h|, at most, in units; None where there is no unit."""
    return None if model.units is None else int(model.units.of_sites(model.graph).max())


def largest_local_field_of(model: Ising) -> int:
    """Upper bound in quanta of |sum J s + h| at any site of any sample."""
    largest = 0.0
    for sample in range(model.samples):
        bonds = np.abs(model.integer_couplings(sample)).astype(np.float64)
        local = np.abs(model.integer_fields(sample)).astype(np.float64)
        for end in (0, 1):
            local += np.bincount(model.graph.edges[:, end], bonds, model.sites)
        largest = max(largest, float(local.max()))
    return int(largest)


class UnitBonds(NamedTuple):
    """A model as bonds of one |J|: a coupling of several units is as many of them side by side.

    Attributes:
        graph: Them.
        negative: Which are below 0, (1 or samples, bonds), in one layout, as kernels are compiled for each.
        magnitude: Their |J| in quanta.
        field: h of every site in quanta where the spin is part of the class, else 0.
        fields: h of each site in units of |J|, (1 or samples, sites), where these count as bonds to a spin that is
            always +1; None elsewhere.
    """

    graph: Graph
    negative: npt.NDArray[np.bool_]
    magnitude: int
    field: int
    fields: npt.NDArray[np.int64] | None

    @property
    def units(self) -> npt.NDArray[np.int64]:
        """Bonds of each site, (sites,), those to the spin that is always +1 among them."""
        degree = self.graph.degrees().astype(np.int64)
        return degree if self.fields is None else degree + np.abs(self.fields[0])


def bonds_of_units(model: Ising, in_class: bool) -> UnitBonds | None:
    """A model as bonds of one |J|; None where |J| and |h| are not multiples of a unit.

    A uniform field is part of the class where ``in_class`` says so and couplings have one |J|.
    """
    negative, field = np.array(model.negative_bonds(), order="C"), model.uniform_field
    if model.magnitude is not None and field is not None and (in_class or not field):
        return UnitBonds(model.graph, negative, model.magnitude, field, None)
    if field == 0 and model.weights is not None:  # of any sizes
        unit, weights = model.weights
        return UnitBonds(*_repeated(model, weights, negative), unit, 0, None)
    if model.units is None:
        return None
    unit, weights, _ = model.units
    fields = np.stack([model.integer_fields(k) for k in range(len(model.fields))]) // unit
    graph, negative = _repeated(model, weights, negative)
    return UnitBonds(graph, negative, unit, 0, fields)


def _repeated(
    model: Ising, weights: npt.NDArray[np.int64], negative: npt.NDArray[np.bool_]
) -> tuple[Graph, npt.NDArray[np.bool_]]:
    """Each bond as often as its weight says, and which are below 0."""
    if weights.max() == 1:
        return model.graph, negative
    graph = Graph(model.sites, np.repeat(model.graph.edges, weights, axis=0))
    return graph, np.repeat(negative, weights, axis=1)
