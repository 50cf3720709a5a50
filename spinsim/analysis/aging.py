"""Averages of replicas out of equilibrium at each measurement, with errors, and coherence lengths from C4(r)."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from spinsim.analysis.jackknife import jackknife, standard_error
from spinsim.analysis.runs import Array

_SIGNAL: Final = 3.0  # C4(r) in units of its error below which the integrals end


class Mean(NamedTuple):
    """Averages at each measurement."""

    value: Array
    error: Array  # standard error; NaN if there is a single sample of a single replica


class CoherenceLengths(NamedTuple):
    """Coherence lengths at each measurement, in lattice units, (measurements,)."""

    xi_12: Array
    xi_12_error: Array  # by jackknife; NaN if there is a single sample of a single group of replicas
    xi_23: Array
    xi_23_error: Array


def independent(values: Array) -> Array:
    """Return independent averages, (measurements, samples, ...), from (measurements, samples, replicas, ...).

    Samples are averaged over their replicas. The replicas of a single sample are independent themselves.
    """
    return values.mean(axis=2) if values.shape[1] > 1 else values[:, 0]


def mean_of(values: Array) -> Mean:
    """Return the averages of values (measurements, samples, replicas, ...) over samples and replicas."""
    each = independent(values)
    nan = np.full(each.shape[:1] + each.shape[2:], np.nan)
    return Mean(each.mean(axis=1), standard_error(each, axis=1) if each.shape[1] > 1 else nan)


def coherence_lengths(correlation: Array) -> CoherenceLengths:
    """Return xi_{k,k+1} = I_{k+1} / I_k with I_k the sum over r of r^k C4(r), k = 1 and 2.

    ``correlation`` is C4, (measurements, samples, groups, distances). The sums end before the first r at which the
    average C4(r) is below three times its error; the tail beyond is not extrapolated. Lengths are NaN if only r = 1
    is left.

    Source: F. Belletti et al. (Janus), J. Stat. Phys. 135, 1121 (2009), equations 31 to 34.
    """
    each, r = independent(correlation), np.arange(correlation.shape[-1], dtype=np.float64)
    mean, error = mean_of(correlation)
    lost = mean < _SIGNAL * error if each.shape[1] > 1 else mean <= 0
    used = np.cumsum(lost, axis=1) == 0

    def lengths(c4: Array) -> Array:
        first, second, third = (np.where(used, c4 * r**k, 0.0).sum(axis=1) for k in (1, 2, 3))
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(used[:, 1:].sum(axis=1) > 1, np.stack([second / first, third / second]), np.nan)

    value, errors = lengths(mean), np.full((2, len(mean)), np.nan)
    if each.shape[1] > 1:
        known = np.isfinite(value).all(axis=0)
        errors[:, known] = jackknife(lengths, np.swapaxes(each, 0, 1)).error[:, known]
    return CoherenceLengths(value[0], errors[0], value[1], errors[1])
