"""Series whose averages, variance and autocorrelation are known in closed form."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.signal import lfilter

Array = npt.NDArray[np.float64]


def generator(seed: int) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(seed))


def ar1(rho: float, shape: tuple[int, ...], seed: int) -> Array:
    """Stationary Gaussian series along axis 0 of mean 0, variance 1 and autocorrelation rho^t."""
    noise = generator(seed).standard_normal(shape)
    noise[1:] *= np.sqrt(1 - rho**2)
    return np.asarray(lfilter([1.0], [1.0, -rho], noise, axis=0))


def exact_tau(rho: float) -> float:
    return (1 + rho) / (2 * (1 - rho))


def rho_of(tau: float) -> float:
    """What ``exact_tau`` takes to ``tau``."""
    return (2 * tau - 1) / (2 * tau + 1)
