"""All temperatures of a ladder joined: averages at any temperature between them, and free energies.

Source: A. M. Ferrenberg, R. H. Swendsen, Phys. Rev. Lett. 63, 1195 (1989), in the limit of vanishing bin width, as in
M. R. Shirts, J. D. Chodera, J. Chem. Phys. 129, 124105 (2008).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp

from spinsim.errors import InputError
from spinsim.inputs.checks import finite_array

Array = npt.NDArray[np.float64]

_STEPS: Final = 100
_EXACT: Final = 1e-10  # of a logarithm of a partition function


@dataclass(frozen=True)
class MultiHistogram:
    """Measurements at several temperatures as one set, in which each has a weight at any temperature.

    Attributes:
        beta: Inverse temperatures of the measurements, (temperatures,).
        energy: Total energies, (..., temperatures).
        log_partition: ln Z at each of them, up to one constant: 0 at the first, (temperatures,).
    """

    beta: Array
    energy: Array
    log_partition: Array

    def log_weights(self, beta: float) -> Array:
        """Logarithms of the measurements' weights at another inverse temperature, of the energies' shape.

        Weights add up to Z there, in the unit of ``log_partition``: averages need them divided by their sum.
        """
        return np.asarray(self.log_shares(self.energy) - beta * self.energy)

    def log_shares(self, energy: Array, replicas: int = 1) -> Array:
        """What to add to -beta E to have the logarithm of a weight at any beta, of the energies' shape.

        Args:
            energy: Of each measurement, as many at every temperature of the ladder as at another.
            replicas: How many independent replicas at one temperature it is the energy of.
        """
        each = np.log(energy[..., 0].size)
        mixed = [each - b * energy - replicas * z for b, z in zip(self.beta, self.log_partition, strict=True)]
        return np.asarray(-logsumexp(mixed, axis=0))


def multi_histogram(energy: npt.ArrayLike, beta: npt.ArrayLike, start: Array | None = None) -> MultiHistogram:
    """Join the measurements of a ladder by the partition functions that make them most likely.

    Averages at another temperature are those with the weights exp(log_weights); ln Z is the logarithm of their sum.
    Errors come from doing the whole again without a part: temperatures that exchange configurations are not
    independent, so that a part is a stretch of time of all temperatures, or a disorder sample.

    Args:
        energy: Total energies, one axis for each of time and chains or whatever they are counted by, and last the
            temperatures: (..., temperatures).
        beta: Inverse temperatures, (temperatures,).
        start: ``log_partition`` of much the same measurements, from where to search.

    Raises:
        InputError: for shapes that do not fit together, values that are not finite, and temperatures so far apart that
            no measurement links them.
    """
    energies, betas = finite_array(energy, "energy", least=1), finite_array(beta, "beta", least=1)
    if betas.ndim != 1 or energies.shape[-1] != len(betas):
        raise InputError(
            f"energies of shape {energies.shape} and beta of shape {betas.shape}: give (..., temperatures)"
        )
    columns = energies.reshape(-1, len(betas))
    if start is None:  # d ln Z = -E d beta
        mean = columns.mean(axis=0)
        start = np.concatenate([[0.0], np.cumsum(-(mean[1:] + mean[:-1]) / 2 * np.diff(betas))])
    return MultiHistogram(betas, energies, _most_likely(columns, betas, start))


def _most_likely(energy: Array, beta: Array, log_partition: Array) -> Array:
    """Newton's search for the minimum of a convex function, whose gradient is what each temperature has too many."""
    each, values = len(energy), energy.ravel()
    least, exponents = np.inf, -np.outer(beta, values - values.mean())
    found, step = log_partition + beta * values.mean(), np.zeros_like(beta)  # energies about 0 are exact in sums
    for _ in range(_STEPS):
        mixed = exponents - (found + step)[:, None]
        total = logsumexp(mixed, axis=0)
        height = float(total.sum() + each * (found + step).sum())
        if height > least + 1e-9 * abs(least):
            step = step / 2
            continue
        least, found = height, found + step
        if step.any() and np.abs(step).max() < _EXACT * max(1.0, float(np.abs(found).max())):
            break
        shares = np.exp(mixed - total)
        sums = shares.sum(axis=1)
        curvature = (np.diag(sums) - shares @ shares.T)[1:, 1:]
        step = np.concatenate([[0.0], np.linalg.lstsq(curvature, (sums - each)[1:], rcond=None)[0]])
        if np.abs(step).max() == 0:
            break
    else:
        raise InputError("the energies of neighbouring temperatures do not overlap: measure at temperatures in between")
    found = found - beta * values.mean()
    return np.asarray(found - found[0])
