"""Density of states g(E): averages at all temperatures, and transitions between two phases that coexist.

g(E) comes from a flat histogram, or from all temperatures of a ladder (A. M. Ferrenberg, R. H. Swendsen, Phys. Rev.
Lett. 63, 1195 (1989)). Errors are jackknife errors over walkers, or over stretches of time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq
from scipy.special import logsumexp

from spinsim.analysis.reweighted import FEWEST, check_levels, join, joined_samples, normalised
from spinsim.analysis.runs import Array, Tempered
from spinsim.analysis.tables import Columns, Report, Row, in_columns, unprinted
from spinsim.errors import InputError
from spinsim.inputs.arguments import public
from spinsim.inputs.numbers import as_floats
from spinsim.model.ising import Ising
from spinsim.registry import job_of
from spinsim.result import Run, as_result

_RANGE: Final = (0.05, 5.0)  # of temperatures in which a peak is looked for, in units of the local fields
_WINDOW: Final = 0.25  # width of sums of P(E) over levels, in standard deviations of the energy at the peak
_CLEAR: Final = 3  # standard errors by which a barrier between two phases must exceed 0


@public
@dataclass(frozen=True, eq=False)
class DensityOfStates:
    """Number of states g(E) of each energy, and canonical averages that follow from it at all temperatures.

    Attributes:
        model: The model.
        energy: Total energies that were met, from the lowest, ``float64`` (levels,), in the coupling unit.
        log_density: ln g of each sample, (samples, levels); minus infinity at energies that a sample did not meet.
        left_out: ln g without each walker or stretch of time in turn, (blocks, samples, levels).
        hottest: Highest temperature of averages; infinite if the run reached infinite temperature. The sum of g over
            all energies is then 2^sites; otherwise g is 1 at the lowest energy of each sample.
        coldest: Lowest temperature of averages; 0 if the run measured its lowest energy often enough.
    """

    model: Ising
    energy: Array
    log_density: Array
    left_out: Array
    hottest: float = np.inf
    coldest: float = 0.0

    @property
    def error(self) -> Array:
        """Standard error of ``log_density``, of its shape; NaN where it is unknown."""
        return _jackknife_error(self.left_out) if len(self.left_out) else np.full_like(self.log_density, np.nan)

    def probability(self, temperature: float) -> Array:
        """Probability of each energy at a temperature above 0, in the coupling unit / k_B, (samples, levels)."""
        logs = self.log_density - self.energy / temperature
        return np.asarray(np.exp(logs - logsumexp(logs, axis=1, keepdims=True)))

    def averages(self, temperature: npt.ArrayLike | None = None) -> dict[str, Array]:
        """Canonical averages with standard errors, over samples if there are several.

        Args:
            temperature: One or several in the coupling unit / k_B; by default 20 within ``around_peak``.

        Returns:
            Arrays (temperatures,): ``temperature``, ``energy_per_site``, ``specific_heat`` and, if ``hottest`` is
            infinite, ``free_energy_per_site`` and ``entropy_per_site``; each also with ``_error``.

        Raises:
            InputError: for temperatures that are not above 0, below ``coldest`` or above ``hottest``.
        """
        temperature = np.geomspace(*self.around_peak, 20) if temperature is None else temperature
        targets = np.atleast_1d(as_floats(temperature, "temperature"))
        known = (targets > 0) & (targets >= self.coldest) & (targets <= self.hottest) & np.isfinite(targets)
        if targets.ndim != 1 or not known.all():
            least = f"at least {self.coldest:g}" if self.coldest else "above 0"
            raise InputError(
                f"temperatures {targets.tolist()} are not all {least} and at most {self.hottest:g}, where the run has "
                "enough measurements: give others, or a run that reaches them"
            )
        names = ["energy_per_site", "specific_heat", "free_energy_per_site", "entropy_per_site"]
        each = np.array([self._canonical(one) for one in targets])  # (temperatures, names, 1 + blocks, samples)
        columns: dict[str, Array] = {"temperature": targets}
        for k, name in enumerate(names[: 4 if np.isinf(self.hottest) else 2]):
            columns[name], columns[f"{name}_error"] = np.transpose([self._with_error(one[k]) for one in each])
        return columns

    @cached_property
    def peak(self) -> dict[str, float]:
        """Temperature of the largest specific heat (``peak``), ``peak_error``, and this ``specific_heat``.

        Empty if there is no peak between ``coldest`` and ``hottest``.
        """
        grid = np.geomspace(*self._range, 200)
        for step in range(2):  # the second grid lies around the peak
            heat = np.array([self._canonical(one)[1] for one in grid])  # (temperatures, 1 + blocks, samples)
            whole, samples = heat[:, 0].mean(axis=1), heat.shape[2]
            top = int(whole.argmax())
            if step == 0 and top in (0, len(grid) - 1):
                return {}
            fine, grid = grid, np.linspace(grid[max(top - 1, 0)], grid[min(top + 1, 199)], 200)
        rests = heat[:, 1:, 0] if samples == 1 else whole[:, None] - heat[:, 0] / samples  # less a block or a sample
        places = fine[np.column_stack([whole, rests]).argmax(axis=0)]
        error = float(_jackknife_error(places[1:])) if len(places) > 1 else np.nan
        return {"peak": float(places[0]), "peak_error": error, "specific_heat": float(whole.max())}

    @property
    def _range(self) -> tuple[float, float]:
        low, high = (factor * (self.model.energy_scale or 1.0) for factor in _RANGE)
        return max(min(low, self.hottest / 2), self.coldest), min(max(high, 2 * self.coldest), self.hottest)

    @property
    def around_peak(self) -> tuple[float, float]:
        """Lowest and highest temperature of a range around the peak; without a peak, all that the run knows."""
        peak = self.peak.get("peak")
        return (max(peak / 3, self.coldest), min(3 * peak, self.hottest)) if peak else self._range

    @cached_property
    def transition(self) -> dict[str, float]:
        """The first-order transition of a model of one sample, empty if there are no two phases.

        ``transition_temperature``, where both have equal weight (C. Borgs, R. Kotecky, J. Stat. Phys. 61, 79 (1990));
        ``latent_heat_per_site`` between them; ``barrier`` = ln(P_max / P_min), with the mean of both maxima of ln P(E)
        (K. Binder, Phys. Rev. A 25, 1699 (1982)); each with ``_error``; total energies of the ``ordered`` and the
        ``disordered`` maximum and of the ``valley``. P is added up over a few levels; a barrier must exceed three
        standard errors. It grows with the size: gaps of the lowest energies of a small model look the same.
        """
        if self.model.samples > 1 or not self.peak:
            return {}
        beta, energy, logs = 1 / self.peak["peak"], self.energy, self.log_density[0]
        share, level = self.probability(1 / beta)[0], np.arange(len(energy))
        split, spread = float(share @ energy), np.sqrt(share @ level**2 - (share @ level) ** 2)
        for _ in range(50):
            beta, lower = _equal_weight(energy, logs, split, beta)[0], energy <= split
            weight = _smooth(logs - beta * energy, 1 + int(_WINDOW * spread))
            first, last = int(weight[lower].argmax()), int(lower.sum() + weight[~lower].argmax())
            valley = first + int(weight[first : last + 1].argmin())
            if valley in (first, last):
                return {}
            if energy[valley] == split:
                break
            split = float(energy[valley])
        rows, places = [], [first, valley, last]
        for one in (logs, *self.left_out[:, 0]):
            at, heat = _equal_weight(energy, one, split, beta)
            low, middle, high = _smooth(one - energy * at, 1 + int(_WINDOW * spread))[places]
            rows.append((1 / at, heat / self.model.sites, (low + high) / 2 - middle))
        found = dict(zip(("ordered", "valley", "disordered"), energy[places].tolist(), strict=True))
        for k, name in enumerate(("transition_temperature", "latent_heat_per_site", "barrier")):
            found[name], found[f"{name}_error"] = self._with_error(np.array(rows)[:, k, None])
        return found if found["barrier"] > _CLEAR * found["barrier_error"] else {}  # none if the error is unknown

    def _canonical(self, temperature: float) -> Array:
        """Energy, specific heat, free energy and entropy per site, (4, 1 + blocks, samples); blocks are left out."""
        logs = np.concatenate([self.log_density[None], self.left_out]) - self.energy / temperature
        log_partition = logsumexp(logs, axis=-1)
        share = np.exp(logs - log_partition[..., None])
        mean = share @ self.energy
        variance = (share * (self.energy - mean[..., None]) ** 2).sum(axis=-1)
        free, entropy = -temperature * log_partition, mean / temperature + log_partition
        return np.array([mean, variance / temperature**2, free, entropy]) / self.model.sites

    def _with_error(self, values: Array) -> tuple[float, float]:
        """Return the mean over samples and its error, of numbers (1 + blocks, samples)."""
        samples, error = values.shape[1], np.array(np.nan)
        if samples > 1:
            error = values[0].std(ddof=1) / np.sqrt(samples)
        elif len(values) > 1:
            error = _jackknife_error(values[1:, 0])
        return float(values[0].mean()), float(error)


def _jackknife_error(values: Array) -> Array:
    """Return the standard error of a number from its values without each block in turn; NaN where one is infinite."""
    with np.errstate(invalid="ignore"):
        return np.asarray(np.sqrt(len(values) - 1) * values.std(axis=0))


def _smooth(logs: Array, levels: int) -> Array:
    """Return ln of the sums of P(E) over this number of levels: neighbouring levels may differ much in their states."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.convolve(np.exp(logs - logs.max()), np.ones(levels), "same")))


def _equal_weight(energy: Array, logs: Array, split: float, near: float) -> tuple[float, float]:
    """Return the inverse temperature at which energies up to ``split`` weigh as much as those above, and the heat."""
    lower = energy <= split

    def surplus(beta: float) -> float:
        weight = logs - beta * energy
        return float(logsumexp(weight[lower]) - logsumexp(weight[~lower]))

    width = 0.01 * near
    while surplus(near - width) * surplus(near + width) > 0:
        width *= 2
    beta = float(brentq(surplus, near - width, near + width, xtol=1e-15, rtol=1e-14))
    weight = logs - beta * energy
    low, high = (np.exp(weight[p] - logsumexp(weight[p])) @ energy[p] for p in (lower, ~lower))
    return beta, float(high - low)


@public
def density_of_states(run: Run) -> DensityOfStates:
    """Density of states of a multicanonical run, or of a tempering run by multiple histograms.

    Args:
        run: A result, or the file of a run.

    Returns:
        ln g(E) with errors, and canonical averages at all temperatures.

    Raises:
        InputError: for other runs, and energies that are not known exactly (Gaussian couplings).
    """
    result = as_result(run)
    density: DensityOfStates = job_of(result.job).density(result)
    return density


def from_counts(
    model: Ising, each: Sequence[tuple[Array, Array]], hottest: float = np.inf, coldest: float = 0.0
) -> DensityOfStates:
    """Return the density of states from energies and unnormalised ln g of each sample, (1 + blocks, energies).

    The first row is that of the whole run, the others leave blocks out; minus infinity stands for unmet energies.
    """
    grid = np.unique(np.concatenate([energy[np.isfinite(logs[0])] for energy, logs in each]))
    whole = np.full((len(each[0][1]), len(each), len(grid)), -np.inf)
    with np.errstate(invalid="ignore"):
        for k, (energy, unshifted) in enumerate(each):
            there = np.isfinite(unshifted[0])
            logs, zero = unshifted[:, there], logsumexp(unshifted, axis=1, keepdims=True) - model.sites * np.log(2)
            whole[:, k, np.searchsorted(grid, energy[there])] = logs - (zero if np.isinf(hottest) else logs[:, :1])
    return DensityOfStates(model, grid, whole[0], whole[1:], hottest, coldest)


def of_ladder(result: Tempered) -> DensityOfStates:
    """Return the density of states from all temperatures of a tempering run, joined by multiple histograms."""
    _, statistics, times, samples, joins = joined_samples(result)
    check_levels(statistics.run)
    model, of_energy, ladder, each = result.model, times["energy"], result.temperature, []
    reached = np.array([True, True])  # temperature 0, and infinite temperature
    for one, whole in zip(samples, joins, strict=True):
        energy, level = np.unique(np.rint(one.singles.energy / model.quantum) * model.quantum, return_inverse=True)
        rests = [one.without(k) for k in range(len(one.singles.stretches))]
        joined = [whole, *(join(rest, whole.log_partition) for rest in rests)]
        shares = np.array([histogram.log_shares(energy) for histogram in joined])
        counts = np.array([np.bincount(level, part.singles.count, len(energy)) for part in (one, *rests)])
        hot = normalised(shares[0], counts[0])[2] * (energy[-1] >= 0)  # the mean energy of all states is 0
        measured = np.array([counts[0][0], hot])
        reached &= measured >= FEWEST * 2 * of_energy.tau[[0, -1]]
        with np.errstate(divide="ignore"):
            logs = np.log(counts) + shares
        logs[1:] = logs[0] + of_energy.wider.max() * (logs[1:] - logs[0])
        each.append((energy, logs))
    coldest, hottest = np.where(reached, [0.0, np.inf], [ladder[0], ladder[-1]]).tolist()
    return from_counts(model, each, hottest, coldest)


def density_columns(density: DensityOfStates) -> Columns:
    """Return energies with ln g and its error, sample by sample."""
    sample, level = np.nonzero(np.isfinite(density.log_density))
    logs, error = density.log_density[sample, level], density.error[sample, level]
    of_samples: Columns = {"sample": sample} if density.model.samples > 1 else {}
    return of_samples | {"energy": density.energy[level], "log_density": logs, "log_density_error": error}


def density_report(name: str, density: DensityOfStates, temperature: npt.ArrayLike | None = None) -> Report:
    """Return the report of ``spinsim analyze --density``; temperatures are chosen around the peak by default."""
    averages, found = density.averages(temperature), density.peak | density.transition
    shown = [key for key in averages if not key.endswith("_error")]
    rows: list[Row | str] = [f"{name}: {density.model.name}, {len(density.energy)} energies"]
    rows += in_columns(Row(key, averages[key], averages.get(f"{key}_error")).cells for key in shown)
    rows += [Row(key, one, found[f"{key}_error"], key=key) for key, one in found.items() if f"{key}_error" in found]
    if np.isfinite(density.hottest):
        rows.append(Row("Note", note=f"ln g is 0 at the lowest energy: the ladder ends at T = {density.hottest:g}"))
    if density.coldest:
        note = f"the ladder begins at T = {density.coldest:g}, too hot to measure the lowest energies often"
        rows.append(Row("Note", note=note))
    numbers = {"file": name, "averages": averages, "density": density_columns(density)}
    return Report([*rows, *unprinted(numbers | found)])
