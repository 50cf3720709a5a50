"""The distribution of the overlap of two copies."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from spinsim.errors import InputError
from spinsim.result import TemperResult

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class OverlapDistribution:
    """P(q), averaged over samples and normalised: the sum over bins of density times width is 1.

    Attributes:
        q: Centres of the bins, (bins,).
        density: P(q) at each temperature, (temperatures, bins).
        error: Its standard error, (temperatures, bins); NaN for a single sample.
    """

    q: Array
    density: Array
    error: Array


def overlap_distribution(result: TemperResult, bins: int = 50) -> OverlapDistribution:
    """P(q) at each temperature; bins hold equally many of the values 2 k / N - 1 that q can take, as far as possible.

    Raises:
        InputError: for a run of one copy, which has no overlaps.
    """
    steps, samples, pairs, temperatures = result.overlap.shape
    if not pairs or not steps:
        raise InputError("the run has no overlaps: give two copies or more at each temperature, and measurements")
    values = result.model.sites + 1
    bins = min(bins, values)
    edges = np.arange(bins + 1) * values // bins  # in values of (q N + N) / 2
    counts = np.zeros((samples, temperatures, bins))
    for sample in range(samples):
        for t in range(temperatures):
            found = np.bincount((result.overlap[:, sample, :, t].ravel() + values - 1) // 2, minlength=values)
            counts[sample, t] = np.add.reduceat(found, edges[:-1])
    width = 2 * np.diff(edges) / values
    density = counts / (steps * pairs * width)
    q = (edges[:-1] + edges[1:] - 1) / (values - 1) - 1
    error = density.std(axis=0, ddof=1) / np.sqrt(samples) if samples > 1 else np.full(density.shape[1:], np.nan)
    return OverlapDistribution(q, density.mean(axis=0), error)
