"""Averages of a tempering run at each temperature, with errors that can be trusted or say that they cannot."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim.analysis.autocorrelation import SHORTEST, IntegratedTime, integrated_time
from spinsim.analysis.equilibration import FEW_SAMPLES, Equilibration
from spinsim.analysis.jackknife import bin_means, bootstrap, jackknife, standard_error, too_small
from spinsim.analysis.runs import FEWEST_FOR_ERRORS, Axis, Tempered
from spinsim.analysis.verdict import judge
from spinsim.errors import InputError, argument
from spinsim.machine.memory import require
from spinsim.observables import Facts, Observable, Point, left_out, observables, own_observables
from spinsim.observables.moments import MOMENTS, PerSite, moments_of, series_of

Array = npt.NDArray[np.float64]

FEWEST_STEPS: Final = 16
BINS: Final = 32  # of the series of a single sample
_NO_SCATTER: Final = 1e-12  # of a value: less is rounding
_SINGLES: Final = 9  # numbers for each energy that are in memory at once
_PAIRS: Final = 7  # likewise for each overlap
_SCALAR: Final = 4  # axes of a number for each configuration


@dataclass(frozen=True)
class Estimate:
    """An observable at each temperature, arrays of shape (temperatures,)."""

    value: Array  # averaged over time, copies and disorder
    error: Array  # standard error: from sample to sample where there are several, else from the series' own correlation
    tau: Array  # integrated autocorrelation time in sweeps, the mean over samples
    trusted: npt.NDArray[np.bool_]
    """Whether the error is one: of one sample, whether its series is at least 20 tau long; of four or more, whether
    they differ at all, as errors over samples need no tau. It is False of two and three samples, whose scatter says too
    little, and says nothing on equilibrium, which the verdict is for."""


@dataclass(frozen=True)
class Summary:
    """What a tempering run says."""

    axis: Axis  # what the averages stand against, from its coldest end, (temperatures,)
    estimates: dict[str, Estimate]  # by name, those of ``observables`` that the run has
    equilibration: dict[str, Equilibration]  # at the coldest end, of the energy and, with copies, of q^2 and q_link
    problems: tuple[str, ...]  # evidence against equilibrium, a clause each
    doubts: tuple[str, ...]  # evidence of equilibrium that is missing, likewise; alone they leave a run "undecided"
    verdict: str  # begins with "in equilibrium", "not in equilibrium" or "undecided"
    long_enough: dict[str, Array] = field(default_factory=dict)
    """Share of the samples whose series is at least 20 tau long, by the name of the series, (temperatures,) each."""
    notes: list[str] = field(default_factory=list)
    """What a reader of the numbers must know, a sentence each: samples that are few or whose series are short, columns
    that this run cannot have, how well energy and link overlap of Gaussian couplings agree."""


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
    times = _times(series)
    tested = {"energy": "energy" if "energy" in series else "e_s", "q^2": "q^2", "q_link": "q_link"}
    judged = judge(result, {name: series[key][..., 0] for name, key in tested.items() if key in series})
    long_enough = {name: time.trusted.mean(axis=0) for name, time in times.items()}
    notes = _on_samples(result, long_enough) + left_out(facts_of(result))
    if judged.links and judged.links.agrees:
        notes.append(f"With Gaussian couplings {judged.links.words}.")
    estimated = _estimates(result, series, times)
    said = (judged.problems, judged.doubts, judged.words)
    return Summary(result.axis, estimated, judged.equilibration, *said, long_enough, notes)


def estimates(result: Tempered) -> dict[str, Estimate]:
    """The observables of ``summarize`` alone, without a word on equilibrium."""
    series = checked_series(result)
    return _estimates(result, series, _times(series))


def resampled(result: Tempered, resamples: int, seed: int) -> dict[str, Array]:
    """Each observable's curve with its bootstrap resamples, (1 + resamples, temperatures), row 0 from all data.

    Drawn are samples, or stretches of time where there is one sample; their spread is widened as errors are.
    """
    series = checked_series(result)
    averages = averaged(result, series)
    curves = bootstrap(averages.observed, _entries(averages.moments), resamples, seed)
    times = _times(series) if result.model.samples == 1 else {}
    wider = {name: widening(series[name], time) for name, time in times.items()}
    return {
        o.name: curves[0, k] + (curves[:, k] - curves[0, k]) * wider.get(o.series, 1.0)
        for k, o in enumerate(averages.records)
    }


def _times(series: dict[str, Array]) -> dict[str, IntegratedTime]:
    return {name: integrated_time(values, chain_axis=2) for name, values in series.items()}


def _estimates(result: Tempered, series: dict[str, Array], times: dict[str, IntegratedTime]) -> dict[str, Estimate]:
    averages = averaged(result, series)
    of_all = jackknife(averages.observed, _entries(averages.moments))
    wider = {name: widening(values, times[name]) for name, values in series.items()}
    each = zip(averages.records, of_all.value, of_all.error, strict=True)
    return {o.name: _estimate(result, value, error * wider[o.series], times[o.series]) for o, value, error in each}


def own_estimate(result: Tempered, name: str) -> Estimate:
    """Average of an observable of the user's own, place by place of the ladder and within it element by element."""
    check_length(result)
    values = np.asarray(_own(result)[name], np.float64)
    series = values.reshape(*values.shape[:3], -1)
    time = integrated_time(series, chain_axis=2)
    average = jackknife(np.asarray, _entries(series.mean(axis=2)[:, :, None])[:, 0])
    return _estimate(result, average.value, average.error * widening(series, time), time)


def _estimate(result: Tempered, value: Array, error: Array, time: IntegratedTime) -> Estimate:
    there = np.isfinite(error) & (error > _NO_SCATTER * np.abs(value))  # of samples that differ, and all have it
    trusted = there & can_trust(result.model.samples, time.trusted[0])
    return Estimate(value, error, time.tau.mean(axis=0) * sweeps_a_step(result), trusted)


def can_trust(samples: int, of_one: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Whether so many samples have errors, at each temperature; of a single one its series decides."""
    return of_one if samples == 1 else np.full(of_one.shape, samples >= FEWEST_FOR_ERRORS)


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


class Averages(NamedTuple):
    """Observables of a run as functions of averaged moments."""

    records: tuple[Observable, ...]  # in the order of its summary
    observed: Callable[
        [Array], Array
    ]  # all of them, (observables, temperatures), from averages (moments, temperatures)
    moments: Array  # averaged over copies or pairs of copies, (steps, samples, moments, temperatures)


def averaged(result: Tempered, series: dict[str, Array]) -> Averages:
    """Average the moments of a run over copies, of whose series those in ``series`` are there already."""
    records, run = observables_of(result), per_site(result)
    names = moments_of(records)
    moments = [(series[name] if name in series else one_series(run, name)).mean(axis=2) for name in names]
    point = Point(result.model, result.temperature)
    if result.in_time is not None:
        point = point._replace(gamma=result.in_time.gamma, k_time=result.in_time.k_time)

    def values(mean: Array) -> Array:
        return observed(point, records, dict(zip(names, mean, strict=True)))

    return Averages(records, values, np.stack(moments, axis=2))


def observed(point: Point, records: Sequence[Observable], at: Mapping[str, Array]) -> Array:
    """Observables, (observables, temperatures), from averages of moments by name."""
    return np.stack([o.value(point, *(at[name] for name in o.moments)) for o in records])


def facts_of(result: Tempered) -> Facts:
    return Facts(
        result.model,
        result.energy.shape[2],
        result.has_correlations,
        staggered=result.has_staggered,
        in_time=result.in_time is not None,
        magnetization_modes=result.has_magnetization_modes,
    )


def observables_of(result: Tempered) -> tuple[Observable, ...]:
    own = own_observables(name for name, values in _own(result).items() if values.ndim == _SCALAR)
    return observables(facts_of(result)) + own


def _own(result: Tempered) -> Mapping[str, Array]:
    """Returns the series of the user's own observables by name, empty of runs that have none."""
    return getattr(result, "measured", {})


def per_site(result: Tempered) -> PerSite:
    model, sites = result.model, result.model.sites
    return PerSite(
        model,
        energy=result.energy / sites,
        m=result.magnetization / sites,
        m_s=result.staggered_magnetization / sites,
        q=result.overlap / sites,
        q_link=result.link_overlap / max(1, model.bonds),
        overlap=result.overlap,
        m_modes=result.magnetization_mode,
        q_modes=result.overlap_mode,
        in_time=result.in_time,
        own=_own(result),
    )


def one_series(run: PerSite, name: str) -> Array:
    """Returns a moment by its name, (steps, samples, chains, temperatures)."""
    if name in run.own:
        return np.asarray(run.own[name], np.float64)
    values = MOMENTS[name].value(run)
    return fluctuations(values) if MOMENTS[name].variance else values


def fluctuations(values: Array) -> Array:
    """Squared deviations from each sample's mean, (steps, samples, copies, temperatures), averaging to its variance.

    The measured mean lies nearer to the data than the true one does, by the mean's own variance: copies, independent of
    each other, tell it; of one copy it is 2 tau / n of the variance (U. Wolff, Comput. Phys. Commun. 156, 143 (2004),
    eq. 49). So the variance has no bias.
    """
    steps, _, copies, _ = values.shape
    squares = (values - values.mean(axis=(0, 2), keepdims=True)) ** 2
    if copies > 1:
        return np.asarray(squares + values.mean(axis=0).var(axis=1, ddof=1)[:, None] / copies)
    tau = integrated_time(values, chain_axis=2).tau
    return np.asarray(squares / (1 - np.minimum(2 * tau / steps, 0.5))[:, None])


def checked_series(result: Tempered) -> dict[str, Array]:
    """Series that autocorrelation times belong to, per site or bond, (steps, samples, chains, temperatures)."""
    check_length(result)
    singles = _SINGLES * result.energy.size + _PAIRS * result.overlap.size
    require(8.0 * singles, "analysing the run", "measure less often, or run with fewer --replicas")
    run = per_site(result)
    return {name: one_series(run, name) for name in series_of(observables_of(result))}


def check_length(result: Tempered) -> None:
    steps = len(result.energy)
    if steps < FEWEST_STEPS:
        settings = f"{argument('sweeps')} or a smaller {argument('measure_every')}"
        raise InputError(
            f"{steps} measurements are too few to analyse: give at least {FEWEST_STEPS}, with a larger {settings}"
        )


def _entries(moments: Array) -> Array:
    """Averages in each sample or, of one, in stretches of time, (samples or stretches, moments, temperatures)."""
    steps, samples = moments.shape[:2]
    return moments.mean(axis=0) if samples > 1 else bin_means(moments[:, 0], min(BINS, steps // 2))


def widening(series: Array, time: IntegratedTime) -> Array:
    """Factor to the errors of one sample: averages over stretches of time that are short against tau are correlated.

    ``series``: (steps, samples, chains, temperatures); 1 where there are several samples.
    """
    if series.shape[1] > 1:
        return np.ones(series.shape[-1])
    chains = series[:, 0]
    stretches = bin_means(chains.mean(axis=1), min(BINS, len(chains) // 2))
    return too_small(standard_error(stretches), time.mean_error[0])


def sweeps_a_step(result: Tempered) -> int:
    return int(result.sweep[1] - result.sweep[0])
