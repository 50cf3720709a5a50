"""Fits of values of several sizes against L: their limit of infinite size, or their power of L.

Values of pairs that share a size are correlated; the covariance comes from the bootstrap resamples behind the values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

import numpy as np
from scipy.optimize import least_squares
from scipy.stats import chi2 as chi_squared

from spinsim.analysis.runs import Array
from spinsim.errors import InputError
from spinsim.inputs.arguments import public
from spinsim.inputs.texts import either

EXPONENTS: Final = (0.3, 1.0, 3.0)  # where searches for an exponent of corrections begin
LEAST: Final = 0.05
MOST: Final = 10.0


class OfSize(Protocol):
    """A value of one size, or of a pair of sizes."""

    @property
    def side(self) -> float:
        """L, of a pair that of the smaller size."""

    @property
    def resampled(self) -> dict[str, Array]:
        """Values by name: the first from all data, then one a bootstrap resample, (1 + resamples,)."""


@dataclass(frozen=True)
class SizeFit:
    """A fit y(L) = value + amplitude L^-exponent, or y(L) = amplitude L^value, with standard errors.

    Attributes:
        name: Name of y.
        value: Limit of infinite size, or the power of L.
        error: Standard error of the value.
        amplitude: Factor of the power of L.
        exponent: Exponent of the correction; NaN for a power law.
        exponent_error: Its standard error, 0 if it was held.
        chi2: Squared deviations in units of the covariance.
        freedom: Number of sizes less the fitted numbers.
        probability: Probability of a larger chi^2 if the form is right; NaN where nothing is left to judge it by.
        sides: L of the values, (sizes,).
        values: The values, (sizes,).
        errors: Their standard errors, (sizes,).
    """

    name: str
    value: float
    error: float
    amplitude: float
    exponent: float
    exponent_error: float
    chi2: float
    freedom: int
    probability: float
    sides: Array = field(repr=False)
    values: Array = field(repr=False)
    errors: Array = field(repr=False)


@public
def infinite_size(found: Sequence[OfSize], name: str, exponent: float | None = None, *, smallest: float = 0) -> SizeFit:
    """Limit of infinite size of quotients or peaks: fit y(L) = y_infinity + a L^-exponent.

    Exponents by theory are omega for the exponents that quotients give, omega + 1 / nu for where their xi / L is equal,
    and 1 / nu for the places of peaks.

    Args:
        found: What ``quotients`` or ``peaks`` return.
        name: ``crossing``, ``nu``, ``eta`` or a power of quotients, ``place`` or ``height`` of peaks.
        exponent: Exponent of the correction; None fits it, which takes three sizes or more.
        smallest: Smaller sizes are left out.

    Returns:
        The fit, a ``SizeFit``: ``value`` is the limit, with ``error``, ``chi2``, ``freedom`` and ``probability``.

    Raises:
        InputError: for an unknown name, too few sizes, and values that could not be found in some size.

    Source: M. E. Fisher, M. N. Barber, Phys. Rev. Lett. 28, 1516 (1972).

    Examples:
        >>> runs = [ss.temper(ss.Ising(ss.square(L)), "2.1:2.5:9", 4000) for L in (4, 6, 8)]
        >>> found = ss.infinite_size(ss.quotients(runs), "crossing", exponent=2)
        >>> abs(found.value - 2.269) < 4 * found.error + 0.02
        True
    """
    sides, values, covariance = _collected(found, name, smallest, 2 if exponent is not None else 3)
    whitener, scale = _whitener(covariance), sides.min()

    def design(given: float) -> Array:
        return np.stack([np.ones_like(sides), (sides / scale) ** -given], axis=1)

    def deviations(parameters: Array) -> Array:
        matrix = whitener @ design(parameters[0])
        return np.asarray(whitener @ values - matrix @ np.linalg.lstsq(matrix, whitener @ values, rcond=None)[0])

    if exponent is not None:
        if not 0 < exponent < np.inf:
            raise InputError(f"exponent {exponent!r} is no correction that vanishes: give a number above 0")
        best, slope = float(exponent), np.empty((len(sides), 0))
    else:
        searches = [least_squares(deviations, [start], bounds=(LEAST, MOST)) for start in EXPONENTS]
        best = float(min(searches, key=lambda one: one.cost).x[0])
        slope = None
    matrix = whitener @ design(best)
    limit, amplitude = np.linalg.lstsq(matrix, whitener @ values, rcond=None)[0]
    if slope is None:  # derivative by the exponent
        slope = (whitener @ (-amplitude * np.log(sides / scale) * (sides / scale) ** -best))[:, None]
    errors = np.sqrt(np.diag(np.linalg.pinv(np.hstack([matrix, slope]).T @ np.hstack([matrix, slope]))))
    return _fit(
        name, (float(limit), float(errors[0])), float(amplitude * scale**best),
        (best, float(errors[2]) if len(errors) > 2 else 0.0), whitener @ values - matrix @ [limit, amplitude],
        len(errors), (sides, values, covariance),
    )  # fmt: skip


@public
def power_of_size(found: Sequence[OfSize], name: str = "height", *, smallest: float = 0) -> SizeFit:
    """Power of L by which the values of quotients or peaks grow: fit ln y = ln a + p ln L.

    Heights of peaks of a susceptibility grow with gamma / nu, largest slopes of cumulants and of xi / L with 1 / nu.

    Args:
        found: What ``peaks`` or ``quotients`` return.
        name: ``height`` of peaks, or another positive number of what was found.
        smallest: Smaller sizes are left out.

    Returns:
        The fit, a ``SizeFit``: ``value`` is p, with ``error``, ``chi2``, ``freedom`` and ``probability``.

    Raises:
        InputError: for an unknown name, too few sizes, and values that are not positive.
    """
    sides, values, covariance = _collected(found, name, smallest, 2)
    if np.any(values <= 0):
        raise InputError(f"some {name} is not positive: a power of L has no sign")
    whitener = _whitener(covariance / np.outer(values, values))
    matrix = whitener @ np.stack([np.ones_like(sides), np.log(sides)], axis=1)
    constant, power = np.linalg.lstsq(matrix, whitener @ np.log(values), rcond=None)[0]
    error = float(np.sqrt(np.linalg.pinv(matrix.T @ matrix)[1, 1]))
    deviations = whitener @ np.log(values) - matrix @ [constant, power]
    return _fit(
        name, (float(power), error), float(np.exp(constant)), (np.nan, 0.0), deviations, 2, (sides, values, covariance)
    )


def _fit(
    name: str, value: tuple[float, float], amplitude: float, exponent: tuple[float, float], deviations: Array,
    fitted: int, data: tuple[Array, Array, Array],
) -> SizeFit:  # fmt: skip
    sides, values, covariance = data
    chi2, freedom = float(deviations @ deviations), len(sides) - fitted
    probability = float(chi_squared.sf(chi2, freedom)) if freedom else np.nan
    errors = np.sqrt(np.diag(covariance))
    return SizeFit(name, *value, amplitude, *exponent, chi2, freedom, probability, sides, values, errors)


def _collected(found: Sequence[OfSize], name: str, smallest: float, fewest: int) -> tuple[Array, Array, Array]:
    """L, values and their covariance, from the resamples that have all of them."""
    kept = [one for one in found if one.side >= smallest]
    if len(kept) < fewest:
        raise InputError(f"{len(kept)} values of different sizes are too few, {fewest} are the fewest: give more sizes")
    for one in kept:
        if name not in one.resampled:
            raise InputError(f"there is no {name!r} in what was found: choose {either(tuple(one.resampled))}")
    rows = np.stack([one.resampled[name] for one in kept], axis=1)
    if not np.isfinite(rows[0]).all():
        lacking = ", ".join(f"{one.side:g}" for one in kept if not np.isfinite(one.resampled[name][0]))
        raise InputError(f"L = {lacking} has no {name}: give a wider ladder, more sweeps, or leave it out by smallest")
    complete = rows[1:][np.isfinite(rows[1:]).all(axis=1)]
    return np.array([one.side for one in kept]), rows[0], np.atleast_2d(np.cov(complete, rowvar=False))


def _whitener(covariance: Array) -> Array:
    return np.asarray(np.linalg.inv(np.linalg.cholesky(covariance)))
