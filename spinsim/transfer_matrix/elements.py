"""Matrix elements between leading states, and the energy of the bonds between layers."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim.model.ising import Ising
from spinsim.transfer_matrix.layer import Layer
from spinsim.transfer_matrix.operator import TransferOperator
from spinsim.transfer_matrix.vectors import Share, Vectors

Array = npt.NDArray[np.float64]


def matrix_elements(model: Ising, vectors: dict[str, Any], place: Place) -> dict[str, Array]:
    """<0|s_i|level> and <0|s_i s_j|level> of the first sector's lowest state.

    s_i leads from even states to odd ones and s_i s_j back, so that ``sigma`` (level, site) needs both sectors and has
    their odd states, ``sigma_sigma`` (level, bond) those of the first sector. In a field both have all states. The sign
    of a vector is free: it is chosen so that the first large element is positive. Levels that are degenerate may be any
    mixture of each other.
    """
    first = next(iter(vectors))
    ground = vectors[first][0]
    others = vectors.get("odd") if first == "even" else vectors.get("all")
    elements: dict[str, Array] = {}
    if others is not None:
        sums = [[_sum(ground * x, site, place.fixed) for site in range(model.sites)] for x in others]
        elements["sigma"] = np.stack([place.share.sum(np.array(row)) for row in sums])
    pairs = np.stack([_bonds(ground * x, model.graph.edges, place) for x in vectors[first]])
    elements["sigma_sigma"] = pairs
    signs = np.array([_sign(row) for row in elements["sigma"]]) if others is not None else np.ones(len(pairs))
    if first == "all":
        signs[0] = 1.0  # expectation values of one state
        elements["sigma_sigma"] = pairs * signs[:, None]
    else:
        elements["sigma_sigma"][1:] *= np.array([_sign(row) for row in pairs[1:]])[:, None]
    if others is not None:
        elements["sigma"] = elements["sigma"] * signs[:, None]
    return elements


def _sign(row: Array) -> float:
    """Sign of the first element of at least half the largest size."""
    sizes = np.abs(row)
    if not sizes.size or not sizes.max() > 0:
        return 1.0
    return float(np.sign(row[np.argmax(sizes >= sizes.max() / 2)]))


class Place(NamedTuple):
    """The amplitudes that a vector holds here.

    Attributes:
        fixed: Spins that are the same in all their states, +1 or -1 by site: the last one where it is down, and those
            whose values tell parts of a vector from each other.
        share: Part on this device.
    """

    fixed: dict[int, int]
    share: Share


def place_of(layer: Layer, share: Share) -> Place:
    """Where a device's part of vectors of a layer is."""
    free = layer.bits - share.top
    fixed = {free + bit: 2 * (share.index >> bit & 1) - 1 for bit in range(share.top)}
    return Place(fixed | ({layer.sites - 1: -1} if layer.sign else {}), share)


def _weighted(w: Any, site: int, fixed: dict[int, int]) -> Any:
    """The sum over the spin of a site of s w, a vector of half the length; s w where the spin is fixed."""
    if site in fixed:
        return fixed[site] * w
    halves = w.reshape(-1, 2, 1 << site)
    return (halves[:, 1] - halves[:, 0]).reshape(-1)


def _sum(w: Any, site: int, fixed: dict[int, int]) -> float:
    """Sum of s w over the states that are here."""
    return fixed[site] * float(w.sum()) if site in fixed else float(_weighted(w, site, fixed).sum())


def _bonds(w: Any, edges: npt.NDArray[np.int32], place: Place) -> Array:
    """Sum of s_i s_j w over all states, for each bond."""
    sums, halves = np.zeros(len(edges)), {}
    for bond in np.argsort(edges.max(axis=1), kind="stable"):
        low, high = sorted(int(end) for end in edges[bond])
        if high not in halves:
            halves = {high: _weighted(w, high, place.fixed)}
        sums[bond] = _sum(halves[high], low, place.fixed)
    return place.share.sum(sums)


def interlayer(operator: TransferOperator, vectors: Vectors, x: Any, place: Place) -> float:
    """Sum over sites of <x| s_i T s_i |x>: of a leading state, its eigenvalue times the sum of s_i s_i' between layers.

    ``operator`` acts where s_i x lies: in the other sector.
    """
    y, out, total = vectors.empty(), vectors.empty(), 0.0
    for site in range(operator.layer.sites):
        y[:] = x
        if site in place.fixed:
            y *= place.fixed[site]
        else:
            y.reshape(-1, 2, 1 << site)[:, 0] *= -1
        operator.apply(y, out)
        total += vectors.dot(y, out)
    return total
