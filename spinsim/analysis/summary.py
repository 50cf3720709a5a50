"""Averages of a tempering run at each temperature, with errors that can be trusted or say that they cannot."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from spinsim.analysis.autocorrelation import integrated_time
from spinsim.analysis.binder import binder_cumulant
from spinsim.analysis.equilibration import Equilibration, equilibration
from spinsim.analysis.jackknife import bin_means, bootstrap, jackknife
from spinsim.errors import InputError
from spinsim.layout import SUMMARY
from spinsim.result import TemperResult

Array = npt.NDArray[np.float64]

FEWEST_STEPS: Final = 16
BINS: Final = 32  # of the series of a single sample
TAU_OF: Final = {
    "energy_per_site": "energy",
    "specific_heat": "energy",
    "abs_magnetization": "m^2",
    "magnetization_squared": "m^2",
    "susceptibility": "m^2",
    "binder_cumulant": "m^2",
    "overlap_squared": "q^2",
    "spin_glass_susceptibility": "q^2",
    "overlap_binder_cumulant": "q^2",
}
"""The series whose autocorrelation time says how far an observable's error can be trusted."""


@dataclass(frozen=True)
class Estimate:
    """An observable at each temperature, arrays of shape (temperatures,).

    Attributes:
        value: Averaged over time, copies and disorder.
        error: Standard error: from sample to sample where there are several, else from the series' own correlation.
        tau: Integrated autocorrelation time in sweeps, the mean over samples.
        trusted: Whether every sample's series is long enough, at least 20 tau.
    """

    value: Array
    error: Array
    tau: Array
    trusted: npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Summary:
    """What a tempering run says.

    Attributes:
        temperature: From the lowest to the highest, (temperatures,).
        estimates: By name, those of ``layout.SUMMARY``; without overlaps where there is one copy.
        equilibration: Of the energy and, with two copies or more, of q^2, at the lowest temperature.
    """

    temperature: Array
    estimates: dict[str, Estimate]
    equilibration: dict[str, Equilibration]


@dataclass(frozen=True)
class _Averages:
    """Independent data, and observables as functions of their means.

    Attributes:
        data: Moments of each sample, or of each stretch of time of a single one, (entries, moments, temperatures).
        functions: From means (moments, temperatures) to observables (observables, temperatures).
        names: Of the observables, the first of ``layout.SUMMARY``.
        series: Whose correlation in time says how far errors can be trusted, (steps, samples, chains, temperatures).
        wider: Factors to the errors that stretches of time give, likewise by name, (temperatures,).
    """

    data: Array
    functions: Callable[[Array], Array]
    names: list[str]
    series: dict[str, Array]
    wider: dict[str, Array]


def _averages(result: TemperResult) -> _Averages:
    """What every estimate, its error and its resampling begin with."""
    steps, samples, copies, _ = result.energy.shape
    if steps < FEWEST_STEPS:
        raise InputError(f"{steps} measurements are too few to analyse: give at least {FEWEST_STEPS}")
    sites, temperature = result.model.sites, result.temperature
    energy = result.energy / sites
    m = np.abs(result.magnetization / sites)
    series = {"energy": energy, "m^2": m**2}
    deviation = (energy - energy.mean(axis=(0, 2), keepdims=True)) ** 2  # each sample has a mean of its own
    moments = [energy, deviation, m, m**2, m**4]
    if copies > 1:
        q = result.overlap / sites
        series["q^2"] = q**2
        moments += [q**2, q**4]
    averaged = np.stack([moment.mean(axis=2) for moment in moments], axis=2)  # (steps, samples, moments, temperatures)
    data = averaged.mean(axis=0) if samples > 1 else bin_means(averaged[:, 0], min(BINS, steps // 2))

    def functions(mean: Array) -> Array:
        found = [
            mean[0],
            sites * mean[1] / temperature**2,
            mean[2],
            mean[3],
            sites * mean[3] / temperature,
            binder_cumulant(mean[3], mean[4]),
        ]
        if copies > 1:
            found += [mean[5], sites * mean[5], binder_cumulant(mean[5], mean[6])]
        return np.stack(found)

    names = [name for name, _, _ in SUMMARY][: len(functions(data[0]))]
    return _Averages(data, functions, names, series, {name: _widening(values) for name, values in series.items()})


def summarize(result: TemperResult) -> Summary:
    """Averages, errors, autocorrelation times and whether the run was in equilibrium.

    Energy and moments are averaged over time, copies (or pairs of copies) and samples; cumulants, specific heat and
    susceptibilities are functions of those averages, with jackknife errors over samples, or over 32 stretches of time
    where there is one sample; those are widened as far as stretches are too short against tau.
    U = 1 - [<m^4>] / (3 [<m^2>]^2), and likewise for q; the specific heat per site is [<E^2> - <E>^2] / (N T^2); the
    susceptibility N [<m^2>] / T; the spin-glass susceptibility N [<q^2>].

    Raises:
        InputError: for fewer than 16 measurements.
    """
    a, energy = _averages(result), result.energy / result.model.sites
    found = jackknife(a.functions, a.data)
    times = {name: _times(values, _sweeps_a_step(result)) for name, values in a.series.items()}
    estimates = {
        name: Estimate(found.value[k], found.error[k] * a.wider[TAU_OF[name]], *times[TAU_OF[name]])
        for k, name in enumerate(a.names)
    }
    coldest = {"energy": energy[..., 0].mean(axis=2)}
    if "q^2" in a.series:
        coldest["q^2"] = a.series["q^2"][..., 0].mean(axis=2)
    return Summary(result.temperature, estimates, {name: equilibration(rows) for name, rows in coldest.items()})


def resampled(result: TemperResult, resamples: int, seed: int) -> dict[str, Array]:
    """Each observable's curve with its bootstrap resamples, (1 + resamples, temperatures), row 0 from all data.

    Drawn are samples, or stretches of time where there is one sample; their spread is widened as errors are.

    Raises:
        InputError: as ``summarize``, and as ``bootstrap``.
    """
    a = _averages(result)
    curves = bootstrap(a.functions, a.data, resamples, seed).values
    return {
        name: curves[0, k] + (curves[:, k] - curves[0, k]) * a.wider[TAU_OF[name]] for k, name in enumerate(a.names)
    }


def _widening(series: Array) -> Array:
    """Factor to the errors of one sample: averages over stretches of time that are short against tau are correlated.

    ``series``: (steps, samples, chains, temperatures); 1 where there are several samples.
    """
    if series.shape[1] > 1:
        return np.ones(series.shape[-1])
    chains = series[:, 0]
    stretches = bin_means(chains.mean(axis=1), min(BINS, len(chains) // 2))
    found = stretches.std(axis=0, ddof=1) / np.sqrt(len(stretches))
    true = np.nan_to_num(integrated_time(chains, chain_axis=1).mean_error)
    return np.asarray(np.maximum(1.0, np.divide(true, found, out=np.ones_like(found), where=found > 0)))


def _sweeps_a_step(result: TemperResult) -> int:
    """Sweeps between measurements."""
    return int(result.sweep[1] - result.sweep[0])


def _times(series: Array, sweeps: int) -> tuple[Array, npt.NDArray[np.bool_]]:
    """Tau in sweeps, averaged over samples, and whether all are trusted, of (steps, samples, chains, temperatures)."""
    found = integrated_time(series, chain_axis=2)
    return found.tau.mean(axis=0) * sweeps, np.asarray(found.trusted.all(axis=0))
