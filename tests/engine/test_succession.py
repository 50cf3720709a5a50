"""Measurements of small problems that are counted, compared and added up together, and one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import spinsim as ss
from spinsim.engine import Dynamics, create_engine
from spinsim.engine import cpu as engine_cpu
from spinsim.sampling.tempering import TemperFrame, Times, tempering

RUNS: dict[str, tuple[ss.Ising, dict[str, Any]]] = {
    "chain": (ss.Ising(ss.square(8)), {"temperatures": [2.27], "replicas": 1, "measure_every": 1, "sweeps": 700}),
    "glasses": (
        ss.EdwardsAnderson(ss.cubic(4), samples=3, seed=5),
        {"temperatures": [0.9, 1.3, 1.7], "replicas": 4, "measure_every": 2, "sweeps": 400},
    ),
    "without correlations": (
        ss.EdwardsAnderson(ss.square(6), samples=2, seed=6),
        {"temperatures": [0.7, 1.5], "replicas": 2, "correlations": False, "sweeps": 900, "series_limit": 0.01},
    ),
    "in a field": (
        ss.Ising(ss.square(6), 1.0, 0.5),
        {"temperatures": [1.0, 2.0], "replicas": 2, "houdayer": "50", "sweeps": 300},
    ),
    "graph": (
        ss.Ising(ss.Graph(9, [[k, (k + s) % 9] for k in range(9) for s in (1, 2)]), -1.0),
        {"temperatures": [0.8, 1.1], "replicas": 3, "save_configurations": 5, "sweeps": 200},
    ),
}


@pytest.mark.parametrize("name", RUNS)
def test_all_of_a_record_is_what_single_measurements_give(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model, how = RUNS[name]
    how = {"thermalize": 20, "device": "cpu", "threads": 1, "seed": 4} | how
    together = ss.temper(model, **how)
    monkeypatch.setattr(engine_cpu, "SMALL_BYTES", 0)
    one_by_one = ss.temper(model, **how)
    names = dict(together.record.paths())
    assert names.keys() == dict(one_by_one.record.paths()).keys()
    for path, array in one_by_one.record.paths():
        np.testing.assert_array_equal(names[path].values, array.values, path)


def test_frames_hold_what_they_were_given() -> None:
    """Without sums that go on, whoever takes frames may keep them."""
    model = ss.EdwardsAnderson(ss.cubic(4), samples=2, seed=5)

    def frames() -> list[TemperFrame]:
        engine = create_engine(model, 4, Dynamics(seed=3), "cpu", 1)
        found = tempering(engine, [0.9, 1.4], Times(10, 120, 2), copies=2)
        return [frame for frame in found if frame is not None]

    kept = frames()
    for step, (frame, again) in enumerate(zip(kept, _fresh(frames()), strict=True)):
        assert frame.step == step
        for field, expected in again.items():
            np.testing.assert_array_equal(getattr(frame, field), expected, field)
        spins = np.stack([frame.spins(1, replica) for replica in range(4)], axis=-1)
        energy = model.energy(np.stack([spins, spins]))[1]
        np.testing.assert_array_equal(energy, frame.measurement.replica_energy[1])


def _fresh(frames: list[TemperFrame]) -> list[dict[str, np.ndarray]]:
    return [{name: getattr(f, name).copy() for name in ("energy", "overlap", "holder")} for f in frames]


def test_measurements_that_are_not_added_up_keep_their_numbers() -> None:
    """Of an engine alone, whoever asks for a measurement has it for himself, whatever is asked for later."""
    model = RUNS["glasses"][0]
    engine = create_engine(model, 6, Dynamics(seed=3), "cpu", 1)
    engine.set_ladder(np.array([1.2, 0.8, 0.5]), 2)
    first = [later().energy for later in engine.temper_measured(4, 1, 1, fetched=[False] * 4) if later is not None]
    kept = [energy.copy() for energy in first]
    assert len(first) == 4
    for _ in range(3):
        engine.temper_measured(4, 1, 1)
    for energy, before in zip(first, kept, strict=True):
        np.testing.assert_array_equal(energy, before)
