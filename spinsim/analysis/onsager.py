"""The infinite square-lattice ferromagnet in zero field, solved; k_B = 1, and J = 1 where no coupling is given.

With K = J/T, t = tanh 2K and k' = 2 t^2 - 1, the elliptic modulus k = 2 sinh 2K / cosh^2 2K has 1 - k^2 = k'^2. Written
in t nothing overflows at low T, and ``ellipkm1`` takes k'^2 itself, so nothing cancels near T_c, where k' = 0.
Temperatures stand in the unit of the coupling, which is above 0.

Sources: L. Onsager, Phys. Rev. 65, 117 (1944), eqs. (116) and (117); C. N. Yang, Phys. Rev. 85, 808 (1952), eq. (96).
"""

from __future__ import annotations

from math import log, sqrt
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.special import ellipe, ellipkm1

from spinsim.acceptance import check_temperatures

Array = npt.NDArray[np.float64]

CRITICAL_TEMPERATURE: Final = 2 / log(1 + sqrt(2))  # for J = 1
_TINY: Final = float(np.finfo(np.float64).tiny)


def energy(temperature: npt.ArrayLike, coupling: float = 1.0) -> Array:
    """Energy per site; -sqrt(2) J at T_c."""
    t, modulus, first = _elliptic(check_temperatures(temperature) / coupling)
    return np.asarray(-coupling * (1 + 2 / np.pi * modulus * first) / t)


def specific_heat(temperature: npt.ArrayLike, coupling: float = 1.0) -> Array:
    """Specific heat per site; infinite at ``coupling * CRITICAL_TEMPERATURE``."""
    values = check_temperatures(temperature) / coupling
    t, modulus, first = _elliptic(values)
    second = ellipe(1 - modulus**2)
    bracket = 2 * (first - second) - (1 - modulus) * (np.pi / 2 + modulus * first)
    heat = 2 / np.pi / (values * t) ** 2 * bracket
    return np.where(values == CRITICAL_TEMPERATURE, np.inf, heat)


def magnetization(temperature: npt.ArrayLike, coupling: float = 1.0) -> Array:
    """Spontaneous magnetisation per site, (1 - sinh(2K)^-4)^(1/8); 0 from T_c on."""
    t, _, _ = _elliptic(check_temperatures(temperature) / coupling)
    sinh_minus_two = 1 / t**2 - 1
    return np.asarray(np.maximum(1 - sinh_minus_two**2, 0) ** 0.125)


def _elliptic(temperature: Array) -> tuple[Array, Array, Array]:
    """t, k' and the complete elliptic integral of the first kind, finite at k' = 0 so that k' times it is 0 there."""
    t = np.tanh(2 / temperature)
    modulus = 2 * t**2 - 1
    return t, modulus, np.asarray(ellipkm1(np.maximum(modulus**2, _TINY)))
