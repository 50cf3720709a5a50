"""Finite-size scaling's dimensionless quantities, from moments and susceptibilities.

They take averages and are meant as the function that ``jackknife`` and ``bootstrap`` call. For disordered models the
averages are those over samples of thermal averages, such as [<q^2>].
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spinsim.errors import InputError
from spinsim.inputs.checks import real_array
from spinsim.model.geometry.lattice import Lattice, space_of
from spinsim.model.ising import Ising

Array = npt.NDArray[np.float64]


def binder_cumulant(second: npt.ArrayLike, fourth: npt.ArrayLike) -> Array:
    """Binder cumulant U = 1 - <m^4> / (3 <m^2>^2): 2/3 in an ordered phase, 0 for a Gaussian of mean 0.

    Source: K. Binder, Z. Phys. B 43, 119 (1981). That of the energy tends to 2/3 as sizes grow, and at a transition of
    first order has a minimum that stays below: M. S. S. Challa, D. P. Landau, K. Binder, Phys. Rev. B 34, 1841 (1986).
    The only definition in this project; spin-glass papers often plot 3/2 of it.

    Args:
        second: Second moment <m^2> of the order parameter, any shape.
        fourth: Fourth moment <m^4>, of a shape that broadcasts with it.

    Returns:
        U, without units; NaN where the second moment is not positive.

    Raises:
        InputError: for what is not a real number.
    """
    square = _positive_or_nan(real_array(second, "second moment"))
    return np.asarray(1 - real_array(fourth, "fourth moment") / (3 * square**2))


def correlation_length(chi_zero: npt.ArrayLike, chi_min: npt.ArrayLike, momentum: float) -> Array:
    """Second-moment correlation length, xi = sqrt(chi(0) / chi(k_min) - 1) / K.

    Source: F. Cooper, B. Freedman, D. Preston, Nucl. Phys. B 210, 210 (1982); for spin glasses M. Palassini, S.
    Caracciolo, Phys. Rev. Lett. 82, 5128 (1999).

    Args:
        chi_zero: Susceptibility chi(0), the mean squared order parameter in any unit, any shape.
        chi_min: chi at the smallest wave vector along an axis of the periodic lattice, in the same unit.
        momentum: The lattice momentum K of k_min, in inverse distances of nearest neighbours (``Lattice.momentum``); on
            chains, square and cubic lattices it is 2 sin(pi / side).

    Returns:
        xi in distances of nearest neighbours; NaN where chi(0) <= chi(k_min), which noise may cause, and where
        chi(k_min) is not positive.

    Raises:
        InputError: for a momentum that is not positive and for what is not a real number.
    """
    if not momentum > 0:
        raise InputError(f"momentum {momentum} belongs to no wave vector but 0: give a positive one")
    zero, smallest = real_array(chi_zero, "chi(0)"), real_array(chi_min, "chi(k_min)")
    excess = _positive_or_nan(zero / _positive_or_nan(smallest) - 1)
    return np.asarray(np.sqrt(excess) / momentum)


def _positive_or_nan(values: Array) -> Array:
    return np.where(values > 0, values, np.nan)


def length_over_side(model: Ising, zero: Array, smallest: Array) -> Array:
    """Returns xi / L of the longest axes in space from chi(0) and chi(k_min); NaN where they are open or of side 1."""
    lattice = in_space(model)
    side = max(lattice.shape) if lattice and lattice.periodic else 1
    if lattice is None or side == 1:
        return np.full_like(zero, np.nan)
    return correlation_length(zero, smallest, lattice.momentum(lattice.shape.index(side))) / side


def time_over_slices(model: Ising, zero: Array, smallest: Array) -> Array:
    """Returns the correlation length in time over the slices, from chi(0) and chi at the smallest frequency."""
    slices = model.graph.slices
    return correlation_length(zero, smallest, 2 * np.sin(np.pi / slices)) / slices


def in_space(model: Ising) -> Lattice | None:
    """Returns the lattice of a model in space, without time; None where it has none."""
    return space_of(model.lattice) if model.lattice and model.graph.slices > 1 else model.lattice
