"""Searches by tempering with several groups of copies side by side, and with restarts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from harness import one_sentence, run
from places import DATA
from several import on_cpus

import spinsim as ss
from spinsim.engine.choosing import copies_of_search, groups_of_search
from spinsim.engine.update import ModelSizes
from spinsim.jobs.temper.settings import RESTART_AFTER
from spinsim.model.ising import repeated
from spinsim.run.search import Restarts, Search, seed_of_start
from spinsim.sampling.portions import UPDATES

MODEL = ss.EdwardsAnderson(ss.square(6), samples=2, seed=4)
LADDER: dict[str, Any] = {
    "temperatures": "0.3:2:4g",
    "thermalize": 20,
    "sweeps": 80,
    "replicas": 2,
    "seed": 3,
    "threads": 1,
}
MISSED = "-1000,-1000"
ALL = ("sweep", "energy", "permutation", "best_energy", "best_spins", "attempts", "accepts", "round_trips")


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
    monkeypatch.setitem(UPDATES, "cuda", 1.0)
    monkeypatch.setattr("spinsim.run.search.seconds_without_compiling", lambda: found.now)
    monkeypatch.setattr("spinsim.model.targets._bound", lambda model, sample: -2000.0)
    return found


@pytest.fixture
def search(clock: Clock) -> Callable[..., ss.TemperResult]:
    """Searches of so many sweeps."""

    def found(sweeps: int, **how: Any) -> ss.TemperResult:
        clock.now = 0.0
        return ss.temper(MODEL, **LADDER | {"target": MISSED, "time_limit": sweeps, "on_updates": clock.tick} | how)

    return found


def same(one: ss.TemperResult, other: ss.TemperResult, *names: str) -> None:
    """That two searches agree in all that is named, and in what they did."""
    for name in names or ALL:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), name)
    assert one.search is not None
    assert other.search is not None
    assert (one.search.done, one.search.restarts) == (other.search.done, other.search.restarts)


@pytest.mark.parametrize("houdayer", [None, 5])
def test_the_first_group_moves_as_it_does_alone(search, houdayer: int | None) -> None:
    alone, several = search(120, houdayer=houdayer), search(120, groups=3, houdayer=houdayer)
    same(several, alone, "sweep", "energy", "permutation", "attempts", "accepts", "round_trips")
    assert (several.best_energy <= alone.best_energy).all()
    assert houdayer or (several.best_energy < alone.best_energy).any()  # with moves each meets the lowest
    np.testing.assert_array_equal(MODEL.energy(several.best_spins), several.best_energy.min(axis=1))


def test_groups_are_further_samples_of_the_same_problem() -> None:
    """Which share the rows of couplings of a single sample."""
    several = repeated(MODEL, 3)
    assert several.samples == 6
    np.testing.assert_array_equal(several.couplings, np.tile(MODEL.couplings, (3, 1)))
    one = ss.EdwardsAnderson(ss.square(6), seed=4)
    assert np.shares_memory(repeated(one, 100).couplings, one.couplings)
    assert repeated(one, 1) is one
    run = ss.temper(repeated(one, 2), **LADDER)
    np.testing.assert_array_equal(run.energy[:, :1], ss.temper(one, **LADDER).energy)
    assert (run.energy[:, 0] != run.energy[:, 1]).any()


def test_starts_are_the_runs_of_their_seeds(search) -> None:
    """Each ends once nothing lower has been met for 20, 40, 80, ... sweeps."""
    found = search(400, restart_after=20)
    assert found.search is not None
    done, lowest, after, number = 0, [], 20, 0
    while True:
        plain = ss.temper(MODEL, **LADDER | {"sweeps": 400, "thermalize": 0, "seed": seed_of_start(3, number)})
        lows = np.minimum.accumulate(plain.energy.min(axis=(2, 3)))
        lower = np.r_[True, (np.diff(lows, axis=0) < 0).any(axis=1)]
        since = np.arange(len(lows)) - np.maximum.accumulate(np.where(lower, np.arange(len(lows)), 0))
        sweeps = 10 * (int(np.argmax(since >= after // 10)) + 1)
        short = {"sweeps": min(sweeps, 400 - done), "thermalize": 0, "seed": seed_of_start(3, number)}
        lowest.append(ss.temper(MODEL, **LADDER | short).best_energy)
        if number == 0:
            np.testing.assert_array_equal(found.energy, plain.energy[2 : sweeps // 10])
        done += sweeps
        if done >= 400:
            break
        number, after = number + 1, 2 * after
    assert number >= 2
    assert (found.search.restarts, found.search.done) == (number, 400)
    np.testing.assert_array_equal(found.best_energy, np.min(lowest, axis=0))
    assert found.attempts.sum() == 2 * 2 * (2 + 1) * 200  # of all starts


GOES_ON = [({"groups": 2, "restart_after": 20}, limit) for limit in (33, 50, 125)]
GOES_ON += [({"groups": 3, "restart_after": 0}, 57), ({"groups": 3, "restart_after": 20, "houdayer": 5}, 125)]


@pytest.mark.parametrize(("how", "limit"), GOES_ON, ids=str)
def test_a_search_goes_on_where_it_ended(tmp_path: Path, search, clock: Clock, how: dict[str, int], limit: int) -> None:
    """While the first group is alone, as the others join, and in later starts."""
    path = tmp_path / "a.h5"
    search(limit, out=path, **how)
    longer, whole = ss.resume(path, time_limit=210.0, on_updates=clock.tick), search(210, **how)
    same(longer, whole)
    assert longer.attributes["config_sha256"] == whole.attributes["config_sha256"]
    same(ss.load(whole.save(tmp_path / "b.h5")), whole)
    for file in (path, tmp_path / "b.h5"):
        with h5py.File(file) as found:
            assert ("restarts" in found["search"]) == bool(how["restart_after"])


@pytest.mark.parametrize("stop", [3, 9])
def test_an_interrupted_search_has_the_same_bits(tmp_path: Path, search, clock: Clock, stop: int) -> None:
    path, how = tmp_path / "a.h5", {"groups": 2, "restart_after": 20}

    def interrupt(updates: int) -> None:
        clock.tick(updates)
        if clock.now == 10 * stop:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        search(200, out=path, checkpoint_every=0, on_updates=interrupt, **how)
    unfinished = ss.load(path)
    assert not unfinished.finished
    assert unfinished.round_trips.shape == (2, 8)
    same(ss.resume(path, on_updates=clock.tick), search(200, **how))


@pytest.fixture
def until_sweep_140(search, monkeypatch) -> Callable[..., ss.TemperResult]:
    """Searches of groups with restarts that end after so many sweeps, however far their devices have gone by then."""
    look = Search.look

    def counted(search: Search, energy: Any, after: int) -> None:
        look(search, energy, after)
        search.looked = after

    monkeypatch.setattr(Search, "look", counted)
    monkeypatch.setattr(Search, "looked", 0, raising=False)
    monkeypatch.setattr(Search, "is_met", property(lambda search: search.looked >= 140))
    return lambda **how: search(10**6, groups=3, restart_after=20, **how)


@pytest.mark.parametrize("devices", [2, 3])
def test_several_devices_share_the_groups(until_sweep_140, monkeypatch, devices: int) -> None:
    whole = until_sweep_140()
    on_cpus(monkeypatch, devices)
    same(until_sweep_140(), whole)


@pytest.mark.system
@pytest.mark.usefixtures("emulated")
def test_groups_and_restarts_have_the_same_bits_on_a_gpu(until_sweep_140) -> None:
    """The GPU has gone further where a start, or the search, ends."""
    same(until_sweep_140(device="cuda"), until_sweep_140(device="cpu"))


def test_a_search_fills_its_device() -> None:
    torus = ModelSizes(ss.EdwardsAnderson(ss.square(20), seed=1))
    dense = ModelSizes(ss.Ising.from_matrix(np.ones((200, 200)) - np.eye(200)))
    assert [copies_of_search(torus, "cpu", many) for many in (4, 32, 48, 64, 200)] == [8, 4, 2, 2, 1]
    assert [copies_of_search(dense, device, 32) for device in ("cpu", "cuda")] == [1, 4]
    assert [groups_of_search(torus, "cpu", 128, threads) for threads in (1, 2, 64)] == [1, 2, 64]
    assert groups_of_search(torus, "cuda", 128, 2) == 132
    assert groups_of_search(dense, "cuda", 128, 2) == 132 * 16 // 128
    many = ModelSizes(ss.EdwardsAnderson(ss.square(4), samples=100))
    assert groups_of_search(many, "cpu", 128, 8) == 1
    assert groups_of_search(many, "cuda", 128, 8) == 6
    for sites, groups in ((20_000, 64), (10_000_000, 1)):  # G81; four groups would take more than there may be
        large = ModelSizes(ss.EdwardsAnderson(ss.square(4), seed=1))
        large.sites, large.bonds = sites, 2 * sites
        assert groups_of_search(large, "cpu", 128, 64) == groups


def test_what_is_given_rules(tmp_path: Path) -> None:
    how: dict[str, Any] = {"time_limit": 0.001, "device": "cpu"}
    found = [
        ss.temper(MODEL, **how, **more).config
        for more in (
            {"threads": 5},
            {"threads": 1},
            {"threads": 5, "replicas": 4},
            {"threads": 1, "groups": 3, "restart_after": 0},
            {"threads": 1, "temperatures": "0.5:2:16"},
        )
    ]
    sizes = [(each["run"]["replicas"], each["temper"]["groups"]) for each in found]
    assert sizes == [(4, 3), (4, 1), (4, 1), (4, 3), (8, 1)]  # 5 threads: two samples of each group
    assert [each["temper"]["restart_after"] for each in found] == [RESTART_AFTER] * 3 + [0, RESTART_AFTER]
    path = tmp_path / "a.h5"
    ss.temper(MODEL, out=path, threads=4, **how)
    assert ss.temper(MODEL, out=path, threads=1, **how).config["temper"]["groups"] == 2  # as the file has it


def test_a_restart_is_due_once_nothing_lower_is_met() -> None:
    restarts = Restarts(30, 2)
    for sweeps, lowest in ((10, (-3.0, -3.0)), (20, (-3.0, -4.0)), (30, (-2.0, -4.0)), (40, (-3.0, -3.0))):
        restarts.look(np.array(lowest), sweeps)
        assert not restarts.is_due(sweeps)
    assert restarts.is_due(50)
    restarts.begin(50)
    restarts.look(np.array([0.0, 0.0]), 10)
    saved = restarts.state()
    restarts = Restarts(30, 2)
    restarts.restore(saved)
    assert (restarts.number, restarts.before) == (1, 50)
    assert not restarts.is_due(69)
    assert restarts.is_due(70)
    assert not Restarts(0, 2).is_due(10**12)
    assert not Restarts(0, 2).state()


def test_the_command_says_how_many_groups_and_restarts_there_were(tmp_path: Path, capsys, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    line = ["temper", DATA / "pm1s_100.0.mc", "--target", "128", "--time-limit", "0.2", "--out", "a.h5"]
    told = run(capsys, monkeypatch, *line, "--groups", "3", "--restart-after", "10")
    assert told.status == 3
    assert "3 groups of 4 copies" in " ".join((told.out + told.err).split())
    shown = run(capsys, monkeypatch, "show", "a.h5").out
    assert " sweeps of 3 groups in " in shown
    assert " restart" in shown
    assert "were accepted (first group)" in shown
    assert run(capsys, monkeypatch, "check", "a.h5").status == 0
    told = run(
        capsys, monkeypatch, *line[:-1], "b.h5", "--groups", "200000", "--temperatures", "1:3:100", "--replicas", "99"
    )
    one_sentence(told, "9900 replicas x 200000 groups needs ", "give fewer groups")
    for flag in ("--groups", "--restart-after"):
        told = run(capsys, monkeypatch, "temper", "--size", "4", flag, "2", "--out", "b.h5")
        one_sentence(told, "is for searches alone: give target or time_limit")


def test_large_searches_have_a_narrow_ladder_of_one_copy(tmp_path: Path) -> None:
    large = ss.Ising(ss.square(64))  # 4,096 sites
    path = tmp_path / "a.h5"
    found = ss.temper(large, out=path, time_limit=0.001, device="cpu", threads=1)
    assert len(found.temperature) == 128
    assert found.config["run"]["replicas"] == 1
    assert found.config["temper"]["restart_after"] == 250 * 4096
    np.testing.assert_allclose(np.diff(found.temperature, 2), 0, atol=1e-9)
    given = "0.2:2:64g"  # as versions before had it
    old = ss.temper(large, given, out=tmp_path / "b.h5", time_limit=0.001, device="cpu", threads=1)
    again = ss.temper(large, out=tmp_path / "b.h5", time_limit=0.002, device="cpu", threads=1)
    np.testing.assert_array_equal(again.temperature, old.temperature)


@pytest.mark.parametrize(("name", "groups"), [("square", 132), ("large", 14)])
def test_large_problems_have_fewer_groups_on_a_gpu(name: str, groups: int) -> None:
    size = {"square": (40, 50), "large": (100, 200)}[name]
    model = ss.EdwardsAnderson(ss.square(*size), seed=1)
    graph = ss.Ising(ss.Graph(model.sites, model.graph.edges), couplings=model.couplings)
    assert groups_of_search(ModelSizes(graph), "cuda", 128, 2) == groups
