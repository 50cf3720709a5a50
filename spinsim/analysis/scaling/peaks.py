"""Largest value, or largest slope, of an average against the ladder: its place and height in each size."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from spinsim.analysis.runs import Array
from spinsim.analysis.scaling.curves import Size, order_of, sizes_of
from spinsim.errors import InputError
from spinsim.inputs.arguments import public
from spinsim.result import Run

_NEAR: Final = 0.7  # of the largest value: points above it are fitted
_DEGREE: Final = 4
_FEWEST: Final = 7  # of these points
_REAL: Final = 1e-9  # largest imaginary part of a root that is real but for rounding
_PEAKED: Final = {
    "magnetization": "susceptibility_abs",
    "staggered_magnetization": "specific_heat",
    "overlap": "specific_heat",
}


@dataclass(frozen=True)
class Peak:
    """Largest value or largest slope of an average in one size, from a polynomial through the points near it.

    Attributes:
        name: Name of the average.
        side: L.
        place: Place on the ladder; NaN where the ladder's ends have the largest value.
        place_error: Its standard error, from bootstrap resamples; likewise of the height.
        height: Largest value, or absolute value of the largest slope.
        height_error: Standard error of the height.
        probability: Share of resamples that are as far from their polynomial, small if it does not serve.
        resampled: ``place`` and ``height`` of all data and of each resample, (1 + resamples,).
    """

    name: str
    side: float
    place: float
    place_error: float
    height: float
    height_error: float
    probability: float
    resampled: dict[str, Array] = field(repr=False)


@public
def peaks(
    runs: Iterable[Run] | Iterable[Size],
    name: str | None = None,
    *,
    slope: bool = False,
    window: Sequence[float] | None = None,
    degree: int = _DEGREE,
) -> list[Peak]:
    """Peak of an average in each size, such as of a specific heat or of d U / d T, with bootstrap errors.

    A polynomial is fitted to the points near the largest value. ``infinite_size`` fits the
    places against L, ``power_of_size`` the heights.

    Args:
        runs: Results or files of one model in two sizes or more; or what ``sizes_along`` returned.
        name: Name of an average; by default ``susceptibility_abs`` of ferromagnets, else ``specific_heat``.
        slope: True for the largest slope against the ladder instead of the largest value.
        window: Lower and upper end of the ladder's range that is fitted; by default all of the ladder for slopes, and
            for values the points above 0.7 of the largest value, at least 7 points.
        degree: Degree of the polynomial, from 2 on, of slopes from 3 on.

    Returns:
        A ``Peak`` for each size: ``side``, ``place``, ``height``, their errors, and the ``probability`` of the fit.

    Raises:
        InputError: for fewer than two sizes, an unknown average, and too few points.

    Examples:
        >>> runs = [ss.temper(ss.Ising(ss.square(L)), "2.2:3:9", 20000) for L in (4, 8)]
        >>> [round(one.place, 1) for one in ss.peaks(runs)]
        [2.9, 2.5]
    """
    if degree < 2 + slope:
        raise InputError(f"a polynomial of degree {degree} has no such peak: give {2 + slope} or more, such as 4")
    sizes = sizes_of(runs)
    chosen = name or _PEAKED[order_of(sizes)]
    return [peak_of(one, chosen, slope, window, degree) for one in sizes]


def peak_of(
    size: Size, name: str, slope: bool = False, window: Sequence[float] | None = None, degree: int = _DEGREE
) -> Peak:
    if window is None and not slope:
        window = _around(size.x, size.curve(name)[0])
    smooth = size.smooth(name, degree, window)
    found = np.array([_highest(np.polynomial.Polynomial(one), slope) for one in smooth.coefficients.T])
    middle, reach = (smooth.low + smooth.high) / 2, (smooth.high - smooth.low) / 2
    place, height = middle + reach * found[:, 0], found[:, 1] / (reach if slope else 1)
    place_error, height_error = (float(np.nanstd(one[1:], ddof=1)) if np.isfinite(one[0]) else np.nan
                                 for one in (place, height))  # fmt: skip
    return Peak(
        name, size.side, float(place[0]), place_error, float(height[0]), height_error, smooth.probability,
        {"place": place, "height": height},
    )  # fmt: skip


def _around(x: Array, y: Array) -> tuple[float, float]:
    """Ends of the stretch of points about the largest value that are near it."""
    y = np.where(np.isfinite(y), y, -np.inf)
    top = first = last = int(np.argmax(y))
    while first > 0 and y[first - 1] > _NEAR * y[top]:
        first -= 1
    while last < len(x) - 1 and y[last + 1] > _NEAR * y[top]:
        last += 1
    while last - first + 1 < min(_FEWEST, len(x)):
        down = first > 0 and (last == len(x) - 1 or y[first - 1] >= y[last + 1])
        first, last = first - down, last + (not down)
    return float(x[first]), float(x[last])


def _highest(polynomial: np.polynomial.Polynomial, slope: bool) -> tuple[float, float]:
    """Place and height of the largest value between -1 and 1; NaN if an end has it.

    Of slopes the largest inside counts, since polynomials are steep at their ends.
    """
    curve = polynomial.deriv() if slope else polynomial
    at = curve.deriv().roots()
    inside = at.real[(abs(at.imag) < _REAL) & (abs(at.real) < 1)]
    heights = np.abs(curve(inside)) if slope else curve(inside)
    ends = -np.inf if slope else max(curve(-1.0), curve(1.0))
    if not len(inside) or heights.max() <= ends:
        return np.nan, np.nan
    return float(inside[heights.argmax()]), float(heights.max())
