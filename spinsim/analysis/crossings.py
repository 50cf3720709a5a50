"""Where curves of two lattice sizes, Binder cumulants or xi / L, cross: finite-size estimates of a critical point."""

from __future__ import annotations

from dataclasses import dataclass
from math import factorial
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.interpolate import CubicSpline, PPoly

from spinsim.errors import InputError
from spinsim.inputs.checks import finite_array, real_array

Array = npt.NDArray[np.float64]

FEW_MISSING: Final = 0.05
"""Share of resamples up to which it needs no word that they do not cross."""
MOST_MISSING: Final = 0.5
"""Share of resamples beyond which the crossing of the full data is an accident."""
_FEWEST: Final = 4  # points of a cubic
_MORE: Final = "more samples or more sweeps"
_SAME: Final = 1e-7  # of the range: rounding parts a root that two pieces share, and a double root, by no more


@dataclass(frozen=True)
class Crossing:
    """The crossing of two curves, in the unit of x.

    Attributes:
        value: Crossing of the full data, NaN where there is none to report.
        error: Its standard error, the spread over the resamples; NaN with the value.
        candidates: All crossings of the full data.
        resampled: In each resample the crossing nearest to ``value``, NaN where it has none; shape (resamples,).
        reason: Why there is no value, in words; empty where there is one.
        caution: How many resamples do not cross, in words, where they are more than 5 %: the error is the spread of the
            others, which is too small.
    """

    value: float
    error: float
    candidates: Array
    resampled: Array
    reason: str
    caution: str = ""


def crossing(
    x1: npt.ArrayLike, curves1: npt.ArrayLike, x2: npt.ArrayLike, curves2: npt.ArrayLike, near: float | None = None
) -> Crossing:
    """Crossing of two curves with its bootstrap error.

    Each curve is a cubic spline through its points (not-a-knot ends); a crossing is a change of sign of their
    difference inside the range of x that both have. The points lie on the spline, so their noise does as well: many
    noisy points close together make crossings of their own.

    Args:
        x1: Abscissae of the first size, such as temperatures, rising, of shape (points,), at least 4.
        curves1: Its curves, of shape (1 + resamples, points): row 0 from all data, then one row a resample, as
            ``bootstrap(...).values`` has them.
        x2: Abscissae of the second size; they may differ from ``x1``.
        curves2: Its curves, with as many rows, resampled with another seed.
        near: Which crossing to take where the full data have several: the one nearest to this.

    Returns:
        NaN and a reason where the full data do not cross, where they cross more than once and ``near`` is not given,
        and where more than half of the resamples do not cross. A row with NaN counts as one that does not.

    Raises:
        InputError: for shapes that do not fit together, fewer than 4 points or 2 resamples, abscissae that do not rise,
            and ranges that do not overlap.
    """
    first, second = _check(x1, curves1, "1"), _check(x2, curves2, "2")
    rows = len(first[1])
    if rows != len(second[1]) or rows < 3:
        raise InputError(
            f"{rows} and {len(second[1])} rows of curves: give both the full data's row and at least 2 resamples"
        )
    found = _sign_changes(*first, *second)
    candidates = found[0]
    if near is None and len(candidates) > 1:
        where = ", ".join(f"{x:.6g}" for x in candidates)
        return _none(candidates, rows, f"the curves cross {len(candidates)} times, at {where}: say near which")
    if not len(candidates):
        low, high = max(first[0][0], second[0][0]), min(first[0][-1], second[0][-1])
        reason = f"the curves do not cross between {low:.4g} and {high:.4g}, which both have"
        return _none(candidates, rows, f"{reason}: give a wider range, {_MORE}")
    value = float(candidates[0] if near is None else _nearest(candidates, near))
    resampled = np.array([_nearest(roots, value) for roots in found[1:]])
    missing = float(np.isnan(resampled).mean())
    caution = f"{missing:.0%} of the resampled curves do not cross" if missing > FEW_MISSING else ""
    if missing > MOST_MISSING:
        return Crossing(np.nan, np.nan, candidates, resampled, f"{caution}: give {_MORE}")
    return Crossing(value, float(np.nanstd(resampled, ddof=1)), candidates, resampled, "", caution)


def _check(x: npt.ArrayLike, curves: npt.ArrayLike, which: str) -> tuple[Array, Array]:
    """Abscissae (points,) and curves (rows, points) that fit together."""
    points, rows = finite_array(x, f"x{which}", least=_FEWEST), real_array(curves, f"curves{which}")
    if points.ndim != 1 or np.any(np.diff(points) <= 0):
        raise InputError(f"x{which} of shape {points.shape} does not rise: give one list of rising numbers")
    if rows.ndim != 2 or rows.shape[1] != len(points):
        raise InputError(
            f"curves{which} has shape {rows.shape}: give (1 + resamples, {len(points)}), the points of x{which}"
        )
    return points, rows


def _none(candidates: Array, rows: int, reason: str) -> Crossing:
    return Crossing(np.nan, np.nan, candidates, np.full(rows - 1, np.nan), reason)


def _nearest(roots: Array, value: float) -> float:
    return float(roots[np.argmin(np.abs(roots - value))]) if len(roots) else np.nan


def _sign_changes(x1: Array, curves1: Array, x2: Array, curves2: Array) -> list[Array]:
    """Returns where the difference of two splines changes sign in the common range, by row; none for rows with NaN."""
    low, high = max(x1[0], x2[0]), min(x1[-1], x2[-1])
    if low >= high:
        raise InputError(f"x1 ends at {x1[-1]:g} and x2 begins at {x2[0]:g}, or the reverse: give ranges that overlap")
    finite = np.isfinite(np.concatenate([curves1, curves2], axis=1)).all(axis=1)
    found: list[Array] = [np.empty(0)] * len(curves1)
    knots = np.unique(np.concatenate([x1, x2]))
    knots = knots[(knots >= low) & (knots <= high)]
    splines = [CubicSpline(x, curves[finite].T) for x, curves in ((x1, curves1), (x2, curves2))]
    # between neighbouring knots both are cubics, so their difference is one, and its roots are exact
    orders = (3, 2, 1, 0)
    coefficients = np.array([(splines[0](knots[:-1], k) - splines[1](knots[:-1], k)) / factorial(k) for k in orders])
    for place, row in enumerate(np.flatnonzero(finite)):
        difference = PPoly.construct_fast(np.ascontiguousarray(coefficients[..., place]), knots)
        roots = difference.roots(discontinuity=False, extrapolate=False)
        roots = np.unique(roots[np.isfinite(roots)])
        roots = roots[np.diff(roots, prepend=-np.inf) > _SAME * (high - low)]
        between = np.concatenate([[low], roots, [high]])
        sides = np.sign(difference((between[1:] + between[:-1]) / 2))
        found[row] = roots[sides[1:] * sides[:-1] < 0]
    return found
