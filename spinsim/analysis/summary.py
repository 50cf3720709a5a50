"""Averages of a tempering run at each temperature, with errors that can be trusted or say that they cannot."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim.analysis.autocorrelation import IntegratedTime, integrated_time
from spinsim.analysis.binder import binder_cumulant, correlation_length
from spinsim.analysis.equilibration import Equilibration
from spinsim.analysis.jackknife import bin_means, bootstrap, jackknife
from spinsim.analysis.verdict import judge
from spinsim.errors import InputError
from spinsim.layout import observables
from spinsim.model.ising import Ising
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
    "correlation_length_over_L": "m^2",
    "overlap_squared": "q^2",
    "spin_glass_susceptibility": "q^2",
    "overlap_binder_cumulant": "q^2",
    "overlap_correlation_length_over_L": "q^2",
    "link_overlap": "q_link",
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
        estimates: By name, those of ``layout.SUMMARY`` that were measured: no overlaps where there is one copy.
        equilibration: At the lowest temperature, of the energy and, with two copies or more, of q^2 and q_link.
        problems: What speaks against equilibrium, a clause each.
        verdict: Whether the run was in equilibrium, in words.
    """

    temperature: Array
    estimates: dict[str, Estimate]
    equilibration: dict[str, Equilibration]
    problems: tuple[str, ...]
    verdict: str


def summarize(result: TemperResult) -> Summary:
    """Averages, errors, autocorrelation times and whether the run was in equilibrium.

    Energy and moments are averaged over time, copies (or pairs of copies) and samples; cumulants, specific heat,
    susceptibilities and correlation lengths are functions of those averages, with jackknife errors over samples, or
    over 32 stretches of time where there is one sample; those are widened as far as stretches are too short against
    tau. U = 1 - [<m^4>] / (3 [<m^2>]^2), and likewise for q; the specific heat per site is [<E^2> - <E>^2] / (N T^2);
    the susceptibility N [<m^2>] / T; the spin-glass susceptibility N [<q^2>]. The second-moment correlation length is
    xi = sqrt([<m^2>] / [<|m(k)|^2>] - 1) / (2 sin(k / 2)), k = 2 pi / L along an axis, and likewise for q; |m(k)|^2 is
    averaged over the longest axes, of length L. It is NaN for open boundaries and where the root is of less than 0.
    Sources: F. Cooper, B. Freedman, D. Preston, Nucl. Phys. B 210, 210 (1982); for the overlap H. G. Ballesteros et
    al., Phys. Rev. B 62, 14237 (2000).

    Raises:
        InputError: for fewer than 16 measurements.
    """
    series = _series(result)
    times = {name: integrated_time(values, chain_axis=2) for name, values in series.items()}
    moments, data = _averages(result, series, times["energy"])
    functions = _functions(result, moments)
    found = jackknife(functions.values, data)
    wider = {name: _widening(values, times[name]) for name, values in series.items()}
    sweeps = _sweeps_a_step(result)
    estimates = {
        name: _estimate(found.value[k], found.error[k] * wider[TAU_OF[name]], times[TAU_OF[name]], sweeps)
        for k, name in enumerate(functions.names)
    }
    judged = judge(result, {name: series[name][..., 0] for name in ("energy", "q^2", "q_link") if name in series})
    return Summary(result.temperature, estimates, judged.equilibration, judged.problems, judged.words)


def _estimate(value: Array, error: Array, time: IntegratedTime, sweeps: int) -> Estimate:
    """An estimate with tau in sweeps, of ``sweeps`` a measurement.

    It is trusted where the series of all samples are; errors that are no numbers, as some samples left out have no
    value, are not.
    """
    trusted = np.asarray(time.trusted.all(axis=0)) & np.isfinite(error)
    return Estimate(value, error, time.tau.mean(axis=0) * sweeps, trusted)


def resampled(result: TemperResult, resamples: int, seed: int) -> dict[str, Array]:
    """Each observable's curve with its bootstrap resamples, (1 + resamples, temperatures), row 0 from all data.

    Drawn are samples, or stretches of time where there is one sample; their spread is widened as errors are.

    Raises:
        InputError: as ``summarize``, and as ``bootstrap``.
    """
    series = _series(result)
    needed = series if result.model.samples == 1 else ["energy"]
    times = {name: integrated_time(series[name], chain_axis=2) for name in needed}
    moments, data = _averages(result, series, times["energy"])
    functions = _functions(result, moments)
    curves = bootstrap(functions.values, data, resamples, seed).values
    wider = {name: _widening(values, times.get(name)) for name, values in series.items()}
    return {
        name: curves[0, k] + (curves[:, k] - curves[0, k]) * wider[TAU_OF[name]]
        for k, name in enumerate(functions.names)
    }


def _series(result: TemperResult) -> dict[str, Array]:
    """What autocorrelation times belong to, (steps, samples, chains, temperatures).

    Raises:
        InputError: for fewer than 16 measurements.
    """
    if len(result.energy) < FEWEST_STEPS:
        raise InputError(f"{len(result.energy)} measurements are too few to analyse: give at least {FEWEST_STEPS}")
    sites, bonds = result.model.sites, result.model.bonds
    series = {"energy": result.energy / sites, "m^2": (result.magnetization / sites) ** 2}
    if result.overlap.shape[2]:
        series["q^2"] = (result.overlap / sites) ** 2
    if result.link_overlap.shape[2]:
        series["q_link"] = result.link_overlap / max(1, bonds)
    return series


def _averages(result: TemperResult, series: dict[str, Array], energy_time: IntegratedTime) -> tuple[list[str], Array]:
    """Names of moments and their averages in each sample or, of one sample, in stretches of time.

    The averages have the shape (samples or stretches, moments, temperatures).
    """
    (steps, samples), sites = result.energy.shape[:2], result.model.sites
    energy = series["energy"]
    deviation = (energy - energy.mean(axis=(0, 2), keepdims=True)) ** 2  # each sample has a mean of its own
    deviation *= _for_the_mean(energy_time, steps * energy.shape[2])[None, :, None]
    moments = {"energy": energy, "deviation": deviation, "|m|": np.abs(result.magnetization / sites)}
    for name, mode in (("m", result.magnetization_mode), ("q", result.overlap_mode)):
        if f"{name}^2" not in series:
            continue
        moments |= {f"{name}^2": series[f"{name}^2"], f"{name}^4": series[f"{name}^2"] ** 2}
        if mode.shape[-1]:
            moments[f"|{name}(k)|^2"] = mode[..., _longest_axes(result.model)].mean(axis=-1) / sites**2
    if "q_link" in series:
        moments["q_link"] = series["q_link"]
    averaged = np.stack([moment.mean(axis=2) for moment in moments.values()], axis=2)
    data = averaged.mean(axis=0) if samples > 1 else bin_means(averaged[:, 0], min(BINS, steps // 2))
    return list(moments), data


def _for_the_mean(time: IntegratedTime, measurements: int) -> Array:
    """Factors (samples, temperatures) to squared deviations, which the measured mean makes too small by 2 tau / n.

    Source: U. Wolff, Comput. Phys. Commun. 156, 143 (2004), eq. 49.
    """
    return np.asarray(1 / (1 - np.minimum(2 * time.tau / measurements, 0.5)))


def _longest_axes(model: Ising) -> list[int]:
    """Axes of the largest length."""
    shape = model.lattice.shape if model.lattice else ()
    return [axis for axis, side in enumerate(shape) if side == max(shape)]


class _Functions(NamedTuple):
    """Observables as functions of the averages of moments.

    Attributes:
        names: Those of ``layout.SUMMARY`` that there are, in its order.
        values: All of them, (observables, temperatures), from averages (moments, temperatures).
    """

    names: list[str]
    values: Callable[[Array], Array]


def _functions(result: TemperResult, moments: list[str]) -> _Functions:
    """The observables of a run."""
    model, temperature, copies = result.model, result.temperature, result.energy.shape[2]
    axes = result.magnetization_mode.shape[-1]
    periodic = model.lattice is not None and model.lattice.periodic
    names = [n for n, _, _ in observables(copies, result.has_correlations, axes) if periodic or "length" not in n]

    def values(mean: Array) -> Array:
        at = dict(zip(moments, mean, strict=True))
        found = {
            "energy_per_site": at["energy"],
            "specific_heat": model.sites * at["deviation"] / temperature**2,
            "abs_magnetization": at["|m|"],
            "magnetization_squared": at["m^2"],
            "susceptibility": model.sites * at["m^2"] / temperature,
            "binder_cumulant": binder_cumulant(at["m^2"], at["m^4"]),
        }
        if "q^2" in at:
            found["overlap_squared"] = at["q^2"]
            found["spin_glass_susceptibility"] = model.sites * at["q^2"]
            found["overlap_binder_cumulant"] = binder_cumulant(at["q^2"], at["q^4"])
        for name, moment in (("correlation_length_over_L", "m"), ("overlap_correlation_length_over_L", "q")):
            if name in names:
                found[name] = _length_over_side(model, at[f"{moment}^2"], at[f"|{moment}(k)|^2"])
        if "q_link" in at:
            found["link_overlap"] = at["q_link"]
        return np.stack([found[name] for name in names])

    return _Functions(names, values)


def _length_over_side(model: Ising, zero: Array, smallest: Array) -> Array:
    """Xi / L of the longest axes; NaN where they are open or of a single site."""
    lattice = model.lattice
    side = max(lattice.shape) if lattice and lattice.periodic else 1
    return correlation_length(zero, smallest, side) / side if side > 1 else np.full_like(zero, np.nan)


def _widening(series: Array, time: IntegratedTime | None) -> Array:
    """Factor to the errors of one sample: averages over stretches of time that are short against tau are correlated.

    ``series``: (steps, samples, chains, temperatures); 1 where there are several samples, whose ``time`` is not needed.
    """
    if series.shape[1] > 1 or time is None:
        return np.ones(series.shape[-1])
    chains = series[:, 0]
    stretches = bin_means(chains.mean(axis=1), min(BINS, len(chains) // 2))
    found = stretches.std(axis=0, ddof=1) / np.sqrt(len(stretches))
    true = np.nan_to_num(time.mean_error[0])
    return np.asarray(np.maximum(1.0, np.divide(true, found, out=np.ones_like(found), where=found > 0)))


def _sweeps_a_step(result: TemperResult) -> int:
    """Sweeps between measurements."""
    return int(result.sweep[1] - result.sweep[0])
