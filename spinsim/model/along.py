"""Couplings whose strength depends on the axis along which a bond lies: anisotropic lattices."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from spinsim.model.geometry.lattice import Lattice


def along_axes(lattice: Lattice, couplings: npt.ArrayLike, along: Sequence[float]) -> npt.NDArray[np.float64]:
    """Couplings times the factor of the axis of each bond; one number stays one where all factors are equal.

    Args:
        lattice: Whose bonds lie along its axes.
        couplings: One number, or J of each bond, (samples, bonds).
        along: A factor for each axis.
    """
    if len(set(along)) == 1:
        return np.asarray(couplings) * np.float64(along[0])
    return np.asarray(np.asarray(couplings) * np.array(along, np.float64)[lattice.bond_numbers()])


def terms_along(lattice: Lattice, along: Sequence[float]) -> npt.NDArray[np.uint8] | None:
    """The term of each bond where axes have two strengths: 0 along the first axis and those like it; else None."""
    sizes = np.abs(np.array(along, np.float64))
    if len(np.unique(sizes)) != 2:
        return None
    return np.asarray((sizes != sizes[0]).astype(np.uint8)[lattice.bond_numbers()])


def degrees_along(along: Sequence[float]) -> tuple[int, int] | None:
    """Bonds of each term at a site where axes have two strengths, else None."""
    sizes = [abs(factor) for factor in along]
    if len(set(sizes)) != 2:
        return None
    first = 2 * sizes.count(sizes[0])
    return first, 2 * len(sizes) - first
