"""Files that another process writes can be looked at: their rows are those of the final file."""

from __future__ import annotations

import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from harness import finish, run, spinsim

import spinsim as ss
from spinsim import store
from spinsim.jobs.temper.report import overview

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
    monkeypatch.setattr("spinsim.store.reading._WAIT", 0.001)
    line = f"{RUNS[job]} --checkpoint-every 0.05 --threads 1 --quiet --out {path}"
    process = spinsim(tmp_path, *line.split(), code="import spinsim.store.appending as a; a._FLUSH_SECONDS = 0.01")
    try:
        while not path.exists() or not len(ss.load(path).energy):
            assert process.poll() is None, process.communicate()
            time.sleep(0.05)
        seen = looks(path)
        shown, checked = (run(capsys, monkeypatch, command, path) for command in ("show", "check"))
        if job == "temper":
            analyzed = run(capsys, monkeypatch, "analyze", path)
            assert (analyzed.status, "/summary is left as" in analyzed.out) == (0, True), analyzed
            assert overview(path).steps >= len(seen[-1].energy)
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
    with store.open_to_read(path) as file, store.open_to_append(path) as writer:
        writer.write_best(np.zeros((1, 2)), np.ones((1, 16), np.int8))
        writer.flush()
        assert len(file["measurements/energy"]) == 2
    assert not ss.load(path).best_energy.any()
