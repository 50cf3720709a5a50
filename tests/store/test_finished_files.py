"""Finished files are packed: small, with checksums, whole whatever happens on the way, and still extendable."""

from __future__ import annotations

import errno
import os
import signal
import stat
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import xarray
from harness import contents, finish, one_sentence, run, spinsim

import spinsim as ss
from spinsim import store
from spinsim.machine.files import Disk, remove_stale

OWN = ("command", "config", "history")
ANNEAL = "anneal --size 4 --couplings pm-j --samples 2 --steps 6 --sweeps 2 --replicas 5 --out a.h5 --quiet"
TEMPER = (
    "temper --size 4 --couplings pm-j --samples 2 --temperatures 1,2,3 --thermalize 10 --sweeps 200 --out a.h5 --quiet"
)
TRANSFER = "transfer --layer square --width 3 --couplings pm-j --samples 2 --k 0.2,0.3 --out a.h5 --device cpu --quiet"
JOBS = {"anneal": ANNEAL, "temper": TEMPER, "transfer": TRANSFER}


def datasets(path: Path) -> dict[str, tuple[Any, ...]]:
    """Filters of every dataset that takes room."""
    found = {}

    def visit(name: str, item: h5py.Group | h5py.Dataset) -> None:
        if isinstance(item, h5py.Dataset) and item.id.get_storage_size():
            found[name] = (item.shape, item.fletcher32, item.compression)

    with h5py.File(path) as file:
        file.visititems(visit)
    return found


@pytest.mark.parametrize("line", JOBS.values(), ids=JOBS)
def test_every_dataset_has_a_checksum(do, line: str) -> None:
    path = do(line)
    for name, (shape, checksum, compression) in datasets(path).items():
        assert checksum or shape == (), name
        assert name.startswith("summary/") or shape in ((), (2,)) or compression == "gzip", name
    with h5py.File(path) as file:
        assert ("checkpoint" in file) == (line is TEMPER)  # from which that one is extended
    found = ss.load(path)
    group = "spectrum" if line is TRANSFER else "measurements"
    with xarray.open_dataset(path, group=group, engine="h5netcdf") as opened:
        xarray.testing.assert_identical(found.dataset(), opened.load())
    assert found.finished


def test_a_flipped_measurement_is_noticed(do) -> None:
    path = do(ANNEAL)
    with h5py.File(path) as file:
        chunk = file["measurements/energy"].id.get_chunk_info(0)
    content = bytearray(path.read_bytes())
    content[chunk.byte_offset + chunk.size // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(ss.InputError, match="damaged"):
        ss.load(path)


def test_an_analysis_is_written_into_a_packed_file_in_place(do, capsys, monkeypatch) -> None:
    path = do(TEMPER)
    before = datasets(path), path.stat().st_size
    assert run(capsys, monkeypatch, "analyze", path).status == 0
    with h5py.File(path) as file:
        assert np.isfinite(file["summary/energy_per_site"][...]).all()
    assert (datasets(path), path.stat().st_size) == before


@pytest.mark.parametrize("line", JOBS.values(), ids=JOBS)
def test_where_nothing_more_can_be_written_the_file_stays_and_is_finished(do, monkeypatch, line: str) -> None:
    def no_room(*arguments: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    packed = do(line)
    with monkeypatch.context() as patch:
        patch.setattr("spinsim.machine.files.os.replace", no_room)
        path = do(line, "b")
    found = ss.load(path)
    assert found.finished
    xarray.testing.assert_equal(found.dataset(), ss.load(packed).dataset())
    assert [p.name for p in path.parent.iterdir()] == ["a.h5"]


def test_a_file_of_two_names_stays_one(do, monkeypatch) -> None:
    create = store.create

    def linked(path: Path, *arguments: Any) -> None:
        create(path, *arguments)
        os.link(path, "second.h5")

    monkeypatch.setattr(store, "create", linked)
    path = do(ANNEAL)
    assert path.with_name("second.h5").samefile(path.with_name("a.h5"))
    assert ss.load(path).finished


KILLED = """
import os, signal
from spinsim.machine import files
replace = os.replace
def killed(*names):
    if not str(names[1]).endswith(".h5"):  # the cache of compiled kernels is written so too
        return replace(*names)
    {0}
    os.kill(os.getpid(), signal.SIGKILL)
files.os.replace = killed
"""


@pytest.mark.system
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL here")
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_kill_9_while_the_packed_file_takes_its_place(do, tmp_path, after: bool) -> None:
    folder = tmp_path / "killed"
    folder.mkdir()
    path = folder / "a.h5"
    line = TEMPER + " --checkpoint-every 0"
    code = KILLED.format("replace(*names)" if after else "pass")
    assert finish(spinsim(folder, *line.split(), code=code)).status == -signal.SIGKILL
    assert ss.load(path).finished == after
    assert len(list(folder.iterdir())) == (1 if after else 2)
    do("resume a.h5 --quiet", "killed")
    assert [p.name for p in folder.iterdir()] == ["a.h5"]
    assert contents(path, *OWN) == contents(do(line), *OWN)


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
    assert run(capsys, monkeypatch, "resume", path, "--sweeps", "220", "--quiet").status == 0
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert len(ss.load(path).sweep) == 22


def test_a_working_directory_that_is_gone(tmp_path, capsys, monkeypatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    for command in ("anneal --size 4 --steps 3", "anneal --size 4 --steps 3 --out a.h5"):
        one_sentence(run(capsys, monkeypatch, *command.split()), "the working directory has been removed: change to")
    monkeypatch.chdir(tmp_path)
