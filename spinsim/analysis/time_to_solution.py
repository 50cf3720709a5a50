"""Success probability of anneals, and the time to find a solution with probability 99 %, with confidence intervals.

Sources: T. F. Rønnow et al., Science 345, 420 (2014), for the time to solution; J. King et al., arXiv:1508.05087
(2015), for targets that need not be the optimum; L. D. Brown, T. T. Cai, A. DasGupta, Statist. Sci. 16, 101 (2001), for
Jeffreys' interval of a probability.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim.errors import InputError
from spinsim.inputs.arguments import public

CONFIDENCE: Final = 0.6827  # level of an interval: one standard error to either side of a normal estimate
WANTED: Final = 0.99


class Estimate(NamedTuple):
    """A number with the ends of its interval, which holds the true value with probability ``CONFIDENCE``."""

    value: float  # point estimate
    low: float  # lower end
    high: float  # upper end, infinite where there is none


@public
def success_probability(hits: int, trials: int, confidence: float = CONFIDENCE) -> Estimate:
    """Success probability from the number of successes in independent trials, with Jeffreys' interval.

    The ends are quantiles of Beta(hits + 1/2, trials - hits + 1/2), but 0 without a success, and 1 without a failure.

    Raises:
        InputError: for impossible numbers of hits or trials, and a confidence outside (0, 1).
    """
    if not 0 <= hits <= trials or trials < 1:
        raise InputError(f"{hits} hits in {trials} trials make no sense: give at least one trial, and no more hits")
    if not 0 < confidence < 1:
        raise InputError(f"confidence {confidence} is out of range: give a probability between 0 and 1")

    from scipy.special import betaincinv  # which takes long to load

    a, b = hits + 0.5, trials - hits + 0.5
    low = float(betaincinv(a, b, (1 - confidence) / 2)) if hits else 0.0
    high = float(betaincinv(a, b, (1 + confidence) / 2)) if hits < trials else 1.0
    return Estimate(hits / trials, low, high)


def side_by_side(probability: Estimate, replicas: int) -> Estimate:
    """Probability that at least one of several independent replicas succeeds, 1 - (1 - p)^replicas."""
    if replicas < 1:
        raise InputError(f"{replicas} replicas are too few: give at least 1")
    return Estimate(*(1.0 if p >= 1 else -math.expm1(replicas * math.log1p(-p)) for p in probability))


def repetitions(probability: float, wanted: float = WANTED) -> float:
    """Number of anneals that find a solution with probability ``wanted``, if each succeeds with ``probability``.

    ln(1 - wanted) / ln(1 - p), not rounded; infinite for p = 0, else at least 1, as part of an anneal succeeds less
    often than all of it.
    """
    if probability <= 0:
        return math.inf
    return 1.0 if probability >= wanted else math.log1p(-wanted) / math.log1p(-probability)


@public
def time_to_solution(seconds: npt.ArrayLike, probability: Estimate, wanted: float = WANTED) -> Estimate:
    """Time to solution (TTS), in which successive anneals find a solution with probability ``wanted``.

    Without a success the value and the upper end are infinite, and the lower end is a bound from the upper end of the
    probability. Where every anneal succeeds, the value is the time of one anneal.

    Args:
        seconds: Time of each anneal, or their mean.
        probability: Probability that an anneal succeeds, with all its replicas together (``side_by_side``).
        wanted: Probability with which a solution is to be found.

    Returns:
        Seconds. Each end has the standard error of the mean time and the interval of the probability, added in
        quadrature.

    Raises:
        InputError: for times that are not positive and finite, and a probability out of range.
    """
    if not 0 < wanted < 1:
        raise InputError(f"probability {wanted} of a solution is out of range: give one between 0 and 1")
    times = np.atleast_1d(np.asarray(seconds, np.float64))
    if not times.size or not np.all(np.isfinite(times) & (times > 0)):
        raise InputError("times of anneals must be positive and finite: give the seconds of each")
    mean = float(times.mean())
    spread = float(times.std(ddof=1)) / math.sqrt(times.size) / mean if times.size > 1 else 0.0
    many = [repetitions(p, wanted) for p in (probability.value, probability.high, probability.low)]
    value, low, high = (mean * number for number in many)
    if math.isinf(value):
        return Estimate(value, low / (1 + spread), math.inf)
    return Estimate(
        value,
        max(0.0, value - math.hypot(value - low, value * spread)),
        value + math.hypot(high - value, value * spread) if math.isfinite(high) else math.inf,
    )


def in_words(estimate: Estimate, form: str | Callable[[float], str]) -> str:
    """An estimate with its interval as text; the lower bound alone where the value is infinite."""
    show = form.format if isinstance(form, str) else form
    if math.isinf(estimate.value):
        return f"> {show(estimate.low)}"
    ends = (show(end) if math.isfinite(end) else "unknown" for end in estimate[1:])
    return f"{show(estimate.value)} [{', '.join(ends)}]"


def seconds_in_words(seconds: float) -> str:
    if seconds < 1e-3:
        return f"{1e6 * seconds:.3g} us"
    return f"{1e3 * seconds:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"
