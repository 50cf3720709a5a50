"""Statistics of a run on a ladder from its series."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim.analysis.autocorrelation import IntegratedTime, integrated_time, windowed_sum
from spinsim.analysis.followed import FollowedSeries, bin_edges
from spinsim.analysis.jackknife import bin_means, standard_error, too_small
from spinsim.analysis.runs import Integers, Tempered
from spinsim.errors import InputError, argument
from spinsim.machine.memory import require
from spinsim.observables import Facts, Observable, Point, observables, own_observables
from spinsim.observables.moments import MOMENTS, PerSite, moments_of, series_of

Array = npt.NDArray[np.float64]

FEWEST_STEPS: Final = 16
BINS: Final = 32  # of the series of a single sample
_SINGLES: Final = 9  # numbers for each energy that are in memory at once
_PAIRS: Final = 7  # likewise for each overlap
_SCALAR: Final = 4  # axes of a number for each configuration


class Averages(NamedTuple):
    """Observables of a run as functions of averaged moments."""

    records: tuple[Observable, ...]  # in the order of its summary
    observed: Callable[
        [Array], Array
    ]  # all of them, (observables, temperatures), from averages (moments, temperatures)
    moments: Array  # averaged over copies or pairs of copies, (steps, samples, moments, temperatures)


@dataclass(frozen=True)
class SeriesSource:
    """A run whose series say everything.

    Attributes:
        result: The run.
    """

    result: Tempered

    @property
    def facts(self) -> Facts:
        """Facts that decide which observables the run has."""
        result = self.result
        return Facts(
            result.model,
            result.energy.shape[2],
            result.has_correlations,
            staggered=result.has_staggered,
            in_time=result.in_time is not None,
            magnetization_modes=result.has_magnetization_modes,
        )

    @cached_property
    def records(self) -> tuple[Observable, ...]:
        """Observables whose averages it has, the user's own behind all others."""
        return observables(self.facts) + own_records(self.result)

    @property
    def measurements(self) -> int:
        """How many were made."""
        return len(self.result.energy)

    @property
    def every(self) -> int:
        """Sweeps between two measurements."""
        return int(self.result.sweep[1] - self.result.sweep[0])

    def sweep_of(self, rows: Integers) -> Integers:
        """Return the sweeps done at measurements."""
        return np.asarray(self.result.sweep[rows])

    @cached_property
    def series(self) -> dict[str, Array]:
        """Series that autocorrelation times belong to, by the names of moments."""
        return checked_series(self.result)

    def time(self, name: str) -> IntegratedTime:
        """Return the autocorrelation time of a moment, of copies or pairs of copies over the whole run."""
        return integrated_time(self.series[name], chain_axis=2)

    def widening(self, name: str, time: IntegratedTime) -> Array:
        """Return the factor to the errors of one sample, whose stretches of time may be short against ``time``."""
        return widening(self.series[name], time)

    def entries(self, names: Sequence[str]) -> Array:
        """Return averages in each sample or, of one, in stretches of time, (entries, moments, temperatures)."""
        moments = [self._moment(name).mean(axis=2) for name in names]
        return entries_of(np.stack(moments, axis=2))

    def _moment(self, name: str) -> Array:
        known = self.series if "series" in vars(self) else {}
        return known[name] if name in known else one_series(self._run, name)

    @cached_property
    def _run(self) -> PerSite:
        return per_site(self.result)

    def bins(self) -> tuple[Integers, Integers]:
        """Return the first measurements of the logarithmic bins, and the measurements after their last ones."""
        return bin_edges(self.measurements)

    def late_means(self, name: str) -> Array:
        """Return averages of a moment over the last bin, (samples, temperatures)."""
        values = self._moment(name)
        return np.asarray(values[bin_edges(len(values))[0][-1] :].mean(axis=(0, 2)))

    def followed(self, name: str) -> list[FollowedSeries]:
        """Return a moment at each place of the ladder."""
        values = self._moment(name)
        return [FollowedSeries(values[..., place]) for place in range(values.shape[-1])]

    def coldest(self, name: str) -> FollowedSeries:
        """Return a moment at the coldest place."""
        return self.followed(name)[0]

    def walk_times(self) -> tuple[int, Array]:
        """Return how many measurements there are, and autocorrelation times of the places of replicas, (samples,)."""
        permutation = self.result.permutation
        return len(permutation), np.array([_walk_time(permutation[:, k]) for k in range(permutation.shape[1])])


def own_series(result: Tempered) -> Mapping[str, Array]:
    """Returns the series of the user's own observables by name, empty of runs that have none."""
    return getattr(result, "measured", {})


def own_records(result: Tempered) -> tuple[Observable, ...]:
    """Returns records of those of them that are one number for each configuration."""
    return own_observables(name for name, values in own_series(result).items() if values.ndim == _SCALAR)


def _walk_time(permutation: Integers) -> float:
    """Autocorrelation time of the places of a sample's replicas (steps, copies, places), at least 1/2.

    All replicas spend equal times everywhere, so that mean and variance of a place are known before: a run that is
    shorter than the walk cannot hide that, as it would if it took off the mean that it has measured.
    """
    steps, copies, places = permutation.shape
    place = np.argsort(permutation, axis=-1).reshape(steps, copies * places)
    centred = (place - (places - 1) / 2) / np.sqrt((places**2 - 1) / 12)
    return max(windowed_sum(centred)[0], 0.5)


def averaged(result: Tempered, series: dict[str, Array]) -> Averages:
    """Average the moments of a run over copies, of whose series those in ``series`` are there already."""
    records, run = SeriesSource(result).records, per_site(result)
    names = moments_of(records)
    moments = [(series[name] if name in series else one_series(run, name)).mean(axis=2) for name in names]
    point = point_of(result)

    def values(mean: Array) -> Array:
        return observed(point, records, dict(zip(names, mean, strict=True)))

    return Averages(records, values, np.stack(moments, axis=2))


def point_of(result: Tempered) -> Point:
    """Numbers of a run that formulas take beside averages."""
    point = Point(result.model, result.temperature)
    if result.in_time is not None:
        point = point._replace(gamma=result.in_time.gamma, k_time=result.in_time.k_time)
    return point


def observed(point: Point, records: Sequence[Observable], at: Mapping[str, Array]) -> Array:
    """Observables, (observables, temperatures), from averages of moments by name."""
    return np.stack([o.value(point, *(at[name] for name in o.moments)) for o in records])


def per_site(result: Tempered) -> PerSite:
    return PerSite(result, own_series(result))


def one_series(run: PerSite, name: str) -> Array:
    """Returns a moment by its name, (steps, samples, chains, temperatures)."""
    if name in run.own:
        return np.asarray(run.own[name], np.float64)
    values = MOMENTS[name].value(run)
    return fluctuations(values) if MOMENTS[name].variance else values


def fluctuations(values: Array) -> Array:
    """Squared deviations from each sample's mean, (steps, samples, copies, temperatures), averaging to its variance.

    The measured mean lies nearer to the data than the true one does, by the mean's own variance: copies, independent of
    each other, tell it; of one copy it is 2 tau / n of the variance (U. Wolff, Comput. Phys. Commun. 156, 143 (2004),
    eq. 49). So the variance has no bias.
    """
    steps, _, copies, _ = values.shape
    squares = (values - values.mean(axis=(0, 2), keepdims=True)) ** 2
    if copies > 1:
        return np.asarray(squares + values.mean(axis=0).var(axis=1, ddof=1)[:, None] / copies)
    tau = integrated_time(values, chain_axis=2).tau
    return np.asarray(squares / (1 - np.minimum(2 * tau / steps, 0.5))[:, None])


def checked_series(result: Tempered) -> dict[str, Array]:
    """Series that autocorrelation times belong to, per site or bond, (steps, samples, chains, temperatures)."""
    check_length(len(result.energy))
    singles = _SINGLES * result.energy.size + _PAIRS * result.overlap.size
    require(8.0 * singles, "analysing the run", "measure less often, or run with fewer --replicas")
    run = per_site(result)
    return {name: one_series(run, name) for name in series_of(SeriesSource(result).records)}


def check_length(steps: int) -> None:
    """Refuse to analyse fewer than 16 measurements."""
    if steps < FEWEST_STEPS:
        settings = f"{argument('sweeps')} or a smaller {argument('measure_every')}"
        raise InputError(
            f"{steps} measurements are too few to analyse: give at least {FEWEST_STEPS}, with a larger {settings}"
        )


def entries_of(moments: Array) -> Array:
    """Averages in each sample or, of one, in stretches of time, (samples or stretches, moments, temperatures)."""
    steps, samples = moments.shape[:2]
    return moments.mean(axis=0) if samples > 1 else bin_means(moments[:, 0], min(BINS, steps // 2))


def widening(series: Array, time: IntegratedTime) -> Array:
    """Factor to the errors of one sample: averages over stretches of time that are short against tau are correlated.

    ``series``: (steps, samples, chains, temperatures); 1 where there are several samples.
    """
    if series.shape[1] > 1:
        return np.ones(series.shape[-1])
    chains = series[:, 0]
    stretches = bin_means(chains.mean(axis=1), min(BINS, len(chains) // 2))
    return too_small(standard_error(stretches), time.mean_error[0])
