"""The approach to equilibrium at every temperature: averages over logarithmic bins, energy against link overlap."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit

from spinsim.analysis.equilibration import FALSE_ALARMS, bin_edges, equilibration
from spinsim.analysis.runs import Tempered
from spinsim.errors import InputError
from spinsim.model.ising import Ising

Array = npt.NDArray[np.float64]

FEWEST_STEPS: Final = 8
FEWEST_SAMPLES: Final = 5  # whose scatter says anything on a residual at several temperatures
_FAR: Final = 5.0  # standard errors by which the mean square of couplings of variance 1 may miss 1


@dataclass(frozen=True)
class Approach:
    """Averages over bins, each twice as long as the one before; the last one is the second half of the run.

    Attributes:
        temperature: From the lowest to the highest, (temperatures,).
        start: First measurement of each bin, (bins,).
        stop: Measurement after its last, likewise.
        first_sweep: Sweeps done before its first measurement, likewise.
        last_sweep: Sweeps done before its last measurement, likewise.
        mean: By name, (bins, temperatures): ``energy_per_site`` and, where they were measured, ``overlap_squared``,
            ``link_overlap`` and ``link_residual``, which ``link_residual`` explains.
        error: Standard errors of the same.
        verdict: Whether the last three bins of each agree: "equilibrated", "not equilibrated" or "undecided", by name,
            (temperatures,). One equilibrated series in twenty fails.
    """

    temperature: Array
    start: npt.NDArray[np.int64]
    stop: npt.NDArray[np.int64]
    first_sweep: npt.NDArray[np.int64]
    last_sweep: npt.NDArray[np.int64]
    mean: dict[str, Array]
    error: dict[str, Array]
    verdict: dict[str, npt.NDArray[np.str_]]


@dataclass(frozen=True)
class LinkAgreement:
    """Whether energy and link overlap agree over the last half of a run, as they do in equilibrium alone.

    Attributes:
        temperature: From the lowest to the highest, (temperatures,).
        residual: See ``link_residual``, averaged over the samples, likewise.
        error: Its standard error over the samples, likewise.
        limit: Standard errors that a residual may be away from 0.
    """

    temperature: Array
    residual: Array
    error: Array
    limit: float

    @property
    def score(self) -> Array:
        """Residuals in standard errors, (temperatures,)."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(self.residual == 0, 0.0, self.residual / self.error)

    @property
    def agrees(self) -> bool:
        """Whether all residuals are within the limit."""
        return bool(np.all(np.abs(self.score) <= self.limit))

    @property
    def words(self) -> str:
        """What was found, as a clause."""
        k = int(np.abs(self.score).argmax())
        found = f"energy and link overlap miss U = -(z/2) (1 - q_l) / T by {abs(self.score[k]):.2g} standard errors"
        at = f"at T = {self.temperature[k]:.4g}"
        if self.agrees:
            return f"{found} {at}, where they do most; up to {self.limit:.3g} pass"
        return f"{found} {at}, more than {self.limit:.3g}"


def approach(result: Tempered) -> Approach:
    """Averages over logarithmic bins of a run, at every temperature, with the verdict on each.

    Raises:
        InputError: for fewer than 8 measurements.
    """
    steps = len(result.sweep)
    if steps < FEWEST_STEPS:
        raise InputError(f"{steps} measurements are too few for bins: give at least {FEWEST_STEPS}, with more sweeps")
    start, stop = bin_edges(steps)
    mean, error, verdict = {}, {}, {}
    for name, series in _series(result).items():
        found = [equilibration(series[..., t]) for t in range(len(result.temperature))]
        mean[name] = np.stack([one.mean for one in found], axis=1)
        error[name] = np.stack([one.error for one in found], axis=1)
        verdict[name] = np.array([one.verdict.split(":")[0] for one in found])
    sweep = result.sweep
    return Approach(result.temperature, start, stop, sweep[start], sweep[stop - 1], mean, error, verdict)


def link_residual(result: Tempered) -> Array:
    """U + (z/2) (1 - q_l) / T of each measurement, U the energy per site, (steps, samples, temperatures).

    Averaged over time and samples it is 0 in equilibrium, for Gaussian couplings of mean 0 and variance 1 without a
    field. For such a coupling J of a bond, [J f(J)] = [f'(J)]; with f the thermal average <s_i s_j>, whose derivative
    is (1 - <s_i s_j>^2) / T, the energy -[J <s_i s_j>] of a bond is -(1 - [<s_i s_j>^2]) / T, and the average of
    <s_i s_j>^2 over the bonds, of which there are z/2 a site, is the link overlap q_l of two copies. While a run
    forgets a random start, U is too high and q_l too low: the residual falls to 0 from above.
    Source: H. G. Katzgraber, M. Palassini, A. P. Young, Phys. Rev. B 63, 184422 (2001).

    Raises:
        InputError: for a run without link overlaps.
    """
    if not result.link_overlap.shape[2]:
        raise InputError("the run has no link overlaps: give one of two replicas or more, with correlations")
    sites, bonds = result.model.sites, result.model.bonds
    energy, link = result.energy.mean(axis=2) / sites, result.link_overlap.mean(axis=2) / bonds
    return np.asarray(energy + bonds / sites * (1 - link) / result.temperature)


def link_agreement(result: Tempered, false_alarms: float = FALSE_ALARMS) -> LinkAgreement | None:
    """Compare energy and link overlap over the last half of a run.

    Where they disagree at any temperature the run was not in equilibrium. The limit allows for the number of
    temperatures and, by Student's t, for few samples.

    Args:
        result: The run; of several samples, whose scatter is the error.
        false_alarms: Probability that a run in equilibrium disagrees, at most.

    Returns:
        None where the comparison does not hold or cannot be made: for other couplings than ``gaussian``, in a field,
        for fewer than five samples and without link overlaps.
    """
    if not comparable(result):
        return None
    residual = link_residual(result)[len(result.sweep) // 2 :].mean(axis=0)
    samples, temperatures = residual.shape
    error = residual.std(axis=0, ddof=1) / np.sqrt(samples)
    limit = float(stdtrit(samples - 1, 1 - false_alarms / (2 * temperatures)))
    return LinkAgreement(result.temperature, residual.mean(axis=0), error, limit)


def comparable(result: Tempered) -> bool:
    """Whether the energy of a run can be compared with its link overlap."""
    return bool(result.link_overlap.shape[2]) and result.model.samples >= FEWEST_SAMPLES and _is_gaussian(result.model)


def _is_gaussian(model: Ising) -> bool:
    """Whether couplings are the Gaussian ones of ``EdwardsAnderson``, of variance 1, and there is no field."""
    if not model.name.endswith("-gaussian") or len(model.couplings) != model.samples or np.any(model.fields):
        return False
    squares = float((model.couplings.astype(np.float64) ** 2).mean())
    return bool(abs(squares - 1) <= _FAR * np.sqrt(2 / model.couplings.size))


def _series(result: Tempered) -> dict[str, Array]:
    """What is averaged over bins, (steps, samples, temperatures)."""
    sites = result.model.sites
    series = {"energy_per_site": result.energy.mean(axis=2) / sites}
    if result.overlap.shape[2]:
        series["overlap_squared"] = ((result.overlap / sites) ** 2).mean(axis=2)
    if result.link_overlap.shape[2]:
        series["link_overlap"] = result.link_overlap.mean(axis=2) / max(1, result.model.bonds)
    if comparable(result):
        series["link_residual"] = link_residual(result)
    return series
