"""Exact solution of the infinite square-lattice ferromagnet in zero field; k_B = 1, and J = 1 by default.

With K = J/T, t = tanh 2K and k' = 2 t^2 - 1, the elliptic modulus k = 2 sinh 2K / cosh^2 2K has 1 - k^2 = k'^2. Written
in t nothing overflows at low T, and ``ellipkm1`` takes k'^2 itself, so nothing cancels near T_c, where k' = 0.
Temperatures have the unit of the coupling, which is above 0.

Sources: L. Onsager, Phys. Rev. 65, 117 (1944), eqs. (116) and (117); C. N. Yang, Phys. Rev. 85, 808 (1952), eq. (96).
"""

from __future__ import annotations

from collections.abc import Mapping
from math import log, sqrt
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from scipy.special import ellipe, ellipkm1

from spinsim.acceptance import check_temperatures
from spinsim.inputs.arguments import public

Array = npt.NDArray[np.float64]

CRITICAL_TEMPERATURE: Final = 2 / log(1 + sqrt(2))  # for J = 1
CRITICAL_TEMPERATURES: Final[Mapping[str, float]] = MappingProxyType(
    {"square": CRITICAL_TEMPERATURE, "triangular": 4 / log(3), "honeycomb": 2 / log(2 + sqrt(3))}
)
"""Of infinite planar lattices, for J = 1. R. M. F. Houtappel, Physica 16, 425 (1950), eqs. (108) and (109)."""
_TINY: Final = float(np.finfo(np.float64).tiny)


@public
def energy(temperature: npt.ArrayLike, coupling: float = 1.0) -> Any:
    """Energy per site; -sqrt(2) J at T_c. A number for a number, an array for an array."""
    t, modulus, first = _elliptic(check_temperatures(temperature) / coupling)
    return _as_given(-coupling * (1 + 2 / np.pi * modulus * first) / t, temperature)


@public
def specific_heat(temperature: npt.ArrayLike, coupling: float = 1.0) -> Any:
    """Specific heat per site; infinite at ``coupling * CRITICAL_TEMPERATURE``."""
    values = check_temperatures(temperature) / coupling
    t, modulus, first = _elliptic(values)
    second = ellipe(1 - modulus**2)
    bracket = 2 * (first - second) - (1 - modulus) * (np.pi / 2 + modulus * first)
    heat = 2 / np.pi / (values * t) ** 2 * bracket
    return _as_given(np.where(values == CRITICAL_TEMPERATURE, np.inf, heat), temperature)


@public
def magnetization(temperature: npt.ArrayLike, coupling: float = 1.0) -> Any:
    """Spontaneous magnetisation per site, (1 - sinh(2K)^-4)^(1/8); 0 from T_c on."""
    t, _, _ = _elliptic(check_temperatures(temperature) / coupling)
    sinh_minus_two = 1 / t**2 - 1
    return _as_given(np.maximum(1 - sinh_minus_two**2, 0) ** 0.125, temperature)


def _as_given(values: Array, temperature: npt.ArrayLike) -> Any:
    """Return values of the shape of the temperatures, a number for a number."""
    return values if np.ndim(temperature) else values[0]


def _elliptic(temperature: Array) -> tuple[Array, Array, Array]:
    """t, k' and the complete elliptic integral of the first kind; it is finite at k' = 0, so that k' times it is 0."""
    t = np.tanh(2 / temperature)
    modulus = 2 * t**2 - 1
    return t, modulus, np.asarray(ellipkm1(np.maximum(modulus**2, _TINY)))
