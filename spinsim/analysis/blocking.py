"""Integrated autocorrelation times by blocking, of series of which sums over 1, 2, 4, ... measurements were kept.

With s(B) the variance of sums over B consecutive measurements, divided by B and by the variance of one of them,

    s(B) = 1 + 2 sum over 0 < t < B of (1 - t / B) rho(t),
    2 s(2 B) - s(B) = 1 + 2 sum over 0 < t < 2 B of w(t) rho(t),

where w(t) is 1 for t < B and falls to 0 as 2 - t / B: a window with a flat top, which leaves nothing out of rho up to
B, as s(B) alone does in order 1 / B (H. Flyvbjerg, H. G. Petersen, J. Chem. Phys. 91, 461 (1989); D. N. Politis, J. P.
Romano, J. Time Ser. Anal. 16, 67 (1995)). Its width W is the sum of w(t), (3 B - 1) / 2. Between the widths of two
neighbouring B both are mixed in proportion, so that W can be the smallest with W >= 6 tau(W), as ``integrated_time``
chooses it.

The error of tau is tau sqrt((4 V + 2) / n), V the sum of w(t)^2: Madras and Sokal's, whose rectangular window has V =
W. Where the measured mean was taken off, variance and tau are corrected for it (U. Wolff, Comput. Phys. Commun. 156,
143 (2004), eq. 49), whose 2 W + 1 is the same sum over the window.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim.analysis.autocorrelation import SHORTEST, WINDOW, IntegratedTime

Array = npt.NDArray[np.float64]


class Levels(NamedTuple):
    """Sums over 2^l consecutive measurements of chains, l from 0; arrays of shape (levels, ...).

    Attributes:
        variance: Mean square of the sums about their mean, divided by 2^l.
        length: Measurements of a chain.
        chains: How many are followed one by one.
        in_mean: Measurements from which a mean that was taken off is known; infinite where it was known before.
    """

    variance: Array
    length: int
    chains: int
    in_mean: float


class Windowed(NamedTuple):
    """Sums of the autocorrelation within windows, of the shape that ``Levels`` have without that of the levels."""

    tau: Array  # 1/2 + the sum, not corrected for the mean that was taken off
    width: Array  # W, the sum of the weights
    squares: Array  # V, the sum of their squares
    is_wide: npt.NDArray[np.bool_]  # whether W is as large as it should be


def usable(length: int, share: float = 0.5) -> int:
    """Levels whose sums are over a share of a chain at most."""
    return max(1, int(share * length).bit_length())


def windowed_levels(variance: Array, least_window: npt.ArrayLike = 0) -> Windowed:
    """Sum the autocorrelation up to the smallest width W >= 6 tau(W) that is no smaller than ``least_window``."""
    levels, trailing = len(variance), variance.shape[1:]
    s = variance / np.where(variance[0] > 0, variance[0], 1.0)
    tau = np.concatenate([s[:1] / 2, s[1:] - s[:-1] / 2])
    size = 2.0 ** np.arange(-1, levels - 1)  # B of each window, of which the first is none
    width, squares = (3 * size - 1) / 2, size - 1 + (size + 1) * (2 * size + 1) / (6 * size)
    width[0] = squares[0] = 0.0
    least = np.broadcast_to(np.asarray(least_window, np.float64), trailing)
    missing = np.maximum(WINDOW * tau, least) - width.reshape(-1, *[1] * len(trailing))
    is_wide = (missing <= 0).any(axis=0)
    upper = np.where(is_wide, (missing <= 0).argmax(axis=0), levels - 1)
    lower = np.maximum(upper - 1, 0)

    def at(values: Array, level: npt.NDArray[np.int64]) -> Array:
        return np.asarray(np.take_along_axis(values, level[None], axis=0)[0])

    # between two windows 6 tau - W is linear, and W is where it vanishes
    gap_low, gap_high = (WINDOW * at(tau, level) - width[level] for level in (lower, upper))
    falls = (gap_low > 0) & (gap_high <= 0)
    share = np.divide(gap_low, gap_low - gap_high, out=np.zeros_like(gap_low), where=falls)
    span = np.maximum(width[upper] - width[lower], 1e-300)
    share = np.maximum(share, np.clip((least - width[lower]) / span, 0.0, 1.0))
    share = np.where(is_wide & (upper > 0), share, 1.0)
    rest = 1 - share
    mixed = rest**2 * squares[lower] + 2 * rest * share * width[lower] + share**2 * squares[upper]
    return Windowed(
        rest * at(tau, lower) + share * at(tau, upper), rest * width[lower] + share * width[upper], mixed, is_wide
    )


def blocked_time(levels: Levels, mean: Array, least_window: npt.ArrayLike = 0) -> IntegratedTime:
    """Integrated autocorrelation times as ``integrated_time`` has them, with its rules of what is trusted.

    ``mean`` is that of all measurements. The window that is given is V, rounded: so many covariances tell the variance
    of the mean.
    """
    found, total = windowed_levels(levels.variance, least_window), levels.length * levels.chains
    is_constant = levels.variance[0] <= 0
    positive = np.maximum(found.tau, 0.0)
    corrected = positive * (1 + (2 * found.width + 1) / levels.in_mean) / (1 + 2 * positive / levels.in_mean)
    tau = np.where(is_constant | (found.tau <= 0), 0.5, corrected)
    variance = levels.variance[0] * (1 + 2 * positive / levels.in_mean)
    error = tau * np.sqrt((4 * found.squares + 2) / total)
    trusted = ~is_constant & found.is_wide & (found.tau > 0) & (levels.length >= SHORTEST * (tau + error))
    return IntegratedTime(
        tau,
        np.where(is_constant, np.nan, error),
        np.where(is_constant, 0, np.rint(found.squares)).astype(np.int64),
        np.asarray(trusted),
        mean,
        np.where(is_constant, np.nan, np.sqrt(2 * tau * variance / total)),
    )
