"""The benchmarks run and print a line for each case; what they measure is no test."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from harness import one_sentence, run

import spinsim as ss
from spinsim.benchmark import Case, jobs, scaling, sweeps

DATA = Path(__file__).parents[1] / "data"


@pytest.mark.parametrize(
    ("what", "cases", "case"),
    [
        ("metropolis", sweeps.SWEEPS, Case("small one", lambda: ss.Ising(ss.square(4)), (2.3, 2.3, 3), 1, "of others")),
        ("temper", sweeps.TEMPERING, Case("small one", lambda: ss.Ising(ss.square(4)), (1.5, 3.0, 4), 2, "of others")),
    ],
)
def test_a_line_for_each_case(capsys, monkeypatch, what: str, cases: dict[str, object], case: object) -> None:
    monkeypatch.setattr("spinsim.benchmark.SECONDS", 1e-3)
    monkeypatch.setitem(cases, "cpu", (case,) * 2)
    outcome = run(capsys, monkeypatch, "bench", what, "--device", "cpu", "--repeats", 3)
    assert outcome.status == 0
    assert outcome.out.count("small one") == 2
    assert outcome.out.rstrip().endswith("of others")
    told = json.loads(run(capsys, monkeypatch, "bench", what, "--device", "cpu", "--repeats", 3, "--json").out)
    assert told["command"] == f"spinsim bench {what} --device cpu --repeats 3"
    assert [row["case"] for row in told["rows"]] == ["small one"] * 2
    assert all(row["slowest"] <= row["median"] <= row["fastest"] for row in told["rows"])


def test_whole_commands_beside_their_engine(capsys, monkeypatch) -> None:
    monkeypatch.setattr("spinsim.benchmark.SECONDS", 1e-3)
    case = jobs.JobCase("small one", "temper", 200, {"size": 4, "temperatures": "1.5:3:4", "measure_every": 10})
    monkeypatch.setitem(jobs.CASES, "cpu", (case,))
    outcome = run(capsys, monkeypatch, "bench", "jobs", "--device", "cpu", "--repeats", 1)
    assert outcome.status == 0
    *name, engine, command, share, seconds, megabytes = outcome.out.splitlines()[-1].split()
    assert name == ["small", "one"]
    rounding = 0.06  # of a printed decimal
    assert float(share.rstrip("%")) == pytest.approx(100 * float(command) / float(engine), rel=0.02, abs=rounding)
    assert float(seconds) > 0
    assert float(megabytes) > 0


def test_numbers_of_devices_side_by_side(capsys, monkeypatch) -> None:
    """One device alone is the first line of each case; tests/parallel has several ranks."""
    monkeypatch.setattr("spinsim.benchmark.SECONDS", 1e-3)
    cases = (
        scaling.SweepCase("sweeps", "weak", lambda n: ss.Ising(ss.square(4, 4 * n)), 3, (2.3,)),
        scaling.SweepCase("a ladder", "strong", lambda _: ss.Ising(ss.square(4)), 4, (1.5, 3.0), 2),
        scaling.ProductCase("products", "strong", lambda _: 6),
    )
    monkeypatch.setitem(scaling.CASES, "cpu", cases)
    outcome = run(capsys, monkeypatch, "bench", "scaling", "--device", "cpu", "--repeats", 3)
    assert outcome.status == 0
    lines = outcome.out.splitlines()[-3:]
    assert [line.split()[0] for line in lines] == ["sweeps", "a", "products"]
    assert all(line.endswith("1.000     100.0%") for line in lines)


def test_instances_are_solved(capsys, monkeypatch) -> None:
    few = ("--steps", 3, "--sweeps", 4, "--replicas", 64, "--device", "cpu", "--threads", 1, "--repeats", 2)
    outcome = run(capsys, monkeypatch, "bench", "solve", DATA / "pm1s_100.0.mc", *few)
    assert outcome.status == 0
    assert "pm1s_100.0: 100 sites, target 127" in outcome.out
    assert "2 anneals of 12 sweeps, 64 replicas" in outcome.out
    assert "time to solution at 99 %" in outcome.out
    assert "anneals until it is met: 2 of 2, median " in outcome.out
    assert "tempering until it is met: 2 of 2, median " in outcome.out


def test_an_instance_of_unknown_solution_needs_a_target(capsys, monkeypatch, tmp_path: Path) -> None:
    path = tmp_path / "triangle.mc"
    path.write_text("3 3\n1 2 1\n2 3 1\n1 3 1\n")
    outcome = run(capsys, monkeypatch, "bench", "solve", path, "--device", "cpu")
    assert "give --target" in one_sentence(outcome)
