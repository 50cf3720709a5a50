"""Integrated autocorrelation times, and the errors of means that follow from them: of whole series, and by blocking.

Convention: tau_int = 1/2 + sum over t >= 1 of rho(t), which is 1/2 for uncorrelated data, in units of the distance
between two measurements. The error of a mean over n measurements is sigma sqrt(2 tau_int / n).

Blocking serves series that were kept as sums over 1, 2, 4, ... measurements. With s(B) the variance of sums over B
consecutive measurements, divided by B and by the variance of one measurement,

    s(B) = 1 + 2 sum over 0 < t < B of (1 - t / B) rho(t),
    2 s(2 B) - s(B) = 1 + 2 sum over 0 < t < 2 B of w(t) rho(t),

where w(t) is 1 for t < B and falls to 0 as 2 - t / B. This window has a flat top and includes all of rho up to B, while
s(B) alone misses a part of order 1 / B (H. Flyvbjerg, H. G. Petersen, J. Chem. Phys. 91, 461 (1989); D. N. Politis,
J. P. Romano, J. Time Ser. Anal. 16, 67 (1995)). Where each sum over a block of L measurements is known, covariances up
to J blocks apart add up to such a window too, which is 1 up to J L and 0 from (J + 1) L on.

The width W of a window is the sum of w(t): (3 B - 1) / 2 and J L + (L - 1) / 2. Two neighbouring windows are
interpolated, so that W can be the smallest whole number with W >= 6 tau(W), as in ``integrated_time``. Variance and tau
are corrected for subtracting the measured mean (Wolff, eq. 49; 2 W + 1 is the same sum over the window).

Such a window closes before a weak slow part whose correlation is below the noise at one t, but above the noise of the
sum over many. Longer windows therefore decide: where a window of up to n / 16 gives a tau that is larger by more than
two standard errors of the difference, it is taken, and so on (O. V. Lepski, Theory Probab. Appl. 35, 454 (1991)).

The error of tau is tau sqrt((4 V + 2) / n). For windows of covariances V is W (Madras and Sokal). Sums of levels do not
overlap, and omit products of neighbouring sums. For series of short memory the covariance of s(B) and s(B') is
2 min(B, B') / n, in units of their squares. The variance of 2 s(2 B) - s(B) is then 10 B / n, and V = (5 B - 1) / 2.
The covariance of neighbouring windows is (4 W + 2) / n with W the smaller width.

Sources: N. Madras, A. D. Sokal, J. Stat. Phys. 50, 109 (1988), appendix C; A. D. Sokal, Monte Carlo methods in
statistical mechanics: foundations and new algorithms, in Functional Integration (Plenum, 1997), lecture 3; U. Wolff,
Comput. Phys. Commun. 156, 143 (2004), for several chains and the correction of the bias.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim.errors import InputError
from spinsim.inputs.arguments import public
from spinsim.inputs.numbers import finite_array

Array = npt.NDArray[np.float64]

WINDOW: Final = 6  # autocorrelation times that the sum's window must span
SHORTEST: Final = 20  # autocorrelation times that a chain must span to be trusted
FEWEST_CARRIERS: Final = 5  # stretches that must carry the variance, so that it does not rest on a rare event or two
_STRETCHES: Final = 64  # most stretches of a series
_ENOUGH: Final = 20  # stretches that are enough for a known variance
_ROUNDING = 1e-9  # rounding of a width that is a whole number
_LONGEST: Final = 16  # the widest window that may decide is this part of a chain
_SCORE: Final = 2.0  # standard errors by which a wider window must give a larger tau


@dataclass(frozen=True)
class IntegratedTime:
    """Integrated autocorrelation times and means, of the series' trailing shape (without the axis of the chains)."""

    tau: Array  # tau_int in measurements; 1/2 for uncorrelated data
    error: Array  # of tau, tau sqrt((4 W + 2) / n), n measurements in all chains together; NaN for a constant series
    window: npt.NDArray[np.int64]  # W, the last t in the sum of the autocorrelation
    is_resolved: npt.NDArray[np.bool_]
    """False where a chain is shorter than 20 (tau + error), where no window is wide enough, for a constant series and
    for one so strongly anticorrelated that the sum is not positive."""
    mean: Array  # mean of all measurements
    mean_error: Array  # standard error of the mean, sigma sqrt(2 tau / n); NaN for a constant series
    carriers: Array  # stretches of time that carry the variance, see ``carriers_of``; infinite where not computed

    @property
    def trusted(self) -> npt.NDArray[np.bool_]:
        """True where tau is resolved and the variance does not rest on a few rare events."""
        return np.asarray(self.is_resolved & ~self.few)

    @property
    def few(self) -> npt.NDArray[np.bool_]:
        """True where the variance rests on a few rare events, so that it is not known."""
        return np.asarray(self.carriers < FEWEST_CARRIERS)


@public
def integrated_time(
    series: npt.ArrayLike, chain_axis: int | None = None, least_window: npt.ArrayLike = 0
) -> IntegratedTime:
    """Integrated autocorrelation time, tau = 1/2 + rho(1) + ... + rho(W), with an automatic window.

    W is the smallest width with W >= 6 tau(W) (Sokal 1997, lecture 3: 4 suffices for one exponential, 6 is prudent), or
    2, 4, ... times this width where tau is then larger beyond the noise. Variance and tau are corrected for subtracting
    the mean (Wolff 2004, eq. 49). The error of tau is Madras and Sokal's, for W much larger than tau; the scatter of
    tau in simple processes is 10 to 25 % below it. A series shorter than its tau cannot determine tau: for AR(1) series
    of 5 tau ``trusted`` is wrong in 3 of 100 cases. A constant series has tau 1/2, and so has one whose windowed sum is
    not positive (an upper bound then); neither is trusted.

    Args:
        series: Measurements in order of time, of shape (n, ...); each trailing index is a series of its own.
        chain_axis: Axis that counts independent chains (replicas) of equal length, if there is one. Their
            autocovariances are averaged; chains that disagree in their means lengthen tau until it is not trusted.
        least_window: Smallest W of each observable, of the trailing shape: the time of a known slow process, which the
            sum up to 6 tau may miss.

    Returns:
        ``tau`` in units of the time between measurements, its ``error``, the ``window`` W, ``mean`` and ``mean_error``
        of the series, and ``trusted``, False if the series is too short; each of the trailing shape.
    """
    chains = _chains_second(series, chain_axis)
    length, count, *trailing = chains.shape
    columns = chains.reshape(length, count, -1)
    least = np.broadcast_to(np.asarray(least_window), trailing).ravel()
    rows = [_integrate(columns[:, :, k], float(least[k])) for k in range(columns.shape[2])]
    tau, error, window, resolved, mean, mean_error = (np.array(of).reshape(trailing) for of in zip(*rows, strict=True))
    carriers = carriers_of(in_stretches(columns).reshape(-1, columns.shape[2])).reshape(trailing)
    return IntegratedTime(tau, error, window.astype(np.int64), resolved, mean, mean_error, carriers)


def _integrate(chains: Array, least_window: float) -> tuple[float, float, int, bool, float, float]:
    """Fields of ``IntegratedTime``, without the last one, for one observable from its chains (n, count)."""
    length, total = len(chains), chains.size
    mean = float(chains.mean())
    if chains.max() == chains.min():
        return 0.5, np.nan, 0, False, mean, np.nan
    scale = float(np.abs(chains - mean).max())  # squares of tiny weights would vanish
    raw, window, wide, variance = windowed_sum((chains - mean) / scale, least_window)
    # subtracting the measured mean lowers each covariance, and the variance, by 2 tau variance / n
    tau = raw * (1 + (2 * window + 1) / total) / (1 + 2 * raw / total) if raw > 0 else 0.5
    variance *= 1 + 2 * max(raw, 0) / total
    error = float(tau * np.sqrt((4 * window + 2) / total))
    is_resolved = bool(wide and raw > 0 and length >= SHORTEST * (tau + error))
    return tau, error, window, is_resolved, mean, scale * float(np.sqrt(2 * tau * variance / total))


def in_stretches(series: Array) -> Array:
    """Averages of a series (n, ...) over at most 64 equal stretches; first measurements that fill none are dropped."""
    stretch = -(-len(series) // _STRETCHES)
    return np.asarray(series[len(series) % stretch :].reshape(-1, stretch, *series.shape[1:]).mean(axis=1))


def carriers_of(means: Array) -> Array:
    """Count the averages over stretches of time (stretches, ...) that carry the variance.

    The count is (sum of d^2)^2 / sum of d^4 of the deviations d. It is k where k equal events stand out from a
    constant; by Poisson's law the variance is then known to a share 1 / sqrt(k). It is a third of all stretches where
    averages are normal. Fewer than 20 stretches count as if there were 20.
    """
    apart = means - means.mean(axis=0)
    squares = (apart / np.maximum(np.abs(apart).max(axis=0), np.finfo(np.float64).tiny)) ** 2
    carriers = squares.sum(axis=0) ** 2 / np.maximum((squares**2).sum(axis=0), np.finfo(np.float64).tiny)
    return np.asarray(carriers * max(1.0, _ENOUGH / len(means)))


def windowed_sum(centred: Array, least_window: float = 0) -> tuple[float, int, bool, float]:
    """Sum the autocorrelation of chains (n, count) of mean 0; no mean is subtracted.

    Returns 1/2 + rho(1) + ... + rho(W), the window W, True if the window is wide enough, and the variance.
    """
    covariance = autocovariance(centred)
    partial = np.cumsum(covariance) / covariance[0] - 0.5
    wide = np.flatnonzero(np.arange(len(centred)) >= np.maximum(WINDOW * partial, least_window))
    window = int(wide[0]) if wide.size else len(centred) - 1
    doubled = [window]
    while doubled[-1] and 2 * doubled[-1] <= len(centred) // _LONGEST:
        doubled.append(2 * doubled[-1])
    widths = np.array(doubled, np.float64)
    whole = Windows(partial[doubled][:, None], widths, widths)
    chosen = until_longer_agree(whole, Windows(whole.tau[0], widths[:1], widths[:1]), centred.size, doubled[-1])
    window = int(chosen.width[0])
    return float(partial[window]), window, bool(wide.size), float(covariance[0])


def _chains_second(series: npt.ArrayLike, chain_axis: int | None) -> Array:
    """The series as (n, chains, ...)."""
    values = finite_array(series, "series")
    if chain_axis is None:
        return values[:, None]
    if not 1 <= chain_axis % values.ndim < values.ndim or not -values.ndim <= chain_axis < values.ndim:
        raise InputError(f"chain_axis {chain_axis} counts no chains of shape {values.shape}: axis 0 is time")
    return np.moveaxis(values, chain_axis, 1)


def autocovariance(centred: Array) -> Array:
    """Gamma(t) of series (n, chains, ...) whose mean is 0, for t = 0 to n - 1, by FFT with zero padding.

    Gamma is the mean over the chains and over the n - t pairs of each. Noise dominates it beyond a few tau. Where the
    measured mean was subtracted, Gamma is lower by about 2 tau Gamma(0) / n.
    """
    length = len(centred)
    size = 2 ** (2 * length - 1).bit_length()
    spectrum = np.fft.rfft(centred, size, axis=0)
    sums = np.fft.irfft(spectrum.real**2 + spectrum.imag**2, size, axis=0)[:length].mean(axis=1)
    pairs = (length - np.arange(length)).reshape(-1, *[1] * (sums.ndim - 1))
    return np.asarray(sums / pairs)


class Windows(NamedTuple):
    """Sums of the autocorrelation within windows of growing width."""

    tau: Array  # 1/2 + the sum, not corrected for a subtracted mean, (windows, ...)
    width: Array  # width of each window, (windows,)
    noise: Array  # V of each window, likewise


def usable(length: int) -> int:
    """Number of levels whose sums span at most half of a chain."""
    return max(1, (length // 2).bit_length())


def level_windows(variance: Array) -> Windows:
    """Windows from mean squares of sums over 2^l measurements, divided by 2^l, (levels, ...); the first is empty."""
    s = variance / np.where(variance[0] > 0, variance[0], 1.0)
    size = 2.0 ** np.arange(-1, len(variance) - 1)  # B of each window
    width, noise = (3 * size - 1) / 2, (5 * size - 1) / 2
    width[0] = noise[0] = 0.0
    return Windows(np.concatenate([s[:1] / 2, s[1:] - s[:-1] / 2]), width, noise)


def with_blocks(short: Windows, runs: Sequence[Array], length: int, variance: Array) -> Windows:
    """Continue windows of levels by windows from block averages (blocks, ...), from the length of a block on.

    Windows of levels are ``short``. A block has ``length`` measurements, a power of two, each of this ``variance``.
    Blocks of several ``runs`` are independent.
    """
    blocks, kept = max(map(len, runs)), length.bit_length()
    mean = np.concatenate(runs).mean(axis=0)
    covariance, centred = np.zeros((blocks, *mean.shape)), [run - mean for run in runs]
    for lag in range(blocks):
        pairs = [run[lag:] * run[: len(run) - lag] for run in centred if lag < len(run)]
        covariance[lag] = np.concatenate(pairs).mean(axis=0)
    sums = length * (np.cumsum(covariance, axis=0) - covariance[0] / 2)
    most = max(2, blocks - 1)  # with the mean subtracted, the last sum is 0
    tau = sums[1:most] / np.where(variance > 0, variance, 1.0)
    width = length * np.arange(1.0, most) + (length - 1) / 2
    each = zip(short, (tau, width, width), strict=True)
    return Windows(*(np.concatenate([first[:kept], later]) for first, later in each))


def chosen_window(windows: Windows, least_window: npt.ArrayLike = 0) -> tuple[Windows, npt.NDArray[np.bool_]]:
    """Mix two neighbouring windows to the smallest W >= 6 tau(W) that is no smaller than ``least_window``.

    Returns the mixture, of the trailing shape, and marks of where it is wide enough.
    """
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
    return Windows(rest * at(lower) + share * at(upper), rest * low + share * high, mixed), np.asarray(is_wide)


def until_longer_agree(windows: Windows, chosen: Windows, total: int, widest: float) -> Windows:
    """Replace chosen windows, of the trailing shape, by wider ones that give a larger tau beyond the noise.

    The series has ``total`` measurements. Windows up to the ``widest`` are tried, from the narrowest on.
    """

    def known(tau: Array, width: npt.ArrayLike, noise: npt.ArrayLike) -> tuple[Array, Array]:
        """Tau corrected for the measured mean, and its squared error."""
        whole = np.maximum(tau, 0.0) * (1 + (2 * np.asarray(width) + 1) / total)
        return whole, whole**2 * (4 * np.asarray(noise) + 2) / total

    for tau, width, noise in zip(*windows, strict=True):
        if width > widest:
            continue
        (one, variance), (other, larger) = known(*chosen), known(tau, width, noise)
        apart = np.sqrt(np.maximum(larger - variance, 0.0))
        better = (width > chosen.width) & (one > 0) & (other - one > _SCORE * apart + _ROUNDING * other)
        parts = zip((tau, width, noise), chosen, strict=True)
        chosen = Windows(*(np.where(better, new, old) for new, old in parts))
    return chosen


def blocked_time(
    windows: Windows, variance: Array, mean: Array, total: int, least_window: npt.ArrayLike = 0,
    carriers: npt.ArrayLike = np.inf,
) -> IntegratedTime:  # fmt: skip
    """Integrated autocorrelation times by the rules of ``integrated_time``, also for trust.

    The ``variance`` of the ``total`` measurements is not corrected for subtracting their mean. The window returned is
    V, rounded: the number of covariances from which the variance of the mean is known.
    """
    chosen, is_wide = chosen_window(windows, least_window)
    raw, width, noise = until_longer_agree(windows, chosen, total, total // _LONGEST)
    is_constant, positive = variance <= 0, np.maximum(raw, 0.0)
    corrected = positive * (1 + (2 * width + 1) / total) / (1 + 2 * positive / total)
    tau = np.where(is_constant | (raw <= 0), 0.5, corrected)
    whole = variance * (1 + 2 * positive / total)
    error = tau * np.sqrt((4 * noise + 2) / total)
    carriers = np.broadcast_to(carriers, tau.shape)
    is_resolved = ~is_constant & is_wide & (raw > 0) & (total >= SHORTEST * (tau + error))
    window = np.where(is_constant, 0, np.rint(noise)).astype(np.int64)
    error, mean_error = (np.where(is_constant, np.nan, one) for one in (error, np.sqrt(2 * tau * whole / total)))
    return IntegratedTime(tau, error, window, np.asarray(is_resolved), mean, mean_error, carriers)
