"""Has a run reached equilibrium? Averages over logarithmic bins, and energy against link overlap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit

from spinsim.analysis.autocorrelation import SHORTEST, IntegratedTime
from spinsim.analysis.followed import Binned, Followed, FollowedSeries
from spinsim.analysis.jackknife import standard_error
from spinsim.analysis.runs import Tempered
from spinsim.analysis.sources import Source, source_of
from spinsim.errors import InputError
from spinsim.inputs.checks import finite_array
from spinsim.model.ising import Ising

Array = npt.NDArray[np.float64]

FEWEST_STEPS: Final = 8
FALSE_ALARMS: Final = 0.05  # share of equilibrated series that may be called not equilibrated
TESTED: Final = 3  # bins
FEWEST_SAMPLES: Final = 3
"""Samples whose scatter is an error that drifts can be tested with; fewer are tested one by one."""
FEW_SAMPLES: Final = 10
"""Samples below which errors over samples are known to no better than a quarter."""
_FEWEST_FOR_LINKS: Final = 5  # samples whose scatter says anything on a residual at several temperatures
_FAR: Final = 5.0  # standard errors by which the mean square of couplings of variance 1 may miss 1
_UNDECIDED: Final = (
    f"undecided: the last half of the run is constant or shorter than {SHORTEST} autocorrelation times, "
    "so that its errors are not known; measure longer"
)


@dataclass(frozen=True)
class Equilibration:
    """An observable in bins [n / 2^k, n / 2^(k - 1)), earliest first; arrays of shape (bins,)."""

    start: npt.NDArray[np.int64]  # first row of the series in a bin
    stop: npt.NDArray[np.int64]  # row after its last
    mean: Array  # average over the bin, and over the samples
    error: Array  # its standard error
    equilibrated: bool  # whether the last three bins agree; False also where that cannot be told
    verdict: str  # the same in words, with what decided it; begins with "equilibrated", "not equilibrated", "undecided"

    @property
    def drifts(self) -> bool:
        return self.verdict.startswith("not")


def equilibration(
    series: npt.ArrayLike,
    false_alarms: float = FALSE_ALARMS,
    together: int = FEWEST_SAMPLES,
    least_window: npt.ArrayLike = 0,
) -> Equilibration:
    """Compare the averages of an observable over logarithmic bins of a run.

    Tested is this: for each two of the last three bins, [n/2, n), [n/4, n/2) and [n/8, n/4), the difference of their
    averages is at most so many of its standard errors that all three pass in a share 1 - ``false_alarms`` of
    equilibrated series, or in more. The limit is that of Student's t for a third of ``false_alarms``, with as many
    degrees of freedom as the error has. With three samples or more, differences are taken sample by sample, and their
    error is that of the mean over the samples, of samples - 1 degrees of freedom. Fewer are tested one by one, and
    share ``false_alarms``: each bin's error is sigma sqrt(2 tau / length) with sigma and tau of the last bin, as the
    whole of a stationary series has them, and errors add in squares; the n / 2 measurements and the window W of tau
    make n / 2 / (2 W + 1) degrees of freedom, half as many where a least window tells of a slow process beside fast
    ones. The verdict is withheld where such a tau is not trusted. An observable
    that vanishes by symmetry tests nothing: take the energy, q^2 or the link overlap at the lowest temperature.
    Fractions of n are rounded down, and row 0 is in no bin.

    Sources: binning as in H. G. Katzgraber, M. Koerner, A. P. Young, Phys. Rev. B 73, 224432 (2006); the variance of
    sigma^2 tau, 2 (2 W + 1) / n of its square, is eq. 42 of U. Wolff, Comput. Phys. Commun. 156, 143 (2004).

    Args:
        series: Measurements from the very start of the run, of shape (n,) for one sample or (n, samples), replicas
            averaged.
        false_alarms: Probability that an equilibrated series is called not equilibrated, at most.
        together: Number of samples from which on their scatter is the error.
        least_window: As ``integrated_time`` takes it, (samples,).
    """
    values = finite_array(series, "series", least=FEWEST_STEPS)
    if values.ndim > 2:
        raise InputError(f"series has shape {values.shape}: give (measurements,) or (measurements, samples)")
    return compare_bins(FollowedSeries(values.reshape(len(values), -1, 1)), false_alarms, together, least_window)


def compare_bins(
    followed: Followed | Binned,
    false_alarms: float = FALSE_ALARMS,
    together: int = FEWEST_SAMPLES,
    least_window: npt.ArrayLike = 0,
) -> Equilibration:
    """Do as ``equilibration`` with a number of which more is known than its series, or less.

    Of reduced measurements bins begin and end with blocks, as near to these fractions of n as can be.
    """
    start, stop, means = followed.start, followed.stop, followed.means
    samples, length = means.shape[1], stop - start
    error = standard_error(means, 1) if samples > 1 else _stationary_errors(followed.late_time(), length)
    pairs = list(combinations(range(len(means) - TESTED, len(means)), 2))
    apart = np.array([means[b] - means[a] for a, b in pairs])
    if samples < together:
        time = followed.late_time(least_window)
        variance = np.where(
            time.trusted, time.mean_error**2 * length[-1], np.nan
        )  # of one measurement: bins exceed tau
        errors = np.sqrt(variance * np.array([[1 / length[a] + 1 / length[b]] for a, b in pairs]))
        freedom = length[-1] / (2 * time.window + 1) / (2 if np.any(least_window) else 1)
    else:
        errors, apart, freedom = (
            standard_error(apart, 1)[:, None],
            apart.mean(axis=1)[:, None],
            np.array([samples - 1.0]),
        )
    limits = stdtrit(freedom, 1 - false_alarms / TESTED / len(freedom) / 2)  # what |t| passes
    with np.errstate(divide="ignore", invalid="ignore"):
        scores = np.where((apart == 0) & (errors == 0), 0.0, np.abs(apart) / errors)  # (pairs, tests)
    test, pair = np.unravel_index(np.argmax((scores / limits).T), scores.T.shape)
    score, limit = float(scores[pair, test]), float(limits[test])
    verdict = (
        _UNDECIDED if np.isnan(score) else _verdict(score, limit, [f"[{start[k]}, {stop[k]})" for k in pairs[pair]])
    )
    return Equilibration(start, stop, means.mean(axis=1), error, score <= limit, verdict)


def _stationary_errors(time: IntegratedTime, length: npt.NDArray[np.int64]) -> Array:
    """Errors of the means of bins of a stationary series, the last of which ``time`` is of."""
    sigma = time.mean_error * np.sqrt(length[-1] / (2 * time.tau))
    return np.asarray(sigma * np.minimum(np.sqrt(2 * time.tau / length), 1))


def _verdict(score: float, limit: float, bins: list[str]) -> str:
    apart = f"the averages over measurements {bins[0]} and {bins[1]} differ by {score:.2g} standard errors"
    if score > limit:
        return f"not equilibrated: {apart}, more than {limit:.3g}"
    return f"equilibrated: of the last three bins {apart}, the others by no more; up to {limit:.3g} pass"


@dataclass(frozen=True)
class Approach:
    """Averages over bins, each twice as long as the one before; the last one is the second half of the run."""

    temperature: Array  # from the lowest to the highest, (temperatures,)
    start: npt.NDArray[np.int64]  # first measurement of each bin, (bins,)
    stop: npt.NDArray[np.int64]  # measurement after its last, likewise
    first_sweep: npt.NDArray[np.int64]  # sweeps done before its first measurement, likewise
    last_sweep: npt.NDArray[np.int64]  # sweeps done before its last measurement, likewise
    mean: dict[str, Array]
    """By name, (bins, temperatures): ``energy_per_site`` and, where they were measured, ``overlap_squared``,
    ``link_overlap`` and ``link_residual``, which ``link_residual`` explains."""
    error: dict[str, Array]  # standard errors of the same
    verdict: dict[str, npt.NDArray[np.str_]]
    """Agreement of the last three bins of each: "equilibrated", "not equilibrated" or "undecided", by name,
    (temperatures,). One equilibrated series in twenty fails."""


@dataclass(frozen=True)
class LinkAgreement:
    """Agreement of energy and link overlap over the last half of a run, as they do in equilibrium alone."""

    temperature: Array  # from the lowest to the highest, (temperatures,)
    residual: Array  # see ``link_residual``, averaged over the samples, likewise
    error: Array  # its standard error over the samples, likewise
    limit: float  # standard errors that a residual may be away from 0

    @property
    def score(self) -> Array:
        """Residuals in standard errors, (temperatures,)."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(self.residual == 0, 0.0, self.residual / self.error)

    @property
    def agrees(self) -> bool:
        return bool(np.all(np.abs(self.score) <= self.limit))

    @property
    def words(self) -> str:
        """The outcome as a clause."""
        k = int(np.abs(self.score).argmax())
        missed = f"energy and link overlap miss U = -(z/2) (1 - q_l) / T by {abs(self.score[k]):.2g} standard errors"
        at = f"at T = {self.temperature[k]:.4g}"
        if self.agrees:
            return f"{missed} {at}, where they do most; up to {self.limit:.3g} pass"
        return f"{missed} {at}, more than {self.limit:.3g}"


def approach(result: Tempered) -> Approach:
    """Averages over logarithmic bins of a run, at every temperature, with the verdict on each."""
    source = source_of(result)
    if source.measurements < FEWEST_STEPS:
        raise InputError(
            f"{source.measurements} measurements are too few for bins: give at least {FEWEST_STEPS}, with more sweeps"
        )
    start, stop = source.bins()
    mean, error, verdict = {}, {}, {}
    for name, places in _followed(result, source).items():
        of_each = [compare_bins(followed) for followed in places]
        mean[name] = np.stack([one.mean for one in of_each], axis=1)
        error[name] = np.stack([one.error for one in of_each], axis=1)
        verdict[name] = np.array([one.verdict.split(":")[0] for one in of_each])
    first, last = source.sweep_of(start), source.sweep_of(stop - 1)
    return Approach(result.temperature, start, stop, first, last, mean, error, verdict)


def link_residual(result: Tempered) -> Array:
    """U + (z/2) (1 - q_l) / T of each measurement, U the energy per site, (steps, samples, temperatures).

    Averaged over time and samples it is 0 in equilibrium, for Gaussian couplings of mean 0 and variance 1 without a
    field. For such a coupling J of a bond, [J f(J)] = [f'(J)]; with f the thermal average <s_i s_j>, whose derivative
    is (1 - <s_i s_j>^2) / T, the energy -[J <s_i s_j>] of a bond is -(1 - [<s_i s_j>^2]) / T, and the average of
    <s_i s_j>^2 over the bonds, of which there are z/2 a site, is the link overlap q_l of two copies. While a run
    forgets a random start, U is too high and q_l too low: the residual falls to 0 from above.
    Source: H. G. Katzgraber, M. Palassini, A. P. Young, Phys. Rev. B 63, 184422 (2001).
    """
    if not result.link_overlap.shape[2]:
        raise InputError("the run has no link overlaps: give one of two replicas or more, with correlations")
    sites, bonds = result.model.sites, result.model.bonds
    energy, link = result.energy.mean(axis=2) / sites, result.link_overlap.mean(axis=2) / bonds
    return np.asarray(energy + bonds / sites * (1 - link) / result.temperature)


def link_agreement(result: Tempered, false_alarms: float = FALSE_ALARMS) -> LinkAgreement | None:
    """Compare energy and link overlap over the last half of a run, with a false alarm in a share of them at most.

    Where they disagree at any temperature the run was not in equilibrium. The limit allows for the number of
    temperatures and, by Student's t, for few samples, whose scatter is the error. None where the comparison does not
    hold or cannot be made: for other couplings than ``gaussian``, in a field, for fewer than five samples and without
    link overlaps.
    """
    if not comparable(result):
        return None
    source = source_of(result)
    residual = _residual(result, source.late_means("energy"), source.late_means("q_link"), result.temperature)
    samples, temperatures = residual.shape
    error = standard_error(residual)
    limit = float(stdtrit(samples - 1, 1 - false_alarms / (2 * temperatures)))
    return LinkAgreement(result.temperature, residual.mean(axis=0), error, limit)


def comparable(result: Tempered) -> bool:
    facts = source_of(result).facts
    has_links = facts.correlations and facts.copies > 1
    return has_links and facts.model.samples >= _FEWEST_FOR_LINKS and _is_gaussian(facts.model)


def _residual(result: Tempered, energy: Array, link: Array, temperature: Array | float) -> Array:
    """``link_residual`` from averages per site and bond."""
    return np.asarray(energy + result.model.bonds / result.model.sites * (1 - link) / temperature)


def _is_gaussian(model: Ising) -> bool:
    """Return True if couplings are the Gaussian ones of ``EdwardsAnderson``, of variance 1, and there is no field."""
    if not model.name.endswith("-gaussian") or len(model.couplings) != model.samples or np.any(model.fields):
        return False
    squares = float((model.couplings.astype(np.float64) ** 2).mean())
    return bool(abs(squares - 1) <= _FAR * np.sqrt(2 / model.couplings.size))


def _followed(result: Tempered, source: Source) -> dict[str, Sequence[Followed | Binned]]:
    """Numbers that are averaged over bins, at each place of the ladder."""
    facts = source.facts
    found: dict[str, Sequence[Followed | Binned]] = {"energy_per_site": source.followed("energy")}
    if facts.copies > 1:
        found["overlap_squared"] = source.followed("q^2")
    if facts.copies > 1 and facts.correlations:
        found["link_overlap"] = source.followed("q_link")
    if comparable(result):
        each = zip(found["energy_per_site"], found["link_overlap"], result.temperature, strict=True)
        found["link_residual"] = [
            Binned(energy.start, energy.stop, _residual(result, energy.means, link.means, t))
            for energy, link, t in each
        ]
    return found
