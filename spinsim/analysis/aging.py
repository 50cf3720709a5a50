"""Averages of replicas out of equilibrium at each measurement, with errors, and coherence lengths from C4(r)."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from spinsim.analysis.jackknife import jackknife, standard_error
from spinsim.analysis.runs import FEWEST_FOR_ERRORS, Array

_FEWEST_IN_FIT: Final = 3  # distances from which the tail of C4(r) is extrapolated


class Mean(NamedTuple):
    """Averages at each measurement."""

    value: Array
    error: Array  # standard error; NaN from fewer than four samples, or fewer than four replicas of a single one


def mean_of(values: Array) -> Mean:
    """Return the averages of values (measurements, samples, replicas, ...) over samples and replicas."""
    each = _independent(values)
    unknown = np.full(each[:, 0].shape, np.nan)
    return Mean(each.mean(axis=1), standard_error(each, axis=1) if each.shape[1] >= FEWEST_FOR_ERRORS else unknown)


def _independent(values: Array) -> Array:
    """Return averages of each sample, or the values of each replica of a single sample, on axis 1."""
    return np.asarray(values.mean(axis=2) if values.shape[1] > 1 else values[:, 0])


def _tail(c4: Array, r: Array, weight: Array) -> Array:
    """Return A r^-0.4 exp(-(r / l)^1.5), fitted to log C4 (measurements, r); 0 where that does not fall or fit."""
    power = np.maximum(r, 1) ** -0.4
    x, y = np.broadcast_to(r**1.5, c4.shape), np.log(np.where(weight > 0, c4 / power, 1.0))
    some = (weight > 0).sum(axis=1, keepdims=True) >= _FEWEST_IN_FIT
    x_mean, y_mean = (np.average(z, axis=1, weights=np.where(some, weight, 1.0))[:, None] for z in (x, y))
    both, square = ((weight * (x - x_mean) * (z - m)).sum(axis=1, keepdims=True) for z, m in ((y, y_mean), (x, x_mean)))
    slope = np.divide(both, square, out=np.zeros(both.shape), where=some)
    return np.where(slope < 0, power * np.exp(np.minimum(slope, 0) * (x - x_mean) + y_mean), 0.0)


def coherence_lengths(correlation: Array) -> tuple[Mean, Mean]:
    """Return xi_12 and xi_23 in lattice units; xi_{k,k+1} = I_{k+1} / I_k with I_k the sum over r of r^k C4(r).

    ``correlation`` is C4, (measurements, samples, groups, distances). From the first r on at which the average C4(r) is
    below three times its error, a tail fitted to the farther half of the distances before takes its place; lengths are
    NaN if only r = 1 is left. Source: F. Belletti et al. (Janus), J. Stat. Phys. 135, 1121 (2009), equations 31 to 34.
    """
    each, r, mean = _independent(correlation), np.arange(correlation.shape[-1], dtype=np.float64), mean_of(correlation)
    used = np.cumsum(mean.value <= np.nan_to_num(3 * mean.error), axis=1) == 0
    far = used & (r >= np.maximum(used.sum(axis=1, keepdims=True) / 2, 1)) & (mean.error > 0)
    weight = np.divide(mean.value, mean.error, out=np.zeros(far.shape), where=far) ** 2

    def lengths(c4: Array) -> Array:
        whole = np.where(used, c4, _tail(c4, r, weight))
        first, second, third = ((whole * r**k).sum(axis=1) for k in (1, 2, 3))
        enough = np.where(used[:, 2:3].any(axis=1), 1.0, np.nan)
        return np.stack([second / (enough * first), third / (enough * second)])

    value, known = lengths(mean.value), each.shape[1] >= FEWEST_FOR_ERRORS
    error = jackknife(lengths, np.swapaxes(each, 0, 1)).error if known else np.full(value.shape, np.nan)
    return Mean(value[0], error[0]), Mean(value[1], error[1])
