"""Exponential autocorrelation times: the decay of the slowest process that a series shows.

An autocorrelation is a sum of exponentials, of which the slowest is left alone at long times t. Beyond the integrated
time tau_int it is fitted by A exp(-t / tau_exp) up to 3 tau_int; noise hides it later. If tau_exp is larger than
tau_int by more than its error, faster processes are still in the fit, which is then repeated from this tau_exp on.

The fit is one of generalised least squares, because noise at neighbouring t is correlated: for exponentials of time
tau, with q = exp(-1 / tau) and n measurements in all chains, by Bartlett's formula

    n cov(t, t') = f(|t - t'|) + f(t + t'),    f(d) = q^d (d + (1 + q^2) / (1 - q^2)).

Sources: R. Alvarez Banos et al., J. Stat. Mech. P06026 (2010), section 2.4, for the walk of replicas through
temperatures; M. S. Bartlett, Suppl. J. R. Stat. Soc. 8, 27 (1946).
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from spinsim.analysis.autocorrelation import Array, autocovariance, windowed_sum

_LAST: Final = 3  # integrated times up to which exponentials are fitted
_IN_ONE: Final = 4  # points of a fit in one integrated time, at most
_FEWEST: Final = 3  # points of a fit
_MOST_STEPS: Final = 50  # of a fit; one that converges takes about ten
_ROUNDING: Final = 1e-9  # of a rate
_MOST_RATE: Final = 10.0  # in units of 1 / tau, beyond which there is only noise
_MOST_ERROR: Final = 0.5  # of a time: a larger error says that noise hides the decay


def exponential_time(centred: Array, chains: float) -> tuple[float, float]:
    """Exponential autocorrelation time of chains of known mean 0, and its standard error.

    Averages over blocks of measurements decay with the same time, given in blocks.

    Args:
        centred: Chains of mean 0, which is not subtracted, (n, columns).
        chains: Number of independent chains that the columns are worth.

    Returns:
        The time and its error in steps of the series; NaN and NaN if tau_int is below one step, if the series is too
        short, or if noise hides the decay, as it does where the autocorrelation falls below 0.
    """
    tau, covariance = windowed_sum(centred)[0], autocovariance(centred)
    best = np.nan, np.nan
    while True:
        time, error = _fitted(covariance, tau, chains)
        if np.isnan(time) or time < best[0]:  # later parts of a sum of exponentials never decay faster
            return best
        best = time, error
        if time <= tau + error:
            return best
        tau = time


def _bartlett(lags: npt.NDArray[np.int64], tau: float) -> Array:
    q = np.exp(-1 / tau)

    def f(d: npt.NDArray[np.int64]) -> Array:
        return np.asarray(q**d * (d + (1 + q**2) / (1 - q**2)))

    return f(np.abs(np.subtract.outer(lags, lags))) + f(np.add.outer(lags, lags))


def _fitted(covariance: Array, tau: float, chains: float) -> tuple[float, float]:
    """Fit A exp(-rate t / tau) to covariances (n,) from ``tau`` on; return tau / rate and its error, or NaN."""
    length, first, step = len(covariance), int(np.ceil(tau)), max(1, int(tau / _IN_ONE))
    lags = np.arange(first, max(int(_LAST * tau), first + 2 * step) + 1, step)
    lags = lags[lags <= length // 2]
    if first < 1 or len(lags) < _FEWEST:
        return np.nan, np.nan
    noise = _bartlett(lags, tau) / chains / np.sqrt(np.multiply.outer(length - lags, length - lags))
    whiten = np.linalg.inv(np.linalg.cholesky(noise))
    times, values = lags / tau, covariance[lags] / covariance[0]
    found = np.ones(2)  # A and the rate, by the method of Gauss and Newton
    for _ in range(_MOST_STEPS):
        decay = np.exp(-found[1] * times)
        slopes = whiten @ np.stack([decay, -found[0] * times * decay], axis=1)
        change = np.linalg.lstsq(slopes, whiten @ (values - found[0] * decay))[0]
        found += change
        if found.min() <= 0 or found[1] > _MOST_RATE:  # noise hides the decay
            return np.nan, np.nan
        if abs(change[1]) < _ROUNDING * found[1]:
            break
    rate, error = float(found[1]), float(np.sqrt(np.linalg.pinv(slopes.T @ slopes)[1, 1]))
    return (tau / rate, tau * error / rate**2) if error <= _MOST_ERROR * rate else (np.nan, np.nan)
