"""Quantities of a run over its time, from sums over all measurements (``engine/measuring/reduction.py``)."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim.analysis import autocorrelation
from spinsim.analysis.autocorrelation import SHORTEST, IntegratedTime, Windows, integrated_time
from spinsim.analysis.chains import Chain, in_one_length, joined
from spinsim.analysis.exponential import exponential_time
from spinsim.engine.measuring.reduction import CONNECTED, SAMPLE_AXIS, Reduced, Term, block_length
from spinsim.inputs.texts import count

Array = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
_EQUAL: Final = 1e-9  # of an average: averages that differ by less are equal
_EIGHTHS: Final = 8
_ROUNDING: Final = 1e-24  # share of the mean square about the first value below which a variance is rounding


class OfCopies(NamedTuple):
    """Averages of copies over the whole run and their accuracy; all arrays but the first are (samples,)."""

    means: Array  # of each copy, (samples, copies)
    is_constant: npt.NDArray[np.bool_]  # true where no copy moves
    variance: Array  # of the average of a copy, from its fluctuations about that average
    freedom: Array  # degrees of freedom of the variance
    is_trusted: npt.NDArray[np.bool_]  # true where copies are long enough for a known variance


class Bins(NamedTuple):
    """A quantity in logarithmic bins of runs, the earliest first."""

    start: Integers  # first measurement of each bin, of the longest run, (bins,)
    stop: Integers  # measurement after the last of each bin, likewise
    counts: Integers  # measurements in each bin, (bins, samples) or (bins, 1)
    means: Array  # averages over the bins, (bins, samples)


@dataclass(frozen=True)
class FollowedSeries:
    """Time series of a quantity at the coldest place: averages over blocks of measurements.

    A block is short against any autocorrelation time that a run could be too short for. Block averages vary less than
    single measurements, and their autocorrelation time is longer in the same ratio. Times and rows here refer to single
    measurements.
    """

    values: Array  # measurements or averages over blocks, (steps, samples, copies or pairs of copies)
    length: int = 1  # measurements of a block
    ratio: Array | float = 1.0  # variance of averages over that of single measurements, (samples,)

    @property
    def copies(self) -> int:
        return int(self.values.shape[2])

    @cached_property
    def bins(self) -> Bins:
        """Bins [n / 2^k, n / 2^(k - 1)); row 0 is in no bin."""
        start, stop = bin_edges(len(self.values))
        means = np.array([self._averaged[a:b].mean(axis=0) for a, b in zip(start, stop, strict=True)])
        start, stop = start * self.length, stop * self.length
        return Bins(start, stop, (stop - start)[:, None], means)

    @cached_property
    def _averaged(self) -> Array:
        return np.asarray(self.values.mean(axis=2))

    def late_time(self, least_window: npt.ArrayLike = 0) -> IntegratedTime:
        late = self._averaged[bin_edges(len(self.values))[0][-1] :]
        return self._in_measurements(integrated_time(late, least_window=np.asarray(least_window) / self.length), late)

    def time(self) -> IntegratedTime:
        return self._in_measurements(integrated_time(self._averaged), self._averaged)

    @property
    def rests(self) -> Bools:
        """Marks of samples that ``at_rest`` finds constant, (samples,)."""
        return at_rest(self._averaged)

    def of_copies(self, least_window: npt.ArrayLike = 0) -> OfCopies:
        """Return the averages of copies; the variance pools all copies, each about its own average."""
        length, _, copies = self.values.shape
        means = self.values.mean(axis=0)
        centred = self.values - means
        constant = self.values.max(axis=0) == self.values.min(axis=0)
        centred[:, constant] = 0  # rounding of means is no fluctuation
        time = integrated_time(centred, chain_axis=2, least_window=np.asarray(least_window) / self.length)
        window = 2 * time.window + 1
        # each copy has its own average subtracted; integrated_time corrects for one common average
        lost = (1 + window / length) / (1 + window / (length * copies))
        variance = _at_least_independent(time) * copies * lost  # of the average of a copy
        is_trusted = self._in_measurements(time, self.values).is_resolved  # though few events may carry the variance
        return OfCopies(means, constant.all(axis=1), variance, length * copies / window, is_trusted)

    def _in_measurements(self, time: IntegratedTime, values: Array) -> IntegratedTime:
        """Convert a time of block averages to single measurements, with their rule for resolved times."""
        if self.length == 1:
            return time
        blocks, scale = len(values), self.length * self.ratio
        tau, error = time.tau * scale, time.error * scale
        is_long = blocks * self.length >= SHORTEST * (tau + error)
        is_resolved = is_long & (time.window < blocks - 1) & np.isfinite(time.mean_error)
        window = ((2 * time.window + 1) * self.length - 1) // 2
        return replace(time, tau=tau, error=error, window=window, is_resolved=is_resolved)


def _at_least_independent(time: IntegratedTime) -> Array:
    """Variance of a mean, no smaller than that of independent values: by chance a windowed sum may be nearly 0."""
    return np.asarray(time.mean_error**2 * np.maximum(1, 0.5 / time.tau))


def at_rest(blocks: Array) -> Bools:
    """Mark samples that are constant apart from rare events, such as those in a ground state, (samples,).

    More than half of the averages over blocks (blocks, samples) are one and the same number, in each of the last seven
    eighths of the run. A sample that leaves a state for another does not rest.
    """
    if len(blocks) < _EIGHTHS:
        return np.zeros(blocks.shape[1], np.bool_)
    late = blocks[len(blocks) // _EIGHTHS :]
    level = np.median(late, axis=0)
    is_level = np.abs(late - level) <= _EQUAL * np.abs(level)
    shares = [part.mean(axis=0) for part in np.array_split(is_level, _EIGHTHS - 1)]
    return np.asarray(np.min(shares, axis=0) > 0.5)


def bin_edges(length: int) -> tuple[Integers, Integers]:
    """First row of each logarithmic bin of a series, earliest bin first, and the row after each bin."""
    edges = np.array([length >> k for k in range(length.bit_length())][::-1])
    return edges[:-1], edges[1:]


@dataclass(frozen=True, repr=False)
class RunSums:
    """Sums over all measurements of a run, of all its samples or of some.

    For pooled runs each sample of each run is a sample here, and samples may differ in number of measurements. All
    methods but ``mean`` and ``of_samples`` then need samples with equal numbers.
    """

    reduced: Reduced  # terms and histograms that were added up
    arrays: Mapping[str, npt.NDArray[Any]]  # by the names of ``Reduced.arrays``
    measure_every: int  # sweeps between two measurements
    stride: int = 1  # measurements for each kept row of the series; 0 without kept rows
    own: Mapping[str, Mapping[str, Array]] = field(default_factory=dict)
    """Sums of the user's own observables by name and part, averaged over copies: ``block_sums`` (samples, blocks,
    places, ...), ``level_sums`` and ``level_squares`` (samples, levels, places, ...)."""

    def __repr__(self) -> str:
        terms, samples = len(self.reduced.terms), len(self.lengths)
        return f"RunSums({terms} terms, {count(samples, 'sample')}, {count(self.measurements, 'measurement')})"

    @property
    def lengths(self) -> Integers:
        """Measurements of each sample, (samples,)."""
        return np.asarray(self.arrays["measurements"])

    @cached_property
    def measurements(self) -> int:
        return int(self.lengths.min(initial=np.iinfo(np.int64).max))

    @cached_property
    def names(self) -> dict[str, int]:
        """Index of each term by name."""
        return {term.name: k for k, term in enumerate(self.reduced.terms)}

    @property
    def samples(self) -> int:
        return len(self.arrays["measurements"])

    @cached_property
    def block_length(self) -> int:
        return block_length(self.arrays["block_sums"].shape[1], self.measurements)

    @property
    def full_blocks(self) -> int:
        return self.measurements // self.block_length

    @cached_property
    def edges(self) -> Integers:
        """First measurements of the logarithmic bins of the run, the earliest first, and the number of measurements.

        Bins begin at n / 2, n / 4 and so on, rounded down, as far as bins are longer than a block. Where blocks are
        single measurements, bins go down to 1, as in series; else a first bin holds all earlier measurements.
        """
        length, count = self.block_length, self.measurements
        edges = [count >> k for k in range(count.bit_length()) if count >> k >= length]
        return np.array(([0] if length > 1 else []) + edges[::-1])

    def of_samples(self, chosen: slice | Integers) -> RunSums:
        whole = slice(None)
        cut = {name: array[(whole,) * SAMPLE_AXIS.get(name, 0) + (chosen,)] for name, array in self.arrays.items()}
        own = {name: {part: array[chosen] for part, array in sums.items()} for name, sums in self.own.items()}
        return replace(self, arrays=cut, own=own)

    def chains_of(self, name: str) -> int:
        """Number of copies, or pairs of copies, over which a term is summed at each measurement."""
        term = self.term(name)
        if term.power == CONNECTED:
            return 1
        return self.reduced.pairs if term.of_pairs else self.reduced.copies

    def term(self, name: str) -> Term:
        return self.reduced.terms[self.names[name]]

    def mean(self, name: str) -> Array:
        """Average of a term over the whole run, (samples, places)."""
        whole: Array = self.arrays["block_sums"][self.names[name]].sum(axis=0)
        return np.asarray(whole / (self.lengths[:, None] * self.chains_of(name)))

    def block_means(self, name: str) -> Array:
        """Averages over the full blocks, (blocks, samples, places)."""
        sums: Array = self.arrays["block_sums"][self.names[name]][: self.full_blocks]
        return sums / (self.block_length * self.chains_of(name))

    def coldest(self, name: str) -> FollowedSeries:
        """Series of a judged term at the coldest place for each copy, or pair of copies, over the full blocks."""
        whole = self.arrays["coldest_sums"][self.reduced.judged.index(self.names[name])]
        length = block_length(len(whole), self.measurements)
        averages = whole[: self.measurements // length, :, : self.chains_of(name)] / length
        single = self.levels(name, 0)[0][0, :, 0]
        ratio = np.divide(averages.sum(axis=2).var(axis=0), single, out=np.ones_like(single), where=single > 0)
        return FollowedSeries(averages, length, ratio)

    def bin_means(self, name: str) -> Array:
        """Averages over the logarithmic bins, (bins, samples, places); a block at an edge is shared by both bins."""
        sums: Array = self.arrays["block_sums"][self.names[name]][: -(-self.measurements // self.block_length)]
        before = np.concatenate([np.zeros_like(sums[:1]), np.cumsum(sums, axis=0)])
        block, share = np.divmod(self.edges, self.block_length)
        until = before[block] + (share / self.block_length)[:, None, None] * sums[np.minimum(block, len(sums) - 1)]
        until[-1] = before[-1]
        return np.asarray(np.diff(until, axis=0) / (np.diff(self.edges) * self.chains_of(name))[:, None, None])

    def time(self, name: str) -> IntegratedTime:
        """Autocorrelation time and error of the average over copies or pairs over the whole run, (samples, places)."""
        return self.chain(name).time

    def chain(self, name: str) -> Chain:
        if name not in self._chains:
            number, levels = self.chains_of(name), self.levels(name, 0)[0]
            sums = self.block_length, self.block_means(name), levels / number**2, self.mean(name)
            self._chains[name] = Chain(self.measurements, *sums, self._walk)
        return self._chains[name]

    @cached_property
    def _chains(self) -> dict[str, Chain]:
        return {}

    @cached_property
    def _walk(self) -> Array:
        return self.walk_times if self.reduced.places > 1 else np.zeros(self.samples)

    @cached_property
    def walk_times(self) -> Array:
        """Autocorrelation time of the places of replicas, (samples,); places have a known mean and variance."""
        averages, length = self._walks
        single = self.arrays["walk_squares"] / (self.measurements * averages.shape[2])
        ratio = (averages**2).mean(axis=(0, 2)) / single
        times = np.array([autocorrelation.windowed_sum(averages[:, sample])[0] for sample in range(averages.shape[1])])
        return np.asarray(np.maximum(times * length * ratio, 0.5))

    @cached_property
    def walk_decay(self) -> Array:
        """Exponential autocorrelation time of these places and its error, (samples, 2); NaN where noise hides it.

        Places of the T replicas of a copy add up to 0, so that two of them have -1 / (T - 1) of the autocorrelation of
        one. The covariance of averages over all replicas is then that of T - 1 independent ones.
        """
        averages, length = self._walks
        chains = self.reduced.copies * (self.reduced.places - 1)
        each = [exponential_time(averages[:, sample], chains) for sample in range(averages.shape[1])]
        return np.array(each).reshape(-1, 2) * length

    @property
    def _walks(self) -> tuple[Array, int]:
        """Averages over blocks of 2 place - places + 1, (blocks, samples, replicas), and the length of a block."""
        whole = self.arrays["walk_sums"][0]
        length = block_length(len(whole), self.measurements)
        return whole[: self.measurements // length] / length, length

    def _followed(self, name: str) -> int:
        return self.reduced.followed.index(self.names[name])

    def levels(self, name: str, first: int) -> tuple[Array, Array]:
        """Levels (levels, samples, places) and mean of the sum over copies or pairs, in the blocks from ``first`` on.

        A level is the mean square of sums over 2^l measurements, about that mean, divided by 2^l.
        """
        k, begin = self._followed(name), first * self.block_length
        sums, squares = (self.arrays[array][k, first:].sum(axis=0) for array in ("level_sums", "level_squares"))
        variance, mean = _levels(sums, squares, begin, self.measurements)
        return variance, mean + self.arrays["first_value"][k]

    def own_chain(self, name: str) -> Chain:
        """Chain of a user-defined observable; elements of an array are lined up like places."""
        sums, count, samples = self.own[name], self.measurements, self.samples
        blocks, levels, squares = (
            np.moveaxis(sums[part].reshape(*sums[part].shape[:2], -1), 1, 0)
            for part in ("block_sums", "level_sums", "level_squares")
        )
        length = block_length(len(blocks), count)
        mean, walk = blocks.sum(axis=0) / count, self._walk
        variance = _levels(levels, squares, 0, count)[0]
        return Chain(count, length, blocks[: count // length] / length, variance, mean.reshape(samples, -1), walk)

    def windows(self, name: str, levels: Array, first: int) -> Windows:
        """Windows from levels, continued by wider windows from the blocks from ``first`` on."""
        sums = self.block_means(name)[first:] * self.chains_of(name)
        short = autocorrelation.level_windows(levels)
        return autocorrelation.with_blocks(short, [sums], self.block_length, levels[0])


def _levels(sums: Array, squares: Array, begin: int, count: int) -> tuple[Array, Array]:
    """Mean squares of sums about the mean, and that mean, for measurements from ``begin`` to ``count``.

    ``sums`` and ``squares`` (levels, samples, places) add up sums over 2^l measurements, and the squares of these.
    """
    length = count - begin
    mean = sums[0] / length
    variance = np.empty((min(autocorrelation.usable(length), len(sums)), *mean.shape))
    for level in range(len(variance)):
        size, number = 2**level, (count >> level) - (begin >> level)
        about = squares[level] - 2 * size * mean * sums[level] + number * size**2 * mean**2
        variance[level] = np.maximum(about, 0.0) / (number * size)
    variance[:, variance[0] <= _ROUNDING * squares[0] / length] = 0.0
    return variance, mean


@dataclass(frozen=True)
class FollowedTerm:
    """Time series of a term at one place of the ladder, with the methods of ``FollowedSeries``."""

    run: RunSums
    name: str
    place: int

    @property
    def copies(self) -> int:
        return self.run.chains_of(self.name)

    @cached_property
    def bins(self) -> Bins:
        edges = self.run.edges
        return Bins(edges[:-1], edges[1:], np.diff(edges)[:, None], self.run.bin_means(self.name)[..., self.place])

    def time(self) -> IntegratedTime:
        whole = self.run.time(self.name)
        return IntegratedTime(**{field: values[:, self.place] for field, values in vars(whole).items()})

    def late_time(self, least_window: npt.ArrayLike = 0) -> IntegratedTime:
        run, name, place = self.run, self.name, self.place
        start, number = int(run.edges[-2]), run.chains_of(name)
        first = round(start / run.block_length)
        levels, mean = run.levels(name, first if run.arrays["level_sums"].shape[1] > 1 else 0)
        windows, length = self._here(run.windows(name, levels, first)), run.measurements - start
        carriers = autocorrelation.carriers_of(run.block_means(name)[first:, :, place])
        variance, average = levels[0, :, place] / number**2, mean[:, place] / number
        return autocorrelation.blocked_time(windows, variance, average, length, least_window, carriers)

    @property
    def rests(self) -> Bools:
        return at_rest(self.run.block_means(self.name)[..., self.place])

    def of_copies(self, least_window: npt.ArrayLike = 0) -> OfCopies:
        """Return the averages of copies; the variance of each follows from the fluctuations of their sum."""
        run, name, place = self.run, self.name, self.place
        row, length = run.reduced.by_copy.index(run.names[name]), run.measurements
        means: Array = run.arrays["copy_sums"][row, :, :, place] / length
        levels, _ = run.levels(name, 0)
        windows, variance = self._here(run.windows(name, levels, 0)), levels[0, :, place] / means.shape[1]
        time = autocorrelation.blocked_time(windows, variance, means.mean(axis=1), length, least_window)
        freedom = length / (2 * time.window + 1)
        return OfCopies(means, np.isnan(time.mean_error), _at_least_independent(time), freedom, time.is_resolved)

    def _here(self, windows: Windows) -> Windows:
        return windows._replace(tau=windows.tau[..., self.place])


@dataclass(frozen=True)
class FollowedRuns:
    """Time series of a quantity in runs of several lengths, with the methods of ``FollowedSeries``.

    Bins that cover the same part of each run are joined, from the last one on.
    """

    parts: Sequence[FollowedSeries | FollowedTerm]  # one part for all runs of a length
    rows: Sequence[Integers]  # indices of the samples of each part among all samples of all runs

    @property
    def copies(self) -> int:
        return self.parts[0].copies

    @cached_property
    def bins(self) -> Bins:
        each, order = [part.bins for part in self.parts], np.argsort(np.concatenate(self.rows))
        number = min(len(one.start) for one in each)
        longest = max(each, key=lambda one: int(one.stop[-1]))
        counts = [np.broadcast_to(one.counts, one.means.shape)[-number:] for one in each]
        means = np.concatenate([one.means[-number:] for one in each], axis=1)
        counts_of_all = np.concatenate(counts, axis=1)
        return Bins(longest.start[-number:], longest.stop[-number:], counts_of_all[:, order], means[:, order])

    def time(self) -> IntegratedTime:
        return in_order([part.time() for part in self.parts], self.rows)

    def late_time(self, least_window: npt.ArrayLike = 0) -> IntegratedTime:
        windows = np.broadcast_to(least_window, sum(map(len, self.rows)))
        each = zip(self.parts, self.rows, strict=True)
        return in_order([part.late_time(windows[rows]) for part, rows in each], self.rows)

    @property
    def rests(self) -> Bools:
        order = np.argsort(np.concatenate(self.rows))
        return np.concatenate([part.rests for part in self.parts])[order]

    def of_copies(self, least_window: npt.ArrayLike = 0) -> OfCopies:
        windows = np.broadcast_to(least_window, sum(map(len, self.rows)))
        found = [part.of_copies(windows[rows]) for part, rows in zip(self.parts, self.rows, strict=True)]
        order = np.argsort(np.concatenate(self.rows))
        return OfCopies(*(np.concatenate([np.asarray(one) for one in of])[order] for of in zip(*found, strict=True)))


def in_order(times: Sequence[IntegratedTime], rows: Sequence[Integers]) -> IntegratedTime:
    """Join the times of several parts of all samples; ``rows`` are the sample indices of each part."""
    order = np.argsort(np.concatenate(rows))
    fields = (field.name for field in dataclasses.fields(IntegratedTime))
    return IntegratedTime(**{name: np.concatenate([getattr(one, name) for one in times])[order] for name in fields})


Followed = FollowedSeries | FollowedTerm | FollowedRuns  # tests for drifts and compares copies


@dataclass(frozen=True)
class IndependentRuns:
    """Independent runs of the same samples, usually one; joint averages give each measurement the same weight."""

    runs: Sequence[RunSums]

    @property
    def first(self) -> RunSums:
        return self.runs[0]

    @cached_property
    def measurements(self) -> int:
        return sum(run.measurements for run in self.runs)

    @property
    def shares(self) -> list[float]:
        return [run.measurements / self.measurements for run in self.runs]

    def mean(self, name: str) -> Array:
        """Average of a term over all runs, (samples, places)."""
        if len(self.runs) == 1:
            return self.first.mean(name)
        return np.asarray(sum(share * run.mean(name) for share, run in zip(self.shares, self.runs, strict=True)))

    @cached_property
    def seams(self) -> tuple[int, ...]:
        """Index of the first block of each run but the first, among blocks of equal length."""
        return in_one_length([(np.empty(run.full_blocks), run.block_length) for run in self.runs])[1]

    def block_means(self, name: str) -> Array:
        """Averages over the full blocks, of equal length, (blocks, samples, places)."""
        return in_one_length([(run.block_means(name), run.block_length) for run in self.runs])[0]

    def chain(self, name: str) -> Chain:
        if name not in self._chains:
            self._chains[name] = joined([run.chain(name) for run in self.runs])
        return self._chains[name]

    @cached_property
    def _chains(self) -> dict[str, Chain]:
        return {}

    def time(self, name: str) -> IntegratedTime:
        return self.chain(name).time

    def variance_of_mean(self, name: str) -> Array:
        """Squared error of the mean of a term with sums for each copy, from the scatter of copies, (samples, places).

        The estimate is free of bias, however long the autocorrelation time is.
        """
        variances = []
        for run in self.runs:
            row = run.reduced.by_copy.index(run.names[name])
            means = run.arrays["copy_sums"][row] / run.measurements
            variances.append(means.var(axis=1, ddof=1) / run.reduced.copies)
        return np.asarray(sum(share**2 * one for share, one in zip(self.shares, variances, strict=True)))
