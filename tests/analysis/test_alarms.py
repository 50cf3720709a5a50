"""False and missed alarms of verdicts on tempering runs whose relaxation time is known."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from made_up import tempered
from walkers import relaxation, walk

import spinsim as ss
from spinsim.analysis.equilibration import FALSE_ALARMS, compare_copies, judge
from spinsim.analysis.run_sums import FollowedSeries
from spinsim.analysis.runs import sample_of
from spinsim.analysis.summary import summarize
from spinsim.analysis.walks import walks

PLACES, RATE, COPIES = 8, 0.5, 2
TAU = relaxation(PLACES, RATE)
FAR = 3.0  # standard deviations of the energy, by which each sample starts too high


def made(samples: int, steps: int) -> ss.TemperResult:
    model = ss.EdwardsAnderson(ss.cubic(2), samples=samples, seed=1) if samples > 1 else ss.Ising(ss.square(4))
    return tempered(model, COPIES, steps=steps, ladder=np.linspace(1, 2, PLACES))


def verdicts(samples: int, length: float, start: float, runs: int, seed: int) -> Counter[str]:
    """How often each verdict is given on runs of ``length`` relaxation times, after half as many."""
    rounds = int(length * TAU)
    every = max(1, rounds // 200)
    walked = walk((runs, samples, COPIES, PLACES), rounds // every, rounds // 2, every, RATE, start, seed)
    run, found = made(samples, rounds // every), Counter[str]()
    for k in range(runs):
        own = {"permutation": walked.permutation[:, k], "round_trips": walked.round_trips[k]}
        judged = judge(replace(run, **own), {"energy": FollowedSeries(walked.energy[:, k])})
        found[judged.words.split(":")[0].split(",")[0]] += 1
    return found


def test_the_time_of_a_walk_is_found() -> None:
    """Of long runs to a tenth of its value, and runs that are shorter than it know that they are."""
    for length, low, high in ((100, 90, 110), (2, 1.2, 4)):
        rounds = int(length * TAU)
        walked = walk((1, 20, COPIES, PLACES), rounds // 2, 0, 2, RATE, 0.0, 3)
        run = replace(made(20, rounds // 2), permutation=walked.permutation[:, 0], round_trips=walked.round_trips[0])
        found = walks(run)
        assert found is not None
        assert low < found.span.mean() < high


@pytest.mark.parametrize("samples", [1, 4, 20])
@pytest.mark.parametrize("length", [1, 4, 8])
def test_runs_that_are_too_short_are_never_in_equilibrium(samples: int, length: float) -> None:
    assert verdicts(samples, length, FAR, 20, seed=int(length))["in equilibrium"] == 0


def test_runs_that_are_long_enough_are_in_equilibrium() -> None:
    found = verdicts(4, 48, FAR, 40, seed=2)
    assert found["in equilibrium"] >= 34
    assert found["not in equilibrium"] <= 6


@pytest.mark.slow
@pytest.mark.parametrize("samples", [1, 4, 20])
@pytest.mark.parametrize("length", [1, 2, 3, 4, 6, 8, 10])
def test_missed_alarms(samples: int, length: float) -> None:
    found = verdicts(samples, length, FAR, 300, seed=int(10 * length))
    print(f"\n{samples} samples, {length} relaxation times: {dict(found)}")  # noqa: T201
    assert found["in equilibrium"] <= 0.05 * 300


@pytest.mark.slow
@pytest.mark.parametrize("samples", [1, 4, 20])
@pytest.mark.parametrize("length", [24, 48, 96])
def test_false_alarms(samples: int, length: float) -> None:
    runs = 300
    found = verdicts(samples, length, 0.0, runs, seed=int(length))
    print(f"\n{samples} samples, {length} relaxation times: {dict(found)}")  # noqa: T201
    assert found["not in equilibrium"] / runs <= FALSE_ALARMS + 3 * np.sqrt(FALSE_ALARMS * (1 - FALSE_ALARMS) / runs)
    assert length < 96 or found["in equilibrium"] > 0.8 * runs


@pytest.mark.slow
def test_glasses_that_are_far_from_equilibrium() -> None:
    """Cubes of L = 8 down to T = 0.3, whose q^2 is half of what it should be after so few sweeps."""
    found, ladder = Counter[str](), np.linspace(0.3, 1.8, 16)
    for seed in range(100):
        model = ss.EdwardsAnderson(ss.cubic(8), samples=4, seed=1 + seed // 5)
        run = ss.temper(model, ladder, sweeps=400, thermalize=200, replicas=2, seed=seed + 1)
        found[summarize(run).verdict.split(":")[0].split(",")[0]] += 1
        at_one = ss.temper(model, [0.5], sweeps=400, thermalize=200, replicas=2, seed=seed + 1)
        found[f"{summarize(at_one).verdict.split(':')[0].split(',')[0]} at one temperature"] += 1
    print(found)  # noqa: T201
    assert found["in equilibrium"] == 0
    assert found["in equilibrium at one temperature"] <= 5


def test_one_temperature_can_be_in_equilibrium() -> None:
    for model in (ss.Ising(ss.square(8)), ss.EdwardsAnderson(ss.cubic(4), samples=4, seed=1)):
        run = ss.temper(model, [3.0], sweeps=2000, thermalize=100, replicas=2, seed=3)
        assert summarize(run).verdict.startswith("in equilibrium")


def test_few_of_many_samples_may_be_short() -> None:
    """So few that the average over samples does not feel it, and no more."""
    run = tempered(ss.EdwardsAnderson(ss.cubic(2), samples=20, seed=1), steps=128)
    replicas = np.arange(run.permutation[0, 0].size).reshape(run.permutation[0, 0].shape)
    run.permutation[:, 3] = replicas
    assert summarize(run).doubts == ()
    run.permutation[:, 4] = replicas
    assert summarize(run).verdict.startswith(
        "undecided: replicas in 2 of 20 samples walked too little along the ladder, 1 autocorrelation times of that"
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("side", "field", "ladder", "copies"),
    [(12, 0.0, [0.8], 1), (8, 0.0, [3.0], 2), (4, 0.5, [3.0], 1), (4, 0.02, np.linspace(1.2, 4, 8), 2)],
)
def test_false_alarms_of_ferromagnets(side: int, field: float, ladder: list[float], copies: int) -> None:
    """Cold ones that hardly move, hot ones, and those in a field."""
    runs = 300
    model = ss.Ising(ss.square(side), np.ones((runs, 2 * side**2)), field)
    whole = ss.temper(model, ladder, sweeps=8000, thermalize=4000, replicas=copies, seed=11)
    found = Counter(summarize(sample_of(whole, k)).verdict.split(":")[0].split(",")[0] for k in range(runs))
    print(f"\n{side} x {side} in {field}: {dict(found)}")  # noqa: T201
    assert found["not in equilibrium"] / runs <= FALSE_ALARMS + 3 * np.sqrt(FALSE_ALARMS * (1 - FALSE_ALARMS) / runs)
    assert found["in equilibrium"] > 0.8 * runs or side == 12


@pytest.mark.parametrize("rows", [12, 24, 100])
def test_copies_of_thousands_of_short_samples_agree(rows: int) -> None:
    """The variance of a short series is near 0 by chance in some of thousands: that is no evidence against a run."""
    values = np.random.default_rng(rows).standard_normal((rows, 2000, 4))
    for window in (0, 2, 4):
        assert not compare_copies(FollowedSeries(values), 0.01, np.full(2000, window)).any()
    values[:, 7] += 5 * np.arange(4)
    assert np.flatnonzero(compare_copies(FollowedSeries(values), 0.01, np.full(2000, 2))).tolist() == [7]
