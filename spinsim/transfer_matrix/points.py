"""Couplings that a run goes through, from texts of users."""

from __future__ import annotations

from math import inf, log, sqrt
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim.errors import InputError
from spinsim.inputs.grids import read_grid
from spinsim.model.ising import Ising

CRITICAL: Final = {1: log(1 + sqrt(2)) / 2, 2: 0.22165463}
"""Critical k of the ferromagnet, J = 1, that layers of one and two dimensions make; the latter is from A. Ferrenberg,
J. Xu, D. Landau, Phys. Rev. E 97, 043301 (2018)."""


class Points(NamedTuple):
    """Couplings of every point."""

    k: npt.NDArray[np.float64]  # 1 / T, which multiplies the couplings of the layer, shape (points,)
    k_time: npt.NDArray[np.float64]  # coupling between layers, a number without unit, likewise


class Given(NamedTuple):
    """Couplings that are given."""

    k: npt.NDArray[np.float64] | None  # as in ``Points``; None for those of the ferromagnet's transition
    k_time: npt.NDArray[np.float64] | None  # likewise, one or as many; None where it is k times |J|

    def points(self, model: Ising | None) -> Points:
        """Couplings of every point, for layers of a model; None where these are not known yet."""
        return make_points(critical(model) if self.k is None else self.k, self.k_time, model)


def read_given(temperature: str | None, k: str | None, k_time: str | None) -> Given:
    """Couplings from texts as ``grids.read_grid`` takes them.

    Args:
        temperature: In the unit of the couplings; None with ``k``, or with neither.
        k: 1 / T.
        k_time: None where it is k times |J|.

    Raises:
        InputError: for texts that are no numbers above 0, and for temperature and k together.
    """
    if temperature is not None and k is not None:
        raise InputError(f"temperature {temperature!r} and k {k!r} say the same thing, k = 1 / T: leave one out")
    inside = None if k is None else read_grid("k", k)
    if temperature is not None:
        inside = inverse(read_grid("temperature", temperature))
    return Given(inside, None if k_time is None else read_grid("k_time", k_time))


def critical(model: Ising | None) -> npt.NDArray[np.float64]:
    """The k at which the ferromagnet on the layer's lattice with the layer's |J| has its transition, (1,)."""
    dimension = model.lattice.dimension if model and model.lattice else 2
    return np.array([CRITICAL.get(dimension, CRITICAL[2]) / (model.coupling_unit if model else 1.0)])


def make_points(k: npt.ArrayLike, k_time: npt.ArrayLike | None, model: Ising | None = None) -> Points:
    """Points from numbers; ``k_time`` is by default k times the |J| that all bonds share, 1 where they do not.

    Raises:
        InputError: for what are no numbers above 0, and where there are neither as many of the two nor one of
            ``k_time``.
    """
    inside = positive("k", k)
    scale = model.coupling_unit if model else 1.0
    between = scale * inside if k_time is None else positive("k_time", k_time)
    if between.size not in (1, inside.size):
        raise InputError(
            f"{between.size} numbers k_time do not fit {inside.size} of k or temperature: give one or as many"
        )
    return Points(inside, np.broadcast_to(between, inside.shape).copy())


def inverse(temperature: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Couplings k = 1 / T; what overflows becomes infinite, which ``make_points`` refuses."""
    with np.errstate(over="ignore"):
        return np.asarray(1 / temperature)


def positive(name: str, values: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Couplings or temperatures, one or many, as an array."""
    try:
        numbers = np.atleast_1d(np.asarray(values, np.float64))
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} {values!r} cannot be read as numbers: give floats") from error
    if numbers.ndim != 1 or not numbers.size:
        raise InputError(f"{name} has shape {numbers.shape}: give one number, or a list of them")
    bad = numbers[~((numbers > 0) & (numbers < inf))]
    if bad.size:
        raise InputError(f"{name} {bad[0]} does not make a transfer matrix: give finite numbers above 0")
    return numbers
