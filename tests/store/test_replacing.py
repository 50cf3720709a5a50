"""A record takes the place of the one before at one stroke: kills, full disks, permissions, links, files of others."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import stat
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import xarray
from harness import contents, finish, one_sentence, run, spinsim

import spinsim as ss
from spinsim.machine.files import Disk, remove_stale
from spinsim.store import files

OWN = ("command", "config", "history")
ANNEAL = "anneal --size 4 --couplings pm-j --samples 2 --steps 6 --sweeps 2 --replicas 5 --out a.h5 --quiet"
TEMPER = (
    "temper --size 4 --couplings pm-j --samples 2 --temperatures 1,2,3 --thermalize 10 --sweeps 200 --out a.h5 --quiet"
)
TRANSFER = "transfer --layer square --width 3 --couplings pm-j --samples 2 --k 0.2,0.3 --out a.h5 --device cpu --quiet"
JOBS = {"anneal": ANNEAL, "temper": TEMPER, "transfer": TRANSFER}


@pytest.mark.parametrize("line", JOBS.values(), ids=JOBS)
def test_where_nothing_more_can_be_written_the_file_stays(do, capsys, monkeypatch, tmp_path, line: str) -> None:
    """The run is not finished then, and the same command completes it."""

    def no_room(*arguments: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    whole, folder = do(line), tmp_path / "b"
    folder.mkdir()
    monkeypatch.chdir(folder)
    with monkeypatch.context() as patch:
        patch.setattr("spinsim.machine.files.os.replace", no_room)
        refused = run(capsys, monkeypatch, *line.split())
        one_sentence(refused, "a.h5 cannot be written (No space left on device)", "make room")
    assert [p.name for p in folder.iterdir()] == ["a.h5"]
    assert not ss.load("a.h5").finished
    do(line, "b")
    assert contents(folder / "a.h5", *OWN) == contents(whole, *OWN)


def test_a_link_to_a_file_elsewhere_stays_one(tmp_path) -> None:
    result = ss.anneal(ss.Ising(ss.square(4)), [2.0, 1.0], sweeps=1, replicas=2)
    (tmp_path / "far").mkdir()
    far, link = result.save(tmp_path / "far" / "b.h5"), tmp_path / "a.h5"
    link.symlink_to(far)
    with files.open_to_write(link) as file:
        record = file.record.copy()
        record.attributes["remark"] = "new"
        file.write(record)
    assert link.is_symlink()
    assert ss.load(far).attributes["remark"] == "new"
    assert [one.name for one in far.parent.iterdir()] == ["b.h5"]


KILLED = """
import os, signal
from spinsim.machine import files
replace, calls = os.replace, []
def killed(*names):
    if not str(names[1]).endswith(".h5"):  # the cache of compiled kernels is written so too
        return replace(*names)
    calls.append(0)
    if len(calls) < {0}:
        return replace(*names)
    {1}
    os.kill(os.getpid(), signal.SIGKILL)
files.os.replace = killed
"""


@pytest.mark.system
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL here")
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("number", [1, 4])
def test_kill_9_while_a_file_takes_its_place(do, tmp_path, number: int, after: bool) -> None:
    folder = tmp_path / "killed"
    folder.mkdir()
    path = folder / "a.h5"
    line = TEMPER + " --checkpoint-every 0"
    killed = KILLED.format(number, "replace(*names)" if after else "0")
    code = f"import spinsim.engine.cpu as c; c.AT_ONCE = 1\n{killed}"
    assert finish(spinsim(folder, *line.split(), code=code)).status == -signal.SIGKILL
    assert not ss.load(path).finished
    assert len(list(folder.iterdir())) == (1 if after else 2)
    do("resume a.h5 --quiet", "killed")
    assert [p.name for p in folder.iterdir()] == ["a.h5"]
    assert contents(path, *OWN) == contents(do(line), *OWN)


@pytest.mark.system
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL here")
@pytest.mark.parametrize("at", [0, 700, 5000, 20_000])
def test_kill_9_while_a_file_is_written(do, tmp_path, at: int) -> None:
    """After so many bytes of the third record, a large one that is written piece by piece."""
    folder = tmp_path / "killed"
    folder.mkdir()
    code = f"""
import os, signal
import spinsim.engine.cpu as c
from spinsim.machine.files import Disk
from spinsim.store import files
c.AT_ONCE, files._IN_MEMORY = 1, 0
write, begun = Disk.write, {{}}
def killed(self, data):
    begun.setdefault(id(self), 0)
    begun[id(self)] += len(bytes(data))
    if len(begun) >= 3 and begun[id(self)] > {at}:
        os.kill(os.getpid(), signal.SIGKILL)
    return write(self, data)
Disk.write = killed
"""
    line = TEMPER + " --checkpoint-every 0"
    assert finish(spinsim(folder, *line.split(), code=code)).status == -signal.SIGKILL
    assert not ss.load(folder / "a.h5").finished
    do("resume a.h5 --quiet", "killed")
    assert [p.name for p in folder.iterdir()] == ["a.h5"]
    assert contents(folder / "a.h5", *OWN) == contents(do(line), *OWN)


OTHERS = (
    "a.h5", ".b.h5-12345678.spinsim-part", "a.h5-12345678.spinsim-part", ".a.h5-note", ".a.h5-notes.part",
    ".a.h5-my_notes.part", ".a.h5-notes.spinsim-part",
)  # fmt: skip


def test_hidden_files_of_living_processes_are_left_alone(tmp_path) -> None:
    pytest.importorskip("fcntl")
    hidden = tmp_path / ".a.h5-12345678.spinsim-part"
    others = [tmp_path / name for name in OTHERS]
    for path in [hidden, *others]:
        path.touch()
    with Disk(hidden, "r+") as disk:
        disk.lock()
        remove_stale(tmp_path, "a.h5")
        assert hidden.exists()
    remove_stale(tmp_path, "a.h5")
    assert sorted(tmp_path.iterdir()) == sorted(others)


def test_permissions_are_kept(do, capsys, monkeypatch) -> None:
    umask = os.umask(0o077)
    try:
        path = do(TEMPER)
    finally:
        os.umask(umask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.chmod(0o640)
    assert run(capsys, monkeypatch, "resume", path, "--sweeps", "220", "--quiet").status == 0
    assert run(capsys, monkeypatch, "analyze", path).status == 0
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert len(ss.load(path).sweep) == 22


def test_an_analysis_replaces_the_file_and_nothing_else_in_it(do, capsys, monkeypatch) -> None:
    path = do(TEMPER + " --save-configurations 2")
    before = ss.load(path)
    kept = before.configurations[:]
    assert run(capsys, monkeypatch, "analyze", path).status == 0
    after = ss.load(path)
    assert {*after.record.groups} - {*before.record.groups} == {"summary"}
    xarray.testing.assert_identical(after.dataset(), before.dataset())
    assert (after.configurations[:] == kept).all()
    assert kept.any()
    assert run(capsys, monkeypatch, "check", path).out == f"{path}: whole, finished: 20 rows\n"


WITHOUT_RIGHTS = """
import ctypes, os
if os.geteuid() == 0:  # root heeds permissions then
    header, rights = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
    ctypes.CDLL(None).capget(header, rights)
    for kind in (0, 1):
        rights[kind] &= ~0b1110
    assert ctypes.CDLL(None).capset(header, rights) == 0
"""


@pytest.fixture(params=["temper", "configurations"])
def locked(request, do) -> Iterator[Path]:
    """A file of mode 444 in a folder of mode 555."""
    path = do(TEMPER.replace("--sweeps 200", "--sweeps 400") + " --save-configurations 1" * (request.param != "temper"))
    folder = Path(tempfile.mkdtemp())
    shutil.copy(path, folder / "a.h5")
    (folder / "a.h5").chmod(0o444)
    folder.chmod(0o555)
    yield folder / "a.h5"
    folder.chmod(0o755)
    shutil.rmtree(folder)


@pytest.mark.system
@pytest.mark.skipif(sys.platform != "linux", reason="users as Linux has them")
@pytest.mark.parametrize("line", ["show a.h5", "check a.h5", "analyze a.h5", "plot a.h5 --what overlap --out {}/o.pdf"])
def test_files_that_may_only_be_read(locked, line: str) -> None:
    """Root, who may write all, gives its rights up first."""
    out = Path(tempfile.mkdtemp())
    out.chmod(0o777)
    before = locked.read_bytes()
    outcome = finish(spinsim(locked.parent, *line.format(out).split(), code=WITHOUT_RIGHTS))
    assert outcome.status == 0, outcome
    told = "the file cannot be written here, so its /summary is left as it is"
    assert (told in " ".join(outcome.out.split())) == line.startswith("analyze")
    assert locked.read_bytes() == before
    assert [one.name for one in locked.parent.iterdir()] == ["a.h5"]
    shutil.rmtree(out)


@pytest.mark.system
@pytest.mark.skipif(sys.platform != "linux", reason="users as Linux has them")
def test_a_run_in_a_file_that_may_only_be_read_is_not_gone_on_with(locked) -> None:
    outcome = finish(spinsim(locked.parent, "resume", "a.h5", "--sweeps", "500", code=WITHOUT_RIGHTS))
    one_sentence(outcome, "a.h5 cannot be written (Permission denied)")


def test_a_working_directory_that_is_gone(tmp_path, capsys, monkeypatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    for command in ("anneal --size 4 --steps 3", "anneal --size 4 --steps 3 --out a.h5"):
        one_sentence(run(capsys, monkeypatch, *command.split()), "the working directory has been removed: change to")
    monkeypatch.chdir(tmp_path)


def test_writing_beside_a_file_fails_without_a_trace(tmp_path, monkeypatch) -> None:
    """Every function of the operating system may fail; the file stays, and nothing lies beside it."""
    path = ss.anneal(ss.Ising(ss.square(4)), [2.0, 1.0], sweeps=1, replicas=2).save(tmp_path / "a.h5")
    before = path.read_bytes()

    def fail(*arguments: Any, **options: Any) -> None:
        raise OSError(errno.EIO, "Input/output error")

    for name in ("os.replace", "os.chmod", "os.fsync", "tempfile.mkstemp"):
        with monkeypatch.context() as patch:
            patch.setattr(f"spinsim.machine.files.{name}", fail)
            with pytest.raises(ss.InputError, match=r"a\.h5 cannot be written \(Input/output error\)"):
                files.replace(path, ss.load(path).record)
        assert path.read_bytes() == before, name
        assert [one.name for one in tmp_path.iterdir()] == ["a.h5"], name
