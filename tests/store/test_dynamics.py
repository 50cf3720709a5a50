"""The number of the dynamics: runs of another one are read, and never gone on with."""

from __future__ import annotations

from pathlib import Path

import h5py
import pytest
from damage import small_file
from harness import one_sentence, run

import spinsim as ss
from spinsim import rng
from spinsim.jobs.anneal.settings import Anneal
from spinsim.jobs.transfer.settings import Transfer
from spinsim.settings.shared import RunSettings

UNFINISHED = ["unfinished-anneal", "unfinished-temper", "unfinished-transfer"]
WRONG = "has dynamics 1 and this version of spinsim has dynamics 2, which give other bits: go on with the version that"
TEMPER = (
    "temper --size 3 --samples 2 --couplings pm-j --temperatures 1,2 --thermalize 10 --sweeps 200 --quiet --out a.h5"
)


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


def test_every_file_and_checkpoint_has_it(do) -> None:
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
            if line == TEMPER:
                assert file["checkpoint"].attrs["dynamics"] == rng.DYNAMICS


def test_it_counts_in_the_identity(monkeypatch) -> None:
    """Dynamics 1 are the ones from before there was a number, with the same digests."""
    known = {
        "724347a4c2c40c683ccfa94ea4a1b865871a24b75aac67bcf7617ce7efa2cee1": Anneal(run=RunSettings(replicas=128)),
        "3fff1084c06371d0fc7962563b770165903da6df99ec523a76e3321308440131": Transfer(),
    }
    for digest, config in known.items():
        assert config.sha256(None) == digest
        with monkeypatch.context() as patch:
            patch.setattr(rng, "DYNAMICS", 2)
            assert config.sha256(None) != digest


@pytest.mark.parametrize("name", UNFINISHED)
def test_a_run_of_other_dynamics_is_not_gone_on_with(refused, monkeypatch, name: str) -> None:
    Path("a.h5").write_bytes(small_file(f"packed/{name}"))
    command = ss.load("a.h5").attributes["command"].split(maxsplit=1)[1]
    monkeypatch.setattr(rng, "DYNAMICS", 2)
    refused("resume a.h5", f"a.h5 {WRONG}")
    refused(command.replace(f"{name}.h5", "a.h5"), f"a.h5 {WRONG}")
    with pytest.raises(ss.InputError, match=WRONG):
        ss.resume("a.h5")


def test_a_finished_run_of_other_dynamics_is_not_extended_or_taken_for_this_one(do, refused, monkeypatch) -> None:
    path = do(TEMPER)
    monkeypatch.chdir(path.parent)
    monkeypatch.setattr(rng, "DYNAMICS", 2)
    for line in ("resume a.h5 --sweeps 400", "resume a.h5", TEMPER):
        refused(line, f"a.h5 {WRONG}")


def test_a_file_of_later_dynamics(do, refused, monkeypatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(rng, "DYNAMICS", 3)
        path = do(TEMPER)
    monkeypatch.chdir(path.parent)
    for line in ("resume a.h5 --sweeps 400", TEMPER):
        refused(line, "a.h5 has dynamics 3 and this version of spinsim has dynamics 1")


def test_a_checkpoint_of_other_dynamics_is_not_gone_on_with(do, refused, monkeypatch) -> None:
    path = do(TEMPER)
    monkeypatch.chdir(path.parent)
    with h5py.File("a.h5", "r+") as file:
        file["checkpoint"].attrs["dynamics"] = 2
    refused("resume a.h5 --sweeps 400", "the checkpoint of a.h5 has dynamics 2 and this version")


@pytest.mark.parametrize("bonds", [[(k, -1) for k in range(2, 35)], [(2, -1), (3, 2)]], ids=["hub", "units"])
def test_a_graph_that_was_updated_unpacked_is_not_gone_on_with(do, refused, monkeypatch, bonds) -> None:
    line = "temper star.txt --temperatures 1,2 --thermalize 10 --sweeps 100 --quiet --out a.h5"
    star = Path("star.txt").absolute()  # do's folder is made from the name of the run
    star.write_text(f"34 {len(bonds)}\n" + "".join(f"1 {k} {weight}\n" for k, weight in bonds))
    line = line.replace("star.txt", str(star))
    path = do(line)
    monkeypatch.chdir(path.parent)
    with h5py.File("a.h5", "r+") as file:
        assert file.attrs["engine"] == "cpu, replica-packed"
        file.attrs["engine"] = "cpu, unpacked"
    do(line)  # what is finished stays so
    refused("resume a.h5 --sweeps 200", "a.h5 is of an earlier version of spinsim, which updated such graphs unpacked")


def test_nor_is_one_in_a_field_that_changes(tmp_path) -> None:
    """Where the field is 0 such a model has another update than it had."""

    def interrupt(updates: int) -> None:
        if updates:
            raise KeyboardInterrupt

    path, model = tmp_path / "a.h5", ss.Ising(ss.Graph(3, [(0, 1), (1, 2)]), [1.0, 2.0], field=[1.0, 0.0, -1.0])
    with pytest.raises(KeyboardInterrupt):
        ss.anneal(model, [2, 1, 1], 2, 4, field=[1, 0, 0], out=path, on_updates=interrupt, checkpoint_every=0)
    with h5py.File(path, "r+") as file:
        assert file.attrs["engine"] == "cpu, replica-packed"
        file.attrs["engine"] = "cpu, unpacked"
    with pytest.raises(ss.InputError, match="which updated such graphs unpacked"):
        ss.resume(path)


@pytest.mark.parametrize("name", ["anneal", "temper", "transfer", *UNFINISHED])
def test_runs_of_other_dynamics_can_be_read(capsys, monkeypatch, tmp_path, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.h5").write_bytes(small_file(f"packed/{name}"))
    monkeypatch.setattr(rng, "DYNAMICS", 2)
    of_series = ["analyze a.h5", "plot a.h5 --what overlap"] if name == "temper" else []
    for line in ("show a.h5", "check a.h5", *of_series):
        outcome = run(capsys, monkeypatch, *line.split())
        assert outcome.status == 0, outcome
    assert ss.load("a.h5").finished == (name not in UNFINISHED)


@pytest.mark.parametrize("value", ["two", "", "-1"])
def test_a_number_that_is_none(do, refused, monkeypatch, value: str) -> None:
    path = do(TEMPER)
    monkeypatch.chdir(path.parent)
    with h5py.File("a.h5", "r+") as file:
        file.attrs["dynamics"] = value
    refused("resume a.h5", "a.h5 is damaged, its attribute dynamics is no whole number")
