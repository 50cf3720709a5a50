"""Exponential autocorrelation times of walks along the ladder, slow samples, and the barrier of a ladder."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from harness import run
from made_up import tempered
from processes import ar1, generator
from walkers import relaxation, walk

import spinsim as ss
from spinsim.analysis.exponential import exponential_time
from spinsim.analysis.figures import walks_figure
from spinsim.analysis.summary import summarize
from spinsim.errors import InputError
from spinsim.jobs.ladder.report import walk_rows

TAU = 40.0


def telegraph(shape: tuple[int, ...], seed: int) -> np.ndarray:
    """Signs whose autocorrelation is exp(-t / TAU)."""
    turns = generator(seed).random(shape) < (1 - np.exp(-1 / TAU)) / 2
    turns[0] = generator(seed + 1).random(shape[1:]) < 0.5
    return 1.0 - 2 * (np.cumsum(turns, axis=0) % 2)


def gaussian(shape: tuple[int, ...], seed: int) -> np.ndarray:
    return ar1(np.exp(-1 / TAU), shape, seed)


@pytest.mark.parametrize("process", [telegraph, gaussian])
@pytest.mark.parametrize("block", [1, 8])
def test_the_error_of_the_exponential_time_is_calibrated(process, block: int) -> None:
    """The scatter over 200 seeds, of chains of the known time and of their averages over blocks."""
    series = process((1600, 200, 16), seed=block).reshape(1600 // block, block, 200, 16).mean(axis=1)
    time, error = np.array([exponential_time(series[:, k], 16) for k in range(200)]).T * block
    known = np.isfinite(time)
    assert known.mean() > 0.95
    scores = ((time - TAU) / error)[known]
    assert 0.85 <= scores.std() <= 1.2
    assert abs(np.median(time[known]) / TAU - 1) < 4 * 1.25 * np.median(error[known]) / TAU / np.sqrt(200)


def test_a_slow_process_is_found_beside_a_faster_one() -> None:
    """The integrated time is 0.3 of the slow time and 0.7 of the fast one."""
    fast = ar1(np.exp(-10 / TAU), (8000, 20, 40), seed=1)
    mixed = np.sqrt(0.3) * gaussian((8000, 20, 40), seed=2) + np.sqrt(0.7) * fast
    time, error = np.array([exponential_time(mixed[:, k], 40) for k in range(20)]).T
    assert abs((time - TAU) / error).max() <= 4
    assert abs(np.median(time) / TAU - 1) < 0.15


def test_noise_has_no_exponential_time() -> None:
    assert np.isnan(exponential_time(generator(1).standard_normal((400, 8)), 8)[0])
    assert np.isnan(exponential_time(ar1(np.exp(-1 / TAU), (30, 2), seed=1), 2)).all()
    assert np.isnan(exponential_time(ar1(-0.9, (400, 8), seed=1), 8)[0])


def walked(samples: int, rounds: int, rates: float = 0.5) -> ss.TemperResult:
    """A made-up run of eight temperatures whose replicas walk with known rates."""
    made = walk((1, samples, 2, 8), rounds, rounds // 4, 1, rates, 0.0, seed=3)
    model = ss.EdwardsAnderson(ss.cubic(2), samples=samples, seed=1) if samples > 1 else ss.Ising(ss.square(4))
    result = tempered(model, 2, steps=rounds, ladder=np.linspace(1, 2, 8))
    attempts = np.full((samples, 7), rounds)  # of two copies, each pair in every other round
    own = {"attempts": attempts, "accepts": (rates * attempts).astype(np.int64), "round_trips": made.round_trips[0]}
    return replace(result, permutation=made.permutation[:, 0], **own)


def test_the_walk_of_each_sample_has_its_exponential_time() -> None:
    result = walked(12, 2000)
    found = result.equilibrium()
    expected = relaxation(8, 0.5)  # in the limit of many temperatures, whose discrete steps are left out
    every = int(result.sweep[1] - result.sweep[0])
    assert found.tau_exp.shape == found.tau_exp_error.shape == found.span.shape == (12,)
    assert abs(found.tau_exp.mean() / every / expected - 1) < 0.15
    assert 0.5 < found.tau_exp.std() / found.tau_exp_error.mean() < 1.5
    assert found.needed == 10
    assert found.slow.tolist() == []
    assert found.sweeps.tolist() == [2000 * every] * 12


def test_slow_samples_are_named() -> None:
    result = walked(12, 2000)
    result.permutation[:, [2, 5]] = np.repeat(result.permutation[:100, [2, 5]], 20, axis=0)  # walks 20 times slower
    found = result.equilibrium()
    assert found.slow.tolist() == [2, 5]
    assert found.span[[2, 5]].max() < 10 < np.delete(found.span, [2, 5]).min()
    assert "replicas in 2 of 12 samples walked too little" in summarize(result).verdict
    rows = walk_rows(result)
    words = " ".join(" ".join(line for row in rows for line in row.lines).split())
    assert "slow samples, without 10 such times and 2 round trips a replica: 2 and 5" in words
    assert {name: value for row in rows for name, value in row.numbers.items()}["slow_samples"].tolist() == [2, 5]
    figure = walks_figure(result)
    assert sum(patch.get_height() for patch in figure.axes[0].patches) == 12
    assert "2 of 12 samples are slow" in figure.caption


def test_the_barrier_predicts_round_trips() -> None:
    """Replicas that exchange with a given probability meet the assumption of the formula."""
    result = walked(12, 4000)
    found = result.barrier()
    np.testing.assert_allclose(found.rejection, 0.5, atol=1e-3)
    np.testing.assert_allclose(found.total, 3.5, atol=1e-2)
    np.testing.assert_allclose(found.best_number, 8, atol=1e-2)
    np.testing.assert_allclose(found.local, found.rejection / -np.diff(1 / result.temperature))
    np.testing.assert_allclose(found.predicted, 1 / (2 + 2 * 7), rtol=1e-2)
    of_samples = result.round_trips.sum(axis=1) / 2 / 4000
    error = of_samples.std(ddof=1) / np.sqrt(12)
    np.testing.assert_allclose(found.observed, of_samples.mean(), rtol=1e-12)
    assert abs(found.observed - found.predicted) < 4 * error
    result.accepts[:, 3] = 0.2 * result.attempts[:, 3]
    assert result.barrier().widest == 3


def test_reports_have_them(capsys, monkeypatch, tmp_path) -> None:
    result = ss.temper(ss.EdwardsAnderson(ss.square(4), samples=3, seed=1), "1:3:5", sweeps=2000, seed=1)
    file = result.save(tmp_path / "run.h5")
    for command in ("analyze", "show"):
        words = " ".join(run(capsys, monkeypatch, command, file).out.split())
        assert f"Barrier {result.barrier().total:.4g}, the sum of rejection rates" in words
        assert "Walks along the ladder with tau_exp =" in words
    numbers = json.loads(run(capsys, monkeypatch, "analyze", file, "--json").out)
    np.testing.assert_allclose(numbers["tau_exp"], result.equilibrium().tau_exp)
    np.testing.assert_allclose(numbers["local_barrier"], result.barrier().local)


def test_runs_without_a_ladder_are_refused() -> None:
    alone = ss.temper(ss.Ising(ss.square(4)), [2.0], sweeps=200, seed=1)
    with pytest.raises(InputError, match="a single temperature"):
        alone.equilibrium()
    with pytest.raises(InputError, match="no exchange"):
        alone.barrier()


def test_exchanges_alternate_between_even_and_odd_pairs() -> None:
    """Attempts of the engine: with five temperatures, pairs 0 and 2 in a round and pairs 1 and 3 in the next."""
    result = ss.temper(ss.Ising(ss.square(4)), "1:3:5", sweeps=7, thermalize=0, measure_every=7, seed=1)
    assert result.attempts.tolist() == [[8, 6, 8, 6]]  # two copies, four even rounds and three odd ones
