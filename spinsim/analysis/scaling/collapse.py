"""Data collapse: all sizes fitted to one curve, with corrections to scaling if wanted.

Near a continuous transition at x_c an average is y(x, L) = L^p [f(u) + L^-omega g(u)], u = (x - x_c) L^(1 / nu). p is 0
for Binder cumulants and xi / L, gamma / nu for a susceptibility and -beta / nu for an order parameter. A collapse takes
f and g to be polynomials and fits x_c, nu, p and omega to the points of all sizes with their covariance.

Source: A. Sandvik, AIP Conf. Proc. 1297, 135 (2010), section 3.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from scipy.optimize import least_squares
from scipy.stats import chi2 as chi_squared

from spinsim.analysis.runs import Array
from spinsim.analysis.scaling.curves import LENGTH, Points, Size, is_dimensionless, order_of, sizes_of
from spinsim.analysis.scaling.limits import LEAST, MOST
from spinsim.errors import InputError
from spinsim.inputs.arguments import public
from spinsim.result import Run

DEGREE: Final = 4  # of the polynomial f
_CORRECTED: Final = 1  # degree of the polynomial g of corrections
_NUS: Final = (0.4, 0.63, 1.0, 1.7, 2.6)  # where searches for nu begin
_LEAST_NU: Final = 0.2
_MOST_NU: Final = 8.0
_MOST_POWER: Final = 6.0
_NARROWER: Final = 0.8  # of the range in u
FITTED: Final = "fit"  # of omega


@dataclass(frozen=True)
class Collapse:
    """A fit of all sizes to one curve, with standard errors.

    Attributes:
        name: Name of the average.
        critical: x_c, in the unit of the ladder.
        nu: Exponent of the correlation length.
        power: p, the exponent of L before the curve; 0 of dimensionless averages.
        omega: Exponent of the corrections to scaling; NaN without corrections.
        critical_error: Standard error of x_c, from the curvature of chi^2; likewise of the others.
        nu_error: Standard error of nu.
        power_error: Standard error of p, 0 if it was not fitted.
        omega_error: Standard error of omega, 0 if it was not fitted.
        chi2: Squared deviations in units of the covariance.
        freedom: Number of points less the fitted numbers.
        probability: Probability of a larger chi^2 if the sizes have one curve.
        smallest: Smallest L in the fit.
        coefficients: Coefficients of the polynomial f, the constant first.
        corrections: Coefficients of the polynomial g, likewise; empty without corrections.
        points: Points of each size.
    """

    name: str
    critical: float
    nu: float
    power: float
    omega: float
    critical_error: float
    nu_error: float
    power_error: float
    omega_error: float
    chi2: float
    freedom: int
    probability: float
    smallest: float
    coefficients: Array = field(repr=False)
    corrections: Array = field(repr=False)
    points: list[Points] = field(repr=False)

    def scaled(self, points: Points) -> tuple[Array, Array, Array]:
        """Abscissae u, values y L^-p without the corrections L^-omega g(u), and their errors, of one size's points."""
        u, factor = (points.x - self.critical) * points.side ** (1 / self.nu), points.side**-self.power
        y, error = points.y * factor, points.error * factor
        if len(self.corrections):
            y = y - points.side**-self.omega * np.polynomial.polynomial.polyval(u, self.corrections)
        return u, y, error


class _Model:
    """Deviations of points from L^p [f(u) + L^-omega g(u)], in units of their covariance.

    Parameters are x_c and nu, then p and omega as far as they are fitted.
    """

    def __init__(
        self, points: Sequence[Points], degree: int, fits_power: bool, omega: float | None, fits_omega: bool
    ) -> None:
        self.points, self.degree, self.fits_power = points, degree, fits_power
        self.omega, self.fits_omega = omega, fits_omega
        self.orders = degree + 1, _CORRECTED + 1 if fits_omega or omega is not None else 0  # coefficients of f, g
        self.low, self.high = min(one.x.min() for one in points), max(one.x.max() for one in points)
        self.sides = [one.side for one in points]
        self.whiteners = [one.whitener for one in points]
        self.values = np.concatenate([w @ one.y for w, one in zip(self.whiteners, points, strict=True)])

    def named(self, parameters: Array) -> tuple[float, float, float, float]:
        """x_c, nu, p (relative to one held) and omega."""
        critical, nu, *rest = map(float, parameters)
        power = rest.pop(0) if self.fits_power else 0.0
        return critical, nu, power, rest.pop(0) if self.fits_omega else np.nan if self.omega is None else self.omega

    def _reach(self, nu: float) -> float:
        return float((self.high - self.low) * max(self.sides) ** (1 / nu))

    def design(self, parameters: Array) -> Array:
        """Whitened powers of the scaled abscissa, (points, coefficients of f and g)."""
        critical, nu, power, omega = self.named(parameters)
        blocks = []
        for one, whitener in zip(self.points, self.whiteners, strict=True):
            u = (one.x - critical) * one.side ** (1 / nu) / self._reach(nu)  # of order 1: powers stay well apart
            columns = [np.vander(u, self.orders[0], increasing=True)]
            if self.orders[1]:  # relative to the smallest size, so that all columns are of order 1
                size = (one.side / min(self.sides)) ** -omega
                columns.append(np.vander(u, self.orders[1], increasing=True) * size)
            blocks.append(whitener @ (np.hstack(columns) * one.side**power))
        return np.concatenate(blocks)

    def deviations(self, parameters: Array) -> Array:
        """Deviations from the best polynomials at given parameters."""
        design = self.design(parameters)
        return np.asarray(self.values - design @ np.linalg.lstsq(design, self.values, rcond=None)[0])

    def coefficients(self, parameters: Array) -> tuple[Array, Array]:
        """Coefficients of f and of g in (x - x_c) L^(1 / nu)."""
        _, nu, _, omega = self.named(parameters)
        found = np.linalg.lstsq(self.design(parameters), self.values, rcond=None)[0]
        first, second = found[: self.orders[0]], found[self.orders[0] :]
        return (
            first / self._reach(nu) ** np.arange(len(first)),
            second / self._reach(nu) ** np.arange(len(second)) * (min(self.sides) ** omega if len(second) else 1),
        )


def fit_collapse(
    points: Sequence[Points],
    name: str = "y",
    degree: int = DEGREE,
    power: float | None = 0.0,
    near: float | None = None,
    omega: float | str | None = None,
) -> Collapse:
    """Collapse of points of several sizes; ``power`` None fits p, else it is held at the value; ``omega`` likewise.

    Raises:
        InputError: for fewer than two sizes, too few points and errors of 0.
    """
    sides = {one.side for one in points}
    corrected, fits_omega = omega is not None, omega == FITTED
    if len(sides) < 2 + corrected:
        more = "three" if corrected else "two"
        raise InputError(f"a collapse {'with corrections ' * corrected}needs {more} sizes or more")
    held = 0.0 if power is None else power
    scaled = [
        one._replace(y=one.y / one.side**held, covariance=one.covariance / one.side ** (2 * held)) for one in points
    ]
    given = None if omega is None or isinstance(omega, str) else omega
    model = _Model(scaled, degree, power is None, given, fits_omega)
    freedom = len(model.values) - sum(model.orders) - 2 - (power is None) - fits_omega
    if freedom < 1:
        raise InputError(f"{len(model.values)} points are too few for a polynomial of degree {degree}: give more")
    best = _lowest(model, near)
    critical, nu, fitted, exponent = model.named(best.x)
    errors = np.sqrt(np.diag(np.linalg.pinv(best.jac.T @ best.jac)))
    critical_error, nu_error, power_error, omega_error = model.named(errors)
    chi2 = float(2 * best.cost)
    first, second = model.coefficients(best.x)
    return Collapse(
        name=name, critical=critical, nu=nu, power=fitted + held, omega=exponent, critical_error=critical_error,
        nu_error=nu_error, power_error=power_error, omega_error=omega_error if fits_omega else 0.0, chi2=chi2,
        freedom=freedom, probability=float(chi_squared.sf(chi2, freedom)), smallest=min(sides), coefficients=first,
        corrections=second, points=list(points),
    )  # fmt: skip


def _lowest(model: _Model, near: float | None) -> Any:
    """The lowest of the minima of chi^2 that searches from several x_c and nu find."""
    reach, centre = model.high - model.low, (model.low + model.high) / 2
    low, high, scale = [model.low - reach, _LEAST_NU], [model.high + reach, _MOST_NU], [reach, 1.0]
    if model.fits_power:
        low, high, scale = [*low, -_MOST_POWER], [*high, _MOST_POWER], [*scale, 1.0]
    if model.fits_omega:
        low, high, scale = [*low, LEAST], [*high, MOST], [*scale, 1.0]
    best: Any = None
    for critical in (centre - reach / 4, centre, centre + reach / 4) if near is None else (near,):
        for nu in _NUS:
            begin = [critical, nu] + [_power_at(model.points, critical)] * model.fits_power + [1.0] * model.fits_omega
            found = least_squares(model.deviations, begin, bounds=(low, high), x_scale=scale)
            if best is None or found.cost < best.cost:
                best = found
    return best


def narrowed(found: Collapse) -> list[Points]:
    """Points of a fit without those farthest from x_c in u; where one curve does not serve all, they are to blame."""
    far = max(np.abs(found.scaled(one)[0]).max() for one in found.points)
    kept = []
    for one in found.points:
        near = np.abs(found.scaled(one)[0]) <= _NARROWER * far
        kept.append(Points(one.side, one.x[near], one.y[near], one.covariance[np.ix_(near, near)], one.entries))
    return [one for one in kept if len(one.x) > 1]


def _power_at(points: Sequence[Points], x: float) -> float:
    """Slope of ln |y| against ln L at a place of the ladder, from the smallest and the largest size."""
    ordered = sorted(points, key=lambda one: one.side)
    small, large = (float(np.interp(x, one.x, np.abs(one.y))) for one in (ordered[0], ordered[-1]))
    return float(np.clip(np.log(large / small) / np.log(ordered[-1].side / ordered[0].side), -5, 5))


@public
def collapse(
    runs: Iterable[Run] | Iterable[Size],
    y: str | None = None,
    *,
    power: float | None = None,
    window: Sequence[float] | None = None,
    degree: int = DEGREE,
    near: float | None = None,
    smallest: float = 0,
    omega: float | str | None = None,
) -> Collapse:
    """Collapse of an average of several sizes onto one curve: x_c, nu and p with errors, chi^2 and its probability.

    y(x, L) = L^p [f(u) + L^-omega g(u)], u = (x - x_c) L^(1 / nu), with polynomials f and, of degree 1, g. Points of
    one size have the covariance of bootstrap resamples over samples, or over blocks of time for a single sample.
    Compare ``smallest`` = L of the second size, of the third, and so on, until nothing changes.

    Args:
        runs: Results or files of one model in two sizes or more, each may be pooled; or what ``sizes_along`` returned.
        y: Name of an average, such as ``binder_cumulant`` or ``susceptibility``; by default xi / L of the order
            parameter.
        power: p, held at this value; None fits it, except for cumulants and xi / L, where p = 0.
        window: Lower and upper end of the ladder's range that is fitted, where the polynomial serves; by default all.
        degree: Degree of the polynomial.
        near: A guess of x_c.
        smallest: Smaller sizes are left out.
        omega: Exponent of the corrections to scaling: a number, or ``fit``; None for no corrections.

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
    if omega is not None and omega != FITTED and (isinstance(omega, str) or not 0 < omega < np.inf):
        raise InputError(f"omega {omega!r} is no correction that vanishes: give a number above 0, or fit")
    sizes = sizes_of(runs, smallest)
    name = y or LENGTH.get(order_of(sizes), "binder_cumulant")
    points = [one.points(name, window) for one in sizes]
    held = 0.0 if power is None and is_dimensionless(name) else power
    return fit_collapse(points, name, degree, held, near, omega)
