"""Moments, which are averaged over time, copies and samples, and the functions of these averages.

In a field the averages of m and q do not vanish, and susceptibilities are connected: what a sample has on average is
taken off within each sample, never off the average over samples. Products of such averages are taken from different
copies, which are independent, so that they are free of bias however long the autocorrelation time is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim.errors import InputError
from spinsim.inputs.checks import real_array
from spinsim.observables.measured import MEASURED, PAIR, Measured

Array = npt.NDArray[np.float64]


class PerSite:
    """Quantities of a result over their full order, each (steps, samples, copies or pairs, temperatures)."""

    def __init__(self, run: Any) -> None:
        self.run, self.model = run, run.model
        self._values: dict[str, Array] = {}

    def of(self, one: Measured) -> Array:
        """Returns a quantity; of a Fourier mode its average over the axes of the largest length in space."""
        if one.name not in self._values:
            values = getattr(self.run, one.name)
            if one.elements is not None:
                values = values[..., list(one.elements(self.model))].mean(axis=-1)
            self._values[one.name] = np.asarray(values / one.full(self.model))
        return self._values[one.name]

    def in_time(self, name: str) -> Array:
        return np.asarray(getattr(self.run, name)[..., 0] / self.model.sites**2)


class Moment(NamedTuple):
    """A number of each copy, or of each pair of copies, whose average counts."""

    value: Callable[[PerSite], Array]  # of (steps, samples, copies or pairs, temperatures)
    pairs: bool = False
    variance: bool = False  # it is the variance of that number within each sample instead of its average


def _plain(one: Measured) -> dict[str, Moment]:
    """Returns the moments of a quantity by the names that its record gives them."""
    powers: tuple[Callable[[Array], Array], ...] = (lambda x: x, np.abs, lambda x: x**2, lambda x: (x**2) ** 2)

    def moment(power: Callable[[Array], Array]) -> Moment:
        return Moment(lambda run: power(run.of(one)), one.per == PAIR)

    return {name: moment(power) for name, power in zip(one.moments, powers, strict=False) if name}


_E, _M = (next(one for one in MEASURED if one.name == name) for name in ("energy", "magnetization"))
MOMENTS: Final = {name: moment for one in reversed(MEASURED) for name, moment in _plain(one).items()} | {
    "(E - <E>)^2": Moment(lambda run: run.of(_E), variance=True),
    "(m - <m>)^2": Moment(lambda run: run.of(_M), variance=True),
    "(|m| - <|m|>)^2": Moment(lambda run: np.abs(run.of(_M)), variance=True),
    "connected q^2": Moment(
        lambda run: connected_squares(run.run.overlap, run.run.magnetization.shape[2]) / run.model.sites**2, pairs=True
    ),
    "e_s": Moment(lambda run: run.of(_E) + run.run.in_time.correlation[..., 0]),
    "(H - <H>)^2": Moment(lambda run: run.run.in_time.energy, variance=True),
    "C(1)": Moment(lambda run: run.run.in_time.correlation[..., 0]),
    "|m(k_time)|^2": Moment(lambda run: run.in_time("magnetization_mode")),
    "|q(k_time)|^2": Moment(lambda run: run.in_time("overlap_mode"), pairs=True),
}
"""Every moment by name, those that records of quantities name and others; energies are per site, as are m and q."""


def connected_squares(overlap: npt.NDArray[np.int64], copies: int) -> Array:
    """Estimator, by its average, of the sum over i and j of (<s_i s_j> - <s_i><s_j>)^2 of each sample and step.

    Of shape (steps, samples, 1, temperatures). With Q_ab the sum over sites of s_a s_b, pairs as ``copy_pairs`` has
    them: Q_ab^2 - 2 Q_ab Q_ac + Q_ab Q_cd, averaged over all choices of copies a, b, c and d that differ. With four
    copies it is the mean over their three pairings of ((Q_ac - Q_ad - Q_bc + Q_bd) / 2)^2, half the overlap of s_a -
    s_b with s_c - s_d. Sums of integers are exact, so that copies that are all alike give 0.
    """
    sums = overlap.astype(np.float64)
    rows = np.zeros((*sums.shape[:2], copies, sums.shape[-1]))  # of each copy the sum over its pairs
    for pair, (a, b) in enumerate(zip(*np.triu_indices(copies, 1), strict=True)):
        rows[:, :, a] += sums[:, :, pair]
        rows[:, :, b] += sums[:, :, pair]
    squares = 2 * (sums**2).sum(axis=2)  # over ordered copies, all of which differ
    sharing = (rows**2).sum(axis=2) - squares
    apart = rows.sum(axis=2) ** 2 - 2 * squares - 4 * sharing
    choices = copies * (copies - 1) * (copies - 2) * (copies - 3)
    total = (copies - 2) * (copies - 3) * squares - 2 * (copies - 3) * sharing + apart
    return np.asarray(total / choices)[:, :, None]


def binder_cumulant(second: npt.ArrayLike, fourth: npt.ArrayLike) -> Array:
    """Binder cumulant U = 1 - <m^4> / (3 <m^2>^2): 2/3 in an ordered phase, 0 for a Gaussian of mean 0.

    NaN where the second moment is not positive. Source: K. Binder, Z. Phys. B 43, 119 (1981). That of the energy tends
    to 2/3 as sizes grow, and at a transition of first order has a minimum that stays below: M. S. S. Challa, D. P.
    Landau, K. Binder, Phys. Rev. B 34, 1841 (1986). The only definition in this project; spin-glass papers often plot
    3/2 of it.
    """
    square = _positive_or_nan(real_array(second, "second moment"))
    return np.asarray(1 - real_array(fourth, "fourth moment") / (3 * square**2))


def correlation_length(chi_zero: npt.ArrayLike, chi_min: npt.ArrayLike, momentum: float) -> Array:
    """Second-moment correlation length, xi = sqrt(chi(0) / chi(k_min) - 1) / K, in distances of nearest neighbours.

    k_min is the smallest wave vector along an axis of the periodic lattice, K its lattice momentum in inverse distances
    of nearest neighbours (``Lattice.momentum``), 2 sin(pi / side) on chains, square and cubic lattices. NaN where
    chi(0) <= chi(k_min), which noise may cause, and where chi(k_min) is not positive. Source: F. Cooper, B. Freedman,
    D. Preston, Nucl. Phys. B 210, 210 (1982); for spin glasses M. Palassini, S. Caracciolo, Phys. Rev. Lett. 82, 5128
    (1999).
    """
    if not momentum > 0:
        raise InputError(f"momentum {momentum} belongs to no wave vector but 0: give a positive one")
    zero, smallest = real_array(chi_zero, "chi(0)"), real_array(chi_min, "chi(k_min)")
    excess = _positive_or_nan(zero / _positive_or_nan(smallest) - 1)
    return np.asarray(np.sqrt(excess) / momentum)


def _positive_or_nan(values: Array) -> Array:
    return np.where(values > 0, values, np.nan)
