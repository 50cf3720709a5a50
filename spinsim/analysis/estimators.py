"""Moments of a tempering run, and observables as functions of their averages.

In a field the averages of m and q do not vanish, and susceptibilities are connected: what a sample has on average is
taken off within each sample, never off the average over samples. Products of such averages are taken from different
copies, which are independent, so that they are free of bias however long the autocorrelation time is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim.analysis.autocorrelation import integrated_time
from spinsim.analysis.binder import binder_cumulant, correlation_length
from spinsim.analysis.runs import Tempered
from spinsim.model.ising import Ising
from spinsim.observables import COPIES_IN_FIELD, in_field, observables

Array = npt.NDArray[np.float64]

SERIES_OF: Final = {
    "energy_per_site": "energy",
    "specific_heat": "energy",
    "magnetization": "m",
    "abs_magnetization": "m^2",
    "magnetization_squared": "m^2",
    "susceptibility": "m^2",
    "susceptibility_abs": "m^2",
    "binder_cumulant": "m^2",
    "correlation_length_over_L": "m^2",
    "overlap": "q",
    "overlap_squared": "q^2",
    "spin_glass_susceptibility": "q^2",
    "overlap_binder_cumulant": "q^2",
    "overlap_correlation_length_over_L": "q^2",
    "link_overlap": "q_link",
}
"""The series whose autocorrelation time says how far an observable's error can be trusted."""
_CONNECTED_SERIES: Final = {
    "susceptibility": "(m - <m>)^2",
    "correlation_length_over_L": "(m - <m>)^2",
    "spin_glass_susceptibility": "connected q^2",
}


def series_of(model: Ising, name: str) -> str:
    """The series whose autocorrelation time belongs to an observable."""
    return _CONNECTED_SERIES.get(name, SERIES_OF[name]) if in_field(model) else SERIES_OF[name]


class Functions(NamedTuple):
    """Observables as functions of the averages of moments.

    Attributes:
        names: Of the observables.
        values: All of them, (observables, temperatures), from averages (moments, temperatures).
    """

    names: list[str]
    values: Callable[[Array], Array]


def all_series(result: Tempered) -> dict[str, Array]:
    """What autocorrelation times belong to, per site or bond, (steps, samples, chains, temperatures)."""
    sites, bonds = result.model.sites, result.model.bonds
    m = result.magnetization / sites
    series = {"energy": result.energy / sites, "m^2": m**2}
    if in_field(result.model):
        series |= {"m": m, "(m - <m>)^2": fluctuations(m)}
    if result.overlap.shape[2]:
        q = result.overlap / sites
        series["q^2"] = q**2
        if in_field(result.model):
            series["q"] = q
            if m.shape[2] >= COPIES_IN_FIELD:
                series["connected q^2"] = connected_squares(result.overlap, m.shape[2]) / sites**2
    if result.link_overlap.shape[2]:
        series["q_link"] = result.link_overlap / max(1, bonds)
    return series


def all_moments(result: Tempered, series: dict[str, Array]) -> dict[str, Array]:
    """What observables are functions of, averaged over chains: (steps, samples, temperatures)."""
    magnetization = np.abs(result.magnetization / result.model.sites)
    moments = series | {"(E - <E>)^2": fluctuations(series["energy"]), "|m|": magnetization}
    if not in_field(result.model):
        moments["(|m| - <|m|>)^2"] = fluctuations(magnetization)
    for name, mode in (("m", result.magnetization_mode), ("q", result.overlap_mode)):
        if f"{name}^2" in series:
            moments[f"{name}^4"] = series[f"{name}^2"] ** 2
            if mode.shape[-1]:
                moments[f"|{name}(k)|^2"] = longest_modes(result.model, mode)
    return {name: moment.mean(axis=2) for name, moment in moments.items()}


def functions(result: Tempered, moments: list[str]) -> Functions:
    """The observables of a run, of averages of ``moments`` in this order."""
    model, temperature = result.model, result.temperature
    names = [o.name for o in observables(model, result.energy.shape[2], result.has_correlations)]

    def values(mean: Array) -> Array:
        return observed(model, temperature, names, dict(zip(moments, mean, strict=True)))

    return Functions(names, values)


def observed(model: Ising, temperature: Array, names: list[str], at: dict[str, Array]) -> Array:
    """Observables by name, (observables, temperatures), from averages of moments by name."""
    found = _averages(at) | _of_magnetization(model, at, temperature) | _of_overlap(model, at)
    found["specific_heat"] = model.sites * at["(E - <E>)^2"] / temperature**2
    return np.stack([found[name] for name in names])


def _averages(at: dict[str, Array]) -> dict[str, Array]:
    """Observables that are moments."""
    moments = {
        "energy_per_site": "energy",
        "magnetization": "m",
        "abs_magnetization": "|m|",
        "magnetization_squared": "m^2",
        "overlap": "q",
        "overlap_squared": "q^2",
        "link_overlap": "q_link",
    }
    return {name: at[moment] for name, moment in moments.items() if moment in at}


def _of_magnetization(model: Ising, at: dict[str, Array], temperature: Array) -> dict[str, Array]:
    """Functions of the moments of m."""
    second = at["(m - <m>)^2" if in_field(model) else "m^2"]
    found = {"susceptibility": model.sites * second / temperature}
    if not in_field(model):
        found["susceptibility_abs"] = model.sites * at["(|m| - <|m|>)^2"] / temperature
        found["binder_cumulant"] = binder_cumulant(second, at["m^4"])
    if "|m(k)|^2" in at:
        found["correlation_length_over_L"] = _length_over_side(model, second, at["|m(k)|^2"])
    return found


def _of_overlap(model: Ising, at: dict[str, Array]) -> dict[str, Array]:
    """Functions of the moments of q."""
    second = at.get("connected q^2" if in_field(model) else "q^2")
    if second is None:
        return {}
    found = {"spin_glass_susceptibility": model.sites * second}
    if not in_field(model):
        found["overlap_binder_cumulant"] = binder_cumulant(second, at["q^4"])
        if "|q(k)|^2" in at:
            found["overlap_correlation_length_over_L"] = _length_over_side(model, second, at["|q(k)|^2"])
    return found


def fluctuations(values: Array) -> Array:
    """Squared deviations from each sample's mean, whose average is the sample's variance without bias.

    The measured mean lies nearer to the data than the true one does, by the mean's own variance: copies, independent
    of each other, tell it; of one copy it is 2 tau / n of the variance (U. Wolff, Comput. Phys. Commun. 156, 143
    (2004), eq. 49).

    Args:
        values: (steps, samples, copies, temperatures); so is what comes back.
    """
    steps, _, copies, _ = values.shape
    squares = (values - values.mean(axis=(0, 2), keepdims=True)) ** 2
    if copies > 1:
        return np.asarray(squares + values.mean(axis=0).var(axis=1, ddof=1)[:, None] / copies)
    tau = integrated_time(values, chain_axis=2).tau
    return np.asarray(squares / (1 - np.minimum(2 * tau / steps, 0.5))[:, None])


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
    """Modes (..., axes) per site squared, averaged over the axes of the largest length."""
    shape = model.lattice.shape if model.lattice else ()
    longest = [axis for axis, side in enumerate(shape) if side == max(shape)]
    return np.asarray(mode[..., longest].mean(axis=-1) / model.sites**2)


def _length_over_side(model: Ising, zero: Array, smallest: Array) -> Array:
    """Xi / L of the longest axes; NaN where they are open or of a single site."""
    lattice = model.lattice
    side = max(lattice.shape) if lattice and lattice.periodic else 1
    if lattice is None or side == 1:
        return np.full_like(zero, np.nan)
    return correlation_length(zero, smallest, lattice.momentum(lattice.shape.index(side))) / side
