"""Files of runs: equal for equal runs, whole at every moment, completed and never overwritten."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import xarray
from harness import at_row, contents, finish, interrupt, run, spinsim, tree

import spinsim as ss
from spinsim.jobs.anneal.result import AnnealResult
from spinsim.machine.files import Disk
from spinsim.record import Record
from spinsim.store import files

COMMAND = "anneal --lattice cubic --size 4 --couplings pm-j --samples 3 --steps 12 --sweeps 2 --replicas 70 --seed 5"
OWN = ("command", "config")  # root attributes that name the file and the threads
GRAPH = ss.Graph(7, np.array([[0, 1], [1, 2], [1, 2], [5, 0], [3, 5]], np.int32))
MODELS = {
    "lattice": lambda: ss.Ising(ss.square(4, 6)),
    "open": lambda: ss.Ising(ss.cubic(3, 2, 4, periodic=False), -1.0),
    "instance": lambda: ss.Ising(GRAPH, [1.0, -2, 0.5, 3, 0.25], name="odd", offset=1.5, maxcut_weight=7.0),
    "no-bonds": lambda: ss.Ising(ss.Graph(3, np.empty((0, 2), np.int32)), 1.0, [1.0, 2.0, -1.0]),
    "samples": lambda: ss.EdwardsAnderson(ss.cubic(4), samples=3, seed=2),
    "gaussian": lambda: ss.EdwardsAnderson(ss.square(4), samples=2, couplings="gaussian", field=0.5),
    "field": lambda: ss.Ising(ss.chain(9), 1.0, 0.3),
    "site-packed": lambda: ss.EdwardsAnderson(ss.cubic(256, 2, 2), samples=2, field=0.5),
    "fields": lambda: ss.Ising(ss.square(3), 1.0, np.arange(18.0).reshape(2, 9)),
    "labels": lambda: ss.Ising.from_qubo({("a", "b"): -1.0, ("b", "é"): 0.1, (("x", 1), "a"): 2.0}),
    "triangular": lambda: ss.Ising(ss.triangular(4), -1.0),
}


@pytest.fixture(scope="module")
def results() -> dict[str, AnnealResult]:
    return {name: ss.anneal(make(), [3.0, 2.0, 1.0], sweeps=2, replicas=5) for name, make in MODELS.items()}


def test_equal_runs_make_equal_files(do) -> None:
    first, second = do(COMMAND, "a"), do(COMMAND, "b")
    assert contents(first) == contents(second)
    assert first.name == second.name


def test_equal_runs_at_one_instant_make_equal_bytes(do, monkeypatch) -> None:
    monkeypatch.setattr(files, "stamp", lambda: "2026-01-01T00:00:00+00:00")
    first = do(COMMAND, "a")
    assert ss.load(first).attributes["created"].startswith("2026-01-01")
    assert first.read_bytes() == do(COMMAND, "b").read_bytes()


@pytest.mark.parametrize(
    "model",
    [
        "--lattice cubic --size 4 --couplings pm-j --samples 3",
        "--couplings gaussian --size 6",
        "--size 256x4 --couplings pm-j --samples 2",
    ],
)
def test_threads_and_place_change_nothing(do, model) -> None:
    line = f"anneal {model} --steps 5 --sweeps 2 --replicas 300"
    first, second = do(f"{line} --threads 1", "a"), do(f"{line} --threads 3 --device cpu --out here/other.h5", "b")
    assert contents(first, *OWN) == contents(second, *OWN)
    with h5py.File(first) as a, h5py.File(second) as b:
        assert json.loads(a.attrs["config"])["run"]["threads"] == 1
        assert a.attrs["config_sha256"] == b.attrs["config_sha256"]


@pytest.mark.parametrize("flag", ["--seed 6", "--disorder-seed 1", "--start up"])
def test_another_seed_gives_another_trajectory(do, flag) -> None:
    first, second = (ss.load(do(f"{COMMAND} {rest}", folder)) for folder, rest in (("a", ""), ("b", flag)))
    assert not np.array_equal(first.energy, second.energy)
    assert first.attributes["config_sha256"] != second.attributes["config_sha256"]


def test_xarray_opens_every_group(do) -> None:
    path = do(COMMAND)
    dims = {
        "measurements": {
            "energy": ("step", "sample", "replica"),
            "magnetization": ("step", "sample", "replica"),
            "staggered_magnetization": ("step", "sample", "replica"),
        },
        "best": {"energy": ("sample", "replica"), "spins": ("sample", "site")},
        "model": {"edges": ("bond", "end"), "couplings": ("sample", "bond")},
    }
    result = ss.load(path)
    for group, variables in dims.items():
        with xarray.open_dataset(path, group=group, engine="h5netcdf") as data:
            assert {name: variable.dims for name, variable in data.data_vars.items()} == variables
            assert all({"units", "long_name"} <= set(variable.attrs) for variable in data.variables.values())
            if group == "measurements":
                assert np.array_equal(data.energy, result.energy)
                assert data.step.values.tolist() == list(range(12))
                assert data.temperature.dims == ("step",)
    with xarray.open_dataset(path, engine="h5netcdf") as root:
        assert root.attrs["job"] == "anneal"
        assert root.attrs["hamiltonian"].startswith("H = - sum over bonds J")
    assert result.dataset().energy.dims == ("step", "sample", "replica")


@pytest.mark.parametrize("name", MODELS)
def test_save_and_load(results, tmp_path, name) -> None:
    result = results[name]
    path = tmp_path / "new" / "a.h5"
    again = ss.load(result.save(path))
    for field in ("temperature", "energy", "magnetization", "best_energy", "best_spins"):
        kept, back = getattr(result, field), getattr(again, field)
        assert kept.dtype == back.dtype
        assert np.array_equal(kept, back)
    model, back = result.model, again.model
    for field in ("name", "sites", "bonds", "samples", "quantum", "rounded", "offset", "maxcut_weight", "lattice"):
        assert getattr(model, field) == getattr(back, field), field
    assert list(model.labels) == list(back.labels)
    assert model.content_sha256() == back.content_sha256()
    assert np.array_equal(back.energy(again.best_spins[..., None])[:, 0], again.best_energy.min(axis=1))
    assert again.finished
    assert again.attributes | {"created": ""} == result.attributes | {"created": ""}
    assert again.save(tmp_path / "b.h5").read_bytes() == path.read_bytes()


def test_saving_never_overwrites(results, tmp_path) -> None:
    path = results["field"].save(tmp_path / "a.h5")
    before = tree(tmp_path)
    with pytest.raises(ss.InputError, match="exists: give overwrite=True"):
        results["open"].save(path)
    assert tree(tmp_path) == before
    results["open"].save(path, overwrite=True)
    assert ss.load(path).model.name == results["open"].model.name


@pytest.mark.parametrize("at", [0, 1, 7])
def test_an_interrupted_run_is_completed_by_its_command(do, at) -> None:
    whole = do(COMMAND, "whole")
    with pytest.MonkeyPatch.context() as patch:
        at_row(patch, at, interrupt)
        part = do(f"{COMMAND} --checkpoint-every 0", "part", status=130)
    result = ss.load(part)
    assert not result.finished
    assert "finished" not in result.attributes
    assert len(result.energy) <= at
    assert np.array_equal(result.energy, ss.load(whole).energy[: len(result.energy)])
    with pytest.MonkeyPatch.context() as patch:
        at_row(patch, 9, interrupt)  # cut short again
        do(COMMAND, "part", status=130)
    assert len(ss.load(part).energy) >= len(result.energy)
    do(COMMAND, "part")
    assert contents(part, *OWN) == contents(whole, *OWN)


def test_a_finished_file_stays_as_it_is(do, capsys, monkeypatch) -> None:
    path = do(COMMAND)
    before, changed = path.read_bytes(), path.stat().st_mtime_ns
    outcome = run(capsys, monkeypatch, *COMMAND.split())
    assert outcome.status == 0
    assert "already finished" in outcome.out
    do(f"{COMMAND} --threads 2 --quiet")
    assert (path.read_bytes(), path.stat().st_mtime_ns) == (before, changed)
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_the_caller_goes_on_while_a_record_is_written(results, tmp_path, monkeypatch) -> None:
    path, going_on, write = results["open"].save(tmp_path / "a.h5"), threading.Event(), Disk.write

    def late(self: Disk, data: bytes) -> int:
        assert going_on.wait(20)
        return write(self, data)

    before = path.read_bytes()
    with files.open_to_write(path) as file:
        monkeypatch.setattr(Disk, "write", late)
        record = file.record.copy()
        record.attributes["remark"] = "new"
        file.write(record, wait=False)
        assert path.read_bytes() == before
        going_on.set()
        file.flush()
        assert ss.load(path).attributes["remark"] == "new"


def test_a_checkpoint_does_not_say_that_the_run_is_finished(tmp_path, monkeypatch) -> None:
    """The last checkpoint may be written while the run comes to its end."""
    said, write = list[bool](), files.write_into

    def written(disk: Disk, record: Record) -> Any:
        time.sleep(0.05)
        said.append("finished" in record.attributes)
        return write(disk, record)

    monkeypatch.setattr(files, "write_into", written)
    ss.temper(MODELS["samples"](), [1.0, 2.0], 40, 0, measure_every=10, out=tmp_path / "a.h5", checkpoint_every=0)
    assert said[-1]
    assert not any(said[:-1])


RACE = """
import sys, time
from pathlib import Path
import spinsim as ss
model = ss.EdwardsAnderson(ss.cubic(6), samples=4)
result = ss.anneal(model, [2.0], sweeps=1, replicas=10)
print("ready", flush=True)
time.sleep(float(sys.stdin.readline()) - time.time())
for k in range(30):
    try:
        result.save(Path(f"deep/er/{k}.h5"))
        print(k)
    except ss.InputError as error:
        assert "never overwritten" in str(error) or "exists: give overwrite=True" in str(error)
"""


@pytest.mark.system
def test_one_of_two_processes_makes_the_file(tmp_path) -> None:
    pipe = subprocess.PIPE
    racers = [
        subprocess.Popen([sys.executable, "-c", RACE], cwd=tmp_path, stdin=pipe, stdout=pipe, text=True)
        for _ in range(2)
    ]
    for racer in racers:
        assert racer.stdout is not None
        assert racer.stdout.readline() == "ready\n"
    start = f"{time.time() + 0.2}\n"
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write(start)
        racer.stdin.flush()
    made = [list(map(int, racer.communicate(timeout=60)[0].split())) for racer in racers]
    assert [racer.returncode for racer in racers] == [0, 0]
    assert sorted(made[0] + made[1]) == list(range(30))  # each by one of them
    assert sorted(p.name for p in tmp_path.rglob("*.*")) == sorted(f"{k}.h5" for k in range(30))
    for path in tmp_path.rglob("*.h5"):
        assert ss.load(path).energy.shape == (1, 4, 10)


def both(folder: Path, line: str) -> list[int]:
    """Exit statuses of two processes with one command, one of which may find the file in use."""
    outcomes = [finish(process) for process in [spinsim(folder, *line.split()) for _ in range(2)]]
    statuses = sorted(outcome.status for outcome in outcomes)
    assert statuses in ([0, 0], [0, 2]), outcomes
    assert all("both.h5" in outcome.err for outcome in outcomes if outcome.status)
    assert [p.name for p in folder.glob("*")] == ["both.h5"]
    return statuses


@pytest.mark.system
def test_two_processes_with_one_command(tmp_path, do) -> None:
    folder = tmp_path / "both"
    folder.mkdir()
    both(folder, f"{COMMAND} --out both.h5 --quiet --checkpoint-every 0")
    assert contents(folder / "both.h5", *OWN) == contents(do(COMMAND), *OWN)


@pytest.mark.system
def test_two_resumes_at_once(tmp_path, do) -> None:
    whole = do(COMMAND, "whole")
    with pytest.MonkeyPatch.context() as patch:
        at_row(patch, 3, interrupt)
        path = do(f"{COMMAND} --checkpoint-every 0 --out both.h5", "both", status=130)
    both(path.parent, "resume both.h5 --quiet --checkpoint-every 0")
    assert contents(path, *OWN) == contents(whole, *OWN)


KILLED = "anneal --lattice cubic --size 8 --couplings pm-j --steps 1000 --sweeps 80 --replicas 128 --quiet --out k.h5"


def kill_many(tmp_path: Path, do, kills: int) -> list[int]:
    """Kill runs at random moments after their file appeared; the rows that each left, true rows all of them."""
    whole = ss.load(do(KILLED, "whole"))
    random = np.random.default_rng(20)
    left = []
    for k in range(kills):
        folder = tmp_path / f"kill{k}"
        folder.mkdir()
        process = spinsim(folder, *KILLED.split(), "--checkpoint-every", "0.01" if k % 2 else "0")
        while not (folder / "k.h5").exists():
            assert process.poll() is None
            time.sleep(0.002)
        time.sleep(random.uniform(0, 1.5))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        part = ss.load(folder / "k.h5")
        rows = len(part.energy)
        assert np.array_equal(part.energy, whole.energy[:rows])
        assert np.array_equal(part.magnetization, whole.magnetization[:rows])
        left.append(rows)
    do("resume k.h5 --quiet", folder.name)
    assert contents(folder / "k.h5", *OWN) == contents(tmp_path / "whole" / "k.h5", *OWN)
    return left


@pytest.mark.system
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL here")
def test_kill_9(tmp_path, do) -> None:
    left = kill_many(tmp_path, do, 12)
    assert max(left) > 0


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL here")
def test_kill_9_many_times(tmp_path, do) -> None:
    left = kill_many(tmp_path, do, 150)
    assert len(set(left)) > 50
