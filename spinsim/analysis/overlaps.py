"""The distribution of the overlap of two copies, P(q)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from spinsim.analysis.jackknife import jackknife
from spinsim.analysis.summary import BINS
from spinsim.errors import InputError
from spinsim.result import TemperResult

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class OverlapDistribution:
    """P(q) at each temperature, averaged over samples.

    Attributes:
        q: Middle of each bin, (bins,).
        width: Of each bin; they differ by one step 2 / N of q at most, (bins,).
        density: P(q), (temperatures, bins); over all bins density times width adds up to 1.
        error: Its standard error, from sample to sample or, of one sample, over 32 stretches of time, likewise.
    """

    q: Array
    width: Array
    density: Array
    error: Array


def overlap_distribution(result: TemperResult, bins: int = 50, symmetrize: bool = False) -> OverlapDistribution:
    """P(q) from every pair of copies.

    The N + 1 values that q can have, 2 / N apart, are dealt to bins as evenly as can be, each value with a width of
    2 / N, so that no bin is high because it holds more of them.

    Args:
        result: A tempering run of two copies or more.
        bins: Of q, at most: no more than q has values, and an odd number where they are odd in number.
        symmetrize: Take the mean of P(q) and P(-q), which are equal without a field.

    Raises:
        InputError: for a run of one copy, fewer than two measurements and no bins.
    """
    steps, samples, pairs, temperatures = result.overlap.shape
    if not pairs:
        raise InputError("the run has one copy and no overlaps: give a run of two replicas or more")
    if steps < 2 or bins < 1:
        raise InputError(f"{steps} measurements in {bins} bins make no distribution: give at least 2 and 1")
    sites = result.model.sites
    q, width, place = _bins(sites, bins)
    number = place[(result.overlap.astype(np.int64) + sites) // 2]
    if samples > 1:
        entries = np.moveaxis(number, 1, 0).reshape(samples, -1, temperatures)
    else:
        stretches = min(BINS, steps // 2)
        kept = number[steps % stretches :, 0]
        entries = kept.reshape(stretches, -1, temperatures)
    rows = np.arange(temperatures) * q.size
    counted = [np.bincount((entry + rows).ravel(), minlength=temperatures * q.size) for entry in entries]
    share = np.reshape(counted, (len(entries), temperatures, q.size)) / entries.shape[1]
    if symmetrize:
        share = (share + share[..., ::-1]) / 2
    found = jackknife(lambda mean: mean / width, share)
    return OverlapDistribution(q, width, found.value, found.error)


def _bins(sites: int, most: int) -> tuple[Array, Array, npt.NDArray[np.int64]]:
    """Middles and widths of bins, and the bin of each value of q, from -1 to 1."""
    values = sites + 1
    bins = min(most, values)
    if values % 2 and not bins % 2:
        bins -= 1  # else q = 0 would lie between two of them
    place = (2 * np.arange(values) + 1) * bins // (2 * values)
    held = np.bincount(place, minlength=bins)
    middle = np.bincount(place, 2 * np.arange(values) / sites - 1, bins) / held
    return middle, held * 2 / sites, place
