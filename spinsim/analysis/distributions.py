"""Student's t and Fisher's F from the incomplete beta function; loading SciPy's would take longer than a small run.

Source of the continued fraction: W. H. Press et al., Numerical Recipes (Cambridge, 2007), section 6.4.
"""

from __future__ import annotations

from functools import lru_cache
from math import exp, lgamma, log, log1p, pi
from statistics import NormalDist
from typing import Final

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

_LARGE: Final = 16.0  # argument from which on Stirling's series is exact to rounding
_STIRLING: Final = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)
_TINY: Final = 1e-300
_ROUNDING: Final = 1e-16
_MOST_TERMS: Final = 100_000
_MOST_STEPS: Final = 200


def student_tail(freedom: float, t: float) -> float:
    """Probability that Student's t of ``freedom`` > 0 degrees exceeds ``t`` >= 0."""
    if not (freedom > 0 and t >= 0):
        return float("nan")
    whole = freedom + t * t
    return _incomplete_beta(freedom / 2, 0.5, freedom / whole, t * t / whole) / 2


def student_limit(freedom: npt.ArrayLike, probability: float) -> Array:
    """Limits that Student's t exceeds with a ``probability`` below 1/2, of the shape of ``freedom``."""
    degrees = np.asarray(freedom, np.float64)
    limits = [_limit(one, probability) for one in degrees.ravel().tolist()]
    return np.array(limits).reshape(degrees.shape)


def fisher_tail(first: float, second: npt.ArrayLike, ratio: npt.ArrayLike) -> Array:
    """Probability that Fisher's F exceeds each ``ratio``; NaN where the ratio is negative or NaN."""
    freedom, ratios = np.broadcast_arrays(np.asarray(second, np.float64), np.asarray(ratio, np.float64))
    found = []
    for b, f in zip(freedom.ravel().tolist(), ratios.ravel().tolist(), strict=True):
        whole = b + first * f
        known = b > 0 and f >= 0 and whole < np.inf
        tail = _incomplete_beta(b / 2, first / 2, b / whole, first * f / whole) if known else np.nan
        found.append(0.0 if b > 0 and f == np.inf else tail)
    return np.array(found).reshape(ratios.shape)


def normal_limit(probability: float) -> float:
    """Limit that a standard normal number exceeds with a ``probability``."""
    return -NormalDist().inv_cdf(probability)


@lru_cache(maxsize=1024)
def _limit(freedom: float, probability: float) -> float:
    """Find the limit by Newton steps, and by bisection where a step leaves the interval that holds the limit."""
    if not freedom > 0:
        return float("nan")
    low, high, t = 0.0, np.inf, max(normal_limit(probability), 0.1)
    scale = exp(_log_ratio(freedom / 2, 0.5) - 0.5 * log(freedom * pi))
    for _ in range(_MOST_STEPS):
        tail = student_tail(freedom, t)
        low, high = (t, high) if tail > probability else (low, t)
        slope = scale * exp(-(freedom + 1) / 2 * log1p(t * t / freedom))
        # log(tail) is nearly linear in log(t)
        step = tail * log(tail / probability) / (slope * t) if tail > 0 else -1.0
        closer = t * exp(min(max(step, -5.0), 5.0))
        if not low < closer < high:
            closer = (low + high) / 2 if high < np.inf else 2 * t
        if abs(closer - t) <= _ROUNDING * t or closer in (low, high):
            break
        t = closer
    return t


def _incomplete_beta(a: float, b: float, x: float, y: float) -> float:
    """Regularised incomplete beta function I_x(a, b); ``y`` is 1 - x."""
    if x <= 0 or y <= 0:
        return 0.0 if x <= 0 else 1.0
    if x > (a + 1) / (a + b + 2):
        return 1 - _incomplete_beta(b, a, y, x)
    # logarithms from the smaller of x and y are exact to the last bit
    powers = a * (log(x) if x < y else log1p(-y)) + b * (log(y) if y < x else log1p(-x))
    front = exp(powers + _log_ratio(max(a, b), min(a, b)) - lgamma(min(a, b))) / a
    c, d = 1.0, 1 / _not_zero(1 - (a + b) * x / (a + 1))
    fraction = d
    for m in range(1, _MOST_TERMS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d, c = 1 / _not_zero(1 + term * d), _not_zero(1 + term / c)
            fraction *= c * d
        if abs(c * d - 1) < _ROUNDING:
            break
    return front * fraction


def _not_zero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY


def _log_ratio(a: float, b: float) -> float:
    """Logarithm of Gamma(a + b) / Gamma(a), exact to rounding however large a is."""
    if a < _LARGE:
        return lgamma(a + b) - lgamma(a)

    def rest(z: float) -> float:
        return sum(c / z ** (2 * k + 1) for k, c in enumerate(_STIRLING))

    return (a + b - 0.5) * log1p(b / a) + b * (log(a) - 1) + rest(a + b) - rest(a)
