"""Runs of several sizes side by side: the curves that do not depend on the size at a critical point, and crossings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.interpolate import CubicSpline

from spinsim.analysis.crossings import Crossing, crossing
from spinsim.analysis.kinds import check_one_model, is_antiferromagnet, is_ferromagnet
from spinsim.analysis.printed import with_error
from spinsim.analysis.runs import Tempered
from spinsim.analysis.summary import Estimate, Summary, resampled, summarize
from spinsim.errors import InputError
from spinsim.model.ising import Ising
from spinsim.observables import CROSSING, LABELS, in_field
from spinsim.observables.moments import in_space

Array = npt.NDArray[np.float64]

RESAMPLES: Final = 500  # errors to 3 %
_FEWEST: Final = 4  # points of a spline


@dataclass(frozen=True)
class SizeCurve:
    """An estimate of one size.

    Attributes:
        label: Such as "L = 8".
        temperature: Or what stands in its place, in the unit of the couplings, rising, (temperatures,).
        estimate: The curve and its errors.
        resampled: Row 0 from all data, then one row a bootstrap resample, (1 + resamples, temperatures).
    """

    label: str
    temperature: Array
    estimate: Estimate
    resampled: Array


@dataclass(frozen=True)
class SizeCrossing:
    """Where the curves of two sizes cross.

    Attributes:
        labels: Of the smaller and of the larger size.
        crossing: Temperature with its error, or why there is none.
        height: Of the curves there, NaN where they do not cross.
        trusted: Whether the errors of both curves can be trusted on both sides of it.
        symbol: Of what curves stand against.
    """

    labels: tuple[str, str]
    crossing: Crossing
    height: float
    trusted: bool
    symbol: str = "T"

    @property
    def sentence(self) -> str:
        """Where the two cross, or why that cannot be told."""
        sizes, found = " and ".join(self.labels), self.crossing
        if found.reason:
            return f"{sizes}: {found.reason}"
        where = f"{sizes} cross at {self.symbol} = {with_error(found.value, found.error, self.trusted)}"
        if not self.trusted:
            return f"{where}, without an error: series too short near it, or fewer than four samples"
        caution = f"; {found.caution}, the error is that of the others: more samples or more sweeps help"
        return where + (caution if found.caution else "")


@dataclass(frozen=True)
class Comparison:
    """One estimate for all sizes.

    Attributes:
        name: Of the estimate.
        curves: From the smallest size to the largest.
        crossings: Of each two.
    """

    name: str
    curves: list[SizeCurve]
    crossings: list[SizeCrossing]


def compare_sizes(
    results: Sequence[Tempered],
    observable: str | None = None,
    near: float | None = None,
    summaries: Sequence[Summary] | None = None,
) -> list[Comparison]:
    """The curves of several sizes, and where each two of them cross, with bootstrap errors.

    Args:
        results: Of one lattice in different sizes, two or more.
        observable: ``overlap``, ``magnetization`` or ``staggered_magnetization``, whose cumulants and correlation
            lengths are compared. By default the magnetisation of ferromagnets, the staggered one of antiferromagnets
            where it was measured, the overlap of all else.
        near: The crossing nearest to this temperature, in the unit of the couplings, is taken where curves
            cross more than once.
        summaries: Of each result, in the same order; found here where they are not given.

    Returns:
        One for each estimate that all results have.

    Raises:
        InputError: for fewer than two sizes, equal ones and different models (``kinds.check_one_model``), an unknown
            observable, overlaps of a run with one copy, and runs too short to analyse.
    """
    order = sorted(range(len(results)), key=lambda k: sites_of_space(results[k].model))
    ordered = [results[k] for k in order]
    check_sizes(ordered)
    names = CROSSING[_check_observable(ordered, observable)]
    of_each = [summarize(results[k]) if summaries is None else summaries[k] for k in order]
    resamples = [resampled(result, RESAMPLES, seed) for seed, result in enumerate(ordered)]
    found = list(zip(of_each, resamples, strict=True))
    comparisons = []
    for name in names:
        if all(name in summary.estimates for summary, _ in found):
            curves = [
                _curve(result, summary.estimates[name], rows[name])
                for result, (summary, rows) in zip(ordered, found, strict=True)
            ]
            symbol = ordered[0].axis.symbol
            pairs = [replace(_cross(a, b, near), symbol=symbol) for a, b in combinations(curves, 2)]
            comparisons.append(Comparison(name, curves, pairs))
    if not comparisons and in_field(ordered[0].model):
        raise InputError(
            f"{ordered[0].model.name} is in a field, where connected correlation lengths alone are compared, and these "
            f"runs have none: {' '.join(found[0][0].notes).rstrip('.')}"
        )
    return comparisons


def _curve(result: Tempered, estimate: Estimate, rows: Array) -> SizeCurve:
    """An estimate of one size against what rises along its axis."""
    order = np.argsort(result.axis.values)
    e = estimate
    return SizeCurve(
        size_label(result.model),
        result.axis.values[order],
        Estimate(e.value[order], e.error[order], e.tau[order], e.trusted[order]),
        rows[:, order],
    )


def say_crossings(comparisons: Sequence[Comparison], say: Callable[[str], None]) -> None:
    """Say where curves cross, a line for each pair, with the flag that chooses among several crossings."""
    for comparison in comparisons:
        for pair in comparison.crossings:
            choose = len(pair.crossing.candidates) > 1 and "say near which" in pair.crossing.reason
            flag = f", with --near {pair.symbol.upper()}" if choose else ""
            say(f"{LABELS[comparison.name]}: {pair.sentence}{flag}")


def order_parameter(results: Sequence[Tempered]) -> str:
    """What orders in runs of one kind of model: ``magnetization``, ``staggered_magnetization`` or ``overlap``."""
    if all(is_ferromagnet(result.model) for result in results):
        return "magnetization"
    if all(result.has_staggered and is_antiferromagnet(result.model) for result in results):
        return "staggered_magnetization"
    return "overlap"


def sites_of_space(model: Ising) -> int:
    """Returns how many sites a model has, of one of space and time those of a slice."""
    return model.sites // model.graph.slices


def size_label(model: Ising) -> str:
    """Such as "L = 8", "8 x 8 x 4" where sides differ, "N = 100" without a lattice."""
    lattice = in_space(model)
    if lattice is None:
        return f"N = {sites_of_space(model)}"
    sides = lattice.shape
    return f"L = {sides[0]}" if len(set(sides)) == 1 else " x ".join(map(str, sides))


def check_sizes(results: Sequence[Tempered]) -> None:
    """Refuse what is not one model in different sizes.

    Raises:
        InputError: for fewer than two sizes, equal ones and different models (``kinds.check_one_model``).
    """
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
        if observable == "overlap" and not result.overlap.shape[2]:
            raise InputError(
                f"the run of {result.model.name}, {size_label(result.model)}, has one copy at each temperature and no "
                "overlaps: run it with two replicas or more, or choose the observable magnetization"
            )
        if observable == "staggered_magnetization" and not result.has_staggered:
            raise InputError(
                f"the run of {result.model.name}, {size_label(result.model)}, has no staggered magnetisation, which "
                "takes a lattice of two sublattices and a file of this version: choose another observable"
            )
    return observable


def _cross(a: SizeCurve, b: SizeCurve, near: float | None) -> SizeCrossing:
    points = [np.isfinite(curve.resampled).all(axis=0) for curve in (a, b)]  # xi of noise alone is NaN
    x, y = a.temperature[points[0]], b.temperature[points[1]]
    labels = (a.label, b.label)
    if min(len(x), len(y)) < _FEWEST or max(x[0], y[0]) >= min(x[-1], y[-1]):
        reason = f"fewer than {_FEWEST} points of the ladder have a value" if min(len(x), len(y)) < _FEWEST else ""
        reason = reason or "their ladders do not overlap"
        none = Crossing(np.nan, np.nan, np.empty(0), np.full(len(a.resampled) - 1, np.nan), reason)
        return SizeCrossing(labels, none, np.nan, trusted=False)
    found = crossing(x, a.resampled[:, points[0]], y, b.resampled[:, points[1]], near)
    if np.isnan(found.value):
        return SizeCrossing(labels, found, np.nan, trusted=False)
    height = float(CubicSpline(x, a.resampled[0, points[0]])(found.value))
    return SizeCrossing(labels, found, height, all(_trusted_around(curve, found.value) for curve in (a, b)))


def _trusted_around(curve: SizeCurve, x: float) -> bool:
    """Whether the errors at the temperatures on both sides of x can be trusted."""
    above = int(np.clip(np.searchsorted(curve.temperature, x), 1, len(curve.temperature) - 1))
    return bool(curve.estimate.trusted[above - 1 : above + 1].all())
