"""Runs that were interrupted, killed or extended end with the numbers of an uninterrupted one."""

from __future__ import annotations

import signal
import time
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from harness import contents, finish, one_sentence, run, spinsim

import spinsim as ss
from spinsim.engine import Dynamics, create_engine
from spinsim.model.ising import Ising

OWN = ("command", "config", "history")  # root attributes that name the file, and how it was run
ANNEAL = "anneal --lattice cubic --size 6 --couplings pm-j --samples 3 --steps 300 --sweeps 40 --replicas 70 --quiet"
TEMPER = (
    "temper --lattice cubic --size 6 --couplings pm-j --samples 3 --temperatures 0.8:2.5:9g --thermalize 500 "
    "--sweeps 6000 --swap-every 2 --quiet"
)
GAUSSIAN = "temper --size 5 --couplings gaussian --temperatures 0.5,0.9,1.6 --thermalize 40 --sweeps 200 --quiet"
SITE = "temper --size 256x4 --temperatures 2.0:2.6:3g --thermalize 20 --sweeps 100 --quiet"
MODELS = {
    "pm-j": lambda: ss.EdwardsAnderson(ss.cubic(4), samples=2, seed=1),
    "field": lambda: ss.EdwardsAnderson(ss.square(5, 3, periodic=False), seed=1, field=0.3),
    "gaussian": lambda: ss.EdwardsAnderson(ss.square(4), samples=2, couplings="gaussian", seed=1),
    "site-packed": lambda: ss.EdwardsAnderson(ss.square(256, 2), seed=1),
}


@pytest.fixture
def do(capsys, monkeypatch, tmp_path):
    """Run a command into a file of ``tmp_path`` and return its path."""
    monkeypatch.chdir(tmp_path)

    def command(line: str, out: str) -> Path:
        outcome = run(capsys, monkeypatch, *line.split(), "--out", out)
        assert outcome.status == 0, outcome
        return tmp_path / out

    return command


WHOLE: dict[str, dict[str, Any]] = {}


def of_whole(do, line: str) -> dict[str, Any]:
    """The contents of the file of a run that nobody interrupts, which is made once."""
    if line not in WHOLE:
        WHOLE[line] = contents(do(line, "whole.h5"), *OWN)
    return WHOLE[line]


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_a_restored_engine_goes_on_with_the_same_bits(device: str, make) -> None:
    model: Ising = make()
    engines = [create_engine(model, 9, Dynamics(seed=8), device) for _ in range(2)]
    for engine in engines:
        engine.set_ladder(1 / np.array([0.9, 1.3, 2.0]), copies=3)
    engines[0].temper(3, 2)
    saved = engines[0].snapshot()
    engines[0].temper(4, 1)
    engines[1].temper(1, 1)
    engines[1].restore(saved)
    engines[1].temper(4, 1)
    one, other = (engine.snapshot() for engine in engines)
    assert one.keys() == other.keys()
    for name, value in one.items():
        np.testing.assert_array_equal(value, other[name])


@pytest.mark.gpu
@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_snapshots_pass_from_device_to_device(make) -> None:
    model: Ising = make()
    cpu, cuda = (create_engine(model, 9, Dynamics(seed=8), device) for device in ("cpu", "cuda"))
    for engine in (cpu, cuda):
        engine.set_ladder(1 / np.array([0.9, 1.3, 2.0]), copies=3)
        engine.temper(3, 2)
    for name, value in cpu.snapshot().items():
        np.testing.assert_array_equal(value, cuda.snapshot()[name])


@pytest.mark.parametrize("line", [TEMPER, GAUSSIAN, SITE], ids=["pm-j", "gaussian", "site-packed"])
def test_a_hundred_and_a_hundred_sweeps_are_two_hundred(do, capsys, monkeypatch, line) -> None:
    whole = do(line.replace("--sweeps 6000", "--sweeps 200"), "whole.h5")
    sweeps = "200" if line is not SITE else "100"
    half = str(int(sweeps) // 2)
    part = do(
        line.replace("--sweeps 6000", "--sweeps 200").replace(f"--sweeps {sweeps}", f"--sweeps {half}"), "part.h5"
    )
    assert run(capsys, monkeypatch, "resume", part, "--sweeps", sweeps, "--quiet").status == 0
    assert contents(part, *OWN) == contents(whole, *OWN)
    assert not list(part.parent.glob(".*"))


@pytest.mark.system
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="signals as POSIX has them")
def test_a_run_that_was_cut_short_is_extended(do, tmp_path) -> None:
    process = spinsim(tmp_path, *TEMPER.replace("--sweeps 6000", "--sweeps 12000").split(), "--out", "part.h5")
    wait_for(tmp_path / "part.h5", process)
    process.send_signal(signal.SIGINT)
    assert finish(process).status == 130
    longer = "12020"
    outcome = finish(spinsim(tmp_path, "resume", "part.h5", "--sweeps", longer, "--checkpoint-every", "0.5"))
    assert outcome.status == 0, outcome
    whole = do(TEMPER.replace("--sweeps 6000", f"--sweeps {longer}"), "whole.h5")
    assert contents(tmp_path / "part.h5", *OWN) == contents(whole, *OWN)


def test_an_analysis_of_part_of_a_run_is_forgotten(do, capsys, monkeypatch) -> None:
    path = do(GAUSSIAN, "a.h5")
    assert run(capsys, monkeypatch, "analyze", path).status == 0
    assert run(capsys, monkeypatch, "resume", path, "--sweeps", "400", "--quiet").status == 0
    with h5py.File(path) as file:
        assert "summary" not in file


def test_a_finished_run_is_left_alone(do, capsys, monkeypatch) -> None:
    path = do(GAUSSIAN, "a.h5")
    before = path.read_bytes()
    assert "already finished" in run(capsys, monkeypatch, "resume", path).out
    assert path.read_bytes() == before


@pytest.mark.system
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="signals as POSIX has them")
@pytest.mark.parametrize(
    ("number", "line"), [("SIGINT", ANNEAL), ("SIGTERM", TEMPER), ("SIGUSR1", TEMPER), ("SIGUSR2", ANNEAL)]
)
def test_a_signal_saves_and_stops(do, tmp_path, number, line) -> None:
    whole = of_whole(do, line)
    process = spinsim(tmp_path, *line.replace("--quiet", "").split(), "--out", "part.h5")
    wait_for(tmp_path / "part.h5", process)
    process.send_signal(getattr(signal, number))
    outcome = finish(process)
    if outcome.status == 130:  # else it was done before
        assert "spinsim resume part.h5" in outcome.err
        with h5py.File(tmp_path / "part.h5") as file:
            assert "checkpoint" in file
        assert finish(spinsim(tmp_path, "resume", "part.h5")).status == 0
    assert contents(tmp_path / "part.h5", *OWN) == whole


def wait_for(path: Path, process) -> None:
    """Until a run's file is there."""
    while not path.exists():
        assert process.poll() is None
        time.sleep(0.002)


def kill_many(tmp_path: Path, do, line: str, kills: int, longest: float) -> int:
    """Kill and resume a run again and again, each time from its last checkpoint; how many kills met it running."""
    whole, random, met = of_whole(do, line), np.random.default_rng(7), 0
    path = tmp_path / "killed.h5"
    command = [*line.split(), "--out", "killed.h5", "--checkpoint-every", "0"]
    for _ in range(kills):
        process = spinsim(tmp_path, *command)
        wait_for(path, process)
        time.sleep(random.uniform(0, longest))
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            met += 1
        process.communicate()
        if ss.load(path).finished:
            assert contents(path, *OWN) == whole
            path.unlink()
    outcome = finish(spinsim(tmp_path, *command))
    assert outcome.status == 0, outcome
    assert contents(path, *OWN) == whole
    return met


@pytest.mark.system
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL here")
@pytest.mark.parametrize("line", [ANNEAL, TEMPER], ids=["anneal", "temper"])
def test_kill_9(tmp_path, do, line) -> None:
    assert kill_many(tmp_path, do, line, 5, 1.5) > 0


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL here")
@pytest.mark.parametrize("line", [ANNEAL, TEMPER], ids=["anneal", "temper"])
def test_kill_9_many_times(tmp_path, do, line) -> None:
    assert kill_many(tmp_path, do, line, 50, 2.5) > 25


def test_resume_refuses_what_it_cannot_do(do, capsys, monkeypatch) -> None:
    annealed = do("anneal --size 4 --steps 3 --sweeps 2 --replicas 4 --quiet", "a.h5")
    one_sentence(run(capsys, monkeypatch, "resume", annealed, "--sweeps", "10"), "leave --sweeps out")
    one_sentence(run(capsys, monkeypatch, "resume", annealed, "--most-steps", "10"), "leave --most-steps out")
    path = do(GAUSSIAN, "b.h5")
    one_sentence(run(capsys, monkeypatch, "resume", path, "--sweeps", "100"), "fewer than the 200")
    one_sentence(run(capsys, monkeypatch, "temper", "--checkpoint-every=-1"), "checkpoint_every -1.0")


def test_a_run_in_memory_that_was_saved_is_extended_from_its_beginning(tmp_path, capsys, monkeypatch) -> None:
    """It has no checkpoint, and its seed says all that it did."""
    model = ss.EdwardsAnderson(ss.square(4), samples=2, seed=3)
    path = ss.temper(model, [1.0, 2.0], sweeps=40, thermalize=5).save(tmp_path / "c.h5")
    assert "already finished" in run(capsys, monkeypatch, "resume", path).out
    found, whole = ss.resume(path, sweeps=80), ss.temper(model, [1.0, 2.0], sweeps=80, thermalize=5)
    for name in ("energy", "overlap", "permutation", "attempts", "accepts", "round_trips", "best_energy", "best_spins"):
        np.testing.assert_array_equal(getattr(found, name), getattr(whole, name))
