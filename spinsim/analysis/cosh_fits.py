"""Fits of c_1 cosh(g_1 (half - t)) + c_2 cosh(g_2 (half - t)) to many correlations at once.

Amplitudes c are linear and are projected out. The fit minimises a function of x, one or two logarithms of gaps, with
g_1 = exp(x_1) and g_2 = g_1 + exp(x_2). With Phi the whitened shapes, y the whitened data and P the projector on Phi,
the residual is r = P y - y, and

    dr = (1 - P) dPhi c - Phi^+T dPhi^T r.

Levenberg and Marquardt's steps find its least square (G. H. Golub, V. Pereyra, SIAM J. Numer. Anal. 10, 413 (1973)).

The first axis of arrays counts the fits. Times extend to the longest window; beyond a shorter one ``whiten`` is 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.special import fdtrc

from spinsim.analysis.runs import Array, Bools, Integers

_ACCEPTED: Final = 0.1  # probability of a chi^2 at least as large, from which on a window is accepted
_CLEAR: Final = 4.0  # errors that C(t) must exceed at all times of a fit
_MOST_TIMES: Final = 12  # most times of a fit: a covariance of more is known too badly from so few stretches
_APART: Final = 0.5  # largest relative error of gaps, and of the distance of two, in an accepted fit
_BOUNDS: Final = (-12.0, 3.0)  # least and largest logarithm of a gap and of a distance of two
_STEPS: Final = 200
_CONVERGED: Final = 1e-10  # change of a logarithm of a gap below which a fit has converged
_TINY: Final = 1e-30
_EPS: Final = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Fits:
    """Fits to many series, each (fits,)."""

    gap: Array  # ln(lambda_0 / lambda), in units of 1 / step in time; NaN where there is none
    error: Array  # standard error of the gap; NaN where levels are not resolved
    levels: Integers  # fitted levels: 2, or 1 where a second one is not resolved; 0 where no fit is good
    first: Integers  # first time of the window, in slices; 0 where there is none
    last: Integers  # last time of the window
    chi_squared: Array  # of the fit, with the correlation of the times
    freedom: Integers  # degrees of freedom
    probability: Array  # of a chi^2 at least as large, allowing for a covariance from few stretches
    amplitude: Array  # c_1 cosh(...) at ``first``
    second_gap: Array  # of the second level, where two were fitted; else 0, like its amplitude
    second_amplitude: Array  # c_2 cosh(...) at ``first``


def _no_fits(count: int) -> Fits:
    gap, error, chi_squared, probability, amplitude = np.full((5, count), np.nan)
    levels, first, last, freedom = np.zeros((4, count), np.int64)
    second = np.zeros((2, count))
    return Fits(gap, error, levels, first, last, chi_squared, freedom, probability, amplitude, *second)


def _put(into: Fits, at: Integers, new_fits: Fits, chosen: Bools | slice = slice(None)) -> None:
    for name, array in vars(into).items():
        array[at] = getattr(new_fits, name)[chosen]


def fit_all(mean: Array, covariance: Array, entries: int, times: Integers, slices: int, most_levels: int) -> Fits:
    """Fit the gaps of many C(t) on rings of ``slices`` slices.

    C(t), ``mean``, is (fits, times) at consecutive ``times`` in slices, with the ``covariance`` of its errors
    (fits, times, times). Both come from ``entries`` stretches of copies. A fit has at most two levels.
    """
    is_lost = mean < _CLEAR * np.sqrt(np.diagonal(covariance, axis1=1, axis2=2))
    end = np.where(is_lost.any(axis=1), is_lost.argmax(axis=1), len(times))
    fits, left = _no_fits(len(mean)), np.arange(len(mean))
    for levels in range(most_levels, 0, -1):
        best, is_good = _best(mean[left], covariance[left], end[left], times, slices / 2, entries, levels)
        _put(fits, left[is_good], best, is_good)
        left = left[~is_good]
    return fits


def _best(
    mean: Array, covariance: Array, end: Integers, times: Integers, half: float, count: int, levels: int
) -> tuple[Fits, Bools]:
    """Return fits from one time after the first good window, else from its own where noise follows; mark good fits."""
    latest, before = _no_fits(len(mean)), np.full(len(mean), np.nan)
    most = min(_MOST_TIMES, count // 4)
    for start in range(int(end.max(initial=0)) - 2 * levels):
        (left,) = np.nonzero((start < end - 2 * levels) & ~(before >= _ACCEPTED))
        if not left.size:
            break
        chosen = slice(start, start + most)
        before[left] = latest.probability[left]
        length = np.minimum(end[left] - start, most)
        window = mean[left, chosen], covariance[left, chosen, chosen], length, times[chosen]
        _put(latest, left, _windows(*window, half, count, levels))
    is_good = (before >= _ACCEPTED) | (latest.probability >= _ACCEPTED)
    return latest, is_good & np.isfinite(latest.error)


def _windows(c: Array, covariance: Array, length: Integers, t: Integers, half: float, count: int, levels: int) -> Fits:
    """Return fits to C(t) at the first ``length`` of the times ``t``, from ``count`` entries."""
    freedom, all_fits = length - 2 * levels, _no_fits(len(c))
    whiten, is_known = _whitening(covariance, length)
    (there,) = np.nonzero(is_known & (freedom > 0))
    if not there.size:
        return all_fits
    c, whiten, length, freedom = c[there], whiten[there], length[there], freedom[there]
    y, later, to_middle = _times_vectors(whiten, c), t - t[0], half - t[0]
    x = _minimum(whiten, y, later, to_middle, _first_guess(c, half, levels))
    residual, jacobian, amplitudes = _projected(whiten, y, later, to_middle, x)
    score, gap = (residual**2).sum(axis=1), np.exp(x[:, 0])
    _, sizes, right = np.linalg.svd(jacobian, full_matrices=False)
    is_apart = (sizes[:, -1] > sizes[:, 0] * length * _EPS) & (amplitudes > 0).all(axis=1)
    inverse = np.divide(1.0, sizes, out=np.full_like(sizes, np.inf), where=sizes > 0)
    with np.errstate(invalid="ignore"):  # for sizes that are 0
        of_few = 1 + freedom / (count - freedom - 2)
        spread = np.sqrt(((right * inverse[..., None]) ** 2).sum(axis=1) * of_few[:, None])
    is_apart &= (spread < _APART).all(axis=1)
    ratio = score * (count - freedom) / (freedom * (count - 1))
    probability = np.asarray(fdtrc(freedom, count - freedom, ratio), np.float64)
    error = np.where(is_apart, gap * spread[:, 0], np.nan)
    first, which = np.full(len(c), t[0]), np.full(len(c), levels)
    second = (gap + np.exp(x[:, 1]), amplitudes[:, 1]) if levels > 1 else np.zeros((2, len(c)))
    fits = Fits(gap, error, which, first, t[length - 1], score, freedom, probability, amplitudes[:, 0], *second)
    _put(all_fits, there, fits)
    return all_fits


def _whitening(covariance: Array, length: Integers) -> tuple[Array, Bools]:
    """Return square roots of inverse covariances of the first ``length`` times, and marks of those that exist."""
    size = covariance.shape[-1]
    inside = np.arange(size) < length[:, None]
    both = inside[:, :, None] & inside[:, None, :]
    scale = np.trace(np.where(both, covariance, 0.0), axis1=1, axis2=2) / length
    padded = np.where(both, covariance, scale[:, None, None] * np.eye(size))
    sizes = np.abs(np.linalg.eigvalsh(padded))
    is_known = sizes.min(axis=1) > sizes.max(axis=1) * length * _EPS
    padded[~is_known] = np.eye(size)
    whiten = np.linalg.cholesky(np.linalg.inv(padded)).swapaxes(1, 2)
    return np.where(both, whiten, 0.0), is_known


def _first_guess(c: Array, half: float, levels: int) -> Array:
    """Return logarithms of gaps from the first two times, (fits, levels)."""
    falls = (c[:, 0] > c[:, 1]) & (c[:, 1] > 0)
    slope = np.log(np.divide(c[:, 0], c[:, 1], out=np.full(len(c), np.exp(1 / half)), where=falls))
    guess = np.log(np.stack([slope] if levels == 1 else [0.8 * slope, slope], axis=1))
    return np.asarray(guess.clip(*_BOUNDS))


def _minimum(whiten: Array, y: Array, later: Integers, to_middle: float, x: Array) -> Array:
    """Return the x with the least sum of squared residuals, by Levenberg-Marquardt steps from ``x`` on."""
    damping, left = np.full(len(x), 1e-3), np.arange(len(x))
    residual, jacobian, _ = _projected(whiten, y, later, to_middle, x)
    for _ in range(_STEPS):
        some = x[left]
        gradient = (jacobian * residual[..., None]).sum(axis=1)
        matrix = jacobian.swapaxes(1, 2) @ jacobian
        at_bound = ((some <= _BOUNDS[0]) & (gradient > 0)) | ((some >= _BOUNDS[1]) & (gradient < 0))
        gradient[at_bound] = 0
        matrix[at_bound[:, :, None] | at_bound[:, None, :]] = 0
        diagonal = np.maximum(np.diagonal(matrix, axis1=1, axis2=2), _TINY)
        matrix += np.eye(x.shape[1]) * (damping[:, None] * diagonal + _TINY)[:, None, :]
        trial = (some - np.linalg.solve(matrix, gradient[..., None])[..., 0]).clip(*_BOUNDS)
        new_residual, new_jacobian, _ = _projected(whiten[left], y[left], later, to_middle, trial)
        is_better = (new_residual**2).sum(axis=1) <= (residual**2).sum(axis=1)
        moved = np.abs(trial - some).max(axis=1)
        x[left[is_better]] = trial[is_better]
        residual[is_better], jacobian[is_better] = new_residual[is_better], new_jacobian[is_better]
        damping = np.where(is_better, damping / 10, damping * 10)
        goes_on = moved > _CONVERGED
        left, residual, jacobian, damping = (each[goes_on] for each in (left, residual, jacobian, damping))
        if not left.size:
            break
    return x


def _projected(whiten: Array, y: Array, later: Integers, to_middle: float, x: Array) -> tuple[Array, Array, Array]:
    """Residuals (fits, times) of whitened ``y``, derivatives (fits, times, levels), amplitudes (fits, levels)."""
    steps = np.exp(x)
    gaps = np.cumsum(steps, axis=1)
    shapes, slopes = _shapes(gaps, later, to_middle)
    phi, slopes = whiten @ shapes, whiten @ slopes
    inverse = _pseudo_inverse(phi)  # (fits, levels, times)
    amplitudes = _times_vectors(inverse, y)
    residual = _times_vectors(phi, amplitudes) - y
    jacobian = np.empty_like(phi)
    for k in range(x.shape[1]):  # x_k moves the gaps from k on
        derivative = slopes * np.where(np.arange(x.shape[1]) >= k, steps[:, k, None], 0.0)[:, None, :]
        along = _times_vectors(derivative, amplitudes)
        along -= _times_vectors(phi, _times_vectors(inverse, along))
        back = _times_vectors(derivative.swapaxes(1, 2), residual)
        jacobian[:, :, k] = along - _times_vectors(inverse.swapaxes(1, 2), back)
    return residual, jacobian, amplitudes


def _pseudo_inverse(phi: Array) -> Array:
    """Return the pseudo-inverse of matrices (fits, times, 1 or 2), by orthogonalising their columns."""
    lengths = np.maximum(np.sqrt((phi**2).sum(axis=1)), _TINY)
    one = phi[:, :, 0] / lengths[:, :1]
    if phi.shape[2] == 1:
        return np.asarray((one / lengths)[:, None, :])
    share = (one * phi[:, :, 1]).sum(axis=1, keepdims=True)
    rest = phi[:, :, 1] - share * one
    rest -= (one * rest).sum(axis=1, keepdims=True) * one
    size = np.sqrt((rest**2).sum(axis=1, keepdims=True))
    is_there = size > lengths[:, 1:] * phi.shape[1] * _EPS  # else the columns are parallel to rounding
    second = np.divide(rest, size**2, out=np.zeros_like(rest), where=is_there)
    return np.stack([(one - share * second) / lengths[:, :1], second], axis=1)


def _times_vectors(matrices: Array, vectors: Array) -> Array:
    return np.asarray((matrices @ vectors[..., None])[..., 0])


def _shapes(gaps: Array, later: Integers, to_middle: float) -> tuple[Array, Array]:
    """Return cosh(gap (half - t)), 1 at the first time, and its derivative by the gap, (fits, times, levels).

    The gaps are (fits, levels). Times ``later`` count from the first one; ``half`` lies ``to_middle`` after it.
    """
    gap, since = gaps[:, None, :], later[:, None]
    until = 2 * to_middle - since
    up, down = np.exp(-gap * since), np.exp(-gap * until)
    whole = 2 * to_middle
    at_first = np.exp(-gap * whole)
    shape = (up + down) / (1 + at_first)
    return shape, (shape * whole * at_first - since * up - until * down) / (1 + at_first)


def decay(gap: float, times: Integers, half: float) -> Array:
    """Return cosh(gap (half - t)), 1 at the first time."""
    return _shapes(np.array([[gap]]), times - times[0], half - times[0])[0][0, :, 0]
