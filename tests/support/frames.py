"""Frames of tempering in portions and with pauses, and measurements that have no room."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import spinsim as ss
from spinsim.engine import Dynamics, Engine, create_engine
from spinsim.engine.measuring.correlations import OVERLAPS_ONLY
from spinsim.engine.protocols import LadderMeasurement
from spinsim.model.ising import Ising

LADDER = np.geomspace(0.3, 3.0, 12)


def state(engine: Engine) -> list[np.ndarray]:
    spins = [engine.spins(k, r) for k in range(engine.model.samples) for r in range(engine.replicas)]
    return [*spins, *engine.begin_exchange()(), engine.begin_measurement(OVERLAPS_ONLY)().correlations.overlap]


def check_frames(
    monkeypatch: pytest.MonkeyPatch, device: str, model: Ising, times: ss.sampling.Times, sweeps: list[int]
) -> None:
    """Frames are those of an engine asked one by one, whatever the sweeps of a portion, and after each pause."""
    from spinsim.sampling import portions

    ladder = np.array([0.9, 1.3, 2.0])

    def begin() -> Engine:
        return create_engine(model, 6, Dynamics(seed=8), device)

    slow = create_engine(model, 6, Dynamics(seed=8), "cpu")
    slow.set_ladder(1 / ladder, 2)
    slow.temper(times.thermalize // times.swap_every, times.swap_every)
    expected = []
    for _ in range(times.measurements):
        slow.temper(times.measure_every // times.swap_every, times.swap_every)
        expected.append(numbers(slow.begin_measurement()()))
    for portion in sweeps:
        monkeypatch.setitem(portions.UPDATES, device, portion * model.sites * model.samples * 6)
        found, pauses, engine = [], [], begin()
        answers = iter([False, True, False, True])
        for frame in ss.sampling.tempering(engine, ladder, times, 2, pause=partial(next, answers, False)):
            if frame is None:
                pauses.append((len(found), engine.snapshot()))
            else:
                assert (frame.step, frame.sweep) == (len(found), (len(found) + 1) * times.measure_every)
                found.append(numbers(frame))
        for first, saved in pauses:
            resumed = begin()
            frames = ss.sampling.tempering(resumed, ladder, times, 2)
            resumed.restore(saved)
            found[first:] = [numbers(frame) for frame in frames if frame is not None]
            np.testing.assert_equal(found, expected)
        np.testing.assert_equal(engine.snapshot(), slow.snapshot())


def numbers(m: ss.sampling.TemperFrame | LadderMeasurement) -> list[np.ndarray]:
    correlations = m.correlations if isinstance(m, LadderMeasurement) else (m.overlap, m.link_overlap)
    return [m.energy, m.magnetization, m.holder, *m.exchange, *correlations[:2], m.spins(0, 4)]


def check_room(engine: Engine) -> None:
    with pytest.raises(ss.InputError, match=r"keeping the configurations of measurements under way needs .* are "):
        ss.sampling.tempering(engine, [0.9, 1.3, 2.0], ss.sampling.Times(100, 100), copies=2)
    assert engine.half_sweep == 0
