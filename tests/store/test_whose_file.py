"""A run knows its file: another one under its path, a changed one, and a longer one are told apart."""

from __future__ import annotations

import json
import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from harness import Outcome, at_row, contents, interrupt, one_sentence, run

import spinsim as ss
from spinsim.machine.files import Disk
from spinsim.record import Record
from spinsim.run.execute import to_file
from spinsim.run.plan import plan_resume
from spinsim.store import files

OWN = ("command", "config", "history")
ANNEAL = "anneal --size 4 --couplings pm-j --samples 2 --steps 12 --sweeps 2 --replicas 5 --quiet"
TEMPER = "temper --size 4 --couplings pm-j --samples 2 --temperatures 1,2,3 --thermalize 10 --sweeps 200 --quiet"
pytestmark = pytest.mark.system

TRANSFER = "transfer --width 4 --couplings pm-j --samples 2 --k 0.2,0.3 --device cpu --quiet"
JOBS = {"anneal": ANNEAL, "temper": TEMPER, "transfer": TRANSFER}
ROW = {"anneal": 7, "temper": 11, "transfer": 2}


@pytest.fixture
def spin(capsys, monkeypatch, tmp_path) -> Callable[[str], Outcome]:
    """``spinsim`` in ``tmp_path``."""
    monkeypatch.chdir(tmp_path)
    return lambda line: run(capsys, monkeypatch, *line.split())


@pytest.mark.parametrize(("job", "how"), [("anneal", "moved"), ("temper", "removed"), ("transfer", "replaced")])
def test_a_file_that_goes_while_a_run_writes_it_is_kept(spin, tmp_path, job: str, how: str) -> None:
    path, line, other = tmp_path / "a.h5", f"{JOBS[job]} --checkpoint-every 0", b"not mine"

    def go() -> None:
        path.chmod(0o600)
        if how == "moved":
            path.rename(tmp_path / "elsewhere.h5")
        else:
            path.unlink()
        if how == "replaced":
            path.write_bytes(other)

    assert spin(f"{line} --out whole.h5").status == 0
    with pytest.MonkeyPatch.context() as patch:
        at_row(patch, ROW[job], go)
        words = "a.h5 was moved, removed or replaced while a run wrote it", "kept in a-1.h5", "spinsim resume a-1.h5"
        one_sentence(spin(f"{line} --out a.h5"), *words)
    assert path.exists() == (how == "replaced")
    assert how != "replaced" or path.read_bytes() == other
    assert not ss.load("a-1.h5").finished
    assert stat.S_IMODE(Path("a-1.h5").stat().st_mode) == 0o600
    assert spin("resume a-1.h5 --quiet").status == 0
    assert contents(tmp_path / "a-1.h5", *OWN) == contents(tmp_path / "whole.h5", *OWN)


def test_a_file_that_goes_at_the_end_is_kept_as_finished(spin, tmp_path, monkeypatch) -> None:
    write = files.RunFile.write

    def written(self: files.RunFile, record: Record, wait: bool = True, is_last: bool = False) -> None:
        if is_last:
            self.path.unlink()
        write(self, record, wait, is_last)

    (tmp_path / "a-1.h5").touch()
    with monkeypatch.context() as patch:
        patch.setattr(files.RunFile, "write", written)
        one_sentence(spin(f"{ANNEAL} --out a.h5"), "the finished run is kept in a-2.h5")
    assert spin(f"{ANNEAL} --out whole.h5").status == 0
    assert contents(tmp_path / "a-2.h5", *OWN) == contents(tmp_path / "whole.h5", *OWN)


@pytest.fixture(autouse=True)
def _checkpoints(monkeypatch) -> None:
    """There is one between any two rows, where it is asked for."""
    monkeypatch.setattr("spinsim.engine.cpu.AT_ONCE", 1)


def interrupted(spin, job: str) -> Path:
    with pytest.MonkeyPatch.context() as patch:
        at_row(patch, ROW[job], interrupt)
        assert spin(f"{JOBS[job]} --checkpoint-every 0 --out a.h5").status == 130
    return Path("a.h5")


def test_a_folder_that_is_deleted_while_a_run_writes_it(spin, tmp_path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        at_row(patch, 7, lambda: shutil.rmtree(tmp_path / "new"))
        words = "new/a.h5 was moved, removed or replaced while a run wrote it; all of it is kept in new/a-1.h5"
        one_sentence(spin(f"{ANNEAL} --checkpoint-every 0 --out new/a.h5"), words)
    assert spin("resume new/a-1.h5 --quiet").status == 0
    assert spin(f"{ANNEAL} --out whole.h5").status == 0
    assert contents(tmp_path / "new/a-1.h5", *OWN) == contents(tmp_path / "whole.h5", *OWN)
    assert [one.name for one in (tmp_path / "new").iterdir()] == ["a-1.h5"]


def test_the_first_command_of_a_file_that_holds_another_run(spin) -> None:
    interrupted(spin, "anneal")
    before = Path("a.h5").read_bytes()
    for line in (f"{ANNEAL} --seed 2", TEMPER, TRANSFER):
        refused = one_sentence(spin(f"{line} --out a.h5"), "a.h5 holds another run and is never overwritten: choose")
        assert "remove" not in refused
    assert Path("a.h5").read_bytes() == before


def test_a_damaged_file_is_never_overwritten(spin) -> None:
    path = interrupted(spin, "anneal")
    content = bytearray(path.read_bytes())
    content[-1] ^= 1  # nothing that was measured
    path.write_bytes(content)
    for line in (f"{ANNEAL} --out a.h5", "resume a.h5"):
        one_sentence(spin(line), "a.h5 is damaged")
    assert path.read_bytes() == content


def test_a_run_that_was_made_longer_is_known_by_every_command(spin, tmp_path) -> None:
    assert spin(TEMPER).status == 0
    (path,) = (tmp_path / "runs").iterdir()
    longer, longest = (TEMPER.replace("--sweeps 200", f"--sweeps {sweeps}") for sweeps in (400, 600))
    assert spin(f"resume {path} --sweeps 400 --quiet").status == 0
    assert spin(f"resume {path} --sweeps 600 --quiet").status == 0
    before = path.read_bytes()
    for line in (TEMPER, longer, longest, f"{longer} --out {path}"):
        assert "already finished" in spin(line.replace(" --quiet", "")).out
    assert list((tmp_path / "runs").iterdir()) == [path]
    assert path.read_bytes() == before
    shown = spin(f"show {path}").out
    assert shown.count("--sweeps") == 4  # the command, and again in the history
    assert [f"{sweeps} sweeps: spinsim" in shown for sweeps in (200, 400, 600)] == [True] * 3
    refused = one_sentence(spin(f"{TEMPER} --seed 2 --out {path}"), "holds another run")
    assert "remove" not in refused
    assert (
        json.loads(ss.load(path).attributes["history"])[1]["command"] == f"spinsim resume {path} --sweeps 400 --quiet"
    )


def test_the_first_command_completes_what_was_made_longer(spin, tmp_path) -> None:
    interrupted(spin, "temper")
    with pytest.MonkeyPatch.context() as patch:
        at_row(patch, 15, interrupt)
        assert spin("resume a.h5 --sweeps 400 --checkpoint-every 0 --quiet").status == 130
    assert len(ss.load("a.h5").sweep) == 15
    assert spin(f"{TEMPER} --out a.h5").status == 0
    assert spin(f"{TEMPER.replace('200', '400')} --out whole.h5").status == 0
    assert contents(tmp_path / "a.h5", *OWN) == contents(tmp_path / "whole.h5", *OWN)


@pytest.mark.parametrize("first", [400, 800])
def test_of_two_extensions_at_once_the_longer_one_wins(first: int, spin, tmp_path) -> None:
    """Both are planned from the same file; the one that comes second finds the other there, which was interrupted."""
    assert spin(f"{TEMPER} --out a.h5").status == 0
    plans = {sweeps: plan_resume(Path("a.h5"), {"sweeps": sweeps}, {"checkpoint_every": 0.0}) for sweeps in (400, 800)}
    with pytest.MonkeyPatch.context() as patch:
        at_row(patch, 30, interrupt)
        with pytest.raises(KeyboardInterrupt):
            to_file(plans.pop(first))
    before = Path("a.h5").read_bytes()
    ((second, plan),) = plans.items()
    if second < first:
        with pytest.raises(ss.InputError, match=r"a.h5 (holds another run|was changed)"):
            to_file(plan)
        assert Path("a.h5").read_bytes() == before
        assert spin("resume a.h5 --quiet").status == 0
    else:
        to_file(plan)
    assert spin(f"{TEMPER.replace('200', '800')} --out whole.h5").status == 0
    assert contents(tmp_path / "a.h5", *OWN) == contents(tmp_path / "whole.h5", *OWN)


def test_a_file_that_took_the_place_of_another_before_it_was_locked_is_opened(tmp_path, monkeypatch) -> None:
    """Between opening and locking another process may have finished the run."""
    path, new = tmp_path / "a.h5", tmp_path / "b.h5"
    result = ss.anneal(ss.Ising(ss.square(3)), [1.0], sweeps=1, replicas=2)
    for name in (path, new):
        result.save(name)
    lock = Disk.lock

    def late(self: Disk) -> bool:
        if new.exists():
            os.replace(new, path)
        return lock(self)

    monkeypatch.setattr(Disk, "lock", late)
    with files.open_to_write(path) as file:
        assert file.record.attributes["job"] == "anneal"
