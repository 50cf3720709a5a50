"""The benchmarks run and print a line for each case; what they measure is no test."""

from __future__ import annotations

import pytest
from harness import run

import spinsim as ss
from spinsim.benchmark import metropolis, scaling, temper


@pytest.mark.parametrize(
    ("what", "case"),
    [
        ("metropolis", metropolis.Case("small one", lambda: ss.Ising(ss.square(4)), 2.3, 3, "of others")),
        ("temper", temper.TemperCase("small one", lambda: ss.Ising(ss.square(4)), (1.5, 3.0, 4), 2, "of others")),
    ],
)
def test_a_line_for_each_case(capsys, monkeypatch, what: str, case: object) -> None:
    monkeypatch.setattr("spinsim.benchmark.timing.SECONDS", 1e-3)
    monkeypatch.setattr(f"spinsim.benchmark.{what}.CPU_CASES", (case,) * 2)
    outcome = run(capsys, monkeypatch, "bench", what, "--device", "cpu", "--repeats", 3)
    assert outcome.status == 0
    assert outcome.out.count("small one") == 2
    assert outcome.out.rstrip().endswith("of others")


def test_numbers_of_devices_side_by_side(capsys, monkeypatch) -> None:
    """One device alone is the first line of each case; tests/mesh has several ranks."""
    monkeypatch.setattr("spinsim.benchmark.scaling.SECONDS", 1e-3)
    monkeypatch.setattr("spinsim.benchmark.timing.SECONDS", 1e-3)
    cases = (
        scaling.SweepCase("sweeps", "weak", lambda n: ss.Ising(ss.square(4, 4 * n)), 3, (2.3,)),
        scaling.SweepCase("a ladder", "strong", lambda _: ss.Ising(ss.square(4)), 4, (1.5, 3.0), 2),
        scaling.ProductCase("products", "strong", lambda _: 6),
    )
    monkeypatch.setattr("spinsim.benchmark.scaling.CPU_CASES", cases)
    outcome = run(capsys, monkeypatch, "bench", "scaling", "--device", "cpu", "--repeats", 3)
    assert outcome.status == 0
    lines = outcome.out.splitlines()[-3:]
    assert [line.split()[0] for line in lines] == ["sweeps", "a", "products"]
    assert all(line.endswith("1.000     100.0%") for line in lines)
