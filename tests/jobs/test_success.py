"""What the anneals of a search say of a target: success probabilities and times to solution."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from harness import run

import spinsim as ss
from spinsim.analysis.time_to_solution import side_by_side, success_probability, time_to_solution
from spinsim.jobs.anneal.report import success_of

MODEL = ss.Ising(ss.chain(4))


def search(energy: list[list[float]], sweeps: list[int], seconds: list[float], target: float | None) -> SimpleNamespace:
    """The anneals of a search by hand, of 10 sweeps each; those of more sweeps are of as many."""
    lowest = np.array(energy)[:, None]
    done = np.array(sweeps)
    planned = np.maximum(done, 10)

    def hits(model: ss.Ising, wanted: float | None = None) -> np.ndarray:
        return (lowest <= (target if wanted is None else wanted)).sum(axis=2)

    return SimpleNamespace(
        energy=lowest, sweeps=done, planned=planned, seconds=np.array(seconds), hits=hits, done=len(sweeps),
        target=None if target is None else np.array([target]), whole=done == planned,
        is_met=target is not None and bool((lowest <= target).any()),
    )  # fmt: skip


def test_whole_anneals_count_their_replicas() -> None:
    found = success_of(MODEL, search([[-4, 0, 0], [0, 0, 0], [-4, -4, 0]], [10] * 3, [1.0, 2.0, 3.0], None), -4.0)
    assert found is not None
    assert found.of_replica == success_probability(3, 9)
    assert found.of_anneal == side_by_side(found.of_replica, 3)
    assert found.tts == time_to_solution([1.0, 2.0, 3.0], found.of_anneal)
    assert "of 3 anneals of 10 sweeps: a replica meets it with p = 0.333 [" in found.line


def test_a_search_that_ended_with_its_target_tells_no_probability() -> None:
    """Two failures and a success, whose time is not that of an anneal."""
    found = success_of(MODEL, search([[0, 0], [0, 0], [-4, 0]], [10, 10, 3], [1.0, 1.0, 0.2], -4.0))
    assert found is not None
    assert found.of_replica is None
    assert found.of_anneal is None
    assert found.anneals == 3
    assert "stopped at this first success" in found.line
    assert found.numbers["time_to_solution"] is None
    json.dumps(found.numbers, allow_nan=False)


@pytest.mark.parametrize("target", [-2.0, -6.0])
def test_nor_does_it_of_another_target(target: float) -> None:
    found = success_of(MODEL, search([[0, -2], [0, 0], [-4, 0]], [10, 10, 3], [1.0, 2.0, 0.2], -4.0), target)
    assert found is not None
    assert (found.anneals, found.of_replica, found.of_anneal, found.tts, found.seconds) == (3, None, None, None, 1.5)


@pytest.mark.parametrize("last", [13, 20])
def test_a_growing_search_that_ended_with_its_target_says_nothing(last: int) -> None:
    """Its last anneal is the only one of its length, whether it went on to its end or not."""
    grown = search([[0, 0], [-4, 0]], [10, last], [1.0, 0.2], -4.0)
    grown.planned[-1], grown.whole[-1] = 20, last == 20
    assert success_of(MODEL, grown) is None


def test_an_anneal_that_time_ended_is_no_trial() -> None:
    found = success_of(MODEL, search([[0, 0], [0, 0]], [10, 4], [1.0, 0.3], -4.0))
    assert found is not None
    assert found.anneals == 1
    assert found.line.endswith("time to solution at 99 %: > " + found.line.rpartition("> ")[2])


def test_nothing_is_said_without_a_target_or_of_several_samples() -> None:
    anneals = search([[0, 0]], [10], [1.0], None)
    assert success_of(MODEL, anneals) is None
    assert success_of(MODEL, None, -4.0) is None
    several = ss.EdwardsAnderson(ss.chain(6), samples=2)
    assert success_of(several, anneals, -4.0) is None


@pytest.mark.parametrize("target", [-8.0, -6.0])
def test_anneals_of_a_run(target: float) -> None:
    """A ring of eight spins: the lowest replicas of whole anneals are those that hits count."""
    result = ss.anneal(ss.Ising(ss.chain(8)), [1.0, 0.5], 2, 20, anneals=3)
    found = success_of(result.model, result.anneals, target)
    assert found is not None
    assert found.of_replica is not None
    assert result.anneals is not None
    assert found.of_replica.value == (result.anneals.energy <= target).mean()
    assert replace(found, anneals=3) == found


def test_show_says_it_of_a_run_with_a_target(tmp_path: Path, capsys, monkeypatch) -> None:
    path = tmp_path / "run.h5"
    model = ss.Ising(ss.chain(5), couplings=-1.0)  # no state satisfies all of its bonds
    ss.anneal(model, [1.0, 0.5], 2, 20, target=-5.0, anneals=3, out=path)
    outcome = run(capsys, monkeypatch, "show", path)
    assert "\nSuccess        of " in outcome.out
    found = json.loads(run(capsys, monkeypatch, "show", path, "--json").out)["success"]
    assert found["sweeps"] == 4
    assert found["replicas"] == 20
    assert found["p_of_anneal"][0] == 0
