"""A tempering run's averages, free energy and entropy at temperatures between those that were simulated."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from spinsim.analysis.autocorrelation import integrated_time
from spinsim.analysis.estimators import measured, observed
from spinsim.analysis.multihistogram import MultiHistogram, multi_histogram
from spinsim.analysis.runs import Axis, Tempered, temperatures
from spinsim.analysis.samples import sample_of
from spinsim.analysis.summary import BINS, Estimate, checked_series, few_samples, sweeps_a_step, widening
from spinsim.errors import InputError
from spinsim.inputs.checks import finite_array
from spinsim.observables import Observable, Point, in_field, observables
from spinsim.observables.moments import MOMENTS, moments_of
from spinsim.observables.observable import COPIES_IN_FIELD

Array = npt.NDArray[np.float64]

FEWEST: Final = 50  # independent measurements, effectively, at a new temperature


@dataclass(frozen=True)
class Reweighting:
    """Averages at temperatures that were not simulated.

    Attributes:
        temperature: Those asked for, (temperatures,).
        estimates: Columns of ``summarize`` and, per site, free energy and entropy: ``free_energy_per_site`` and
            ``entropy_per_site`` where the ladder goes so far up that infinite temperature, where the entropy is ln 2,
            can be reached from it; else ``free_energy_over_T_difference``, F / T less its value at the ladder's highest
            temperature, and ``entropy_difference`` likewise. tau is that of the nearest temperatures of the ladder.
        effective: Measurements that count at each temperature, Kish's (sum of w)^2 / (sum of w^2), the mean over
            samples, (temperatures,).
        notes: What a reader of the numbers must know, a sentence each.
    """

    temperature: Array
    estimates: dict[str, Estimate]
    effective: Array
    notes: list[str]

    @property
    def axis(self) -> Axis:
        """What the averages stand against."""
        return temperatures(self.temperature)


def reweighted(result: Tempered, temperature: npt.ArrayLike) -> Reweighting:
    """Averages at other temperatures from all copies at all temperatures of the ladder, by multi-histogram reweighting.

    Each sample's ladder is joined for itself. Errors are over samples or, of one sample, jackknife errors over 32
    stretches of time, each left out at all temperatures at once, as exchanges correlate them; they are widened as those
    of ``summarize``. Overlaps of two copies are weighted with the sum of their energies. An error is trusted where at
    least 50 independent measurements count and, of one sample, where those of the neighbouring temperatures are.

    Raises:
        InputError: for fewer than 16 measurements, temperatures that are not above 0, and ladders that do not overlap.
    """
    if result.in_time is not None:
        raise InputError(
            f"averages of {result.model.name} between its values of {result.axis.symbol} are not reweighted: simulate "
            "these"
        )
    targets = finite_array(np.atleast_1d(temperature), "temperature", least=1)
    if targets.ndim != 1 or not (targets > 0).all():
        raise InputError(f"temperatures {targets.tolist()} are not all above 0: give a list of such")
    series = checked_series(result)
    samples = [sample_of(result, k) for k in range(result.model.samples)]
    joined = [_join(sample) for sample in samples]
    parts = [_moments(sample, one, targets) for sample, one in zip(samples, joined, strict=True)]
    mean = _mean(parts)
    absolute = bool(mean["measurements at infinity"].min() >= FEWEST * 2 * _tau(series["energy"])[-1])
    if len(parts) > 1:
        rows = [_mean(parts[:k] + parts[k + 1 :]) for k in range(len(parts))]
    else:
        rests = [_without(result, stretch) for stretch in range(min(BINS, len(result.energy) // 2))]
        rows = [_moments(rest, _join(rest, joined[0].log_partition), targets) for rest in rests]
    found = _observables(result, "infinity" if absolute else "hottest")
    values, *left_out = (observed(Point(result.model, targets), found, averages) for averages in (mean, *rows))
    errors = np.sqrt(len(rows) - 1) * np.array(left_out).std(axis=0)
    estimates = _estimates(result, targets, found, values, errors, series, mean)
    count = mean["measurements"]
    notes = _notes(result, absolute)
    if (few := count < FEWEST * 2 * np.interp(targets, result.temperature, _tau(series["energy"]))).any():
        where = f"from T = {targets[few].min():.5g} to {targets[few].max():.5g}"
        notes.append(f"Fewer than {FEWEST} independent measurements count at {few.sum()} temperatures, {where}.")
    return Reweighting(targets, estimates, count, notes)


def _join(sample: Tempered, start: Array | None = None) -> MultiHistogram:
    """The ladder of a sample."""
    return multi_histogram(sample.energy[:, 0], 1 / sample.temperature, start)


def _without(result: Tempered, stretch: int) -> Tempered:
    """The run without one of its stretches of time; measurements that fill none are at the beginning."""
    steps = len(result.energy)
    bins = min(BINS, steps // 2)
    first = steps % bins + stretch * (steps // bins)
    kept = np.r_[0:first, first + steps // bins : steps]
    names = ("sweep", "energy", "magnetization", "staggered_magnetization", "overlap", "link_overlap", "overlap_mode",
             "magnetization_mode")  # fmt: skip
    return replace(result, **{name: rows[kept] for name in names if len(rows := getattr(result, name))})


def _moments(sample: Tempered, joined: MultiHistogram, targets: Array) -> dict[str, Array]:
    """Averages of moments of one sample, named as ``all_moments`` does, and what belongs to free energies.

    ln Z and entropy are per site, less those of the ladder's highest temperature.
    """
    sites, beta = sample.model.sites, 1 / targets
    energy, shares = sample.energy[:, 0], joined.log_shares(joined.energy)
    singles, pairs = _values(sample, pairs=False), _values(sample, pairs=True)
    if pairs:
        first, second = np.triu_indices(energy.shape[1], 1)
        both = energy[:, first] + energy[:, second]
        shares_of_pairs = joined.log_shares(both, 2)
    rows = []
    for b in (*beta, joined.beta[-1], 0.0):
        weight, log_partition, count = _normalised(shares - b * energy)
        row = {
            name: _variance(value, weight) if MOMENTS[name].variance else (weight * value).sum()
            for name, value in singles.items()
        }
        row |= {"ln Z": log_partition / sites, "entropy": b * row["energy"] + log_partition / sites}
        row["measurements"] = count
        if pairs:
            weight, _, count = _normalised(shares_of_pairs - b * both)
            row |= {name: (weight * value).sum() for name, value in pairs.items()} | {"pairs": count}
        rows.append(row)
    *asked, hottest, infinite = rows
    found = {name: np.array([row[name] for row in asked]) for name in asked[0]}
    found["ln Z"] -= hottest["ln Z"]
    found["entropy"] -= hottest["entropy"]
    found["ln Z at infinity"] = np.full(len(targets), infinite["ln Z"] - hottest["ln Z"])
    found["entropy of the hottest"] = np.full(len(targets), hottest["entropy"] - infinite["ln Z"])
    found["measurements at infinity"] = np.full(len(targets), infinite["measurements"])
    return found


def _normalised(logarithms: Array) -> tuple[Array, float, float]:
    """Weights whose sum is 1, the logarithm of what it was, and how many measurements they come to (Kish)."""
    largest = float(logarithms.max())
    weight = np.exp(logarithms - largest)
    total = float(weight.sum())
    weight /= total
    return weight, largest + float(np.log(total)), float(1 / (weight**2).sum())


def _values(sample: Tempered, pairs: bool) -> dict[str, Array]:
    """Returns the moments of one sample that each copy, or each pair of copies, has, (steps, copies, temperatures).

    Of a variance it is the number whose variance it is.
    """
    run, found = measured(sample), _observables(sample, "hottest")
    names = [name for name in moments_of(found) if name in MOMENTS and MOMENTS[name].pairs == pairs]
    return {name: MOMENTS[name].value(run)[:, 0] for name in names}


def _variance(values: Array, weight: Array) -> float:
    """Weighted variance; the square of the mean comes from different copies, which are independent, where there are."""
    copies = values.shape[1]
    centred = values - (weight * values).sum()
    square = float((weight * centred**2).sum())
    if copies == 1:
        return square
    means = (weight * centred).sum(axis=(0, 2)) / weight.sum(axis=(0, 2))
    return square - float((means.sum() ** 2 - (means**2).sum()) / (copies * (copies - 1)))


def _mean(parts: list[dict[str, Array]]) -> dict[str, Array]:
    return {name: np.mean([part[name] for part in parts], axis=0) for name in parts[0]}


def _observables(result: Tempered, reference: str) -> tuple[Observable, ...]:
    """Returns what is found at other temperatures; ``reference`` as ``Facts`` has it."""
    copies = min(result.energy.shape[2], COPIES_IN_FIELD - 1)  # connected overlaps would take weights of four copies
    return observables(result.model, copies, result.has_correlations, reference, result.has_staggered)


def _tau(series: Array) -> Array:
    """Integrated autocorrelation time in measurements at each temperature, the mean over samples."""
    return np.asarray(integrated_time(series, chain_axis=2).tau.mean(axis=0))


def _estimates(
    result: Tempered,
    targets: Array,
    columns: tuple[Observable, ...],
    values: Array,
    errors: Array,
    series: dict[str, Array],
    mean: dict[str, Array],
) -> dict[str, Estimate]:
    """Values and errors with what the series at the ladder's neighbouring temperatures say of them."""
    times = {key: integrated_time(series[key], chain_axis=2) for key in dict.fromkeys(o.series for o in columns)}
    found = {}
    for o, value, spread in zip(columns, values, errors, strict=True):
        time, ladder = times[o.series], result.temperature
        tau = np.interp(targets, ladder, time.tau.mean(axis=0))
        error = spread * np.interp(targets, ladder, widening(series[o.series], time))
        count = mean["pairs" if MOMENTS[o.series].pairs else "measurements"]
        trusted = np.isfinite(error) & (error > 0) & (count >= FEWEST * 2 * tau)
        if result.model.samples == 1:
            trusted &= np.interp(targets, ladder, time.trusted[0].astype(np.float64)) == 1
        found[o.name] = Estimate(value, error, tau * sweeps_a_step(result), trusted)
    return found


def _notes(result: Tempered, absolute: bool) -> list[str]:
    """What the columns of free energy and entropy are, and what is left out."""
    notes = few_samples(result.model.samples)
    if not absolute:
        notes.append(
            f"F / T and entropy per site are less those at T = {result.temperature[-1]:.5g}: for absolute ones the "
            "ladder must reach temperatures so high that infinite temperature can be reached from them."
        )
    if in_field(result.model) and result.energy.shape[2] > 1:
        notes.append("The spin-glass susceptibility is left out: in a field it is not reweighted.")
    return notes
