"""Energy, specific heat and magnetisation of an annealing run against temperature, with error bars.

Replicas of a sample are independent at every step, so errors over them need no autocorrelation time; those of a
population are weighed and grouped by families (population.py). With several samples the error is that of the
sample-to-sample scatter, which contains the thermal one.

The specific heat is the spread of the replicas' energies. Once they freeze in different states that spread stays while
their mean energy no longer falls: then it is not the slope dE/dT that it must be in equilibrium, and is left out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim.analysis.kinds import is_antiferromagnet
from spinsim.analysis.population import Populations
from spinsim.analysis.runs import FEWEST_FOR_ERRORS, Annealed
from spinsim.model.ising import Ising

Array = npt.NDArray[np.float64]

REACH: Final = 2  # steps to either side over which the slope of the energy is taken
LIMIT: Final = 2.0  # standard errors, where these are known well
_ROUNDING: Final = 1e-12  # of a heat per site in k_B


class OrderParameter(NamedTuple):
    """The order parameter that is shown of a run at each step."""

    name: str  # of its column
    symbol: str  # what heads its column in printed tables
    mean: Array  # its mean per site, (steps,)
    error: Array  # the standard error of that


@dataclass(frozen=True)
class Thermodynamics:
    """Curves of shape (steps,), per site; errors are NaN where a single replica of a single sample allows none."""

    temperature: Array  # in the unit of the couplings, k_B = 1
    energy: Array  # mean energy per site, likewise
    energy_error: Array  # its standard error
    specific_heat: Array  # (<E^2> - <E>^2) / (N T^2) in k_B; NaN where it is not the slope of the energy
    specific_heat_error: Array  # its standard error (jackknife)
    specific_heat_trusted: npt.NDArray[np.bool_]
    """True where it was compared with the slope of the energy and agrees. It is given, but not trusted, where there is
    nothing to compare with: at one temperature, with two replicas of one sample, where a field changes, and of a
    population, whose spread resampling keeps in equilibrium."""
    magnetization: Array  # mean |m| per site
    magnetization_error: Array  # its standard error
    signed_magnetization: Array  # mean m per site
    signed_magnetization_error: Array  # its standard error
    staggered_magnetization: Array  # mean |m_s| per site; NaN where it was not measured
    staggered_magnetization_error: Array  # its standard error

    def order_parameter(self, model: Ising) -> OrderParameter:
        """Returns mean |m_s| of an antiferromagnet where it was measured, else mean |m|."""
        if is_antiferromagnet(model) and not np.isnan(self.staggered_magnetization).any():
            mean = self.staggered_magnetization, self.staggered_magnetization_error
            return OrderParameter("abs_staggered_magnetization", "<|m_s|>", *mean)
        return OrderParameter("abs_magnetization", "<|m|>", self.magnetization, self.magnetization_error)


def thermodynamics(result: Annealed) -> Thermodynamics:
    """Curves of an annealing run.

    The specific heat at a step is compared with the slope of the mean energy between the second steps before and after
    it (fewer at the ends of the schedule). In equilibrium the slope is the mean of the specific heat over that range of
    temperatures. It may therefore lie anywhere between the smallest and the largest value there, however far the
    temperatures are apart; where it lies outside by more than 2 standard errors (of few replicas, what is as likely in
    Student's t), or where no replica moved at all though their energies differ, the specific heat is NaN. Of 100 values
    in equilibrium one or two are lost.
    """
    sites, temperature = result.model.sites, result.temperature
    energy = result.energy / sites
    scale = sites / temperature**2
    compared = agrees = np.zeros(len(temperature), bool)
    means: Callable[[Array], tuple[Array, Array]] = mean_of_replicas
    if result.family is not None:
        populations = Populations(result)
        means = partial(_weighted, populations)
        heat, heat_error = over_samples(*populations.variance(energy))
    else:
        heat, heat_error = _variance(energy)
        if result.field is None:  # else the energy changes with it too
            compared, agrees = _compare(temperature, energy, scale)
    left_out = compared & ~agrees
    staggered = (
        np.full(energy.shape, np.nan) if result.staggered_magnetization is None else result.staggered_magnetization
    )
    return Thermodynamics(
        temperature,
        *means(energy),
        np.where(left_out, np.nan, heat * scale),
        np.where(left_out, np.nan, heat_error * scale),
        compared & agrees,
        *means(np.abs(result.magnetization) / sites),
        *means(result.magnetization / sites),
        *means(np.abs(staggered) / sites),
    )


def _compare(temperature: Array, energy: Array, scale: Array) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """At which steps the spread of energies (steps, samples, replicas) can be compared with their slope, and agrees."""
    steps, samples, replicas = energy.shape
    compared, agrees = np.zeros(steps, bool), np.zeros(steps, bool)
    if replicas < 2 or samples * replicas < 3:
        return compared, agrees
    one_by_one = replicas > 2
    mean = (energy if one_by_one else energy.mean(axis=2, keepdims=True)).reshape(steps, -1)
    spread = (_pseudo_values(energy) if one_by_one else energy.var(axis=2, ddof=1)[..., None]).reshape(steps, -1)
    heat = spread * scale[:, None]
    from scipy.special import ndtr, stdtrit  # which take long to load

    limit = float(stdtrit(mean.shape[1] - 1, ndtr(LIMIT)))
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
    """By how many standard errors the mean of independent values is above 0."""
    mean, deviation = float(values.mean()), float(values.std(ddof=1))
    if abs(mean) < _ROUNDING:
        return 0.0
    return mean * len(values) ** 0.5 / deviation if deviation else np.inf * mean


def mean_of_replicas(values: Array) -> tuple[Array, Array]:
    if values.shape[1] > 1:
        return _mean_of_samples(values.mean(axis=2))
    return _mean_of_samples(values[:, 0])


def _weighted(populations: Populations, values: Array) -> tuple[Array, Array]:
    return over_samples(*populations.mean(values))


def over_samples(values: Array, error: Array) -> tuple[Array, Array]:
    """Mean of values (steps, samples) and the standard error over samples; of one sample its own."""
    return _mean_of_samples(values) if values.shape[1] > 1 else (values[:, 0], error[:, 0])


def _mean_of_samples(values: Array) -> tuple[Array, Array]:
    """Mean and standard error of independent values (steps, count); NaN where they are too few or all are equal."""
    count = values.shape[1]
    if count < FEWEST_FOR_ERRORS:
        return values.mean(axis=1), np.full(len(values), np.nan)
    scatter = values.std(axis=1, ddof=1)
    scatter[values.max(axis=1) == values.min(axis=1)] = np.nan  # other values are rarer than a replica: a bound
    return values.mean(axis=1), scatter / np.sqrt(count)


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
    return _mean_of_samples(_pseudo_values(values)[:, 0])


def _pseudo_values(values: Array) -> Array:
    """The jackknife's R s^2 - (R - 1) s_r^2 of values (steps, samples, R replicas), where s_r^2 leaves replica r out.

    Their mean is the variance s^2 of a sample, and their scatter that of independent values with its error.
    """
    replicas = values.shape[2]
    squares = (values - values.mean(axis=2, keepdims=True)) ** 2
    total = squares.sum(axis=2, keepdims=True)
    left_out = (total - squares * replicas / (replicas - 1)) / (replicas - 2)
    return np.asarray(replicas / (replicas - 1) * total - (replicas - 1) * left_out)
