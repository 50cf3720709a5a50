"""The group /configurations of interrupted, killed and extended runs; ``test_segments.py`` has those of many."""

from __future__ import annotations

import signal
from pathlib import Path

import numpy as np
import pytest
from harness import at_row, contents, interrupt, run

import spinsim as ss

OWN = ("command", "config", "history")
MODEL = "--lattice cubic --size 3 --couplings pm-j --samples 2"
RUNS = {
    "anneal": f"anneal {MODEL} --steps 12 --sweeps 2 --replicas 9 --save-configurations 4",
    "temper": f"temper {MODEL} --temperatures 0.9,1.4,2 --thermalize 4 --sweeps 120 --save-configurations 3",
}


@pytest.mark.parametrize("at", [3, 4, pytest.param(8, marks=pytest.mark.slow)])
@pytest.mark.parametrize("job", RUNS)
def test_an_interrupted_run_is_completed_with_the_same_bits(do, job, at) -> None:
    whole = do(RUNS[job], "whole")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("spinsim.engine.cpu.AT_ONCE", 1)
        at_row(patch, at, interrupt)
        part = do(f"{RUNS[job]} --checkpoint-every 0", "part", status=130)
    saved, every = ss.configurations(part), {"anneal": 4, "temper": 3}[job]
    assert saved.shape[0] in (at // every, (at - 1) // every)
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


def test_configurations_of_a_file_that_has_gone(tmp_path) -> None:
    """They are read when they are used."""
    path = tmp_path / "a.h5"
    result = ss.anneal(ss.Ising(ss.square(4)), [2.0, 1.0], 1, 2, save_configurations=1, out=path)
    found, kept = ss.load(path), result.configurations[:]
    path.rename(tmp_path / "b.h5")
    with pytest.raises(ss.InputError, match=r"a\.h5, which has rows of a run, cannot be read: put it back"):
        found.configurations[0]
    assert np.array_equal(ss.configurations(tmp_path / "b.h5")[:], kept)
