"""A file of a run open for appending, and one with more room that takes its place."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from math import prod
from pathlib import Path
from typing import Any, Final

import h5py
import numpy as np
import numpy.typing as npt

from spinsim.errors import InputError
from spinsim.files import Disk, not_written
from spinsim.layout import Layout
from spinsim.store.checkpoints import read_checkpoint, write_checkpoint
from spinsim.store.creating import create, stamp
from spinsim.store.models import read_model
from spinsim.store.reading import growing, text_attributes

_FLUSH_SECONDS: Final = 0.5
_PENDING_BYTES: Final = 2**24


class RunFile:
    """The file of a run open for appending.

    Args:
        file: As made by ``create``.
        disk: What it is written to.
        thread: Where everything is written.
    """

    def __init__(self, file: h5py.File, disk: Disk, thread: Executor) -> None:
        self._file, self._disk, self._thread = file, disk, thread
        self._pending: list[Mapping[str, Any]] = []
        self._handed: Future[None] | None = None
        self._flushed = time.monotonic()
        self._series = growing(file)

    def write(self, row: Mapping[str, Any]) -> None:
        """Write the row of number ``row["step"]``, a value for each series by name.

        It is the next one, or one already there (a run started again): that is written again with the same numbers.
        It is written while the caller goes on, and its arrays must not change before ``flush``; an error is raised by
        this call or a later one.
        """
        self._pending.append(row)
        large = len(self._pending) * sum(np.asarray(value).nbytes for value in row.values()) > _PENDING_BYTES
        if large or time.monotonic() - self._flushed > _FLUSH_SECONDS:
            self._hand_over()

    def replace(self, row: Mapping[str, Any], mark: str) -> None:
        """Write a row that is there already anew, with other numbers.

        The series ``mark`` comes after all others have been handed over: it says whether the row is the new one.
        """
        self.flush()

        def write(names: Iterable[str]) -> None:
            for dataset in self._series:
                if (name := dataset.name.rpartition("/")[2]) in names:
                    dataset[row["step"]] = row[name]
            self._file.flush()
            self._disk.check()

        for names in (row.keys() - {mark}, {mark}):
            self._thread.submit(write, names).result()

    def flush(self) -> None:
        """Hand every row to the operating system."""
        self._hand_over()
        self._wait()

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
        if rows:
            first, end = rows[0]["step"], rows[-1]["step"] + 1
            for dataset in self._series:
                if len(dataset) < end:
                    dataset.resize(end, axis=0)
                dataset[first:end] = [row[dataset.name.rpartition("/")[2]] for row in rows]
        self._file.flush()
        self._disk.check()

    def write_again(self, values: Mapping[str, npt.NDArray[Any]]) -> None:
        """Write datasets of fixed size, by path."""

        def write() -> None:
            for path, value in values.items():
                self._file[path][...] = value

        self._thread.submit(write).result()

    def save(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Replace the older of the two checkpoints.

        A file that Python wrote has none: its run begins anew.
        """
        self.flush()
        if "checkpoint" not in self._file:
            return
        self._thread.submit(write_checkpoint, self._file["checkpoint"], arrays, self._disk.sync).result()
        self._disk.check()

    def saved(self) -> tuple[dict[str, npt.NDArray[Any]] | None, str]:
        """The newest checkpoint that is whole, if any, and a sentence where a newer one is damaged."""
        return read_checkpoint(self._file.get("checkpoint"))

    def forget_summary(self) -> None:
        """What an analysis of fewer rows found is no longer true."""
        group = self._file.get("summary", {})
        stale = [dataset.name for dataset in group.values() if not dataset.is_scale]
        self.write_again({name: np.full(self._file[name].shape, np.nan) for name in stale})

    def take_over(self, old: h5py.File) -> None:
        """Copy everything measured and saved from another file."""

        def copy() -> None:
            for dataset in growing(old):
                new, rows = self._file[dataset.name], len(dataset)
                new.resize(rows, axis=0)
                step = max(1, _PENDING_BYTES // (dataset.dtype.itemsize * prod(dataset.shape[1:])))
                for first in range(0, rows, step):
                    new[first : first + step] = dataset[first : first + step]
            for name in old.keys() & {"best", "checkpoint", "tempering"}:
                old[name].visititems(lambda path, item, name=name: self._take(item) if _is_fixed(item) else None)
            self._file.flush()
            self._disk.sync()

        self._thread.submit(copy).result()

    def _take(self, dataset: h5py.Dataset) -> None:
        self._file[dataset.name][...] = dataset[...]

    def write_best(self, energy: npt.NDArray[np.float64], spins: npt.NDArray[np.int8]) -> None:
        """Write the lowest states met so far."""
        self.write_again({"best/energy": energy, "best/spins": spins})

    def finish(self) -> None:
        """Mark the run complete."""
        self.flush()
        self._thread.submit(self._file.attrs.modify, "finished", np.bytes_(stamp())).result()


def _is_fixed(item: h5py.Dataset | h5py.Group) -> bool:
    """Whether this is a dataset that is written again and again."""
    return isinstance(item, h5py.Dataset) and not item.chunks and not item.is_scale


@contextlib.contextmanager
def open_to_append(path: Path) -> Iterator[RunFile]:
    """The file of a run, open for appending; write errors become one sentence.

    Raises:
        InputError: where the file cannot be opened or the disk is full.
    """
    try:
        with Disk(path, "r+") as disk, ThreadPoolExecutor(1) as thread:
            disk.lock()
            file = thread.submit(h5py.File, disk, "r+").result()
            appended = RunFile(file, disk, thread)
            try:
                try:
                    yield appended
                finally:
                    appended.flush()
            finally:
                thread.submit(file.close).result()
                disk.check()
    except OSError as error:
        raise not_written(path, error) from error


def extend(path: Path, layout: Layout, rows: int, attributes: Mapping[str, str]) -> None:
    """Give a run's file room for ``rows`` rows and other attributes: a copy takes its place at one stroke.

    Raises:
        InputError: where the file has no checkpoint, is open elsewhere, or its copy cannot be written.
    """
    path = path.resolve()
    copy = path.with_name(f".{path.name}.{os.getpid()}.extended")
    try:
        with Disk(path, "r+") as disk:
            disk.lock()
            with h5py.File(disk, "r") as old:
                if "checkpoint" not in old:
                    raise InputError(f"{path} holds no checkpoint to go on from: resume the file that the run wrote")
                arrays = {name: dataset[...] for name, dataset in old["checkpoint/0"].items()}
                kept = text_attributes(old) | dict(attributes)
                kept.pop("finished", None)
                best_of = old["best/energy"].shape[1] if "best" in old else 0
                create(copy, read_model(old), layout, rows, kept, best_of, arrays)
                with open_to_append(copy) as new:
                    new.take_over(old)
            os.replace(copy, path)
    except OSError as error:
        raise not_written(path, error) from error
    finally:
        copy.unlink(missing_ok=True)
