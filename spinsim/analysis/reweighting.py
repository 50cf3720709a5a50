"""Averages at temperatures near those that were simulated, from stored energies.

beta = 1/T in the inverse of the energies' unit; energies are totals, not per site. All weights are formed from
logarithms whose largest is 0, so that nothing overflows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from spinsim.analysis.autocorrelation import integrated_time
from spinsim.errors import InputError
from spinsim.inputs.checks import finite_array, real_array

Array = npt.NDArray[np.float64]

FEWEST: Final = 100  # effective samples in units of tau


@dataclass(frozen=True)
class Reweighted:
    """An observable at other temperatures; arrays of the shape of ``new_beta``."""

    mean: Array  # reweighted average
    error: Array
    """Its standard error. Where few effective samples are left it is too small, as the mean is then off."""
    effective_samples: Array
    """Kish's (sum of w)^2 / (sum of w^2), at most the number of measurements; few where the histograms hardly
    overlap."""
    trusted: npt.NDArray[np.bool_]
    """Whether tau behind the error is trusted and there are 100 tau effective samples or more. Refuse others."""


def weights(energy: npt.ArrayLike, beta: float, new_beta: float) -> Array:
    """Weights exp(-(beta' - beta) E) of measurements made at beta, scaled to mean 1; the energies' shape.

    An average at beta' is the mean of w A. For functions of several such means hand w A and w B together to
    ``jackknife``, with mean(w A) / mean(w) in the function, as a bin's weights do not have mean 1.

    Source: A. M. Ferrenberg, R. H. Swendsen, Phys. Rev. Lett. 61, 2635 (1988).
    """
    values = finite_array(energy, "energy", least=1)
    if not np.isfinite([beta, new_beta]).all():
        raise InputError(f"beta {beta} or {new_beta} is not finite: give finite inverse temperatures")
    return _normalised((beta - new_beta) * (values - values.mean()))


def reweight(energy: npt.ArrayLike, observable: npt.ArrayLike, beta: float, new_beta: npt.ArrayLike) -> Reweighted:
    """Single-histogram reweighting of an observable from beta to nearby inverse temperatures.

    The error is that of the series w (A - mean'), the mean's linearised fluctuation, with its own autocorrelation time.

    Source: A. M. Ferrenberg, R. H. Swendsen, Phys. Rev. Lett. 61, 2635 (1988); effective samples L. Kish, Survey
    Sampling (Wiley, 1965); errors U. Wolff, Comput. Phys. Commun. 156, 143 (2004).

    Args:
        energy: Total energies measured at ``beta``, in order of time, of shape (n,) or (n, chains).
        observable: What was measured with them, of the same shape.
        beta: Inverse temperature of the measurements.
        new_beta: Inverse temperatures to reweight to, any shape.
    """
    energies, values = finite_array(energy, "energy"), finite_array(observable, "observable")
    if energies.shape != values.shape or energies.ndim > 2:
        raise InputError(
            f"energy has shape {energies.shape} and observable {values.shape}: give both the same, (n,) or (n, chains)"
        )
    targets = real_array(new_beta, "new_beta")
    chain_axis = 1 if energies.ndim == 2 else None
    mean, error, effective, trusted = [], [], [], []
    for target in targets.flat:
        weight = weights(energies, beta, float(target))
        average = float((weight * values).mean())
        time = integrated_time(weight * (values - average), chain_axis)
        mean.append(average)
        error.append(float(time.mean_error))
        effective.append(_kish(weight))
        trusted.append(bool(time.trusted and effective[-1] >= FEWEST * time.tau))
    return Reweighted(*(np.array(column).reshape(targets.shape) for column in (mean, error, effective, trusted)))


def _normalised(logarithms: Array) -> Array:
    """Exponentials of the logarithms, scaled to mean 1."""
    weight = np.exp(logarithms - logarithms.max())
    return np.asarray(weight / weight.mean())


def _kish(weight: Array) -> float:
    """Effective samples of weights of mean 1."""
    return float(weight.size / (weight**2).mean())
