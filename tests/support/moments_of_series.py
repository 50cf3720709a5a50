"""Moments from the series of a run, to compare with those of its sums."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from spinsim.observables.quantities import QUANTITIES, Quantity

Array = npt.NDArray[np.float64]


class PerSite:
    """Quantities of a result over their full order, each (steps, samples, copies or pairs, temperatures)."""

    def __init__(self, run: Any) -> None:
        self.run, self.model = run, run.model
        self._values: dict[str, Array] = {}

    def of(self, one: Quantity) -> Array:
        """Returns a quantity; of a Fourier mode its average over the axes of the largest length in space."""
        if one.name not in self._values:
            values = getattr(self.run, one.name)
            if one.elements is not None:
                values = values[..., list(one.elements(self.model))].mean(axis=-1)
            self._values[one.name] = np.asarray(values / one.full(self.model))
        return self._values[one.name]

    def in_time(self, name: str) -> Array:
        return np.asarray(getattr(self.run, name)[..., 0] / self.model.sites**2)


Value = Callable[[PerSite], Array]


def _plain(one: Quantity) -> dict[str, Value]:
    """Returns the moments of a quantity by the names that its record gives them."""
    powers: tuple[Callable[[Array], Array], ...] = (lambda x: x, np.abs, lambda x: x**2, lambda x: (x**2) ** 2)

    def moment(power: Callable[[Array], Array]) -> Value:
        return lambda run: power(run.of(one))

    return {name: moment(power) for name, power in zip(one.moments, powers, strict=False) if name}


_E, _M = (next(one for one in QUANTITIES if one.name == name) for name in ("energy", "magnetization"))
_PLAIN: Final = {name: moment for one in reversed(QUANTITIES) for name, moment in _plain(one).items()}
VALUES: Final[dict[str, Value]] = _PLAIN | {
    "(E - <E>)^2": lambda run: run.of(_E),
    "(m - <m>)^2": lambda run: run.of(_M),
    "(|m| - <|m|>)^2": lambda run: np.abs(run.of(_M)),
    "connected q^2": lambda run: (
        connected_squares(run.run.overlap, run.run.magnetization.shape[2]) / run.model.sites**2
    ),
    "e_s": lambda run: run.of(_E) + run.run.in_time.correlation[..., 0],
    "(H - <H>)^2": lambda run: run.run.in_time.energy,
    "C(1)": lambda run: run.run.in_time.correlation[..., 0],
    "|m(k_time)|^2": lambda run: run.in_time("magnetization_mode"),
    "|q(k_time)|^2": lambda run: run.in_time("overlap_mode"),
}
"""Numbers of each copy or pair whose averages are moments, by name; energies are per site, as are m and q."""


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
