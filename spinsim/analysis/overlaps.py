"""The distribution of the overlap of two copies, P(q)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from spinsim.analysis.jackknife import standard_error
from spinsim.analysis.runs import FEWEST_STEPS, Array, Bools, Integers, Tempered
from spinsim.analysis.statistics import Statistics, statistics_of
from spinsim.errors import InputError
from spinsim.observables.quantities import in_field

_FEWEST_BINS: Final = 16
_MOST_BINS: Final = 120


@dataclass(frozen=True)
class OverlapDistribution:
    """P(q) at each temperature, averaged over samples."""

    q: Array  # middle of each bin, (bins,)
    width: Array  # of each bin; they differ by one step 2 / N of q at most, (bins,)
    density: Array  # P(q), (temperatures, bins); over all bins density times width adds up to 1
    error: Array
    """Standard error of the density, likewise: from the scatter of samples or, for one sample, from the autocorrelation
    of q^2; NaN for a bin of one sample that stays empty."""
    trusted: Bools
    """True where the error can be trusted, likewise: for one sample, if that of q^2 is; for several, if they differ."""


def overlap_distribution(
    result: Tempered, bins: int = 50, symmetrize: bool = False, places: Sequence[int] | None = None
) -> OverlapDistribution:
    """P(q) from every pair of copies; with ``symmetrize`` the mean of P(q) and P(-q), which are equal without a field.

    The N + 1 possible values of q, 2 / N apart, are divided among bins as evenly as possible. Each value has a width of
    2 / N, so that no bin is high because it holds more values. There are no more bins than values, and an odd number
    where the number of values is odd. For reduced measurements a bin holds whole cells of their histograms, of which
    there are 256 at most. ``_of_one_histogram`` describes the errors of one sample.

    ``places`` are by default all places of the ladder.
    """
    statistics = _statistics(result, bins)
    run, chosen = statistics.run, list(range(len(result.temperature)) if places is None else places)
    counts: npt.NDArray[np.uint32] = run.arrays["overlap_histogram"][:, chosen]
    sites, cells = result.model.sites, counts.shape[-1]
    q, width, _ = _bins(sites, bins, cells)
    first = np.searchsorted(_dealt(cells, len(q)), np.arange(len(q)))
    of_runs = np.add.reduceat(counts.astype(np.float64), first, axis=-1)
    shares = statistics.over_runs(of_runs / (run.lengths[:, None, None] * run.reduced.pairs))
    if symmetrize:  # where values do not divide evenly among cells, cells differ by one value
        q, width, shares = (q - q[::-1]) / 2, (width + width[::-1]) / 2, (shares + shares[..., ::-1]) / 2
    if len(shares) > 1:
        share, error = shares.mean(axis=0), standard_error(shares)
        return OverlapDistribution(q, width, share / width, error / width, error > 0)
    independent, trusted = independent_overlaps(statistics)[0, chosen], statistics.time("q^2").trusted[0, chosen]
    share, error = shares[0], _of_one_histogram(shares[0], independent, symmetrize, in_field(result.model))
    return OverlapDistribution(q, width, share / width, error / width, trusted[:, None] & np.isfinite(error))


def independent_overlaps(statistics: Statistics) -> Array:
    """Return the number of independent overlaps that would give q^2 the same error, (samples, places).

    Copies that share moves, or pairs that share copies, count as far as they are independent.
    """
    square, fourth, error = statistics.mean("q^2"), statistics.mean("q^4"), statistics.time("q^2").mean_error
    most = statistics.of_samples(
        lambda runs: np.full((len(runs.mean("q^2")), 1), runs.measurements * runs.first.reduced.pairs)
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.clip(np.nan_to_num((fourth - square**2) / error**2, nan=1.0), 1.0, most))


def _of_one_histogram(share: Array, independent: Array, symmetrize: bool, field: bool) -> Array:
    """Errors of the shares of bins (temperatures, bins) of one sample, without the time series of q.

    q is assumed to decorrelate like q^2, which gives the number of ``independent`` overlaps of two copies
    (temperatures,). As q leaves a narrow bin sooner, this is an upper bound, up to twice the error. Without a field q
    may keep its sign for longer: half of P(q) less P(-q) is then the error of the odd part, where it is larger.
    """
    number = independent[:, None]
    error = np.sqrt(share * (1 - share) / number)
    if symmetrize or not field:
        even = (share + share[:, ::-1]) / 2
        middle = np.arange(share.shape[1]) * 2 + 1 == share.shape[1]  # the bin that is its own mirror image
        of_sum = np.where(middle, even * (1 - even), np.maximum(even / 2 - even**2, 0)) / number
        odd = np.maximum(((share - share[:, ::-1]) / 2) ** 2, np.where(middle, 0, even / 2 / number))
        error = np.sqrt(of_sum if symmetrize else of_sum + odd)
    return np.where(share > 0, error, np.nan)


def bins_for(result: Tempered, place: int) -> int:
    """Return the number of bins for P(q) at a place of the ladder, from its width and the noise of the series.

    The bin width is that of a frequency polygon, 2.15 sigma / n^(1/5). Here n follows from the error of q^2, and
    1.35 sigma is the shortest interval with half of all q. A bin holds a whole number of values of q.

    Source: D. W. Scott, J. Am. Stat. Assoc. 80, 348 (1985).
    """
    statistics, sites = _statistics(result, _FEWEST_BINS), result.model.sites
    counts = statistics.run.arrays["overlap_histogram"][:, place].sum(axis=0, dtype=np.int64)
    q, _, _ = _bins(sites, len(counts), len(counts))
    q = q if in_field(result.model) else np.abs(q)
    order = np.argsort(q, kind="stable")
    below = np.concatenate([[0], np.cumsum(counts[order])])
    end = np.searchsorted(below[1:], below[:-1] + below[-1] // 2, side="left")
    there = end < len(q)
    shortest = float((q[order][end[there]] - q[order][there]).min())
    number = float(independent_overlaps(statistics)[:, place].sum())
    width = min(2.15 / 1.35 * shortest / number**0.2, 2 / _FEWEST_BINS)
    of_a_bin = max(1, round(width * sites / 2), -(-(sites + 1) // _MOST_BINS))
    return int(-(-(sites + 1) // of_a_bin))


def _statistics(result: Tempered, bins: int) -> Statistics:
    """Return the statistics of a run, if overlaps are among them."""
    statistics = statistics_of(result)
    if statistics.choice.copies < 2 or (result.reduced is None and not result.overlap.shape[2]):
        raise InputError("the run has one copy and no overlaps: give a run of two replicas or more")
    if statistics.measurements < FEWEST_STEPS or bins < 1:
        raise InputError(
            f"{statistics.measurements} measurements in {bins} bins make no distribution: give at least {FEWEST_STEPS} "
            "and 1"
        )
    return statistics


def _bins(sites: int, most: int, cells: int) -> tuple[Array, Array, Integers]:
    """Middles and widths of bins that hold whole cells, and the bin of each value of q, from -1 to 1."""
    values = sites + 1
    bins = min(most, cells)
    if cells % 2 and not bins % 2:
        bins -= 1  # else q = 0 would lie between two bins
    place = _dealt(cells, bins)[np.arange(values) * cells // values]
    counts = np.bincount(place, minlength=bins)
    middle = np.bincount(place, 2 * np.arange(values) / sites - 1, bins) / counts
    return middle, counts * 2 / sites, place


def _dealt(cells: int, bins: int) -> Integers:
    return (2 * np.arange(cells) + 1) * bins // (2 * cells)
