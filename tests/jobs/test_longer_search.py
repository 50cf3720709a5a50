"""Searches that ended without their target go on from there, with the bits of one search of the longer length."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from harness import one_sentence, run
from places import DATA

import spinsim as ss
from spinsim.sampling.portions import UPDATES

MODEL = ss.EdwardsAnderson(ss.square(6), samples=2, seed=4)
ANNEAL: dict[str, Any] = {"steps": 6, "sweeps": 3, "replicas": 5, "seed": 7}
LADDER: dict[str, Any] = {"temperatures": "0.3:2:4g", "thermalize": 20, "sweeps": 40, "replicas": 2, "seed": 3}
WHOLE = ("best_energy", "best_spins", "energy", "magnetization")
MISSED = "-1000,-1000"


class Clock:
    """Seconds that are portions of work, each of one round of sweeps."""

    now = 0.0

    def tick(self, updates: int) -> None:
        self.now += updates > 0


@pytest.fixture
def clock(monkeypatch) -> Clock:
    """The clock of searches, whose targets no state can have."""
    found = Clock()
    monkeypatch.setitem(UPDATES, "cpu", 1.0)
    monkeypatch.setattr("spinsim.run.search.seconds_without_compiling", lambda: found.now)
    monkeypatch.setattr("spinsim.model.targets._bound", lambda model, sample: -2000.0)
    return found


def same(one: Any, other: Any, *names: str) -> None:
    """Whether two records agree in all that is named."""
    for name in names:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), name)


@pytest.mark.parametrize("given", [41, np.int64(41), np.float64(41)])
def test_seconds_of_any_type_are_the_same_run(tmp_path: Path, clock: Clock, given: Any) -> None:
    how = ANNEAL | {"target": MISSED, "on_updates": clock.tick}
    ss.anneal(MODEL, time_limit=4, out=tmp_path / "a.h5", **how)
    longer = ss.resume(tmp_path / "a.h5", time_limit=given, on_updates=clock.tick)
    whole = ss.anneal(MODEL, time_limit=41, out=tmp_path / "b.h5", **how)
    assert longer.attributes["config_sha256"] == whole.attributes["config_sha256"]


def test_seconds_that_are_no_number_are_refused(tmp_path: Path, clock: Clock) -> None:
    how = ANNEAL | {"target": MISSED, "on_updates": clock.tick}
    ss.anneal(MODEL, time_limit=4, out=tmp_path / "a.h5", **how)
    with pytest.raises(ss.InputError, match="time_limit = 'long' has the wrong type"):
        ss.resume(tmp_path / "a.h5", time_limit="long")


@pytest.mark.parametrize("more", [{}, {"populations": 1, "best_states": True, "field": "1:0:6"}], ids=["plain", "more"])
@pytest.mark.parametrize("limit", [4, 6, 18, 22])
def test_anneals_go_on_where_the_time_was_up(tmp_path: Path, clock: Clock, limit: int, more: dict[str, Any]) -> None:
    """Within a step of the first anneal, at its end, at the end of the anneal, and within the second."""
    how = ANNEAL | more | {"target": MISSED, "on_updates": clock.tick}
    path = tmp_path / "a.h5"
    short = ss.anneal(MODEL, time_limit=limit, out=path, **how)
    longer = ss.resume(path, time_limit=41, on_updates=clock.tick)
    again = ss.anneal(MODEL, time_limit=50, out=path, **how)
    assert [found.anneals.elapsed for found in (short, longer, again)] == [limit, 41, 50]
    assert [found.anneals.done for found in (short, longer, again)] == [1 + (limit - 1) // 18, 3, 3]
    for found, seconds in ((longer, 41), (again, 50)):
        whole = ss.anneal(MODEL, time_limit=seconds, **how)
        same(found, whole, "energy", "magnetization", "temperature")
        same(found.anneals, whole.anneals, "sweeps", "planned", "seconds", "done", "elapsed", "met_after")
        lowest = np.minimum(whole.best_energy, short.best_energy)  # the shorter one looked where it was cut
        np.testing.assert_array_equal(found.best_energy, np.minimum(lowest, longer.best_energy))
        np.testing.assert_array_equal(MODEL.energy(found.best_spins), found.best_energy.min(axis=1))
        np.testing.assert_array_equal(found.anneals.energy.min(axis=0), found.best_energy)
        if limit in (6, 18):  # at the end of a step
            same(longer, whole, "best_energy", "best_spins")
        if more:
            same(found, whole, "family", "population_free_energy")
    assert ss.resume(path).attributes == again.attributes


def test_an_extension_that_is_interrupted_goes_on_by_any_of_its_commands(tmp_path: Path, clock: Clock) -> None:
    how, path = ANNEAL | {"anneals": 9, "on_updates": clock.tick}, tmp_path / "a.h5"

    def interrupt(updates: int) -> None:
        clock.tick(updates)
        if clock.now == begun + 13:
            raise KeyboardInterrupt

    for limit in (25, 60):
        ss.anneal(MODEL, time_limit=limit - 5, out=path, **how)
        begun = clock.now
        with pytest.raises(KeyboardInterrupt):
            ss.resume(path, time_limit=limit + 20, checkpoint_every=0, on_updates=interrupt)
        assert not ss.load(path).finished
        found = ss.anneal(MODEL, time_limit=limit - 5, out=path, **how)  # the first call, of the shorter search
        whole = ss.anneal(MODEL, time_limit=limit + 20, **how)
        same(found, whole, *WHOLE)
        same(found.anneals, whole.anneals, "energy", "sweeps", "seconds", "elapsed")


def test_more_anneals_than_there_was_room_for(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    ss.anneal(MODEL, anneals=2, out=path, **ANNEAL)
    longer, whole = ss.resume(path, anneals=5), ss.anneal(MODEL, anneals=5, **ANNEAL)
    same(longer, whole, *WHOLE)
    same(longer.anneals, whole.anneals, "energy", "sweeps", "planned", "done")
    with h5py.File(path) as file:
        assert file["anneals/energy"].shape == (5, 2, 5)
    assert ss.anneal(MODEL, anneals=2, out=path, **ANNEAL).anneals.done == 5  # the first call finds the longer run
    with pytest.raises(ss.InputError, match="anneals 3 are fewer than the 5"):
        ss.resume(path, anneals=3)


@pytest.mark.parametrize("limit", [13, 20, 95])
def test_a_tempering_search_goes_on_where_the_time_was_up(tmp_path: Path, clock: Clock, limit: int) -> None:
    """Between two looks, at one, and beyond the rows that are recorded."""
    how = LADDER | {"target": MISSED, "on_updates": clock.tick}
    path = tmp_path / "a.h5"
    short = ss.temper(MODEL, time_limit=limit, out=path, **how)
    longer = ss.resume(path, time_limit=127, on_updates=clock.tick)
    whole = ss.temper(MODEL, time_limit=127, **how)
    assert [found.search.done for found in (short, longer, whole)] == [limit // 10 * 10, 120, 120]
    same(longer, whole, *WHOLE, "sweep", "permutation", "attempts", "accepts", "round_trips")
    same(longer.search, whole.search, "elapsed", "met_after")


@pytest.mark.system
@pytest.mark.usefixtures("emulated")
def test_what_a_gpu_has_begun_goes_on_on_a_cpu(tmp_path: Path, clock: Clock, monkeypatch) -> None:
    monkeypatch.setitem(UPDATES, "cuda", 1.0)
    for call, own in ((ss.anneal, ANNEAL), (ss.temper, LADDER)):
        how, path = own | {"target": MISSED, "on_updates": clock.tick}, tmp_path / f"{call.__name__}.h5"
        call(MODEL, time_limit=22, out=path, device="cuda", **how)
        longer = ss.resume(path, time_limit=41, device="cpu", on_updates=clock.tick)
        same(longer, call(MODEL, time_limit=41, device="cpu", **how), *WHOLE)


@pytest.mark.parametrize("job", ["anneal", "temper"])
def test_the_commands_go_on(tmp_path: Path, capsys, monkeypatch, job: str) -> None:
    monkeypatch.chdir(tmp_path)
    line = [job, DATA / "pm1s_100.0.mc", "--target", "128", "--out", "a.h5"]
    told = run(capsys, monkeypatch, *line, "--time-limit", "0.05")
    assert told.status == 3
    assert "spinsim resume a.h5 --time-limit 0.1" in told.out
    for longer in (["resume", "a.h5", "--time-limit", "0.1"], [*line, "--time-limit", "0.15"]):
        told = run(capsys, monkeypatch, *longer)
        assert told.status == 3
        assert "not met in " in told.out.splitlines()[-1]
    shown = run(capsys, monkeypatch, "show", "a.h5").out
    assert [f"{limit} s: spinsim" in shown for limit in (0.05, 0.1, 0.15)] == [True] * 3
    one_sentence(run(capsys, monkeypatch, "resume", "a.h5", "--time-limit", "0.01"), "is less than the 0.15 of a.h5")
    told = run(capsys, monkeypatch, *line, "--time-limit", "0.05")  # the first command finds the longer run
    assert told.status == 3
    assert "--time-limit 0.3" in told.out
    assert run(capsys, monkeypatch, "check", "a.h5").status == 0


def test_a_search_that_met_its_target_is_done(tmp_path: Path, capsys, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    for job, name in (("anneal", "a.h5"), ("temper", "b.h5")):
        line = [job, DATA / "pm1s_100.0.mc", "--target", "126", "--out", name]
        assert run(capsys, monkeypatch, *line, "--time-limit", "60").status == 0
        before = Path(name).read_bytes()
        for longer in (["resume", name, "--time-limit", "90"], [*line, "--time-limit", "90"]):
            told = run(capsys, monkeypatch, *longer)
            assert told.status == 0
            assert "already finished" in told.out
            assert told.out.splitlines()[-1].startswith("target 126 met after ")
        assert Path(name).read_bytes() == before
    assert "checkpoint" not in h5py.File("a.h5")


def test_what_has_no_length_is_not_made_longer(tmp_path: Path, capsys, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    ss.anneal(MODEL, out="a.h5", **ANNEAL)
    ss.temper(MODEL, out="b.h5", **LADDER)
    ss.anneal(MODEL, time_limit=0.01, out="c.h5", **ANNEAL)
    for line, words in (
        ("a.h5 --time-limit 3", "a run without a time limit"),
        ("a.h5 --anneals 3", "a single anneal"),
        ("b.h5 --time-limit 3", "a run without a time limit"),
        ("b.h5 --anneals 3", "no anneals that may change"),
        ("c.h5 --anneals 3", "a search of any number of anneals"),
    ):
        one_sentence(run(capsys, monkeypatch, "resume", *line.split()), words)


def test_more_sweeps_of_the_same_command_go_on(tmp_path: Path) -> None:
    path, how = tmp_path / "a.h5", {name: value for name, value in LADDER.items() if name != "sweeps"}
    ss.temper(MODEL, sweeps=40, out=path, **how)
    longer, whole = ss.temper(MODEL, sweeps=70, out=path, **how), ss.temper(MODEL, sweeps=70, **how)
    same(longer, whole, *WHOLE, "permutation", "attempts")
    with pytest.raises(ss.InputError, match="holds another run"):
        ss.temper(MODEL, sweeps=100, out=path, **(how | {"seed": 4}))
