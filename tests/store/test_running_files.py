"""Files that another process writes can be looked at: their rows are those of the final file."""

from __future__ import annotations

import signal
import time
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from harness import at_row, finish, run, spinsim
from typer.testing import CliRunner

import spinsim as ss
from spinsim.cli import app
from spinsim.store import files

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="locks and signals as POSIX has them")
SECONDS = 1.5
RUNS = {
    "anneal": "anneal --lattice cubic --size 4 --couplings pm-j --samples 2 --replicas 70 --steps 200000 --sweeps 3",
    "temper": "temper --lattice cubic --size 4 --couplings pm-j --samples 2 --temperatures 0.8:2:6 --thermalize 10 "
    "--sweeps 90000000 --measure-every 30",
}
SERIES = {
    "anneal": ("temperature", "energy", "magnetization"),
    "temper": ("sweep", "energy", "magnetization", "overlap", "link_overlap", "overlap_mode", "permutation"),
}


BEGUN = {
    "anneal": "anneal --size 2 --replicas 4 --steps 6 --sweeps 2",
    "search": "anneal --size 2 --replicas 4 --steps 6 --sweeps 2 --anneals 2",
    "temper": "temper --size 2 --temperatures 0.9:2:3 --thermalize 4 --sweeps 160 --save-configurations 2",
    "sums": "temper --size 2 --temperatures 0.9:2:3 --thermalize 4 --sweeps 160",
    "quantum": "quantum --size 2 --slices 4 --k 0.3,0.4 --thermalize 4 --sweeps 160",
    "transfer": "transfer --layer chain --width 4 --k 0.4:0.5:2 --device cpu",
}


def looks(path: Path) -> list[Any]:
    """What readers see within a second or two; none may fail."""
    found, end = [], time.monotonic() + SECONDS
    while time.monotonic() < end:
        found.append(ss.load(path))
    return found


@pytest.mark.system
@pytest.mark.parametrize("job", RUNS)
def test_a_running_file_can_be_looked_at(tmp_path, job, capsys, monkeypatch) -> None:
    path = tmp_path / "a.h5"
    line = f"{RUNS[job]} --checkpoint-every 0.05 --threads 1 --quiet --out {path}"
    process = spinsim(tmp_path, *line.split())
    try:
        while not path.exists() or not len(ss.load(path).energy):
            assert process.poll() is None, process.communicate()
            time.sleep(0.05)
        seen = looks(path)
        shown, checked = (run(capsys, monkeypatch, command, path) for command in ("show", "check"))
        if job == "temper":
            analyzed = run(capsys, monkeypatch, "analyze", path)
            assert (analyzed.status, "/summary is left as" in analyzed.out) == (0, True), analyzed
    finally:
        process.send_signal(signal.SIGINT)
        assert finish(process).status == 130
    assert (shown.status, "another process is at it" in shown.out) == (0, True), shown
    assert (checked.status, "another process writes it" in checked.out) == (0, True), checked
    final, lengths = ss.load(path), [len(result.energy) for result in seen]
    assert lengths == sorted(lengths)
    assert lengths[0] < lengths[-1]
    for result in seen:
        for name in SERIES[job]:
            then, now = getattr(result, name), getattr(final, name)
            assert np.array_equal(then, now[: len(then)]), name
        if result.best_energy is not None and np.isfinite(result.best_energy).all():
            lowest = result.model.energy(result.best_spins[..., None])[:, 0]
            assert np.array_equal(lowest, result.best_energy.min(axis=1))
        if job == "temper":
            assert (result.accepts <= result.attempts).all()
            assert (result.attempts <= final.attempts).all()


def test_readers_hold_no_lock(tmp_path) -> None:
    path = ss.anneal(ss.Ising(ss.square(4)), [2.0, 1.0], sweeps=1, replicas=2).save(tmp_path / "a.h5")
    with h5py.File(path, "r", locking=False) as file, files.open_to_write(path) as writer:
        found = ss.load(path)
        writer.write(writer.record.replaced({"best/energy": np.zeros((1, 2))}))
        assert len(file["measurements/energy"]) == 2
        assert not ss.load(path).best_energy.any()
        assert found.best_energy.any()
    assert not ss.load(path).best_energy.any()


@pytest.mark.parametrize("job", BEGUN)
def test_a_file_can_be_looked_at_before_its_first_checkpoint(tmp_path, capsys, monkeypatch, job) -> None:
    """It has a model, and no rows yet."""
    path, seen = tmp_path / "a.h5", []

    def look() -> None:
        seen.append((ss.load(path), run_of(capsys, "check", path), run_of(capsys, "show", path)))
        raise KeyboardInterrupt

    at_row(monkeypatch, 0, look)
    assert run(capsys, monkeypatch, *BEGUN[job].split(), "--quiet", "--out", path).status == 130
    ((found, checked, shown),) = seen
    assert not found.finished
    assert found.model.samples == 1
    assert checked == (0, f"{path}: whole, another process writes it: 0 rows\n")
    assert shown[0] == 0
    assert "another process is at it" in shown[1]


def run_of(capsys: pytest.CaptureFixture[str], command: str, path: Path) -> tuple[int, str]:
    """A command within another one."""
    capsys.readouterr()
    outcome = CliRunner().invoke(app, [command, str(path)])
    return outcome.exit_code, outcome.output
