"""Questions that statistics ask of a run on a ladder, answered by the sums over its measurements."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt

from spinsim.analysis.autocorrelation import IntegratedTime
from spinsim.analysis.chains import Chain, chain_of, of_merges
from spinsim.analysis.reduced import Followed, FollowedSeries, FollowedTerm, ReducedRun
from spinsim.analysis.runs import FEWEST_STEPS, Array, Integers, Tempered, check_length
from spinsim.engine.measuring.correlations import Correlations
from spinsim.engine.measuring.cpu_reduction import HostReduction
from spinsim.engine.moves.exchange import Exchange
from spinsim.engine.protocols import LadderMeasurement
from spinsim.errors import InputError
from spinsim.machine.memory import require
from spinsim.observables.measured import Facts, quantities_of
from spinsim.observables.moments import VARIANCES, Ladder, reduced_run, term_name
from spinsim.observables.table import Observable, Point, observables, own_observables

_SCALAR: Final = 4  # axes of a number for each configuration
_OF_BLOCKS: Final = ("merge", "factor")


def sums_of(result: Tempered, by_energy: bool = False) -> ReducedRun:
    """Add up the rows of a run that has not added its measurements up: the very bits that it would have.

    Sums over energy come if they are asked for.

    Raises:
        InputError: where there is no room, and where overlaps cannot be those of the model, as in a damaged file.
    """
    reduced = replace(reduced_run(_facts_of_rows(result), _ladder(result)), by_energy=by_energy)
    needed = 2.0 * reduced.nbytes + 8.0 * max(result.energy.size, result.overlap.size)  # and a series as numbers
    require(needed, "analysing the run", "measure less often, or run with fewer --replicas")
    for one in reduced.histograms:
        most, series = one.values - 1, getattr(result, one.source)
        if series.min(initial=0) < -most or series.max(initial=0) > most:
            raise InputError(
                f"a value of {one.source} is beyond {most}, the most that the model has: its series are damaged"
            )
    reduction = HostReduction(reduced)
    for measurement in _measurements(result):
        reduction.add_numbers(measurement)
    sweep = result.sweep
    every = int(sweep[1] - sweep[0] if len(sweep) > 1 else sweep[0])
    return ReducedRun(reduction.reduced, reduction.state(), every)


def _facts_of_rows(result: Tempered) -> Facts:
    return Facts(
        result.model, result.energy.shape[2], result.has_correlations, "", result.has_staggered,
        result.in_time is not None, result.has_magnetization_modes,
    )  # fmt: skip


def _ladder(result: Tempered) -> Ladder:
    in_time, places = result.in_time, len(result.temperature)
    if in_time is None:
        return Ladder(places)
    return Ladder(places, tuple(map(int, in_time.times)), in_time.gamma, in_time.k_time, in_time.even is not None)


def _measurements(result: Tempered) -> Iterator[LadderMeasurement]:
    """Yield the measurement of each step of the series."""
    steps, samples, copies, places = result.energy.shape
    series: dict[str, npt.NDArray[np.generic]] = {}
    for one in quantities_of(in_time=result.in_time is not None):
        whole = getattr(result, one.name)
        if len(whole) == steps:
            series[one.field] = np.stack([series[one.field], whole], axis=-1) if one.element else whole
    nothing = np.empty((steps, samples, 0, places), np.int64)
    staggered = series.get("staggered_magnetization", nothing)
    correlations = {name: series.get(name, nothing) for name in Correlations._fields}
    no_trips = np.zeros((samples, copies * places), np.int64)

    for step in range(steps):
        holder = result.permutation[step].reshape(samples, -1)
        place = (np.argsort(holder, axis=1) % places).astype(np.int32)
        yield LadderMeasurement(
            energy=result.energy[step],
            magnetization=result.magnetization[step],
            staggered_magnetization=staggered[step],
            holder=result.permutation[step],
            exchange=Exchange(place, result.attempts, result.accepts, no_trips, no_trips.astype(np.int8)),
            correlations=Correlations(**{name: values[step] for name, values in correlations.items()}),
            spins=_no_spins,
            energy_by_term=result.energy[step][..., None],
        )


def _no_spins(sample: int, replica: int) -> npt.NDArray[np.int8]:
    raise NotImplementedError  # series have no configurations


class Source:
    """Statistics of a run on a ladder from the sums over its measurements."""

    def __init__(self, result: Tempered) -> None:
        self.result = result

    @cached_property
    def run(self) -> ReducedRun:
        """The sums that the run has made as it went, or those of its rows."""
        return sums_of(self.result) if self.result.reduced is None else self.result.reduced

    @cached_property
    def facts(self) -> Facts:
        if self.result.reduced is None:
            return _facts_of_rows(self.result)
        names, copies = self.run.names, self.run.reduced.copies
        in_time = term_name("C(1)") in names
        modes = "|m(k)|^2" in names or "|m(k_time)|^2" in names or self.result.has_magnetization_modes
        correlations = in_time or modes or "q_link" in names or self.result.has_correlations
        return Facts(self.result.model, copies, correlations, "", "|m_s|" in names, in_time, modes)

    @cached_property
    def records(self) -> tuple[Observable, ...]:
        """Observables whose averages it has: all but the user's own."""
        return observables(self.facts)

    @property
    def measurements(self) -> int:
        return len(self.result.energy) if self.result.reduced is None else self.run.measurements

    @property
    def every(self) -> int:
        """Sweeps between two measurements."""
        return self.run.measure_every

    def sweep_of(self, rows: Integers) -> Integers:
        return np.asarray(self.run.measure_every * (rows + 1))

    def time(self, name: str) -> IntegratedTime:
        """Return the autocorrelation time of the term that stands for a moment, over the whole run."""
        return self.chain(name).time

    def chain(self, name: str) -> Chain:
        """Return the chain of the average of the term that stands for a moment."""
        check_length(self.measurements)
        return self.run.chain(term_name(name))

    def entries(self, names: Sequence[str], merge: int = 1) -> Array:
        """Return averages in each sample or, of one, in stretches of time, (entries, moments, temperatures).

        Stretches are ``merge`` full blocks each, moved so that their mean is that of all measurements.
        """
        check_length(self.measurements)
        whole = np.stack([self._of_samples(name) for name in names], axis=1)
        if self.run.samples > 1:
            return whole
        parts = Chain.merged(np.stack([self._of_blocks(name) for name in names], axis=1), merge)
        return np.asarray(parts + (whole - parts.mean(axis=0)))

    def by_merges(self, series: Sequence[str], find: Callable[[int], Array]) -> tuple[Array, Array]:
        """Return what ``find`` makes of blocks that are merged as each series asks, and factors to its errors.

        What it returns has axes (..., series, places); of several samples blocks do not matter.
        """
        if self.run.samples > 1:
            return find(1), np.ones((len(series), self.run.reduced.places))
        merge, factor = (np.array([getattr(self.chain(name), part)[0] for name in series]) for part in _OF_BLOCKS)
        return of_merges(merge, find), factor

    def _of_samples(self, name: str) -> Array:
        """Averages of a moment in each sample, (samples, places)."""
        if name not in VARIANCES:
            return self.run.mean(term_name(name))
        first, square = (self.run.mean(term) for term in VARIANCES[name])
        factor, shift = self._unbiased(name)
        return np.asarray((square - first**2) * factor + shift)

    def _of_blocks(self, name: str) -> Array:
        """Averages of a moment of one sample in the blocks that are full, (blocks, places)."""
        if name not in VARIANCES:
            return np.asarray(self.run.block_means(term_name(name))[:, 0])
        first, square = (self.run.block_means(term)[:, 0] for term in VARIANCES[name])
        mean = self.run.mean(VARIANCES[name][0])
        factor, shift = self._unbiased(name)
        return np.asarray((square - 2 * mean * first + mean**2) * factor + shift)

    def _unbiased(self, name: str) -> tuple[Array | float, Array | float]:
        """Return the factor and summand that free squared deviations from the measured mean of bias.

        The measured mean lies nearer to the data than the true one, by its own variance: independent copies tell it; of
        one copy it is 2 tau / n of the variance (U. Wolff, Comput. Phys. Commun. 156, 143 (2004), eq. 49).
        """
        run, (first, _) = self.run, VARIANCES[name]
        copies = run.reduced.copies
        if copies > 1:
            row = run.reduced.by_copy.index(run.names[first])
            means = run.arrays["copy_sums"][row] / run.measurements
            return 1.0, means.var(axis=1, ddof=1) / copies
        return 1 / (1 - np.minimum(2 * run.time(first).tau / run.measurements, 0.5)), 0.0

    def late_means(self, name: str) -> Array:
        """Return averages of a moment over the last bin, (samples, temperatures)."""
        return np.asarray(self.run.bin_means(term_name(name))[-1])

    def followed(self, name: str) -> Sequence[Followed]:
        """Return the term that stands for a moment at each place of the ladder."""
        return [FollowedTerm(self.run, term_name(name), place) for place in range(self.run.reduced.places)]

    def coldest(self, name: str) -> FollowedSeries:
        return self.run.coldest(term_name(name))

    def walk_times(self) -> tuple[int, Array]:
        """Return how many measurements there are, and autocorrelation times of the places of replicas, (samples,)."""
        return self.measurements, self.run.walk_times()


def source_of(result: Tempered) -> Source:
    return Source(result)


def facts_of(result: Tempered) -> Facts:
    return source_of(result).facts


def observables_of(result: Tempered) -> tuple[Observable, ...]:
    """Return the observables of a run, the user's own behind all others where their series are long enough."""
    return source_of(result).records + (own_records(result) if len(result.sweep) >= FEWEST_STEPS else ())


def measurements_of(result: Tempered) -> int:
    """Return how many measurements a run has made, of which its series may hold fewer."""
    return source_of(result).measurements


def own_series(result: Tempered) -> Mapping[str, Array]:
    """Returns the series of the user's own observables by name, empty of runs that have none."""
    return getattr(result, "measured", {})


def own_records(result: Tempered) -> tuple[Observable, ...]:
    """Returns records of those of them that are one number for each configuration."""
    return own_observables(name for name, values in own_series(result).items() if values.ndim == _SCALAR)


def own_chain(result: Tempered, name: str) -> Chain:
    """Add up the rows of an observable of the user's own, place by place of the ladder and element by element.

    Elements of an array stand behind each other as places do.
    """
    values = np.asarray(own_series(result)[name], np.float64)
    check_length(len(values))
    means = values.mean(axis=2)
    walk = np.zeros(means.shape[1])
    if len(result.temperature) > 1:
        walk = source_of(result).run.walk_times() * (len(values) / measurements_of(result))  # in rows
    return chain_of(means.reshape(*means.shape[:2], -1), walk)


def point_of(result: Tempered) -> Point:
    point = Point(result.model, result.temperature)
    if result.in_time is not None:
        point = point._replace(gamma=result.in_time.gamma, k_time=result.in_time.k_time)
    return point


def observed(point: Point, records: Sequence[Observable], at: Mapping[str, Array]) -> Array:
    return np.stack([o.value(point, *(at[name] for name in o.moments)) for o in records])
