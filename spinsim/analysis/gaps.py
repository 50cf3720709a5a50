"""Correlations in time of runs of space and time, and the gaps that follow from their decay.

C(t), the average over sites and slices of s(tau) s(tau + t), is a sum over the levels of odd parity, as a spin changes
the parity: with slices many gaps long each contributes c cosh(gap (slices / 2 - t)), gap = ln(lambda_even / lambda_odd)
in units of 1 / step in time. The lowest one is all that is left at long times.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import least_squares
from scipy.special import fdtrc

from spinsim.analysis.autocorrelation import integrated_time
from spinsim.analysis.jackknife import bin_means
from spinsim.analysis.runs import Tempered
from spinsim.errors import InputError

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


@dataclass(frozen=True)
class InTimeCurve:
    """C(t) with its errors.

    Attributes:
        time: In slices, (times,).
        value: Averaged over time, copies and disorder, (temperatures, times).
        error: Standard error: from sample to sample where there are several, else from the series' own correlation.
        trusted: Whether the error is one, as ``Estimate`` says.
    """

    time: Integers
    value: Array
    error: Array
    trusted: npt.NDArray[np.bool_]


class Gaps(NamedTuple):
    """The gap of odd parity of each sample at each place of the ladder, (samples, places); NaN where none is.

    Attributes:
        gap: ln(lambda_even / lambda_odd), in units of 1 / step in time.
        error: Its standard error.
        levels: How many were fitted: 2, or 1 where a second one is not told apart; 0 where no fit is good.
        first: First time of the window that was fitted, in slices; 0 where there is none.
        last: Last time of it.
        chi_squared: Of the fit, with the correlation of the times.
        freedom: Degrees of freedom.
        probability: Of as large a chi^2, allowing for a covariance that is known from few stretches.
    """

    gap: Array
    error: Array
    levels: Integers
    first: Integers
    last: Integers
    chi_squared: Array
    freedom: Integers
    probability: Array


def correlation_in_time(result: Tempered) -> InTimeCurve:
    """C(t) at each place of the ladder.

    Raises:
        InputError: for a run of space alone, and for fewer than 16 measurements.
    """
    values, times = _series(result, 16)
    samples, shape = values.shape[1], values.shape[3:]
    of_samples = values.mean(axis=(0, 2))
    if samples > 1:
        error = of_samples.std(axis=0, ddof=1) / np.sqrt(samples)
        return InTimeCurve(times, of_samples.mean(axis=0), error, np.isfinite(error) & (error > 0))
    flat = values[:, 0].reshape(*values.shape[:1], values.shape[2], -1)
    found = integrated_time(flat, chain_axis=1)
    return InTimeCurve(times, of_samples[0], found.mean_error.reshape(shape), found.trusted.reshape(shape))


def gaps(result: Tempered) -> Gaps:
    """Fit levels c cosh(gap (slices / 2 - t)) to C(t) of each sample at each place of the ladder.

    Two levels where they are told apart, of which the lower gap is given, else one. Levels that lie closer than a fit
    can tell raise the gap: the error does not hold that. The fit takes the covariance of the times, from stretches of
    the series and widened where these are short against the autocorrelation time. Its window ends before the first
    time at which C(t) is not four errors above 0; it begins one time behind the first from which on the fit is good,
    with a probability of chi^2 of 0.1 or more, and has twelve times at most.

    Raises:
        InputError: for a run of space alone or in a field, which breaks parity, and for too few measurements.
    """
    if result.model.fields.any():
        raise InputError(
            f"{result.model.name} is in a field, where parity is broken and C(t) does not vanish: leave the field out "
            "for gaps of each parity"
        )
    values, times = _series(result, FEWEST_STEPS)
    slices, (_, samples, _, places, _) = result.model.graph.slices, values.shape
    rows = [[_fit(values[:, k, :, p], times, slices) for p in range(places)] for k in range(samples)]
    columns = (np.array([[getattr(one, name) for one in row] for row in rows]) for name in Gaps._fields)
    return Gaps(*columns)


def _series(result: Tempered, least: int) -> tuple[Array, Integers]:
    """C(t) of every measurement, (steps, samples, copies, temperatures, times), and the times."""
    measured = result.in_time
    if measured is None:
        raise InputError(f"the run of {result.model.name} has no slices in time: give the file of a quantum run")
    if len(measured.correlation) < least:
        raise InputError(f"{len(measured.correlation)} measurements are too few: give at least {least}")
    return measured.correlation, measured.times


class _One(NamedTuple):
    """``Gaps`` of one sample at one place."""

    gap: float = np.nan
    error: float = np.nan
    levels: int = 0
    first: int = 0
    last: int = 0
    chi_squared: float = np.nan
    freedom: int = 0
    probability: float = np.nan


def _fit(series: Array, times: Integers, slices: int) -> _One:
    """The fit to a series (steps, copies, times)."""
    entries = bin_means(series, BINS).reshape(-1, len(times))
    covariance = np.cov(entries.T).reshape(len(times), len(times)) / len(entries)
    covariance *= _widening(series, covariance) ** 2
    mean, half = entries.mean(axis=0), slices / 2
    lost = np.flatnonzero(mean < _CLEAR * np.sqrt(np.diag(covariance)))
    end = int(lost[0]) if lost.size else len(times)
    two = _best(mean[:end], covariance[:end, :end], times[:end], half, len(entries), 2)
    return two or _best(mean[:end], covariance[:end, :end], times[:end], half, len(entries), 1) or _One()


def _best(mean: Array, covariance: Array, times: Integers, half: float, count: int, levels: int) -> _One | None:
    """The fit of so many levels one time behind the first from which on it is good; None where there is none."""
    fits = []
    for start in range(len(times) - 2 * levels):
        chosen = slice(start, start + _MOST_TIMES)
        fits.append(_window(mean[chosen], covariance[chosen, chosen], times[chosen], half, count, levels))
        if len(fits) > 1 and fits[-2].probability >= _ACCEPTED:
            break
    found = fits[-1] if fits else _One()
    return found if np.isfinite(found.error) else None


def _widening(series: Array, covariance: Array) -> float:
    """Factor of the errors where stretches are short against the autocorrelation time."""
    naive = np.sqrt(np.diag(covariance))
    true = integrated_time(series, chain_axis=1).mean_error
    ratio = np.divide(np.nan_to_num(true), naive, out=np.ones_like(naive), where=naive > 0)
    return max(1.0, float(ratio.max()))


def _window(c: Array, covariance: Array, t: Integers, half: float, count: int, levels: int) -> _One:
    """The fit to C(t) at some times, from so many entries; without an error where the levels are not told apart."""
    if np.linalg.matrix_rank(covariance) < len(t):
        return _One()
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
    return _One(gap, error, levels, int(t[0]), int(t[-1]), score, freedom, probability)


def decay(gap: float, times: Integers, half: float) -> Array:
    """cosh(gap (half - t)), 1 at the first time."""
    up, down = np.exp(-gap * (times - times[0])), np.exp(-gap * (2 * half - times - times[0]))
    return np.asarray((up + down) / (up[0] + down[0]))
