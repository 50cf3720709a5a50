"""Collapses, quotients and peaks of runs of several sizes together: ``spinsim analyze --scaling`` and its figures."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from spinsim.analysis.scaling.collapse import FITTED, Collapse, fit_collapse, narrowed
from spinsim.analysis.scaling.curves import (
    LENGTH,
    SUSCEPTIBILITY,
    Points,
    Size,
    all_have,
    is_dimensionless,
    order_of,
    sizes_of,
)
from spinsim.analysis.scaling.limits import SizeFit, infinite_size, power_of_size
from spinsim.analysis.scaling.peaks import Peak, peaks
from spinsim.analysis.scaling.quotients import Quotient, quotients
from spinsim.analysis.tables import Report, Row, in_columns, unprinted, with_error
from spinsim.errors import InputError
from spinsim.observables.table import CROSSING, LABELS, SYMBOLS
from spinsim.result import Run

_FEWEST_FOR_LIMITS: Final = 3  # values of different sizes
_FEWEST_FOR_CORRECTIONS: Final = 4  # sizes
_FEWEST_POINTS: Final = 5  # of each size, on average
_SERVES: Final = 0.01  # probability of chi^2 from which on a polynomial serves

Estimates = tuple[str, list[tuple[float, float, float]], SizeFit | None]
"""Label of an estimate; side, value and error in each size; the fit of its limit, if there is one."""


def collapsed_names(sizes: Sequence[Size]) -> list[str]:
    """Cumulant, xi / L and susceptibility of the order parameter, as far as all sizes have them."""
    order = order_of(sizes)
    names = [*CROSSING[order][:2], SUSCEPTIBILITY[order]]
    return [name for name in names if all_have(sizes, name)]


class Scaling(NamedTuple):
    """Quotients and peaks of several sizes, and their limits."""

    quotients: list[Quotient]
    peaks: list[Peak]  # of the largest |m|-susceptibility or specific heat, where it is inside the ladder
    limits: dict[str, SizeFit]  # of infinite size, by what was fitted


def scaling(sizes: Sequence[Size]) -> Scaling:
    names = collapsed_names(sizes)
    pairs = quotients(sizes) if LENGTH.get(order_of(sizes)) in names else []
    highest = [one for one in peaks(sizes) if np.isfinite(one.place)] if all_have(sizes, "specific_heat") else []
    return Scaling(pairs, highest, _limits(pairs, "crossing", "nu", "eta") | _limits(highest, "place"))


def best_collapses(sizes: Sequence[Size]) -> list[Collapse]:
    """Collapse of each average from the smallest size on from which a polynomial serves, else from the last but one."""
    best = []
    for name in collapsed_names(sizes):
        found = [one for one in collapses(sizes, name) if not len(one.corrections)]
        best.append(next((one for one in found if one.probability >= _SERVES), found[-1]))
    return best


def estimates_of(sizes: Sequence[Size]) -> list[Estimates]:
    """Label, side, value and error of each estimate of single sizes or pairs, and the fit of their limit."""
    found, symbol = scaling(sizes), sizes[0].symbol
    estimates = []
    for name, label in (("crossing", rf"${symbol}$ of equal $\xi/L$"), ("nu", r"$\nu$"), ("eta", r"$\eta$")):
        rows = [one.resampled[name] for one in found.quotients]
        estimates.append((label, [one.side for one in found.quotients], rows, found.limits.get(name)))
    if found.peaks:
        peak = f"${symbol}$ of largest ${SYMBOLS[found.peaks[0].name].partition('$')[2]}"
        rows = [one.resampled["place"] for one in found.peaks]
        estimates.append((peak, [one.side for one in found.peaks], rows, found.limits.get("place")))
    return [
        (
            label,
            [(side, float(row[0]), float(np.nanstd(row[1:], ddof=1))) for side, row in zip(sides, rows, strict=True)],
            fit,
        )
        for label, sides, rows, fit in estimates
        if rows
    ]


def scaling_report(runs: Iterable[Run] | Iterable[Size]) -> Report:
    """Collapses from each smallest size on, quotients and peaks, with their fits against L, as a report.

    Raises:
        InputError: for fewer than two sizes.
    """
    sizes = sizes_of(runs)
    collapsed = [one for name in collapsed_names(sizes) for one in collapses(sizes, name)]
    found, symbol = scaling(sizes), sizes[0].symbol
    rows: list[Row | str] = [f"Finite-size scaling of {len(sizes)} sizes", *_of_collapses(collapsed, symbol)]
    rows += ["", *_of_quotients(found, symbol)] if found.quotients else []
    rows += ["", *_of_peaks(found, symbol)] if len(found.peaks) > 1 else []
    note = (
        f"y(x, L) = L^p [f(u) + L^-omega g(u)], u = (x - {symbol}_c) L^(1 / nu), f of degree 4, from points near "
        f"{symbol}_c: numbers hold where they change no longer with the smallest size and the probability of chi^2 is "
        "not small."
    )
    rows += ["", Row("Note", note=note)]
    numbers = {
        "collapses": [_without_arrays(one) for one in collapsed],
        "quotients": [_without_arrays(one) | {"eta": one.eta} for one in found.quotients],
        "peaks": [_without_arrays(one) for one in found.peaks],
        "limits": [_without_arrays(one) for one in found.limits.values()],
    }
    return Report([*rows, *unprinted(numbers)])


def collapses(sizes: Sequence[Size], name: str) -> list[Collapse]:
    """Collapses without the smallest sizes, one more in turn, then one of all sizes with corrections.

    Points far from x_c are left out until a polynomial serves.
    """
    points = [one.points(name) for one in sizes]
    found = [_served(points[k:], name, None) for k in range(len(points) - 1)]
    if len(sizes) >= _FEWEST_FOR_CORRECTIONS:
        corrected = _served(points, name, FITTED)
        found += [corrected] * (corrected.omega_error < corrected.omega)  # else these sizes say nothing about it
    return found


def _served(points: Sequence[Points], name: str, omega: str | None) -> Collapse:
    power = 0.0 if is_dimensionless(name) else None
    found = fit_collapse(points, name, power=power, omega=omega)
    while found.probability < _SERVES:
        nearer = narrowed(found)
        if len(nearer) < len(points) or sum(len(one.x) for one in nearer) < _FEWEST_POINTS * len(nearer):
            break
        found = fit_collapse(nearer, name, power=power, near=found.critical, omega=omega)
    return found


def _of_collapses(found: Sequence[Collapse], symbol: str) -> list[str]:
    """Table of collapses without corrections, then one of those with corrections, if there are any."""
    tables = []
    for corrected, head in ((False, "L from"), (True, "omega")):
        lines = [["of", head, f"{symbol}_c", "nu", "p", "chi^2/of", "prob."]]
        lines += [
            [LABELS.get(one.name, one.name),
             with_error(one.omega, one.omega_error) if corrected else f"{one.smallest:g}",
             with_error(one.critical, one.critical_error), with_error(one.nu, one.nu_error),
             with_error(one.power, one.power_error) if one.power_error else "0", f"{one.chi2:.1f}/{one.freedom}",
             f"{one.probability:.2g}"]
            for one in found if bool(len(one.corrections)) == corrected
        ]  # fmt: skip
        if len(lines) > 1:
            tables += [*([""] * corrected), *in_columns(zip(*lines, strict=True))]
    return tables


def _of_quotients(found: Scaling, symbol: str) -> list[str]:
    lines = [["quotients of", f"{symbol} where xi / L is equal", "nu", "eta"]]
    for one in found.quotients:
        error = max(one.power_errors.values(), default=np.nan)
        lines.append([f"L = {one.sides[0]:g}, {one.sides[1]:g}", with_error(one.crossing, one.crossing_error),
                      with_error(one.nu, one.nu_error), with_error(one.eta, error)])  # fmt: skip
    limits = [_limit(found, name) for name in ("crossing", "nu", "eta")]
    return in_columns(zip(*lines, *([["L = infinity", *limits]] if any(limits) else []), strict=True))


def _of_peaks(found: Scaling, symbol: str) -> list[str]:
    name = LABELS.get(found.peaks[0].name, found.peaks[0].name)
    lines = [[f"peak of {name}", symbol, "height"]]
    lines += [
        [f"L = {one.side:g}", with_error(one.place, one.place_error), with_error(one.height, one.height_error)]
        for one in found.peaks
    ]
    power = power_of_size(found.peaks)
    lines.append(["L = infinity", _limit(found, "place"), f"L^{with_error(power.value, power.error)}"])
    return in_columns(zip(*lines, strict=True))


def _limit(found: Scaling, name: str) -> str:
    fit = found.limits.get(name)
    return "" if fit is None else with_error(fit.value, fit.error)


def _limits(found: Sequence[Quotient] | Sequence[Peak], *names: str) -> dict[str, SizeFit]:
    """Limits of infinite size where all sizes have a value and these determine the exponent of corrections."""
    fits = {}
    for name in names if len(found) >= _FEWEST_FOR_LIMITS else ():
        try:
            fit = infinite_size(found, name)
        except InputError:  # some size has no value
            continue
        if fit.exponent_error < fit.exponent:
            fits[name] = fit
    return fits


def _without_arrays(found: Any) -> dict[str, Any]:
    lists = ("points", "coefficients", "corrections", "resampled", "sides", "values", "errors")
    return {name: value for name, value in vars(found).items() if name not in lists or isinstance(value, tuple)}
