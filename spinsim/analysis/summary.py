"""Averages of a tempering run at each temperature, with errors and marks of the errors that can be trusted."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from spinsim.analysis.autocorrelation import FEWEST_CARRIERS, IntegratedTime
from spinsim.analysis.chains import LADDERS, SHORTEST, merged, of_merges
from spinsim.analysis.distributions import student_tail
from spinsim.analysis.equilibration import Equilibration, beyond_constant, judge
from spinsim.analysis.jackknife import bootstrap, jackknife, standard_error
from spinsim.analysis.kinds import favours_parallel_spins, is_antiferromagnet
from spinsim.analysis.run_sums import Followed, in_order
from spinsim.analysis.runs import FEWEST_FOR_ERRORS, Array, Axis, Bools, Tempered, once
from spinsim.analysis.runs import FEWEST_STEPS as FEWEST_STEPS
from spinsim.analysis.statistics import Statistics, observed, point_of, statistics_of
from spinsim.analysis.statistics import observables_of as observables_of
from spinsim.analysis.walks import FEW_SAMPLES
from spinsim.observables.quantities import in_field
from spinsim.observables.table import left_out, moments_of, series_of

_NO_SCATTER: Final = 1e-12  # of a value: less is rounding


@dataclass(frozen=True)
class Estimate:
    """An observable at each temperature, arrays of shape (temperatures,)."""

    value: Array  # averaged over time, copies and disorder
    error: Array  # standard error: from the scatter of samples or, for one sample, the autocorrelation of its series
    tau: Array  # integrated autocorrelation time in sweeps, the mean over samples
    trusted: Bools
    """True where the error can be trusted. The run of a single sample must span at least 64 tau and 192 times of the
    walk along the ladder (``chains``), and rest on at least five rare events. Four or more samples must differ; errors
    over samples need no tau. Two and three samples are never trusted, as their scatter says too little. The mark says
    nothing about equilibrium, which the verdict is for."""


@dataclass(frozen=True)
class Summary:
    """Averages of a tempering run, and whether it was in equilibrium."""

    axis: Axis  # abscissa of the averages, from its coldest end, (temperatures,)
    estimates: dict[str, Estimate]  # observables of the run, by name
    equilibration: dict[str, Equilibration]
    """Tests by name, at the coldest place where each fluctuates: of the energy; with copies, of q^2 and q_link; in a
    field, of m and q; and of m^2 or m_s^2 where these measure order."""
    problems: tuple[str, ...]  # evidence against equilibrium, a clause each
    doubts: tuple[str, ...]  # missing evidence of equilibrium, likewise; doubts alone leave a run "undecided"
    verdict: str  # begins with "in equilibrium", "not in equilibrium" or "undecided"
    every: int  # sweeps between two measurements
    by_chance: bool  # true if tests that fail by chance, and not exchanges alone, are evidence against equilibrium
    long_enough: dict[str, Array] = field(default_factory=dict)
    """Share of the samples whose run is long enough for an error of its own, by the name of the series,
    (temperatures,) each."""
    notes: list[str] = field(default_factory=list)
    """Notes for readers of the numbers: few samples or short series, columns that this run cannot have, and the
    agreement of energy and link overlap for Gaussian couplings."""


@once
def summarize(result: Tempered) -> Summary:
    """Averages, errors, autocorrelation times, and a verdict on the equilibrium of a run.

    Energy and moments are averaged over time, copies (or pairs of copies) and samples; cumulants, specific heat,
    susceptibilities and correlation lengths are functions of those averages, with jackknife errors over samples, or
    over 16 to 64 blocks of time where there is one sample (``chains``). Errors over samples include the noise of
    each sample's averages and need no autocorrelation time.

    U = 1 - [<m^4>] / (3 [<m^2>]^2), likewise of q and E; the specific heat per site is [<E^2> - <E>^2] / (N T^2); the
    susceptibility is N [<m^2>] / T, the susceptibility of |m| is N [<m^2> - <|m|>^2] / T, the spin-glass susceptibility
    N [<q^2>]. The second-moment correlation length is xi = sqrt([<m^2>] / [<|m(k)|^2>] - 1) / (2 sin(k / 2)),
    k = 2 pi / L along an axis, and likewise for q; |m(k)|^2 is averaged over the longest axes, of length L. The length
    is NaN where the root's argument is negative. In a field the susceptibilities are connected, N [<m^2> - <m>^2] / T
    and the sum over i and j of [(<s_i s_j> - <s_i><s_j>)^2] / N, which needs four copies. The correlation length then
    uses <m^2> - <m>^2, for a ferromagnet, whose <m(k)> vanishes. ``notes`` names omitted observables.
    A result with sums keeps its summary for further calls: copy arrays before you change them.
    Sources: F. Cooper, B. Freedman, D. Preston, Nucl. Phys. B 210, 210 (1982); for the overlap H. G. Ballesteros et
    al., Phys. Rev. B 62, 14237 (2000); in a field A. P. Young, H. G. Katzgraber, Phys. Rev. Lett. 93, 207203 (2004).

    Raises:
        InputError: for fewer than 16 measurements.
    """
    statistics = statistics_of(result)
    times = _times(statistics)
    tested = {"energy": "energy" if "energy" in times else "e_s", "q^2": "q^2", "q_link": "q_link"}
    coldest: dict[str, Followed] = {name: statistics.coldest(key) for name, key in tested.items() if key in times}
    coldest |= {name: statistics.followed_at(name, 0) for name in _ordering(statistics, times)}
    keys = {name: tested.get(name, name) for name in coldest}
    found = {name: beyond_constant(one, statistics.followed(keys[name])) for name, one in coldest.items()}
    judged = judge(result, coldest, statistics, {name: one for name, one in found.items() if one[0]})
    long_enough = {name: time.trusted.mean(axis=0) for name, time in times.items()}
    modes = favours_parallel_spins(result.model)  # elsewhere modes of the magnetisation are noise
    notes = _on_samples(statistics, long_enough) + left_out(result.model, statistics.choice, modes)
    if judged.links and judged.links.agrees:
        notes.append(f"With Gaussian couplings {judged.links.words}.")
    said = (judged.equilibration, judged.problems, judged.doubts, judged.words)
    of_run = statistics.every, judged.by_chance
    return Summary(result.axis, _estimates(statistics, times), *said, *of_run, long_enough, notes)


def _ordering(statistics: Statistics, times: Iterable[str]) -> list[str]:
    """Moments by which a run is judged in addition to energy and overlaps; tables print these moments."""
    model = statistics.result.model
    orders = {"m": in_field(model), "q": in_field(model), "m_s^2": is_antiferromagnet(model)}
    orders["m^2"] = favours_parallel_spins(model) and not in_field(model)
    return [name for name in times if orders.get(name)]


def estimates(result: Tempered) -> dict[str, Estimate]:
    statistics = statistics_of(result)
    return _estimates(statistics, _times(statistics))


@once
def resampled(result: Tempered, resamples: int, seed: int) -> dict[str, Array]:
    """Curves with bootstrap resamples, (1 + resamples, temperatures), row 0 from all data."""
    statistics = statistics_of(result)
    names, values = _functions(statistics)
    curves, wider = statistics.by_merges(
        [o.series for o in statistics.records],
        lambda merge: bootstrap(values, statistics.entries(names, merge), resamples, seed, takes_many=True),
    )
    resamples_of = {
        o.name: curves[0, k] + (curves[:, k] - curves[0, k]) * wider[k] for k, o in enumerate(statistics.records)
    }
    return resamples_of | {o.name: _resampled_own(statistics, o.name, resamples, seed) for o in statistics.own_records}


def _times(statistics: Statistics) -> dict[str, IntegratedTime]:
    return {name: statistics.time(name) for name in series_of(statistics.records)}


def _functions(statistics: Statistics) -> tuple[list[str], Callable[[Array], Array]]:
    """Names of moments, and all observables as a function of means (n, moments, temperatures)."""
    names, point, records = moments_of(statistics.records), point_of(statistics.result), statistics.records

    def values(means: Array) -> Array:
        return np.moveaxis(observed(point, records, dict(zip(names, np.moveaxis(means, 1, 0), strict=True))), 0, 1)

    return names, values


def _estimates(statistics: Statistics, times: dict[str, IntegratedTime]) -> dict[str, Estimate]:
    names, values = _functions(statistics)
    (averages,) = values(statistics.entries(names).mean(axis=0)[None])
    errors, wider = statistics.by_merges(
        [o.series for o in statistics.records],
        lambda merge: jackknife(values, statistics.entries(names, merge), takes_many=True).error,
    )
    estimated = {}
    for o, value, error in zip(statistics.records, averages, errors * wider, strict=True):
        estimated[o.name] = _estimate(statistics, value, error, times[o.series], statistics.every)
    return estimated | {o.name: _own_estimate(statistics, o.name) for o in statistics.own_records}


def own_estimate(result: Tempered, name: str) -> Estimate:
    """Average of a user-defined observable, for each place of the ladder and each element at a place."""
    return _own_estimate(statistics_of(result), name)


def _own_estimate(statistics: Statistics, name: str) -> Estimate:
    chains, samples = statistics.own_chains(name)
    time = in_order([chain.time for chain in chains], samples)
    error = standard_error(time.mean) if len(time.mean) > 1 else time.mean_error[0]
    sweep = statistics.result.sweep
    every = statistics.every if name in statistics.run.own else int(sweep[1] - sweep[0])  # between rows
    return _estimate(statistics, time.mean.mean(axis=0), error, time, every)


def _resampled_own(statistics: Statistics, name: str, resamples: int, seed: int) -> Array:
    """Bootstrap of a user-defined observable, with the same resamples as all others."""
    chains, samples = statistics.own_chains(name)
    if statistics.samples > 1:
        return bootstrap(np.asarray, in_order([chain.time for chain in chains], samples).mean, resamples, seed)
    (chain,) = chains

    def curves(merge: int) -> Array:
        parts = merged(chain.blocks[:, 0], merge, chain.seams)
        return bootstrap(np.asarray, parts + (chain.mean[0] - parts.mean(axis=0)), resamples, seed)

    drawn = of_merges(chain.merge[0], curves)
    return np.asarray(drawn[0] + (drawn - drawn[0]) * chain.factor[0])


def _estimate(statistics: Statistics, value: Array, error: Array, time: IntegratedTime, every: int) -> Estimate:
    there = np.isfinite(error) & (error > _NO_SCATTER * np.abs(value))  # samples differ, and each has a value
    trusted = there & can_trust(statistics.samples, time.trusted[0])
    return Estimate(value, error, time.tau.mean(axis=0) * every, trusted)


def can_trust(samples: int, of_one: Bools) -> Bools:
    """Return True where the number of samples gives errors, at each temperature; for one sample its series decides."""
    return of_one if samples == 1 else np.full(of_one.shape, samples >= FEWEST_FOR_ERRORS)


def few_samples(samples: int) -> list[str]:
    """Sentence on the accuracy of errors over few samples; none for one sample and for many."""
    if not 1 < samples < FEW_SAMPLES:
        return []
    if samples < FEWEST_FOR_ERRORS:
        return [
            f"{samples} samples have no errors, as their scatter says too little: run {FEWEST_FOR_ERRORS} or more "
            f"(--samples), better {FEW_SAMPLES}."
        ]
    known, covered = 1 / np.sqrt(2 * (samples - 1)), 1 - 2 * student_tail(samples - 1, 1)
    return [
        f"Errors over {samples} samples are uncertain by {known:.0%}: one error covers {covered:.0%} of cases instead "
        f"of 68 %, by Student's t; take {FEW_SAMPLES} samples or more."
    ]


def _on_samples(statistics: Statistics, long_enough: dict[str, Array]) -> list[str]:
    samples, sentences, axis = statistics.samples, few_samples(statistics.samples), statistics.result.axis
    name = min(long_enough, key=lambda key: float(long_enough[key].min()))
    short = 1 - long_enough[name]
    if samples > 1 and short.max() > 0:
        where = f"{axis.symbol} = {axis.values[int(short.argmax())]:.5g}"
        number = round(short.max() * samples)
        sentences.append(
            f"{number} of {samples} samples ran too short for an error of their own ({name} at {where}), which takes "
            f"{SHORTEST} autocorrelation times, {LADDERS} times of the walk along the ladder and {FEWEST_CARRIERS} "
            "rare events. The errors here come from the scatter of the samples and do not need that, nor does the "
            "verdict."
        )
    return sentences
