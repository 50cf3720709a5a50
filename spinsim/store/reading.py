"""Opening a file of a run, what it says of itself, and reading all of it to check it.

The HDF5 library follows some damaged headers for ever, deaf to signals, or crashes on them. Only headers do that, not
the numbers of datasets. A child process looks at all of them before this one reads any, and ends where it has used too
much processor time; nothing else comes of it.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import re
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from math import prod
from pathlib import Path
from typing import Any, Final

import h5py
import numpy as np

from spinsim.errors import InputError, worded
from spinsim.machine import signals
from spinsim.machine.files import Disk, is_locked, not_written
from spinsim.machine.memory import require
from spinsim.store import checkpoints
from spinsim.store.contents import BEST, EVERY, SUMMARY_GROUP, DamageError, check_texts, damage_of, form_of
from spinsim.store.datasets import CHECKSUM, check_rows, pieces
from spinsim.store.schema import CONFIGURATIONS, check_configurations, check_schema, contents_of

try:
    import resource
except ImportError:  # not on Windows
    resource = None  # type: ignore[assignment]

SCHEMA: Final = "spinsim/1"
_TRIES: Final = 40  # to see a whole header of a file that is being written
_WAIT: Final = 0.025
_CLOCK_STEP: Final = 50_000_000  # nanoseconds; a file can be written twice at what its system takes for one time
_checked: Final[dict[tuple[int, int], tuple[int, int]]] = {}  # files by their numbers: when written last, and bytes
_FOREIGN: Final = (
    AttributeError, LookupError, MemoryError, OSError, OverflowError, RuntimeError, TypeError, ValueError
)  # fmt: skip
"""Errors of h5py on damaged files."""


def growing(file: h5py.File) -> list[h5py.Dataset]:
    """Returns all series, which have a row for each step, and the checksums of their rows."""
    series = contents_of(file).series
    checksums = dict.fromkeys(f"{one.group}/{CHECKSUM}" for one in series)
    return [file[path] for path in (*(one.path for one in series), *checksums) if path in file]


def series_by_group(file: h5py.File) -> list[tuple[int, dict[str, h5py.Dataset]]]:
    """Return the series of each group by name, and how many rows of the run there are for each of their rows."""
    groups: dict[str, tuple[int, dict[str, h5py.Dataset]]] = {}
    for dataset in growing(file):
        path, _, name = dataset.name.rpartition("/")
        if path not in groups:
            groups[path] = every_of(file[path]), {}
        groups[path][1][name] = dataset
    return list(groups.values())


def every_of(group: h5py.Group) -> int:
    return int(group.attrs.get(EVERY, 1))


def complete_rows(file: h5py.File) -> int:
    """Returns how many rows of the run all series have that have them at all."""
    return min(((len(item) + 1) * every_of(item.parent) - 1 for item in growing(file)), default=0)


def check_room(file: h5py.File, rows: int) -> None:
    read = [item for item in growing(file) if EVERY not in item.parent.attrs]  # the others when they are asked for
    needed = rows * sum(item.dtype.itemsize * prod(item.shape[1:]) for item in read)
    mend = worded("look at it with 'spinsim show'", "use a machine with more")
    require(needed, f"what {Path(os.fsdecode(file.filename)).name} holds", mend)


def attributes(file: h5py.File) -> dict[str, Any]:
    """The root attributes of a spinsim file, ``finished`` only where it is."""
    stored = {key: file.attrs[key] for key in list(file.attrs)}
    values = {key: one.decode(errors="replace") if isinstance(one, bytes) else one for key, one in stored.items()}
    return {key: value for key, value in values.items() if key != "finished" or value}


def text_attributes(file: h5py.File) -> dict[str, str]:
    return {key: str(value) for key, value in attributes(file).items()}


def read_attributes(path: Path) -> dict[str, Any]:
    with open_to_read(path) as file:
        return attributes(file)


def check_replaceable(path: Path) -> None:
    """Refuse to replace a file that spinsim did not write, and one that another process has open."""
    read_attributes(path)
    try:
        with Disk(path, "r+") as disk:
            disk.lock()
    except OSError as error:
        raise not_written(path, error) from error


@contextlib.contextmanager
def open_to_read(path: Path) -> Iterator[h5py.File]:
    """A spinsim file, checked and open for reading; one that another process writes is shown as far as it is by now.

    No lock is held: nobody who writes has to wait. Rows up to the lengths that are seen here are whole and stay: they
    are written in place and the lengths after them. What is written again and again comes from ``last_saved``. A
    missing file, one that is not of this schema, and one that is damaged raise InputError.
    """
    if os.path.isdir(path):
        raise InputError(f"{path} is a directory: give a file that spinsim wrote")
    if not os.path.isfile(path):
        raise InputError(f"{path} is not there: give the path of a spinsim file")
    for tries_left in reversed(range(_TRIES)):
        try:
            file = _open_checked(path)
            break
        except InputError:
            if not tries_left or not is_locked(path):
                raise
            time.sleep(_WAIT)  # a header was read while it was written
    with file, damage_of(path):
        try:
            yield file
        except (KeyError, OSError, RuntimeError) as error:
            raise DamageError("a part cannot be read") from error


def _open_checked(path: Path) -> h5py.File:
    with contextlib.suppress(OSError):  # it has gone meanwhile, which is told below
        if not _is_known(os.stat(path)) and survives(lambda: _look(path)) is False:
            with damage_of(path):
                raise DamageError("its headers lead in a circle or nowhere")
    try:
        file = _open_unlocked(path)
    except BlockingIOError as error:
        raise InputError(f"{path} is open in another process: wait until that one is done") from error
    except PermissionError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}): check its permissions") from error
    except (OSError, RuntimeError, ValueError) as error:
        raise InputError(f"{path} is not an HDF5 file: give a file that spinsim wrote") from error
    with damage_of(path):
        try:
            _check_version(path, file)
            _check_unless_known(file)
        except BaseException as error:
            file.close()
            if isinstance(error, _FOREIGN) and not isinstance(error, InputError):
                raise DamageError("a part cannot be read") from error
            raise
    return file


def _look(path: Path) -> None:
    with _open_unlocked(path) as file:
        look_at_headers(file)


_SECONDS: Final = 3  # of processor time; the headers of a whole file take some 0.02
_PATIENCE: Final = 30  # of the clock: a child that uses no processor time, for whatever reason, tells nothing
_LONGEST_NAP: Final = 0.004
_PASSED: Final = 0


def survives(look: Callable[[], None]) -> bool | None:
    """Call a function in a child process.

    Returns:
        True where it returned, False where it did not end or ended the process, None where it raised an exception,
        waited for something else, or there can be no child: only Linux lets any process fork safely.
    """
    if resource is None or sys.platform != "linux":
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # other threads run here; h5py and malloc expect it
            child = os.fork()
    except OSError:  # no room for another process
        return None
    if child == 0:
        _look_and_leave(look)
    status = _status_of(child)
    if status is None:
        return None
    if os.WIFSIGNALED(status):
        return False
    return True if os.WEXITSTATUS(status) == _PASSED else None


def _status_of(child: int) -> int | None:
    """Wait for a child; None where it takes too long. No child outlives this, not even by Ctrl-C."""
    late, nap = time.monotonic() + _PATIENCE, 0.001
    status = None
    try:
        while status is None and time.monotonic() < late:
            ended, code = os.waitpid(child, os.WNOHANG)
            if ended:
                status = code
            else:
                time.sleep(nap)
                nap = min(2 * nap, _LONGEST_NAP)
    finally:
        if status is None:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
    return status


def _look_and_leave(look: Callable[[], None]) -> None:
    """Never return: neither do exceptions, handlers at exit or buffers of the parent get another turn."""
    status = 1
    with contextlib.suppress(BaseException):
        faulthandler.disable()  # a crash is told in a sentence
        signals.ignore()  # which tell nothing of the file: the parent ends this process
        resource.setrlimit(resource.RLIMIT_CPU, (_SECONDS, _SECONDS))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        look()
        status = _PASSED
    os._exit(status)


def look_at_headers(file: h5py.File) -> None:
    """Read every attribute of a file and look up where the chunks of its datasets lie."""

    def look(name: bytes) -> None:
        item = h5py.h5o.open(file.id, name)
        if isinstance(item, h5py.h5d.DatasetID):
            item.get_storage_size()
        for number in range(h5py.h5a.get_num_attrs(item)):
            with contextlib.suppress(Exception):
                attribute = h5py.h5a.open(item, index=number)
                attribute.read(np.empty(attribute.shape, attribute.dtype))

    look(b".")
    h5py.h5o.visit(file.id, look)


def _is_known(status: os.stat_result) -> bool:
    """True if this process has checked a file that has not been written since."""
    return _checked.get((status.st_dev, status.st_ino)) == (status.st_mtime_ns, status.st_size)


def _check_unless_known(file: h5py.File) -> None:
    status = os.fstat(file.id.get_vfd_handle())
    if _is_known(status):
        return
    began = time.time_ns()
    check_schema(file)
    if began - status.st_mtime_ns > _CLOCK_STEP:
        _checked[status.st_dev, status.st_ino] = status.st_mtime_ns, status.st_size


def _open_unlocked(path: Path) -> h5py.File:
    try:
        return h5py.File(path, "r", locking=False)
    except OSError as error:
        if "locking" not in str(error):
            raise
        return h5py.File(path, "r")  # this process has it open with a lock


def _check_version(path: Path, file: h5py.File) -> None:
    schema = file.attrs.get("schema")
    if schema == SCHEMA:
        return
    if isinstance(schema, str) and re.fullmatch(r"spinsim/[0-9]+", schema):
        raise InputError(f"{path} has schema {schema}, this version of spinsim reads {SCHEMA}: use a newer spinsim")
    raise InputError(f"{path} has schema {str(schema)[:40]!r}, not {SCHEMA}: give a file that spinsim wrote")


def verify(file: h5py.File, written: bool) -> bool:
    """Read every number of a file whose schema has been checked; HDF5 compares the checksums that it has.

    The checkpoints of a file that another process writes meanwhile, ``written``, are left alone. Returns True if every
    series has checksums. What can be read and is wrong all the same raises DamageError, what cannot be read OSError.
    """
    check_texts(file)
    names = ("model", *form_of(file).groups, CONFIGURATIONS, SUMMARY_GROUP, BEST)
    groups, summed = [file[name] for name in names if name in file], True
    for group in groups:
        for item in [group[key] for key in list(group) if isinstance(group.get(key), h5py.Dataset)]:
            if item.size and not item.dtype.hasobject and item.id.get_storage_size():
                for piece in pieces([item], len(item)) if item.ndim else [()]:
                    item[piece]
            summed &= not item.chunks or not item.id.get_storage_size() or item.fletcher32 or CHECKSUM in group
    rows = complete_rows(file)
    if not written:
        for every, series in series_by_group(file):
            check_rows(series, rows // every)
    for group in groups:  # rows are numbered from 0
        if "step" in group:
            steps = group["step"][...]
            if not np.array_equal(steps, np.arange(len(steps))):
                raise DamageError(f"the rows of {group.name.strip('/')} are not numbered in turn")
    form_of(file).check_numbers(file, rows)
    check_configurations(file, rows)
    if checkpoints.GROUP in file and not written:
        _, problem, _ = checkpoints.read(file[checkpoints.GROUP])
        if problem:
            raise DamageError(problem.partition(":")[0])
    return summed
