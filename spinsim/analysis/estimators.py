"""Averages of the moments of a tempering run, and its observables as functions of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim.analysis.autocorrelation import integrated_time
from spinsim.analysis.runs import Tempered
from spinsim.observables import Observable, Point, observables, own_observables
from spinsim.observables.moments import MOMENTS, Measured, moments_of, series_of

Array = npt.NDArray[np.float64]
_SCALAR: Final = 4  # axes of a number for each configuration


class Functions(NamedTuple):
    """Observables as functions of the averages of moments.

    Attributes:
        observables: Of the run, in the order of its summary.
        values: All of them, (observables, temperatures), from averages (moments, temperatures).
    """

    observables: tuple[Observable, ...]
    values: Callable[[Array], Array]

    @property
    def names(self) -> list[str]:
        """Names of the observables."""
        return [observable.name for observable in self.observables]


def observables_of(result: Tempered) -> tuple[Observable, ...]:
    """Returns what the summary of a run has."""
    copies, in_time = result.energy.shape[2], result.in_time is not None
    ours = observables(
        result.model,
        copies,
        result.has_correlations,
        staggered=result.has_staggered,
        in_time=in_time,
        magnetization_modes=result.has_magnetization_modes,
    )
    return ours + own_observables(name for name, values in own_of(result).items() if values.ndim == _SCALAR)


def own_of(result: Tempered) -> Mapping[str, Array]:
    """Returns the series of the user's own observables by name, empty of runs that have none."""
    return getattr(result, "measured", {})


def measured(result: Tempered) -> Measured:
    """Returns the series of a run per site or bond."""
    model, sites = result.model, result.model.sites
    return Measured(
        model,
        energy=result.energy / sites,
        m=result.magnetization / sites,
        m_s=result.staggered_magnetization / sites,
        q=result.overlap / sites,
        q_link=result.link_overlap / max(1, model.bonds),
        overlap=result.overlap,
        m_modes=result.magnetization_mode,
        q_modes=result.overlap_mode,
        in_time=result.in_time,
        own=own_of(result),
    )


def all_series(result: Tempered) -> dict[str, Array]:
    """What autocorrelation times belong to, per site or bond, (steps, samples, chains, temperatures)."""
    run = measured(result)
    return {name: one_series(run, name) for name in series_of(observables_of(result))}


def all_moments(result: Tempered, series: dict[str, Array]) -> dict[str, Array]:
    """What observables are functions of, averaged over chains: (steps, samples, temperatures).

    Args:
        result: The run.
        series: Its ``all_series``.
    """
    run = measured(result)
    return {
        name: (series[name] if name in series else one_series(run, name)).mean(axis=2)
        for name in moments_of(observables_of(result))
    }


def one_series(run: Measured, name: str) -> Array:
    """Returns a moment by its name, (steps, samples, chains, temperatures)."""
    if name in run.own:
        return np.asarray(run.own[name], np.float64)
    values = MOMENTS[name].value(run)
    return fluctuations(values) if MOMENTS[name].variance else values


def functions(result: Tempered, moments: list[str]) -> Functions:
    """The observables of a run, of averages of ``moments`` in this order."""
    point, found, in_time = Point(result.model, result.temperature), observables_of(result), result.in_time
    if in_time is not None:
        point = point._replace(gamma=in_time.gamma, k_time=in_time.k_time)

    def values(mean: Array) -> Array:
        return observed(point, found, dict(zip(moments, mean, strict=True)))

    return Functions(found, values)


def observed(point: Point, found: Sequence[Observable], at: dict[str, Array]) -> Array:
    """Observables, (observables, temperatures), from averages of moments by name."""
    return np.stack([o.value(point, *(at[name] for name in o.moments)) for o in found])


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
