"""A file of a run open for appending."""

from __future__ import annotations

import contextlib
import errno
import os
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import h5py
import numpy as np
import numpy.typing as npt

from spinsim.bits import States, packed_spins
from spinsim.errors import InputError, worded
from spinsim.inputs.texts import quoted
from spinsim.machine.files import Disk, not_written
from spinsim.store import checkpoints, contents
from spinsim.store.contents import Arrays, BestSpins, Series
from spinsim.store.datasets import CHECKSUM, UNKNOWN, check_rows, row_checksums
from spinsim.store.finishing import finish_file, hold, keep
from spinsim.store.models import identity
from spinsim.store.reading import complete_rows, series_by_group

_FLUSH_SECONDS: Final = 0.5
_PENDING_BYTES: Final = 2**24
Saved = dict[str, npt.NDArray[Any]]


class RunFile:
    """The file of a run, as ``create`` made it, open and locked for appending; all is written in one thread."""

    def __init__(self, path: Path, disk: Disk, thread: Executor) -> None:
        self.path, self._disk, self._thread = path, disk, thread
        self._file: h5py.File = thread.submit(h5py.File, disk, "r+").result()
        self._finished = self._keep_checkpoint = False
        # for lowest states, as earlier versions had for any lattice
        self.has_bytes = f"{contents.BEST}/spins" in self._file
        self._pending: list[Mapping[str, Any]] = []
        self._handed: Future[None] | None = None
        self._checkpoint: Future[None] | None = None
        self._flushed = time.monotonic()
        self._groups = thread.submit(series_by_group, self._file).result()
        self._end = 0  # of the rows that this run goes on from or has written
        mark = str(self._file.attrs.get("config_sha256", "")).encode()
        self._marks = os.fstat(disk.fileno()).st_size, mark, thread.submit(disk.find, mark).result()

    def write(self, row: Mapping[str, Any]) -> None:
        """Write the row of number ``row["step"]``, a value for each series by name that has a row there.

        It is the next one, or one already there (a run started again): that is written again with the same numbers.
        It is written while the caller goes on, and its arrays must not change before ``flush``; an error is raised by
        this call or a later one.
        """
        self._pending.append(row)
        self._end = max(self._end, row["step"] + 1)
        large = len(self._pending) * sum(np.asarray(value).nbytes for value in row.values()) > _PENDING_BYTES
        is_saving = self._checkpoint is not None and not self._checkpoint.done()  # beside sweeps, which need not wait
        if large or (time.monotonic() - self._flushed > _FLUSH_SECONDS and not is_saving):
            self._hand_over()

    def replace(self, row: Mapping[str, Any], mark: str) -> None:
        """Write other numbers to a row that is there; the series ``mark`` comes last and says so."""
        self.flush()
        series = self._groups[0][1]
        values = _rows_of(series, [row])
        new = row_checksums(values)[0]

        def write(cells: Mapping[str, Any]) -> None:
            for name, value in cells.items():
                series[name][row["step"]] = value
            self._file.flush()
            self._disk.check()

        others = {name: column[0] for name, column in values.items() if name != mark}
        unknown, checksum = ({CHECKSUM: number} if CHECKSUM in series else {} for number in (UNKNOWN, new))
        for cells in (unknown, others, {mark: values[mark][0]}, checksum):
            self._thread.submit(write, cells).result()

    def flush(self) -> None:
        """Hand every row to the operating system; raises InputError where the path leads elsewhere by now."""
        self._hand_over()
        self._wait()
        self._check_place()

    def _check_place(self) -> None:
        if not self._disk.is_at(self.path):
            raise InputError(f"{self.path} was moved, removed or replaced while a run wrote it")  # see ``rescue``

    def identity(self) -> tuple[dict[str, str], str]:
        self._checked(contents.check_texts, self._file)
        return self._thread.submit(identity, self._file).result()

    def _checked(self, check: Callable[..., None], *given: Any) -> None:
        """Call a function in the thread that writes; the damage that it finds becomes one sentence."""
        with contents.damage_of(self.path):
            self._thread.submit(check, *given).result()

    def _hand_over(self) -> None:
        """Let the thread write the rows so far, once it is done with those before."""
        self._wait()
        rows, self._pending = self._pending, []
        self._handed = self._thread.submit(self._write_rows, rows)
        self._flushed = time.monotonic()

    def _wait(self) -> None:
        """Return when the thread is done with the rows that it has; after an error it gets no more."""
        if self._handed is not None:
            self._handed.result()

    def _write_rows(self, rows: list[Mapping[str, Any]]) -> None:
        if not self._disk.has(*self._marks):
            self._disk.stop(OSError(errno.ESTALE, "another program has overwritten it"))
            self._disk.check()
        for every, series in self._groups:
            own = contents.rows_at(every, rows)
            if own:
                first, end = own[0]["step"], own[-1]["step"] + 1
                values = _rows_of(series, own)
                if CHECKSUM in series:
                    values[CHECKSUM] = row_checksums(values)
                for name, dataset in series.items():
                    if len(dataset) < end:
                        dataset.resize(end, axis=0)
                    dataset[first:end] = values[name]
        self._file.flush()
        self._disk.check()

    def write_again(self, values: Arrays) -> None:
        def write() -> None:
            for path, value in values.items():
                self._file[path][...] = value

        self._thread.submit(write).result()

    def write_summary(self, values: Mapping[Series, npt.NDArray[Any]]) -> list[str]:
        """Write an analysis, and NaN to all else in /summary; names that older files have no room for."""
        group = self._file.get(contents.SUMMARY_GROUP, {})
        names = {name: group[name].attrs.get("long_name", b"") for name in list(group)}
        texts = {name: one.decode() if isinstance(one, bytes) else str(one) for name, one in names.items()}
        kept = {series: value for series, value in values.items() if texts.get(series.name) == series.long_name}
        self.forget_summary()
        self.write_again({series.path: value for series, value in kept.items()})
        return [series.name for series in values if series not in kept]

    def save(self, arrays: Arrays, wait: bool = True) -> None:
        """Replace the older of the two checkpoints by the state of the run, once all rows before it are written.

        A file that Python wrote has none: its run begins anew. Without ``wait`` it is written while the caller goes on:
        arrays must not change before ``flush``, and an error is raised by a later call.
        """
        self._hand_over()
        rows, end = self._handed, self._end

        def write() -> None:
            if rows is not None:
                rows.result()  # there is no checkpoint of rows that are not there
            if checkpoints.GROUP in self._file:
                checkpoints.write(self._file[checkpoints.GROUP], arrays, end, self._disk.sync)
                self._disk.check()

        self._handed = self._checkpoint = self._thread.submit(write)
        if wait:
            self._wait()
        self._check_place()

    def saved(self, like: Arrays | None = None) -> tuple[Saved | None, str]:
        """The newest checkpoint that is whole, if any, and a sentence where a newer one is damaged.

        Raises:
            InputError: where it is of other dynamics, where its arrays have not the names and shapes of ``like``, and
                where a row from before it is damaged.
        """

        def read() -> tuple[Saved | None, str, int]:
            group = self._file.get(checkpoints.GROUP)
            checkpoints.check(group, self.path)
            return checkpoints.read(group)

        arrays, damaged, self._end = self._thread.submit(read).result()
        self.check_rows(self._end)
        if arrays and like is not None and _forms(arrays) != _forms(like):
            with contents.damage_of(self.path):
                raise contents.DamageError("its checkpoint is of another run")
        return arrays, damaged

    def check_rows(self, end: int | None = None) -> None:
        """Compare the first rows of the run, by default all, with their checksums; those of older files have none."""

        def check() -> None:
            rows = complete_rows(self._file) if end is None else end
            for every, series in self._groups:
                check_rows(series, rows // every)

        self._checked(check)

    def forget_summary(self) -> None:
        """Blank the summary, which an analysis of fewer rows has written."""

        def blank() -> dict[str, npt.NDArray[Any]]:
            group = self._file.get(contents.SUMMARY_GROUP, {})
            datasets = [group[name] for name in list(group)]  # values() would hold the lock of h5py between two of them
            return {item.name: np.full(item.shape, np.nan) for item in datasets if not item.is_scale}

        self.write_again(self._thread.submit(blank).result())

    def write_best(self, energy: npt.NDArray[np.float64], spins: BestSpins) -> None:
        """Write the lowest states met so far, in the form for which the file has room."""
        if not isinstance(spins, States) and "bits" in self._file[contents.BEST]:
            spins = States(packed_spins(spins), spins.shape[1])
        self.write_again(contents.arrays_of_best(energy, spins, f"{contents.BEST}/"))

    def finish(self, keep_checkpoint: bool = False) -> None:
        """The run is complete: when the file is closed it is packed, with its checkpoint if that is kept."""
        self.flush()
        self.check_rows()
        self._finished, self._keep_checkpoint = True, keep_checkpoint

    def close(self) -> bool:
        """Write all that is left and let go of the file; False where something else lies under its path by now.

        A finished run's file takes its last form. The first error in writing is raised, an OSError.
        """
        try:
            self._hand_over()
            self._wait()
        finally:
            self._thread.submit(self._file.close).result()
            self._disk.check()
        if self._finished and self._disk.is_at(self.path):
            return self._thread.submit(finish_file, self.path, self._disk, self._keep_checkpoint).result()
        return self._disk.is_at(self.path)

    def rescue(self) -> InputError:
        """Keep under a new name what was written to a file that has gone from its path, and say so."""
        name = self._thread.submit(keep, self.path, self._disk, self._finished, self._keep_checkpoint).result()
        call = worded(f"spinsim resume {quoted(name)}", f"ss.resume({str(name)!r})")
        kept, on = ("the finished run is", "") if self._finished else ("all of it is", f": {call} goes on from there")
        return InputError(f"{self.path} was moved, removed or replaced while a run wrote it; {kept} kept in {name}{on}")


def _rows_of(series: Mapping[str, h5py.Dataset], rows: list[Mapping[str, Any]]) -> dict[str, npt.NDArray[Any]]:
    """The values of rows in the types of a group's series, by name, without their checksums."""
    named = {name: dataset.dtype for name, dataset in series.items() if name != CHECKSUM}
    return {name: np.array([row[name] for row in rows], dtype) for name, dtype in named.items()}


def _forms(arrays: Arrays) -> dict[str, tuple[tuple[int, ...], bool]]:
    """Names and shapes of arrays, and which are no integers."""
    return {name: (np.shape(array), np.asarray(array).dtype.kind == "f") for name, array in arrays.items()}


@contextlib.contextmanager
def open_to_append(path: Path) -> Iterator[RunFile]:
    """The file of a run, open for appending; write errors become one sentence.

    Raises:
        InputError: where the file cannot be opened, the disk is full, or something else lies under the path by now:
            what was written is then kept under another name.
    """
    try:
        with hold(path) as disk, ThreadPoolExecutor(1) as thread:
            file = RunFile(path, disk, thread)
            try:
                yield file
            finally:
                if not file.close():
                    raise file.rescue()
    except OSError as error:
        raise not_written(path, error) from error
