"""Files of runs: equal for equal runs, whole whenever the process is killed, completed and never overwritten."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import xarray
from harness import contents, finish, run, spinsim, tree

import spinsim as ss
from spinsim import store
from spinsim.jobs.anneal.result import AnnealResult, anneal_contents
from spinsim.machine.files import Disk
from spinsim.store import appending, checkpoints

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
}


@pytest.fixture(scope="module")
def results() -> dict[str, AnnealResult]:
    return {name: ss.anneal(make(), [3.0, 2.0, 1.0], sweeps=2, replicas=5) for name, make in MODELS.items()}


def test_equal_runs_make_equal_files(do) -> None:
    first, second = do(COMMAND, "a"), do(COMMAND, "b")
    assert contents(first) == contents(second)
    assert first.name == second.name


def test_equal_runs_at_one_instant_make_equal_bytes(do, monkeypatch) -> None:
    monkeypatch.setattr("spinsim.store.creating.stamp", lambda: "2026-01-01T00:00:00+00:00")
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
        assert root.attrs["schema"] == "spinsim/1"
        assert root.attrs["job"] == "anneal"
        assert root.attrs["hamiltonian"].startswith("H = - sum over bonds J")
    assert result.dataset().energy.dims == ("step", "sample", "replica")


@pytest.mark.parametrize("name", MODELS)
def test_save_and_load(results, tmp_path, name) -> None:
    result = results[name]
    again = ss.load(result.save(tmp_path / "new" / "a.h5"))
    for field in ("temperature", "energy", "magnetization", "best_energy", "best_spins"):
        kept, back = getattr(result, field), getattr(again, field)
        assert kept.dtype == back.dtype
        assert np.array_equal(kept, back)
    model, back = result.model, again.model
    for field in ("name", "sites", "bonds", "samples", "quantum", "rounded", "offset", "maxcut_weight", "lattice"):
        assert getattr(model, field) == getattr(back, field), field
    assert model.content_sha256() == back.content_sha256()
    assert np.array_equal(back.energy(again.best_spins[..., None])[:, 0], again.best_energy.min(axis=1))
    assert again.finished
    assert {k: v for k, v in again.attributes.items() if k in result.attributes and k != "finished"} == {
        k: v for k, v in result.attributes.items() if k != "finished"
    }
    assert contents(again.save(tmp_path / "b.h5")) == contents(tmp_path / "new" / "a.h5")


def test_saving_never_overwrites(results, tmp_path) -> None:
    path = results["field"].save(tmp_path / "a.h5")
    before = tree(tmp_path)
    with pytest.raises(ss.InputError, match="exists: give overwrite=True"):
        results["open"].save(path)
    assert tree(tmp_path) == before


def test_rows_of_many_chunks(results, tmp_path, monkeypatch) -> None:
    whole = results["samples"].save(tmp_path / "a.h5")
    monkeypatch.setattr("spinsim.store.creating._LARGEST_CHUNK_BYTES", 80)  # two samples of five replicas
    monkeypatch.setattr("spinsim.store.finishing._CHUNK_BYTES", 80)
    parts = results["samples"].save(tmp_path / "b.h5")
    with h5py.File(parts) as file:
        assert file["measurements/energy"].chunks[1:] == (2, 5)
    assert np.array_equal(ss.load(parts).energy, ss.load(whole).energy)


def interrupt(monkeypatch: pytest.MonkeyPatch, at: int) -> None:
    """Ctrl-C just before row ``at`` is written."""
    write = store.RunFile.write

    def stop(self: store.RunFile, row: Mapping[str, Any]) -> None:
        if row["step"] == at:
            raise KeyboardInterrupt
        write(self, row)

    monkeypatch.setattr(store.RunFile, "write", stop)


@pytest.mark.parametrize("at", [0, 1, 7])
def test_an_interrupted_run_is_completed_by_its_command(do, at) -> None:
    whole = do(COMMAND, "whole")
    with pytest.MonkeyPatch.context() as patch:
        interrupt(patch, at)
        part = do(COMMAND, "part", status=130)
    result = ss.load(part)
    assert not result.finished
    assert "finished" not in result.attributes
    assert np.array_equal(result.energy, ss.load(whole).energy[:at])
    with pytest.MonkeyPatch.context() as patch:
        interrupt(patch, 3)  # cut short again, in rows that are there already
        do(COMMAND, "part", status=130)
    assert len(ss.load(part).energy) == max(at, 3)
    do(COMMAND, "part")
    assert contents(part) == contents(whole)


def test_a_finished_file_stays_as_it_is(do, capsys, monkeypatch) -> None:
    path = do(COMMAND)
    before, changed = path.read_bytes(), path.stat().st_mtime_ns
    outcome = run(capsys, monkeypatch, *COMMAND.split())
    assert outcome.status == 0
    assert "finished already" in outcome.out
    do(f"{COMMAND} --threads 2 --quiet")
    assert (path.read_bytes(), path.stat().st_mtime_ns) == (before, changed)
    assert [p.name for p in path.parent.iterdir()] == [path.name]


RACE = """
import sys, time
from pathlib import Path
import spinsim as ss
from spinsim import store
from spinsim.jobs.anneal.result import anneal_contents
model = ss.EdwardsAnderson(ss.cubic(6), samples=4)
print("ready", flush=True)
time.sleep(float(sys.stdin.readline()) - time.time())
for k in range(30):
    try:
        store.create(Path(f"deep/er/{k}.h5"), model, anneal_contents(4, 10), 5, {"job": "anneal"}, 10)
        print(k)
    except ss.InputError as error:
        assert "never overwritten" in str(error)
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
        assert ss.load(path).energy.shape == (0, 4, 10)


@pytest.mark.system
def test_two_processes_with_one_command(tmp_path, do) -> None:
    line = f"{COMMAND} --out both.h5 --quiet"
    outcomes = [finish(process) for process in [spinsim(tmp_path, *line.split()) for _ in range(2)]]
    statuses = sorted(outcome.status for outcome in outcomes)
    assert statuses in ([0, 0], [0, 2])
    assert all("both.h5" in outcome.err for outcome in outcomes if outcome.status)
    assert contents(tmp_path / "both.h5", *OWN) == contents(do(COMMAND), *OWN)
    assert [p.name for p in tmp_path.glob("*.*")] == ["both.h5"]


def write_log(monkeypatch: pytest.MonkeyPatch, path: Path) -> list[tuple[int, bytes]]:
    """Record every write to the file of a run, as pieces that the operating system writes whole: parts of one page."""
    log: list[tuple[int, bytes]] = []
    write = Disk.write

    def record(self: Disk, data: bytes) -> int:
        at, rest = self.tell(), bytes(data)
        while rest and self.is_at(path):  # the packed file is another one
            length = 4096 - at % 4096
            log.append((at, rest[:length]))
            at, rest = at + length, rest[length:]
        return write(self, data)

    monkeypatch.setattr(Disk, "write", record)
    return log


@pytest.mark.system
@pytest.mark.parametrize(("model", "flush", "every"), [("samples", 0.0, 7), ("lattice", 0.0, 7), ("fields", 1e9, 3)])
def test_a_kill_after_any_write_leaves_a_sound_file(tmp_path, monkeypatch, model, flush, every) -> None:
    """States that a killed process can leave, one for each write or every few: all open and hold true rows."""
    monkeypatch.setattr("spinsim.store.appending._FLUSH_SECONDS", flush)
    result = ss.anneal(MODELS[model](), np.linspace(3, 1, 16), sweeps=1, replicas=150)
    path = tmp_path / "a.h5"
    with monkeypatch.context() as patch:
        patch.setattr(store.RunFile, "write", lambda self, *row: None)
        patch.setattr(store.RunFile, "write_best", lambda self, *best: None)
        patch.setattr(store.RunFile, "finish", lambda self: None)
        new = bytearray(result.save(path).read_bytes())
    with monkeypatch.context() as patch:
        patch.setattr(store, "create", lambda *arguments, **options: None)
        log = write_log(patch, path)
        result._write(path)  # which ``save`` calls where nothing is there
    seen = []
    for number, (at, piece) in enumerate(log):
        new[at : at + len(piece)] = piece
        if number % every and number + 1 < len(log):
            continue
        (tmp_path / "killed.h5").write_bytes(new)
        killed = ss.load(tmp_path / "killed.h5")
        rows = len(killed.energy)
        assert np.array_equal(killed.energy, result.energy[:rows])
        assert np.array_equal(killed.magnetization, result.magnetization[:rows])
        assert np.array_equal(killed.temperature, result.temperature[:rows])
        assert not killed.finished
        seen.append(rows)
    assert ss.load(path).finished  # as a packed file, which took the place of this one at one stroke
    assert set(seen) == (set(range(17)) if flush == 0 else {0, 16})


@pytest.mark.slow
@pytest.mark.parametrize("model", ["samples", "lattice"])
def test_a_kill_after_each_write_leaves_a_sound_file(tmp_path, monkeypatch, model) -> None:
    test_a_kill_after_any_write_leaves_a_sound_file(tmp_path, monkeypatch, model, 0.0, 1)


def row(step: int) -> dict[str, Any]:
    numbers = np.full((1, 2), step)
    return {"step": step, "temperature": 1.0, "energy": numbers, "magnetization": numbers}


def test_a_row_is_written_while_the_caller_goes_on(tmp_path, monkeypatch) -> None:
    path, going_on, write = tmp_path / "a.h5", threading.Event(), Disk.write

    def late(self: Disk, data: bytes) -> int:
        assert going_on.wait(20)
        return write(self, data)

    store.create(path, ss.Ising(ss.square(4)), anneal_contents(1, 2), 3, {"job": "anneal", "config": "{}"}, 2)
    monkeypatch.setattr("spinsim.store.appending._FLUSH_SECONDS", 0)
    with store.open_to_append(path) as file:
        monkeypatch.setattr(Disk, "write", late)
        file.write(row(0))
        going_on.set()
        file.write(row(1))
        file.write(row(2))
    assert ss.load(path).energy.tolist() == [[[0, 0]], [[1, 1]], [[2, 2]]]


def test_no_row_follows_one_that_could_not_be_written(tmp_path, monkeypatch) -> None:
    path = tmp_path / "a.h5"
    store.create(path, ss.Ising(ss.square(4)), anneal_contents(1, 2), 3, {"job": "anneal", "config": "{}"}, 2)
    monkeypatch.setattr("spinsim.store.appending._FLUSH_SECONDS", 0)

    def write() -> None:
        with store.open_to_append(path) as file:
            for values in (row(0), {"step": 1}, row(2)):
                file.write(values)

    with pytest.raises(KeyError, match="temperature"):
        write()
    assert ss.load(path).energy.tolist() == [[[0, 0]]]


@pytest.mark.parametrize("filler", range(0, 4096, 256))
def test_headers_lie_within_pages(tmp_path, monkeypatch, filler) -> None:
    """A process can be killed between two pages of one write: no header with a checksum may lie in both."""
    rows, path = 1000, tmp_path / "a.h5"
    attributes = {"job": "anneal", "config": "x" * filler}
    store.create(path, ss.Ising(ss.square(4)), anneal_contents(1, 300), rows, attributes, 300)
    written: list[tuple[int, int]] = []
    write = Disk.write

    def record(self: Disk, data: bytes) -> int:
        written.append((self.tell(), len(data)))
        return write(self, data)

    monkeypatch.setattr(Disk, "write", record)
    with store.open_to_append(path) as file:
        ones = np.ones((1, 300))
        file.write({"step": 0, "temperature": 1.0, "energy": ones, "magnetization": ones})
    headers = [(at, length) for at, length in written if length < 1024]  # chunks of rows are longer
    assert len(headers) >= 4
    assert all(at // 4096 == (at + length - 1) // 4096 for at, length in headers)


KILLED = "anneal --lattice cubic --size 8 --couplings pm-j --steps 1000 --sweeps 80 --replicas 128 --quiet --out k.h5"
EVERY_ROW = "from spinsim.store import appending; appending._FLUSH_SECONDS = 0"


def kill_many(tmp_path: Path, do, kills: int) -> list[int]:
    """Kill runs at random moments after their file appeared; the rows that each left, true rows all of them."""
    whole = ss.load(do(KILLED, "whole"))
    random = np.random.default_rng(20)
    left = []
    for k in range(kills):
        folder = tmp_path / f"kill{k}"
        folder.mkdir()
        process = spinsim(folder, *KILLED.split(), code=EVERY_ROW if k % 2 else "")
        while not (folder / "k.h5").exists():
            assert process.poll() is None
            time.sleep(0.002)
        time.sleep(random.uniform(0, 1.5))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        with h5py.File(folder / "k.h5", "r") as file:
            assert file.attrs["schema"] == "spinsim/1"
        part = ss.load(folder / "k.h5")
        rows = len(part.energy)
        assert np.array_equal(part.energy, whole.energy[:rows])
        assert np.array_equal(part.magnetization, whole.magnetization[:rows])
        left.append(rows)
    (folder / "k.h5").rename(tmp_path / "whole" / "last.h5")
    do(KILLED.replace("k.h5", "last.h5"), "whole")
    assert contents(tmp_path / "whole" / "last.h5", *OWN) == contents(tmp_path / "whole" / "k.h5", *OWN)
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
    print(f"{sorted(left)}")  # noqa: T201  (pytest -s shows how far the runs came)


class TestCheckpointsBesideARun:
    """Checkpoints that are written while the run goes on."""

    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        """An unfinished file."""
        path = tmp_path / "a.h5"
        steps = iter(range(9))

        def stop(updates: int) -> None:
            if next(steps) == 3:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            ss.anneal(
                MODELS["samples"](), np.linspace(3, 1, 12), sweeps=2, out=path, checkpoint_every=0, on_updates=stop
            )
        return path

    def test_they_are_written_after_the_rows_before_them(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        go_on, steps = threading.Event(), []
        write, write_rows = checkpoints.write, appending.RunFile._write_rows

        def late(*given: Any) -> None:
            assert go_on.wait(60)
            write(*given)
            steps.append("checkpoint")

        monkeypatch.setattr(checkpoints, "write", late)
        monkeypatch.setattr(appending.RunFile, "_write_rows", lambda *own: (write_rows(*own), steps.append("rows")))
        with store.open_to_append(path) as file:
            saved, _ = file.saved()
            assert saved is not None
            file.save(saved | {"half_sweep": saved["half_sweep"] + 1}, wait=False)
            assert "checkpoint" not in steps
            go_on.set()
            file.flush()
            assert steps[:2] == ["rows", "checkpoint"]
            again, damaged = file.saved()
            assert (again["half_sweep"], damaged) == (saved["half_sweep"] + 1, "")

    @pytest.mark.parametrize(("place", "what"), [(appending.RunFile, "_write_rows"), (checkpoints, "write")])
    def test_an_error_is_raised_by_a_later_call(
        self, path: Path, place: Any, what: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """There is no checkpoint of rows that are not there."""

        def fail(*given: Any) -> None:
            raise OSError("no room")

        def save_and_go_on() -> None:
            with store.open_to_append(path) as file:
                saved, _ = file.saved()
                assert saved is not None
                monkeypatch.setattr(place, what, fail)
                file.save(saved, wait=False)
                file.flush()

        with h5py.File(path) as before:
            serials = before["checkpoint/serial"][...].tolist()
        with pytest.raises(ss.InputError, match="cannot be written"):
            save_and_go_on()
        with h5py.File(path) as after:
            assert after["checkpoint/serial"][...].tolist() == serials
