"""Exact levels of strips of the ferromagnet."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


def strip_levels(width: int, k: float, k_time: float, sector: str, count: int = 1) -> Array:
    """Logarithms of the leading eigenvalues of a periodic strip of the ferromagnet, in closed form.

    Free fermions, cosh(gamma) = cosh 2k cosh 2k* - cos(q) sinh 2k sinh 2k* where sinh 2k_time sinh 2k* = 1; momenta
    are odd multiples of pi / width in the even sector and even ones in the odd sector; excitations come in pairs.

    Source: B. Kaufman, Phys. Rev. 76, 1232 (1949); T. Schultz, D. Mattis, E. Lieb, Rev. Mod. Phys. 36, 856 (1964).

    Args:
        width: Sites around the strip, up to 20.
        k: Coupling around the strip.
        k_time: Coupling along it.
        sector: ``even`` or ``odd`` under the flip of all spins.
        count: Levels.
    """
    dual = np.arcsinh(1 / np.sinh(2 * k_time)) / 2
    momenta = (2 * np.arange(width) + (sector == "even")) * np.pi / width
    cosh = np.cosh(2 * k) * np.cosh(2 * dual) - np.cos(momenta) * np.sinh(2 * k) * np.sinh(2 * dual)
    gamma = np.arccosh(np.maximum(cosh, 1))
    if sector == "odd":
        gamma[0] = 2 * (k - dual)  # of momentum 0: it changes its sign at the transition
    sums, parity = np.zeros(1), np.zeros(1, np.int8)
    for energy in gamma:  # of all sets of excitations
        sums, parity = np.concatenate([sums, sums + energy]), np.concatenate([parity, 1 - parity])
    ground = width / 2 * np.log(2 * np.sinh(2 * k_time)) + gamma.sum() / 2
    return np.asarray(ground - np.sort(sums[parity == 0])[:count])
