"""The file of a run: at every moment a complete record, written to a temporary file that replaces the old one.

Trajectories are functions of the seed, so a killed process loses the time since the last checkpoint but never a row. A
reader sees one of these records at any moment of a run.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any, Final

import h5py
import numpy.typing as npt

from spinsim.errors import InputError, another_path, worded
from spinsim.inputs.texts import quoted
from spinsim.machine.files import Disk, folder_of, hold, new_file, not_written, open_regular, replaced
from spinsim.machine.memory import require
from spinsim.record import Array, Record
from spinsim.registry import FOLDERS
from spinsim.store import hdf5, sealed, segments
from spinsim.store.segments import LISTED, Segment, Stored

CONFIGURATIONS: Final = "configurations"  # group of saved configurations, which are read on access
PARTS: Final = "parts"
"""Root attribute with the paths of all arrays that spinsim wrote, and of its groups with their attributes."""
_IN_MEMORY: Final = 2**26  # largest record whose file is assembled in memory, in bytes
_JOINED: Final = 2**30  # largest size of segments that are merged into a finished file, in bytes
_ROOM: Final = 2.0  # memory for reading, in multiples of the stored bytes
_TRIES: Final = 5


def stamp() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


class DamageError(InputError):
    """The contents of a file differ from those that were written."""


def damaged(path: str | os.PathLike[str], how: str = "its bytes are not those of its SHA-256") -> DamageError:
    return DamageError(f"{path} is damaged, {how}: take another copy of it")


def read(path: str | os.PathLike[str]) -> Record:
    """Read the record in a file, as of the last checkpoint of its run.

    Raises:
        InputError: for a missing or damaged file, a file that is no record of spinsim, and too little memory.
    """
    record, _ = read_and_compare(path)
    return record


def read_and_compare(path: str | os.PathLike[str]) -> tuple[Record, bool]:
    """Read the record in a file, without additions by others; also return True if every byte is unchanged."""
    if os.path.isdir(path):
        raise InputError(f"{path} is a directory: give a file that spinsim wrote")
    if not os.path.exists(path):
        raise InputError(f"{path} is not there: give the path of a spinsim file")
    for _ in range(_TRIES):
        try:
            with open_regular(path) as file:
                found = _read_open(path, file)
        except PermissionError as error:
            raise InputError(f"{path} cannot be read ({error.strerror}): check its permissions") from error
        except OSError as error:
            raise InputError(
                f"{path} cannot be read ({error.strerror or error}): give a file that spinsim wrote"
            ) from error
        if found is not None:
            _check_is_run(path, found[0])
            return found
    raise InputError(f"{path} is replaced again and again: read it later")


def _check_is_run(path: str | os.PathLike[str], record: Record) -> None:
    job = record.attributes.get("job")
    if job is None:
        raise InputError(f"{path} has rows of a run and is no run itself: give the run's file, which lists it")
    if job not in FOLDERS:
        raise InputError(f"{path} holds a run of {job}, a job that this version of spinsim lacks: use a newer spinsim")


def _read_open(path: str | os.PathLike[str], file: io.BufferedReader) -> tuple[Record, bool] | None:
    """Read the record in an open file; return None if its path now leads to another file."""
    try:
        seal = sealed.seal_of(file)
    except sealed.NoSealError as error:
        raise _not_sealed(path, str(error)) from None
    size = os.fstat(file.fileno()).st_size - sealed.BYTES
    is_whole = size == seal.size and sealed.digest_of(file) == seal.sha256
    if not is_whole and (size < seal.size or not hdf5.has_sound_heaps(file)):
        raise damaged(path)
    require(
        _ROOM * min(size, seal.size) if not _has_segments(path) else 0.0,
        f"what {path} holds",
        "use a machine with more",
    )
    try:
        with h5py.File(path, "r", locking=False) as opened:
            if not os.path.samestat(os.fstat(opened.id.get_vfd_handle()), os.fstat(file.fileno())):
                return None
            own = None if is_whole else _named(opened)
            record = hdf5.read_group(opened, os.fspath(path), frozenset({CONFIGURATIONS}), own)
    except InputError:
        raise
    except Exception as error:  # additions by users or damage make h5py raise any of a dozen errors
        if is_whole:
            raise
        raise damaged(path, "a part cannot be read") from error
    if not is_whole and hdf5.digest_of(record) != seal.parts:
        raise damaged(path, "parts of it are not as spinsim wrote them")
    return record, is_whole


def has_additions(path: Path) -> bool:
    """True if a file that ``read`` accepts has groups, arrays or attributes that spinsim did not write."""
    with h5py.File(path, "r", locking=False) as file:
        return hdf5.has_others(file, _named(file))


def _not_sealed(path: str | os.PathLike[str], schema: str) -> InputError:
    if schema == "HDF5":
        return InputError(
            f"{path} is an HDF5 file without the seal of spinsim 1.0: give a file of this version, or use h5py"
        )
    if schema:
        return InputError(
            f"{path} has schema {schema}, this version of spinsim reads {sealed.SCHEMA}: use a newer spinsim"
        )
    return InputError(f"{path} is not a file of spinsim, or is damaged at its beginning: give one that it wrote")


def _has_segments(path: str | os.PathLike[str]) -> bool:
    return segments.folder_of_segments(Path(path)).is_dir()


def _named(file: h5py.File) -> hdf5.Named:
    """Names of all parts that spinsim wrote into a file with additions: attributes of each group, and arrays."""
    listed = json.loads(file.attrs[PARTS])
    return {path: set(names) for path, names in listed["groups"].items()}, set(listed["arrays"])


def _with_parts(record: Record) -> Record:
    """Return the record with an attribute that lists its parts."""
    attributes = {name: value for name, value in record.attributes.items() if name != PARTS}
    record = Record(attributes, record.arrays, record.groups)
    groups = {path: sorted(group.attributes) for path, group in _groups(record)}
    groups[""] = sorted([*groups[""], PARTS])
    arrays = sorted(path for path, _ in record.paths())
    record.attributes[PARTS] = json.dumps({"groups": groups, "arrays": arrays}, sort_keys=True)
    return record


def _groups(record: Record, prefix: str = "") -> Iterator[tuple[str, Record]]:
    yield prefix.rstrip("/"), record
    for name, group in record.groups.items():
        yield from _groups(group, f"{prefix}{name}/")


def write_into(disk: Disk, record: Record) -> sealed.Seal:
    """Write the whole record into an empty file, and seal it."""
    record = _with_parts(record)
    image: Any = io.BytesIO() if record.nbytes <= _IN_MEMORY else disk
    with ThreadPoolExecutor(1) as beside:  # writing and hashing both release the interpreter lock
        parts = beside.submit(hdf5.digest_of, record)
        with h5py.File(image, "w", userblock_size=sealed.BYTES, libver=hdf5.LIBRARY) as file:
            hdf5.write_record(file, record)
        disk.check()
        seal = sealed.add_seal(image, parts.result())
    if image is not disk:
        disk.write(image.getbuffer())
    disk.check()
    return seal


def save_new(path: Path, record: Record) -> None:
    """Write a record into a new file, and create missing folders.

    Raises:
        InputError: if the path exists or cannot be written; nothing is left behind.
    """
    with ThreadPoolExecutor(1) as thread:
        _begun(path, record, thread).close()


def _begun(path: Path, record: Record, thread: ThreadPoolExecutor) -> Disk:
    """Return a new file that holds a record, open and locked."""
    with contextlib.ExitStack() as stack:
        with new_file(path) as disk:
            thread.submit(write_into, disk, record).result()
            again = stack.enter_context(disk.again())
        stack.pop_all()
        return again


def replace(path: Path, record: Record) -> None:
    """Replace the file of a run by a record; refuse if another process is writing it."""
    with open_to_write(path) as file:
        file.write(record)


class RunFile:
    """The locked file of a run. A record replaces it at each checkpoint and at the end; one thread writes."""

    def __init__(self, path: Path, disk: Disk, record: Record, is_whole: bool, thread: ThreadPoolExecutor) -> None:
        self.path, self.record, self.is_whole = path, record, is_whole
        self._disk, self._thread = disk, thread
        self._pending: Future[None] | None = None

    def write(self, record: Record, wait: bool = True, is_last: bool = False) -> None:
        """Replace the file by a record, whose arrays must not change before the next call or the end of the context.

        Without ``wait`` the file is written while the caller continues; an error is then raised by a later call. With
        the last record of a run, the file absorbs its segments unless they are too large.

        Raises:
            InputError: if the path now leads to another file; the record is then saved under another name.
            OSError: if the file cannot be written.
        """
        self.flush()
        self._pending = self._thread.submit(self._write, record, is_last)
        if wait:
            self.flush()

    def flush(self) -> None:
        """Wait until pending data are written, and raise the error of writing them."""
        if self._pending is not None:
            pending, self._pending = self._pending, None
            pending.result()

    def _write(self, record: Record, is_last: bool) -> None:
        if is_last and sum(segments.size(self.path.parent, one) for one in listed_in(record)) <= _JOINED:
            record = _joined(record)
        kept = listed_in(record)
        try:
            successor = self._successor(record)
        except FileNotFoundError as error:
            if self._disk.is_at(self.path):
                raise
            raise self._rescued(record) from error
        self._disk.close()
        self._disk, self.record = successor, record
        segments.remove(self.path, kept)

    def _successor(self, record: Record) -> Disk:
        def fill(disk: Disk) -> None:
            write_into(disk, record)

        try:
            return replaced(self.path, self._disk, fill)
        except FileNotFoundError:
            # If somebody deletes the folder at this moment, the new file may vanish before the old one: try once more.
            return replaced(self.path, self._disk, fill)

    def _rescued(self, record: Record) -> InputError:
        """Save a record, whose file has gone from its path, under the first free name, such as ``run-1.h5``."""
        gone = f"{self.path} was moved, removed or replaced while a run wrote it"
        if any(not (self.path.parent / one.name).is_file() for one in listed_in(record)):
            segments.drop(self.path.parent, listed_in(record))
            return InputError(f"{gone}, and the rows beside it have gone too: begin the run anew")
        for number in count(1):
            name = self.path.with_name(f"{self.path.stem}-{number}{self.path.suffix}")
            try:
                if not os.path.lexists(name):
                    with new_file(name, self._disk) as disk:
                        write_into(disk, record)
                    break
            except InputError:
                if not os.path.lexists(name):  # otherwise another process was faster
                    raise
        call = worded(f"spinsim resume {quoted(name)}", f"ss.resume({str(name)!r})")
        is_finished = "finished" in record.attributes
        kept, on = ("the finished run is", "") if is_finished else ("all of it is", f": {call} goes on from there")
        return InputError(f"{gone}; {kept} kept in {name}{on}")

    def add_segment(self, group: str, arrays: Mapping[str, npt.NDArray[Any]], number: int) -> Segment:
        """Write rows of all arrays of a group into segment ``number``, which the next record may list."""
        self.flush()  # raises earlier errors before further rows are written
        folder = segments.folder_of_segments(self.path)
        name = folder / f"{group.replace('/', '.')}-{number:06d}.h5"
        axes = {key: ("row", *(f"{key}_axis_{k}" for k in range(1, rows.ndim))) for key, rows in arrays.items()}
        record = Record({}, {key: Array(rows, axes[key]) for key, rows in arrays.items()})
        return self._thread.submit(_written_segment, name, record, self.path.parent).result()

    def close(self) -> None:
        try:
            self.flush()
        finally:
            self._disk.close()


def _written_segment(path: Path, record: Record, folder: Path) -> Segment:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    with new_file(path) as disk:
        seal = write_into(disk, record)
        disk.sync()
    rows = len(next(iter(record.arrays.values())).values)
    return Segment(str(path.relative_to(folder)), seal.sha256, rows)


def listed_in(record: Record) -> list[Segment]:
    """Return the segments that a record lists."""
    return [one for group in record.groups.values() for one in segments.listed(group.attributes.get(LISTED, ""))]


def _joined(record: Record) -> Record:
    """Return the record with all rows of its segments in the file itself."""
    whole = record.copy()
    for group in whole.groups.values():
        if LISTED in group.attributes:
            del group.attributes[LISTED]
            for name, array in group.arrays.items():
                if isinstance(array.values, Stored):
                    group.arrays[name] = array._replace(values=array.values.joined())
    return whole


@contextlib.contextmanager
def open_to_write(path: Path) -> Iterator[RunFile]:
    """Open and lock the file of a run; errors of writing become one sentence.

    Raises:
        InputError: if it cannot be read or written, or is open in another process.
    """
    try:
        with (
            hold(path) as disk,
            ThreadPoolExecutor(1) as thread,
            contextlib.closing(RunFile(path, disk, *read_and_compare(path), thread)) as file,
        ):
            yield file
    except OSError as error:
        raise not_written(path, error) from error


@contextlib.contextmanager
def begin(path: Path, record: Record) -> Iterator[RunFile]:
    """Create and lock a new file of a run, with a first record.

    Raises:
        InputError: if the path exists or cannot be written, and if segments of another run are in its place.
    """
    segments.check_free(path, any(LISTED in group.attributes for group in record.groups.values()))
    try:
        with (
            ThreadPoolExecutor(1) as thread,
            contextlib.closing(RunFile(path, _begun(path, record, thread), record, True, thread)) as file,
        ):
            yield file
    except OSError as error:
        raise not_written(path, error) from error


def check_disk(path: Path, needed: float) -> None:
    """Refuse a run whose file would not fit on the disk."""
    import shutil

    from spinsim.machine.memory import readable

    folder = folder_of(path)
    while not folder.exists():
        folder = folder.parent
    room = shutil.disk_usage(folder).free
    if needed > room:
        raise InputError(
            f"{path} needs {readable(needed)} but {readable(room)} are free on its disk: "
            f"use fewer steps, samples or replicas, save fewer configurations, or {another_path()}"
        )


def text_attributes(record: Record) -> dict[str, str]:
    """Return the root attributes as text."""
    return {name: str(value) for name, value in record.attributes.items() if name != PARTS}
