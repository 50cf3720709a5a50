"""Statistics of a run on a ladder, or of pooled runs, from the sums over their measurements."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim.analysis.autocorrelation import IntegratedTime
from spinsim.analysis.chains import Chain, chain_of, joined, merged, of_merges
from spinsim.analysis.run_sums import Followed, FollowedRuns, FollowedTerm, IndependentRuns, RunSums, in_order
from spinsim.analysis.runs import FEWEST_STEPS, Array, Integers, Tempered, check_length, samples_in
from spinsim.engine.measuring.correlations import Correlations, Quantities
from spinsim.engine.measuring.cpu_reduction import HostReduction
from spinsim.engine.moves.exchange import Exchange
from spinsim.engine.protocols import LadderMeasurement
from spinsim.errors import InputError
from spinsim.machine.memory import require
from spinsim.observables.moments import VARIANCES, Ladder, correlation_name, reduced_run, term_name
from spinsim.observables.quantities import Choice, quantities_of
from spinsim.observables.table import Observable, Point, observables, own_observables

_SCALAR: Final = 4  # axes of a series with one number for each configuration
_OF_BLOCKS: Final = ("merge", "factor")


def sums_of(result: Tempered, by_energy: bool = False) -> RunSums:
    """Add up the rows of a run without sums, to the same bits as if the run had added up its measurements.

    ``by_energy`` asks for sums over energy.

    Raises:
        InputError: where memory is too small, and where values exceed the model's largest, as in a damaged file.
    """
    reduced = replace(reduced_run(result.model, _choice_of_rows(result), _ladder(result)), by_energy=by_energy)
    needed = 2.0 * reduced.nbytes + 8.0 * max(result.energy.size, result.overlap.size)  # plus one series as float64
    require(needed, "analysing the run", "measure less often, or run with fewer --replicas")
    for one in reduced.histograms:
        most, series = one.values - 1, getattr(result, one.source)
        if series.min(initial=0) < -most or series.max(initial=0) > most:
            raise InputError(f"a value of {one.source} is beyond {most}, the most of the model: its series are damaged")
    reduction = HostReduction(reduced)
    for measurement in _measurements(result):
        reduction.add_numbers(measurement)
    sweep = result.sweep
    every = int(sweep[1] - sweep[0] if len(sweep) > 1 else sweep[0])
    return RunSums(reduction.reduced, reduction.state(), every)


def _choice_of_rows(result: Tempered) -> Choice:
    even, modes = result.in_time is not None and result.in_time.even is not None, result.has_magnetization_modes
    wanted = Quantities(result.has_correlations, _times(result), even, magnetization_modes=modes)
    return Choice(result.energy.shape[2], wanted, result.has_staggered)


def _times(result: Tempered) -> tuple[int, ...]:
    """Return the times of correlations in time, in slices; none for a model in space alone."""
    return () if result.in_time is None else tuple(map(int, result.in_time.times))


def _ladder(result: Tempered) -> Ladder:
    in_time, places = result.in_time, len(result.temperature)
    if in_time is None:
        return Ladder(places)
    return Ladder(places, in_time.gamma, in_time.k_time)


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


class Part(NamedTuple):
    """Samples whose runs have equal lengths."""

    samples: Integers  # numbers of the samples
    rows: list[Integers]  # for each of their runs, its indices among all samples of all runs
    runs: IndependentRuns


class Statistics:
    """Statistics of a run on a ladder, or of pooled runs, from the sums over their measurements.

    Runs of one sample are independent chains. Averages over samples give each sample the same weight; averages over the
    runs of one sample give each measurement the same weight.
    """

    def __init__(self, result: Tempered) -> None:
        self.result = result

    @cached_property
    def run(self) -> RunSums:
        """Sums that the run has accumulated, or else sums of its rows; for pooled runs the sums of all."""
        return sums_of(self.result) if self.result.reduced is None else self.result.reduced

    @cached_property
    def choice(self) -> Choice:
        """Quantities that were measured."""
        if self.result.reduced is None:
            return _choice_of_rows(self.result)
        names, times = self.run.names, _times(self.result)
        even = correlation_name(0, even=True) in names
        modes = "|m(k)|^2" in names or "|m(k_time)|^2" in names or self.result.has_magnetization_modes
        full = bool(times) or modes or "q_link" in names or self.result.has_correlations
        wanted = Quantities(full, times, even, magnetization_modes=modes)
        return Choice(self.run.reduced.copies, wanted, staggered="|m_s|" in names)

    @cached_property
    def records(self) -> tuple[Observable, ...]:
        """Observables with averages: all but the user's own."""
        return observables(self.result.model, self.choice)

    @property
    def own_records(self) -> tuple[Observable, ...]:
        """The user's own observables that are one number for each configuration and have averages."""
        series, own = own_series(self.result), () if self.result.reduced is None else self.run.own
        counts = {name: self.measurements if name in own else len(values) for name, values in series.items()}
        scalars = (name for name, values in series.items() if values.ndim == _SCALAR and counts[name] >= FEWEST_STEPS)
        return own_observables(scalars)

    @property
    def measurements(self) -> int:
        """Number of measurements of a run; for pooled runs the smallest one."""
        return len(self.result.energy) if self.result.reduced is None else self.run.measurements

    @property
    def every(self) -> int:
        """Sweeps between two measurements."""
        return self.run.measure_every

    @cached_property
    def disorder(self) -> Integers:
        """Number of the disorder sample of each sample of each run."""
        given = self.result.disorder
        return np.arange(self.run.samples) if given is None else given

    @property
    def samples(self) -> int:
        """Number of disorder samples; each counts once, however many runs it has."""
        return samples_in(self.result)

    @cached_property
    def parts(self) -> list[Part]:
        """All samples, grouped by the lengths of their runs."""
        run, lengths, rows = self.run, self.run.lengths, np.arange(self.run.samples)
        if self.samples == run.samples and len(self._of_lengths) == 1:
            return [Part(rows, [rows], IndependentRuns([run]))]
        alike: dict[tuple[int, ...], list[tuple[int, list[int]]]] = {}
        for sample in range(self.samples):
            own = sorted(rows[self.disorder == sample].tolist(), key=lambda row: -lengths[row])
            alike.setdefault(tuple(lengths[own].tolist()), []).append((sample, own))
        parts = []
        for each in alike.values():
            runs = list(np.array([own for _, own in each]).T)
            independent = IndependentRuns([run.of_samples(chosen) for chosen in runs])
            parts.append(Part(np.array([sample for sample, _ in each]), runs, independent))
        return parts

    @cached_property
    def _of_lengths(self) -> list[Integers]:
        """Samples of runs, grouped by number of measurements, the largest number first."""
        lengths = self.run.lengths
        return [np.flatnonzero(lengths == length) for length in np.unique(lengths)[::-1]]

    @cached_property
    def runs_by_length(self) -> list[RunSums]:
        """All samples of all runs, grouped by number of measurements."""
        return [self.run] if len(self._of_lengths) < 2 else [self.run.of_samples(rows) for rows in self._of_lengths]

    def of_runs(self, find: Callable[[RunSums], Array]) -> Array:
        """Combine the arrays (samples, ...) that ``find`` returns for runs of one length: each sample of each run."""
        order = np.argsort(np.concatenate(self._of_lengths))
        return np.concatenate([find(run) for run in self.runs_by_length])[order]

    def of_samples(self, find: Callable[[IndependentRuns], Array]) -> Array:
        """Combine the arrays (samples, ...) that ``find`` returns for the runs of the same samples: each sample."""
        order = np.argsort(np.concatenate([part.samples for part in self.parts]))
        return np.concatenate([find(part.runs) for part in self.parts])[order]

    def over_runs(self, values: Array) -> Array:
        """Average numbers of each sample of each run (all, ...) over the runs of a sample, (samples, ...)."""
        weights = np.zeros((self.samples, len(values)))
        weights[self.disorder, np.arange(len(values))] = self.run.lengths
        return np.asarray(np.tensordot(weights / weights.sum(axis=1, keepdims=True), values, axes=1))

    def sweep_of(self, rows: Integers) -> Integers:
        return np.asarray(self.run.measure_every * (rows + 1))

    def mean(self, name: str) -> Array:
        """Return the average of a term over all runs of each sample, (samples, places)."""
        return self.of_samples(lambda runs: runs.mean(name))

    def time(self, name: str) -> IntegratedTime:
        """Return the autocorrelation time of the term that stands for a moment, (samples, places)."""
        check_length(self.measurements)
        times = [part.runs.time(term_name(name)) for part in self.parts]
        return times[0] if len(times) == 1 else in_order(times, [part.samples for part in self.parts])

    def time_of_runs(self, name: str) -> IntegratedTime:
        """Return the autocorrelation time likewise, for each sample of each run."""
        return in_order([run.time(term_name(name)) for run in self.runs_by_length], self._of_lengths)

    def chain(self, name: str) -> Chain:
        """Return the chain of the term that stands for a moment, of one sample."""
        check_length(self.measurements)
        return self.parts[0].runs.chain(term_name(name))

    def entries(self, names: Sequence[str], merge: int = 1) -> Array:
        """Return averages in each sample or, for one sample, in stretches of time, (entries, moments, temperatures).

        A stretch is ``merge`` full blocks of a run. Stretches are shifted so that their mean is that of all
        measurements.
        """
        check_length(self.measurements)
        whole = np.stack([self.of_samples(partial(_moment, name=name)) for name in names], axis=1)
        if self.samples > 1:
            return whole
        runs = self.parts[0].runs
        blocks = np.stack([_moment_of_blocks(runs, name)[:, 0] for name in names], axis=1)
        parts = merged(blocks, merge, runs.seams)
        return np.asarray(parts + (whole - parts.mean(axis=0)))

    def by_merges(self, series: Sequence[str], find: Callable[[int], Array]) -> tuple[Array, Array]:
        """Apply ``find`` to blocks merged as each series needs, and return the result and factors to its errors.

        The result has axes (..., series, places); for several samples blocks do not matter.
        """
        if self.samples > 1:
            return find(1), np.ones((len(series), self.run.reduced.places))
        merge, factor = (np.array([getattr(self.chain(name), part)[0] for name in series]) for part in _OF_BLOCKS)
        return of_merges(merge, find), factor

    def entries_behind(self, one: Observable) -> int:
        """Return the number of independent entries, samples or stretches of time, of an observable's resamples."""
        if self.samples > 1:
            return self.samples
        merge = int(np.max(getattr(self.chain(one.series), _OF_BLOCKS[0])[0]))
        return len(self.entries(one.moments, merge))

    def late_means(self, name: str) -> Array:
        """Return averages of a moment over the last bin of each run, (samples, temperatures)."""
        return self.over_runs(self.of_runs(lambda run: np.asarray(run.bin_means(term_name(name))[-1])))

    def followed(self, name: str) -> Sequence[Followed]:
        """Return the term that stands for a moment at each place of the ladder."""
        return [self.followed_at(name, place) for place in range(self.run.reduced.places)]

    def followed_at(self, name: str, place: int) -> Followed:
        each = [FollowedTerm(run, term_name(name), place) for run in self.runs_by_length]
        return each[0] if len(each) == 1 else FollowedRuns(each, self._of_lengths)

    def coldest(self, name: str) -> Followed:
        each = [run.coldest(term_name(name)) for run in self.runs_by_length]
        return each[0] if len(each) == 1 else FollowedRuns(each, self._of_lengths)

    def walk_times(self) -> tuple[Integers, Array, Array]:
        """Return what is known of the walks of replicas in each sample of each run.

        These are its measurements, its integrated autocorrelation time, and its exponential one with the error of this,
        (samples, 2); ``RunSums`` has their definitions.
        """
        return self.run.lengths, self.of_runs(lambda run: run.walk_times), self.of_runs(lambda run: run.walk_decay)

    def own_chains(self, name: str) -> tuple[list[Chain], list[Integers]]:
        """Return the chains of a user-defined observable, and the samples of each chain."""
        chains = [joined([self._own_chain(name, rows) for rows in part.rows]) for part in self.parts]
        return chains, [part.samples for part in self.parts]

    def _own_chain(self, name: str, rows: Integers) -> Chain:
        if self.result.reduced is not None and name in self.run.own:
            check_length(self.measurements)
            return self._run_of(rows).own_chain(name)
        values = np.asarray(own_series(self.result)[name], np.float64)[:, rows]
        check_length(len(values))
        means, walk = values.mean(axis=2), np.zeros(len(rows))
        if len(self.result.temperature) > 1:
            walk = self._run_of(rows).walk_times * (len(values) / self.measurements)  # in rows
        return chain_of(means.reshape(*means.shape[:2], -1), walk)

    def _run_of(self, rows: Integers) -> RunSums:
        return self.run if len(rows) == self.run.samples else self.run.of_samples(rows)


def _moment(runs: IndependentRuns, name: str) -> Array:
    """Average of a moment in each sample, (samples, places)."""
    if name not in VARIANCES:
        return runs.mean(term_name(name))
    first, square = (runs.mean(term) for term in VARIANCES[name])
    factor, shift = _unbiased(runs, VARIANCES[name][0])
    return np.asarray((square - first**2) * factor + shift)


def _moment_of_blocks(runs: IndependentRuns, name: str) -> Array:
    """Averages of a moment in the full blocks, (blocks, samples, places)."""
    if name not in VARIANCES:
        return runs.block_means(term_name(name))
    first, square = (runs.block_means(term) for term in VARIANCES[name])
    mean = runs.mean(VARIANCES[name][0])
    factor, shift = _unbiased(runs, VARIANCES[name][0])
    return np.asarray((square - 2 * mean * first + mean**2) * factor + shift)


def _unbiased(runs: IndependentRuns, first: str) -> tuple[Array | float, Array | float]:
    """Return the factor and the summand that remove the bias of squared deviations from the measured mean.

    The measured mean lies nearer to the data than the true mean, by its own variance. Independent copies give this
    variance; for one copy it is 2 tau / n of the variance (U. Wolff, Comput. Phys. Commun. 156, 143 (2004), eq. 49).
    """
    if runs.first.reduced.copies > 1:
        return 1.0, runs.variance_of_mean(first)
    return 1 / (1 - np.minimum(2 * runs.time(first).tau / runs.measurements, 0.5)), 0.0


def statistics_of(result: Tempered) -> Statistics:
    return Statistics(result)


def choice_of(result: Tempered) -> Choice:
    return statistics_of(result).choice


def observables_of(result: Tempered) -> tuple[Observable, ...]:
    """Return the observables of a run, the user's own last and only where their series are long enough."""
    statistics = statistics_of(result)
    return statistics.records + statistics.own_records


def measurements_of(result: Tempered) -> int:
    """Return the number of measurements of a run, which its series may hold in part; the smallest of pooled runs."""
    return statistics_of(result).measurements


def own_series(result: Tempered) -> Mapping[str, Array]:
    """Return the series of the user's own observables by name; empty for runs without any."""
    return getattr(result, "measured", {})


def point_of(result: Tempered) -> Point:
    point = Point(result.model, result.temperature)
    if result.in_time is not None:
        point = point._replace(gamma=result.in_time.gamma, k_time=result.in_time.k_time)
    return point


def observed(point: Point, records: Sequence[Observable], at: Mapping[str, Array]) -> Array:
    return np.stack([o.value(point, *(at[name] for name in o.moments)) for o in records])
