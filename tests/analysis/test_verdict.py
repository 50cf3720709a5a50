"""The verdict on a tempering run: drifts, copies that disagree, exchanges and round trips that never happened."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from by_series import copies_disagree
from harness import run
from made_up import frozen, tempered
from processes import ar1, rho_of

import spinsim as ss
from spinsim.analysis.equilibration import FALSE_ALARMS
from spinsim.analysis.run_sums import at_rest
from spinsim.analysis.summary import summarize
from spinsim.analysis.tables import verdict_rows
from spinsim.jobs.temper.run import TemperResult


@pytest.fixture
def result() -> TemperResult:
    return tempered(ss.EdwardsAnderson(ss.cubic(4), samples=6, seed=1))


def test_a_good_run(result):
    found = summarize(result)
    assert found.problems == ()
    assert found.verdict == "in equilibrium, as far as energy and q^2 at the lowest temperature show"


def test_a_drift(result):
    result.energy[..., 0] += 20 * np.exp(-np.arange(1024) / 256)[:, None, None]
    found = summarize(result)
    (problem,) = found.problems
    assert problem.startswith("energy at the lowest temperature drifts, the averages over measurements [")
    assert found.verdict == f"not in equilibrium: {problem}"
    verdict, note = verdict_rows(found)
    assert verdict.note == found.verdict
    assert note.note.startswith("One run in twenty that is in equilibrium fails these tests by chance")


def test_only_tests_fail_by_chance(result):
    assert len(verdict_rows(summarize(result))) == 1
    result.round_trips[:] = 0
    (verdict,) = verdict_rows(summarize(result))
    assert verdict.note.startswith("not in equilibrium")


def test_copies_that_disagree(result):
    result.energy[:, 2, 1, 0] += 8
    assert summarize(result).problems == ("the copies of 1 of 6 samples disagree in energy at the lowest temperature",)


def test_neighbours_that_do_not_exchange(result):
    result.accepts[:, 3] = 1
    assert summarize(result).problems == ("the exchange rate of T = 1.971 with 2.029 is 0.000",)
    result.accepts[:, 5] = 0
    assert summarize(result).problems == ("the exchange rate of T = 1.971 with 2.029 and 1 more is 0.000",)


def test_round_trips_that_never_happened(result):
    result.round_trips[4] = 0
    never = "went from the far end of the ladder to the lowest temperature and back"
    assert summarize(result).problems == (f"no replica in 1 of 6 samples {never}",)
    result.round_trips[:] = 0
    assert summarize(result).problems == (f"no replica {never}",)
    unknown = replace(result, attempts=0 * result.attempts, accepts=0 * result.accepts)  # before a first checkpoint
    assert summarize(unknown).problems == ()


def test_what_does_not_move_is_undecided():
    result = frozen(tempered(ss.Ising(ss.square(4))))
    assert summarize(result).problems == ("the copies disagree in energy at the lowest temperature",)
    for place in range(len(result.temperature)):
        frozen(result, place)
    result.energy[:] = -32
    verdict = summarize(result).verdict
    assert verdict.startswith(
        "undecided: of energy, q^2 and m^2 at the lowest temperature, the last half of the run is"
    )


@pytest.mark.parametrize("places", [1, 3])
def test_what_is_constant_at_low_temperatures_is_judged_where_it_fluctuates(places):
    result = tempered(ss.Ising(ss.square(4)))
    for place in range(places):
        frozen(result, place)
        result.energy[..., place] = -32
    found, until = summarize(result), "" if places == 1 else f" and up to T = {result.temperature[places - 1]:.4g}"
    where = f"T = {result.temperature[places]:.4g}"
    assert found.verdict == (
        "in equilibrium, as far as energy, q^2 and m^2 at the lowest temperature show; energy, q^2 and m^2 are "
        f"constant at the lowest temperature{until}, apart from rare events, and judged at {where}"
    )
    result.energy[..., places] += 40 * np.exp(-np.arange(1024) / 256)[:, None, None]
    assert summarize(result).verdict.startswith(f"not in equilibrium: energy at {where} drifts")


def test_a_constant_sample_beside_one_that_fluctuates_leaves_the_verdict_to_this():
    result = tempered(ss.EdwardsAnderson(ss.cubic(2), samples=2, seed=1))
    assert summarize(result).verdict.startswith("in equilibrium")
    result.energy[:, 0, :, 0] = -20
    assert summarize(result).verdict.startswith("in equilibrium")
    result.energy[:900, 0, :, 0] = -16  # constant at last, after a fall
    assert summarize(result).verdict.startswith("undecided: of energy at the lowest temperature")


def test_rare_events_are_told_from_a_change_of_state():
    series = np.full((64, 3), -2.0)
    series[[3, 20, 41], 0] += 0.1  # excitations
    series[50:, 1] += 0.1  # another state
    series[:, 2] += np.arange(64) % 3
    assert at_rest(series).tolist() == [True, False, False]
    assert not at_rest(series[:4]).any()


@pytest.mark.parametrize("copies", [2, 4])
@pytest.mark.parametrize("tau", [1, 7, 15])
def test_copies_in_equilibrium_rarely_disagree(tau, copies):
    """Samples that have 0.05 each, and those of ten together that share it."""
    runs = 200
    series = ar1(rho_of(tau), (1000, runs, copies), seed=tau + copies)
    alone = copies_disagree(series, runs * FALSE_ALARMS).mean()
    assert alone <= FALSE_ALARMS + 4 * np.sqrt(FALSE_ALARMS * (1 - FALSE_ALARMS) / runs)
    together = np.mean([copies_disagree(series[:, k : k + 10]).any() for k in range(0, runs, 10)])
    assert together <= FALSE_ALARMS + 4 * np.sqrt(FALSE_ALARMS * (1 - FALSE_ALARMS) * 10 / runs)
    apart = series[:, :50] + 2 * (np.arange(copies) == 0)
    assert copies_disagree(apart).mean() > {1: 0.99, 7: 0.9, 15: 0.3}[tau]


def test_copies_that_do_not_move():
    series = ar1(0.5, (1000, 4, 2), seed=1)
    series[:, 0] = 0.1
    series[:, 1] = 0.1, 0.3
    series[:, 2, 1] = 9
    np.testing.assert_array_equal(copies_disagree(series), [False, True, True, False])


def test_analyze_says_the_verdict(result, tmp_path, capsys, monkeypatch):
    result.round_trips[:] = 0
    file = result.save(tmp_path / "run.h5")
    expected = summarize(result)
    assert f"Verdict {expected.verdict}" in " ".join(run(capsys, monkeypatch, "analyze", file).out.split())
    found = json.loads(run(capsys, monkeypatch, "analyze", file, "--json").out)
    assert (found["verdict"], found["problems"]) == (expected.verdict, list(expected.problems))
