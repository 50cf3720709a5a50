"""Quotients of pairs of sizes where their xi / L is equal: exponents without a critical point.

Source: H. G. Ballesteros et al., Phys. Lett. B 378, 207 (1996).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

import numpy as np

from spinsim.analysis.runs import Array
from spinsim.analysis.scaling.curves import LENGTH, SUSCEPTIBILITY, Size, Smooth, around, order_of, sizes_of
from spinsim.errors import InputError
from spinsim.inputs.arguments import public
from spinsim.inputs.texts import either
from spinsim.result import Run

_DEGREE: Final = 3  # of the polynomials through the nearest points
_WHOLE: Final = 5  # of those through the whole ladder, which find about where xi / L is equal
_GRID: Final = 1000  # intervals of the common range; between them crossings are linear


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
        probability: Share of resamples that are as far from the polynomials of xi / L; small if these do not serve.
        resampled: ``crossing``, ``nu``, ``eta`` and the powers, of all data and of each resample, (1 + resamples,).
    """

    sides: tuple[float, float]
    crossing: float
    crossing_error: float
    nu: float
    nu_error: float
    powers: dict[str, float]
    power_errors: dict[str, float]
    probability: float
    resampled: dict[str, Array] = field(repr=False)

    @property
    def side(self) -> float:
        """L of the smaller size."""
        return self.sides[0]

    @property
    def eta(self) -> float:
        """2 - p of the susceptibility that was compared; NaN without one."""
        return float(self.resampled["eta"][0])


@public
def quotients(
    runs: Iterable[Run] | Iterable[Size],
    *names: str,
    near: float | None = None,
    observable: str | None = None,
    degree: int = _DEGREE,
) -> list[Quotient]:
    """Quotients of each pair of neighbouring sizes where their xi / L is equal, with bootstrap errors.

    Values and slopes are those of polynomials through the eight points of the ladder that are nearest to the crossing.

    Args:
        runs: Results or files of one model in two sizes or more; or what ``sizes_along`` returned.
        names: Averages whose powers of L are found; by default the susceptibility of the order parameter.
        near: The crossing nearest to this value, where there are several.
        observable: ``overlap``, ``magnetization`` or ``staggered_magnetization``, whose xi / L is compared; by default
            the order parameter.
        degree: Degree of the polynomials.

    Returns:
        A ``Quotient`` for each pair: ``sides``, ``crossing``, ``nu``, ``powers``, their errors and ``eta``.

    Raises:
        InputError: for fewer than two sizes, and runs without xi / L or without such an average.
    """
    sizes = sizes_of(runs)
    order = observable or order_of(sizes)
    if order not in SUSCEPTIBILITY:
        raise InputError(f"observable {order!r} is unknown: choose {either(tuple(SUSCEPTIBILITY))}")
    length = LENGTH.get(order)
    if length is None or any(length not in one.rows for one in sizes):
        raise InputError(f"the runs have no correlation length of the {order}: quotients need it")
    usual = SUSCEPTIBILITY[order]
    chosen = names or ((usual,) if all(usual in one.rows for one in sizes) else ())
    return [_quotient(one, other, length, chosen, near, degree) for one, other in pairwise(sizes)]


def _quotient(small: Size, large: Size, length: str, names: Sequence[str], near: float | None, degree: int) -> Quotient:
    """Compare two sizes, and each resample of one with that of the other."""
    first, second = (one.smooth(length, min(_WHOLE, len(one.x) - 1)) for one in (small, large))
    (about, *_) = _crossings(first, second, near)
    windows = [around(one.x, about) if np.isfinite(about) else None for one in (small, large)]
    lengths = small.smooth(length, degree, windows[0]), large.smooth(length, degree, windows[1])
    places = _crossings(*lengths, about if np.isfinite(about) else near)
    ratio = np.log(large.side / small.side)

    def power(smooth: Smooth, other: Smooth, order: int = 0) -> Array:
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(np.log(other.at(places, order) / smooth.at(places, order)) / ratio)

    powers = {
        name: power(small.smooth(name, degree, windows[0]), large.smooth(name, degree, windows[1])) for name in names
    }
    susceptibility = next((values for name, values in powers.items() if "susceptibility" in name), np.nan * places)
    resampled = {"crossing": places, "nu": 1 / power(*lengths, 1), "eta": 2 - susceptibility} | powers
    values = {name: float(of[0]) for name, of in resampled.items()}
    errors = {
        name: float(np.nanstd(of[1:], ddof=1)) if np.isfinite(of[0]) else np.nan for name, of in resampled.items()
    }
    return Quotient(
        (small.side, large.side), values["crossing"], errors["crossing"], values["nu"], errors["nu"],
        {name: values[name] for name in names}, {name: errors[name] for name in names},
        min(one.probability for one in lengths), resampled,
    )  # fmt: skip


def _crossings(small: Smooth, large: Smooth, near: float | None) -> Array:
    """Crossing of all data and of each resample, (1 + resamples,); NaN for none, and for several if none is near."""
    low, high = max(small.low, large.low), min(small.high, large.high)
    grid = np.linspace(low, high, _GRID)
    each = np.repeat(grid[:, None], small.coefficients.shape[1], axis=1)
    apart = large.at(each) - small.at(each)
    found = np.full(apart.shape[1], np.nan)
    for k in range(len(found)):
        (at,) = np.nonzero(apart[:-1, k] * apart[1:, k] < 0)
        places = grid[at] + (grid[at + 1] - grid[at]) * apart[at, k] / (apart[at, k] - apart[at + 1, k])
        aim = near if k == 0 or not np.isfinite(found[0]) else found[0]
        if len(places) == 1 or (len(places) and aim is not None):
            found[k] = places[0 if aim is None else np.argmin(np.abs(places - aim))]
    return found
