"""Strips: exact levels of the ferromagnet, phenomenological renormalisation, the conformal charge."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim.analysis.crossings import Crossing, crossing
from spinsim.analysis.sizes import model_kind
from spinsim.errors import InputError
from spinsim.result import TransferResult

Array = npt.NDArray[np.float64]

_FEWEST: Final = 4  # points of a spline
MOST_EXACT: Final = 20  # sites: all sets of excitations are listed


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

    Raises:
        InputError: for another sector and for widths that are too large.
    """
    if sector not in ("even", "odd") or not 1 < width <= MOST_EXACT:
        raise InputError(
            f"sector {sector!r} of width {width} has no list of levels: give even or odd, and 2 to 20 sites"
        )
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


class LengthCrossing(NamedTuple):
    """Where xi / L of two widths agree: an estimate of the transition.

    Attributes:
        widths: The two.
        temperature: NaN where the curves do not cross once.
        error: Of the interpolation between points: by how much half of them give another crossing; NaN where they
            give none.
        reason: Why there is none, in words.
    """

    widths: tuple[int, int]
    temperature: float
    error: float
    reason: str


def scaled_lengths(result: TransferResult) -> Array:
    """Correlation length over width of the leading odd level at each point, averaged over samples.

    The width is the layer's first side.

    Raises:
        InputError: where the run has no odd sector beside the even one.
    """
    if result.sectors != ("even", "odd") or result.model.lattice is None:
        raise InputError(f"{result.model.name} has no xi / L: run both sectors of a lattice layer without a field")
    return np.asarray(result.correlation_length[:, :, 1, 0].mean(axis=0) / result.model.lattice.shape[0])


def length_crossings(results: Sequence[TransferResult]) -> list[LengthCrossing]:
    """Phenomenological renormalisation: crossings of xi / L of neighbouring widths, from the smallest on.

    Source: M. P. Nightingale, Physica A 83, 561 (1976).

    Curves are splines of ln(xi / L) through the points that have one in every sample.

    Raises:
        InputError: for results of one width, two of equal width, different models, and for fewer than 4 points.
    """
    curves = {}
    for result in results:
        order = np.argsort(result.temperature)
        width = result.model.lattice.shape[0] if result.model.lattice else 0
        lengths = np.log(scaled_lengths(result)[order])
        if width in curves:
            raise InputError(f"two runs have width {width}: give one of each width")
        if _kind(result) != _kind(results[0]):
            names = f"{results[0].model.name} and {result.model.name}"
            raise InputError(f"{names} are not one model in two widths: give runs that are")
        known = np.isfinite(lengths)  # not those of levels that did not converge
        curves[width] = result.temperature[order][known], lengths[known]
    if len(curves) < 2:
        raise InputError(f"{len(curves)} width has no crossing: give files of two widths or more")
    found = []
    for small, large in pairwise(sorted(curves)):
        both = (*curves[small], *curves[large])
        c, half = _cross(*both), _cross(*(array[::2] for array in both))
        if c is None:
            raise InputError(f"fewer than {_FEWEST} points make no curves: give more temperatures or couplings")
        error = np.nan if half is None else abs(half.value - c.value)
        found.append(LengthCrossing((small, large), c.value, error, c.reason))
    return found


def _cross(x1: Array, y1: Array, x2: Array, y2: Array) -> Crossing | None:
    """Where exact curves cross, the resamples being the curves; None for fewer points than a spline needs."""
    if min(len(x1), len(x2)) < _FEWEST:
        return None
    return crossing(x1, np.tile(y1, (3, 1)), x2, np.tile(y2, (3, 1)))


def _kind(result: TransferResult) -> tuple[object, ...]:
    """What models of different widths have in common."""
    return *model_kind(result.model), round(float(result.k_time[0] / result.k[0]), 9)


def extrapolate(sizes: npt.ArrayLike, values: npt.ArrayLike, power: float) -> Array:
    """Remove a correction proportional to size^-power from each pair of neighbours; one value fewer than given."""
    weight, v = np.asarray(sizes, np.float64) ** power, np.asarray(values, np.float64)
    return np.asarray((weight[1:] * v[1:] - weight[:-1] * v[:-1]) / (weight[1:] - weight[:-1]))


def conformal_charges(widths: npt.ArrayLike, log_eigenvalues: npt.ArrayLike) -> Array:
    """Charge c from each pair of neighbouring widths: ln(lambda_0) / L = f + pi c / (6 L^2) at an isotropic transition.

    Source: H. W. J. Bloete, J. L. Cardy, M. P. Nightingale, Phys. Rev. Lett. 56, 742 (1986).
    """
    size = np.asarray(widths, np.float64)
    density, inverse = np.asarray(log_eigenvalues, np.float64) / size, size**-2.0
    return np.asarray(6 / np.pi * np.diff(density) / np.diff(inverse))
