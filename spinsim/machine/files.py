"""Files that appear complete or not at all and never replace other files; one-sentence errors."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import re
import stat
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from spinsim.errors import InputError, WrongTypeError, another_path, argument

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None  # type: ignore[assignment]

_PART: Final = ".spinsim-part"
_RANDOM: Final = "[a-z0-9_]{8}"  # pattern of the random characters that tempfile inserts
NO_DIRECTORY: Final = "the working directory has been removed: change to another one"


class Disk(io.FileIO):
    """A file for h5py that keeps its first error for ``check`` and writes nothing after it.

    HDF5 does not survive an error when it closes a file (seen: a crash at the interpreter's end). After an error, the
    file is left as if its process had been killed. ``write`` must not run in the main thread: Ctrl-C would raise its
    exception there, inside HDF5.
    """

    _failure: OSError | None = None

    def write(self, data: Any) -> int:
        """Write everything, or nothing after the first error."""
        rest = memoryview(data).cast("B")
        size = len(rest)
        try:
            while len(rest) and not self._failure:
                rest = rest[super().write(rest) :]
        except OSError as error:
            self._failure = error
        return size

    def truncate(self, size: int | None = None) -> int:
        """Set the length, unless there was an error."""
        try:
            return size or 0 if self._failure else super().truncate(size)
        except OSError as error:
            self._failure = self._failure or error
            return size or 0

    def sync(self) -> None:
        try:
            os.fsync(self.fileno())
        except OSError as error:
            self._failure = self._failure or error

    def lock(self) -> bool:
        """Lock the file exclusively, as HDF5 does; False if the system has no locks.

        Raises:
            BlockingIOError: if another process has it open.
        """
        if fcntl is not None:
            try:
                fcntl.flock(self, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                if isinstance(error, BlockingIOError):
                    raise  # other errors mean that this file system has no locks
            else:
                return True
        return False

    def again(self) -> Disk:
        """Open the same file a second time; both share the lock."""
        return Disk(os.dup(self.fileno()), "r+")

    @property
    def mode_bits(self) -> int:
        return stat.S_IMODE(os.fstat(self.fileno()).st_mode)

    def is_at(self, path: str | os.PathLike[str]) -> bool:
        try:
            return os.path.samestat(os.stat(path), os.fstat(self.fileno()))
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError:  # a server that does not answer leaves it unknown
            return True

    def check(self) -> None:
        if self._failure:
            raise self._failure


def is_locked(path: str | os.PathLike[str]) -> bool:
    """True if a process is writing a file at this moment, and therefore has locked it."""
    with contextlib.suppress(OSError), open(path, "rb") as file:
        try:
            if fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)  # released when the file is closed
        except BlockingIOError:
            return True
    return False


@contextlib.contextmanager
def new_file(path: Path, like: Disk | None = None) -> Iterator[Disk]:
    """Create a file that appears under ``path`` if the block succeeds; otherwise neither it nor its folder remain."""
    folder = folder_of(path)
    missing = [parent for parent in (folder, *folder.parents) if not os.path.lexists(parent)]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _temporary(folder, path.name) as disk:
            try:
                yield disk
            finally:
                disk.check()
            os.umask(mask := os.umask(0))
            os.chmod(disk.name, like.mode_bits if like else 0o666 & ~mask)  # temporary files begin private
            os.link(disk.name, path)
    except BaseException as error:
        for parent in missing:
            with contextlib.suppress(OSError):  # others may use it by now
                parent.rmdir()
        if isinstance(error, FileExistsError) and os.path.lexists(path):
            raise InputError(f"{path} exists and is never overwritten: {another_path()}") from error
        if isinstance(error, FileExistsError | NotADirectoryError):
            raise InputError(f"{path} cannot be written, its folder would lie in a file: {another_path()}") from error
        if isinstance(error, OSError):
            raise not_written(path, error) from error
        raise


def hold(path: Path) -> Disk:
    """Open and lock the file under a path, after removing temporary files of killed processes.

    Raises:
        OSError: if it cannot be opened; BlockingIOError if another process has it open.
    """
    real = Path(os.path.realpath(path))
    remove_stale(real.parent, real.name)
    while True:
        disk = Disk(path, "r+")
        with contextlib.ExitStack() as stack:
            stack.enter_context(disk)
            disk.lock()
            if disk.is_at(path):  # otherwise the file was replaced before it was locked
                stack.pop_all()
                return disk


def replaced(path: Path, old: Disk, write: Callable[[Disk], object]) -> Disk:
    """Replace ``old`` atomically by a new file, which ``write`` fills, with the same permissions.

    Returns:
        The new file, open and locked; no other process can have it open for writing.

    Raises:
        OSError: if the new file cannot be written.
        FileNotFoundError: if the path now leads to another file, or its folder has gone.
    """
    real = Path(os.path.realpath(path))
    with _temporary(real.parent, real.name) as disk:
        write(disk)
        os.chmod(disk.name, old.mode_bits)
        disk.sync()
        disk.check()
        if not old.is_at(real):
            raise FileNotFoundError(errno.ENOENT, "the file was moved, removed or replaced meanwhile", str(path))
        os.replace(disk.name, real)
        return disk.again()


@contextlib.contextmanager
def _temporary(folder: Path, name: str) -> Iterator[Disk]:
    """Create a hidden file next to its final place; it is locked, so that no process takes it for a stale one."""
    remove_stale(folder, name)
    disk = _begin(folder, name)
    try:
        with disk:
            yield disk
    finally:
        with contextlib.suppress(FileNotFoundError):  # already renamed to its final place
            os.unlink(disk.name)


def _begin(folder: Path, name: str) -> Disk:
    while True:
        handle, temporary = tempfile.mkstemp(prefix=_hidden(name), suffix=_PART, dir=folder)
        os.close(handle)
        # another run may take it for a stale one before it is locked
        with contextlib.suppress(FileNotFoundError, BlockingIOError), contextlib.ExitStack() as stack:
            disk = stack.enter_context(Disk(temporary, "r+"))
            disk.lock()
            if disk.is_at(temporary):
                stack.pop_all()
                return disk


def remove_stale(folder: Path, name: str) -> None:
    """Remove hidden files that killed processes left next to a file of this name: those without a lock."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        own = re.compile(re.escape(_hidden(name)) + _RANDOM + re.escape(_PART))
        left = [entry.path for entry in entries if own.fullmatch(entry.name)]
        for path in left:
            with contextlib.suppress(OSError), Disk(path, "r+") as disk:
                if disk.lock() and disk.is_at(path):
                    os.unlink(path)


def _hidden(name: str) -> str:
    return f".{name}-"


def folder_of(path: Path) -> Path:
    try:
        return path.absolute().parent
    except FileNotFoundError as error:
        raise InputError(NO_DIRECTORY) from error


def has_directory() -> bool:
    with contextlib.suppress(FileNotFoundError):
        return bool(os.getcwd())
    return False


def as_path(path: Any, subject: str) -> Path:
    if not isinstance(path, str | os.PathLike):
        raise WrongTypeError(f"{subject} is given as {type(path).__name__}, not a path: give a text or a pathlib.Path")
    return Path(path)


def open_regular(path: str | os.PathLike[str]) -> io.BufferedReader:
    number = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))  # never blocks
    mode = os.fstat(number).st_mode
    if stat.S_ISREG(mode):
        return open(number, "rb")
    os.close(number)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    raise InputError(f"{path} is a pipe or a device, which may have no end: give a file")


def not_written(path: Path, error: Exception) -> InputError:
    """Return an error with the operating system's message in one line, which HDF5 quotes within its own words."""
    if isinstance(error, BlockingIOError):
        return InputError(f"{path} is open in another process: wait until that one is done")
    quoted = re.search(r"error message = '([^']*)'", str(error))
    text = quoted[1] if quoted else getattr(error, "strerror", None) or str(error).splitlines()[0]
    return InputError(f"{path} cannot be written ({text}): {another_path()} or make room there")


CAPTION: Final = "Caption: "  # first words of a figure's caption, which distinguish it from other notes
_HEAD_BYTES: Final = 4096
_BEGINNINGS: Final = {
    "pdf": re.compile(rb"%PDF-"),
    "png": re.compile(rb"\x89PNG\r\n\x1a\n"),
    "svg": re.compile(rb"\s*<(\?xml|!DOCTYPE svg|svg)[\s\S]*<svg|\s*<svg"),
    "gif": re.compile(rb"GIF8"),
    "mp4": re.compile(rb"[\s\S]{4}ftyp"),
    "csv": re.compile(rb"[A-Za-z_]\w*(,[A-Za-z_]\w*)+\r?\n"),
    "caption": re.compile(CAPTION.encode()),
    "solution": re.compile(rb'# .*: energy |\{"model": '),
    "instance": re.compile(
        rb"DIMODBQM|\x1f\x8b|\xfd7zXZ\x00"  # compressed
        rb"|\s*(#|%%MatrixMarket|[cC] |p qubo |\d+ \d+\s)|[^\s\x00]+ [^\s\x00]+( \S+)?\r?\n"
    ),
}
"""First bytes of each kind of file; a CSV table begins with a line of names."""
_IN_WORDS: Final = {"caption": "caption of a figure", "instance": "instance file", "solution": "file of a solution"}


def check_output(path: Path, kind: str, overwrite: bool) -> None:
    if not os.path.lexists(path) or _is_stream(path):
        return
    if not os.path.isfile(path):
        kind_there = "a directory" if os.path.isdir(path) else "no file"
        raise InputError(f"{path} is {kind_there}: choose another name for the output")
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD_BYTES)
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}): choose another name for the output") from error
    if head and not _BEGINNINGS[kind].match(head):
        kind_there = _IN_WORDS.get(kind, f"{kind.upper()} file")
        raise InputError(f"{path} exists and is no {kind_there}: choose another name for the output")
    if not overwrite:
        raise InputError(
            f"{path} exists already: choose another name, or add {argument('overwrite', True)} to replace it"
        )


def write_outputs(outputs: Mapping[Path, tuple[str, bytes]], overwrite: bool = False) -> None:
    """Write tables and figures, each whole or not at all; a file with the same content is left unchanged."""
    to_write = {path: content for path, (_, content) in outputs.items() if not _holds(path, content)}
    for path in to_write:
        check_output(path, outputs[path][0], overwrite)
    for path, content in to_write.items():
        _write(path, content)


def _write(path: Path, content: bytes) -> None:
    if not os.path.lexists(path):
        with new_file(path) as disk:
            disk.write(content)
        return
    try:
        if _is_stream(path):
            with path.open("wb", buffering=0) as stream:
                stream.write(content)
        else:
            target = Path(os.path.realpath(path))  # keeps a link to the file intact
            with Disk(target) as old:
                replaced(target, old, lambda new: new.write(content)).close()
    except OSError as error:
        raise not_written(path, error) from error


def _holds(path: Path, content: bytes) -> bool:
    try:
        return path.is_file() and path.stat().st_size == len(content) and path.read_bytes() == content
    except (OSError, ValueError):
        return False


def _is_stream(path: Path) -> bool:
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):
        return False
    return stat.S_ISCHR(mode) or stat.S_ISFIFO(mode)
