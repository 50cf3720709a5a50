"""Fits of cosh to one correlation after the other, by SciPy: the oracle of ``spinsim.analysis.cosh_fits``."""

from __future__ import annotations

import numpy as np
from scipy.optimize import least_squares
from scipy.special import fdtrc

from spinsim.analysis.cosh_fits import decay

Array = np.ndarray


def fit(mean: Array, covariance: Array, entries: int, times: Array, slices: int, most_levels: int) -> dict:
    """The fields of ``Fits`` of one C(t) (times,), but for the amplitude; none where no fit is good."""
    lost = np.flatnonzero(mean < 4 * np.sqrt(np.diag(covariance)))
    end = int(lost[0]) if lost.size else len(times)
    for levels in range(most_levels, 0, -1):
        best = _best(mean[:end], covariance[:end, :end], times[:end], slices / 2, entries, levels)
        if best is not None:
            return best
    return {}


def _best(mean: Array, covariance: Array, times: Array, half: float, count: int, levels: int) -> dict | None:
    fits: list[dict] = []
    for start in range(len(times) - 2 * levels):
        chosen = slice(start, start + min(12, count // 4))
        fits.append(_window(mean[chosen], covariance[chosen, chosen], times[chosen], half, count, levels))
        if len(fits) > 1 and fits[-2].get("probability", 0) >= 0.1:
            break
    is_good = any(each.get("probability", 0) >= 0.1 for each in fits[-2:])
    return fits[-1] if is_good and np.isfinite(fits[-1].get("error", np.nan)) else None


def _window(c: Array, covariance: Array, t: Array, half: float, count: int, levels: int) -> dict:
    if np.linalg.matrix_rank(covariance) < len(t):
        return {}
    whiten = np.linalg.cholesky(np.linalg.inv(covariance)).T

    def fitted(logarithms: Array) -> tuple[Array, Array]:
        shapes = np.stack([decay(gap, t, half) for gap in np.exp(logarithms).cumsum()], axis=1)
        return shapes, np.linalg.lstsq(whiten @ shapes, whiten @ c, rcond=None)[0]

    def residual(logarithms: Array) -> Array:
        shapes, amplitudes = fitted(logarithms)
        return whiten @ (shapes @ amplitudes - c)

    slope = np.log(c[0] / c[1]) if c[0] > c[1] > 0 else 1 / half
    start = np.log([slope] if levels == 1 else [0.8 * slope, slope])
    exactly = {"jac": "3-point", "xtol": 1e-14, "ftol": 1e-14, "gtol": 1e-14}
    first = least_squares(residual, start, bounds=(-12, 3), **exactly)
    freedom, score = len(t) - 2 * levels, 2 * float(first.cost)
    gap, amplitudes, error = float(np.exp(first.x[0])), fitted(first.x)[1], np.nan
    if np.linalg.matrix_rank(first.jac) == levels and (amplitudes > 0).all():
        spread = np.sqrt(np.diag(np.linalg.inv(first.jac.T @ first.jac)) * (1 + freedom / (count - freedom - 2)))
        if (spread < 0.5).all():
            error = gap * float(spread[0])
    probability = float(fdtrc(freedom, count - freedom, score * (count - freedom) / (freedom * (count - 1))))
    return {
        "gap": gap, "error": error, "levels": levels, "first": int(t[0]), "last": int(t[-1]), "chi_squared": score,
        "freedom": freedom, "probability": probability,
    }  # fmt: skip
