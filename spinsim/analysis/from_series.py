"""Statistics of a run on a ladder from its series."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt

from spinsim.analysis.autocorrelation import IntegratedTime, windowed_sum
from spinsim.analysis.followed import FollowedSeries, bin_edges
from spinsim.analysis.from_reduced import ReducedSource
from spinsim.analysis.jackknife import entries_of, standard_error, too_small
from spinsim.analysis.reducing import every, reduced_of
from spinsim.analysis.runs import Integers, Tempered, check_length
from spinsim.observables import Facts, Observable, Point, observables, own_observables
from spinsim.observables.moments import MOMENTS, PerSite

Array = npt.NDArray[np.float64]

_SCALAR: Final = 4  # axes of a number for each configuration


@dataclass(frozen=True)
class SeriesSource:
    """A run whose series say everything.

    Averages, errors and their autocorrelation times come from sums over the series, so that they are those of a run
    that has added its measurements up as it went.

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

    @property
    def records(self) -> tuple[Observable, ...]:
        """Observables whose averages it has: all but the user's own."""
        return observables(self.facts)

    @property
    def measurements(self) -> int:
        """How many were made."""
        return len(self.result.energy)

    @property
    def every(self) -> int:
        """Sweeps between two measurements."""
        return every(self.result)

    @cached_property
    def added_up(self) -> ReducedSource:
        """The same run by the sums over its series."""
        check_length(self.measurements)
        return ReducedSource(self.result.model, reduced_of(self.result, self.facts))

    def sweep_of(self, rows: Integers) -> Integers:
        """Return the sweeps done at measurements."""
        return np.asarray(self.result.sweep[rows])

    def time(self, name: str) -> IntegratedTime:
        """Return the autocorrelation time of the term that stands for a moment, over the whole run."""
        return self.added_up.time(name)

    def widening(self, name: str, time: IntegratedTime) -> Array:
        """Return the factor to the errors of one sample, whose stretches of time may be short against ``time``."""
        return self.added_up.widening(name, time)

    def entries(self, names: Sequence[str]) -> Array:
        """Return averages in each sample or, of one, in stretches of time, (entries, moments, temperatures)."""
        return self.added_up.entries(names)

    def _moment(self, name: str) -> Array:
        return one_series(self._run, name)

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
    """Return a moment by its name, (steps, samples, chains, temperatures)."""
    return MOMENTS[name].value(run)


def widening(series: Array, time: IntegratedTime) -> Array:
    """Factor to the errors of one sample: averages over stretches of time that are short against tau are correlated.

    ``series``: (steps, samples, chains, temperatures); 1 where there are several samples.
    """
    if series.shape[1] > 1:
        return np.ones(series.shape[-1])
    return too_small(standard_error(entries_of(series.mean(axis=2))), time.mean_error[0])
