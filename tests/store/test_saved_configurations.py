"""The group /configurations: whole whenever the process is killed, completed, extended, and checked bit by bit."""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from harness import contents, one_sentence, run

import spinsim as ss
from spinsim import store
from spinsim.machine.files import Disk
from spinsim.run.identity import verify

OWN = ("command", "config", "history")
MODEL = "--lattice cubic --size 3 --couplings pm-j --samples 2"
RUNS = {
    "anneal": f"anneal {MODEL} --steps 12 --sweeps 2 --replicas 9 --save-configurations 4",
    "temper": f"temper {MODEL} --temperatures 0.9,1.4,2 --thermalize 4 --sweeps 120 --save-configurations 3",
}


def interrupt(monkeypatch: pytest.MonkeyPatch, at: int) -> None:
    """Ctrl-C just before row ``at`` is written."""
    write = store.RunFile.write

    def stop(self: store.RunFile, row: Mapping[str, Any]) -> None:
        if row["step"] == at:
            raise KeyboardInterrupt
        write(self, row)

    monkeypatch.setattr(store.RunFile, "write", stop)


@pytest.mark.parametrize("at", [3, 4, pytest.param(8, marks=pytest.mark.slow)])
@pytest.mark.parametrize("job", RUNS)
def test_an_interrupted_run_is_completed_with_the_same_bits(do, job, at) -> None:
    whole = do(RUNS[job], "whole")
    with pytest.MonkeyPatch.context() as patch:
        interrupt(patch, at)
        part = do(f"{RUNS[job]} --checkpoint-every 0", "part", status=130)
    saved, every = ss.configurations(part), {"anneal": 4, "temper": 3}[job]
    assert saved.shape[0] == at // every
    np.testing.assert_array_equal(saved[:], ss.configurations(whole)[: len(saved)])
    do(f"{RUNS[job]} --checkpoint-every 0", "part")
    assert contents(part, *OWN) == contents(whole, *OWN)


def test_a_longer_run_saves_on(do, capsys, monkeypatch) -> None:
    """120 sweeps, of which the last saved measurement is not the last one, and 80 more are 200."""
    longer = RUNS["temper"].replace("--sweeps 120", "--sweeps 200").replace("configurations 3", "configurations 5")
    whole = do(longer, "whole")
    part = do(longer.replace("--sweeps 200", "--sweeps 120"), "part")
    assert ss.configurations(part).shape[0] == 2
    assert run(capsys, monkeypatch, "resume", part, "--sweeps", "200", "--quiet").status == 0
    assert contents(part, *OWN) == contents(whole, *OWN)


@pytest.mark.parametrize(
    ("flush", "apart"), [(0.0, 4), (1e9, 1), pytest.param(0.0, 1, marks=pytest.mark.slow)], ids=["often", "once", "all"]
)
def test_a_kill_after_any_write_leaves_whole_rows(tmp_path, monkeypatch, flush, apart) -> None:
    """States that a killed process can leave, after writes so far apart: all of them open and hold true rows."""
    monkeypatch.setattr("spinsim.store.appending._FLUSH_SECONDS", flush)
    model = ss.EdwardsAnderson(ss.cubic(4), samples=2, seed=1)
    how: dict[str, Any] = {"sweeps": 1, "replicas": 20, "save_configurations": 2}
    result = ss.anneal(model, np.linspace(3, 1, 7), **how)
    path, spins = tmp_path / "a.h5", result.configurations[:]
    with monkeypatch.context() as patch:
        for name in ("write", "write_best", "finish"):
            patch.setattr(store.RunFile, name, lambda self, *given: None)
        new = bytearray(result.save(path).read_bytes())
    log: list[tuple[int, bytes]] = []
    write = Disk.write

    def record(self: Disk, data: bytes) -> int:
        at, rest = self.tell(), bytes(data)
        while rest and self.is_at(path):
            length = 4096 - at % 4096  # what the operating system writes whole
            log.append((at, rest[:length]))
            at, rest = at + length, rest[length:]
        return write(self, data)

    with monkeypatch.context() as patch:
        patch.setattr(store, "create", lambda *arguments, **options: None)
        patch.setattr(Disk, "write", record)
        result._write(path)
    seen = set()
    for number, (at, piece) in enumerate(log):
        new[at : at + len(piece)] = piece
        if number % apart and number + 1 < len(log):
            continue
        (tmp_path / "killed.h5").write_bytes(new)
        verify(tmp_path / "killed.h5")  # their checksums are those of the rows
        saved = ss.configurations(tmp_path / "killed.h5")
        np.testing.assert_array_equal(saved[:], spins[: len(saved)])
        seen.add(saved.shape[0])
    assert seen == ({0, 1, 2, 3} if flush == 0 else {0, 3})


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL here")
@pytest.mark.parametrize("job", RUNS)
def test_kill_9(tmp_path, capsys, monkeypatch, job) -> None:
    from test_resume import kill_many

    def do(line: str, out: str) -> Path:
        monkeypatch.chdir(tmp_path)
        assert run(capsys, monkeypatch, *line.split(), "--out", out, "--quiet").status == 0
        return tmp_path / out

    line = RUNS[job].replace("--sweeps 120", "--sweeps 24000").replace("--sweeps 2 ", "--sweeps 20000 ")
    assert kill_many(tmp_path, do, f"{line} --quiet", 15, 1.0) > 5


def change(file: h5py.File, name: str, value: object) -> None:
    """Write a number of a dataset, or an attribute of the group."""
    if name.startswith("@"):
        file["configurations"].attrs[name[1:]] = value
    else:
        data = file["configurations"][name][...]
        data.reshape(-1)[0] ^= value
        file["configurations"][name][...] = data


DAMAGE: dict[str, tuple[Callable[[h5py.File], None], str]] = {
    "a spin": (lambda file: change(file, "spins", 4), "do not have the sums of spins that were measured"),
    "a spare bit": (lambda file: file["configurations/spins"].__setitem__((0, 0, 0, 0, 3), 255), "past the last site"),
    "a sweep": (lambda file: change(file, "sweep", 1), "sweep of its configurations is not that of its measurements"),
    "a row": (lambda file: change(file, "measurement", 1), "not numbered by every so many-th measurement"),
    "every": (lambda file: change(file, "@every", 2), "rows of different numbers though the run is finished"),
    "no every": (lambda file: file["configurations"].attrs.__delitem__("every"), "attribute every of /configurations"),
    "a text": (lambda file: change(file, "@every", "3"), "attribute every of /configurations is no number"),
    "zero": (lambda file: change(file, "@every", 0), "said to be of 27 sites, saved at every 0th row"),
    "sites": (lambda file: change(file, "@sites", 28), "said to be of 28 sites, saved at every 3th row"),
    "a group": (lambda file: file["measurements"].attrs.update({"every": 2}), "attribute every of /measurements"),
    "spins": (lambda file: file.__delitem__("configurations/spins"), "/configurations/spins is missing"),
    "a byte": (lambda file: file.__delitem__("configurations/byte"), "/configurations/byte is missing"),
}


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> bytes:
    path = tmp_path_factory.mktemp("run") / "a.h5"
    model = ss.EdwardsAnderson(ss.cubic(3), samples=2, seed=1)
    ss.temper(model, [0.9, 1.4], sweeps=60, thermalize=4, measure_every=5, save_configurations=3, out=path)
    return path.read_bytes()


@pytest.mark.parametrize("what", DAMAGE)
def test_check_finds_what_does_not_fit(finished, tmp_path, capsys, monkeypatch, what) -> None:
    path = tmp_path / "a.h5"
    path.write_bytes(finished)
    assert run(capsys, monkeypatch, "check", path).status == 0
    damage, words = DAMAGE[what]
    with h5py.File(path, "r+") as file:
        damage(file)
    one_sentence(run(capsys, monkeypatch, "check", path), "a.h5 is damaged", words)
