"""What a run on a ladder has added up as it went, as statistics ask for it (``engine/measuring/reduction.py``)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from spinsim.analysis.autocorrelation import IntegratedTime
from spinsim.analysis.blocking import Levels, blocked_time, usable, windowed_levels
from spinsim.engine.measuring.reduction import CONNECTED, Reduced, Term

Array = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_SAMPLE_AXES: Final = {
    "block_sums": 2,
    "copy_sums": 1,
    "level_sums": 3,
    "level_squares": 3,
    "level_open": 2,
    "first_value": 1,
    "walk_squares": 1,
    "walk_open": 1,
    "measurements": 0,
    "overlap_histogram": 0,
    "link_overlap_histogram": 0,
}
"""Axis of each array that counts samples."""


@dataclass(frozen=True)
class ReducedRun:
    """Sums over all measurements of a run, of all its samples or of some.

    Attributes:
        reduced: What was added up.
        arrays: By the names of ``Reduced.arrays``.
        measure_every: Sweeps between two measurements.
        stride: Measurements for each row of the series that were kept; 0 where none were.
    """

    reduced: Reduced
    arrays: Mapping[str, npt.NDArray[Any]]
    measure_every: int
    stride: int = 1

    @cached_property
    def measurements(self) -> int:
        """How many were added up."""
        return int(self.arrays["measurements"].min(initial=np.iinfo(np.int64).max))

    @cached_property
    def names(self) -> dict[str, int]:
        """Numbers of the terms by name."""
        return {term.name: k for k, term in enumerate(self.reduced.terms)}

    @property
    def samples(self) -> int:
        """Samples that there are."""
        return len(self.arrays["measurements"])

    @cached_property
    def block_length(self) -> int:
        """Measurements of a full block."""
        length = 1
        while length * self.arrays["block_sums"].shape[1] < self.measurements:
            length *= 2
        return length

    @property
    def full_blocks(self) -> int:
        """Blocks that are full."""
        return self.measurements // self.block_length

    @cached_property
    def edges(self) -> Integers:
        """Blocks at which the logarithmic bins of the run begin, and the number of blocks in use, where the last ends.

        As near as can be to the measurements n / 2, n / 4 and so on; of blocks of one measurement exactly there.
        """
        length, count = self.block_length, self.measurements
        starts = {round((count >> k) / length) for k in range(1, count.bit_length())}
        first = {0} if length > 1 else set()
        return np.array(sorted({start for start in starts if start} | first | {-(-count // length)}))

    def of_samples(self, chosen: slice) -> ReducedRun:
        """Return the run of some of the samples."""
        whole = slice(None)
        cut = {name: array[(whole,) * _SAMPLE_AXES[name] + (chosen,)] for name, array in self.arrays.items()}
        return replace(self, arrays=cut)

    def chains_of(self, name: str) -> int:
        """Copies, or pairs of copies, that a term is summed over at each measurement."""
        term = self.term(name)
        if term.power == CONNECTED:
            return 1
        return self.reduced.pairs if term.of_pairs else self.reduced.copies

    def term(self, name: str) -> Term:
        """Return a term by its name."""
        return self.reduced.terms[self.names[name]]

    def mean(self, name: str) -> Array:
        """Average of a term over the whole run, (samples, places)."""
        whole: Array = self.arrays["block_sums"][self.names[name]].sum(axis=0)
        return whole / (self.measurements * self.chains_of(name))

    def block_means(self, name: str) -> Array:
        """Averages over the blocks that are full, (blocks, samples, places)."""
        sums: Array = self.arrays["block_sums"][self.names[name]][: self.full_blocks]
        return sums / (self.block_length * self.chains_of(name))

    def bin_rows(self) -> tuple[Integers, Integers]:
        """First measurements of the logarithmic bins, and the measurements after their last ones."""
        rows = np.minimum(self.edges * self.block_length, self.measurements)
        return rows[:-1], rows[1:]

    def bin_means(self, name: str) -> Array:
        """Averages over the logarithmic bins, (bins, samples, places)."""
        start, stop = self.bin_rows()
        blocks: Array = self.arrays["block_sums"][self.names[name]][: self.edges[-1]]
        sums = np.add.reduceat(blocks, self.edges[:-1], axis=0)
        return np.asarray(sums / ((stop - start) * self.chains_of(name))[:, None, None])

    def time(self, name: str) -> IntegratedTime:
        """Integrated autocorrelation time over the whole run, (samples, places)."""
        levels, mean = self._levels(name, 0)
        return self._of_mean(name, levels, mean, 0)

    def late_time(self, name: str, place: int, least_window: npt.ArrayLike = 0) -> IntegratedTime:
        """Integrated autocorrelation time of the average over copies in the last logarithmic bin, (samples,).

        Where levels are not kept by blocks it is that of the whole run, over as many measurements as the bin has.
        """
        first = int(self.edges[-2])
        length = self.measurements - first * self.block_length
        by_block = self.arrays["level_sums"].shape[1] > 1
        levels, mean = self._levels(name, first if by_block else 0)
        at = levels._replace(variance=levels.variance[..., place])
        if not by_block:
            at = at._replace(length=length, variance=at.variance[: usable(length)])
        # errors are those of one chain, the average: copies say more on tau, pairs that share copies do not
        found = self._of_mean(name, at._replace(chains=1), mean[:, place], least_window)
        spread = np.sqrt(self._excess(name)[:, place] / levels.chains)
        return IntegratedTime(
            found.tau, found.error, found.window, found.trusted, found.mean, found.mean_error * spread
        )

    def copies(self, name: str, place: int, least_window: npt.ArrayLike = 0) -> tuple[Array, IntegratedTime, int]:
        """Averages of each copy, (samples, copies), and the time of copies about their own averages.

        The mean's error in it is that of one copy's average. The number is of chains that tell of it.
        """
        row, count, k = self.reduced.by_copy.index(self.names[name]), self.measurements, self._followed(name)
        first = self.arrays["first_value"][k, :, place][:, None]
        means: Array = self.arrays["copy_sums"][row, :, :, place] / count
        copies, levels = means.shape[1], self._usable(count)
        if not self._is_apart:
            whole, _ = self._levels(name, 0)
            of_sum = whole._replace(variance=whole.variance[..., place], in_mean=float(count))
            found = blocked_time(of_sum, means.mean(axis=1), least_window)
            return means, replace(found, mean_error=found.mean_error / np.sqrt(copies)), 1
        about = means - first
        waiting, squares = self.arrays["level_open"][k, :, :, :copies, place], self._over_blocks("level_squares", k, 0)
        variance, tail = [], np.zeros_like(about)
        for level in range(levels):
            size, number = 2**level, count >> level
            sums = count * about - tail
            about_mean = squares[level, :, place] - (about * (2 * size * sums - number * size**2 * about)).sum(axis=1)
            variance.append(about_mean / (number * copies * size))
            if number & 1:
                tail = tail + waiting[level]
        variances = np.maximum(variance, 0.0)
        variances[:, variances[0] <= _ROUNDING * (squares[0, :, place] / (count * copies))] = 0.0
        found = blocked_time(Levels(variances, count, copies, float(count)), means.mean(axis=1), least_window)
        return means, replace(found, mean_error=found.mean_error * np.sqrt(copies)), copies

    def walk_times(self) -> Array:
        """Autocorrelation time of the places of each sample's replicas, in measurements, (samples,).

        Mean and variance of a place are known, as all replicas spend equal times everywhere.
        """
        squares, count, places = self.arrays["walk_squares"], self.measurements, self.reduced.places
        levels = min(usable(count, 1.0), len(squares))
        replicas = self.reduced.copies * places
        sums = np.array([(count >> level) * 2.0**level for level in range(levels)]) * replicas
        return np.maximum(windowed_levels(squares[:levels] / sums[:, None] / ((places**2 - 1) / 3)).tau, 0.5)

    @property
    def _is_apart(self) -> bool:
        """Whether copies are followed one by one."""
        return self.reduced.chains > 1

    def _followed(self, name: str) -> int:
        return self.reduced.followed.index(self.names[name])

    def _usable(self, length: int) -> int:
        return min(usable(length), int(self.arrays["level_sums"].shape[2]))

    def _over_blocks(self, array: str, followed: int, first: int) -> Array:
        """Sums of levels in the blocks from ``first`` on, (levels, samples, places)."""
        return np.asarray(self.arrays[array][followed, first:].sum(axis=0))

    def _levels(self, name: str, first: int) -> tuple[Levels, Array]:
        """Levels of a term in the blocks from ``first`` on about their mean, and that mean, (samples, places)."""
        k, begin, count = self._followed(name), first * self.block_length, self.measurements
        sums, squares = (self._over_blocks(array, k, first) for array in ("level_sums", "level_squares"))
        chains = self.chains_of(name) if self._is_apart else 1
        length = count - begin
        mean = sums[0] / (length * chains)
        variance = np.empty((self._usable(length), *mean.shape))
        for level in range(len(variance)):
            size, number = 2**level, ((count >> level) - (begin >> level)) * chains
            about = squares[level] - 2 * size * mean * sums[level] + number * size**2 * mean**2
            variance[level] = np.maximum(about, 0.0) / (number * size)
        variance[:, variance[0] <= _ROUNDING * squares[0] / (length * chains)] = 0.0
        return Levels(variance, length, chains, float(length * chains)), mean + self.arrays["first_value"][k]

    def _of_mean(self, name: str, levels: Levels, mean: Array, least_window: npt.ArrayLike) -> IntegratedTime:
        """Return times with means over copies or pairs; where their sum is followed it is divided by their number."""
        found, number = blocked_time(levels, mean, least_window), 1 if self._is_apart else self.chains_of(name)
        return replace(found, mean=found.mean / number, mean_error=found.mean_error / number)

    def _excess(self, name: str) -> Array:
        """Variance of the average over pairs, in units of what it were if pairs were independent, (samples, places).

        From averages over blocks; 1 of copies, which are independent, and of a single pair.
        """
        chains = self.chains_of(name)
        if not self._is_apart or not self.term(name).of_pairs or chains == 1:
            return np.ones((self.samples, self.reduced.places))
        level, k, number = self.block_length.bit_length() - 1, self._followed(name), self.full_blocks
        means = self.block_means(name)
        together = ((means - means.mean(axis=0)) ** 2).sum(axis=0) * chains
        size = self.block_length
        sums, squares = (self.arrays[a][k, :number, level].sum(axis=0) for a in ("level_sums", "level_squares"))
        mean = sums / (number * chains * size)
        alone = (squares / size**2 - number * chains * mean**2) / chains
        return np.asarray(np.maximum(1.0, np.divide(together, alone, out=np.ones_like(alone), where=alone > 0)))


_ROUNDING: Final = 1e-24
"""Of the mean square about the first value: a variance below it is rounding."""
