"""A user's own move in tempering: exact averages, and the same bits however the run is carried out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from enumeration import Thermal
from harness import contents
from reversal import RowReversal
from several import on_cpus

import spinsim as ss
from spinsim.analysis.autocorrelation import integrated_time
from spinsim.engine.split import shares

LADDER = np.array([0.9, 1.4, 2.2])
MODEL = {
    "replica-packed": lambda: ss.EdwardsAnderson(ss.square(6), samples=2, seed=3),
    "unpacked": lambda: ss.EdwardsAnderson(ss.square(4), samples=2, couplings="gaussian", seed=3),
    "site-packed": lambda: ss.Ising(ss.square(256, 4)),
    "field": lambda: ss.EdwardsAnderson(ss.square(4), samples=3, seed=3, field=0.3),
}


def run(model: ss.Ising, *, every: int = 2, **settings) -> ss.TemperResult:
    given = {"thermalize": 4, "sweeps": 20, "measure_every": 2, "seed": 5, "device": "cpu"} | settings
    return ss.temper(model, LADDER, moves=[(RowReversal(), every)], **given)


def check_same(one: ss.TemperResult, other: ss.TemperResult) -> None:
    for name in ("energy", "magnetization", "overlap", "permutation"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


@pytest.mark.parametrize("field", [0.0, 0.3])
def test_against_enumeration(field: float) -> None:
    model = ss.EdwardsAnderson(ss.square(3), seed=2, field=field)
    result = run(model, every=1, thermalize=100, sweeps=1000, replicas=40)
    plain = ss.temper(model, LADDER, thermalize=4, sweeps=20, measure_every=2, seed=5, device="cpu", replicas=8)
    assert not np.array_equal(run(model, replicas=8).energy, plain.energy)
    for t, temperature in enumerate(LADDER):
        exact = Thermal(model, temperature)
        for series, value in (
            (result.energy[:, 0, :, t] / model.sites, exact.mean(exact.energy)),
            ((result.magnetization[:, 0, :, t] / model.sites) ** 2, exact.mean(exact.m**2)),
        ):
            found = integrated_time(series, chain_axis=1)
            assert abs(found.mean - value) <= 4 * found.mean_error


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=getattr(pytest.mark, "emulated" if name == "field" else "system")) for name in MODEL],
)
def test_emulated(name: str, emulated: None) -> None:
    model = MODEL[name]()
    check_same(run(model), run(model, device="cuda"))


@pytest.mark.gpu
@pytest.mark.parametrize("name", MODEL)
def test_gpu(name: str) -> None:
    model = MODEL[name]()
    check_same(run(model), run(model, device="cuda"))


@pytest.mark.parametrize(("samples", "replicas"), [(4, 2), (1, 44)], ids=["samples", "replicas"])
def test_split(monkeypatch: pytest.MonkeyPatch, samples: int, replicas: int) -> None:
    monkeypatch.setattr(shares, "SHORTEST_CALL", 0)
    model = ss.EdwardsAnderson(ss.square(4), samples=samples, seed=3)
    whole = run(model, replicas=replicas)
    on_cpus(monkeypatch, 2)
    assert ss.create_engine(model, 3 * replicas, ss.Dynamics(), "cpu", slabs=False).devices == 2
    check_same(whole, run(model, replicas=replicas))


def test_resumed(tmp_path: Path) -> None:
    model, short, whole = MODEL["replica-packed"](), tmp_path / "short.h5", tmp_path / "whole.h5"
    run(model, every=3, sweeps=10, out=short)
    with pytest.raises(ss.InputError, match="row-reversal:3"):
        ss.resume(short, sweeps=20)
    with pytest.raises(ss.InputError, match="row-reversal:3"):
        ss.resume(short, sweeps=20, moves=[(RowReversal(), 2)])
    check_same(ss.resume(short, sweeps=20, moves=[(RowReversal(), 3)]), run(model, every=3, out=whole))
    assert contents(short, "command", "history").keys() == contents(whole, "command", "history").keys()


def test_refused() -> None:
    for moves in ([(RowReversal(), 0)], [(RowReversal(), 2), (RowReversal(), 4)]):
        with pytest.raises(ss.InputError, match="row-reversal"):
            ss.temper(MODEL["field"](), LADDER, sweeps=20, moves=moves)
    with pytest.raises(ss.InputError, match="swap_every 2"):
        run(MODEL["field"](), every=3, swap_every=2)
