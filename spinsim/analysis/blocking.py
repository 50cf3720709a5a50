"""Integrated autocorrelation times by blocking, of series of which sums over 1, 2, 4, ... measurements were kept.

With s(B) the variance of sums over B consecutive measurements, divided by B and by the variance of one of them,

    s(B) = 1 + 2 sum over 0 < t < B of (1 - t / B) rho(t),
    2 s(2 B) - s(B) = 1 + 2 sum over 0 < t < 2 B of w(t) rho(t),

where w(t) is 1 for t < B and falls to 0 as 2 - t / B: a window with a flat top, which leaves nothing out of rho up to
B, as s(B) alone does in order 1 / B (H. Flyvbjerg, H. G. Petersen, J. Chem. Phys. 91, 461 (1989); D. N. Politis, J. P.
Romano, J. Time Ser. Anal. 16, 67 (1995)). Where the sums over blocks of L measurements are known one by one, their
covariances up to J blocks apart add up to such a window too, which is 1 up to J L and 0 from (J + 1) L on.

The width W of a window is the sum of w(t): (3 B - 1) / 2 and J L + (L - 1) / 2. Two neighbouring windows are mixed in
proportion, so that W can be the smallest whole number with W >= 6 tau(W), as ``integrated_time`` chooses it. Where the
measured mean was taken off, variance and tau are corrected for it (U. Wolff, Comput. Phys. Commun. 156, 143 (2004), eq.
49), whose 2 W + 1 is the same sum over the window.

The error of tau is tau sqrt((4 V + 2) / n). Of covariances V is W, as Madras and Sokal have it. Sums of levels do not
overlap and leave products of neighbouring sums out: for series that are short of memory the covariance of s(B) and
s(B') is 2 min(B, B') / n, in units of their squares, which makes 10 B / n of the variance of 2 s(2 B) - s(B), and
V = (5 B - 1) / 2. Of neighbouring windows the covariance is (4 W + 2) / n with W the smaller width.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim.analysis.autocorrelation import SHORTEST, WINDOW, IntegratedTime

Array = npt.NDArray[np.float64]


class Windows(NamedTuple):
    """Sums of the autocorrelation within windows of growing width."""

    tau: Array  # 1/2 + the sum, not corrected for a mean that was taken off, (windows, ...)
    width: Array  # width of each window, (windows,)
    noise: Array  # V of each, likewise


class Windowed(NamedTuple):
    """The sum within the window that was chosen, arrays of the trailing shape of ``Windows.tau``."""

    tau: Array
    width: Array
    noise: Array
    is_wide: npt.NDArray[np.bool_]  # whether it is as wide as it should be


def usable(length: int) -> int:
    """Levels whose sums are over half of a chain at most."""
    return max(1, (length // 2).bit_length())


def level_windows(variance: Array) -> Windows:
    """Windows from mean squares of sums over 2^l measurements, divided by 2^l, (levels, ...); the first has no t."""
    s = variance / np.where(variance[0] > 0, variance[0], 1.0)
    size = 2.0 ** np.arange(-1, len(variance) - 1)  # B of each window
    width, noise = (3 * size - 1) / 2, (5 * size - 1) / 2
    width[0] = noise[0] = 0.0
    return Windows(np.concatenate([s[:1] / 2, s[1:] - s[:-1] / 2]), width, noise)


def with_blocks(short: Windows, means: Array, length: int, variance: Array) -> Windows:
    """Go on with windows from averages over blocks (blocks, ...) where those of levels are as long as a block.

    Args:
        short: From levels.
        means: Averages over consecutive blocks.
        length: Measurements of a block, a power of two.
        variance: Variance of one measurement.
    """
    blocks, kept = len(means), length.bit_length()
    centred, covariance = means - means.mean(axis=0), np.empty_like(means)
    for lag in range(blocks):
        covariance[lag] = (centred[lag:] * centred[: blocks - lag]).mean(axis=0)
    sums = length * (np.cumsum(covariance, axis=0) - covariance[0] / 2)
    most = max(2, blocks - 1)  # the mean that was taken off leaves the last one nothing
    tau = sums[1:most] / np.where(variance > 0, variance, 1.0)
    width = length * np.arange(1.0, most) + (length - 1) / 2
    each = zip(short, (tau, width, width), strict=True)
    return Windows(*(np.concatenate([first[:kept], later]) for first, later in each))


def chosen_window(windows: Windows, least_window: npt.ArrayLike = 0) -> Windowed:
    """Mix two neighbouring windows to the smallest W >= 6 tau(W) that is no smaller than ``least_window``."""
    tau, width, noise = windows
    trailing = tau.shape[1:]
    least = np.broadcast_to(np.asarray(least_window, np.float64), trailing)
    missing = np.maximum(WINDOW * tau, least) - width.reshape(-1, *[1] * len(trailing))
    is_wide = (missing <= 0).any(axis=0)
    upper = np.where(is_wide, (missing <= 0).argmax(axis=0), len(width) - 1)
    lower = np.maximum(upper - 1, 0)

    def at(level: npt.NDArray[np.int64]) -> Array:
        return np.asarray(np.take_along_axis(tau, level[None], axis=0)[0])

    low, high = width[lower], width[upper]
    # in between 6 tau - W is linear, and W is where it vanishes
    gap_low, gap_high = WINDOW * at(lower) - low, WINDOW * at(upper) - high
    falls = (gap_low > 0) & (gap_high <= 0)
    share = np.divide(gap_low, gap_low - gap_high, out=np.zeros_like(gap_low), where=falls)
    wanted = np.ceil(np.maximum(low + share * (high - low), least) - _ROUNDING)
    span = np.where(high > low, high - low, 1.0)
    share = np.where(is_wide & (high > low), np.clip((wanted - low) / span, 0.0, 1.0), 1.0)
    rest = 1 - share
    mixed = rest**2 * noise[lower] + 2 * rest * share * low + share**2 * noise[upper]
    return Windowed(rest * at(lower) + share * at(upper), rest * low + share * high, mixed, np.asarray(is_wide))


def blocked_time(
    windows: Windows,
    variance: Array,
    mean: Array,
    length: int,
    chains: int,
    in_mean: float,
    least_window: npt.ArrayLike = 0,
) -> IntegratedTime:
    """Integrated autocorrelation times as ``integrated_time`` has them, with its rules of what is trusted.

    The window that is given is V, rounded: from so many covariances the variance of the mean is known.

    Args:
        windows: Sums of the autocorrelation.
        variance: Variance of one measurement, not corrected for the mean that was taken off.
        mean: Mean of all measurements.
        length: Measurements of a chain.
        chains: How many there are.
        in_mean: Measurements that each mean that was taken off is of.
        least_window: As ``integrated_time`` takes it.
    """
    found, total = chosen_window(windows, least_window), length * chains
    is_constant = variance <= 0
    positive = np.maximum(found.tau, 0.0)
    corrected = positive * (1 + (2 * found.width + 1) / in_mean) / (1 + 2 * positive / in_mean)
    tau = np.where(is_constant | (found.tau <= 0), 0.5, corrected)
    whole = variance * (1 + 2 * positive / in_mean)
    error = tau * np.sqrt((4 * found.noise + 2) / total)
    trusted = ~is_constant & found.is_wide & (found.tau > 0) & (length >= SHORTEST * (tau + error))
    return IntegratedTime(
        tau,
        np.where(is_constant, np.nan, error),
        np.where(is_constant, 0, np.rint(found.noise)).astype(np.int64),
        np.asarray(trusted),
        mean,
        np.where(is_constant, np.nan, np.sqrt(2 * tau * whole / total)),
    )


_ROUNDING = 1e-9
"""Rounding of a width that is a whole number."""
