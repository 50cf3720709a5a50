"""Averages over resampled populations, free energies and families.

Where a sample has several populations, each counts with its estimate of Z (Machta): the means of Z and of Z times an
observable have no bias, whatever the size of a population. Replicas of one family are not independent, but families
are: errors are those of sums over families, of which there are as many as replicas at infinite temperature, the extinct
ones among them; with twenty populations and more they are those of sums over populations. The relative variance of Z is
so (rho_t - 1) / R, with the mean square family size rho_t, an overestimate where replicas forget their families. Where
few groups are left the scatter does not know of those that died out, and there are no errors.

Sources: J. Machta, Phys. Rev. E 82, 026704 (2010); W. Wang, J. Machta, H. G. Katzgraber, Phys. Rev. E 92, 063307
(2015); H. P. Chan, T. L. Lai, Ann. Statist. 41, 2877 (2013).
"""

from __future__ import annotations

from functools import cached_property
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim.analysis.runs import Annealed

Array = npt.NDArray[np.float64]

FEWEST: Final = 10
"""Groups, 1 / (sum of the squares of their shares), from which on there are errors: those of free energies of a 4 x 4
sample, by 32 and 64 replicas and 200 seeds each, had deviations of 0.8 to 1.1 errors above ten, of up to 1.6 below."""
MANY: Final = 2 * FEWEST
"""Populations of a sample from which on their scatter gives errors; they are of unequal Z."""
ENOUGH: Final = 100
"""Families, by the exponential of their entropy, from which on a population is trusted (Wang et al.)."""


class Families(NamedTuple):
    """Families that are left in each population, (steps, samples, populations)."""

    number: npt.NDArray[np.int64]  # families that have any replica
    mean_square_size: Array  # rho_t: of the family of a replica, the mean size
    entropy: Array  # S_f = -sum nu ln nu, nu the share of replicas that each family has


class Populations:
    """Averages and errors of each step and sample of a population run; errors of too few or equal groups are NaN."""

    def __init__(self, result: Annealed) -> None:
        assert result.family is not None  # noqa: S101  (it is a population run)
        assert result.population_free_energy is not None  # noqa: S101
        self._family, self._temperature = result.family, result.temperature[:, None]
        self._log_z = -result.population_free_energy / result.temperature[:, None, None]
        self._replicas = result.family.shape[2]
        self._populations = self._log_z.shape[2]
        self._largest = self._log_z.max(axis=2, keepdims=True)
        share = np.exp(self._log_z - self._largest)
        self._mean_z = share.mean(axis=2)
        share /= share.sum(axis=2, keepdims=True)
        self._weight = np.repeat(
            share * self._populations / self._replicas, self._replicas // self._populations, axis=2
        )

    def mean(self, values: Array) -> tuple[Array, Array]:
        """Means of values (steps, samples, replicas) and their errors, (steps, samples).

        Values that are all equal, as energies of replicas that share a ground state, have no error: other values are
        rarer than a replica, which is a bound and no scatter.
        """
        mean = (self._weight * values).sum(axis=2)
        same = values.max(axis=2) == values.min(axis=2)
        return mean, np.where(same, np.nan, self._deviation(self._sums(values - mean[..., None])))

    def variance(self, values: Array) -> tuple[Array, Array]:
        """Variances of values (steps, samples, replicas) and their errors, (steps, samples)."""
        mean = (self._weight * values).sum(axis=2, keepdims=True)
        return self.mean((values - mean) ** 2)

    def free_energy(self) -> tuple[Array, Array]:
        """Total free energies and their errors, (steps, samples)."""
        log_z = self._largest[..., 0] + np.log(self._mean_z)
        return -self._temperature * log_z, self._temperature * self._deviation(self._shares())

    def entropy(self, energy: Array) -> tuple[Array, Array]:
        """Total entropies in k_B from energies (steps, samples, replicas), and their errors, (steps, samples)."""
        mean = (self._weight * energy).sum(axis=2)
        entropy = (mean - self.free_energy()[0]) / self._temperature
        of_energy = self._sums((energy - mean[..., None]) / self._temperature[..., None])
        return entropy, self._deviation(of_energy + self._shares())

    def families(self) -> Families:
        steps, samples, replicas = self._family.shape
        size = replicas // self._populations
        members = np.array([self._by_family(k, None) for k in range(steps)])
        members = members.reshape(steps, samples, self._populations, size)
        share = members / size
        entropy = 0 - (share * np.log(np.where(members, share, 1))).sum(axis=3)  # of one family 0, not -0
        return Families((members > 0).sum(axis=3), (share * members).sum(axis=3), entropy)

    def _by_family(self, step: int, values: Array | None) -> Array:
        """Sums of values (samples, replicas) over families at a step, (samples, families); how many without values."""
        samples, replicas = self._family.shape[1:]
        group = self._family[step] + replicas * np.arange(samples)[:, None]
        weights = None if values is None else values.reshape(-1)
        sums = np.bincount(group.reshape(-1), weights, samples * replicas)
        return sums.reshape(samples, replicas).astype(np.float64)

    def _sums(self, values: Array) -> Array:
        """Weighted sums of values (steps, samples, replicas) over independent groups, (steps, samples, groups)."""
        weighted = self._weight * values
        if self._populations >= MANY:
            return np.asarray(weighted.reshape(*weighted.shape[:2], self._populations, -1).sum(axis=3))
        sums = [self._by_family(k, each) for k, each in enumerate(weighted)]
        return np.stack(sums) if sums else weighted

    def _shares(self) -> Array:
        """The part that each group has in Z, less the mean part, (steps, samples, groups)."""
        sums = self._sums(np.ones(self._family.shape))
        return np.asarray(sums - 1 / sums.shape[2])

    @cached_property
    def _too_few(self) -> npt.NDArray[np.bool_]:
        """Where Z is that of too few groups for errors, (steps, samples)."""
        return np.asarray((self._sums(np.ones(self._family.shape)) ** 2).sum(axis=2) * FEWEST > 1)

    def _deviation(self, sums: Array) -> Array:
        """The standard deviation of a total of independent parts whose mean is 0, NaN of too few."""
        groups = sums.shape[2]
        deviation = np.sqrt((sums**2).sum(axis=2) * groups / max(groups - 1, 1))
        return np.where(self._too_few, np.nan, deviation)
