"""Couplings that are few units: bonds of several sizes as bonds of one, several side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from spinsim.model.graph import Graph

if TYPE_CHECKING:
    from spinsim.model.ising import Ising


def weights_of(model: Ising) -> tuple[int, npt.NDArray[np.int64]] | None:
    """The largest unit in quanta of which all |J| are multiples, and |J| of each bond in it, (bonds,).

    None where a J is 0 or samples differ in |J|, as they would then move otherwise alone than together.
    """
    sizes = np.abs(model.couplings)
    if model.bonds == 0 or not sizes.all() or np.any(sizes != sizes[0]):
        return None
    quanta = np.rint(sizes[0] / model.quantum).astype(np.int64)
    unit = int(np.gcd.reduce(quanta))
    return unit, quanta // unit


def largest_weight(model: Ising) -> int | None:
    """Sum of |J| of a site's bonds, at most, in units; None where there is no unit."""
    if model.weights is None:
        return None
    ends, weights = model.graph.edges.reshape(-1), np.repeat(model.weights[1], 2)
    return int(np.bincount(ends, weights, model.sites).max())


def bonds_of_units(model: Ising) -> tuple[Graph, npt.NDArray[np.bool_], int] | None:
    """Bonds of one |J|, those of several units as many side by side, which are below 0, and that |J| in quanta.

    The second has the shape (1 or samples, bonds), in one layout, as kernels are compiled for each. None where |J| are
    not multiples of a unit.
    """
    negative = np.array(model.negative_bonds(), order="C")
    if model.magnitude is not None:
        return model.graph, negative, model.magnitude
    if model.weights is None:
        return None
    unit, weights = model.weights
    graph = Graph(model.sites, np.repeat(model.graph.edges, weights, axis=0))
    return graph, np.repeat(negative, weights, axis=1), unit
