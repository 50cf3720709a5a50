"""Finite-size scaling of runs of several sizes: data collapse, and quotients of pairs of sizes.

Near a continuous transition at x_c an average is y(x, L) = L^p f((x - x_c) L^(1 / nu)), up to corrections L^-omega.
p is 0 for Binder cumulants and xi / L, gamma / nu for a susceptibility and -beta / nu for an order parameter. A
collapse takes f to be a polynomial and fits x_c, nu and p to the points of all sizes with their covariance. Quotients
compare two sizes where xi / L of both is equal, so that no x_c is needed.

Sources: A. Sandvik, AIP Conf. Proc. 1297, 135 (2010), section 3.2 (collapse); H. G. Ballesteros et al., Phys. Lett. B
378, 207 (1996) (quotients); J. Hartlap, P. Simon, P. Schneider, Astron. Astrophys. 464, 399 (2007) (inverse of an
estimated covariance).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.optimize import least_squares
from scipy.stats import chi2 as chi_squared

from spinsim.analysis.runs import Array, Tempered
from spinsim.analysis.sizes import RESAMPLES, check_sizes, crossing, order_parameter, sites_of_space
from spinsim.analysis.statistics import statistics_of
from spinsim.analysis.summary import observables_of, resampled
from spinsim.analysis.tables import Report, Row, in_columns, unprinted, with_error
from spinsim.errors import InputError
from spinsim.inputs.arguments import public
from spinsim.inputs.texts import either
from spinsim.model.quadratic import finite
from spinsim.observables.quantities import in_space
from spinsim.observables.table import CROSSING, LABELS
from spinsim.result import Run, as_result, runs_in

DEGREE: Final = 4  # of the polynomial
_NUS: Final = (0.4, 0.63, 1.0, 1.7, 2.6)  # where searches for nu begin
_LEAST_NU: Final = 0.2
_MOST_NU: Final = 8.0
_MOST_POWER: Final = 6.0
_SMALLEST: Final = 1e-10  # eigenvalue of a correlation matrix below which a combination of points is left out
LENGTH: Final = {of: name for of, names in CROSSING.items() for name in names if name.endswith("over_L")}
"""Correlation length over L of each order parameter, where quotients are taken."""


class Points(NamedTuple):
    """An average of one size against the ladder."""

    side: float  # L
    x: Array  # (points,)
    y: Array  # (points,)
    covariance: Array  # of y, (points, points)
    entries: float  # independent samples or stretches of time behind the covariance; infinite if it is known


@dataclass(frozen=True)
class Collapse:
    """A fit of all sizes to one curve, with standard errors.

    Attributes:
        name: Name of the average.
        critical: x_c, in the unit of the ladder.
        nu: Exponent of the correlation length.
        power: p, the exponent of L before the curve; 0 of dimensionless averages.
        critical_error: Standard error of x_c, from the curvature of chi^2; likewise of the others.
        nu_error: Standard error of nu.
        power_error: Standard error of p, 0 if it was not fitted.
        chi2: Squared deviations in units of the covariance.
        freedom: Number of points less the fitted numbers.
        probability: Probability of a larger chi^2 if the sizes have one curve.
        smallest: Smallest L in the fit.
        coefficients: Coefficients of the polynomial, the constant first.
        points: Points of each size.
    """

    name: str
    critical: float
    nu: float
    power: float
    critical_error: float
    nu_error: float
    power_error: float
    chi2: float
    freedom: int
    probability: float
    smallest: float
    coefficients: Array = field(repr=False)
    points: list[Points] = field(repr=False)

    def scaled(self, points: Points) -> tuple[Array, Array, Array]:
        """Abscissae (x - x_c) L^(1 / nu), values y L^-p and their errors, of the points of one size."""
        factor = points.side**-self.power
        error = np.sqrt(np.diag(points.covariance))
        return (points.x - self.critical) * points.side ** (1 / self.nu), points.y * factor, error * factor


class _Model:
    """Deviations of points from L^p times a polynomial of (x - x_c) L^(1 / nu), in units of their covariance."""

    def __init__(self, points: Sequence[Points], degree: int, fits_power: bool) -> None:
        self.points, self.degree, self.fits_power = points, degree, fits_power
        self.low, self.high = min(one.x.min() for one in points), max(one.x.max() for one in points)
        self.whiteners = [_whitener(one) for one in points]
        self.values = np.concatenate([w @ one.y for w, one in zip(self.whiteners, points, strict=True)])

    def design(self, parameters: Array) -> Array:
        """Whitened powers of the scaled abscissa, (points, degree + 1)."""
        critical, nu = parameters[:2]
        power = parameters[2] if self.fits_power else 0.0
        reach = (self.high - self.low) * max(one.side for one in self.points) ** (1 / nu)
        blocks = []
        for one, whitener in zip(self.points, self.whiteners, strict=True):
            u = (one.x - critical) * one.side ** (1 / nu) / reach  # of order 1, so that powers stay well apart
            blocks.append(whitener @ (np.vander(u, self.degree + 1, increasing=True) * one.side**power))
        return np.concatenate(blocks)

    def deviations(self, parameters: Array) -> Array:
        """Deviations from the best polynomial at given x_c, nu and p."""
        design = self.design(parameters)
        return np.asarray(self.values - design @ np.linalg.lstsq(design, self.values, rcond=None)[0])

    def coefficients(self, parameters: Array) -> Array:
        """Coefficients of the polynomial in (x - x_c) L^(1 / nu)."""
        nu = parameters[1]
        reach = (self.high - self.low) * max(one.side for one in self.points) ** (1 / nu)
        scaled = np.linalg.lstsq(self.design(parameters), self.values, rcond=None)[0]
        return np.asarray(scaled / reach ** np.arange(self.degree + 1))


def _whitener(points: Points) -> Array:
    """Matrix W with W' W the inverse of the covariance, corrected for its estimate from a number of entries."""
    scale = np.sqrt(np.diag(points.covariance))
    if not np.all(scale > 0):
        raise InputError("some averages have an error of 0: leave out the temperatures where nothing fluctuates")
    values, vectors = np.linalg.eigh(points.covariance / np.outer(scale, scale))
    kept = values > _SMALLEST * values.max()
    shrunk = max(0.0, 1 - (len(scale) + 1) / (points.entries - 1))  # Hartlap et al., eq. (17)
    if shrunk == 0:
        raise InputError(
            f"L = {points.side:g} has {len(scale)} points, too many for the covariance of {points.entries:g} samples "
            "or stretches of time: give a narrower window, fewer temperatures, or more samples or sweeps"
        )
    return np.asarray(np.sqrt(shrunk / values[kept])[:, None] * vectors[:, kept].T / scale)


def fit_collapse(
    points: Sequence[Points],
    name: str = "y",
    degree: int = DEGREE,
    power: float | None = 0.0,
    near: float | None = None,
) -> Collapse:
    """Collapse of points of several sizes; ``power`` None fits p, else it is held at the value.

    Raises:
        InputError: for fewer than two sizes, too few points and errors of 0.
    """
    if len({one.side for one in points}) < 2:
        raise InputError("a collapse needs two sizes or more")
    held = 0.0 if power is None else power
    scaled = [
        one._replace(y=one.y / one.side**held, covariance=one.covariance / one.side ** (2 * held)) for one in points
    ]
    model = _Model(scaled, degree, power is None)
    freedom = len(model.values) - degree - 1 - (3 if power is None else 2)
    if freedom < 1:
        raise InputError(f"{len(model.values)} points are too few for a polynomial of degree {degree}: give more")
    best = _lowest(model, near)
    errors = np.zeros(3)
    errors[: len(best.x)] = np.sqrt(np.diag(np.linalg.pinv(best.jac.T @ best.jac)))
    critical, nu, fitted = [*map(float, best.x), held][:3]
    critical_error, nu_error, power_error = map(float, errors)
    chi2 = float(2 * best.cost)
    return Collapse(
        name=name, critical=critical, nu=nu, power=fitted, critical_error=critical_error, nu_error=nu_error,
        power_error=power_error, chi2=chi2, freedom=freedom, probability=float(chi_squared.sf(chi2, freedom)),
        smallest=min(one.side for one in points), coefficients=model.coefficients(best.x), points=list(points),
    )  # fmt: skip


def _lowest(model: _Model, near: float | None) -> Any:
    """The lowest of the minima of chi^2 that searches from several x_c and nu find."""
    reach, centre = model.high - model.low, (model.low + model.high) / 2
    low, high, scale = [model.low - reach, _LEAST_NU], [model.high + reach, _MOST_NU], [reach, 1.0]
    if model.fits_power:
        low, high, scale = [*low, -_MOST_POWER], [*high, _MOST_POWER], [*scale, 1.0]
    best: Any = None
    for critical in (centre - reach / 4, centre, centre + reach / 4) if near is None else (near,):
        for nu in _NUS:
            begin = [critical, nu] + [_power_at(model.points, critical)] * model.fits_power
            found = least_squares(model.deviations, begin, bounds=(low, high), x_scale=scale)
            if best is None or found.cost < best.cost:
                best = found
    return best


def _power_at(points: Sequence[Points], x: float) -> float:
    """Slope of ln |y| against ln L at a place of the ladder, from the smallest and the largest size."""
    ordered = sorted(points, key=lambda one: one.side)
    small, large = (float(np.interp(x, one.x, np.abs(one.y))) for one in (ordered[0], ordered[-1]))
    return float(np.clip(np.log(large / small) / np.log(ordered[-1].side / ordered[0].side), -5, 5))


@public
def collapse(
    runs: Iterable[Run],
    y: str | None = None,
    *,
    power: float | None = None,
    window: Sequence[float] | None = None,
    degree: int = DEGREE,
    near: float | None = None,
    smallest: float = 0,
) -> Collapse:
    """Collapse of an average of several sizes onto one curve: x_c, nu and p with errors, chi^2 and its probability.

    y(x, L) = L^p f((x - x_c) L^(1 / nu)), with f a polynomial. Points of one size have the covariance of bootstrap
    resamples over samples, or over blocks of time for a single sample. Corrections to scaling are not fitted: compare
    ``smallest`` = L of the second size, of the third, and so on, until nothing changes.

    Args:
        runs: Results or files of one model in two sizes or more; each may be pooled.
        y: Name of an average, such as ``binder_cumulant`` or ``susceptibility``; by default xi / L of the order
            parameter.
        power: p, held at this value; None fits it, except for cumulants and xi / L, where p = 0.
        window: Lower and upper end of the ladder's range that is fitted, where the polynomial serves; by default all.
        degree: Degree of the polynomial.
        near: A guess of x_c.
        smallest: Smaller sizes are left out.

    Returns:
        The fit, a ``Collapse``: ``critical``, ``nu`` and ``power`` with ``critical_error``, ``nu_error`` and
            ``power_error``, ``chi2``, ``freedom``, ``probability``, and ``scaled(points)`` of each of its ``points``.

    Raises:
        InputError: for fewer than two sizes, an unknown average, and too few points.

    Examples:
        >>> runs = [ss.temper(ss.Ising(ss.square(L)), "2.1:2.4:8", 4000) for L in (4, 8)]
        >>> found = ss.collapse(runs, "binder_cumulant")
        >>> round(found.critical, 1), found.freedom
        (2.2, 9)
    """
    results = _ordered(runs, smallest)
    name = y or LENGTH.get(order_parameter(results), "binder_cumulant")
    points = _points_of(results, _resampled(results), name, window)
    held = 0.0 if power is None and _is_dimensionless(name) else power
    return fit_collapse(points, name, degree, held, near)


def _is_dimensionless(name: str) -> bool:
    return any(name in names for names in CROSSING.values())


def _resampled(results: Sequence[Tempered]) -> list[dict[str, Array]]:
    """Curves of each size with resamples of its own, (1 + resamples, points), by the names of averages."""
    return [resampled(result, RESAMPLES, seed) for seed, result in enumerate(results)]


def _points_of(
    results: Sequence[Tempered],
    curves: Sequence[dict[str, Array]],
    name: str,
    window: Sequence[float] | None = None,
) -> list[Points]:
    """Points of an average of each size."""
    for rows in curves:
        if name not in rows:
            raise InputError(f"the runs have no average {name!r}: choose {either(tuple(rows))}")
    return [
        _points(_side(result), result.axis.values, rows[name], window, _entries(result, name))
        for result, rows in zip(results, curves, strict=True)
    ]


def _entries(result: Tempered, name: str) -> int:
    """Number of independent entries behind an average; of an observable of your own the samples, or the copies."""
    statistics = statistics_of(result)
    one = next((one for one in statistics.records if one.name == name), None)
    if one is None:
        return max(statistics.samples, statistics.run.reduced.copies)
    return statistics.entries_behind(one)


def _points(side: float, x: Array, rows: Array, window: Sequence[float] | None, entries: int) -> Points:
    """Points of one size from curves with resamples, (1 + resamples, points)."""
    inside = np.isfinite(rows).all(axis=0)
    if window is not None:
        low, high = (finite(end, "window") for end in window)
        inside &= (x >= low) & (x <= high)
    if inside.sum() < 2:
        raise InputError(f"L = {side:g} has {int(inside.sum())} points in the window: give a wider one")
    covariance = np.atleast_2d(np.cov(rows[1:, inside], rowvar=False))
    return Points(side, x[inside], rows[0, inside], covariance, min(entries, len(rows) - 1))


def _ordered(runs: Iterable[Run], smallest: float) -> list[Tempered]:
    """Results of runs in the order of their sizes, from ``smallest`` on."""
    results = sorted((as_result(one) for one in runs_in(runs)), key=lambda result: sites_of_space(result.model))
    kept = [result for result in results if _side(result) >= smallest]
    check_sizes(kept)
    return kept


def _side(result: Tempered) -> float:
    """L, the side of the lattice; of other models the root of the number of sites that a cube of them has."""
    lattice = in_space(result.model)
    if lattice is None:
        raise InputError(f"{result.model.name} has no lattice: scaling needs a side L")
    return float(sites_of_space(result.model) ** (1 / lattice.dimension))


@dataclass(frozen=True)
class Quotient:
    """Two sizes where their xi / L is equal.

    Attributes:
        sides: The two sizes.
        crossing: x where xi / L of both is equal.
        crossing_error: Its standard error, from bootstrap resamples; likewise of the others.
        nu: From the slopes of xi / L there, whose quotient is (L' / L)^(1 / nu).
        nu_error: Standard error of nu.
        powers: ln(y' / y) / ln(L' / L) of further averages there, by name: 2 - eta for a susceptibility.
        power_errors: Standard errors of the same.
    """

    sides: tuple[float, float]
    crossing: float
    crossing_error: float
    nu: float
    nu_error: float
    powers: dict[str, float]
    power_errors: dict[str, float]

    @property
    def eta(self) -> float:
        """2 - p of the susceptibility that was compared; NaN without one."""
        return 2 - next((power for name, power in self.powers.items() if "susceptibility" in name), np.nan)


@public
def quotients(runs: Iterable[Run], *names: str, near: float | None = None) -> list[Quotient]:
    """Quotients of each pair of neighbouring sizes where their xi / L is equal, with bootstrap errors.

    Args:
        runs: Results or files of one model in two sizes or more.
        names: Averages whose powers of L are found; by default the susceptibility of the order parameter.
        near: The crossing nearest to this value, where there are several.

    Returns:
        A ``Quotient`` for each pair: ``sides``, ``crossing``, ``nu``, ``powers``, their errors and ``eta``.

    Raises:
        InputError: for fewer than two sizes, and runs without xi / L or without such an average.
    """
    results = _ordered(runs, 0)
    order = order_parameter(results)
    length = LENGTH.get(order)
    curves = _resampled(results)
    if length is None or any(length not in one for one in curves):
        raise InputError("the runs have no correlation length of an order parameter: quotients need it")
    chosen = names or tuple(name for name in _SUSCEPTIBILITIES[order] if all(name in one for one in curves))[:1]
    for name in chosen:
        if any(name not in one for one in curves):
            raise InputError(f"the runs have no average {name!r}: choose {either(tuple(curves[0]))}")
    each = [(_side(result), result.axis.values, rows) for result, rows in zip(results, curves, strict=True)]
    return [_quotient(one, other, length, chosen, near) for one, other in pairwise(each)]


_SUSCEPTIBILITIES: Final = {
    "magnetization": ("susceptibility",),
    "staggered_magnetization": ("staggered_susceptibility",),
    "overlap": ("spin_glass_susceptibility",),
}


def _quotient(
    one: tuple[float, Array, dict[str, Array]], other: tuple[float, Array, dict[str, Array]], length: str,
    names: Sequence[str], near: float | None,
) -> Quotient:  # fmt: skip
    """Compare two sizes, and each resample of one with that of the other."""
    (small, x, rows), (large, x_large, rows_large) = one, other
    found = crossing(x, rows[length], x_large, rows_large[length], near)
    places = np.concatenate([[found.value], found.resampled])
    ratio = np.log(large / small)

    def at(abscissae: Array, curves: Array, order: int) -> Array:
        """Value or slope of each row's spline where it crosses."""
        values = np.full(len(curves), np.nan)
        for k in np.flatnonzero(np.isfinite(places) & np.isfinite(curves).all(axis=1)):
            values[k] = CubicSpline(abscissae, curves[k])(places[k], order)
        return values

    def power(name: str, order: int) -> Array:
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(np.log(at(x_large, rows_large[name], order) / at(x, rows[name], order)) / ratio)

    slopes = power(length, 1)
    powers = {name: power(name, 0) for name in names}
    nu = 1 / slopes
    return Quotient(
        (small, large), found.value, found.error, float(nu[0]), float(np.nanstd(nu[1:], ddof=1)),
        {name: float(values[0]) for name, values in powers.items()},
        {name: float(np.nanstd(values[1:], ddof=1)) for name, values in powers.items()},
    )  # fmt: skip


def scaling_report(runs: Iterable[Run]) -> Report:
    """Collapses of cumulant, xi / L and susceptibility from each smallest size on, and quotients, as a report.

    Raises:
        InputError: for fewer than two sizes.
    """
    results = _ordered(runs, 0)
    order, symbol = order_parameter(results), results[0].axis.symbol
    names = [name for name in (*CROSSING[order][:2], *_SUSCEPTIBILITIES[order]) if _all_have(results, name)]
    from_each = [(results[k:], _resampled(results[k:])) for k in range(len(results) - 1)]  # smallest sizes left out
    found = [
        fit_collapse(_points_of(kept, curves, name), name, power=0.0 if _is_dimensionless(name) else None)
        for name in names
        for kept, curves in from_each
    ]
    compared = quotients(results) if LENGTH.get(order) in names else []
    lines = [["collapse of", "L from", f"{symbol}_c", "nu", "p", "chi^2 / of", "prob."]]
    lines += [
        [LABELS.get(one.name, one.name), f"{one.smallest:g}", with_error(one.critical, one.critical_error),
         with_error(one.nu, one.nu_error),
         with_error(one.power, one.power_error) if one.power_error else "0", f"{one.chi2:.1f} / {one.freedom}",
         f"{one.probability:.2g}"]
        for one in found
    ]  # fmt: skip
    rows: list[Row | str] = [f"Finite-size scaling of {len(results)} sizes", *in_columns(zip(*lines, strict=True))]
    if compared:
        cells = [["quotients of", f"{symbol} where xi / L is equal", "nu", "eta"]]
        cells += [
            [f"L = {one.sides[0]:g}, {one.sides[1]:g}", with_error(one.crossing, one.crossing_error),
             with_error(one.nu, one.nu_error), with_error(one.eta, max(one.power_errors.values(), default=np.nan))]
            for one in compared
        ]  # fmt: skip
        rows += ["", *in_columns(zip(*cells, strict=True))]
    note = (
        f"y(x, L) = L^p f((x - {symbol}_c) L^(1 / nu)), without corrections to scaling: numbers hold where they change "
        "no longer with the smallest size and the probability of chi^2 is not small."
    )
    rows += ["", Row("Note", note=note)]
    numbers = {
        "collapses": [{name: value for name, value in vars(one).items() if name not in _ARRAYS} for one in found],
        "quotients": [vars(one) | {"eta": one.eta} for one in compared],
    }
    return Report([*rows, *unprinted(numbers)])


_ARRAYS: Final = ("coefficients", "points")


def _all_have(results: Sequence[Tempered], name: str) -> bool:
    return all(name in {o.name for o in observables_of(result)} for result in results)
