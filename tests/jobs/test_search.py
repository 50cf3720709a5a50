"""Searches: anneals one after the other, or a tempering, until a target is met or the time is up."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from harness import one_sentence, run
from places import DATA
from several import on_cpus

import spinsim as ss
from spinsim import rng
from spinsim.errors import InputError
from spinsim.jobs.anneal.run import AnnealPlan
from spinsim.jobs.anneal.settings import Anneal, AnnealSettings
from spinsim.run.execute import to_file
from spinsim.run.plan import Watch
from spinsim.run.search import Search
from spinsim.settings.shared import ModelSettings, RunSettings

MODEL = ss.EdwardsAnderson(ss.square(6), samples=2, seed=4)
HOW: dict[str, Any] = {"steps": 6, "sweeps": 3, "replicas": 5, "seed": 7}
SERIES = ("temperature", "energy", "magnetization")
OF_ANNEALS = ("energy", "sweeps", "planned", "done", "target", "met_after")


def same_anneals(one: ss.AnnealResult, other: ss.AnnealResult) -> None:
    """All but times."""
    for name in (*SERIES, "best_energy", "best_spins"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    assert one.anneals is not None
    assert other.anneals is not None
    for name in OF_ANNEALS:
        np.testing.assert_array_equal(getattr(one.anneals, name), getattr(other.anneals, name))


@pytest.mark.parametrize(
    "more",
    [{}, {"quantum": True, "slices": 4}, {"temperatures": "2:0.2:6", "steps": 6, "field": "1:0:6"}],
    ids=["thermal", "quantum", "field"],
)
def test_anneals_are_those_of_their_seeds(more: dict[str, Any]) -> None:
    how = {name: value for name, value in (HOW | more).items() if name != "steps" or "temperatures" not in more}
    several = ss.anneal(MODEL, anneals=3, **how)
    alone = [
        ss.anneal(MODEL, **(how | {"seed": seed}))
        for seed in (7, *(rng.derived_seed(7, k, rng.Stream.RESTART) for k in (1, 2)))
    ]
    assert several.anneals is not None
    assert several.anneals.done == 3
    assert several.anneals.whole.all()
    np.testing.assert_array_equal(several.anneals.energy, [one.best_energy for one in alone])
    np.testing.assert_array_equal(several.best_energy, np.min([one.best_energy for one in alone], axis=0))
    for name in SERIES:
        np.testing.assert_array_equal(getattr(several, name), getattr(alone[0], name))
    np.testing.assert_array_equal(MODEL.energy(several.best_spins), several.best_energy.min(axis=1))
    assert alone[0].anneals is None


def test_a_target_ends_an_anneal_at_its_first_look(tmp_path: Path) -> None:
    plain = ss.anneal(MODEL, **HOW)
    lows = np.minimum.accumulate(plain.energy.min(axis=2))
    targets = lows[3]
    found = ss.anneal(MODEL, target=targets, out=tmp_path / "a.h5", **HOW)
    first = int(np.argmax((lows <= targets).all(axis=1)))
    assert len(found.energy) == first + 1 < 6
    np.testing.assert_array_equal(found.energy, plain.energy[: first + 1])
    assert found.anneals is not None
    assert found.anneals.is_met
    assert found.anneals.sweeps.tolist() == [3 * (first + 1)]
    assert found.anneals.met_after.tolist() == [1, 1]
    assert (found.anneals.hits(MODEL) >= 1).all()
    same_anneals(ss.load(found.save(tmp_path / "b.h5")), found)


def test_a_search_goes_on_until_its_target_is_met() -> None:
    lowest = ss.anneal(MODEL, anneals=40, **HOW)
    assert lowest.anneals is not None
    best = lowest.best_energy.min(axis=1)
    found = ss.anneal(MODEL, target=best, **HOW)
    assert found.anneals is not None
    met = (lowest.anneals.energy.min(axis=2) <= best).argmax(axis=0) + 1
    assert found.anneals.met_after.tolist() == met.tolist()
    assert found.anneals.done == met.max()
    np.testing.assert_array_equal(lowest.anneals.hits(MODEL, best) > 0, lowest.anneals.energy.min(axis=2) <= best)


def test_anneals_without_a_length_grow() -> None:
    found = ss.anneal(MODEL, target=-30, replicas=2, seed=7, anneals=4)
    assert found.anneals is not None
    assert found.anneals.planned.tolist()[:4] == [20, 40, 80, 160][: found.anneals.done]
    assert found.anneals.whole.all() or found.anneals.is_met
    first = ss.anneal(MODEL, steps=5, sweeps=4, replicas=2, seed=7)
    np.testing.assert_array_equal(found.energy, first.energy[: len(found.energy)])
    with pytest.raises(InputError, match="goes with several anneals"):
        ss.anneal(MODEL, growing=True)


@pytest.mark.parametrize("more", [{}, {"field": np.linspace(1, 0, 12)}, {"populations": 2}, {"quantum": True}])
def test_what_is_listed_grows_by_steps_chosen_from_it(more: dict[str, Any]) -> None:
    how: dict[str, Any] = {"replicas": 4, "seed": 7, **more}
    ladder = np.linspace(3, 0.5, 12)
    found = ss.anneal(MODEL, ladder, sweeps=100, growing=True, anneals=3, **how)
    assert found.anneals is not None
    assert found.anneals.planned.tolist() == [20, 40, 80]
    chosen = [0, 3, 6, 8, 11]
    if "field" in more:
        how["field"] = more["field"][chosen]
    first = ss.anneal(MODEL, ladder[chosen], sweeps=4, **how)
    np.testing.assert_array_equal(found.temperature, first.temperature)
    np.testing.assert_array_equal(found.energy, first.energy)


def test_time_ends_a_search_within_an_anneal() -> None:
    how = HOW | {"steps": 1, "sweeps": 10**9}
    found = ss.anneal(MODEL, time_limit=0.05, **how)
    assert found.anneals is not None
    assert found.anneals.done == 1
    assert not len(found.energy)
    sweeps = int(found.anneals.sweeps[0])
    assert 0 < sweeps < 10**9
    again = ss.anneal(MODEL, **(how | {"sweeps": sweeps}))
    np.testing.assert_array_equal(again.best_energy, found.best_energy)


def test_who_watches_hears_of_better_states(tmp_path: Path) -> None:
    notes: list[str] = []
    config = Anneal(
        model=ModelSettings(instance=str(DATA / "pm1s_100.0.mc")),
        anneal=AnnealSettings(target="126", steps=20, sweeps=5),
        run=RunSettings(out=str(tmp_path / "a.h5"), device="cpu"),
    )
    assert to_file(AnnealPlan.of(config), Watch(on_note=notes.append))
    cuts = [float(note.removeprefix("best cut ")) for note in notes]
    assert cuts == sorted(set(cuts))
    assert cuts[-1] >= 126


def test_a_search_whose_time_is_up_within_its_first_step(tmp_path: Path, capsys, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    line = ["anneal", DATA / "pm1s_100.0.mc", "--steps", "1", "--sweeps", "1000000000", "--time-limit", "0.05"]
    told = run(capsys, monkeypatch, *line, "--out", "a.h5", "--json")
    assert json.loads(told.out, parse_constant=pytest.fail)["last_energy_per_site"] is None
    shown = run(capsys, monkeypatch, "show", "a.h5").out
    assert "Progress       0 rows recorded" in shown
    assert "Lowest energy" in shown
    assert "Best cut" in shown
    assert "spinsim plot" not in run(capsys, monkeypatch, *line, "--out", "b.h5").out
    with pytest.raises(ss.InputError, match="no finished step"):
        ss.table("a.h5")


def test_analyze_says_where_averages_of_populations_are(tmp_path: Path, capsys, monkeypatch) -> None:
    ss.anneal(MODEL, populations=1, out=tmp_path / "a.h5", **HOW)
    told = run(capsys, monkeypatch, "analyze", tmp_path / "a.h5")
    one_sentence(told, "a population run")
    assert "equilibrium" not in told.err


def test_show_says_of_what_a_search_its_lines_are(tmp_path: Path, capsys, monkeypatch) -> None:
    ss.anneal(MODEL, anneals=3, out=tmp_path / "a.h5", **HOW)
    lines = run(capsys, monkeypatch, "show", tmp_path / "a.h5").out.splitlines()
    assert any(" (each had 3 anneals)" in line for line in lines)
    assert "Series         of the first anneal, 18 sweeps" in lines
    assert any(line.startswith("Progress       6 rows recorded, begun") for line in lines)


@pytest.mark.parametrize(("stop", "devices"), [(2, 1), (7, 2), (12, 1), (17, 1), (17, 2)])
def test_an_interrupted_search_has_the_same_bits(tmp_path: Path, stop: int, devices: int, monkeypatch) -> None:
    calls = 0

    def interrupt(updates: int) -> None:
        nonlocal calls
        calls += updates > 0
        if calls == stop:
            raise KeyboardInterrupt

    how = HOW | {"anneals": 3, "best_states": True}
    path, whole = tmp_path / "a.h5", ss.anneal(MODEL, **how)
    on_cpus(monkeypatch, devices)
    with pytest.raises(KeyboardInterrupt):
        ss.anneal(MODEL, out=path, checkpoint_every=0, on_updates=interrupt, **how)
    assert not ss.load(path).finished
    resumed = ss.resume(path)
    same_anneals(resumed, whole)
    np.testing.assert_array_equal(resumed.best_states, whole.best_states)


def test_the_command_says_whether_the_target_was_met(tmp_path: Path, capsys, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    line = ["anneal", DATA / "pm1s_100.0.mc", "--steps", "30", "--sweeps", "20"]
    told = run(capsys, monkeypatch, *line, "--target", "127", "--out", "a.h5")
    assert told.status == 0, told
    assert told.out.splitlines()[-1].startswith("target 127 met after ")
    told = run(capsys, monkeypatch, *line, "--target", "128", "--time-limit", "0.2", "--out", "b.h5", "--json")
    assert told.status == 3
    numbers = json.loads(told.out)
    assert numbers["target_met"] is False
    assert numbers["anneals"] >= 1
    assert "not met in " in run(capsys, monkeypatch, "show", "b.h5").out
    assert run(capsys, monkeypatch, "check", "b.h5").status == 0
    for words, more in (
        ("is more than any cut", ["--target", "1000"]),
        ("2 values", ["--target", "1,2"]),
        ("cannot be read", ["--target", "many"]),
        ("at least 0.001", ["--time-limit", "0"]),
    ):
        one_sentence(run(capsys, monkeypatch, *line, *more, "--out", "c.h5"), words)
        solve = ["bench", "solve", DATA / "pm1s_100.0.mc", "--steps", "1", "--sweeps", "1"]
        if words not in ("2 values", "cannot be read"):
            one_sentence(run(capsys, monkeypatch, *solve, *more), words)
    grows = [*line[:2], "--target", "127", "--save-configurations", "10", "--out", "c.h5"]
    one_sentence(run(capsys, monkeypatch, *grows), "give steps, with which all have that length")
    assert not (tmp_path / "c.h5").exists()


LADDER: dict[str, Any] = {
    "temperatures": "0.3:2:4g",
    "sweeps": 40,
    "thermalize": 20,
    "measure_every": 10,
    "replicas": 2,
}


def test_a_tempering_search_is_the_run_of_its_sweeps(tmp_path: Path) -> None:
    plain = ss.temper(MODEL, **LADDER, seed=3)
    lows = np.minimum.accumulate(plain.energy.min(axis=(2, 3)))
    found = ss.temper(MODEL, **LADDER, seed=3, target=lows[1], out=tmp_path / "a.h5")
    assert found.search is not None
    assert found.search.is_met
    sweeps = found.search.done
    assert sweeps == found.search.met_after.max() <= 40
    rows = max(0, (sweeps - 20) // 10)
    np.testing.assert_array_equal(found.sweep, plain.sweep[:rows])
    np.testing.assert_array_equal(found.energy, plain.energy[:rows])
    np.testing.assert_array_equal(found.permutation, plain.permutation[:rows])
    met = ss.temper(MODEL, **(LADDER | {"sweeps": sweeps, "thermalize": 0}), seed=3)
    np.testing.assert_array_equal(met.best_spins, found.best_spins)
    np.testing.assert_array_equal(met.best_energy, found.best_energy)
    np.testing.assert_array_equal(met.attempts, found.attempts)
    again = ss.load(found.save(tmp_path / "b.h5"))
    assert again.search.done == sweeps
    np.testing.assert_array_equal(again.search.met_seconds, found.search.met_seconds)


@pytest.mark.parametrize(
    ("stop", "devices", "groups"), [(1, 1, None), (4, 2, None), (9, 1, None), (9, 2, None), (4, 2, 3), (9, 3, 3)]
)
def test_an_interrupted_tempering_search_goes_on_beyond_its_rows(
    tmp_path: Path, stop: int, devices: int, groups: int | None, monkeypatch
) -> None:
    calls = 0

    def interrupt(updates: int) -> None:
        nonlocal calls
        calls += updates > 0
        if calls == stop:
            raise KeyboardInterrupt

    how = LADDER | {"seed": 3, "target": "-1000,-1000", "groups": groups}
    monkeypatch.setattr("spinsim.model.targets._bound", lambda model, sample: -2000.0)
    monkeypatch.setattr(Search, "is_met", property(lambda search: search.looks >= 12))
    look = Search.look
    monkeypatch.setattr(Search, "looks", 0, raising=False)

    def counted(search: Search, energy: Any, after: int) -> None:
        look(search, energy, after)
        search.looks = after // 10

    monkeypatch.setattr(Search, "look", counted)
    path, whole = tmp_path / "a.h5", ss.temper(MODEL, **how)
    on_cpus(monkeypatch, devices)
    with pytest.raises(KeyboardInterrupt):
        ss.temper(MODEL, out=path, checkpoint_every=0, on_updates=interrupt, **how)
    resumed = ss.resume(path)
    assert resumed.search.done == whole.search.done == 120
    for name in ("sweep", "energy", "permutation", "best_energy", "best_spins", "attempts", "accepts", "round_trips"):
        np.testing.assert_array_equal(getattr(resumed, name), getattr(whole, name))
    assert whole.sweep.tolist() == [10, 20, 30, 40]


def test_the_tempering_command_searches(tmp_path: Path, capsys, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    line = ["temper", DATA / "pm1s_100.0.mc"]
    told = run(capsys, monkeypatch, *line, "--target", "127", "--out", "a.h5", "--solution", "a.txt")
    assert told.status == 0, told
    assert told.out.splitlines()[-1].startswith("target 127 met after ")
    assert "Solution       a.txt" in told.out
    assert "cut 127" in (tmp_path / "a.txt").read_text()
    one_sentence(run(capsys, monkeypatch, *line, "--out", "b.h5", "--solution", "a.txt"), "exists already")
    placed = ["--target", "127", "--temperatures", "auto:0.5:2:4", "--out", "b.h5"]
    one_sentence(run(capsys, monkeypatch, *line, *placed), "do not go with target, as the pre-run")
    one_sentence(run(capsys, monkeypatch, "resume", "a.h5", "--sweeps", "100"), "holds a search")
    told = run(capsys, monkeypatch, *line, "--target", "128", "--time-limit", "0.1", "--out", "c.h5", "--json")
    assert told.status == 3
    assert json.loads(told.out)["target_met"] is False
    assert "Target         target 128 not met" in run(capsys, monkeypatch, "show", "c.h5").out
    assert run(capsys, monkeypatch, "check", "c.h5").status == 0


@pytest.mark.system
@pytest.mark.usefixtures("emulated")
def test_searches_have_the_same_bits_on_a_gpu() -> None:
    """The tempering search ends while the GPU has gone further."""
    lows = np.minimum.accumulate(ss.temper(MODEL, **LADDER, seed=3).energy.min(axis=(2, 3)))
    of_cpu, of_gpu = (ss.temper(MODEL, **LADDER, seed=3, target=lows[1], device=device) for device in ("cpu", "cuda"))
    for name in ("energy", "permutation", "best_energy", "best_spins", "attempts", "accepts", "round_trips"):
        np.testing.assert_array_equal(getattr(of_gpu, name), getattr(of_cpu, name))
    assert of_gpu.search.done == of_cpu.search.done
    same_anneals(*(ss.anneal(MODEL, target=lows[-1], device=device, **HOW) for device in ("cpu", "cuda")))
