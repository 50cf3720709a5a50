"""Strips: exact levels of the ferromagnet, phenomenological renormalisation, the conformal charge."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.interpolate import CubicSpline

from spinsim.analysis.jackknife import bootstrap
from spinsim.analysis.kinds import check_one_model
from spinsim.analysis.runs import FEWEST_FOR_ERRORS, Array, Strips
from spinsim.analysis.sizes import crossing
from spinsim.errors import InputError
from spinsim.model.ising import Ising

AVERAGES: Final = ("mean", "typical")  # over samples: [xi], and exp[ln xi]
RESAMPLES: Final = 500  # errors to 3 %
_FEWEST: Final = 4  # points of a spline


@dataclass(frozen=True)
class LengthCurve:
    """xi / L of one width against temperature, averaged over samples."""

    width: int  # the layer's first side
    samples: int  # disorder samples
    temperature: Array  # rising, (points,); points without a value are left out
    log: Array  # ln(xi / L), (1 + resamples, points): row 0 from all samples, then one row for each bootstrap resample

    @property
    def value(self) -> Array:
        return np.asarray(np.exp(self.log[0]))

    @property
    def log_error(self) -> Array:
        """Standard errors of ln(xi / L) over samples, NaN for fewer than four."""
        enough = self.samples >= FEWEST_FOR_ERRORS
        return np.asarray(self.log[1:].std(axis=0, ddof=1)) if enough else np.full(len(self.temperature), np.nan)


class LengthCrossing(NamedTuple):
    """Crossing of xi / L of two widths: an estimate of the transition."""

    widths: tuple[int, int]  # the smaller and the larger width
    temperature: float  # NaN where the curves do not cross once
    error: float  # its standard error over samples, by bootstrap; NaN where one of the widths has a single sample
    interpolation: float  # shift of the crossing with every second point only; NaN where these curves do not cross
    height: float  # xi / L at the crossing
    reason: str  # why there is no crossing, in words


def scaled_lengths(result: Strips, average: str = "mean") -> Array:
    """Correlation length over width of the leading odd level at each point, averaged over samples.

    The width is the layer's first side. The average is ``mean``, which rare long lengths dominate, or ``typical``,
    exp[ln xi]. A point is NaN where any sample lacks this length, or has one that rounding may have changed by more
    than 1 % (``in_noise``). Such lengths are the longest, so that a mean must not leave them out.
    """
    if average not in AVERAGES:
        raise InputError(f"average {average!r} is unknown: choose {' or '.join(AVERAGES)}")
    return np.asarray(_inverse(average)(_per_sample(result, average).mean(axis=0)))


def length_curve(result: Strips, average: str = "mean", seed: int = 0) -> LengthCurve:
    """``scaled_lengths`` with bootstrap resamples over samples, the same ones at all temperatures."""
    known = np.isfinite(scaled_lengths(result, average))
    order = np.argsort(result.temperature)
    order = order[known[order]]
    width = result.model.lattice.shape[0] if result.model.lattice else 0
    rows = _per_sample(result, average)[:, order]
    inverse = _inverse(average)
    if len(rows) > 1:
        log = bootstrap(lambda mean: np.log(inverse(mean)), rows, RESAMPLES, seed)
    else:
        log = np.tile(np.log(inverse(rows)), (1 + RESAMPLES, 1))
    return LengthCurve(width, len(rows), result.temperature[order], log)


def length_crossings(
    results: Sequence[Strips], average: str = "mean", near: float | None = None
) -> list[LengthCrossing]:
    """Phenomenological renormalisation: crossings of xi / L of neighbouring widths, from the smallest on.

    Source: M. P. Nightingale, Physica A 83, 561 (1976).

    Curves are splines of ln(xi / L) through the points at which every sample has a value. Errors come from a bootstrap
    over samples. Samples of two widths from one disorder seed begin with the same bonds, and are resampled together;
    others are resampled independently. Where curves cross more than once, the crossing nearest to ``near`` is taken.
    """
    curves: dict[int, LengthCurve] = {}
    for seed, result in enumerate(results):
        curve = length_curve(result, average, 0 if _share_bonds(results[0].model, result.model) else seed)
        if curve.width in curves:
            raise InputError(f"two runs have width {curve.width}: give one of each width")
        check_one_model(results[0], result)
        first, ratio = (float(one.k_time[0] / one.k[0]) for one in (results[0], result))
        if abs(first - ratio) > 1e-9 * first:
            raise InputError(
                f"{results[0].model.name} and {result.model.name} are not one model in two sizes: k_time / k is "
                f"{first:.6g} and {ratio:.6g}, give runs that are"
            )
        curves[curve.width] = curve
    if len(curves) < 2:
        raise InputError(f"{len(curves)} width has no crossing: give files of two widths or more")
    return [_cross(curves[small], curves[large], near) for small, large in pairwise(sorted(curves))]


def _share_bonds(one: Ising, other: Ising) -> bool:
    """Return True if the samples of two layers begin with the same random bonds, as samples of one disorder seed do."""
    common, (a, b) = min(one.bonds, other.bonds), (one.couplings, other.couplings)
    return len(a) == len(b) > 1 and bool(np.array_equal(a[:, :common], b[:, :common]))


def _cross(small: LengthCurve, large: LengthCurve, near: float | None) -> LengthCrossing:
    if min(len(small.temperature), len(large.temperature)) < _FEWEST:
        raise InputError(f"fewer than {_FEWEST} points make no curves: give more temperatures or couplings")
    x1, x2, widths = small.temperature, large.temperature, (small.width, large.width)
    c = crossing(x1, small.log, x2, large.log, near)
    if np.isnan(c.value):
        return LengthCrossing(widths, np.nan, np.nan, np.nan, np.nan, c.reason)
    interpolation = np.nan
    if min(len(x1[::2]), len(x2[::2])) >= _FEWEST:
        half = (np.tile(curve.log[0, ::2], (3, 1)) for curve in (small, large))
        interpolation = abs(crossing(x1[::2], next(half), x2[::2], next(half), c.value).value - c.value)
    error = c.error if min(small.samples, large.samples) >= FEWEST_FOR_ERRORS else np.nan
    height = float(np.exp(CubicSpline(x1, small.log[0])(c.value)))
    return LengthCrossing(widths, c.value, error, interpolation, height, "")


def _per_sample(result: Strips, average: str) -> Array:
    """Quantity that is averaged over samples, (samples, points): xi / L or its logarithm; NaN where it is unknown."""
    if result.sectors != ("even", "odd") or result.model.lattice is None:
        raise InputError(f"{result.model.name} has no xi / L: run both sectors of a lattice layer without a field")
    length = np.where(result.in_noise, np.nan, result.correlation_length)[:, :, 1, 0] / result.model.lattice.shape[0]
    return np.asarray(np.log(length) if average == "typical" else length)


def _inverse(average: str) -> Callable[[Array], Array]:
    """Return the function that maps an average of ``_per_sample`` to xi / L."""
    return np.exp if average == "typical" else np.asarray


def extrapolate(sizes: npt.ArrayLike, values: npt.ArrayLike, power: float) -> Array:
    """Remove a correction proportional to size^-power from each pair of neighbours; one value fewer than given."""
    weight, v = np.asarray(sizes, np.float64) ** power, np.asarray(values, np.float64)
    return np.asarray((weight[1:] * v[1:] - weight[:-1] * v[:-1]) / (weight[1:] - weight[:-1]))


def conformal_charges(widths: npt.ArrayLike, log_eigenvalues: npt.ArrayLike) -> Array:
    """Charge c from each pair of neighbouring widths: ln(lambda_0) / L = f + pi c / (6 L^2) at an isotropic transition.

    Source: H. W. J. Bloete, J. L. Cardy, M. P. Nightingale, Phys. Rev. Lett. 56, 742 (1986).
    """
    size = np.asarray(widths, np.float64)
    density, inverse = np.asarray(log_eigenvalues, np.float64) / size, size**-2.0
    return np.asarray(6 / np.pi * np.diff(density) / np.diff(inverse))
