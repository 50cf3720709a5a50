"""A run knows its file: another one under its path, a changed one, and a longer one are told apart."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import pytest
from harness import Outcome, contents, one_sentence, run

import spinsim as ss
from spinsim import store
from spinsim.machine.files import Disk
from spinsim.run import plan_resume
from spinsim.run.common import to_file

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


def at_row(monkeypatch: pytest.MonkeyPatch, row: int, what: Callable[[], object]) -> None:
    """Do something once, just before a row is written."""
    write, done = store.RunFile.write, []

    def writing(self: store.RunFile, values: dict[str, Any]) -> None:
        if values["step"] == row and not done:
            done.append(row)
            what()
        write(self, values)

    monkeypatch.setattr(store.RunFile, "write", writing)


def interrupt() -> None:
    raise KeyboardInterrupt


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
    finished = store.RunFile.finish

    def finish(self: store.RunFile, *how: bool) -> None:
        finished(self, *how)
        self.path.unlink()

    (tmp_path / "a-1.h5").touch()
    with monkeypatch.context() as patch:
        patch.setattr(store.RunFile, "finish", finish)
        one_sentence(spin(f"{ANNEAL} --out a.h5"), "the finished run is kept in a-2.h5")
    assert spin(f"{ANNEAL} --out whole.h5").status == 0
    assert contents(tmp_path / "a-2.h5", *OWN) == contents(tmp_path / "whole.h5", *OWN)


def test_a_file_that_is_overwritten_is_left_alone(spin, tmp_path) -> None:
    path = tmp_path / "a.h5"
    assert spin("anneal --size 3 --steps 4 --sweeps 1 --replicas 3 --quiet --out other.h5").status == 0
    other = (tmp_path / "other.h5").read_bytes()
    with pytest.MonkeyPatch.context() as patch:
        at_row(patch, 7, lambda: path.write_bytes(other))
        one_sentence(spin(f"{ANNEAL} --checkpoint-every 0 --out a.h5"), "a.h5", "another program has overwritten it")
    assert path.read_bytes() == other


def interrupted(spin, job: str) -> Path:
    with pytest.MonkeyPatch.context() as patch:
        at_row(patch, ROW[job], interrupt)
        assert spin(f"{JOBS[job]} --checkpoint-every 0 --out a.h5").status == 130
    return Path("a.h5")


def negate(file: h5py.File) -> None:
    couplings = file["model/couplings"]
    couplings[0, 1] = -couplings[0, 1]


def flip(file: h5py.File) -> None:
    key = "1," if '"seed":1,' in file.attrs["config"] else "1}"
    assert f'"seed":{key}' in file.attrs["config"]
    file.attrs["config"] = file.attrs["config"].replace(f'"seed":{key}', f'"seed":{key.replace("1", "9")}')


def another_digest(file: h5py.File) -> None:
    file.attrs["config_sha256"] = "0" * 64


DAMAGE = {"anneal": negate, "temper": flip, "transfer": another_digest}
"""Of each job one kind, which the first line takes; all others are slow tests."""


@pytest.mark.parametrize(
    ("job", "damage"),
    [
        pytest.param(job, damage, id=f"{job}-{damage.__name__}", marks=[pytest.mark.slow] * (DAMAGE[job] != damage))
        for job in JOBS
        for damage in (negate, flip, another_digest)
    ],
)
def test_a_file_whose_parts_do_not_belong_together_is_refused(spin, job: str, damage) -> None:
    path = interrupted(spin, job)
    with h5py.File(path, "r+") as file:
        damage(file)
    before = path.read_bytes()
    for options in ("", " --sweeps 400") if job == "temper" else ("",):
        one_sentence(spin(f"resume a.h5{options}"), "a.h5 is damaged")
    refused = one_sentence(spin(f"{JOBS[job]} --out a.h5"), "a.h5")
    assert "remove" not in refused
    assert path.read_bytes() == before


def test_an_instance_is_part_of_the_identity(spin, tmp_path) -> None:
    (tmp_path / "i.txt").write_text("3 2\n1 2 1\n2 3 -1\n")
    line = "anneal i.txt --steps 12 --sweeps 2 --replicas 5 --quiet --checkpoint-every 0 --out a.h5"
    with pytest.MonkeyPatch.context() as patch:
        at_row(patch, 7, interrupt)
        assert spin(line).status == 130
    with h5py.File("a.h5", "r+") as file:
        del file.attrs["model_sha256"]  # as in older files
        negate(file)
    one_sentence(spin("resume a.h5"), "is damaged")


def test_a_run_that_was_made_longer_is_known_by_every_command(spin, tmp_path) -> None:
    assert spin(TEMPER).status == 0
    (path,) = (tmp_path / "runs").iterdir()
    longer, longest = (TEMPER.replace("--sweeps 200", f"--sweeps {sweeps}") for sweeps in (400, 600))
    assert spin(f"resume {path} --sweeps 400 --quiet").status == 0
    assert spin(f"resume {path} --sweeps 600 --quiet").status == 0
    before = path.read_bytes()
    for line in (TEMPER, longer, longest, f"{longer} --out {path}"):
        assert "finished already" in spin(line.replace(" --quiet", "")).out
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
    with store.open_to_append(path) as file:
        assert file.identity()[0]["job"] == "anneal"
