"""Has a run reached equilibrium? Averages over its last half, the quarter before, the eighth before that, and so on."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit

from spinsim.analysis.autocorrelation import SHORTEST, IntegratedTime, integrated_time
from spinsim.errors import InputError
from spinsim.inputs.checks import finite_array

Array = npt.NDArray[np.float64]

FALSE_ALARMS: Final = 0.05  # share of equilibrated series that may be called not equilibrated
TESTED: Final = 3  # bins
FEWEST_SAMPLES: Final = 3
"""Samples whose scatter is an error that drifts can be tested with; fewer are tested one by one."""
FEW_SAMPLES: Final = 10
"""Samples below which errors over samples are known to no better than a quarter."""


@dataclass(frozen=True)
class Equilibration:
    """An observable in bins [n / 2^k, n / 2^(k - 1)), earliest first; arrays of shape (bins,).

    Attributes:
        start: First row of the series in a bin.
        stop: Row after its last.
        mean: Average over the bin, and over the samples.
        error: Its standard error.
        equilibrated: Whether the last three bins agree; False also where that cannot be told.
        verdict: The same in words, with what decided it; begins with "equilibrated", "not equilibrated", "undecided".
    """

    start: npt.NDArray[np.int64]
    stop: npt.NDArray[np.int64]
    mean: Array
    error: Array
    equilibrated: bool
    verdict: str

    @property
    def drifts(self) -> bool:
        """Whether the last three bins disagree."""
        return self.verdict.startswith("not")


class _Test(NamedTuple):
    """The largest difference of two bins in its standard errors, the limit that it must not pass, and the bins."""

    score: float
    limit: float
    pair: tuple[int, int]


def equilibration(
    series: npt.ArrayLike,
    false_alarms: float = FALSE_ALARMS,
    together: int = FEWEST_SAMPLES,
    least_window: npt.ArrayLike = 0,
) -> Equilibration:
    """Compare the averages of an observable over logarithmic bins of a run.

    Tested is this: for each two of the last three bins, [n/2, n), [n/4, n/2) and [n/8, n/4), the difference of their
    averages is at most so many of its standard errors that all three pass in a share 1 - ``false_alarms`` of
    equilibrated series, or in more. The limit is that of Student's t for a third of ``false_alarms``, with as many
    degrees of freedom as the error has. With three samples or more, differences are taken sample by sample, and their
    error is that of the mean over the samples, of samples - 1 degrees of freedom. Fewer are tested one by one, and
    share ``false_alarms``: each bin's error is sigma sqrt(2 tau / length) with sigma and tau of the last bin, as the
    whole of a stationary series has them, and errors add in squares; the n / 2 measurements and the window W of tau
    make n / 2 / (2 W + 1) degrees of freedom, half as many where a least window tells of a slow process beside fast
    ones. The verdict is withheld where such a tau is not trusted. An observable
    that vanishes by symmetry tests nothing: take the energy, q^2 or the link overlap at the lowest temperature.
    Fractions of n are rounded down, and row 0 is in no bin.

    Sources: binning as in H. G. Katzgraber, M. Koerner, A. P. Young, Phys. Rev. B 73, 224432 (2006); the variance of
    sigma^2 tau, 2 (2 W + 1) / n of its square, is eq. 42 of U. Wolff, Comput. Phys. Commun. 156, 143 (2004).

    Args:
        series: Measurements from the very start of the run, of shape (n,) for one sample or (n, samples), replicas
            averaged.
        false_alarms: Probability that an equilibrated series is called not equilibrated, at most.
        together: Number of samples from which on their scatter is the error.
        least_window: As ``integrated_time`` takes it, (samples,).

    Raises:
        InputError: for fewer than 8 measurements, more than two axes and values that are not finite.
    """
    values = finite_array(series, "series", least=8)
    if values.ndim > 2:
        raise InputError(f"series has shape {values.shape}: give (measurements,) or (measurements, samples)")
    values = values.reshape(len(values), -1)
    start, stop = bin_edges(len(values))
    means = np.array([values[a:b].mean(axis=0) for a, b in zip(start, stop, strict=True)])
    last, samples = values[start[-1] :], values.shape[1]
    error = _standard_error(means) if samples > 1 else _stationary_errors(last[:, 0], stop - start)
    level = false_alarms / TESTED
    if samples < together:
        time, slow = integrated_time(last, least_window=least_window), bool(np.any(least_window))
        tests = [_test_one(time, k, slow, means[:, k], stop - start, level / samples) for k in range(samples)]
    else:
        tests = [_test_samples(means, level)]
    undecided = any(np.isnan(test.score) for test in tests)
    worst = max(tests, key=lambda test: test.score / test.limit)  # of no use where one is NaN
    passed = not undecided and worst.score <= worst.limit
    bins = [f"[{start[k]}, {stop[k]})" for k in worst.pair]
    verdict = _UNDECIDED if undecided else _verdict(worst, bins)
    return Equilibration(start, stop, means.mean(axis=1), error, passed, verdict)


def bin_edges(length: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """First rows of the logarithmic bins of a series, earliest bin first, and the rows after their last ones."""
    edges = np.array([length >> k for k in range(length.bit_length())][::-1])
    return edges[:-1], edges[1:]


def _test_samples(means: Array, level: float) -> _Test:
    """Test averages (bins, samples) with the errors that the scatter of the samples shows."""
    samples = means.shape[1]
    scores = {}
    for a, b in _pairs(len(means)):
        difference = means[b] - means[a]
        scores[a, b] = _ratio(abs(float(difference.mean())), float(_standard_error(difference)))
    return _largest(scores, _limit(samples - 1, level))


def _test_one(
    time: IntegratedTime, sample: int, slow: bool, means: Array, length: npt.NDArray[np.int64], level: float
) -> _Test:
    """Test the averages (bins,) of one sample with the sigma and tau of its last bin; NaN where tau is not trusted."""
    last = length[-1]
    limit = _limit(last / (2 * float(time.window[sample]) + 1) / (2 if slow else 1), level)
    variance = float(time.mean_error[sample]) ** 2 * last  # of the average of one measurement: bins exceed tau
    scores = {}
    for a, b in _pairs(len(means)):
        error = np.sqrt(variance * (1 / length[a] + 1 / length[b])) if time.trusted[sample] else np.nan
        scores[a, b] = _ratio(abs(float(means[b] - means[a])), float(error))
    return _largest(scores, limit)


def _pairs(bins: int) -> list[tuple[int, int]]:
    """Each two of the last three bins."""
    return list(combinations(range(bins - TESTED, bins), 2))


def _limit(freedom: float, level: float) -> float:
    """What |t| passes with probability ``level``."""
    return float(stdtrit(freedom, 1 - level / 2))


def _ratio(difference: float, error: float) -> float:
    """A difference in standard errors."""
    if np.isnan(error) or error:
        return difference / error
    return np.inf if difference else 0.0


def _largest(scores: dict[tuple[int, int], float], limit: float) -> _Test:
    pair = max(scores, key=lambda pair: scores[pair])
    return _Test(scores[pair], limit, pair)


def _standard_error(values: Array) -> Array:
    """Of the mean along the last axis."""
    return np.asarray(values.std(axis=-1, ddof=1) / np.sqrt(values.shape[-1]))


def _stationary_errors(last: Array, length: npt.NDArray[np.int64]) -> Array:
    """Errors of the means of bins of a stationary series of which ``last`` is a part."""
    time = integrated_time(last)
    sigma = time.mean_error * np.sqrt(len(last) / (2 * time.tau))
    return np.asarray(sigma * np.minimum(np.sqrt(2 * time.tau / length), 1))


_UNDECIDED: Final = (
    f"undecided: the last half of the run is constant or shorter than {SHORTEST} autocorrelation times, "
    "so that its errors are not known; measure longer"
)


def _verdict(test: _Test, bins: list[str]) -> str:
    apart = f"the averages over measurements {bins[0]} and {bins[1]} differ by {test.score:.2g} standard errors"
    if test.score > test.limit:
        return f"not equilibrated: {apart}, more than {test.limit:.3g}"
    return f"equilibrated: of the last three bins {apart}, the others by no more; up to {test.limit:.3g} pass"
