"""Averages of each size against the ladder, with bootstrap resamples and their covariance."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple, cast

import numpy as np

from spinsim.analysis.runs import Array, Tempered
from spinsim.analysis.sizes import RESAMPLES, check_sizes, order_parameter, sites_of_space
from spinsim.analysis.statistics import statistics_of
from spinsim.analysis.summary import resampled
from spinsim.errors import InputError
from spinsim.inputs.arguments import public
from spinsim.inputs.texts import count, either
from spinsim.model.ising import described
from spinsim.model.quadratic import finite
from spinsim.observables.quantities import in_space
from spinsim.observables.table import CROSSING
from spinsim.result import Run, as_result, runs_in

_SMALLEST: Final = 1e-10  # eigenvalue of a correlation matrix below which a combination of points is left out
_NEAREST: Final = 8  # points about a place that are fitted
_MOST_SITES: Final = 2**40  # that a seed of resamples tells apart
_ROUNDING: Final = 1e-9  # relative, of places that are equal
_CUBIC: Final = 3  # degree of their polynomials
_SYMBOLS: Final = {"bond_fraction": "p", "field": "h", "random_field": "h_r", "dilution": "dilution"}
LENGTH: Final = {of: name for of, names in CROSSING.items() for name in names if name.endswith("over_L")}
"""Correlation length over L of each order parameter."""
SUSCEPTIBILITY: Final = {
    "magnetization": "susceptibility",
    "staggered_magnetization": "staggered_susceptibility",
    "overlap": "spin_glass_susceptibility",
}


class Points(NamedTuple):
    """An average of one size against the ladder."""

    side: float  # L
    x: Array  # (points,)
    y: Array  # (points,)
    covariance: Array  # of y, (points, points)
    entries: float  # independent samples or stretches of time behind the covariance; infinite if it is known

    @property
    def error(self) -> Array:
        """Standard errors, (points,)."""
        error = np.sqrt(np.diag(self.covariance))
        if not np.all(error > 0):
            raise InputError("some averages have an error of 0: leave out the temperatures where nothing fluctuates")
        return np.asarray(error)

    @property
    def whitener(self) -> Array:
        """Matrix W with W' W the inverse of the covariance, corrected for its estimate from a number of entries.

        Source: J. Hartlap, P. Simon, P. Schneider, Astron. Astrophys. 464, 399 (2007), eq. (17).
        """
        scale = self.error
        values, vectors = np.linalg.eigh(self.covariance / np.outer(scale, scale))
        kept = values > _SMALLEST * values.max()
        shrunk = max(0.0, 1 - (len(scale) + 1) / (self.entries - 1))
        if shrunk == 0:
            raise InputError(
                f"L = {self.side:g} has {len(scale)} points, too many for the covariance of {self.entries:g} samples "
                "or stretches of time: give a narrower window, fewer temperatures, or more samples or sweeps"
            )
        return np.asarray(np.sqrt(shrunk / values[kept])[:, None] * vectors[:, kept].T / scale)


class Smooth(NamedTuple):
    """Polynomials through the points of an average, one for all data and one for each resample."""

    low: float  # ends of the fitted range
    high: float
    coefficients: Array  # in (x - middle) / half range, the constant first, (degree + 1, 1 + resamples)
    probability: float  # share of resamples that are as far from their polynomial, if the polynomial serves

    def at(self, x: Array, order: int = 0) -> Array:
        """Value or derivative of each polynomial at its place, (1 + resamples,)."""
        reach = (self.high - self.low) / 2
        u = (x - (self.low + self.high) / 2) / reach
        derived = np.polynomial.polynomial.polyder(self.coefficients, order)
        return np.asarray(np.polynomial.polynomial.polyval(u, derived, tensor=False) / reach**order)


class Size(NamedTuple):
    """All averages of one size against the ladder, or against another quantity."""

    side: float  # L
    x: Array  # rising, (points,)
    rows: dict[str, Array]  # row 0 from all data, then one row a bootstrap resample, (1 + resamples, points), by name
    entries: dict[str, int]  # independent samples or stretches of time behind each
    result: Tempered  # a run of this size
    symbol: str  # of the abscissa, such as T

    def curve(self, name: str) -> Array:
        if name not in self.rows:
            raise InputError(f"the runs have no average {name!r}: choose {either(tuple(self.rows))}")
        return self.rows[name]

    def points(self, name: str, window: Sequence[float] | None = None) -> Points:
        """Points of an average inside a window that have a value."""
        return self._points_and_rows(name, window)[0]

    def smooth(self, name: str, degree: int, window: Sequence[float] | None = None) -> Smooth:
        """Polynomials through the points inside a window, which have the weights of their errors.

        The degree is given, not chosen by the data: errors would be too small then. Points are correlated; this enters
        through the resamples, whose differences from all data are the noise by which deviations are judged.

        Raises:
            InputError: for fewer points than coefficients.
        """
        points, rows = self._points_and_rows(name, window)
        if degree >= len(points.x):
            raise InputError(f"L = {self.side:g} has {len(points.x)} points, too few for degree {degree}: give more")
        low, high = points.x[0], points.x[-1]
        matrix = np.vander((2 * points.x - low - high) / (high - low), degree + 1, increasing=True)
        y = rows.T / points.error[:, None]
        found = np.asarray(np.linalg.lstsq(matrix / points.error[:, None], y, rcond=None)[0], np.float64)
        away = y - matrix / points.error[:, None] @ found
        noise = np.square(away[:, 1:] - away[:, :1]).sum(axis=0)
        return Smooth(low, high, found, float((noise >= np.square(away[:, 0]).sum()).mean()))

    def at(self, name: str, place: float) -> Array:
        """An average at a place of the ladder, (1 + resamples,); between its points from a cubic polynomial."""
        slack, curve = _ROUNDING * abs(place), self.curve(name)
        if not self.x[0] - slack <= place <= self.x[-1] + slack:
            raise InputError(
                f"the ladder of L = {self.side:g} from {self.x[0]:g} to {self.x[-1]:g} lacks {self.symbol} = {place:g}"
            )
        nearest = int(np.argmin(np.abs(self.x - place)))
        if abs(self.x[nearest] - place) <= slack:
            return curve[:, nearest]
        known = np.flatnonzero(np.isfinite(curve).all(axis=0))
        if len(known) < 2:
            return np.full(len(curve), np.nan)
        smooth = self.smooth(name, min(_CUBIC, len(known) - 1), around(self.x[known], place))
        return smooth.at(np.full(len(curve), place))

    def _points_and_rows(self, name: str, window: Sequence[float] | None) -> tuple[Points, Array]:
        """Points inside a window that have a value, and their curves, (1 + resamples, points)."""
        rows = self.curve(name)
        inside = np.isfinite(rows).all(axis=0)
        if window is not None:
            low, high = (finite(end, "window") for end in window)
            inside &= (self.x >= low) & (self.x <= high)
        if inside.sum() < 2:
            raise InputError(f"L = {self.side:g} has {int(inside.sum())} points in the window: give a wider one")
        rows = rows[:, inside]
        covariance = np.atleast_2d(np.cov(rows[1:], rowvar=False))
        return Points(self.side, self.x[inside], rows[0], covariance, min(self.entries[name], len(rows) - 1)), rows


def around(x: Array, place: float) -> tuple[float, float]:
    """Ends of the points of a ladder that are nearest to a place."""
    near = np.sort(x[np.argsort(np.abs(x - place), kind="stable")[:_NEAREST]])
    return float(near[0]), float(near[-1])


def sizes_of(runs: Iterable[Run] | Iterable[Size], smallest: float = 0) -> list[Size]:
    """Sizes of runs in rising order, from ``smallest`` on. Each has resamples of its own, whatever others there are.

    What ``sizes_along`` returned is taken as it is.

    Raises:
        InputError: for fewer than two sizes, and models without a lattice.
    """
    given: list[Any] = runs_in(cast("Any", runs))
    if all(isinstance(one, Size) for one in given):
        sizes: list[Size] = sorted((one for one in given if one.side >= smallest), key=lambda one: one.side)
        if len(sizes) < 2:
            raise InputError(f"{count(len(sizes), 'size')} cannot be compared: give two sizes or more")
        return sizes
    results = sorted((as_result(one) for one in given), key=lambda result: sites_of_space(result.model))
    kept = [result for result in results if side_of(result) >= smallest]
    check_sizes(kept)
    return [size_of(result) for result in kept]


@public
def sizes_along(
    runs: Iterable[Run],
    x: str | Callable[[Any], float] = "bond_fraction",
    at: float | str | Callable[[float], float] = "nishimori",
    *,
    symbol: str | None = None,
) -> list[Size]:
    """Averages of each size against a property of the model, for transitions that no ladder of temperatures crosses.

    Each run has one value of the property. Its averages are taken at one temperature, a point of its ladder or between
    points, from a cubic polynomial through the nearest eight. ``collapse``, ``quotients`` and ``peaks`` take what this
    returns in the place of runs.

    Args:
        runs: Results or files, of each size one or more for each value of the property.
        x: Setting of the model, such as ``bond_fraction``, ``dilution``, ``field`` or ``random_field``; or a function
            of a result that returns the property.
        at: Temperature, in the unit of the couplings; or a function of the property; or ``nishimori`` for that with
            exp(2 / T) = p / (1 - p), p the share of positive bonds.
        symbol: Symbol of the property in reports and figures; p by default for the share of positive bonds.

    Returns:
        A ``Size`` for each size, from the smallest on: ``side``, ``x`` and ``rows`` of averages by name, of all data
            and of each bootstrap resample, (1 + resamples, points).

    Raises:
        InputError: for models without the property, equal properties of one size, and temperatures beyond a ladder.

    Source: H. Nishimori, Prog. Theor. Phys. 66, 1169 (1981).
    """
    found: dict[float, list[tuple[float, Size, float]]] = {}
    for k, result in enumerate(as_result(one) for one in runs_in(runs)):
        place = float(x(result)) if callable(x) else _setting(result, x)
        size = size_of(result, seed=k)
        found.setdefault(size.side, []).append((place, size, _temperature(at, place)))
    shown = symbol or _SYMBOLS.get(x, "x") if isinstance(x, str) else symbol or "x"
    return [_along(side, sorted(of, key=lambda one: one[0]), shown) for side, of in sorted(found.items())]


def _setting(result: Tempered, name: str) -> float:
    settings = {**described(result.model), **result.config.get("model", {})}
    value = settings.get(name)
    if not isinstance(value, int | float):
        raise InputError(f"the model {result.model.name} has no number {name!r}: give a setting, or a function")
    return float(value)


def _temperature(at: float | str | Callable[[float], float], place: float) -> float:
    """Temperature at which the runs with a value of the property are compared."""
    if callable(at):
        return float(at(place))
    if at == "nishimori":
        if not 0.5 < place < 1:
            raise InputError(f"the Nishimori line has no temperature at p = {place:g}: give models with p above 0.5")
        return float(2 / np.log(place / (1 - place)))
    try:
        return float(at)
    except ValueError as error:
        raise InputError(f"{at!r} is no temperature: give a number, or nishimori") from error


def _along(side: float, of: Sequence[tuple[float, Size, float]], symbol: str) -> Size:
    """Size against the property, from the runs of one size in the order of their values."""
    x = np.array([place for place, _, _ in of])
    if np.any(np.diff(x) == 0):
        raise InputError(f"two runs of L = {side:g} have equal {symbol}: pool them first")
    sizes = [size for _, size, _ in of]
    shared = [name for name in sizes[0].rows if all(name in one.rows for one in sizes)]
    rows = {name: np.stack([size.at(name, t) for _, size, t in of], axis=1) for name in shared}
    entries = {name: min(one.entries[name] for one in sizes) for name in rows}
    return Size(side, x, rows, entries, sizes[0].result, symbol)


def size_of(result: Tempered, seed: int = 0) -> Size:
    """Size of a run; ``seed`` tells apart resamples of several runs of the size."""
    x, rows = result.axis.values, resampled(result, RESAMPLES, seed=seed * _MOST_SITES + sites_of_space(result.model))
    rising = np.argsort(x)
    curves = {name: of[:, rising] for name, of in rows.items()}
    return Size(side_of(result), x[rising], curves, _entries(result), result, result.axis.symbol)


def _entries(result: Tempered) -> dict[str, int]:
    """Independent entries behind each average; of an observable of your own the samples, or the copies of one."""
    statistics = statistics_of(result)
    own = max(statistics.samples, statistics.run.reduced.copies)
    return {one.name: statistics.entries_behind(one) for one in statistics.records} | {
        one.name: own for one in statistics.own_records
    }


def order_of(sizes: Sequence[Size]) -> str:
    return order_parameter([one.result for one in sizes])


def all_have(sizes: Sequence[Size], name: str) -> bool:
    return all(name in one.rows and np.isfinite(one.rows[name]).all(axis=0).sum() > 1 for one in sizes)


def is_dimensionless(name: str) -> bool:
    return any(name in names for names in CROSSING.values())


def side_of(result: Tempered) -> float:
    """L, the side of the lattice; of other models the root of the number of sites that a cube of them has."""
    lattice = in_space(result.model)
    if lattice is None:
        raise InputError(f"{result.model.name} has no lattice: scaling needs a side L")
    return round(float(sites_of_space(result.model) ** (1 / lattice.dimension)), 9)  # a cube root of 64 is not quite 4
