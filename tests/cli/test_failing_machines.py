"""Full disks, files that others hold, folders that take none: one sentence, and nothing is lost."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from harness import contents, finish, one_sentence, run, spinsim, tree

import spinsim as ss
from spinsim.store import files


def test_a_file_that_another_process_has_open(folder: Path) -> None:
    pytest.importorskip("fcntl")
    again = pytest.raises(ss.InputError, match="is open in another process")
    with files.open_to_write(folder / "run.h5"), again, files.open_to_write(folder / "run.h5"):
        pass


def test_no_room_on_the_disk(refuse: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda path: SimpleNamespace(free=1000))
    refuse(["anneal", "--size", "4", "--out", "new/a.h5"], "new/a.h5 needs", "1000 B are free", "another --out")


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OSError(errno.ENOSPC, "No space left on device", "kernels.nbi"), ("kernels.nbi", "No space left on device")),
        (MemoryError("Unable to allocate 9 GiB"), ("memory ran out (Unable to allocate 9 GiB)", "smaller size")),
    ],
)
def test_a_machine_that_fails_elsewhere(
    refuse: Callable[..., str], monkeypatch: pytest.MonkeyPatch, error: Exception, words: tuple[str, ...]
) -> None:
    def fail(*arguments: object, **options: object) -> None:
        raise error

    monkeypatch.setattr("spinsim.jobs.anneal.run.create_engine", fail)
    refuse(["anneal", "--size", "4", "--out", "new/a.h5"], *words)


LIMIT = """
import resource
from spinsim.store import files
from spinsim.run.recording import Recording
import spinsim.engine.cpu as c
c.AT_ONCE = 1
def limited(function, size, when):
    def call(*arguments, **options):
        if when(*arguments):
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
        return function(*arguments, **options)
    return call
"""


LONG = [
    "anneal",
    "--size",
    "6",
    "--couplings",
    "pm-j",
    "--steps",
    "60",
    "--sweeps",
    "1",
    "--replicas",
    "256",
    "--seed",
    "3",
    "--quiet",
]


@pytest.mark.system
@pytest.mark.parametrize("size", [0, 400, 1000, 20_000])
def test_a_disk_that_fills_while_the_file_is_made(folder: Path, size: int) -> None:
    pytest.importorskip("resource")
    before = tree(folder)
    code = f"{LIMIT}\nfiles.begin = limited(files.begin, {size}, lambda *rest: True)"
    outcome = finish(spinsim(folder, *LONG, "--out", "new/a.h5", code=code))
    one_sentence(outcome, "new/a.h5 cannot be written (File too large)", "make room")
    assert tree(folder) == before


@pytest.mark.system
@pytest.mark.parametrize("size", [0, 20_000, 120_000])
def test_a_disk_that_fills_during_the_run(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    pytest.importorskip("resource")
    assert run(capsys, monkeypatch, *LONG, "--out", "whole.h5").status == 0
    whole = ss.load("whole.h5")
    code = f"{LIMIT}\nRecording.write = limited(Recording.write, {size}, lambda self, row: row['step'] == 20)"
    outcome = finish(spinsim(folder, *LONG, "--checkpoint-every", "0", "--out", "part.h5", code=code))
    one_sentence(outcome, "part.h5 cannot be written (File too large)", "make room")
    part = ss.load("part.h5")
    assert not part.finished
    assert 0 < len(part.energy) < 60
    assert not list(folder.glob(".*"))
    assert np.array_equal(part.energy, whole.energy[: len(part.energy)])
    assert np.array_equal(part.magnetization, whole.magnetization[: len(part.energy)])
    assert run(capsys, monkeypatch, *LONG, "--out", "part.h5").status == 0
    own = ("command", "config")  # name the file
    assert contents(folder / "part.h5", *own) == contents(folder / "whole.h5", *own)


@pytest.mark.parametrize(
    ("function", "error", "text"),
    [
        ("tempfile.mkstemp", PermissionError(errno.EACCES, "Permission denied"), "Permission denied"),
        ("pathlib.Path.mkdir", OSError(errno.EROFS, "Read-only file system"), "Read-only file system"),
        ("os.link", OSError(errno.ENOSPC, "No space left on device"), "No space left on device"),
    ],
)
def test_a_folder_that_takes_no_file(
    refuse: Callable[..., str], monkeypatch: pytest.MonkeyPatch, function: str, error: OSError, text: str
) -> None:
    def fail(*arguments: object, **options: object) -> None:
        raise error

    monkeypatch.setattr(function, fail)
    refuse(["anneal", "--size", "4", "--out", "new/a.h5"], f"new/a.h5 cannot be written ({text})", "another --out")


@pytest.mark.skipif(sys.platform == "win32" or getattr(os, "geteuid", lambda: 1)() == 0, reason="root may write")
def test_a_folder_without_permission(refuse: Callable[..., str], folder: Path) -> None:
    (folder / "folder").chmod(0o500)
    refuse(["anneal", "--size", "4", "--out", "folder/a.h5"], "folder/a.h5 cannot be written", "Permission denied")
    (folder / "folder").chmod(0)
    refuse(["anneal", "--size", "4", "--out", "folder/a.h5"], "folder/a.h5 cannot be written", "Permission denied")
