"""Attacks on kernels that are kept on disk: nothing of what others could have written is unpickled, nothing hangs."""

from __future__ import annotations

import hashlib
import os
import pickle
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from attacks import time_limit

from spinsim.cuda import device
from spinsim.machine import stored

pytestmark = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="owners and permissions as POSIX has them")
KERNEL, TYPES = "spinsim.model.graph.any", "float64"
OTHER: Final = 12345  # number of another user
CASES = 30


class Payload:
    """An object that writes a file where it is unpickled."""

    def __init__(self, proof: Path) -> None:
        self.proof = proof

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.proof,)


@pytest.fixture
def shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that everybody writes to, as NUMBA_CACHE_DIR names it."""
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o1777)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "shared"))
    stored._folders.cache_clear()
    yield tmp_path / "shared"
    stored._folders.cache_clear()


def give_away(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a file another user's; who is not root becomes the other user."""
    if os.geteuid() == 0:
        os.chown(path, OTHER, OTHER)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: OTHER)


def by_link(path: Path, target: Path | str) -> None:
    path.unlink()
    path.symlink_to(target)


def by_other(path: Path, make: Callable[[Path], object]) -> None:
    path.unlink()
    make(path)


def moved(path: Path, target: Path) -> None:
    path.rename(target)
    path.symlink_to(target)


def made_huge(path: Path) -> None:
    with open(path, "r+b") as file:
        file.truncate(2**40)


def listening(path: Path) -> None:
    os.chdir(path.parent)  # names of sockets are short
    with socket.socket(socket.AF_UNIX) as end:
        end.bind(path.name)


ON_FILES: Final[dict[str, Callable[[Path], object]]] = {
    "writable by its group": lambda path: path.chmod(0o664),
    "writable by all": lambda path: path.chmod(0o646),
    "a pipe": lambda path: by_other(path, os.mkfifo),
    "a folder": lambda path: by_other(path, os.mkdir),
    "a socket": lambda path: by_other(path, listening),
    "a link to zeros without end": lambda path: by_link(path, "/dev/zero"),
    "a link to a terminal": lambda path: by_link(path, "/dev/tty"),
    "a link to itself": lambda path: by_link(path, path.name),
    "a link to a file": lambda path: moved(path, path.with_name("elsewhere")),
    "of a terabyte": made_huge,
}
ON_FOLDERS: Final[dict[str, Callable[[Path], object]]] = {
    "writable by its group": lambda folder: folder.chmod(0o775),
    "writable by all": lambda folder: folder.chmod(0o757),
    "writable by all, sticky": lambda folder: folder.chmod(0o1777),
    "a link": lambda folder: moved(folder, folder.with_name("moved")),
}


def payload(proof: Path) -> bytes:
    """A file of the form that ``stored`` writes, with the right checksum and stamp, which is an attack."""
    content = pickle.dumps((stored._stamp(KERNEL), Payload(proof)))
    return hashlib.sha256(content).digest() + content


def planted(proof: Path) -> Path:
    """Lay the attack where the kernel is looked for."""
    path = next(stored._paths(KERNEL, TYPES))
    stored.make_folder(path.parent)
    path.write_bytes(payload(proof))
    path.chmod(0o644)
    return path


def is_refused(proof: Path) -> bool:
    with time_limit(5):
        return stored.find(KERNEL, TYPES) is None and not stored.is_there(KERNEL, TYPES) and not proof.exists()


def test_the_attack_works_on_a_file_of_the_user(shared: Path, tmp_path: Path) -> None:
    """The payload would run: tests below refuse it, and nothing else about it."""
    planted(tmp_path / "proof")
    assert stored.is_there(KERNEL, TYPES)
    assert stored.find(KERNEL, TYPES) is None
    assert (tmp_path / "proof").exists()


@pytest.mark.parametrize("what", ["file", "folder"])
def test_of_another_user_nothing_is_unpickled(
    shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    path = planted(tmp_path / "proof")
    give_away(path if what == "file" else path.parent, monkeypatch)
    assert is_refused(tmp_path / "proof")


@pytest.mark.parametrize("name", ON_FILES)
def test_no_such_file_is_unpickled(shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    ON_FILES[name](planted(tmp_path / "proof"))
    assert is_refused(tmp_path / "proof")


@pytest.mark.parametrize("name", ON_FOLDERS)
def test_in_no_such_folder_is_anything_unpickled(shared: Path, tmp_path: Path, name: str) -> None:
    ON_FOLDERS[name](planted(tmp_path / "proof").parent)
    assert is_refused(tmp_path / "proof")


def test_several_attacks_at_once_are_refused(shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1604)
    for case in range(CASES):
        monkeypatch.setenv("NUMBA_CACHE_DIR", str(shared / str(case)))
        stored._folders.cache_clear()
        path = planted(tmp_path / "proof")
        on_file, on_folder = (rng.choice(list(attacks)) for attacks in (ON_FILES, ON_FOLDERS))
        ON_FILES[on_file](path)
        ON_FOLDERS[on_folder](path.parent)
        assert is_refused(tmp_path / "proof"), f"file {on_file}, folder {on_folder}"


def test_of_a_shared_folder_each_user_has_his_own(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What another user has put in the first place keeps nobody from a place of his own there."""
    code = stored.MachineCode("entry", "environment", (), b"", b"")
    first, second = stored._paths(KERNEL, TYPES)
    first.parent.symlink_to(shared)
    stored.keep(KERNEL, TYPES, code)
    assert not first.exists()
    assert stored._read(second, stored._stamp(KERNEL)) == code
    assert second.parent.stat().st_mode & 0o022 == 0
    assert stored.writable_folder() == second.parent


@pytest.mark.parametrize("mode", [0o775, 0o777])
def test_folders_of_ones_own_are_closed_to_others(shared: Path, mode: int) -> None:
    """Earlier versions left the umask what others may do in them."""
    path = next(stored._paths(KERNEL, TYPES))
    path.parent.mkdir()
    path.parent.chmod(mode)
    with pytest.raises(PermissionError):
        stored.make_folder(path.parent)
    stored.keep(KERNEL, TYPES, stored.MachineCode("entry", "environment", (), b"", b""))
    assert stored.is_there(KERNEL, TYPES)
    assert path.parent.stat().st_mode & 0o777 == 0o755


def test_folders_of_others_are_not_mended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "kernels"
    folder.mkdir()
    folder.chmod(0o775)
    give_away(folder, monkeypatch)
    with pytest.raises(PermissionError):
        stored.make_folder(folder, mend=True)
    assert folder.stat().st_mode & 0o777 == 0o775


def test_permissions_are_set_on_what_was_written(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A generous umask gives others nothing to write to."""
    before = os.umask(0)
    try:
        stored.keep(KERNEL, TYPES, stored.MachineCode("entry", "environment", (), b"", b""))
    finally:
        os.umask(before)
    assert stored.is_there(KERNEL, TYPES)


def test_files_of_the_package_may_be_its_owners(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever installed the package for others may keep its kernels, in its folder alone."""
    if os.geteuid():
        pytest.skip("takes files of another user")
    package = tmp_path / "spinsim"
    monkeypatch.setattr(stored, "_ROOT", package)
    for path in (package / "kernels" / "kernel", tmp_path / "cache" / "kernel"):
        path.parent.mkdir(parents=True)
        path.touch()
        for item in (path, path.parent, package):
            os.chown(item, OTHER, OTHER)
    with stored.open_trusted(package / "kernels" / "kernel") as file:
        assert file.read() == b""
    with (
        pytest.raises(PermissionError, match="others can have written it"),
        stored.open_trusted(tmp_path / "cache/kernel"),
    ):
        pass


def test_a_shared_cache_of_cupy_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """CuPy runs what it finds in CUPY_CACHE_DIR and looks at no owner: others must have nothing to write to there."""
    monkeypatch.delenv("CUPY_CACHE_IN_MEMORY", raising=False)
    for mode, in_memory in ((0o755, None), (0o1777, "1")):
        monkeypatch.setenv("CUPY_CACHE_DIR", str(tmp_path / "kernels"))
        device._avoid_shared_cache()
        (tmp_path / "kernels").chmod(mode)
        device._avoid_shared_cache()
        assert os.environ.get("CUPY_CACHE_IN_MEMORY") == in_memory
    monkeypatch.delenv("CUPY_CACHE_IN_MEMORY")


def test_a_linked_cache_of_cupy_is_used_where_it_leads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUPY_CACHE_IN_MEMORY", raising=False)
    (tmp_path / "link").symlink_to(tmp_path / "kernels")
    monkeypatch.setenv("CUPY_CACHE_DIR", str(tmp_path / "link"))
    device._avoid_shared_cache()
    assert "CUPY_CACHE_IN_MEMORY" not in os.environ
    assert os.environ["CUPY_CACHE_DIR"] == str((tmp_path / "kernels").resolve())
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    monkeypatch.setenv("CUPY_CACHE_DIR", str(tmp_path / "circle"))
    device._avoid_shared_cache()
    assert os.environ["CUPY_CACHE_IN_MEMORY"] == "1"
    monkeypatch.delenv("CUPY_CACHE_IN_MEMORY")
