"""Integrated autocorrelation times, and the errors of means that follow from them.

Convention: tau_int = 1/2 + sum over t >= 1 of rho(t), which is 1/2 for uncorrelated data, in units of the distance
between two measurements. The error of a mean over n measurements is sigma sqrt(2 tau_int / n).

Sources: N. Madras, A. D. Sokal, J. Stat. Phys. 50, 109 (1988), appendix C; A. D. Sokal, Monte Carlo methods in
statistical mechanics: foundations and new algorithms, in Functional Integration (Plenum, 1997), lecture 3; U. Wolff,
Comput. Phys. Commun. 156, 143 (2004), for several chains and the correction of the bias.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from spinsim.errors import InputError
from spinsim.inputs.checks import finite_array

Array = npt.NDArray[np.float64]

WINDOW: Final = 6  # autocorrelation times that the sum's window must span
SHORTEST: Final = 20  # autocorrelation times that a chain must span to be trusted


@dataclass(frozen=True)
class IntegratedTime:
    """Integrated autocorrelation times and means, of the series' trailing shape (without the axis of the chains)."""

    tau: Array  # tau_int in measurements; 1/2 for uncorrelated data
    error: Array
    """Statistical error of tau, tau sqrt((4 W + 2) / n) with n measurements in all chains together; NaN for a constant
    series."""
    window: npt.NDArray[np.int64]  # W, the last t that the sum of the autocorrelation takes in
    trusted: npt.NDArray[np.bool_]
    """False where a chain is shorter than 20 (tau + error), where no window is wide enough, for a constant series, and
    for one so strongly anticorrelated that the sum is not positive."""
    mean: Array  # mean of all measurements
    mean_error: Array
    """Standard error of the mean, sigma sqrt(2 tau / n); NaN for a constant series, of which no error is known."""


def integrated_time(
    series: npt.ArrayLike, chain_axis: int | None = None, least_window: npt.ArrayLike = 0
) -> IntegratedTime:
    """Integrated autocorrelation time, tau = 1/2 + rho(1) + ... + rho(W), with an automatic window.

    W is the smallest with W >= 6 tau(W) (Sokal 1997, lecture 3: 4 suffices for one exponential, 6 is prudent). Variance
    and tau are corrected for the mean that is subtracted (Wolff 2004, eq. 49). The error of tau is Madras and Sokal's,
    for W much larger than tau; the scatter of tau in simple processes is 10 to 25 % below it. A series shorter than its
    tau cannot know it: for AR(1) series of 5 tau the verdict ``trusted`` is wrong in 3 of 100. A constant series has
    tau 1/2, and so has one whose windowed sum is not positive (an upper bound then); neither is trusted.

    Args:
        series: Measurements in order of time, of shape (n, ...); each trailing index is a series of its own.
        chain_axis: Axis that counts independent chains (replicas) of equal length, if there is one. Their
            autocovariances are averaged; chains that disagree in their means lengthen tau until it is not trusted.
        least_window: Smallest W of each observable, of the trailing shape: the time of a slow process that is known to
            be there, which may stay hidden in the sum up to 6 tau.
    """
    chains = _chains_second(series, chain_axis)
    length, count, *trailing = chains.shape
    columns = chains.reshape(length, count, -1)
    least = np.broadcast_to(np.asarray(least_window), trailing).ravel()
    rows = [_integrate(columns[:, :, k], float(least[k])) for k in range(columns.shape[2])]
    tau, error, window, trusted, mean, mean_error = (
        np.array(column).reshape(trailing) for column in zip(*rows, strict=True)
    )
    return IntegratedTime(tau, error, window.astype(np.int64), trusted, mean, mean_error)


def _integrate(chains: Array, least_window: float) -> tuple[float, float, int, bool, float, float]:
    """The fields of ``IntegratedTime`` for one observable, from its chains (n, count)."""
    length, total = len(chains), chains.size
    mean = float(chains.mean())
    if chains.max() == chains.min():
        return 0.5, np.nan, 0, False, mean, np.nan
    scale = float(np.abs(chains - mean).max())  # squares of tiny weights would vanish
    raw, window, wide, variance = windowed_sum((chains - mean) / scale, least_window)
    # the measured mean takes 2 tau variance / n from each of the covariances, the variance among them
    tau = raw * (1 + (2 * window + 1) / total) / (1 + 2 * raw / total) if raw > 0 else 0.5
    variance *= 1 + 2 * max(raw, 0) / total
    error = float(tau * np.sqrt((4 * window + 2) / total))
    trusted = bool(wide and raw > 0 and length >= SHORTEST * (tau + error))
    return tau, error, window, trusted, mean, scale * float(np.sqrt(2 * tau * variance / total))


def windowed_sum(centred: Array, least_window: float = 0) -> tuple[float, int, bool, float]:
    """Sum the autocorrelation of chains (n, count) whose mean is 0, which is not taken off.

    Returns 1/2 + rho(1) + ... + rho(W), the window W, whether it is as wide as it should be, and the variance.
    """
    covariance = autocovariance(centred)
    partial = np.cumsum(covariance) / covariance[0] - 0.5
    wide = np.flatnonzero(np.arange(len(centred)) >= np.maximum(WINDOW * partial, least_window))
    window = int(wide[0]) if wide.size else len(centred) - 1
    return float(partial[window]), window, bool(wide.size), float(covariance[0])


def _chains_second(series: npt.ArrayLike, chain_axis: int | None) -> Array:
    """The series as (n, chains, ...)."""
    values = finite_array(series, "series")
    if chain_axis is None:
        return values[:, None]
    if not 1 <= chain_axis % values.ndim < values.ndim or not -values.ndim <= chain_axis < values.ndim:
        raise InputError(
            f"chain_axis {chain_axis} does not count chains of a series of shape {values.shape}: axis 0 is time"
        )
    return np.moveaxis(values, chain_axis, 1)


def autocovariance(centred: Array) -> Array:
    """Gamma(t) of series (n, chains, ...) whose mean is 0, for t = 0 to n - 1, by FFT with zero padding.

    It is the mean over the chains and over the n - t pairs of each. Noise dominates it beyond a few tau. Where the mean
    that was taken off is the measured one, Gamma is lower by about 2 tau Gamma(0) / n.
    """
    from scipy.fft import irfft, next_fast_len, rfft  # which small runs do without

    length = len(centred)
    size = next_fast_len(2 * length, real=True)
    spectrum = rfft(centred, size, axis=0)
    sums = irfft(spectrum.real**2 + spectrum.imag**2, size, axis=0)[:length].mean(axis=1)
    pairs = (length - np.arange(length)).reshape(-1, *[1] * (sums.ndim - 1))
    return np.asarray(sums / pairs)
