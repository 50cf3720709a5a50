"""Fits of levels c cosh(gap (slices / 2 - t)) to correlations in time."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import least_squares
from scipy.special import fdtrc

from spinsim.analysis.autocorrelation import integrated_time
from spinsim.analysis.jackknife import bin_means

Array = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

BINS: Final = 48
"""Stretches of time that each copy's series is cut into."""
FEWEST_STEPS: Final = 4 * BINS
_ACCEPTED: Final = 0.1
"""Probability of as large a chi^2 from which on a window is taken."""
_CLEAR: Final = 4.0
"""Errors that C(t) must exceed at all times of a fit."""
_MOST_TIMES: Final = 12
"""Of a fit: a covariance of more is known too badly from so few stretches."""
_APART: Final = 0.5
"""Relative error of gaps, and of the distance of two, up to which a fit counts."""


class Fit(NamedTuple):
    """The fit to one series: the attributes of ``gaps.Gaps`` that have its names, and c cosh(...) at ``first``."""

    gap: float = np.nan
    error: float = np.nan
    levels: int = 0
    first: int = 0
    last: int = 0
    chi_squared: float = np.nan
    freedom: int = 0
    probability: float = np.nan
    operators: int = 1
    amplitude: float = np.nan


def mean_of(series: Array) -> tuple[Array, Array, int]:
    """Returns C(t) (times,), its covariance and how many entries both are from, of a series (steps, copies, times).

    Copies are independent. The covariance is that of stretches, widened where these are short.
    """
    times = series.shape[-1]
    entries = bin_means(series, BINS).reshape(-1, times)
    covariance = np.cov(entries.T).reshape(times, times) / len(entries)
    return entries.mean(axis=0), covariance * _widening(series, covariance) ** 2, len(entries)


def fit(mean: Array, covariance: Array, entries: int, times: Integers, slices: int, most_levels: int) -> Fit:
    """Returns the gap that C(t) shows.

    Args:
        mean: C(t), (times,).
        covariance: Of its errors.
        entries: How many stretches of copies it was taken from.
        times: In slices, rising.
        slices: Of the ring.
        most_levels: 2 where a second level may be told apart, else 1.
    """
    lost = np.flatnonzero(mean < _CLEAR * np.sqrt(np.diag(covariance)))
    end = int(lost[0]) if lost.size else len(times)
    for levels in range(most_levels, 0, -1):
        found = _best(mean[:end], covariance[:end, :end], times[:end], slices / 2, entries, levels)
        if found is not None:
            return found
    return Fit()


def _best(mean: Array, covariance: Array, times: Integers, half: float, count: int, levels: int) -> Fit | None:
    """Returns the fit of so many levels one time behind the first from which on it is good; None where there is none.

    Where there is no window one time behind, as the series is lost in noise, the good one itself is taken.
    """
    fits: list[Fit] = []
    for start in range(len(times) - 2 * levels):
        chosen = slice(start, start + _MOST_TIMES)
        fits.append(_window(mean[chosen], covariance[chosen, chosen], times[chosen], half, count, levels))
        if len(fits) > 1 and fits[-2].probability >= _ACCEPTED:
            break
    is_good = any(each.probability >= _ACCEPTED for each in fits[-2:])
    return fits[-1] if is_good and np.isfinite(fits[-1].error) else None


def _widening(series: Array, covariance: Array) -> float:
    """Returns the factor by which errors grow where stretches are short against the autocorrelation time."""
    naive = np.sqrt(np.diag(covariance))
    true = integrated_time(series, chain_axis=1).mean_error
    ratio = np.divide(np.nan_to_num(true), naive, out=np.ones_like(naive), where=naive > 0)
    return max(1.0, float(ratio.max()))


def _window(c: Array, covariance: Array, t: Integers, half: float, count: int, levels: int) -> Fit:
    """Returns the fit to C(t) at some times, from so many entries; it has no error where levels are not told apart."""
    if np.linalg.matrix_rank(covariance) < len(t):
        return Fit()
    whiten = np.linalg.cholesky(np.linalg.inv(covariance)).T

    def fitted(logarithms: Array) -> tuple[Array, Array]:
        shapes = np.stack([decay(gap, t, half) for gap in np.exp(logarithms).cumsum()], axis=1)
        return shapes, np.asarray(np.linalg.lstsq(whiten @ shapes, whiten @ c, rcond=None)[0], np.float64)

    def residual(logarithms: Array) -> Array:
        shapes, amplitudes = fitted(logarithms)
        return np.asarray(whiten @ (shapes @ amplitudes - c))

    slope = np.log(c[0] / c[1]) if c[0] > c[1] > 0 else 1 / half
    first = least_squares(residual, np.log([slope] if levels == 1 else [0.8 * slope, slope]), bounds=(-12, 3))
    jacobian = np.asarray(first.jac, np.float64)
    freedom, score = len(t) - 2 * levels, 2 * float(first.cost)
    gap, amplitudes = float(np.exp(first.x[0])), fitted(first.x)[1]
    error = np.nan
    if np.linalg.matrix_rank(jacobian) == levels and (amplitudes > 0).all():
        spread = np.sqrt(np.diag(np.linalg.inv(jacobian.T @ jacobian)) * (1 + freedom / (count - freedom - 2)))
        if (spread < _APART).all():
            error = gap * float(spread[0])
    probability = float(fdtrc(freedom, count - freedom, score * (count - freedom) / (freedom * (count - 1))))
    return Fit(gap, error, levels, int(t[0]), int(t[-1]), score, freedom, probability, amplitude=float(amplitudes[0]))


def decay(gap: float, times: Integers, half: float) -> Array:
    """Returns cosh(gap (half - t)), 1 at the first time."""
    up, down = np.exp(-gap * (times - times[0])), np.exp(-gap * (2 * half - times - times[0]))
    return np.asarray((up + down) / (up[0] + down[0]))
