"""Metropolis acceptance as 64-bit integer thresholds, from one exp of plain IEEE operations.

A flip that costs energy dE > 0 is accepted when a 64-bit uniform integer lies below floor(2^64 exp(-beta dE)). A flip
with dE < 0 is always accepted, a flip with dE = 0 with probability ``zero_acceptance``: if such flips were always
accepted, checkerboard dynamics would be reducible (walls every two sites would be closed orbits).

``exp_reduced`` uses no library function and no fused multiply-add, so NumPy, Numba and CUDA agree to the bit.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from spinsim.errors import InputError
from spinsim.machine.compiled import inlined

ZERO_ACCEPTANCE: Final = 1 - 2.0**-6
LARGEST_EXPONENT: Final = 45.0  # exp(-45) < 2^-64: beyond it the threshold is 0
NOTHING_BITS: Final = 30
NEARLY_NOTHING: Final = 2.0**-NOTHING_BITS  # far above the rounding error of a cost that is a sum of two terms

_LOG2_E: Final = 1.4426950408889634
_LN2_HIGH: Final = 0.6931471803691238  # 33 bits, so that its products with small integers are exact
_LN2_LOW: Final = 1.9082149292705877e-10
ROUND: Final = 6755399441055744.0  # 1.5 * 2^52: adding and subtracting it rounds to an integer


@inlined
def exp_reduced(y: Any) -> tuple[Any, Any]:
    """Return (r, n) with exp(y) = r * 2^n, n a whole float; relative error < 2^-52 for |y| <= ``LARGEST_EXPONENT``.

    Taylor's series of degree 13 on |y - n ln 2| <= ln(2) / 2, by Horner's rule.
    """
    n = (y * _LOG2_E + ROUND) - ROUND
    x = (y - n * _LN2_HIGH) - n * _LN2_LOW
    r = x * (1.0 / 6227020800.0) + (1.0 / 479001600.0)
    r = r * x + (1.0 / 39916800.0)
    r = r * x + (1.0 / 3628800.0)
    r = r * x + (1.0 / 362880.0)
    r = r * x + (1.0 / 40320.0)
    r = r * x + (1.0 / 5040.0)
    r = r * x + (1.0 / 720.0)
    r = r * x + (1.0 / 120.0)
    r = r * x + (1.0 / 24.0)
    r = r * x + (1.0 / 6.0)
    r = r * x + 0.5
    r = r * x + 1.0
    return r * x + 1.0, n


def natural_log(x: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Natural logarithm of positive numbers, also from plain IEEE operations.

    The series of 2 artanh((m - 1) / (m + 1)) for m = x 2^-n between 1/sqrt(2) and sqrt(2), by Horner's rule.
    """
    m, n = np.frexp(x)
    low = m < 0.7071067811865476
    m, n = np.where(low, 2 * m, m), (n - low).astype(np.float64)
    s = (m - 1) / (m + 1)
    square, series = s * s, np.zeros_like(m)
    for odd in range(25, 0, -2):
        series = series * square + 1.0 / odd
    return np.asarray(n * _LN2_HIGH + (n * _LN2_LOW + 2 * s * series))


def acceptance(
    cost: npt.NDArray[np.int64], beta: npt.ArrayLike, zero_acceptance: float
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.uint64]]:
    """Return a mask of the flips that are always accepted, and the 64-bit thresholds of the others.

    ``cost`` is in quanta, ``beta`` is multiplied by the quantum, and both broadcast. Flips of cost 0 are accepted with
    probability ``zero_acceptance``.
    """
    with np.errstate(over="ignore"):  # infinity is large enough
        exponent = np.minimum(np.multiply(beta, np.maximum(cost, 0).astype(np.float64)), LARGEST_EXPONENT)
    mantissa, power = exp_reduced(-exponent)
    probability = np.where(cost == 0, zero_acceptance, np.ldexp(mantissa, power.astype(np.int64)))
    return _as_thresholds(np.where(cost < 0, 1.0, probability))


def acceptance_of_terms(
    costs: npt.NDArray[np.int64], beta: npt.NDArray[np.float64], zero_acceptance: float
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.uint64]]:
    """Return ``acceptance`` for an energy of two terms, each with its own inverse temperature.

    A flip that costs x = beta_0 dE_0 + beta_1 dE_1 is accepted with probability min(1, exp(-x)). The probability is
    multiplied by ``zero_acceptance`` where |x| <= ``NEARLY_NOTHING``, because terms that cancel do so only up to
    rounding. Both directions of a flip have the same |x|, so the stationary law is Boltzmann's.

    ``costs`` and ``beta`` have shapes (..., 2), which broadcast; results lack the last axis.
    """
    parts = beta * costs.astype(np.float64)
    cost = parts[..., 0] + parts[..., 1]
    mantissa, power = exp_reduced(-np.clip(cost, 0.0, LARGEST_EXPONENT))
    probability = np.ldexp(mantissa, power.astype(np.int64))
    return _as_thresholds(np.where(np.abs(cost) <= NEARLY_NOTHING, zero_acceptance * probability, probability))


def _as_thresholds(probability: npt.NDArray[np.float64]) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.uint64]]:
    """Return a mask of the probabilities that are 1, and the 64-bit thresholds of the others."""
    always = probability >= 1.0
    threshold = np.ldexp(np.where(always, 0.0, probability), 64).astype(np.uint64)
    return always, threshold


COLDEST: Final = 1e-300  # lowest temperature: its inverse is finite
HOTTEST: Final = 2.0**40  # in units of the local fields: above it nearly all flips are accepted and nothing mixes


def check_temperatures(
    temperatures: npt.ArrayLike, energy_scale: float = np.inf, zero: bool = False
) -> npt.NDArray[np.float64]:
    """Return temperatures as float64, (count,); refuse those at which nothing mixes. ``zero`` allows T = 0."""
    try:
        values = np.atleast_1d(np.asarray(temperatures, np.float64))
    except (TypeError, ValueError) as error:
        raise InputError(f"temperatures {temperatures!r} cannot be read as numbers: give a list of floats") from error
    if values.ndim != 1 or not values.size:
        raise InputError(f"temperatures have shape {values.shape}: give a list of at least one")
    bad = values[~(np.isfinite(values) & ((values >= COLDEST) | (zero & (values == 0))))]
    if bad.size:
        rule = f"give {'0 or ' if zero else ''}a positive finite number, at least {COLDEST:g}"
        raise InputError(f"temperature {bad[0]:g} is not allowed: {rule}")
    if energy_scale and values.max() > HOTTEST * energy_scale:
        raise InputError(
            f"temperature {values.max():g} is too high to mix: give at most 2^40 local fields of {energy_scale:g}"
        )
    return values


def inverse(temperature: npt.ArrayLike, quantum: float) -> npt.NDArray[np.float64]:
    """Return inverse temperatures; the one of T = 0 gives even the cost of one quantum the threshold 0."""
    values = np.asarray(temperature, np.float64)
    return np.where(values == 0, (LARGEST_EXPONENT + 1) / quantum, 1 / np.where(values == 0, 1.0, values))


def check_beta(beta: npt.ArrayLike, replicas: int) -> npt.NDArray[np.float64]:
    """Inverse temperature of each replica, shape (replicas,), from one number or one for each replica."""
    values = np.asarray(beta, np.float64)
    if values.shape not in ((), (replicas,)):
        raise InputError(f"inverse temperatures have shape {values.shape}: give a number or one for each replica")
    bad = values[~(np.isfinite(values) & (values >= 0))]
    check_one_beta(bad[0] if bad.size else 0.0)
    return np.broadcast_to(values, replicas)


def check_one_beta(beta: npt.ArrayLike) -> float:
    """Return an inverse temperature; refuse one that is infinite or negative."""
    one = float(np.asarray(beta, np.float64))
    if not 0 <= one < np.inf:
        raise InputError(f"inverse temperature {one:g} is not allowed: it must be finite and not negative")
    return one


COLDEST_TERM: Final = 1e-100  # lowest temperature where a cost is a sum of two terms, which must be finite


def check_betas(beta: npt.ArrayLike, replicas: int) -> npt.NDArray[np.float64]:
    """Inverse temperatures of both terms per replica, (replicas, 2), from one number, (replicas,), (1, 2) or all."""
    values = np.asarray(beta, np.float64)
    if values.shape in ((1, 2), (replicas, 2)):
        values = np.broadcast_to(values, (replicas, 2))
        check_beta(values.reshape(-1), values.size)
    elif values.ndim == 2:
        raise InputError(f"inverse temperatures have shape {values.shape}: give ({replicas}, 2), one for each term")
    else:
        values = np.stack([check_beta(values, replicas)] * 2, axis=-1)
    if values.max(initial=0) > 1 / COLDEST_TERM:
        raise InputError(
            f"inverse temperature {values.max():g} is too high for two terms: give at most {1 / COLDEST_TERM:g}"
        )
    return values


def check_zero_acceptance(value: float) -> float:
    if not 0 < value <= 1:
        raise InputError(f"zero acceptance {value} is not allowed: give a probability above 0 and at most 1")
    return value
