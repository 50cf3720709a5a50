"""The distribution of the overlap of two copies, P(q)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from spinsim.analysis.autocorrelation import integrated_time
from spinsim.analysis.jackknife import BINS, bin_means, standard_error
from spinsim.analysis.reduced import ReducedRun
from spinsim.analysis.runs import Array, Bools, Integers, Tempered
from spinsim.errors import InputError
from spinsim.observables.measured import in_field

_FEWEST_BINS: Final = 16
_MOST_BINS: Final = 120
_MOST: Final = 2**13  # entries of a series whose autocorrelation time is sought; of longer ones, averages of a few


@dataclass(frozen=True)
class OverlapDistribution:
    """P(q) at each temperature, averaged over samples."""

    q: Array  # middle of each bin, (bins,)
    width: Array  # of each bin; they differ by one step 2 / N of q at most, (bins,)
    density: Array  # P(q), (temperatures, bins); over all bins density times width adds up to 1
    error: Array
    """Standard error of the density, from sample to sample or, of one sample, from how long q stays in each bin and out
    of it; NaN for a bin of one sample that stays empty, likewise."""
    trusted: Bools
    """True where the error is one: of one sample, if the series of the bin and of q^2 span at least 20 of their
    autocorrelation times and rest on more than a few rare events; of several, whether they differ, likewise."""


def overlap_distribution(
    result: Tempered, bins: int = 50, symmetrize: bool = False, places: Sequence[int] | None = None
) -> OverlapDistribution:
    """P(q) from every pair of copies; with ``symmetrize`` the mean of P(q) and P(-q), which are equal without a field.

    The N + 1 values that q can have, 2 / N apart, are dealt to bins as evenly as can be, each value with a width of 2 /
    N, so that no bin is high because it holds more of them. There are no more bins than values, and an odd number where
    these are odd in number. Of reduced measurements a bin holds whole cells of their histograms, of which there are 256
    at most (``_of_one_histogram`` says where errors of one sample come from).

    ``places`` of the ladder are all of them by default.
    """
    _check(result, bins)
    chosen = range(len(result.temperature)) if places is None else places
    if result.reduced is not None:
        return _from_histograms(result, result.reduced, bins, symmetrize, chosen)
    sites = result.model.sites
    q, width, place = _bins(sites, bins, sites + 1)
    number = place[(result.overlap[..., list(chosen)].astype(np.int64) + sites) // 2]
    shares = _of_samples if result.model.samples > 1 else _of_one
    of_each = [shares(number[..., t], q, symmetrize) for t in range(len(chosen))]
    share, error, trusted = (np.array(rows) for rows in zip(*of_each, strict=True))
    return OverlapDistribution(q, width, share / width, error / width, trusted)


def _from_histograms(
    result: Tempered, run: ReducedRun, bins: int, symmetrize: bool, places: Sequence[int]
) -> OverlapDistribution:
    counts: npt.NDArray[np.uint32] = run.arrays["overlap_histogram"][:, list(places)]
    sites, cells = result.model.sites, counts.shape[-1]
    q, width, _ = _bins(sites, bins, cells)
    first = np.searchsorted(_dealt(cells, len(q)), np.arange(len(q)))
    shares = np.add.reduceat(counts.astype(np.float64), first, axis=-1) / (run.measurements * run.reduced.pairs)
    if symmetrize:  # of values that make no whole number of cells, cells differ by one value
        q, width, shares = (q - q[::-1]) / 2, (width + width[::-1]) / 2, (shares + shares[..., ::-1]) / 2
    if len(counts) > 1:
        share, error = shares.mean(axis=0), standard_error(shares)
        return OverlapDistribution(q, width, share / width, error / width, error > 0)
    time = run.time("q^2")
    independent = run.measurements / (2 * time.tau[0, list(places)]) * max(1, run.reduced.copies // 2)
    share, error = shares[0], _of_one_histogram(shares[0], independent, symmetrize, in_field(result.model))
    trusted = time.trusted[0, list(places)][:, None] & np.isfinite(error)
    return OverlapDistribution(q, width, share / width, error / width, trusted)


def _of_one_histogram(share: Array, independent: Array, symmetrize: bool, field: bool) -> Array:
    """Errors of the shares of bins (temperatures, bins) of one sample, of which nobody knows when q was in which bin.

    q is taken to be forgotten in the autocorrelation time of q^2, so that there are so many ``independent`` overlaps of
    two copies (temperatures,). A narrow bin is left sooner: this is a bound, up to twice the error. Without a field
    that is not how long q keeps its sign: P(q) less P(-q) shows the error of half their difference, where it is larger.
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
    """Returns how many bins P(q) at a place of the ladder should have, by its width and the noise of the series.

    The width is that of a polygon through the middles of bins, 2.15 sigma / n^(1/5): n follows from autocorrelation
    times, and 1.35 sigma is the shortest interval with half of all q. A bin holds a whole number of values of q.

    Source: D. W. Scott, J. Am. Stat. Assoc. 80, 348 (1985).
    """
    _check(result, _FEWEST_BINS)
    sites = result.model.sites
    find = _shape_of_series if result.reduced is None else _shape_of_histogram
    number, shortest = find(result, place)
    width = min(2.15 / 1.35 * shortest / number**0.2, 2 / _FEWEST_BINS)
    of_a_bin = max(1, round(width * sites / 2), -(-(sites + 1) // _MOST_BINS))
    return int(-(-(sites + 1) // of_a_bin))


def _shape_of_series(result: Tempered, place: int) -> tuple[float, float]:
    """How many q are independent, and the shortest interval with half of all."""
    steps, samples, _, _ = result.overlap.shape
    q = result.overlap[..., place] / result.model.sites
    kept = steps // -(-steps // _MOST)
    tau = integrated_time(bin_means((q**2).mean(axis=2), kept)).tau.mean()
    number = samples * result.energy.shape[2] * kept / max(1.0, 2 * tau)
    ordered = np.sort(q if in_field(result.model) else np.abs(q), axis=None)
    shortest = (ordered[ordered.size // 2 :] - ordered[: -(ordered.size // 2)]).min()
    return float(number), float(shortest)


def _shape_of_histogram(result: Tempered, place: int) -> tuple[float, float]:
    """The same, to the width of a cell."""
    run = result.reduced
    assert run is not None  # noqa: S101  (as the caller has asked)
    counts = run.arrays["overlap_histogram"][:, place].sum(axis=0, dtype=np.int64)
    q, _, _ = _bins(result.model.sites, len(counts), len(counts))
    q = q if in_field(result.model) else np.abs(q)
    order = np.argsort(q, kind="stable")
    below = np.concatenate([[0], np.cumsum(counts[order])])
    end = np.searchsorted(below[1:], below[:-1] + below[-1] // 2, side="left")
    there = end < len(q)
    shortest = (q[order][end[there]] - q[order][there]).min()
    tau = run.time("q^2").tau[:, place].mean()
    return float(run.samples * run.reduced.copies * run.measurements / max(1.0, 2 * tau)), float(shortest)


def _check(result: Tempered, bins: int) -> None:
    run = result.reduced
    steps, pairs = result.overlap.shape[::2] if run is None else (run.measurements, run.reduced.pairs)
    if not pairs:
        raise InputError("the run has one copy and no overlaps: give a run of two replicas or more")
    if steps < 2 or bins < 1:
        raise InputError(f"{steps} measurements in {bins} bins make no distribution: give at least 2 and 1")


def _of_samples(number: Integers, q: Array, symmetrize: bool) -> tuple[Array, Array, Bools]:
    """Shares of the bins in their numbers (steps, samples, pairs), their errors, and whether these can be trusted."""
    samples = number.shape[1]
    share = np.array([np.bincount(number[:, k].ravel(), minlength=q.size) for k in range(samples)]) / number[:, 0].size
    if symmetrize:
        share = (share + share[:, ::-1]) / 2
    error = standard_error(share)
    return share.mean(axis=0), error, error > 0


def _of_one(number: Integers, q: Array, symmetrize: bool) -> tuple[Array, Array, Bools]:
    """The same of one sample, pairs of copies averaged at each step.

    A narrow bin is left and entered again long before q forgets where it was: a small, slow part of its
    autocorrelation, which its tau misses and stretches of time show. Hence the larger of the two errors; over 200
    series of q of tau 1, 4 and 16 it is the spread to 7 %.
    """
    filled = (number[:, 0, :, None] == np.arange(q.size)).mean(axis=1)
    if symmetrize:
        filled = (filled + filled[:, ::-1]) / 2
    series = np.concatenate([filled, (q[number[:, 0]] ** 2).mean(axis=1, keepdims=True)], axis=1)
    together = -(-len(series) // _MOST)
    time = integrated_time(bin_means(series, len(series) // together))
    stretches = bin_means(filled, min(BINS, len(filled) // 2))
    error = np.maximum(time.mean_error[:-1], standard_error(stretches))
    return filled.mean(axis=0), error, time.trusted[:-1] & time.trusted[-1]


def _bins(sites: int, most: int, cells: int) -> tuple[Array, Array, Integers]:
    """Middles and widths of bins that hold whole cells, and the bin of each value of q, from -1 to 1."""
    values = sites + 1
    bins = min(most, cells)
    if cells % 2 and not bins % 2:
        bins -= 1  # else q = 0 would lie between two of them
    place = _dealt(cells, bins)[np.arange(values) * cells // values]
    counts = np.bincount(place, minlength=bins)
    middle = np.bincount(place, 2 * np.arange(values) / sites - 1, bins) / counts
    return middle, counts * 2 / sites, place


def _dealt(cells: int, bins: int) -> Integers:
    return (2 * np.arange(cells) + 1) * bins // (2 * cells)
