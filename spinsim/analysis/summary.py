"""Averages of a tempering run at each temperature, with errors that can be trusted or say that they cannot."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from spinsim.analysis.autocorrelation import SHORTEST, IntegratedTime, integrated_time
from spinsim.analysis.equilibration import FEW_SAMPLES, Equilibration
from spinsim.analysis.estimators import all_moments, all_series, functions
from spinsim.analysis.jackknife import bin_means, bootstrap, jackknife
from spinsim.analysis.runs import Axis, Tempered
from spinsim.analysis.samples import FEWEST_FOR_ERRORS
from spinsim.analysis.verdict import judge
from spinsim.errors import InputError, argument
from spinsim.machine.memory import require
from spinsim.observables import left_out

Array = npt.NDArray[np.float64]

FEWEST_STEPS: Final = 16
BINS: Final = 32  # of the series of a single sample
_NO_SCATTER: Final = 1e-12  # of a value: less is rounding
_SINGLES: Final = 9  # numbers for each energy that are in memory at once
_PAIRS: Final = 7  # likewise for each overlap


@dataclass(frozen=True)
class Estimate:
    """An observable at each temperature, arrays of shape (temperatures,).

    Attributes:
        value: Averaged over time, copies and disorder.
        error: Standard error: from sample to sample where there are several, else from the series' own correlation.
        tau: Integrated autocorrelation time in sweeps, the mean over samples.
        trusted: Whether the error is one: of one sample, whether its series is at least 20 tau long; of four or more,
            whether they differ at all, as errors over samples need no tau. It is False of two and three samples, whose
            scatter says too little, and says nothing on equilibrium, which the verdict is for.
    """

    value: Array
    error: Array
    tau: Array
    trusted: npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Summary:
    """What a tempering run says.

    Attributes:
        axis: What the averages stand against, from its coldest end, (temperatures,).
        estimates: By name, those of ``observables`` that the run has: no overlaps where there is one copy.
        equilibration: At the coldest end, of the energy and, with two copies or more, of q^2 and q_link.
        problems: Evidence against equilibrium, a clause each.
        doubts: Evidence of equilibrium that is missing, a clause each; without problems they make a run "undecided".
        verdict: Whether the run was in equilibrium, in words; begins with "in equilibrium", "not in equilibrium" or
            "undecided".
        long_enough: Share of the samples whose series is at least 20 tau long, by the name of the series,
            (temperatures,) each.
        notes: What a reader of the numbers must know, a sentence each: samples that are few or whose series are
            short, columns that this run cannot have, how well energy and link overlap of Gaussian couplings agree.
    """

    axis: Axis
    estimates: dict[str, Estimate]
    equilibration: dict[str, Equilibration]
    problems: tuple[str, ...]
    doubts: tuple[str, ...]
    verdict: str
    long_enough: dict[str, Array] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def summarize(result: Tempered) -> Summary:
    """Averages, errors, autocorrelation times and whether the run was in equilibrium.

    Energy and moments are averaged over time, copies (or pairs of copies) and samples; cumulants, specific heat,
    susceptibilities and correlation lengths are functions of those averages, with jackknife errors over samples, or
    over 32 stretches of time where there is one sample; those are widened as far as stretches are too short against
    tau. Errors over samples hold the noise of each sample's averages too and ask for no autocorrelation time.

    U = 1 - [<m^4>] / (3 [<m^2>]^2), likewise of q and E; the specific heat per site is [<E^2> - <E>^2] / (N T^2); the
    susceptibility is N [<m^2>] / T, that of |m| N [<m^2> - <|m|>^2] / T; the spin-glass susceptibility N [<q^2>]. The
    second-moment correlation length is xi = sqrt([<m^2>] / [<|m(k)|^2>] - 1) / (2 sin(k / 2)), k = 2 pi / L along an
    axis, and likewise for q; |m(k)|^2 is averaged over the longest axes, of length L. It is NaN where the root is of
    less than 0. In a field the susceptibilities are connected, N [<m^2> - <m>^2] / T and the sum over i and j of
    [(<s_i s_j> - <s_i><s_j>)^2] / N, which takes four copies; the correlation length is that of <m^2> - <m>^2 for a
    ferromagnet, whose <m(k)> vanishes; ``notes`` names what is left out.
    Sources: F. Cooper, B. Freedman, D. Preston, Nucl. Phys. B 210, 210 (1982); for the overlap H. G. Ballesteros et
    al., Phys. Rev. B 62, 14237 (2000); in a field A. P. Young, H. G. Katzgraber, Phys. Rev. Lett. 93, 207203 (2004).

    Raises:
        InputError: for fewer than 16 measurements.
    """
    series = checked_series(result)
    times = {name: integrated_time(values, chain_axis=2) for name, values in series.items()}
    looked_at = {"energy": "energy" if "energy" in series else "e_s", "q^2": "q^2", "q_link": "q_link"}
    judged = judge(result, {name: series[key][..., 0] for name, key in looked_at.items() if key in series})
    long_enough = {name: time.trusted.mean(axis=0) for name, time in times.items()}
    measured = result.energy.shape[2], result.has_correlations, result.has_magnetization_modes
    notes = _on_samples(result, long_enough) + left_out(result.model, *measured)
    if judged.links and judged.links.agrees:
        notes.append(f"With Gaussian couplings {judged.links.words}.")
    found = _estimates(result, series, times)
    said = (judged.problems, judged.doubts, judged.words)
    return Summary(result.axis, found, judged.equilibration, *said, long_enough, notes)


def estimates(result: Tempered) -> dict[str, Estimate]:
    """The observables of ``summarize`` alone, without a word on equilibrium.

    Raises:
        InputError: as ``summarize``.
    """
    series = checked_series(result)
    return _estimates(result, series, {name: integrated_time(values, chain_axis=2) for name, values in series.items()})


def _estimates(result: Tempered, series: dict[str, Array], times: dict[str, IntegratedTime]) -> dict[str, Estimate]:
    moments, data = _entries(result, series)
    observed = functions(result, moments)
    found = jackknife(observed.values, data)
    wider = {name: widening(values, times[name]) for name, values in series.items()}
    sweeps = sweeps_a_step(result)
    estimates = {}
    for k, o in enumerate(observed.observables):
        estimates[o.name] = _estimate(found.value[k], found.error[k] * wider[o.series], times[o.series], sweeps)
    return estimates


def _estimate(value: Array, error: Array, time: IntegratedTime, sweeps: int) -> Estimate:
    """An estimate with tau in sweeps, of ``sweeps`` a measurement.

    Errors over samples that do not differ, or of which some alone have a value, are none, nor are those over two or
    three samples.
    """
    trusted = np.isfinite(error) & (error > _NO_SCATTER * np.abs(value))
    if 1 < len(time.trusted) < FEWEST_FOR_ERRORS:
        trusted[:] = False
    elif len(time.trusted) == 1:
        trusted &= time.trusted[0]
    return Estimate(value, error, time.tau.mean(axis=0) * sweeps, trusted)


def few_samples(samples: int) -> list[str]:
    """How well errors over few samples are known, in a sentence; none of one sample and of many."""
    if not 1 < samples < FEW_SAMPLES:
        return []
    if samples < FEWEST_FOR_ERRORS:
        return [
            f"{samples} samples have no errors, as their scatter says too little: run {FEWEST_FOR_ERRORS} or more "
            f"(--samples), better {FEW_SAMPLES}."
        ]
    known = 1 / np.sqrt(2 * (samples - 1))
    return [f"Errors over {samples} samples are known to {known:.0%} of themselves; {FEW_SAMPLES} or more would do."]


def _on_samples(result: Tempered, long_enough: dict[str, Array]) -> list[str]:
    """Sentences on errors over samples: how well they are known, and how many samples' series are short."""
    samples, sentences, axis = result.model.samples, few_samples(result.model.samples), result.axis
    name = min(long_enough, key=lambda key: float(long_enough[key].min()))
    short = 1 - long_enough[name]
    if samples > 1 and short.max() > 0:
        sentences.append(
            f"Of the {samples} samples {short.max():.0%} have a series of {name} shorter than {SHORTEST} "
            f"autocorrelation times at {axis.symbol} = {axis.values[int(short.argmax())]:.5g}, where most have: errors "
            "over samples hold without them if the run was in equilibrium."
        )
    return sentences


def resampled(result: Tempered, resamples: int, seed: int) -> dict[str, Array]:
    """Each observable's curve with its bootstrap resamples, (1 + resamples, temperatures), row 0 from all data.

    Drawn are samples, or stretches of time where there is one sample; their spread is widened as errors are.

    Raises:
        InputError: as ``summarize``, and as ``bootstrap``.
    """
    series = checked_series(result)
    moments, data = _entries(result, series)
    observed = functions(result, moments)
    curves = bootstrap(observed.values, data, resamples, seed).values
    wider = dict.fromkeys(series, np.ones(len(result.temperature)))
    if result.model.samples == 1:
        wider = {key: widening(values, integrated_time(values, chain_axis=2)) for key, values in series.items()}
    found = {}
    for k, o in enumerate(observed.observables):
        found[o.name] = curves[0, k] + (curves[:, k] - curves[0, k]) * wider[o.series]
    return found


def checked_series(result: Tempered) -> dict[str, Array]:
    """Series that autocorrelation times belong to, (steps, samples, chains, temperatures).

    Raises:
        InputError: for fewer than 16 measurements, and where the series do not fit in memory.
    """
    check_length(result)
    singles = _SINGLES * result.energy.size + _PAIRS * result.overlap.size
    require(8.0 * singles, "analysing the run", "measure less often, or run with fewer --replicas")
    return all_series(result)


def check_length(result: Tempered) -> None:
    """Refuse runs of fewer than 16 measurements.

    Raises:
        InputError: for them.
    """
    steps = len(result.energy)
    if steps < FEWEST_STEPS:
        settings = f"{argument('sweeps')} or a smaller {argument('measure_every')}"
        raise InputError(
            f"{steps} measurements are too few to analyse: give at least {FEWEST_STEPS}, with a larger {settings}"
        )


def _entries(result: Tempered, series: dict[str, Array]) -> tuple[list[str], Array]:
    """Names of moments and their averages in each sample or, of one sample, in stretches of time.

    The averages have the shape (samples or stretches, moments, temperatures).
    """
    moments = all_moments(result, series)
    averaged = np.stack(list(moments.values()), axis=2)
    steps, samples = averaged.shape[:2]
    data = averaged.mean(axis=0) if samples > 1 else bin_means(averaged[:, 0], min(BINS, steps // 2))
    return list(moments), data


def widening(series: Array, time: IntegratedTime) -> Array:
    """Factor to the errors of one sample: averages over stretches of time that are short against tau are correlated.

    ``series``: (steps, samples, chains, temperatures); 1 where there are several samples.
    """
    if series.shape[1] > 1:
        return np.ones(series.shape[-1])
    chains = series[:, 0]
    stretches = bin_means(chains.mean(axis=1), min(BINS, len(chains) // 2))
    found = stretches.std(axis=0, ddof=1) / np.sqrt(len(stretches))
    true = np.nan_to_num(time.mean_error[0])
    return np.asarray(np.maximum(1.0, np.divide(true, found, out=np.ones_like(found), where=found > 0)))


def sweeps_a_step(result: Tempered) -> int:
    """Sweeps between measurements."""
    return int(result.sweep[1] - result.sweep[0])
