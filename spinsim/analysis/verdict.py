"""One verdict on a tempering run: what speaks against equilibrium, in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import fdtrc

from spinsim.analysis.autocorrelation import SHORTEST
from spinsim.analysis.equilibration import (
    FALSE_ALARMS,
    FEW_SAMPLES,
    FEWEST_SAMPLES,
    Equilibration,
    LinkAgreement,
    comparable,
    compare_bins,
    link_agreement,
)
from spinsim.analysis.followed import Followed, FollowedSeries
from spinsim.analysis.runs import Tempered
from spinsim.analysis.sources import source_of
from spinsim.errors import InputError
from spinsim.inputs.checks import finite_array

Array = npt.NDArray[np.float64]

_DEAD: Final = 5e-4  # share of exchanges that is printed as 0.000
_MOST_SHORT: Final = 0.25  # samples by the square root of their number, by which averages have that part of an error
SPAN: Final = 10
"""Autocorrelation times that the walks of each sample must span."""
SPAN_OF_FEW: Final = 20
"""Likewise of fewer than ``FEW_SAMPLES``, over which drifts are tested weakly."""
ROUND_TRIPS: Final = 2
"""Round trips that the replicas of each sample must have made on average."""
_MEMORY: Final = 4
"""Autocorrelation times of a place in which a replica forgets a state that it can only leave at the hottest place.

Of a diffusion between two ends that reflect it the slowest mode is half a wave; with an end that absorbs it is a
quarter of one, which takes four times as long.
"""


class Walks(NamedTuple):
    """Walks along the ladder in each sample."""

    steps: int  # measurements
    tau: Array  # integrated autocorrelation time of a replica's place, in measurements, (samples,)
    round_trips: Array | None  # mean over the replicas, likewise; None where they could not be counted yet

    @property
    def span(self) -> Array:
        """Autocorrelation times of its walk that each sample's run is long, (samples,)."""
        return self.steps / self.tau

    @property
    def least(self) -> int:
        return SPAN_OF_FEW if len(self.tau) < FEW_SAMPLES else SPAN

    @property
    def window(self) -> Array:
        """Measurements in which each sample forgets, (samples,)."""
        return _MEMORY * self.tau

    @property
    def short(self) -> npt.NDArray[np.bool_]:
        """Samples whose replicas have walked too little to show that they are in equilibrium, (samples,)."""
        few = False if self.round_trips is None else self.round_trips < ROUND_TRIPS
        return np.asarray((self.span < self.least) | few)

    @property
    def words(self) -> str:
        where = f" in {int(self.short.sum())} of {len(self.span)} samples" if len(self.span) > 1 else ""
        walked = f"{self.span.min():.2g} autocorrelation times of that walk ({self.least} are needed)"
        if self.round_trips is not None:
            walked += f" and {self.round_trips.min():.2g} round trips a replica ({ROUND_TRIPS} are needed)"
        return f"replicas{where} walked too little along the ladder, {walked}; run longer"


def walks(result: Tempered) -> Walks | None:
    if len(result.temperature) < 2:
        return None
    trips = result.round_trips.mean(axis=1) if result.attempts.any() else None
    return Walks(*source_of(result).walk_times(), trips)


@dataclass(frozen=True)
class Verdict:
    """Evidence on the equilibrium of a tempering run."""

    equilibration: dict[str, Equilibration]  # of each observable at the lowest temperature, by name
    problems: tuple[str, ...]  # evidence against equilibrium, a clause each
    doubts: tuple[str, ...]  # evidence of equilibrium that is missing, a clause each
    links: LinkAgreement | None  # whether energy and link overlap agree, where Gaussian couplings let them be compared
    coldest: str  # where the observables were looked at, in words

    @property
    def words(self) -> str:
        if self.problems:
            return f"not in equilibrium: {'; '.join(self.problems)}"
        if self.doubts:
            return f"undecided: {'; '.join(self.doubts)}"
        names = list(self.equilibration)
        return f"in equilibrium, as far as {_listed(names)} at {self.coldest} show{'s' * (len(names) == 1)}"


def judge(result: Tempered, coldest: Mapping[str, Array | Followed]) -> Verdict:
    """Judge a run by observables at its lowest temperature, its copies, its exchanges and the walks of its replicas.

    With Gaussian couplings energy and link overlap are compared too, at all temperatures. A run in equilibrium is
    called not in equilibrium with a probability of at most 0.05, which the tests of the observables, of the copies and
    of the link overlap share; exchanges and round trips are counted, not tested.

    A run that shows nothing against equilibrium is "undecided" while it is too short to show it: the replicas of each
    sample must have walked long enough along the ladder (``walks``), as each sample has an autocorrelation time of its
    own (R. Alvarez Banos et al., J. Stat. Mech. P06026 (2010)). At one temperature the series of each sample must be
    long instead, and fewer than ten samples are tested for drifts one by one. A few samples may be too short, so few
    that they cannot move an average over samples by more than a quarter of its error. One or two samples whose
    observables are constant are undecided too.

    ``coldest`` has the observables at the lowest temperature by name, followed or as series (steps, samples, copies or
    pairs of copies); "energy" is what copies are compared in.
    """
    numbers = {name: _followed(number) for name, number in coldest.items()}
    energy, where = numbers["energy"], result.axis.coldest
    copies = energy.copies
    share = FALSE_ALARMS / (len(numbers) + (copies > 1) + comparable(result))
    walked = walks(result)
    together, window = (FEW_SAMPLES, 0) if walked is None else (FEWEST_SAMPLES, walked.window)
    tested = {name: compare_bins(number, share, together, window) for name, number in numbers.items()}
    drifts = {name: e.verdict.removeprefix("not equilibrated: ") for name, e in tested.items() if e.drifts}
    problems = [f"{name} at {where} drifts, {words}" for name, words in drifts.items()]
    if copies > 1:
        apart = compare_copies(energy, share, window)
        if apart.any():
            whose = f" of {_share(apart)}" if len(apart) > 1 else ""
            problems.append(f"the copies{whose} disagree in energy at {where}")
    links = link_agreement(result, share)
    if links and not links.agrees:
        problems.append(links.words)
    doubts = [*_unknown_drifts(tested, where), *_short_samples(walked, energy, where)]
    return Verdict(tested, (*problems, *exchange_problems(result)), tuple(doubts), links, where)


def _followed(number: Array | Followed) -> Followed:
    return FollowedSeries(number) if isinstance(number, np.ndarray) else number


def _unknown_drifts(tested: dict[str, Equilibration], where: str) -> list[str]:
    undecided = [name for name, e in tested.items() if not (e.equilibrated or e.drifts)]
    if not undecided:
        return []
    return [f"of {_listed(undecided)} at {where}, {tested[undecided[0]].verdict.removeprefix('undecided: ')}"]


def _short_samples(walked: Walks | None, energy: Followed, where: str) -> list[str]:
    """Say how many samples are too short to be judged, where there are too many of them.

    At one temperature, where nothing has walked, the time that the energy takes decides.
    """
    short = ~energy.time().trusted if walked is None else walked.short
    if short.sum() <= _MOST_SHORT * np.sqrt(len(short)):
        return []
    if walked is not None:
        return [walked.words]
    if len(short) < FEWEST_SAMPLES:
        return []  # which tests of drifts have said
    return [
        f"in {_share(short)} the energy at {where} is constant or measured over fewer than {SHORTEST} autocorrelation "
        "times; run longer"
    ]


def exchange_problems(result: Tempered) -> list[str]:
    """Neighbours that do not exchange and round trips that never happened; nothing where none could be counted yet."""
    if not result.attempts.any():
        return []
    problems = []
    dead = np.flatnonzero(result.swap_rate < _DEAD)
    if dead.size:
        low, high = result.axis.values[dead[0]], result.axis.values[dead[0] + 1]
        more = f" and {dead.size - 1} more" if dead.size > 1 else ""
        problems.append(f"the exchange rate of {result.axis.symbol} = {low:.4g} with {high:.4g}{more} is 0.000")
    without = np.asarray(~result.round_trips.any(axis=1))
    if without.any():
        where = "" if without.all() else f" in {_share(without)}"
        problems.append(f"no replica{where} went from the far end of the ladder to {result.axis.coldest} and back")
    return problems


def copies_disagree(
    series: npt.ArrayLike, false_alarms: float = FALSE_ALARMS, least_window: npt.ArrayLike = 0
) -> npt.NDArray[np.bool_]:
    """In which samples (n, samples, copies) the averages of copies differ by more than their fluctuations explain.

    An analysis of variance: with C = 2 sigma^2 tau of the copies, each about its own average, the scatter of their
    averages n s^2 / C follows Fisher's F with copies - 1 and n copies / (2 W + 1) degrees of freedom, half as many
    where a least window tells of a slow process beside fast ones, as C is known worse then. Copies too short for their
    own tau are not said to disagree; that they are too short shows elsewhere. In equilibrium copies of any sample
    disagree with a probability of ``false_alarms`` at most.
    """
    values = finite_array(series, "series")
    if values.ndim != 3 or values.shape[2] < 2:
        raise InputError(f"series has shape {values.shape}: give (measurements, samples, copies), two copies or more")
    return compare_copies(FollowedSeries(values), false_alarms, least_window)


def compare_copies(
    energy: Followed, false_alarms: float = FALSE_ALARMS, least_window: npt.ArrayLike = 0
) -> npt.NDArray[np.bool_]:
    """Do as ``copies_disagree`` with an energy of which more is known than its series, or less."""
    means, is_constant, variance, freedom, is_trusted = energy.of_copies(least_window)
    samples, copies = means.shape
    with np.errstate(invalid="ignore", divide="ignore"):
        freedom = freedom / np.where(np.asarray(least_window) > 0, 2, 1)
        probability = fdtrc(copies - 1, freedom, means.var(axis=1, ddof=1) / variance)
    differ = means.max(axis=1) > means.min(axis=1)
    return np.asarray(np.where(is_constant, differ, is_trusted & (probability < false_alarms / samples)))


def _share(chosen: npt.NDArray[np.bool_]) -> str:
    return f"{int(chosen.sum())} of {chosen.size} samples"


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
