"""Tests of equilibrium: averages over logarithmic bins, energy against link overlap, one verdict in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from types import MappingProxyType
from typing import Final

import numpy as np
import numpy.typing as npt

from spinsim.analysis.autocorrelation import FEWEST_CARRIERS, SHORTEST
from spinsim.analysis.chains import MEMORY
from spinsim.analysis.distributions import fisher_tail, normal_limit, student_limit
from spinsim.analysis.jackknife import standard_error
from spinsim.analysis.run_sums import Bins, Followed
from spinsim.analysis.runs import Array, Bools, Integers, Tempered, samples_in
from spinsim.analysis.statistics import Statistics, statistics_of
from spinsim.analysis.walks import FEW_SAMPLES, ROUND_TRIPS, Equilibrium, walks
from spinsim.errors import InputError
from spinsim.model.ising import Ising
from spinsim.observables.quantities import in_field

FEWEST_STEPS: Final = 8
FALSE_ALARMS: Final = 0.05  # share of equilibrated series that may be called not equilibrated
TESTED: Final = 3  # bins that are compared
FEWEST_SAMPLES: Final = 3  # samples from which on drifts are tested by their scatter; fewer are tested one by one
_FEWEST_FOR_LINKS: Final = 5  # samples from which on their scatter can test a residual at several temperatures
_FAR: Final = 5.0  # standard errors by which the mean square of couplings of variance 1 may miss 1
_UNDECIDED: Final = (
    f"undecided: the last half of the run is constant, rests on fewer than {FEWEST_CARRIERS} rare events or is shorter "
    f"than {SHORTEST} autocorrelation times, so that its errors are not known; measure longer"
)

_ROUNDING: Final = 1e-9  # of averages per site
_DEAD: Final = 5e-4  # share of exchanges that is printed as 0.000
_MOST_SHORT: Final = 0.25  # short samples over the square root of all: they shift averages by that part of an error
_AWAY: Final = 0.9
"""Ratio <|x|>^2 / <x^2> from which on x stays away from 0: that of +-x_0 with a spread of x_0 / 3."""
_UNMOVED: Final = {"", "houdayer"}  # names of moves that take no replica to a state that no copy has had


@dataclass(frozen=True)
class Equilibration:
    """An observable in bins [n / 2^k, n / 2^(k - 1)), earliest first; arrays of shape (bins,)."""

    start: Integers  # first row of the series in a bin
    stop: Integers  # row after its last
    mean: Array  # average over the bin, and over the samples
    error: Array  # standard error of the average
    equilibrated: bool  # true if the last three bins agree; false also where this is undecided
    verdict: str  # result in words, with its reason; begins with "equilibrated", "not equilibrated", "undecided"

    @property
    def drifts(self) -> bool:
        return self.verdict.startswith("not")


def compare_bins(
    followed: Followed | Bins,
    false_alarms: float = FALSE_ALARMS,
    together: int = FEWEST_SAMPLES,
    least_window: npt.ArrayLike = 0,
    constant_pass: bool = False,
) -> Equilibration:
    """Compare the averages of an observable over logarithmic bins of a run.

    For each two of the last three bins, [n/2, n), [n/4, n/2) and [n/8, n/4), the difference of their averages is tested
    against a limit in standard errors. All three differences pass in a share 1 - ``false_alarms`` of equilibrated
    series, or in more. The limit is that of Student's t for a third of ``false_alarms``, with the degrees of freedom of
    the error. With ``together`` samples or more, differences are taken sample by sample; the error is that of their
    mean over samples, with samples - 1 degrees of freedom. Fewer samples are tested one by one and share
    ``false_alarms``. The error of each bin is then sigma sqrt(2 tau / length), with sigma and tau of the last bin,
    which hold for the whole of a stationary series; errors add in squares. There are n / 2 / (2 W + 1) degrees of
    freedom, with W the window of tau: half as many where a least window marks a slow process beside fast ones, and
    fewer where rare events carry the variance. The verdict is withheld where such a tau is not trusted; with
    ``constant_pass`` it is given without samples at rest (``at_rest``), if others are not. An observable
    that vanishes by symmetry tests nothing: take the energy, q^2 or the link overlap at the lowest temperature.
    Fractions of n are rounded down, and row 0 is in no bin. For reduced measurements bins begin and end with blocks, as
    near to these fractions as possible.

    Sources: binning as in H. G. Katzgraber, M. Koerner, A. P. Young, Phys. Rev. B 73, 224432 (2006); the variance of
    sigma^2 tau, 2 (2 W + 1) / n of its square, is eq. 42 of U. Wolff, Comput. Phys. Commun. 156, 143 (2004).
    """
    start, stop, length, means = followed if isinstance(followed, Bins) else followed.bins
    samples = means.shape[1]
    if samples > 1:
        error = standard_error(means, 1)
    else:  # of a stationary series, estimated from its last bin
        assert not isinstance(followed, Bins)  # noqa: S101  (which are of several samples)
        time = followed.late_time()
        sigma = time.mean_error * np.sqrt(length[-1] / (2 * time.tau))
        error = np.asarray(sigma * np.minimum(np.sqrt(2 * time.tau / length[:, 0]), 1))
    pairs = list(combinations(range(len(means) - TESTED, len(means)), 2))
    apart = np.array([means[b] - means[a] for a, b in pairs])
    if samples < together and not isinstance(followed, Bins):
        time = followed.late_time(least_window)
        # of one measurement: bins exceed tau
        constant = followed.rests & ~time.trusted
        passed = constant & ~constant.all() & constant_pass
        apart[:, passed] = 0
        variance = np.where(time.trusted, time.mean_error**2 * length[-1], np.nan)
        errors = np.sqrt(variance * np.array([1 / length[a] + 1 / length[b] for a, b in pairs]))
        errors[:, passed] = 0
        freedom = length[-1] / (2 * time.window + 1) / (2 if np.any(least_window) else 1)
        # this is the number of stretches where averages are normal
        freedom = np.where(passed, 1.0, np.minimum(freedom, 3 * time.carriers))
    else:
        errors, apart = standard_error(apart, 1)[:, None], apart.mean(axis=1)[:, None]
        freedom = np.array([samples - 1.0])
    limits = student_limit(freedom, false_alarms / TESTED / len(freedom) / 2)  # largest |t| that passes
    with np.errstate(divide="ignore", invalid="ignore"):
        scores = np.where((apart == 0) & (errors == 0), 0.0, np.abs(apart) / errors)  # (pairs, tests)
    test, pair = np.unravel_index(np.argmax((scores / limits).T), scores.T.shape)
    score, limit = float(scores[pair, test]), float(limits[test])
    one, other = (f"[{start[k]}, {stop[k]})" for k in pairs[pair])
    said = f"the averages over measurements {one} and {other} differ by {score:.2g} standard errors"
    verdict = f"equilibrated: of the last three bins {said}, the others by no more; up to {limit:.3g} pass"
    if np.isnan(score):
        verdict = _UNDECIDED
    elif score > limit:
        verdict = f"not equilibrated: {said}, more than {limit:.3g}"
    return Equilibration(start, stop, means.mean(axis=1), error, score <= limit, verdict)


def beyond_constant(coldest: Followed, warmer: Sequence[Followed]) -> tuple[int, Followed]:
    """Return the coldest place of the ladder at which an observable fluctuates in any sample, and the observable there.

    ``coldest`` is at place 0, ``warmer`` at all places. Rare events are no fluctuation (``at_rest``), as a longer run
    would only meet some at a colder place. Where nothing fluctuates at any place, this is place 0.
    """
    for place, one in enumerate([coldest, *warmer[1:]]):
        if not one.rests.all() or one.late_time().trusted.any():
            return place, one
    return 0, coldest


@dataclass(frozen=True)
class Approach:
    """Averages over bins, each twice as long as the one before; the last one is the second half of the run."""

    temperature: Array  # from the lowest to the highest, (temperatures,)
    start: Integers  # first measurement of each bin, (bins,)
    stop: Integers  # measurement after its last, likewise
    first_sweep: Integers  # sweeps done before its first measurement, likewise
    last_sweep: Integers  # sweeps done before its last measurement, likewise
    mean: dict[str, Array]
    """Averages by name, (bins, temperatures): ``energy_per_site`` and, where measured, ``overlap_squared``,
    ``link_overlap`` and ``link_residual``, see the function of that name."""
    error: dict[str, Array]  # standard errors of the same
    verdict: dict[str, npt.NDArray[np.str_]]
    """Agreement of the last three bins of each: "equilibrated", "not equilibrated" or "undecided", by name,
    (temperatures,). One equilibrated series in twenty fails."""


@dataclass(frozen=True)
class LinkAgreement:
    """Agreement of energy and link overlap over the last half of a run, which holds in equilibrium alone."""

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
        k = int(np.abs(self.score).argmax())
        missed = f"energy and link overlap miss U = -(z/2) (1 - q_l) / T by {abs(self.score[k]):.2g} standard errors"
        passes = f"where they do most; up to {self.limit:.3g} pass" if self.agrees else f"more than {self.limit:.3g}"
        return f"{missed} at T = {self.temperature[k]:.4g}, {passes}"


def approach(result: Tempered) -> Approach:
    statistics = statistics_of(result)
    if statistics.measurements < FEWEST_STEPS:
        raise InputError(
            f"{statistics.measurements} measurements are too few for bins: give at least {FEWEST_STEPS}, "
            "with more sweeps"
        )
    mean, error, verdict = {}, {}, {}
    for name, places in _followed(result, statistics).items():
        of_each = [compare_bins(followed) for followed in places]
        mean[name] = np.stack([one.mean for one in of_each], axis=1)
        error[name] = np.stack([one.error for one in of_each], axis=1)
        verdict[name] = np.array([one.verdict.split(":")[0] for one in of_each])
    start, stop = of_each[0].start, of_each[0].stop
    first, last = statistics.sweep_of(start), statistics.sweep_of(stop - 1)
    return Approach(result.temperature, start, stop, first, last, mean, error, verdict)


def link_agreement(result: Tempered, false_alarms: float = FALSE_ALARMS) -> LinkAgreement | None:
    """Compare energy and link overlap over the last half of a run, with at most a share ``false_alarms`` of alarms.

    Where they disagree at any temperature, the run was not in equilibrium. The limit allows for the number of
    temperatures and, by Student's t, for few samples; the scatter of samples is the error. Returns None where the two
    cannot be compared: for couplings other than ``gaussian``, in a field, for fewer than five samples and without link
    overlaps.
    """
    if not comparable(result):
        return None
    statistics = statistics_of(result)
    residual = link_residual(
        result.model, statistics.late_means("energy"), statistics.late_means("q_link"), result.temperature
    )
    samples, temperatures = residual.shape
    error = standard_error(residual)
    limit = float(student_limit(samples - 1, false_alarms / (2 * temperatures)))
    return LinkAgreement(result.temperature, residual.mean(axis=0), error, limit)


def comparable(result: Tempered) -> bool:
    """Return True for Gaussian couplings of variance 1 (``EdwardsAnderson``) and link overlaps of enough samples."""
    measured, model = statistics_of(result).choice, result.model
    if not measured.wanted.full or measured.copies < 2 or samples_in(result) < _FEWEST_FOR_LINKS:
        return False
    if not model.name.endswith("-gaussian") or len(model.couplings) != model.samples or np.any(model.fields):
        return False
    squares = float((model.couplings.astype(np.float64) ** 2).mean())
    return bool(abs(squares - 1) <= _FAR * np.sqrt(2 / model.couplings.size))


def link_residual(model: Ising, energy: Array, link: Array, temperature: Array | float) -> Array:
    """Residual U + (z/2) (1 - q_l) / T from the energy U per site and the link overlap q_l per bond.

    Averaged over time and samples it is 0 in equilibrium, for Gaussian couplings of mean 0 and variance 1 without a
    field. For such a coupling J of a bond, [J f(J)] = [f'(J)]. With f the thermal average <s_i s_j>, whose derivative
    is (1 - <s_i s_j>^2) / T, the energy -[J <s_i s_j>] of a bond is -(1 - [<s_i s_j>^2]) / T. There are z/2 bonds a
    site, and the average of <s_i s_j>^2 over bonds is the link overlap q_l of two copies. While a run forgets a random
    start, U is too high and q_l too low: the residual falls to 0 from above.

    Source: H. G. Katzgraber, M. Palassini, A. P. Young, Phys. Rev. B 63, 184422 (2001).
    """
    return np.asarray(energy + model.bonds / model.sites * (1 - link) / temperature)


def _followed(result: Tempered, statistics: Statistics) -> dict[str, Sequence[Followed | Bins]]:
    measured = statistics.choice
    followed: dict[str, Sequence[Followed | Bins]] = {"energy_per_site": statistics.followed("energy")}
    if measured.copies > 1:
        followed["overlap_squared"] = statistics.followed("q^2")
    if measured.copies > 1 and measured.wanted.full:
        followed["link_overlap"] = statistics.followed("q_link")
    if comparable(result):
        each = zip(statistics.followed("energy"), statistics.followed("q_link"), result.temperature, strict=True)
        followed["link_residual"] = [
            e.bins._replace(means=link_residual(result.model, e.bins.means, q.bins.means, t)) for e, q, t in each
        ]
    return followed


@dataclass(frozen=True)
class Verdict:
    """Evidence on the equilibrium of a tempering run."""

    equilibration: dict[str, Equilibration]
    """Of each observable by name, at the lowest temperature at which it fluctuates."""
    problems: tuple[str, ...]  # evidence against equilibrium, a clause each
    doubts: tuple[str, ...]  # missing evidence of equilibrium, a clause each
    links: LinkAgreement | None  # agreement of energy and link overlap, for comparable Gaussian couplings
    coldest: str  # the lowest temperature, in words
    limits: str = ""  # a clause on states that no test can see, if such states are possible
    constant: tuple[str, ...] = ()  # sentences on observables that are constant at the lowest temperatures
    by_chance: bool = False  # true if a problem comes from a test, which fails by chance in a share of all runs

    @property
    def words(self) -> str:
        if self.problems:
            return f"not in equilibrium: {'; '.join(self.problems)}"
        if self.doubts:
            return f"undecided: {'; '.join(self.doubts)}"
        names = list(self.equilibration)
        more = "".join(f"; {clause}" for clause in (*self.constant, self.limits) if clause)
        return f"in equilibrium, as far as {_listed(names)} at {self.coldest} show{'s' * (len(names) == 1)}{more}"


def judge(
    result: Tempered,
    coldest: Mapping[str, Followed],
    statistics: Statistics | None = None,
    fluctuating: Mapping[str, tuple[int, Followed]] = MappingProxyType({}),
) -> Verdict:
    """Judge a run by observables at its lowest temperature, its copies, its exchanges and the walks of its replicas.

    With Gaussian couplings energy and link overlap are compared too, at all temperatures, and in a uniform field the
    magnetisation must lie within exact bounds (``beyond_field``). A run in equilibrium is called not in equilibrium
    with a probability of at most 0.05, which all these tests share; exchanges and round trips are counted, not tested.

    A run without evidence against equilibrium is "undecided" while it is too short to show any. The replicas of each
    sample must have walked long enough along the ladder (``walks``), as each sample has an autocorrelation time of its
    own (R. Alvarez Banos et al., J. Stat. Mech. P06026 (2010)). At one temperature the series of each sample must be
    long instead, and fewer than ten samples are tested for drifts one by one. Without cluster moves the order
    parameters must also come near to 0 where there is no field (``stays_away``), and metastable states are never
    excluded. Some samples may be too short, if they cannot move an average over samples by more than a quarter of its
    error. One or two samples with constant observables are also undecided.

    ``coldest`` has the observables at the lowest temperature by name; ``fluctuating`` has the place and the values of
    those that are constant there (``beyond_constant``), such as the energy of a ground state, which are tested for
    drifts where they fluctuate. Copies are compared in "energy" and, in a field, "m", at the lowest temperature. For
    pooled runs each run of each sample is tested.
    """
    statistics = statistics or statistics_of(result)
    energy, where = coldest["energy"], result.axis.coldest
    compared = [name for name in ("energy", "m") if name in coldest and energy.copies > 1]
    share = FALSE_ALARMS / (len(coldest) + len(compared) + comparable(result) + ("m" in coldest))
    walked = walks(result)
    together, window = (
        (FEW_SAMPLES, 0) if walked is None else (FEWEST_SAMPLES, MEMORY * walked.tau_int / statistics.every)
    )
    places = {name: (0, number) for name, number in coldest.items()} | dict(fluctuating)
    at = {name: _where(result, place) for name, (place, _) in places.items()}
    has_ladder = walked is not None
    tested = {name: compare_bins(one, share, together, window, has_ladder) for name, (_, one) in places.items()}
    drifts = {name: e.verdict.removeprefix("not equilibrated: ") for name, e in tested.items() if e.drifts}
    problems = [f"{name} at {at[name]} drifts, {words}" for name, words in drifts.items()]
    for name in compared:
        apart = compare_copies(coldest[name], share, window)
        if apart.any():
            problems.append(f"the copies{_whose(apart, result)} disagree in {name} at {where}")
    if "m" in coldest and (beyond := beyond_field(result, share, statistics)).any():
        problems.append(
            f"m{_whose(beyond, result)} at {where} is beyond what the field allows, as its sign changes too rarely "
            "or never"
        )
    links = link_agreement(result, share)
    if links and not links.agrees:
        problems.append(links.words)
    doubts, limits = _short_samples(result, walked, energy), ""
    if walked is None and _keeps_valleys(result):
        limits = f"at one {result.axis.name} without cluster moves metastable states cannot be excluded"
        if kept := _kept_signs(result, statistics):
            doubts.append(f"{kept}, and {limits}")
    if undecided := [name for name, e in tested.items() if not (e.equilibrated or e.drifts)]:
        reason = tested[undecided[0]].verdict.removeprefix("undecided: ")
        doubts.insert(
            0, f"of {_listed(undecided)} at {_listed(list(dict.fromkeys(at[n] for n in undecided)))}, {reason}"
        )
    of_exchanges, by_chance = exchange_problems(result), bool(problems)
    constant = _constant_in_words(result, {name: place for name, (place, _) in fluctuating.items()})
    return Verdict(tested, (*problems, *of_exchanges), tuple(doubts), links, where, limits, constant, by_chance)


def _constant_in_words(result: Tempered, places: Mapping[str, int]) -> tuple[str, ...]:
    """Say which observables are constant at the coldest places, and at which places they were judged instead."""
    clauses = []
    for place in dict.fromkeys(places.values()):
        names = [name for name, other in places.items() if other == place]
        are, until = "are" if len(names) > 1 else "is", f" and up to {_where(result, place - 1)}" if place > 1 else ""
        below = f"constant at {result.axis.coldest}{until}, apart from rare events"
        clauses.append(f"{_listed(names)} {are} {below}, and judged at {_where(result, place)}")
    return tuple(clauses)


def _where(result: Tempered, place: int) -> str:
    axis = result.axis
    return f"{axis.symbol} = {axis.values[place]:.4g}" if place else axis.coldest


def _keeps_valleys(result: Tempered) -> bool:
    """True if no move but single flips takes a replica from one state to another."""
    moves = result.config.get(result.job, {}).get("moves") or ""
    return {one.partition(":")[0] for one in moves.split(",")} <= _UNMOVED


def _kept_signs(result: Tempered, statistics: Statistics) -> str:
    """Say which order parameters stay away from 0, and in how many samples; nothing where these are few."""
    away = {name: samples for name, samples in stays_away(result, statistics).items() if samples.any()}
    marked = np.logical_or.reduce(list(away.values())) if away else np.zeros(1, np.bool_)
    if marked.sum() <= _MOST_SHORT * np.sqrt(len(marked)):
        return ""
    return f"{_listed(list(away), 'or')}{_whose(marked, result)} stays away from 0"


def stays_away(result: Tempered, statistics: Statistics | None = None) -> dict[str, Bools]:
    """Mark samples in which an order parameter stays away from 0 at the highest temperature, (samples,), by its name.

    Replicas that go from one of two opposite states to the other pass 0, so that |x| has no gap there: <|x|>^2 / <x^2>
    is 2 / pi for a Gaussian x and 1 for +-x_0. A field may hold a sign for ever, so that no order parameter is tested
    in a field; ``beyond_field`` judges m in a uniform one.
    """
    if in_field(result.model):
        return {}
    run = (statistics or statistics_of(result)).run
    return {
        name: (run.mean(f"|{name}|") ** 2 > _AWAY * run.mean(f"{name}^2"))[:, -1]
        for name in ("m", "m_s", "q")
        if {f"|{name}|", f"{name}^2"} <= run.names.keys()
    }


def beyond_field(result: Tempered, false_alarms: float = FALSE_ALARMS, statistics: Statistics | None = None) -> Bools:
    """Mark samples whose magnetisation at the lowest temperature no uniform field h allows, (samples,).

    Couplings are even in M, so that P(-M) = P(M) exp(-2 beta h M) and <M> = <|M| tanh(beta h |M|)>. The average is over
    a concave function of M^2, which bounds the magnetisation per site m, with b = beta |h| N:

        <m^2> tanh(b) <= sign(h) <m> <= sqrt(<m^2>) tanh(b sqrt(<m^2>)).

    The error of <m> is at least the error of signs that are independent after the measured autocorrelation time, as a
    sign that never changed has no scatter of its own. In other than uniform fields no sample is marked.
    """
    field = result.model.uniform_field
    if not field:
        return np.zeros(result.model.samples, np.bool_)
    statistics = statistics or statistics_of(result)
    run, time = statistics.run, statistics.time_of_runs("m")
    square = run.mean("m^2")[:, 0]
    root, strength = np.sqrt(square), abs(result.model.fields[0, 0]) * result.model.sites / result.temperature[0]
    mean, bias = run.mean("m")[:, 0] * np.sign(field), np.tanh(strength * root)
    of_signs = root * np.sqrt((1 - bias**2) * 2 * time.tau[:, 0] / (run.lengths * run.reduced.copies))
    limit = normal_limit(false_alarms / 2 / len(mean)) * np.fmax(time.mean_error[:, 0], of_signs) + _ROUNDING
    return np.asarray((mean > root * bias + limit) | (mean < square * np.tanh(strength) - limit))


def _short_samples(result: Tempered, walked: Equilibrium | None, energy: Followed) -> list[str]:
    """Say how many samples are too short, where too many are; at one temperature the energy's time decides."""
    short = ~energy.time().trusted if walked is None else walked.is_slow
    if short.sum() <= _MOST_SHORT * np.sqrt(len(short)):
        return []
    if walked is not None:
        return [_short_walks(result, walked)]
    if len(short) < FEWEST_SAMPLES:
        return []  # the tests of drifts have said this
    return [
        f"in {_share(short, result)} the energy at {result.axis.coldest} is constant or measured over fewer than "
        f"{SHORTEST} autocorrelation times; run longer"
    ]


def _short_walks(result: Tempered, walked: Equilibrium) -> str:
    where = f" in {_share(walked.is_slow, result)}" if len(walked.span) > 1 else ""
    spans = f"{walked.span.min():.2g} autocorrelation times of that walk ({walked.needed} are needed)"
    if np.isfinite(walked.round_trips).all():
        spans += f" and {walked.round_trips.min():.2g} round trips a replica ({ROUND_TRIPS} are needed)"
    return f"replicas{where} walked too little along the ladder, {spans}; run longer"


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
        where = "" if without.all() else f" in {_share(without, result)}"
        problems.append(f"no replica{where} went from the far end of the ladder to {result.axis.coldest} and back")
    return problems


def compare_copies(energy: Followed, false_alarms: float = FALSE_ALARMS, least_window: npt.ArrayLike = 0) -> Bools:
    """Mark samples in which the averages of copies differ by more than their fluctuations explain, (samples,).

    An analysis of variance: with C = 2 sigma^2 tau of the copies, each about its own average, the scatter of their
    averages n s^2 / C follows Fisher's F with copies - 1 and n copies / (2 W + 1) degrees of freedom. The latter are
    halved where a least window marks a slow process beside fast ones, as C is then less well known. Copies too short
    for their own tau never count as disagreeing; other tests show that they are too short. In equilibrium copies of any
    sample disagree with a probability of ``false_alarms`` at most.
    """
    means, is_constant, variance, freedom, is_trusted = energy.of_copies(least_window)
    samples, copies = means.shape
    with np.errstate(invalid="ignore", divide="ignore"):
        freedom = freedom / np.where(np.asarray(least_window) > 0, 2, 1)
        probability = fisher_tail(copies - 1, freedom, means.var(axis=1, ddof=1) / variance)
    differ = means.max(axis=1) > means.min(axis=1)
    return np.asarray(np.where(is_constant, differ, is_trusted & (probability < false_alarms / samples)))


def _whose(chosen: Bools, result: Tempered) -> str:
    return f" of {_share(chosen, result)}" if len(chosen) > 1 else ""


def _share(chosen: Bools, result: Tempered) -> str:
    """Say how many samples are chosen or, where pooled runs share samples, how many runs are."""
    return f"{int(chosen.sum())} of {chosen.size} {'samples' if result.disorder is None else 'runs'}"


def _listed(names: list[str], word: str = "and") -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {word} {names[-1]}"
