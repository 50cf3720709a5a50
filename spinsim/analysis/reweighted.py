"""A tempering run's averages, free energy and entropy at temperatures between those that were simulated.

Measurements come from sums over energy (``engine/measuring/reduction.py``). A bin that may hold several energies
becomes two cells on both sides of its mean energy, each at the standard deviation of evenly spread energies. Moments
change linearly between neighbouring bins. Weights, moments and their products are then correct to second order in the
width. A bin of one energy is one cell, and nothing is lost.

All temperatures of a ladder are joined: a weight depends on the energy alone, so that measurements of equal energy are
added up. Source: A. M. Ferrenberg, R. H. Swendsen, Phys. Rev. Lett. 63, 1195 (1989), in the limit of vanishing bin
width, as in M. R. Shirts, J. D. Chodera, J. Chem. Phys. 129, 124105 (2008).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp

from spinsim.analysis import runs
from spinsim.analysis.run_sums import IndependentRuns, RunSums
from spinsim.analysis.runs import Array, Axis, Integers, Tempered, check_length, samples_in
from spinsim.analysis.statistics import Statistics, choice_of, measurements_of, observed, statistics_of, sums_of
from spinsim.analysis.summary import Estimate, can_trust, few_samples
from spinsim.engine.measuring.reduction import RANGE, Binned, shift_of, spacing_of
from spinsim.errors import InputError, argument
from spinsim.inputs.numbers import finite_array
from spinsim.observables.moments import MOMENTS, VARIANCES
from spinsim.observables.quantities import in_field
from spinsim.observables.table import COPIES_IN_FIELD, Observable, Point, moments_of, observables, series_of

_OF_ENERGY: Final = {"energy": 1, "E^2": 2, "E^4": 4, "(E - <E>)^2": 1}
"""Moments that follow from the energy itself, with the power of the energy in their sums."""
_WIDEST: Final = 1 / 3  # width of bins of several energies, in standard deviations of the energy at a temperature
FEWEST: Final = 50  # effective independent measurements that a new temperature needs
_STEPS: Final = 100
_EXACT: Final = 1e-10  # relative accuracy of the logarithms of partition functions
_AT_ONCE: Final = 2**21  # weights


@dataclass(frozen=True)
class Cells:
    """Sums over the measurements of one energy and one chain."""

    energy: Array  # total, (cells,)
    chain: Integers  # copy, or 0 where sums are over all chains, (cells,)
    names: tuple[str, ...]  # of the quantities in the sums
    sums: Array  # row 0 counts measurements, then a row for each quantity, (1 + names, cells)
    stretches: tuple[tuple[Integers, Array], ...]  # for each stretch of time: cells, and sums (1 + names, these cells)

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
    """Join the cells of independent runs; the chains and stretches of time of all runs are kept apart."""
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
    each: float  # measurements at each temperature

    def log_shares(self, energy: Array, replicas: int = 1) -> Array:
        """Return the term that, added to -beta E, is the logarithm of a weight at any beta, of the energies' shape.

        An energy may be the sum over several independent replicas at one temperature. Averages at another beta use
        these weights divided by their sum. The logarithm of this sum is ln Z, on the scale of ``log_partition``.
        """
        levels, level = np.unique(energy, return_inverse=True)
        offsets = (np.log(self.each) - replicas * self.log_partition)[:, None]
        shares = np.empty(len(levels))
        for piece in _pieces(len(levels), len(self.beta)):
            shares[piece] = -logsumexp(offsets - np.outer(self.beta, levels[piece]), axis=0)
        return np.asarray(shares[level.reshape(np.shape(energy))])


def first_guess(energy: Array, beta: Array) -> Array:
    """Return ln Z of a ladder from the mean of its energies (..., temperatures): d ln Z = -E d beta."""
    mean = energy.reshape(-1, len(beta)).mean(axis=0)
    return np.concatenate([[0.0], np.cumsum(-(mean[1:] + mean[:-1]) / 2 * np.diff(beta))])


def joined(energy: Array, count: npt.ArrayLike, beta: Array, start: Array) -> MultiHistogram:
    """Join the measurements of a ladder, from the number of measurements of each energy over all temperatures.

    Total energies and counts are (levels,); all beta (temperatures,) have equally many measurements. The search starts
    from ``start``, the ``log_partition`` of similar measurements.
    """
    # Newton's search for the minimum of a convex function; its gradient is the surplus of each temperature
    count = np.asarray(count, np.float64)
    total = float(count.sum())
    each, middle = total / len(beta), float(energy @ count) / total
    centred = energy - middle  # energies centred about 0 keep sums exact
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
    """Sums over all measurements: logarithm of the mixture, share of each temperature, products of two shares."""
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


def check_width(run: RunSums, samples: int) -> None:
    """Refuse missing sums over energy, sums of one sample without stretches of time, and sums in wide bins."""
    energies, model = run.reduced.energies, run.reduced.model
    if energies is None or (samples == 1 and energies.blocks == 1):
        raise InputError(
            f"the run of {model.name} has no sums over energy, for which its samples leave no room, or is one of "
            f"several samples: run fewer {argument('samples')}, and reweight all of them together"
        )
    width, spacing = _widest(run), max(spacing_of(model), energies.unit)
    variance = (run.mean("E^2") - run.mean("energy") ** 2).mean(axis=0)  # of the energy per site, over samples
    if width > spacing and width > _WIDEST * model.sites * float(np.sqrt(max(variance.min(), 0.0))):
        raise InputError(
            f"sums over the energies of {model.name} have bins of {width:.3g}, which are wide against the fluctuations "
            "at the lowest temperature: run a ladder that is shorter"
        )


def _widest(run: RunSums) -> float:
    """Return the width of the widest bins of energy."""
    energies = run.reduced.energies
    assert energies is not None  # noqa: S101  (as ``check_width`` has said)
    return energies.unit * 2.0 ** max(shift_of(low, high, energies.bins) for low, high in run.arrays[RANGE].tolist())


def check_levels(run: RunSums) -> None:
    """Refuse sums over energy with several energies in a bin."""
    model, width = run.reduced.model, _widest(run)
    if width > max(spacing_of(model), model.quantum):
        raise InputError(
            f"sums over the energies of {model.name} hold several energies in a bin of {width:.3g}: give couplings and "
            "fields that are small multiples of one number, or a smaller model"
        )


def cells_of_copies(
    run: RunSums, sample: int, names: Sequence[str], middle: Mapping[str, float], spacing: float, merge: int
) -> Cells:
    """Return sums over the energies of each copy of a sample.

    Sums that are not known by copy go into the cells of the first copy, as only their total counts. From moments that
    are variances, numbers near their means (``middle``) are subtracted. Energies are at least ``spacing`` apart.
    """
    energies, sites = run.reduced.energies, run.reduced.model.sites
    assert energies is not None  # noqa: S101  (as ``check_width`` has said)
    binned = energies.of_sample(run.arrays, run.measurements, sample, "energy")
    counts, copies = binned.counts, run.reduced.copies
    energy, shares = _apart(binned, spacing)
    sums: dict[str, Array] = {}  # (copies, blocks, bins or twice as many)
    count = _dealt(counts, shares)

    def of_term(name: str) -> Array:
        k, term = run.names[name], run.term(name)
        row = energies.row[k]
        if term.by_copy:
            return _split(binned, binned.sums[row : row + copies], counts, shares)
        total = _split(binned, binned.sums[row : row + 1], counts.sum(axis=0, keepdims=True), shares)
        return np.concatenate([total, np.zeros((copies - 1, *total.shape[1:]))])

    for name in names:
        if name in _OF_ENERGY:
            sums[name] = count * (energy / sites - middle.get(name, 0.0)) ** _OF_ENERGY[name]
            if name in middle:
                sums[f"{name} squared"] = count * (energy / sites - middle[name]) ** 2
        elif name in middle:
            number, square = (of_term(term) for term in VARIANCES[name])
            sums[name] = number - middle[name] * count
            sums[f"{name} squared"] = square - 2 * middle[name] * number + middle[name] ** 2 * count
        else:
            sums[name] = of_term(name)
    return _cells(run, energy, count, sums, merge)


def cells_of_pairs(run: RunSums, sample: int, names: Sequence[str], spacing: float, merge: int) -> Cells:
    """Return sums over the summed energies of two copies, for all pairs of a sample together."""
    energies = run.reduced.energies
    assert energies is not None  # noqa: S101  (likewise)
    binned = energies.of_sample(run.arrays, run.measurements, sample, "energy_pair")
    energy, shares = _apart(binned, spacing)
    sums = {}
    for name in names:
        row = energies.pair_row[run.names[name]]
        sums[name] = _split(binned, binned.sums[row : row + 1], binned.counts, shares)
    return _cells(run, energy, _dealt(binned.counts, shares), sums, merge)


def _apart(binned: Binned, spacing: float) -> tuple[Array, Array]:
    """Energies of cells, (cells,), and the shifts of the cells of a bin from its mean, (1 or 2,)."""
    mean = _mean_energy(binned)
    spread = np.sqrt(max(binned.width**2 - spacing**2, 0.0) / 12) if binned.width > spacing else 0.0
    shifts = np.array([-spread, spread]) if spread else np.zeros(1)
    return (mean[:, None] + shifts).ravel(), shifts


def _mean_energy(binned: Binned) -> Array:
    return np.asarray(binned.energy.sum(axis=0) / binned.counts.sum(axis=(0, 1)))


def _dealt(counts: Array, shifts: Array) -> Array:
    """Numbers (..., bins) divided evenly among the cells of each bin, (..., cells)."""
    return np.repeat(counts / len(shifts), len(shifts), axis=-1)


def _split(binned: Binned, sums: Array, counts: Array, shifts: Array) -> Array:
    """Sums (chains, blocks, bins) divided among the cells of each bin by the moment's slope over the whole run."""
    dealt = _dealt(sums, shifts)
    if len(shifts) == 1 or sums.shape[-1] < 2:
        return dealt
    mean = sums.sum(axis=(0, 1)) / counts.sum(axis=(0, 1))
    slope = np.gradient(mean, _mean_energy(binned))
    return np.asarray(dealt + _dealt(counts * slope, shifts) * np.tile(shifts, sums.shape[-1]))


def _cells(run: RunSums, energy: Array, count: Array, sums: Mapping[str, Array], merge: int) -> Cells:
    """Cells of arrays (chains, blocks, cells of a chain); stretches of time are ``merge`` blocks each, none for 0."""
    chains, blocks, cells = count.shape
    whole = np.array([count, *sums.values()]).transpose(0, 2, 1, 3).reshape(-1, blocks, chains * cells)
    every_cell, stretches = np.arange(chains * cells), []
    if merge:
        full, number = run.full_blocks, run.full_blocks // merge
        of_each = whole[:, full - number * merge : full].reshape(len(whole), number, merge, -1).sum(axis=2)
        stretches = [(every_cell, of_each[:, k]) for k in range(number)]
    chain = np.repeat(np.arange(chains), cells)
    return Cells(np.tile(energy, chains), chain, tuple(sums), whole.sum(axis=1), tuple(stretches))


@dataclass(frozen=True)
class Reweighting:
    """Averages at temperatures that were not simulated."""

    temperature: Array  # requested temperatures, (temperatures,)
    estimates: dict[str, Estimate]
    """Columns of ``summarize`` and, per site, free energy and entropy. These are ``free_energy_per_site`` and
    ``entropy_per_site`` where the ladder is hot enough to reach infinite temperature, where the entropy is ln 2. Else
    they are ``free_energy_over_T_difference``, F / T less its value at the ladder's highest temperature, and
    ``entropy_difference`` likewise. tau comes from the nearest temperatures of the ladder."""
    effective: Array  # effective measurements, Kish's (sum of w)^2 / (sum of w^2), the mean over samples, likewise
    notes: list[str]  # notes for readers of the numbers, a sentence each
    every: int  # sweeps between two measurements

    @property
    def axis(self) -> Axis:
        return runs.temperatures(self.temperature)


def reweighted(result: Tempered, temperature: npt.ArrayLike) -> Reweighting:
    """Averages at other temperatures from all copies at all temperatures of the ladder, by multi-histogram reweighting.

    The ladder of each sample is joined separately. Errors are over samples or, for one sample, jackknife errors over
    blocks of time. Each block is left out at all temperatures at once, as exchanges correlate them; blocks are as long
    as the longest of ``summarize``. Overlaps of two copies are weighted with the sum of their energies. An error is
    trusted where at least 50 independent measurements count and, for one sample, where the errors of the neighbouring
    temperatures are trusted.

    Raises:
        InputError: for fewer than 16 measurements, temperatures that are not above 0, ladders that do not overlap, and
            sums over energy that are missing or in wide bins.
    """
    if result.in_time is not None:
        raise InputError(
            f"{result.model.name} is not reweighted to other values of {result.axis.symbol}: simulate these"
        )
    targets = finite_array(np.atleast_1d(temperature), "temperature", least=1)
    if targets.ndim != 1 or not (targets > 0).all():
        raise InputError(f"temperatures {targets.tolist()} are not all above 0: give a list of such")
    result, statistics, times, wholes, joins = joined_samples(result)
    parts = [_moments(whole, one, targets) for whole, one in zip(wholes, joins, strict=True)]
    mean = _mean(parts)
    tau = times["energy"].tau
    absolute = bool(mean["measurements at infinity"].min() >= FEWEST * 2 * tau[-1])
    if len(parts) > 1:
        rows = [_mean(parts[:k] + parts[k + 1 :]) for k in range(len(parts))]
    else:
        rests = (wholes[0].without(stretch) for stretch in range(len(wholes[0].singles.stretches)))
        rows = [_moments(rest, join(rest, joins[0].log_partition), targets) for rest in rests]
    columns = _observables(result, "infinity" if absolute else "hottest")
    values, *left_out = (observed(Point(result.model, targets), columns, averages) for averages in (mean, *rows))
    errors = np.sqrt(len(rows) - 1) * np.array(left_out).std(axis=0)
    estimates = _estimates(result, targets, columns, values, errors, times, mean)
    count = mean["measurements"]
    notes = _notes(result, absolute)
    if (few := count < FEWEST * 2 * np.interp(targets, result.temperature, tau)).any():
        where = f"from T = {targets[few].min():.5g} to {targets[few].max():.5g}"
        notes.append(f"Fewer than {FEWEST} independent measurements count at {few.sum()} temperatures, {where}.")
    return Reweighting(targets, estimates, count, notes, statistics.every)


def free_energies(result: Tempered) -> tuple[Array, Array]:
    """Total free energies (samples, temperatures) on the ladder, and their errors, which are NaN of several samples."""
    sites, ladder = result.model.sites, result.temperature
    result, statistics, times, wholes, joins = joined_samples(result)
    parts = [_moments(whole, one, ladder) for whole, one in zip(wholes, joins, strict=True)]
    if min(part["measurements at infinity"].min() for part in parts) < FEWEST * 2 * times["energy"].tau[-1]:
        raise InputError(
            f"the ladder of {result.model.name} ends at T = {ladder[-1]:.5g}, from where infinite temperature cannot "
            f"be reached: run it with higher {argument('temperatures')}"
        )
    order = np.argsort(np.concatenate([part.samples for part in statistics.parts]))
    log_z = np.array([part["ln Z"] - part["ln Z at infinity"] + np.log(2) for part in parts])[order]
    error = np.full(log_z.shape, np.nan)
    if len(log_z) == 1:
        of_one = reweighted(result, ladder).estimates["free_energy_per_site"]
        error[0] = sites * np.where(of_one.trusted, of_one.error, np.nan)
    return -ladder * sites * log_z, error


Joined = tuple[Tempered, Statistics, dict[str, "Time"], list["Counted"], list[MultiHistogram]]
"""A run with sums over energy, its statistics, autocorrelation times, and for each sample its sums and its ladder."""


def joined_samples(result: Tempered) -> Joined:
    """Join the ladder of each sample; refuse short runs, and sums over energy that are missing or in wide bins."""
    check_length(measurements_of(result))
    result = replace(result, reduced=result.reduced or sums_of(result, by_energy=True))
    statistics = statistics_of(result)
    check_width(statistics.run, statistics.samples)
    times, merge = _times(statistics)
    parts = [(part.runs, k) for part in statistics.parts for k in range(len(part.samples))]
    wholes = [_counted(result, runs, k, merge) for runs, k in parts]
    return result, statistics, times, wholes, [join(whole) for whole in wholes]


class Counted(NamedTuple):
    """Sums of one sample over measurements of equal energy."""

    sites: int  # of the model
    beta: Array  # inverse temperatures of the ladder
    start: Array  # ``log_partition`` from its mean energies
    singles: Cells  # of each copy, moments by name; variances less ``middle``, with squares as "(name) squared"
    pairs: Cells | None  # of all pairs of copies, None where there are none
    middle: dict[str, float]  # for each variance, by name, a number near the mean

    def without(self, stretch: int) -> Counted:
        """Leave a stretch of time out, at all temperatures at once."""
        pairs = None if self.pairs is None else self.pairs.without(stretch)
        return self._replace(singles=self.singles.without(stretch), pairs=pairs)


def _counted(result: Tempered, runs: IndependentRuns, sample: int, merge: int) -> Counted:
    """Return the sums of the runs of a sample over its energies; stretches are ``merge`` blocks long."""
    run = runs.first
    moments = [name for name in moments_of(_observables(result, "hottest")) if name in MOMENTS]
    own, of_pairs = ([name for name in moments if MOMENTS[name] == pairs] for pairs in (False, True))
    variances = [name for name in own if name in VARIANCES]
    middle = {name: float(runs.mean(VARIANCES[name][0])[sample].mean()) for name in variances}
    assert run.reduced.energies is not None  # noqa: S101  (as ``check_width`` has said)
    spacing = max(spacing_of(result.model), run.reduced.energies.unit)
    beta, sites = 1 / result.temperature, result.model.sites
    merges = [merge * (run.block_length // one.block_length) for one in runs.runs]
    each = list(zip(runs.runs, merges, strict=True))
    singles = together([cells_of_copies(one, sample, own, middle, spacing, n) for one, n in each])
    pairs = together([cells_of_pairs(one, sample, of_pairs, spacing, n) for one, n in each]) if of_pairs else None
    return Counted(sites, beta, first_guess(sites * runs.mean("energy")[sample], beta), singles, pairs, middle)


def join(whole: Counted, start: Array | None = None) -> MultiHistogram:
    energy, level = np.unique(whole.singles.energy, return_inverse=True)
    count = np.bincount(level, whole.singles.count)
    return joined(energy, count, whole.beta, whole.start if start is None else start)


def _moments(whole: Counted, ladder: MultiHistogram, targets: Array) -> dict[str, Array]:
    """Averages of moments of one sample by name, and ln Z and entropy per site less their values at the hot end."""
    sites, beta, singles, pairs = whole.sites, 1 / targets, whole.singles, whole.pairs
    shares = ladder.log_shares(singles.energy)
    shares_of_pairs = None if pairs is None else ladder.log_shares(pairs.energy, 2)
    rows = []
    for b in (*beta, ladder.beta[-1], 0.0):
        weight, log_partition, count = normalised(shares - b * singles.energy, singles.count)
        row = dict(zip(singles.names, (singles.sums[1:] @ weight).tolist(), strict=True))
        row |= {name: _variance(singles, name, weight) for name in whole.middle}
        row |= {"ln Z": log_partition / sites, "entropy": b * row["energy"] + log_partition / sites}
        row["measurements"] = count
        if pairs is not None and shares_of_pairs is not None:
            weight, _, count = normalised(shares_of_pairs - b * pairs.energy, pairs.count)
            row |= dict(zip(pairs.names, (pairs.sums[1:] @ weight).tolist(), strict=True)) | {"pairs": count}
        rows.append(row)
    *asked, hottest, infinite = rows
    averages = {name: np.array([row[name] for row in asked]) for name in asked[0]}
    averages["ln Z"] -= hottest["ln Z"]
    averages["entropy"] -= hottest["entropy"]
    averages["ln Z at infinity"] = np.full(len(targets), infinite["ln Z"] - hottest["ln Z"])
    averages["entropy of the hottest"] = np.full(len(targets), hottest["entropy"] - infinite["ln Z"])
    has_middle = singles.energy.max() >= 0  # the mean energy of all states is 0
    averages["measurements at infinity"] = np.full(len(targets), infinite["measurements"] * has_middle)
    return averages


def normalised(logarithms: Array, count: Array) -> tuple[Array, float, float]:
    """Weights of a measurement in each cell, normalised to 1, ln of the former sum, and Kish's effective number."""
    largest = float(logarithms.max())
    weight = np.exp(logarithms - largest)
    total = float(weight @ count)
    weight /= total
    return weight, largest + float(np.log(total)), float(1 / (weight**2 @ count))


def _variance(cells: Cells, name: str, weight: Array) -> float:
    """Weighted variance; with several copies, the square of the mean comes from different, independent copies."""
    numbers = cells.of(name)
    mean = float(weight @ numbers)
    square = float(weight @ cells.of(f"{name} squared")) - mean**2
    means = np.bincount(cells.chain, weight * numbers) / np.bincount(cells.chain, weight * cells.count) - mean
    copies = len(means)
    if copies == 1:
        return square
    return square - float((means.sum() ** 2 - (means**2).sum()) / (copies * (copies - 1)))


def _mean(parts: list[dict[str, Array]]) -> dict[str, Array]:
    return {name: np.mean([part[name] for part in parts], axis=0) for name in parts[0]}


def _observables(result: Tempered, reference: str) -> tuple[Observable, ...]:
    """Return the observables at other temperatures; ``reference`` is as for ``observables``."""
    measured = choice_of(result)
    fewer = min(measured.copies, COPIES_IN_FIELD - 1)  # connected overlaps would take weights of four copies
    return observables(result.model, measured._replace(copies=fewer), reference)


class Time(NamedTuple):
    """Autocorrelation of a series at each temperature of the ladder."""

    tau: Array  # in measurements, the mean over samples
    trusted: Array  # share of the samples in which it is trusted
    wider: Array  # factor that widens errors


def _times(statistics: Statistics) -> tuple[dict[str, Time], int]:
    """Autocorrelation times of all observables, and the number of merged blocks, 0 for several samples."""
    names = dict.fromkeys(["energy", *series_of(_observables(statistics.result, "hottest"))])
    is_one = statistics.samples == 1
    merge = max(int(statistics.chain(name).merge.max()) for name in names) if is_one else 0
    times = {}
    for name in names:
        time = statistics.time(name)
        wider = statistics.chain(name).factor_at(merge)[0] if is_one else np.ones(statistics.run.reduced.places)
        times[name] = Time(time.tau.mean(axis=0), time.trusted.mean(axis=0), wider)
    return times, merge


def _estimates(
    result: Tempered, targets: Array, columns: tuple[Observable, ...], values: Array, errors: Array,
    times: dict[str, Time], mean: dict[str, Array],
) -> dict[str, Estimate]:  # fmt: skip
    estimates = {}
    for o, value, spread in zip(columns, values, errors, strict=True):
        time, ladder = times[o.series], result.temperature
        tau = np.interp(targets, ladder, time.tau)
        error = spread * np.interp(targets, ladder, time.wider)
        count = mean["pairs" if MOMENTS[o.series] else "measurements"]
        trusted = np.isfinite(error) & (error > 0) & (count >= FEWEST * 2 * tau)
        trusted &= can_trust(samples_in(result), np.interp(targets, ladder, time.trusted) == 1)
        estimates[o.name] = Estimate(value, error, tau * statistics_of(result).every, trusted)
    return estimates


def _notes(result: Tempered, absolute: bool) -> list[str]:
    notes = few_samples(samples_in(result))
    if not absolute:
        notes.append(
            f"F / T and entropy per site are less those at T = {result.temperature[-1]:.5g}: for absolute ones the "
            "ladder must reach temperatures so high that infinite temperature can be reached from them."
        )
    if in_field(result.model) and choice_of(result).copies > 1:
        notes.append("The spin-glass susceptibility is left out: in a field it is not reweighted.")
    return notes
