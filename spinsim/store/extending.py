"""A file with more room that takes the place of a run's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np

from spinsim.errors import InputError
from spinsim.machine.files import Disk, not_written, replacement
from spinsim.store.appending import hold
from spinsim.store.checkpoints import CHECKPOINTS, check_checkpoints, copy_checkpoints, copy_into, datasets_of
from spinsim.store.contents import BEST, Contents
from spinsim.store.creating import write_new
from spinsim.store.datasets import pieces
from spinsim.store.finishing import copy_unknown
from spinsim.store.forms import DamageError, check_texts, form_of
from spinsim.store.models import identity, read_model
from spinsim.store.reading import complete_rows, every_of, growing, series_by_group
from spinsim.store.row_checksums import CHECKSUM, row_checksums


def extend(
    path: Path,
    contents: Contents,
    rows: int,
    check: Callable[[Mapping[str, str], str], None],
    attributes: Mapping[str, str],
    saved: Mapping[str, tuple[int, ...]],
    thin: int = 1,
) -> None:
    """Give a run's file room for ``rows`` rows and other attributes: a copy takes its place at one stroke.

    Args:
        path: Path of the file.
        contents: Contents of the file, but for series that a file of an older version lacks.
        rows: Rows that there shall be room for.
        check: Called with its root attributes and the SHA-256 of the model in it; raises where they are wrong.
        attributes: Root attributes that it gets.
        saved: Shapes of the arrays that its checkpoints shall hold, longer ones along the first axis among them.
        thin: Rows of the file for each one that is kept; saved configurations all stay.

    Raises:
        InputError: where the file has no checkpoint or one of other dynamics, is open elsewhere, or its copy cannot be
            written.
    """

    def write(disk: Disk) -> None:
        with h5py.File(disk, "r") as old:
            check_texts(old)
            stated, model_sha256 = identity(old)
            check(stated, model_sha256)
            if CHECKPOINTS not in old:
                raise InputError(
                    f"{path} holds no checkpoint to go on from, like copies from Python and searches that earlier "
                    "versions finished: resume the file that the run wrote, or begin another run"
                )
            check_checkpoints(old[CHECKPOINTS], path)
            slot = datasets_of(old[CHECKPOINTS], 0)
            arrays = {name: np.empty(saved.get(name, one.shape), one.dtype) for name, one in slot.items()}
            root = {name: value for name, value in stated.items() if name != "finished"} | dict(attributes)
            best_of = old["best/energy"].shape[1] if "best" in old else 0
            longer = replace(contents, series=tuple(series for series in contents.series if series.path in old))
            with replacement(path, disk) as room:
                write_new(room, read_model(old), longer, rows, root, best_of, arrays, "best/spins" in old)
                with h5py.File(room, "r+") as new:
                    _take_over(old, new, thin)
                    copy_unknown(old, new)

    try:
        with hold(path) as disk, ThreadPoolExecutor(1) as thread:
            thread.submit(write, disk).result()
    except DamageError as error:
        raise InputError(f"{path} is damaged, {error}: take another copy of it") from error
    except OSError as error:
        raise not_written(path, error) from error


def _take_over(old: h5py.File, new: h5py.File, thin: int) -> None:
    """Copy everything measured and saved, of groups with all rows of the run every so many-th row."""
    for dataset in growing(old):
        copy, every = new[dataset.name], thin if every_of(dataset.parent) == 1 else 1
        copy.resize(len(dataset) // every, axis=0)
        for piece in pieces([dataset], len(copy)):
            first, stop = piece.start * every, piece.stop * every
            copy[piece] = dataset[first:stop][every - 1 :: every]
    for _, series in series_by_group(new):
        if thin > 1:
            _number_anew(series, thin)
        if thin > 1 or series[CHECKSUM].name not in old:
            _add_checksums(series)
    copy_checkpoints(old[CHECKPOINTS], new[CHECKPOINTS], complete_rows(old), thin)
    for group in (BEST, *form_of(old).groups):
        for name in list(new[group]) if group in old else []:
            item = new[group][name]
            if isinstance(item, h5py.Dataset) and not item.chunks and not item.is_scale:  # written again and again
                copy_into(item, old[item.name])


def _number_anew(series: Mapping[str, h5py.Dataset], thin: int) -> None:
    """Number the rows that are left, and say of saved configurations which of these they belong to."""
    step = series["step"]
    step[...] = np.arange(len(step))
    if "measurement" in series:
        series["measurement"][...] = (series["measurement"][...] + 1) // thin - 1


def _add_checksums(series: Mapping[str, h5py.Dataset]) -> None:
    """Fill in the checksums of a group's rows, which a finished file or an older one does not have."""
    measured = {name: dataset for name, dataset in series.items() if name != CHECKSUM}
    rows = min(map(len, measured.values()))
    series[CHECKSUM].resize(rows, axis=0)
    for piece in pieces(list(measured.values()), rows):
        series[CHECKSUM][piece] = row_checksums({name: dataset[piece] for name, dataset in measured.items()})
