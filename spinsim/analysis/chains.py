"""Chain of an average: sums of a quantity over the time of a run, with the error and autocorrelation time of its mean.

At each place of each sample the mean over copies, or over pairs of copies, is one number for each measurement. Copies
that exchange clusters then need no separate rule: a move that conserves sums over copies does not change that number.

The error comes from blocks of measurements: from their scatter or, for a function of several averages, from a
jackknife. A block spans at least ``TAUS`` autocorrelation times plus their error, and ``WALKS`` autocorrelation times
of the walk of replicas along the ladder. After an exchange, successive measurements are of different replicas and seem
independent, while a replica keeps its state for as long as it walks. Where fewer than ``FEWEST_BLOCKS`` blocks have
this length, there is no error.

Blocks of l measurements are not independent: their variance is too small by a share (tau - 1 / (4 tau)) / l, exact for
one exponential, and is divided by 1 less this share. For b blocks the variance is multiplied by (b - 1) / (b - 3), the
mean square of Student's t, so that deviations over errors have a mean square of 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt

from spinsim.analysis import autocorrelation
from spinsim.analysis.autocorrelation import IntegratedTime
from spinsim.engine.measuring.reduction import LEVELS, block_length

Array = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

TAUS: Final = 4  # autocorrelation times that a block must have
MEMORY: Final = 4
"""Autocorrelation times of a place after which a replica forgets a state that it can only leave at the hottest place.

The slowest mode of diffusion between two reflecting ends is half a wave. With one absorbing end it is a quarter wave,
which takes four times as long to decay.
"""
WALKS: Final = 3 * MEMORY  # autocorrelation times of the walk along the ladder that a block must have
FEWEST_BLOCKS: Final = 16
SHORTEST: Final = TAUS * FEWEST_BLOCKS  # autocorrelation times, with their errors, that a run must have for an error
LADDERS: Final = WALKS * FEWEST_BLOCKS  # likewise, of the walk along the ladder
BLOCKS: Final = 64  # blocks of a series, at most
_ROUNDING: Final = 1e-12  # of a mean: means of runs that differ by less count as equal
_MOST_SHORT: Final = 0.5  # share of the variance that blocks may lack, at most


@dataclass(frozen=True)
class Chain:
    """Sums of a quantity at each place of each sample, over the time of one run or several independent runs."""

    measurements: int
    length: int  # measurements of a block, a power of two
    blocks: Array  # averages over the full blocks, (blocks, samples, places)
    levels: Array
    """Mean squares of sums over 2^l measurements about their mean, divided by 2^l, (levels, samples, places)."""
    mean: Array  # over all measurements, (samples, places)
    walk: Array  # autocorrelation time of the places of replicas, (samples,); 0 without a ladder
    seams: tuple[int, ...] = ()  # index of the first block of each run but the first

    @cached_property
    def time(self) -> IntegratedTime:
        """Integrated autocorrelation time, with the error of the mean from blocks; trusted where that error is."""
        windows = autocorrelation.level_windows(self.levels)
        runs = np.split(self.blocks, self.seams)
        windows = autocorrelation.with_blocks(windows, runs, self.length, self.levels[0])
        carriers = autocorrelation.carriers_of(self.blocks)
        least = MEMORY * np.broadcast_to(self.walk[:, None], self.mean.shape)
        found = autocorrelation.blocked_time(
            windows, self.levels[0], self.mean, self.measurements, least, carriers=carriers
        )
        merge, is_long = self._merge(found)
        error = np.array(found.mean_error)
        for number in np.unique(merge).tolist():
            parts = merged(self.blocks, number, self.seams)
            scatter = parts.std(axis=0, ddof=1) / np.sqrt(len(parts))
            chosen = (merge == number) & np.isfinite(error)
            error[chosen] = (scatter * self._factor(found.tau, number))[chosen]
        return replace(found, mean_error=error, is_resolved=found.is_resolved & is_long)

    @cached_property
    def merge(self) -> Integers:
        """Number of blocks merged into one, as single blocks are too short for an error, (samples, places)."""
        return self._merge(self.time)[0]

    @cached_property
    def factor(self) -> Array:
        """Factor by which the error from the scatter of these merged blocks is widened, (samples, places)."""
        return of_merges(self.merge, self.factor_at)

    def factor_at(self, merge: int) -> Array:
        """Factor by which the error is widened where ``merge`` blocks are merged into one, (samples, places)."""
        return self._factor(self.time.tau, merge)

    def _number(self, merge: int) -> int:
        """Number of merged blocks."""
        ends = np.diff([0, *self.seams, len(self.blocks)])
        return int((ends // merge).sum())

    def _merge(self, time: IntegratedTime) -> tuple[Integers, npt.NDArray[np.bool_]]:
        tau = time.tau + np.nan_to_num(time.error)  # else tau that are too small by chance would be trusted
        wanted = np.maximum(TAUS * tau, WALKS * self.walk[:, None]) / self.length
        merge, most = np.maximum(1, np.ceil(wanted)).astype(np.int64), len(self.blocks) // FEWEST_BLOCKS
        while most > 1 and self._number(most) < FEWEST_BLOCKS:
            most -= 1
        return np.minimum(merge, max(1, most)), merge <= most

    def _factor(self, tau: Array, merge: int) -> Array:
        number, length = self._number(merge), merge * self.length
        lacking = np.clip((tau - 0.25 / tau) / length, 0.0, _MOST_SHORT)
        of_few = (number - 1) / (number - 3) if number > 3 else np.nan
        return np.asarray(np.sqrt(of_few * number * length / self.measurements / (1 - lacking)))


def merged(blocks: Array, merge: int, seams: Sequence[int] = ()) -> Array:
    """Averages over ``merge`` blocks of one run each; first blocks that do not fill a merged one are left out."""
    return np.concatenate([_merged(run, merge) for run in np.split(blocks, seams)]) if seams else _merged(blocks, merge)


def _merged(blocks: Array, merge: int) -> Array:
    number = len(blocks) // merge
    return np.asarray(blocks[len(blocks) - number * merge :].reshape(number, merge, *blocks.shape[1:]).mean(axis=1))


def in_one_length(runs: Sequence[tuple[Array, int]]) -> tuple[Array, tuple[int, ...]]:
    """Convert blocks of several runs, each with its length, to the longest length; return also where runs begin."""
    longest = max(length for _, length in runs)
    parts = [_merged(blocks, longest // length) for blocks, length in runs]
    starts = np.cumsum([len(part) for part in parts])[:-1]
    return np.concatenate(parts), tuple(starts.tolist())


def joined(chains: Sequence[Chain]) -> Chain:
    """Chain of several independent runs of the same samples; each measurement counts once."""
    if len(chains) == 1:
        return chains[0]
    numbers = np.array([chain.measurements for chain in chains])

    def mean_of(values: Sequence[Array], counts: Integers = numbers) -> Array:
        return np.asarray(np.tensordot(counts / counts.sum(), np.stack(values), axes=1))

    mean = mean_of([chain.mean for chain in chains])
    apart = [np.where(np.abs(c.mean - mean) > _ROUNDING * np.abs(mean), c.mean - mean, 0.0) for c in chains]
    levels = []
    for level in range(max(len(chain.levels) for chain in chains)):
        long = [k for k, chain in enumerate(chains) if level < len(chain.levels)]
        levels.append(mean_of([chains[k].levels[level] + 2**level * apart[k] ** 2 for k in long], numbers[long]))
    blocks, seams = in_one_length([(chain.blocks, chain.length) for chain in chains])
    length, walk = max(chain.length for chain in chains), mean_of([chain.walk for chain in chains])
    return Chain(int(numbers.sum()), length, blocks, np.array(levels), mean, walk, seams)


def chain_of(series: Array, walk: Array) -> Chain:
    """Add up a series (steps, samples, places), as the engines add up measurements."""
    count, first = len(series), series[0]
    length = block_length(BLOCKS, count)
    blocks = _merged(series[: count // length * length], length)
    centred = series - first
    mean = centred.mean(axis=0)
    levels = np.empty((min(autocorrelation.usable(count), LEVELS), *first.shape))
    sums = centred - mean
    for level in range(len(levels)):
        levels[level] = (sums**2).mean(axis=0) / 2**level
        sums = sums[: len(sums) // 2 * 2].reshape(-1, 2, *first.shape).sum(axis=1)
    levels[:, series.max(axis=0) == series.min(axis=0)] = 0.0
    return Chain(count, length, blocks, levels, mean + first, walk)


def of_merges(merge: Integers, find: Callable[[int], Array]) -> Array:
    """Combine the arrays (..., rows, places) that ``find`` returns for the number of merged blocks of each entry.

    ``merge`` is (rows, places).
    """
    found = None
    for number in np.unique(merge).tolist():
        of_number = find(number)
        found = of_number if found is None else np.where(merge == number, of_number, found)
    assert found is not None  # noqa: S101  (as there is a place)
    return found
