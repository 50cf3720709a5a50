"""A user's own move between the sweeps of an anneal: exact averages, and the same bits however it is carried out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from enumeration import Thermal
from reversal import RowReversal
from several import on_cpus

import spinsim as ss
from spinsim.engine.split import shares

MODELS = {
    "replica-packed": lambda: ss.EdwardsAnderson(ss.square(6), samples=2, seed=3),
    "unpacked": lambda: ss.EdwardsAnderson(ss.square(4), samples=2, couplings="gaussian", seed=3),
    "site-packed": lambda: ss.Ising(ss.square(256, 4)),
}
HOW = {"sweeps": 7, "replicas": 70, "seed": 5, "device": "cpu"}


def run(model: ss.Ising, every: int = 3, **settings) -> ss.AnnealResult:
    return ss.anneal(model, [2.2, 1.4, 0.9], moves=[(RowReversal(), every)], **HOW | settings)


def check_same(one: ss.AnnealResult, other: ss.AnnealResult) -> None:
    for name in ("energy", "magnetization", "best_energy", "best_spins"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


@pytest.mark.parametrize("field", [None, [0.3, 0.3, 0.3]])
def test_against_enumeration(field: list[float] | None) -> None:
    model = ss.EdwardsAnderson(ss.square(3), seed=2)
    result = run(model, 1, sweeps=60, replicas=6000, field=field)
    assert not np.array_equal(run(model, 3, field=field).energy, ss.anneal(model, [2.2, 1.4, 0.9], **HOW).energy)
    for step, temperature in enumerate(result.temperature):
        exact = Thermal(model if field is None else model.in_field(0.3), temperature)
        for values, value in (
            (result.energy[step, 0] / model.sites, exact.mean(exact.energy)),
            ((result.magnetization[step, 0] / model.sites) ** 2, exact.mean(exact.m**2)),
        ):
            assert abs(values.mean() - value) <= 4 * values.std() / np.sqrt(values.size)


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=getattr(pytest.mark, "system" if name == "unpacked" else "emulated")) for name in MODELS],
)
def test_emulated(name: str, emulated: None) -> None:
    model = MODELS[name]()
    check_same(run(model), run(model, device="cuda"))


def test_split(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shares, "SHORTEST_CALL", 0)
    model = ss.EdwardsAnderson(ss.square(4), samples=4, seed=3)
    whole = run(model)
    on_cpus(monkeypatch, 2)
    assert ss.create_engine(model, 70, ss.Dynamics(), "cpu", slabs=False).devices == 2
    check_same(whole, run(model))


def test_moves_change_no_schedule_and_count_sweeps_over_its_steps() -> None:
    """Two steps of 6 and 3 sweeps have the moves of one of 9, as the number of sweeps since the start says when."""
    model = MODELS["replica-packed"]()
    one = ss.anneal(model, [1.4], moves=[(RowReversal(), 3)], **HOW | {"sweeps": 6})
    two = ss.anneal(model, [1.4, 1.4], moves=[(RowReversal(), 3)], **HOW | {"sweeps": 3})
    assert np.array_equal(one.energy[-1], two.energy[-1])


def test_searches_populations_and_files(tmp_path: Path) -> None:
    model, path = MODELS["replica-packed"](), tmp_path / "a.h5"
    several = run(model, anneals=2)
    assert np.array_equal(several.energy, run(model).energy)
    assert several.anneals.done == 2
    assert len(run(model, populations=1).energy) == 3
    check_same(several, run(model, anneals=2, out=path))
    with pytest.raises(ss.InputError, match="row-reversal:3"):
        ss.resume(path, anneals=3)
    with pytest.raises(ss.InputError, match="row-reversal:3"):
        ss.resume(path, anneals=3, moves=[(RowReversal(), 2)])
    check_same(run(model, anneals=3), ss.resume(path, anneals=3, moves=[(RowReversal(), 3)]))


def test_refused() -> None:
    model = MODELS["unpacked"]()
    for moves in ([(RowReversal(), 0)], [(RowReversal(), 2), (RowReversal(), 4)], "row-reversal:2"):
        with pytest.raises(ss.InputError, match="row-reversal"):
            ss.anneal(model, [2.0], moves=moves)
    with pytest.raises(ss.InputError, match=r"moves .* do not go with quantum"):
        ss.anneal(model, quantum=True, moves=[(RowReversal(), 2)])
