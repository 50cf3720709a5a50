"""Energy, specific heat and magnetisation of an annealing run against temperature, and averages over its populations.

Replicas of a sample are independent at every step, so errors over them need no autocorrelation time. Replicas of a
population are weighted and grouped by families. Errors of several samples come from their scatter, which contains the
thermal error.

The specific heat is the spread of the replicas' energies. Once replicas freeze in different states, that spread stays
while their mean energy no longer falls. The specific heat then differs from the slope dE/dT, which it equals in
equilibrium, and is left out.

Where a sample has several populations, each has its estimate of Z as weight (Machta): the means of Z and of Z times an
observable have no bias, whatever the size of a population. Replicas of one family are not independent, but families
are: errors come from sums over families, as many as replicas at infinite temperature, extinct families included. From
twenty populations on, errors come from sums over populations. By families the relative variance of Z is
(rho_t - 1) / R, with the mean square family size rho_t, an overestimate where replicas forget their families. Where few
groups are left, the scatter misses the extinct groups, and no errors are given.

Sources: J. Machta, Phys. Rev. E 82, 026704 (2010); W. Wang, J. Machta, H. G. Katzgraber, Phys. Rev. E 92, 063307
(2015); H. P. Chan, T. L. Lai, Ann. Statist. 41, 2877 (2013).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import erfc
from typing import Final, NamedTuple

import numpy as np

from spinsim.analysis.distributions import student_limit
from spinsim.analysis.kinds import is_antiferromagnet
from spinsim.analysis.runs import FEWEST_FOR_ERRORS, Annealed, Array, Bools, Integers
from spinsim.model.ising import Ising

FEWEST: Final = 10
"""Effective groups, 1 / (sum of squared shares), from which on errors are given. Free energies of a 4 x 4 sample, with
32 and 64 replicas and 200 seeds each, deviated by 0.8 to 1.1 errors above ten groups, by up to 1.6 below."""
MANY: Final = 2 * FEWEST  # populations of a sample from which on errors come from their scatter; their Z are unequal
ENOUGH: Final = 100  # effective families, exp(entropy), from which on a population is trusted (Wang)
REACH: Final = 2  # steps to either side over which the slope of the energy is taken
LIMIT: Final = 2.0  # in standard errors that are well known; few replicas have Student's t instead
_ROUNDING: Final = 1e-12  # of a heat per site in k_B


class Averaged(NamedTuple):
    """Means and their standard errors, (steps,)."""

    mean: Array
    error: Array


class Families(NamedTuple):
    """Families that are left in each population, (steps, samples, populations)."""

    number: Integers  # families with a replica
    mean_square_size: Array  # rho_t: mean size of the family of a replica
    entropy: Array  # S_f = -sum nu ln nu, with the share nu of replicas in each family


class Populations:
    """Averages and errors of each step and sample of a population run; errors of few groups or equal values are NaN."""

    def __init__(self, result: Annealed) -> None:
        assert result.family is not None  # noqa: S101  (it is a population run)
        assert result.population_free_energy is not None  # noqa: S101
        self._family, self._temperature = result.family, result.temperature[:, None]
        self._log_z = -result.population_free_energy / result.temperature[:, None, None]
        self._populations = self._log_z.shape[2]
        self._largest = self._log_z.max(axis=2, keepdims=True)
        share = np.exp(self._log_z - self._largest)
        self._mean_z = share.mean(axis=2)
        share /= share.sum(axis=2, keepdims=True)
        replicas = result.family.shape[2]
        self._weight = np.repeat(share * self._populations / replicas, replicas // self._populations, axis=2)

    def mean(self, values: Array) -> tuple[Array, Array]:
        """Means of values (steps, samples, replicas) and their errors, (steps, samples).

        Values that are all equal, such as energies of replicas in one ground state, have no error: other values are
        then rarer than one replica, which is a bound and not a scatter.
        """
        mean = (self._weight * values).sum(axis=2)
        same = values.max(axis=2) == values.min(axis=2)
        return mean, np.where(same, np.nan, self._deviation(self._sums(values - mean[..., None])))

    def variance(self, values: Array) -> tuple[Array, Array]:
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
        """Sums of values (samples, replicas) over families at a step, (samples, families); family sizes for None."""
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
        """Share of each group in Z, less the mean share, (steps, samples, groups)."""
        sums = self._sums(np.ones(self._family.shape))
        return np.asarray(sums - 1 / sums.shape[2])

    @cached_property
    def _too_few(self) -> Bools:
        """True where Z comes from too few groups for errors, (steps, samples)."""
        return np.asarray((self._sums(np.ones(self._family.shape)) ** 2).sum(axis=2) * FEWEST > 1)

    def _deviation(self, sums: Array) -> Array:
        """Standard deviation of a total of independent parts with mean 0; NaN for too few parts."""
        groups = sums.shape[2]
        deviation = np.sqrt((sums**2).sum(axis=2) * groups / max(groups - 1, 1))
        return np.where(self._too_few, np.nan, deviation)


@dataclass(frozen=True)
class Thermodynamics:
    """Curves of shape (steps,), per site; errors are NaN where a single replica of a single sample allows none."""

    temperature: Array  # in the unit of the couplings, k_B = 1
    energy: Averaged  # per site, likewise
    specific_heat: Averaged  # (<E^2> - <E>^2) / (N T^2) in k_B, by jackknife; NaN where it differs from dE/dT
    specific_heat_trusted: Bools
    """True where the specific heat was compared with the slope of the energy and agrees. Without a comparison it is
    given, but not trusted: at one temperature, for two replicas of one sample, in a changing field, and for a
    population, whose spread resampling keeps in equilibrium."""
    magnetization: Averaged  # |m| per site
    signed_magnetization: Averaged  # m per site
    staggered_magnetization: Averaged  # |m_s| per site; NaN where it was not measured

    def order_parameter(self, model: Ising) -> str:
        """Name of the order parameter: |m_s| of an antiferromagnet where it was measured, else |m|."""
        staggered = is_antiferromagnet(model) and not np.isnan(self.staggered_magnetization.mean).any()
        return "abs_staggered_magnetization" if staggered else "abs_magnetization"


def thermodynamics(result: Annealed) -> Thermodynamics:
    """Curves of an annealing run.

    The specific heat at a step is compared with the slope of the mean energy between the second steps before and after
    it (fewer at the ends of the schedule). In equilibrium the slope is the mean of the specific heat over that range of
    temperatures. The slope may therefore lie anywhere between the smallest and the largest value there, however far the
    temperatures are apart. Where it lies outside by more than 2 standard errors (for few replicas, the equally likely
    limit of Student's t), or where no replica moved at all though their energies differ, the specific heat is NaN. Of
    100 values in equilibrium one or two are lost.
    """
    sites, temperature = result.model.sites, result.temperature
    energy = result.energy / sites
    scale = sites / temperature**2
    compared = agrees = np.zeros(len(temperature), bool)
    populations = None if result.family is None else Populations(result)

    def means(values: Array) -> Averaged:
        return over_samples(*populations.mean(values)) if populations else mean_of_replicas(values)

    if populations:
        heat = over_samples(*populations.variance(energy))
    else:
        heat = _variance(energy)
        if result.field is None:  # else the energy changes with it too
            compared, agrees = _compare(temperature, energy, scale)
    left_out = compared & ~agrees
    measured = result.staggered_magnetization
    staggered = np.full(energy.shape, np.nan) if measured is None else measured
    specific_heat = Averaged(*(np.where(left_out, np.nan, one * scale) for one in heat))
    m, m_s = result.magnetization / sites, np.abs(staggered) / sites
    orders = means(np.abs(m)), means(m), means(m_s)
    return Thermodynamics(temperature, means(energy), specific_heat, compared & agrees, *orders)


def _compare(temperature: Array, energy: Array, scale: Array) -> tuple[Bools, Bools]:
    """Mark steps where the spread of energies (steps, samples, replicas) has a slope to compare, and if they agree."""
    steps, samples, replicas = energy.shape
    compared, agrees = np.zeros(steps, bool), np.zeros(steps, bool)
    if replicas < 2 or samples * replicas < 3:
        return compared, agrees
    one_by_one = replicas > 2
    mean = (energy if one_by_one else energy.mean(axis=2, keepdims=True)).reshape(steps, -1)
    spread = (_pseudo_values(energy) if one_by_one else energy.var(axis=2, ddof=1)[..., None]).reshape(steps, -1)
    heat = spread * scale[:, None]
    limit = float(student_limit(mean.shape[1] - 1, erfc(LIMIT / 2**0.5) / 2))
    for k in range(steps):
        first, last = max(0, k - REACH), min(steps - 1, k + REACH)
        change = temperature[first] - temperature[last]
        compared[k] = change != 0
        if not compared[k]:
            continue
        slope = (mean[first] - mean[last]) / change
        near = heat[first : last + 1]
        low, high = near[near.mean(axis=1).argmin()], near[near.mean(axis=1).argmax()]
        frozen = np.ptp(energy[first : last + 1], axis=0).max() == 0 and heat[k].mean() > _ROUNDING
        agrees[k] = not frozen and max(_above_zero(low - slope), _above_zero(slope - high)) <= limit
    return compared, agrees


def _above_zero(values: Array) -> float:
    """Mean of independent values, in standard errors above 0."""
    mean, deviation = float(values.mean()), float(values.std(ddof=1))
    if abs(mean) < _ROUNDING:
        return 0.0
    return mean * len(values) ** 0.5 / deviation if deviation else np.inf * mean


def mean_of_replicas(values: Array) -> Averaged:
    return _mean_of_samples(values.mean(axis=2) if values.shape[1] > 1 else values[:, 0])


def over_samples(values: Array, error: Array) -> Averaged:
    """Mean of values (steps, samples) and its standard error over samples; for one sample, the sample's own error."""
    return _mean_of_samples(values) if values.shape[1] > 1 else Averaged(values[:, 0], error[:, 0])


def _mean_of_samples(values: Array) -> Averaged:
    """Mean and standard error of independent values (steps, count); NaN where they are too few or all are equal."""
    count = values.shape[1]
    if count < FEWEST_FOR_ERRORS:
        return Averaged(values.mean(axis=1), np.full(len(values), np.nan))
    scatter = values.std(axis=1, ddof=1)
    scatter[values.max(axis=1) == values.min(axis=1)] = np.nan  # other values are rarer than one replica: a bound
    return Averaged(values.mean(axis=1), scatter / np.sqrt(count))


def _variance(values: Array) -> Averaged:
    """Mean over samples of the variance over replicas, and its error: over samples, or by jackknife over replicas."""
    steps, samples, replicas = values.shape
    if replicas < 2:
        return Averaged(np.full(steps, np.nan), np.full(steps, np.nan))
    variance = values.var(axis=2, ddof=1)
    if samples > 1:
        return _mean_of_samples(variance)
    if replicas < 3:
        return Averaged(variance[:, 0], np.full(steps, np.nan))
    return _mean_of_samples(_pseudo_values(values)[:, 0])


def _pseudo_values(values: Array) -> Array:
    """Jackknife values R s^2 - (R - 1) s_r^2 of R replicas, where s_r^2 leaves replica r out; their mean is s^2."""
    replicas = values.shape[2]
    squares = (values - values.mean(axis=2, keepdims=True)) ** 2
    total = squares.sum(axis=2, keepdims=True)
    left_out = (total - squares * replicas / (replicas - 1)) / (replicas - 2)
    return np.asarray(replicas / (replicas - 1) * total - (replicas - 1) * left_out)
