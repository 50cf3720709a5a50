"""Has a run reached equilibrium? Averages over its last half, the quarter before, the eighth before that, and so on."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, stdtrit

from spinsim.analysis.autocorrelation import SHORTEST, integrated_time
from spinsim.analysis.checks import finite_array
from spinsim.errors import InputError

Array = npt.NDArray[np.float64]

LIMIT: Final = 2.0  # standard errors of a difference, where these are known well
_TESTED: Final = 3  # bins


@dataclass(frozen=True)
class Equilibration:
    """An observable in bins [n / 2^k, n / 2^(k - 1)), earliest first; arrays of shape (bins,).

    Attributes:
        start: First row of the series in a bin.
        stop: Row after its last.
        mean: Average over the bin, and over the samples.
        error: Its standard error.
        equilibrated: Whether the last three bins agree; False also where that cannot be told.
        verdict: The same in words, with what decided it.
    """

    start: npt.NDArray[np.int64]
    stop: npt.NDArray[np.int64]
    mean: Array
    error: Array
    equilibrated: bool
    verdict: str


def equilibration(series: npt.ArrayLike) -> Equilibration:
    """Compare the averages of an observable over logarithmic bins of a run.

    Tested is this: for each two of the last three bins, [n/2, n), [n/4, n/2) and [n/8, n/4), the difference of their
    averages is at most 2 of its standard errors. With samples, the differences are taken sample by sample, and their
    error is that of the mean over the samples; where samples are few, the limit is that of Student's t which is as
    probable. For one sample, each bin's error is sigma sqrt(2 tau / length) with sigma and tau of the last bin, as the
    whole of a stationary series has them, and errors add in squares; the verdict is withheld where tau is not trusted.
    An equilibrated run fails in one case of nine. An observable that vanishes by symmetry tests nothing: take the
    energy, q^2 or the link overlap at the lowest temperature. Fractions of n are rounded down, and row 0 is in no bin.

    Source: binning as in H. G. Katzgraber, M. Koerner, A. P. Young, Phys. Rev. B 73, 224432 (2006).

    Args:
        series: Measurements from the very start of the run, of shape (n,) for one sample or (n, samples), replicas
            averaged.

    Raises:
        InputError: for fewer than 8 measurements, more than two axes and values that are not finite.
    """
    values = finite_array(series, "series", least=8)
    if values.ndim > 2:
        raise InputError(f"series has shape {values.shape}: give (measurements,) or (measurements, samples)")
    values = values.reshape(len(values), -1)
    edges = np.array([len(values) >> k for k in range(len(values).bit_length())][::-1])
    start, stop = edges[:-1], edges[1:]
    means = np.array([values[a:b].mean(axis=0) for a, b in zip(start, stop, strict=True)])
    samples = values.shape[1]
    if samples > 1:
        error = _standard_error(means)
        trusted = True
    else:
        error, trusted = _stationary_errors(values[start[-1] :, 0], stop - start)
    pairs = list(combinations(range(len(means) - _TESTED, len(means)), 2))
    scores = [
        _score(means[b] - means[a], None if samples > 1 else float(np.hypot(error[a], error[b]))) for a, b in pairs
    ]
    worst = int(np.argmax(scores)) if trusted else 0
    bins = [f"[{start[k]}, {stop[k]})" for k in pairs[worst]]
    limit = float(stdtrit(samples - 1, ndtr(LIMIT))) if samples > 1 else LIMIT
    verdict = _verdict(trusted, scores[worst], limit, bins)
    return Equilibration(start, stop, means.mean(axis=1), error, trusted and scores[worst] <= limit, verdict)


def _standard_error(values: Array) -> Array:
    """Of the mean along the last axis."""
    return np.asarray(values.std(axis=-1, ddof=1) / np.sqrt(values.shape[-1]))


def _stationary_errors(last: Array, length: npt.NDArray[np.int64]) -> tuple[Array, bool]:
    """Errors of the means of bins of a stationary series of which ``last`` is a part; whether its tau is trusted."""
    time = integrated_time(last)
    sigma = time.mean_error * np.sqrt(len(last) / (2 * time.tau))
    return np.asarray(sigma * np.minimum(np.sqrt(2 * time.tau / length), 1)), bool(time.trusted)


def _score(difference: Array, error: float | None) -> float:
    """Mean difference over its error, in absolute value; without an error, that of the samples."""
    mean = abs(float(difference.mean()))
    if error is None:
        error = float(_standard_error(difference))
    if mean == 0:
        return 0.0
    return mean / error if error else np.inf


def _verdict(trusted: bool, score: float, limit: float, bins: list[str]) -> str:
    if not trusted:
        return (
            f"undecided: the last half of the run is constant or shorter than {SHORTEST} autocorrelation times, "
            "so that its errors are not known; measure longer"
        )
    apart = f"the averages over measurements {bins[0]} and {bins[1]} differ by {score:.2g} standard errors"
    if score > limit:
        return f"not equilibrated: {apart}, more than {limit:.3g}"
    return f"equilibrated: of the last three bins {apart}, the others by no more; up to {limit:.3g} pass"
