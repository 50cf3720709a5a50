"""All temperatures of a ladder joined: averages at any temperature between them, and free energies.

A weight depends on the energy alone, so that measurements of equal energy are added up, in cells.

Source: A. M. Ferrenberg, R. H. Swendsen, Phys. Rev. Lett. 63, 1195 (1989), in the limit of vanishing bin width, as in
M. R. Shirts, J. D. Chodera, J. Chem. Phys. 129, 124105 (2008).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp

from spinsim.errors import InputError

Array = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_STEPS: Final = 100
_EXACT: Final = 1e-10  # of a logarithm of a partition function
_AT_ONCE: Final = 2**21  # weights


@dataclass(frozen=True)
class Cells:
    """Sums over the measurements of one energy and one chain."""

    energy: Array  # total, (cells,)
    chain: Integers  # copy or, where sums are over all chains, 0, likewise
    names: tuple[str, ...]  # of the numbers that are added up
    sums: Array  # row 0 counts measurements, then a row for each number, (1 + names, cells)
    stretches: tuple[tuple[Integers, Array], ...]  # of each stretch of time its cells and sums (1 + names, its cells)

    @property
    def count(self) -> Array:
        return np.asarray(self.sums[0])

    def of(self, name: str) -> Array:
        return np.asarray(self.sums[1 + self.names.index(name)])

    def without(self, stretch: int) -> Cells:
        cells, sums = self.stretches[stretch]
        rest = self.sums.copy()
        rest[:, cells] -= sums
        return replace(self, sums=rest)


def together(cells: Sequence[Cells]) -> Cells:
    """Cells of independent runs as those of one, whose chains and stretches of time are those of all."""
    if len(cells) == 1:
        return cells[0]
    stretches, first, chain = [], 0, 0
    chains = []
    for one in cells:
        stretches += [(where + first, sums) for where, sums in one.stretches]
        chains.append(one.chain + chain)
        first, chain = first + len(one.energy), chain + int(one.chain.max()) + 1
    energy, sums = np.concatenate([one.energy for one in cells]), np.concatenate([one.sums for one in cells], axis=1)
    return Cells(energy, np.concatenate(chains), cells[0].names, sums, tuple(stretches))


@dataclass(frozen=True)
class MultiHistogram:
    """Measurements at several temperatures as one set, in which each has a weight at any temperature."""

    beta: Array  # inverse temperatures of the measurements, (temperatures,)
    log_partition: Array  # ln Z at each of them, up to one constant: 0 at the first, (temperatures,)
    each: float  # measurements at each of them

    def log_shares(self, energy: Array, replicas: int = 1) -> Array:
        """Return the summand to -beta E that makes the logarithm of a weight at any beta, of the energies' shape.

        An energy may be that of several independent replicas at one temperature. Averages at another beta are those
        with these weights divided by their sum, whose logarithm is ln Z in the unit of ``log_partition``.
        """
        levels, level = np.unique(energy, return_inverse=True)
        offsets = (np.log(self.each) - replicas * self.log_partition)[:, None]
        shares = np.empty(len(levels))
        for piece in _pieces(len(levels), len(self.beta)):
            shares[piece] = -logsumexp(offsets - np.outer(self.beta, levels[piece]), axis=0)
        return np.asarray(shares[level.reshape(np.shape(energy))])


def first_guess(energy: Array, beta: Array) -> Array:
    """Returns ln Z of a ladder from the mean of its energies (..., temperatures): d ln Z = -E d beta."""
    mean = energy.reshape(-1, len(beta)).mean(axis=0)
    return np.concatenate([[0.0], np.cumsum(-(mean[1:] + mean[:-1]) / 2 * np.diff(beta))])


def joined(energy: Array, count: npt.ArrayLike, beta: Array, start: Array) -> MultiHistogram:
    """Join measurements of a ladder of which it is known how many have each energy, at whatever temperature.

    Total energies and counts are (levels,); all beta (temperatures,) have equally many measurements. The search starts
    from the ``log_partition`` of much the same measurements.
    """
    # Newton's search for the minimum of a convex function, whose gradient is what each temperature has too many
    count = np.asarray(count, np.float64)
    total = float(count.sum())
    each, middle = total / len(beta), float(energy @ count) / total
    centred = energy - middle  # energies about 0 are exact in sums
    least, guess, step = np.inf, start + beta * middle, np.zeros_like(beta)
    for _ in range(_STEPS):
        height, sums, products = _mixed(centred, count, beta, guess + step)
        height += each * float((guess + step).sum())
        if height > least + 1e-9 * abs(least):
            step = step / 2
            continue
        least, guess = height, guess + step
        if step.any() and np.abs(step).max() < _EXACT * max(1.0, float(np.abs(guess).max())):
            break
        curvature = (np.diag(sums) - products)[1:, 1:]
        step = np.concatenate([[0.0], np.linalg.lstsq(curvature, (sums - each)[1:], rcond=None)[0]])
        if np.abs(step).max() == 0:
            break
    else:
        raise InputError("the energies of neighbouring temperatures do not overlap: measure at temperatures in between")
    guess = guess - beta * middle
    return MultiHistogram(beta, np.asarray(guess - guess[0]), each)


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
