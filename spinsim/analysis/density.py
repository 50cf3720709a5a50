"""Density of states g(E): averages at all temperatures, and transitions between two phases that coexist.

g(E) comes from visits to energies in a flat histogram, or from the measurements of a whole ladder of temperatures
(A. M. Ferrenberg, R. H. Swendsen, Phys. Rev. Lett. 63, 1195 (1989)). Errors are jackknife errors: over walkers, or over
stretches of time, which are left out at all temperatures at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq
from scipy.special import logsumexp

from spinsim.analysis.reweighted import FEWEST, join, joined_samples, normalised, width_and_spacing
from spinsim.analysis.runs import Array, Tempered
from spinsim.analysis.tables import Columns, Report, Row, in_columns, unprinted
from spinsim.errors import InputError, argument
from spinsim.inputs.arguments import public
from spinsim.inputs.numbers import finite_array
from spinsim.model.ising import Ising
from spinsim.registry import job_of
from spinsim.result import Run, as_result

_RANGE: Final = (0.05, 5.0)  # of temperatures in which a peak is looked for, in units of the local fields
_GRID: Final = 200  # temperatures in this range
_PRINTED: Final = 20  # temperatures of a printed table
_WINDOW: Final = 0.25
"""Width of windows in which P(E) is added up before its peaks are compared, in standard deviations of the energy at the
peak of the specific heat: neighbouring levels may differ much in their number of states."""
_MOST_SPLITS: Final = 50  # steps that look for the energy between two phases
_CLEAR: Final = 3  # standard errors by which a barrier between two phases must exceed 0


class PhaseTransition(NamedTuple):
    """Two phases of equal weight, sum of P(E) in each, with standard errors; NaN for unknown errors."""

    temperature: float  # at which both phases have equal weight, in the coupling unit / k_B
    temperature_error: float
    latent_heat_per_site: float  # difference of the mean energies of the phases, in the coupling unit
    latent_heat_per_site_error: float
    barrier: float
    """ln(P_max / P_min) between the phases at this temperature, with the mean of both maxima of ln P: the free energy
    of an interface over k_B T, in a periodic box of two interfaces."""
    barrier_error: float
    energy: tuple[float, float, float]  # total energies of a maximum, the minimum and the other maximum of P(E)


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
    """

    model: Ising
    energy: Array
    log_density: Array
    left_out: Array
    hottest: float = np.inf

    @property
    def error(self) -> Array:
        """Standard error of ``log_density``, of its shape; NaN where it is unknown."""
        if not len(self.left_out):
            return np.full_like(self.log_density, np.nan)
        return jackknife_error(self.left_out)

    @property
    def is_absolute(self) -> bool:
        """True if the sum of g over all energies is 2^sites."""
        return bool(np.isinf(self.hottest))

    def probability(self, temperature: float) -> Array:
        """Probability of each energy at a temperature, (samples, levels).

        Args:
            temperature: In the coupling unit / k_B, above 0.

        Raises:
            InputError: for a temperature that is not above 0, or above ``hottest``.
        """
        logs = self.log_density - self.energy / self._checked(temperature)[0]
        return np.asarray(np.exp(logs - logsumexp(logs, axis=1, keepdims=True)))

    def averages(self, temperature: npt.ArrayLike) -> dict[str, Array]:
        """Canonical averages with standard errors, over samples if there are several.

        Args:
            temperature: One or several temperatures in the coupling unit / k_B, above 0.

        Returns:
            Arrays (temperatures,) by name: ``temperature``, ``energy_per_site``, ``specific_heat``, and if g is
            absolute, ``free_energy_per_site`` and ``entropy_per_site``; each also with ``_error``.

        Raises:
            InputError: for temperatures that are not above 0, or above ``hottest``.
        """
        targets = self._checked(temperature)
        columns: dict[str, Array] = {"temperature": targets}
        names = ["energy_per_site", "specific_heat", "free_energy_per_site", "entropy_per_site"]
        each = np.array([self._canonical(one) for one in targets])  # (temperatures, names, 1 + blocks, samples)
        for k, name in enumerate(names if self.is_absolute else names[:2]):
            columns[name], columns[f"{name}_error"] = np.transpose([self._with_error(one[k]) for one in each])
        return columns

    @property
    def usual_temperatures(self) -> Array:
        """Temperatures of printed tables: around the peak of the specific heat, (20,)."""
        at = self.peak[0]
        return np.geomspace(at / 3, min(3 * at, self.hottest), _PRINTED)

    @cached_property
    def peak(self) -> tuple[float, float, float]:
        """Temperature of the largest specific heat with its standard error, and this specific heat."""
        low, high = (factor * (self.model.energy_scale or 1.0) for factor in _RANGE)
        grid = np.geomspace(low, min(high, self.hottest), _GRID)
        for _ in range(2):  # the second grid lies around the peak
            heat = np.array([self._canonical(one)[1].mean(axis=1) for one in grid])  # (temperatures, 1 + blocks)
            top = int(np.clip(heat[:, 0].argmax(), 1, _GRID - 2))
            fine, grid = grid, np.linspace(grid[top - 1], grid[top + 1], _GRID)
        at = fine[heat.argmax(axis=0)]
        return float(at[0]), self._with_error(at[:, None])[1], float(heat[:, 0].max())

    @cached_property
    def transition(self) -> PhaseTransition | None:
        """The first-order transition of a model of one sample: two phases of equal weight, None if there are none.

        The energy between the phases is where P(E), smoothed over a few levels, is lowest between its maxima. Two phases need a barrier of more
        than three standard errors. Equal weights: C. Borgs, R. Kotecky, J. Stat. Phys. 61, 79 (1990); barrier: K.
        Binder, Phys. Rev. A 25, 1699 (1982).
        """
        if self.model.samples > 1:
            return None
        beta, energy, logs = 1 / self.peak[0], self.energy, self.log_density[0]
        share = self.probability(1 / beta)[0]
        split, half = float(share @ energy), _WINDOW / 2 * np.sqrt(share @ (energy - share @ energy) ** 2)
        windows = np.searchsorted(energy, energy - half), np.searchsorted(energy, energy + half, side="right")

        def smooth(weight: Array, places: npt.NDArray[np.int64]) -> Array:
            ends = zip(windows[0][places], windows[1][places], strict=True)
            return np.array([logsumexp(weight[first:last]) for first, last in ends])

        for _ in range(_MOST_SPLITS):
            beta, lower = self._equal_weight(logs, split, beta), energy <= split
            weight = smooth(logs - beta * energy, np.arange(len(energy)))
            first, last = int(weight[lower].argmax()), int(lower.sum() + weight[~lower].argmax())
            valley = first + int(weight[first : last + 1].argmin())
            if valley in (first, last):
                return None
            if energy[valley] == split:
                break
            split = float(energy[valley])
        places, rows = np.array([first, valley, last]), []
        for one in (logs, *self.left_out[:, 0]):
            temperature, heat = self._phases(one, split, beta)
            low, middle, high = smooth(one - energy / temperature, places)
            rows.append((temperature, heat, (low + high) / 2 - middle))
        numbers = [number for column in np.transpose(rows) for number in self._with_error(column[:, None])]
        if not numbers[4] > _CLEAR * numbers[5]:  # also for an unknown error
            return None
        return PhaseTransition(*numbers, (float(energy[first]), split, float(energy[last])))

    def _equal_weight(self, logs: Array, split: float, near: float) -> float:
        """Return the inverse temperature at which energies up to ``split`` weigh as much as those above."""
        lower = self.energy <= split

        def surplus(beta: float) -> float:
            weight = logs - beta * self.energy
            return float(logsumexp(weight[lower]) - logsumexp(weight[~lower]))

        width = 0.01 * near
        while surplus(near - width) * surplus(near + width) > 0:
            width *= 2
        return float(brentq(surplus, near - width, near + width, xtol=1e-15, rtol=1e-14))

    def _phases(self, logs: Array, split: float, near: float) -> tuple[float, float]:
        """Return the temperature at which the phases have equal weight, and the latent heat per site."""
        beta, lower = self._equal_weight(logs, split, near), self.energy <= split
        weight = logs - beta * self.energy
        low, high = (np.exp(weight[p] - logsumexp(weight[p])) @ self.energy[p] for p in (lower, ~lower))
        return 1 / beta, float(high - low) / self.model.sites

    def _checked(self, temperature: npt.ArrayLike) -> Array:
        targets = finite_array(np.atleast_1d(temperature), "temperature", least=1)
        if targets.ndim != 1 or not ((targets > 0) & (targets <= self.hottest)).all():
            most = "" if self.is_absolute else f" and at most {self.hottest:g}, the highest temperature of the ladder"
            raise InputError(f"temperatures {targets.tolist()} are not all above 0{most}: give a list of such")
        return targets

    def _canonical(self, temperature: float) -> Array:
        """Energy, specific heat, free energy and entropy per site, (4, 1 + blocks, samples); blocks are left out."""
        sites = self.model.sites
        logs = np.concatenate([self.log_density[None], self.left_out]) - self.energy / temperature
        log_partition = logsumexp(logs, axis=-1)
        share = np.exp(logs - log_partition[..., None])
        mean = share @ self.energy
        variance = (share * (self.energy - mean[..., None]) ** 2).sum(axis=-1)
        free, entropy = -temperature * log_partition, mean / temperature + log_partition
        return np.array([mean, variance / temperature**2, free, entropy]) / sites

    def _with_error(self, values: Array) -> tuple[float, float]:
        """Return the mean over samples and its error, of numbers (1 + blocks, samples)."""
        samples, blocks = values.shape[1], len(self.left_out)
        error = np.nan
        if samples > 1:
            error = values[0].std(ddof=1) / np.sqrt(samples)
        elif blocks > 1:
            error = jackknife_error(values[1:, 0])
        return float(values[0].mean()), float(error)


def jackknife_error(values: Array) -> Array:
    """Return the standard error of a number from its values without each block in turn; NaN where one is infinite."""
    with np.errstate(invalid="ignore"):
        return np.asarray(np.sqrt(len(values) - 1) * values.std(axis=0))


@public
def density_of_states(run: Run) -> DensityOfStates:
    """Density of states of a multicanonical run, or of a tempering run by multiple histograms.

    Args:
        run: A result, or the file of a run. Energies of the model must be known exactly: not with
            Gaussian couplings.

    Returns:
        ln g(E) with errors, and canonical averages at all temperatures.

    Raises:
        InputError: for runs of other jobs, unfinished Wang-Landau stages, and sums over energy that
            hold several energies in a bin.
    """
    result = as_result(run)
    density: DensityOfStates = job_of(result.job).density(result)
    return density


def from_counts(
    model: Ising, energy: Array, log_counts: Array, left_out: Array, hottest: float = np.inf
) -> DensityOfStates:
    """Return the density of states of unnormalised ln g, minus infinity where nothing was met.

    Arrays as in ``DensityOfStates``, but with energies of each sample, (samples, levels).
    """
    grid = np.unique(energy[np.isfinite(log_counts)])
    logs = np.full((1 + len(left_out), len(energy), len(grid)), -np.inf)
    for k, one in enumerate(log_counts):
        there = np.isfinite(one)
        logs[:, k, np.searchsorted(grid, energy[k, there])] = np.vstack([one[None, there], left_out[:, k, there]])
    if np.isinf(hottest):
        logs += model.sites * np.log(2) - logsumexp(logs, axis=-1, keepdims=True)
    else:
        lowest = np.isfinite(logs[0]).argmax(axis=1)
        with np.errstate(invalid="ignore"):
            logs -= np.take_along_axis(logs, np.broadcast_to(lowest[:, None], (*logs.shape[:2], 1)), axis=2)
    return DensityOfStates(model, grid, logs[0], logs[1:], hottest)


def of_ladder(result: Tempered) -> DensityOfStates:
    """Return the density of states from all temperatures of a tempering run, joined by multiple histograms."""
    model, joined = result.model, joined_samples(result)
    width, spacing = width_and_spacing(joined.statistics.run)
    if width > spacing:
        raise InputError(
            f"sums over the energies of {model.name} hold several energies in a bin of {width:.3g}, which give no "
            f"density of states: run fewer {argument('temperatures')} or a smaller model"
        )
    tau, places = joined.times["energy"].tau, []
    is_absolute, wider = True, float(joined.times["energy"].wider.max())
    for one, ladder in zip(joined.counted, joined.joins, strict=True):
        energy, level = np.unique(np.rint(one.singles.energy / model.quantum) * model.quantum, return_inverse=True)
        rests = [one.without(k) for k in range(len(one.singles.stretches))]
        ladders = [ladder, *(join(rest, ladder.log_partition) for rest in rests)]
        counts = [np.bincount(level, each.singles.count, len(energy)) for each in (one, *rests)]
        shares = np.array([each.log_shares(energy) for each in ladders])
        with np.errstate(divide="ignore"):
            logs = np.log(counts) + shares
        is_absolute &= normalised(shares[0], counts[0])[2] >= FEWEST * 2 * tau[-1]
        places.append((energy, logs))
    levels = np.unique(np.concatenate([energy for energy, _ in places]))
    whole = np.full((1 + len(places[0][1][1:]), len(places), len(levels)), -np.inf)
    for k, (energy, logs) in enumerate(places):
        whole[:, k, np.searchsorted(levels, energy)] = logs
    with np.errstate(invalid="ignore"):
        left_out = whole[0] + wider * (whole[1:] - whole[0])
    hottest = np.inf if is_absolute else float(result.temperature[-1])
    return from_counts(model, np.broadcast_to(levels, whole.shape[1:]), whole[0], left_out, hottest)


def density_columns(density: DensityOfStates) -> Columns:
    """Return energies with ln g and its error, sample by sample."""
    samples, levels = density.log_density.shape
    columns: Columns = {"sample": np.repeat(np.arange(samples), levels)} if samples > 1 else {}
    columns |= {"energy": np.tile(density.energy, samples), "log_density": density.log_density.ravel()}
    columns["log_density_error"] = density.error.ravel()
    there = np.isfinite(columns["log_density"])
    return {name: column[there] for name, column in columns.items()}


def density_report(name: str, density: DensityOfStates, temperature: npt.ArrayLike | None = None) -> Report:
    """Return the report of ``spinsim analyze --density``; temperatures are chosen around the peak by default."""
    at, error, heat = density.peak
    averages = density.averages(density.usual_temperatures if temperature is None else temperature)
    found = density.transition
    rows: list[Row | str] = [f"{name}: {density.model.name}, {len(density.energy)} energies"]
    columns = [Row("T", averages["temperature"]).cells]
    names = [one for one in averages if one != "temperature" and not one.endswith("_error")]
    columns += [Row(one, averages[one], averages[f"{one}_error"]).cells for one in names]
    rows += in_columns(columns)
    rows += [Row("Peak", at, error, f"is the temperature of the largest specific heat, {heat:.4g}", key="peak")]
    if found is not None:
        rows += [
            Row("Equal weight", found.temperature, found.temperature_error, "is T where both peaks of P(E) have equal weight",
                key="transition_temperature"),
            Row("Latent heat", found.latent_heat_per_site, found.latent_heat_per_site_error, "per site",
                key="latent_heat_per_site"),
            Row("Barrier", found.barrier, found.barrier_error, "= ln(P_max / P_min) between the phases", key="barrier"),
        ]  # fmt: skip
    if not density.is_absolute:
        note = f"ln g is 0 at the lowest energy: the ladder ends at T = {density.hottest:g}, too low for absolute ones."
        rows.append(Row("Note", note=note))
    return Report([*rows, *unprinted({"file": name, "averages": averages, "density": density_columns(density)})])
