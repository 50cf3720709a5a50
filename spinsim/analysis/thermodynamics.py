"""Energy, specific heat and magnetisation against temperature, with error bars.

Replicas of a sample are independent at every step, so errors over them need no autocorrelation time. With several
samples the error is that of the sample-to-sample scatter, which contains the thermal one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from spinsim.result import AnnealResult

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Thermodynamics:
    """Curves of shape (steps,), per site; errors are NaN where a single replica of a single sample allows none.

    Attributes:
        temperature: In the unit of the couplings, k_B = 1.
        energy: Mean energy per site, likewise.
        energy_error: Its standard error.
        specific_heat: (<E^2> - <E>^2) / (N T^2) in k_B.
        specific_heat_error: Its standard error (jackknife).
        magnetization: Mean |m| per site.
        magnetization_error: Its standard error.
    """

    temperature: Array
    energy: Array
    energy_error: Array
    specific_heat: Array
    specific_heat_error: Array
    magnetization: Array
    magnetization_error: Array


def thermodynamics(result: AnnealResult) -> Thermodynamics:
    """Curves of an annealing run."""
    sites = result.model.sites
    energy = result.energy / sites
    scale = sites / result.temperature**2
    heat, heat_error = _variance(energy)
    return Thermodynamics(
        result.temperature,
        *_mean(energy),
        heat * scale,
        heat_error * scale,
        *_mean(np.abs(result.magnetization) / sites),
    )


def _mean(values: Array) -> tuple[Array, Array]:
    """Mean and standard error of values (steps, samples, replicas)."""
    if values.shape[1] > 1:
        return _mean_of_samples(values.mean(axis=2))
    return _mean_of_samples(values[:, 0])


def _mean_of_samples(values: Array) -> tuple[Array, Array]:
    """Mean and standard error of independent values (steps, count)."""
    count = values.shape[1]
    if count < 2:
        return values.mean(axis=1), np.full(len(values), np.nan)
    return values.mean(axis=1), values.std(axis=1, ddof=1) / np.sqrt(count)


def _variance(values: Array) -> tuple[Array, Array]:
    """Mean over samples of the variance over replicas, and its error: over samples, or by jackknife over replicas."""
    steps, samples, replicas = values.shape
    if replicas < 2:
        return np.full(steps, np.nan), np.full(steps, np.nan)
    variance = values.var(axis=2, ddof=1)
    if samples > 1:
        return _mean_of_samples(variance)
    if replicas < 3:
        return variance[:, 0], np.full(steps, np.nan)
    centred = values[:, 0] - values[:, 0].mean(axis=1, keepdims=True)
    square_sum = (centred**2).sum(axis=1, keepdims=True)
    left_out = (square_sum - centred**2 * replicas / (replicas - 1)) / (replicas - 2)
    spread = left_out - left_out.mean(axis=1, keepdims=True)
    return variance[:, 0], np.sqrt((replicas - 1) / replicas * (spread**2).sum(axis=1))
