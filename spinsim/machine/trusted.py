"""Files that only the user, root or the package's owner can have written: code on disk is read from such files alone.

A folder and a file are opened once, and their owner and permissions are those of what is open: nobody can exchange
either afterwards. Windows has no such owners; it closes the folders of a user to others by itself.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

MOST_BYTES: Final = 2**26  # of a file; the largest kernel has less than a megabyte
_HAS_OWNERS: Final = hasattr(os, "geteuid")
_OTHERS_WRITE: Final = stat.S_IWGRP | stat.S_IWOTH
_PACKAGE: Final = Path(__file__).parents[1]
# neither a link is followed nor a pipe waited for
_FLAGS: Final = os.O_RDONLY | sum(getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_BINARY"))


@contextlib.contextmanager
def open_trusted(path: Path) -> Iterator[BinaryIO]:
    """Open a regular file of sane size that nobody else can have written, in a folder of that kind.

    Raises:
        OSError: where there is none.
    """
    with _folder(path.parent) as folder:
        handle = os.open(path, _FLAGS) if folder is None else os.open(path.name, _FLAGS, dir_fd=folder)
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode) or status.st_size > MOST_BYTES:
            raise PermissionError(errno.EPERM, "no file of a size that is read", str(path))
        _check(path, status)
        with open(handle, "rb", closefd=False) as file:
            yield file
    finally:
        os.close(handle)


def make_folder(folder: Path, mend: bool = False) -> None:
    """Make a folder in which nobody else can write, where it is not there yet.

    Args:
        folder: Path of the folder; parents are made too.
        mend: True closes a folder of the user's own in which others can write, as earlier versions made some. Its
            files must be checked one by one afterwards, since others may have put them there.

    Raises:
        OSError: where it cannot be made, and where others own it or can write in it.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o755)
    with _folder(folder, mend):
        pass


@contextlib.contextmanager
def _folder(folder: Path, mend: bool = False) -> Iterator[int | None]:
    if not _HAS_OWNERS:
        yield None
        return
    handle = os.open(folder, _FLAGS | os.O_DIRECTORY)
    try:
        status = os.fstat(handle)
        if mend and status.st_uid == os.geteuid() and status.st_mode & _OTHERS_WRITE:
            os.fchmod(handle, stat.S_IMODE(status.st_mode) & ~_OTHERS_WRITE)
            status = os.fstat(handle)
        _check(folder, status)
        yield handle
    finally:
        os.close(handle)


def _check(path: Path, status: os.stat_result) -> None:
    """Refuse what others own or can write to.

    Within the package its owner may own files too: byte code that stands there runs as well.
    """
    if not _HAS_OWNERS:
        return
    owners = {0, os.geteuid()}
    if path.is_relative_to(_PACKAGE):
        owners.add(os.stat(__file__).st_uid)
    if status.st_uid not in owners or status.st_mode & _OTHERS_WRITE:
        raise PermissionError(errno.EPERM, "others can have written it", str(path))
