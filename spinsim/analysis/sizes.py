"""Runs of several sizes side by side: curves that cross at a critical point, and their crossings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from math import factorial
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.interpolate import CubicSpline, PPoly

from spinsim.analysis.kinds import check_one_model, is_antiferromagnet, is_ferromagnet
from spinsim.analysis.runs import Array, Tempered
from spinsim.analysis.statistics import choice_of
from spinsim.analysis.summary import Estimate, Summary, resampled, summarize
from spinsim.analysis.tables import with_error
from spinsim.errors import InputError
from spinsim.inputs.arguments import public
from spinsim.inputs.numbers import finite_array, real_array
from spinsim.model.ising import Ising
from spinsim.observables.quantities import in_field, in_space
from spinsim.observables.table import CROSSING, LABELS
from spinsim.result import Run, as_result, runs_in

RESAMPLES: Final = 500  # errors to 3 %
FEW_MISSING: Final = 0.05  # share of resamples without a crossing up to which there is no caution
MOST_MISSING: Final = 0.5  # share of resamples without a crossing beyond which the full data cross by accident
_FEWEST: Final = 4  # points of a cubic
_MORE: Final = "more samples or more sweeps"
_ROUNDING: Final = 1e-9  # of a cubic's range: values that are smaller may be roots
_SAME: Final = 1e-7  # of the range: rounding splits a root shared by two pieces, or a double root, by no more


@dataclass(frozen=True)
class Crossing:
    """The crossing of two curves, in the unit of x."""

    value: float  # crossing of the full data, NaN where there is none to report
    error: float  # its standard error, the spread over the resamples; NaN with the value
    candidates: Array = field(repr=False)  # all crossings of the full data
    resampled: Array = field(repr=False)
    """In each resample the crossing nearest to ``value``, NaN where it has none; shape (resamples,)."""
    reason: str  # why there is no value, in words; empty where there is one
    caution: str = ""  # how many resamples do not cross, if more than 5 %: the error omits them and is too small


def crossing(
    x1: npt.ArrayLike, curves1: npt.ArrayLike, x2: npt.ArrayLike, curves2: npt.ArrayLike, near: float | None = None
) -> Crossing:
    """Crossing of two curves with its bootstrap error, the one nearest to ``near`` where there are several.

    Each curve is a cubic spline through its points (not-a-knot ends); a crossing is a change of sign of their
    difference inside the range of x that both have. The points lie on the spline, so their noise does as well: many
    noisy points close together make crossings of their own.

    Args:
        x1: Abscissae of the first size, such as temperatures, rising, of shape (points,), at least 4.
        curves1: Its curves, of shape (1 + resamples, points): row 0 from all data, then one row a resample.
        x2: Abscissae of the second size; they may differ from ``x1``.
        curves2: Its curves, with as many rows, resampled with another seed.
        near: Where the full data have several crossings, the nearest to this value is taken.

    Returns:
        NaN and a reason where the full data do not cross, where they cross more than once and ``near`` is not given,
            and where more than half of the resamples do not cross. A row with NaN counts as not crossing.
    """
    first, second = _check(x1, curves1, "1"), _check(x2, curves2, "2")
    rows = len(first[1])
    if rows != len(second[1]) or rows < 3:
        raise InputError(f"{rows} and {len(second[1])} rows of curves: give each the full data and 2 resamples or more")
    roots = _sign_changes(*first, *second)
    candidates = roots[0]
    if near is None and len(candidates) > 1:
        where = ", ".join(f"{x:.6g}" for x in candidates)
        return _none(candidates, rows, f"the curves cross {len(candidates)} times, at {where}: say near which")
    if not len(candidates):
        low, high = max(first[0][0], second[0][0]), min(first[0][-1], second[0][-1])
        reason = f"the curves do not cross between {low:.4g} and {high:.4g}, which both have"
        return _none(candidates, rows, f"{reason}: give a wider range, {_MORE}")
    value = float(candidates[0] if near is None else _nearest(candidates, near))
    of_resamples = np.array([_nearest(each, value) for each in roots[1:]])
    missing = float(np.isnan(of_resamples).mean())
    caution = f"{missing:.0%} of the resampled curves do not cross" if missing > FEW_MISSING else ""
    if missing > MOST_MISSING:
        return Crossing(np.nan, np.nan, candidates, of_resamples, f"{caution}: give {_MORE}")
    return Crossing(value, float(np.nanstd(of_resamples, ddof=1)), candidates, of_resamples, "", caution)


def _check(x: npt.ArrayLike, curves: npt.ArrayLike, which: str) -> tuple[Array, Array]:
    """Return abscissae (points,) and curves (rows, points) that fit together."""
    points, rows = finite_array(x, f"x{which}", least=_FEWEST), real_array(curves, f"curves{which}")
    if points.ndim != 1 or np.any(np.diff(points) <= 0):
        raise InputError(f"x{which} of shape {points.shape} does not rise: give one list of rising numbers")
    if rows.ndim != 2 or rows.shape[1] != len(points):
        raise InputError(f"curves{which} has shape {rows.shape}: give (1 + resamples, {len(points)}) for x{which}")
    return points, rows


def _none(candidates: Array, rows: int, reason: str) -> Crossing:
    return Crossing(np.nan, np.nan, candidates, np.full(rows - 1, np.nan), reason)


def _nearest(roots: Array, value: float) -> float:
    return float(roots[np.argmin(np.abs(roots - value))]) if len(roots) else np.nan


def _sign_changes(x1: Array, curves1: Array, x2: Array, curves2: Array) -> list[Array]:
    """Return the sign changes of the difference of two splines in the common range, by row; none for rows with NaN."""
    low, high = max(x1[0], x2[0]), min(x1[-1], x2[-1])
    if low >= high:
        raise InputError(f"x1 ends at {x1[-1]:g} and x2 begins at {x2[0]:g}, or the reverse: give ranges that overlap")
    finite = np.isfinite(np.concatenate([curves1, curves2], axis=1)).all(axis=1)
    changes: list[Array] = [np.empty(0)] * len(curves1)
    knots = np.unique(np.concatenate([x1, x2]))
    knots = knots[(knots >= low) & (knots <= high)]
    splines = [CubicSpline(x, curves[finite].T) for x, curves in ((x1, curves1), (x2, curves2))]
    # between neighbouring knots both are cubics, so their difference is a cubic with exact roots
    orders = (3, 2, 1, 0)
    coefficients = np.array([(splines[0](knots[:-1], k) - splines[1](knots[:-1], k)) / factorial(k) for k in orders])
    searched = _with_roots_alone(coefficients, np.diff(knots))
    for place, row in enumerate(np.flatnonzero(finite)):
        difference = PPoly.construct_fast(np.ascontiguousarray(searched[..., place]), knots)
        roots = difference.roots(discontinuity=False, extrapolate=False)
        roots = np.unique(roots[np.isfinite(roots)])
        roots = roots[np.diff(roots, prepend=-np.inf) > _SAME * (high - low)]
        between = np.concatenate([[low], roots, [high]])
        sides = np.sign(difference((between[1:] + between[:-1]) / 2))
        changes[row] = roots[sides[1:] * sides[:-1] < 0]
    return changes


def _with_roots_alone(coefficients: Array, length: Array) -> Array:
    """Coefficients (4, pieces, rows) of cubics, with a constant of the same sign for each piece that has no root.

    A cubic lies within the range of its Bernstein coefficients, which take less time than its roots.
    """
    third, second, first, constant = (c * length[:, None] ** k for c, k in zip(coefficients, (3, 2, 1, 0), strict=True))
    middle = constant + first / 3, constant + (2 * first + second) / 3
    bounds = np.array([constant, *middle, constant + first + second + third])
    lowest, highest = bounds.min(axis=0), bounds.max(axis=0)
    has_no_root = np.maximum(lowest, -highest) > _ROUNDING * np.maximum(highest, -lowest)
    alone = np.where(has_no_root, 0, coefficients)
    alone[3] = coefficients[3]
    return alone


@dataclass(frozen=True)
class SizeCurve:
    """An estimate of one size."""

    label: str  # such as "L = 8"
    temperature: Array = field(repr=False)
    """Or the quantity in its place, in the unit of the couplings, rising, (temperatures,)."""
    estimate: Estimate = field(repr=False)  # the curve and its errors
    resampled: Array = field(repr=False)
    """Row 0 from all data, then one row a bootstrap resample, (1 + resamples, temperatures)."""


@dataclass(frozen=True)
class SizeCrossing:
    """Crossing of the curves of two sizes."""

    labels: tuple[str, str]  # of the smaller and of the larger size
    crossing: Crossing  # temperature with its error, or why there is none
    height: float  # value of the curves at the crossing, NaN where they do not cross
    trusted: bool  # true if the errors of both curves can be trusted on both sides of the crossing
    symbol: str = "T"  # symbol of the abscissa

    @property
    def sentence(self) -> str:
        """Sentence that says where the two curves cross, or why this is unknown."""
        sizes, crossing = " and ".join(self.labels), self.crossing
        if crossing.reason:
            return f"{sizes}: {crossing.reason}"
        where = f"{sizes} cross at {self.symbol} = {with_error(crossing.value, crossing.error, self.trusted)}"
        if not self.trusted:
            return f"{where}, without an error: series too short near it, or fewer than four samples"
        caution = f"; {crossing.caution}: the error omits them and is too small, so give {_MORE}"
        return where + (caution if crossing.caution else "")


@dataclass(frozen=True)
class Comparison:
    """One estimate for all sizes."""

    name: str  # of the estimate
    curves: list[SizeCurve]  # from the smallest size to the largest
    crossings: list[SizeCrossing]  # of each pair of sizes


@public
def compare_sizes(
    results: Iterable[Run],
    observable: str | None = None,
    near: float | None = None,
    summaries: Sequence[Summary] | None = None,
) -> list[Comparison]:
    """Curves of several sizes and the crossings of each pair, for all estimates that the runs share.

    Args:
        results: Results or files of one lattice in different sizes, two or more.
        observable: ``overlap``, ``magnetization`` or ``staggered_magnetization``, whose cumulants and correlation
            lengths are compared; by default the ``order_parameter``.
        near: The crossing nearest to this temperature is taken where curves cross more than once.
        summaries: Summary of each result, in the same order; computed by default.

    Returns:
        A comparison for each Binder cumulant and correlation length, with ``name``, curves of all sizes and
        ``crossings``. Each crossing has ``labels`` of its two sizes and ``crossing`` with ``value``, ``error`` and, if
        none was found, ``reason``.

    Raises:
        InputError: for fewer than two sizes, equal ones and different models, an unknown observable, overlaps of a run
            with one copy, and runs too short to analyse.
    """
    given = [as_result(run) for run in runs_in(results)]
    order = sorted(range(len(given)), key=lambda k: sites_of_space(given[k].model))
    ordered = [given[k] for k in order]
    check_sizes(ordered)
    names = CROSSING[_check_observable(ordered, observable)]
    of_each = [summarize(given[k]) if summaries is None else summaries[k] for k in order]
    resamples = [resampled(result, RESAMPLES, seed) for seed, result in enumerate(ordered)]
    comparisons = []
    for name in names:
        if all(name in summary.estimates for summary in of_each):
            each = zip(ordered, of_each, resamples, strict=True)
            curves = []
            for result, summary, rows in each:
                x, e = result.axis.values, summary.estimates[name]
                rising = np.argsort(x)
                estimate = Estimate(e.value[rising], e.error[rising], e.tau[rising], e.trusted[rising])
                curves.append(SizeCurve(size_label(result.model), x[rising], estimate, rows[name][:, rising]))
            pairs = [_cross(a, b, near, ordered[0].axis.symbol) for a, b in combinations(curves, 2)]
            comparisons.append(Comparison(name, curves, pairs))
    if not comparisons and in_field(ordered[0].model):
        raise InputError(
            f"{ordered[0].model.name} is in a field, where connected correlation lengths alone are compared, and these "
            f"runs have none: {' '.join(of_each[0].notes).rstrip('.')}"
        )
    return comparisons


def say_crossings(comparisons: Sequence[Comparison], say: Callable[[str], None]) -> None:
    """Say where curves cross, a line for each pair, with the flag that chooses among several crossings."""
    for comparison in comparisons:
        for pair in comparison.crossings:
            choose = len(pair.crossing.candidates) > 1 and "say near which" in pair.crossing.reason
            flag = f", with --near {pair.symbol.upper()}" if choose else ""
            say(f"{LABELS[comparison.name]}: {pair.sentence}{flag}")


def order_parameter(results: Sequence[Tempered]) -> str:
    """Order parameter of runs of one kind of model: ``magnetization``, ``staggered_magnetization`` or ``overlap``."""
    if all(is_ferromagnet(result.model) for result in results):
        return "magnetization"
    if all(choice_of(result).staggered and is_antiferromagnet(result.model) for result in results):
        return "staggered_magnetization"
    return "overlap"


def sites_of_space(model: Ising) -> int:
    """Return the number of sites of a model; for a model of space and time, the sites of a slice."""
    return model.sites // model.graph.slices


def size_label(model: Ising) -> str:
    """Label such as "L = 8", "8 x 8 x 4" where sides differ, "N = 100" without a lattice."""
    lattice = in_space(model)
    if lattice is None:
        return f"N = {sites_of_space(model)}"
    sides = lattice.shape
    return f"L = {sides[0]}" if len(set(sides)) == 1 else " x ".join(map(str, sides))


def check_sizes(results: Sequence[Tempered]) -> None:
    if len(results) < 2:
        raise InputError("curves of one size cross nothing: give two files or more of different sizes")
    for one, other in combinations(results, 2):
        a, b = one.model, other.model
        if one.axis.name != other.axis.name:
            raise InputError(
                f"the ladders of {a.name} and {b.name} go along {one.axis.symbol} and {other.axis.symbol}: give "
                "runs along one of them"
            )
        if sites_of_space(a) == sites_of_space(b):
            raise InputError(f"two runs have size {size_label(a)}: give runs of different sizes, one of each")
        check_one_model(one, other)


def _check_observable(results: list[Tempered], observable: str | None) -> str:
    observable = observable or order_parameter(results)
    if observable not in CROSSING:
        raise InputError(f"observable {observable!r} is unknown: choose {' or '.join(CROSSING)}")
    for result in results:
        if observable == "overlap" and choice_of(result).copies < 2:
            raise InputError(
                f"the run of {result.model.name}, {size_label(result.model)}, has one copy at each temperature and no "
                "overlaps: run it with two replicas or more, or choose the observable magnetization"
            )
        if observable == "staggered_magnetization" and not choice_of(result).staggered:
            raise InputError(
                f"the run of {result.model.name}, {size_label(result.model)}, has no staggered magnetisation, which "
                "takes a lattice of two sublattices and a file of this version: choose another observable"
            )
    return observable


def _cross(a: SizeCurve, b: SizeCurve, near: float | None, symbol: str) -> SizeCrossing:
    points = [np.isfinite(curve.resampled).all(axis=0) for curve in (a, b)]  # xi of noise alone is NaN
    x, y = a.temperature[points[0]], b.temperature[points[1]]
    labels = (a.label, b.label)
    few = min(len(x), len(y)) < _FEWEST
    if few or max(x[0], y[0]) >= min(x[-1], y[-1]):
        reason = f"fewer than {_FEWEST} points of the ladder have a value" if few else "their ladders do not overlap"
        return SizeCrossing(labels, _none(np.empty(0), len(a.resampled), reason), np.nan, False, symbol)
    crossed, height, trusted = crossing(x, a.resampled[:, points[0]], y, b.resampled[:, points[1]], near), np.nan, False
    if not np.isnan(crossed.value):
        height, trusted = float(CubicSpline(x, a.resampled[0, points[0]])(crossed.value)), True
        for curve in (a, b):  # the points on both sides decide
            above = int(np.clip(np.searchsorted(curve.temperature, crossed.value), 1, len(curve.temperature) - 1))
            trusted &= bool(curve.estimate.trusted[above - 1 : above + 1].all())
    return SizeCrossing(labels, crossed, height, trusted, symbol)
