"""Averages of replicas out of equilibrium at each measurement, with errors, and coherence lengths from C4(r)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from spinsim.analysis.jackknife import jackknife, standard_error
from spinsim.analysis.runs import FEWEST_FOR_ERRORS, Array


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


def coherence_lengths(correlation: Array) -> tuple[Mean, Mean]:
    """Return xi_12 and xi_23 in lattice units; xi_{k,k+1} = I_{k+1} / I_k with I_k the sum over r of r^k C4(r).

    ``correlation`` is C4, (measurements, samples, groups, distances). The sums end before the first r at which the
    average C4(r) is below three times its error; lengths are NaN if only r = 1 is left. Source: F. Belletti et al.
    (Janus), J. Stat. Phys. 135, 1121 (2009), equations 31 to 34, without their extrapolation of the tail.
    """
    each, r, mean = _independent(correlation), np.arange(correlation.shape[-1], dtype=np.float64), mean_of(correlation)
    used = np.cumsum(mean.value <= np.nan_to_num(3 * mean.error), axis=1) == 0

    def lengths(c4: Array) -> Array:
        first, second, third = (np.where(used, c4 * r**k, 0.0).sum(axis=1) for k in (1, 2, 3))
        enough = np.where(used[:, 2:3].any(axis=1), 1.0, np.nan)
        return np.stack([second / (enough * first), third / (enough * second)])

    value, known = lengths(mean.value), each.shape[1] >= FEWEST_FOR_ERRORS
    error = jackknife(lengths, np.swapaxes(each, 0, 1)).error if known else np.full(value.shape, np.nan)
    return Mean(value[0], error[0]), Mean(value[1], error[1])
