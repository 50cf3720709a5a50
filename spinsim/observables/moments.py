"""The table of moments: what is averaged over time, copies and samples, and of what observables are functions.

In a field the averages of m and q do not vanish, and susceptibilities are connected: what a sample has on average is
taken off within each sample, never off the average over samples. Products of such averages are taken from different
copies, which are independent, so that they are free of bias however long the autocorrelation time is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim.model.ising import Ising
from spinsim.observables.formulas import in_space
from spinsim.observables.observable import Observable

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Measured:
    """The series of a run, (steps, samples, copies or pairs of copies, temperatures).

    Attributes:
        model: What was simulated.
        energy: Energy per site, of each copy.
        m: Magnetisation per site, likewise.
        m_s: Staggered magnetisation per site, likewise; no copies where it was not measured.
        q: Overlap per site, of each pair of copies; no pairs where there is one copy.
        q_link: Link overlap per bond, likewise; no pairs where it was not measured.
        overlap: The overlap in sites, integers.
        m_modes: |sum of spins exp(i k x)|^2 of the smallest k along each axis (last), of each copy.
        q_modes: The same of the overlap.
        in_time: What was measured in time, where there is any.
        own: Series of the user's own, of each copy, by name.
    """

    model: Ising
    energy: Array
    m: Array
    m_s: Array
    q: Array
    q_link: Array
    overlap: npt.NDArray[np.int64]
    m_modes: Array
    q_modes: Array
    in_time: Any = None
    own: Mapping[str, Array] = field(default_factory=dict)


class Moment(NamedTuple):
    """A number of each copy, or of each pair of copies, whose average counts.

    Attributes:
        value: Takes the series of a run and returns this one, (steps, samples, copies or pairs, temperatures).
        pairs: Whether pairs of copies have it.
        variance: Whether it is the variance of that number within each sample instead of its average.
    """

    value: Callable[[Measured], Array]
    pairs: bool = False
    variance: bool = False


MOMENTS: Final = {
    "energy": Moment(lambda run: run.energy),
    "E^2": Moment(lambda run: run.energy**2),
    "E^4": Moment(lambda run: (run.energy**2) ** 2),
    "(E - <E>)^2": Moment(lambda run: run.energy, variance=True),
    "m": Moment(lambda run: run.m),
    "|m|": Moment(lambda run: np.abs(run.m)),
    "m^2": Moment(lambda run: run.m**2),
    "m^4": Moment(lambda run: (run.m**2) ** 2),
    "(m - <m>)^2": Moment(lambda run: run.m, variance=True),
    "(|m| - <|m|>)^2": Moment(lambda run: np.abs(run.m), variance=True),
    "|m(k)|^2": Moment(lambda run: longest_modes(run.model, run.m_modes)),
    "|m_s|": Moment(lambda run: np.abs(run.m_s)),
    "m_s^2": Moment(lambda run: run.m_s**2),
    "m_s^4": Moment(lambda run: (run.m_s**2) ** 2),
    "q": Moment(lambda run: run.q, pairs=True),
    "|q|": Moment(lambda run: np.abs(run.q), pairs=True),
    "q^2": Moment(lambda run: run.q**2, pairs=True),
    "q^4": Moment(lambda run: (run.q**2) ** 2, pairs=True),
    "connected q^2": Moment(
        lambda run: connected_squares(run.overlap, run.m.shape[2]) / run.model.sites**2, pairs=True
    ),
    "|q(k)|^2": Moment(lambda run: longest_modes(run.model, run.q_modes), pairs=True),
    "q_link": Moment(lambda run: run.q_link, pairs=True),
    "e_s": Moment(lambda run: run.energy + run.in_time.correlation[..., 0]),
    "(H - <H>)^2": Moment(lambda run: run.in_time.energy, variance=True),
    "C(1)": Moment(lambda run: run.in_time.correlation[..., 0]),
    "m_eq^2": Moment(lambda run: run.in_time.m_squared),
    "m_eq^4": Moment(lambda run: run.in_time.m_fourth),
    "|m(k_time)|^2": Moment(lambda run: run.m_modes[..., 0] / run.model.sites**2),
    "q_eq^2": Moment(lambda run: run.in_time.q_squared, pairs=True),
    "q_eq^4": Moment(lambda run: run.in_time.q_fourth, pairs=True),
    "|q(k_time)|^2": Moment(lambda run: run.q_modes[..., 0] / run.model.sites**2, pairs=True),
}
"""Every moment by name; to add one is to add a line here. Energies are per site, as are m and q."""


def moments_of(found: Iterable[Observable]) -> list[str]:
    """Returns the names of all moments that observables are functions of."""
    return list(dict.fromkeys(name for o in found for name in o.moments))


def series_of(found: Iterable[Observable]) -> list[str]:
    """Returns the names of all moments whose autocorrelation time belongs to an observable."""
    return list(dict.fromkeys(o.series for o in found))


def connected_squares(overlap: npt.NDArray[np.int64], copies: int) -> Array:
    """What averages to the sum over i and j of (<s_i s_j> - <s_i><s_j>)^2 in each sample, at every step.

    With Q_ab the sum over sites of s_a s_b: Q_ab^2 - 2 Q_ab Q_ac + Q_ab Q_cd, averaged over all choices of copies a, b,
    c and d that differ. With four copies it is the mean over their three pairings of
    ((Q_ac - Q_ad - Q_bc + Q_bd) / 2)^2, half the overlap of s_a - s_b with s_c - s_d. Sums of integers are exact, so
    that copies that are all alike give 0.

    Args:
        overlap: Q of each pair of copies, (steps, samples, pairs, temperatures), pairs as ``copy_pairs`` has them.
        copies: Four or more.

    Returns:
        (steps, samples, 1, temperatures).
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


def longest_modes(model: Ising, mode: Array) -> Array:
    """Modes (..., axes) per site squared, averaged over the axes of the largest length in space."""
    space = in_space(model)
    shape = space.shape if space else ()
    first = mode.shape[-1] - len(shape)  # 1 where time comes first
    longest = [first + axis for axis, side in enumerate(shape) if side == max(shape)]
    return np.asarray(mode[..., longest].mean(axis=-1) / model.sites**2)
