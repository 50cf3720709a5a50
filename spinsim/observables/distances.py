"""Correlations by distance along each axis of a lattice, as functions for ``measure``.

``--measure spinsim.observables.distances:spin_correlation`` makes a run measure the first of them; in Python
``measure={"G": spin_correlation, "C4": overlap_correlation}``. Distances go from 0 to half of the longest side L; on
open lattices the pairs of sites that exist are averaged over.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from types import ModuleType
from typing import Any

from spinsim.errors import InputError
from spinsim.observables.batch import Batch


def spin_correlation(batch: Batch) -> Any:
    """Spin-spin correlation G(r), the average over sites x of s(x) s(x + r e) along each axis e.

    Returns ``float64`` (..., axes, L / 2 + 1), axis 0 being that of x; 0 beyond half of a shorter side. The model must
    have a lattice of one site a cell.
    """
    return by_distance(batch, batch.grid)


def overlap_correlation(batch: Batch) -> Any:
    """Four-point correlation C4(r), the average over sites x of q(x) q(x + r e), with q(x) = s(x) s'(x) of two copies.

    Each copy (or replica, axis 1) is paired with the next one and the last with the first. Three copies or more give
    different pairs, two copies give the same pair twice. Otherwise as ``spin_correlation``.

    Source: F. Belletti et al. (Janus), J. Stat. Phys. 135, 1121 (2009), arXiv:0811.2864.
    """
    return by_distance(batch, overlaps_of_copies(batch.grid, batch.xp, "overlap_correlation needs"))


def overlaps_of_copies(spins: Any, xp: ModuleType, needing: str) -> Any:
    """Return q = s s' of each copy (axis 1) and the next, the last and the first; one copy raises InputError."""
    if spins.shape[1] < 2:
        raise InputError(f"{needing} two copies of each configuration: give replicas 2 or more")
    return spins * xp.roll(spins, -1, axis=1)


def by_distance(batch: Batch, values: Any, product: Callable[[Any, Any], Any] = operator.mul) -> Any:
    """Return averages over x of the product of values (..., sides) at x and x + r e, as ``spin_correlation`` does."""
    lattice, xp = batch.model.embedding, batch.xp
    assert lattice is not None  # noqa: S101  (it has a grid)
    sides = lattice.shape
    sites = tuple(range(-len(sides), 0))
    averages = xp.zeros((*values.shape[: -len(sides)], len(sides), max(sides) // 2 + 1))
    for axis, side in enumerate(sides):
        moved = xp.moveaxis(values, -1 - axis, -1)  # x is the last axis of the grid
        for r in range(side // 2 + 1):
            other, here = xp.roll(moved, -r, axis=-1), moved
            if not lattice.periodic:
                other, here = moved[..., r:], moved[..., : side - r]
            averages[..., axis, r] = product(here, other).mean(axis=sites, dtype=xp.float64)
    return averages
