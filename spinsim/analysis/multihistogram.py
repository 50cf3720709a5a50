"""All temperatures of a ladder joined: averages at any temperature between them, and free energies.

Source: A. M. Ferrenberg, R. H. Swendsen, Phys. Rev. Lett. 63, 1195 (1989), in the limit of vanishing bin width, as in
M. R. Shirts, J. D. Chodera, J. Chem. Phys. 129, 124105 (2008).
"""

from __future__ import annotations

from collections.abc import Iterator
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
_AT_ONCE: Final = 2**21  # weights


@dataclass(frozen=True)
class MultiHistogram:
    """Measurements at several temperatures as one set, in which each has a weight at any temperature.

    Attributes:
        beta: Inverse temperatures of the measurements, (temperatures,).
        log_partition: ln Z at each of them, up to one constant: 0 at the first, (temperatures,).
        each: Measurements at each of them.
    """

    beta: Array
    log_partition: Array
    each: float

    def log_weights(self, energy: npt.ArrayLike, beta: float) -> Array:
        """Logarithms of the weights of measurements at another inverse temperature, of the energies' shape.

        Weights add up to Z there, in the unit of ``log_partition``: averages need them divided by their sum.
        """
        energies = np.asarray(energy, np.float64)
        return self.log_shares(energies) - beta * energies

    def log_shares(self, energy: Array, replicas: int = 1) -> Array:
        """What to add to -beta E to have the logarithm of a weight at any beta, of the energies' shape.

        Args:
            energy: Total energies.
            replicas: How many independent replicas at one temperature it is the energy of.
        """
        levels, level = np.unique(energy, return_inverse=True)
        offsets = (np.log(self.each) - replicas * self.log_partition)[:, None]
        shares = np.empty(len(levels))
        for piece in _pieces(len(levels), len(self.beta)):
            shares[piece] = -logsumexp(offsets - np.outer(self.beta, levels[piece]), axis=0)
        return np.asarray(shares[level.reshape(np.shape(energy))])


def multi_histogram(energy: npt.ArrayLike, beta: npt.ArrayLike) -> MultiHistogram:
    """Join the measurements of a ladder by the partition functions that make them most likely.

    Averages at another temperature are those with the weights exp(log_weights); ln Z is the logarithm of their sum.
    Errors come from doing the whole again without a part: temperatures that exchange configurations are not
    independent, so that a part is a stretch of time of all temperatures, or a disorder sample.

    Args:
        energy: Total energies, one axis for each of time and chains or whatever they are counted by, and last the
            temperatures: (..., temperatures).
        beta: Inverse temperatures, (temperatures,).

    Raises:
        InputError: for shapes that do not fit together, values that are not finite, and temperatures so far apart that
            no measurement links them.
    """
    energies, betas = finite_array(energy, "energy", least=1), finite_array(beta, "beta", least=1)
    if betas.ndim != 1 or energies.shape[-1] != len(betas):
        raise InputError(
            f"energies of shape {energies.shape} and beta of shape {betas.shape}: give (..., temperatures)"
        )
    return joined(*np.unique(energies, return_counts=True), betas, first_guess(energies, betas))


def first_guess(energy: Array, beta: Array) -> Array:
    """Returns ln Z of a ladder from the mean of its energies (..., temperatures): d ln Z = -E d beta."""
    mean = energy.reshape(-1, len(beta)).mean(axis=0)
    return np.concatenate([[0.0], np.cumsum(-(mean[1:] + mean[:-1]) / 2 * np.diff(beta))])


def joined(energy: Array, count: npt.ArrayLike, beta: Array, start: Array) -> MultiHistogram:
    """Join measurements of a ladder of which it is known how many have each energy, at whatever temperature.

    Args:
        energy: Total energies, (levels,).
        count: Measurements of each, likewise.
        beta: Inverse temperatures, which have equally many measurements, (temperatures,).
        start: ``log_partition`` of much the same measurements, from where to search.

    Raises:
        InputError: for temperatures so far apart that no measurement links them.
    """
    counts = np.asarray(count, np.float64)
    each = float(counts.sum()) / len(beta)
    return MultiHistogram(beta, _most_likely(energy, counts, beta, start), each)


def _most_likely(energy: Array, count: Array, beta: Array, log_partition: Array) -> Array:
    """Newton's search for the minimum of a convex function, whose gradient is what each temperature has too many."""
    total = float(count.sum())
    each, middle = total / len(beta), float(energy @ count) / total
    centred = energy - middle  # energies about 0 are exact in sums
    least, found, step = np.inf, log_partition + beta * middle, np.zeros_like(beta)
    for _ in range(_STEPS):
        height, sums, products = _mixed(centred, count, beta, found + step)
        height += each * float((found + step).sum())
        if height > least + 1e-9 * abs(least):
            step = step / 2
            continue
        least, found = height, found + step
        if step.any() and np.abs(step).max() < _EXACT * max(1.0, float(np.abs(found).max())):
            break
        curvature = (np.diag(sums) - products)[1:, 1:]
        step = np.concatenate([[0.0], np.linalg.lstsq(curvature, (sums - each)[1:], rcond=None)[0]])
        if np.abs(step).max() == 0:
            break
    else:
        raise InputError("the energies of neighbouring temperatures do not overlap: measure at temperatures in between")
    found = found - beta * middle
    return np.asarray(found - found[0])


def _mixed(energy: Array, count: Array, beta: Array, log_partition: Array) -> tuple[float, Array, Array]:
    """Sums over all measurements: of the logarithm of their mixture, of each temperature's share, of two shares."""
    height, sums, products = 0.0, np.zeros(len(beta)), np.zeros((len(beta), len(beta)))
    for piece in _pieces(len(energy), len(beta)):
        mixed = -np.outer(beta, energy[piece]) - log_partition[:, None]
        total = logsumexp(mixed, axis=0)
        shares = np.exp(mixed - total)
        weighted = shares * count[piece]
        height += float(total @ count[piece])
        sums += weighted.sum(axis=1)
        products += weighted @ shares.T
    return height, sums, products


def _pieces(length: int, temperatures: int) -> Iterator[slice]:
    """Cut rows into pieces whose weights at all temperatures are a few megabytes."""
    rows = max(1, _AT_ONCE // temperatures)
    return (slice(first, first + rows) for first in range(0, length, rows))
