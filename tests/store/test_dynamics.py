"""The number of the dynamics: runs of another one are read, and never gone on with."""

from __future__ import annotations

from pathlib import Path

import h5py
import pytest
from harness import at_row, interrupt, one_sentence, run

import spinsim as ss
from spinsim import rng
from spinsim.jobs.anneal.settings import Anneal
from spinsim.jobs.transfer.settings import Transfer
from spinsim.settings.shared import RunSettings

LINES = {
    "anneal": "anneal --size 3 --couplings pm-j --samples 2 --steps 8 --sweeps 2 --replicas 4 --quiet --out a.h5",
    "temper": "temper --size 3 --samples 2 --couplings pm-j --temperatures 1,2 --thermalize 10 --sweeps 200 --quiet "
    "--out a.h5",
    "transfer": "transfer --layer chain --width 4 --couplings pm-j --samples 2 --k 0.4:0.5:2 --quiet --out a.h5 "
    "--device cpu",
}
WRONG = "has dynamics 2 and this version of spinsim has dynamics 3, which give other bits: go on with the version that"
TEMPER = LINES["temper"]


@pytest.fixture
def refused(capsys, monkeypatch, tmp_path):
    """A command on ``a.h5`` that is refused and leaves the file as it is."""
    monkeypatch.chdir(tmp_path)

    def command(line: str, *words: str) -> None:
        before = Path("a.h5").read_bytes()
        one_sentence(run(capsys, monkeypatch, *line.split()), *words)
        assert Path("a.h5").read_bytes() == before
        assert [path.name for path in Path().iterdir()] == ["a.h5"]

    return command


def test_every_file_has_it(do) -> None:
    lines = [
        TEMPER,
        "transfer --layer chain --width 4 --quiet --out a.h5",
        "anneal --size 3 --steps 2 --quiet --out a.h5",
    ]
    for k, line in enumerate(lines):
        path = do(line, f"{k}")
        assert ss.load(path).attributes["dynamics"] == str(rng.DYNAMICS)
        with h5py.File(path) as file:
            assert ("checkpoint" in file) == (line == TEMPER)


def test_it_counts_in_the_identity(monkeypatch) -> None:
    """The digests of version 1.0."""
    known = {
        "8343b2faf9184aa950ec5a3fba336272fd8d8592ac16329ce4af5d434b589264": Anneal(run=RunSettings(replicas=128)),
        "99df69b51cb11a82a8c776797f68804710d59b332ffaef79dd765d3e0e5519f8": Transfer(),
    }
    for digest, config in known.items():
        assert config.sha256(None) == digest
        with monkeypatch.context() as patch:
            patch.setattr(rng, "DYNAMICS", 3)
            assert config.sha256(None) != digest


@pytest.mark.parametrize("job", LINES)
def test_a_run_of_other_dynamics_is_not_gone_on_with(do, refused, monkeypatch, job: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        at_row(patch, 3, interrupt)
        path = do(f"{LINES[job]} --checkpoint-every 0", status=130)
    monkeypatch.chdir(path.parent)
    monkeypatch.setattr(rng, "DYNAMICS", 3)
    refused("resume a.h5", f"a.h5 {WRONG}")
    refused(LINES[job], f"a.h5 {WRONG}")
    with pytest.raises(ss.InputError, match=WRONG):
        ss.resume("a.h5")


def test_a_finished_run_of_other_dynamics_is_not_extended_or_taken_for_this_one(do, refused, monkeypatch) -> None:
    path = do(TEMPER)
    monkeypatch.chdir(path.parent)
    monkeypatch.setattr(rng, "DYNAMICS", 3)
    for line in ("resume a.h5 --sweeps 400", "resume a.h5", TEMPER):
        refused(line, f"a.h5 {WRONG}")


def test_a_file_of_later_dynamics(do, refused, monkeypatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(rng, "DYNAMICS", 3)
        path = do(TEMPER)
    monkeypatch.chdir(path.parent)
    for line in ("resume a.h5 --sweeps 400", TEMPER):
        refused(line, "a.h5 has dynamics 3 and this version of spinsim has dynamics 2")


@pytest.mark.parametrize("job", LINES)
def test_runs_of_other_dynamics_can_be_read(do, capsys, monkeypatch, job: str) -> None:
    path = do(LINES[job])
    monkeypatch.setattr(rng, "DYNAMICS", 3)
    of_series = [f"analyze {path}", f"plot {path} --what overlap"] if job == "temper" else []
    for line in (f"show {path}", f"check {path}", *of_series):
        outcome = run(capsys, monkeypatch, *line.split())
        assert outcome.status == 0, outcome
    assert ss.load(path).finished
