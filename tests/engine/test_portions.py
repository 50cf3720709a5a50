"""How many sweeps come between two reports."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from spinsim.sampling import portions


def engine_of(sites: int) -> Any:
    model = SimpleNamespace(sites=sites, samples=1)
    return SimpleNamespace(model=model, replicas=100, device_name="cpu", devices=1)


@pytest.mark.parametrize("unit", [1, 3])
def test_portions_grow_while_they_are_short(monkeypatch, unit: int) -> None:
    now = 0.0
    monkeypatch.setattr(portions, "seconds_without_compiling", lambda: now)
    found = portions.Portions(engine_of(1000), unit)
    most = portions.sweeps_a_portion(engine_of(1000), unit)
    assert unit <= found.sweeps < most / 500
    for took in [0.01] * 12 + [0.2, 0.2]:
        assert found.sweeps % unit == 0
        found.begin()
        now += took
        found.end()
    assert found.sweeps == most
    for _ in range(20):
        found.begin()
        now += 1.0
        found.end()
    assert found.sweeps == unit
