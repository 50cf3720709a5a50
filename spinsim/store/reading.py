"""Opening a file of a run, and what it says of itself."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import h5py

from spinsim.errors import InputError
from spinsim.layout import FIXED

SCHEMA: Final = "spinsim/1"


def growing(file: h5py.File) -> list[h5py.Dataset]:
    """All series: what has a row for each step."""
    groups = [file[name] for name in list(file) if "step" in file[name]]
    return [item for group in groups for item in [group[name] for name in list(group)] if _grows(item)]


def _grows(dataset: h5py.Dataset) -> bool:
    group, _, name = dataset.name.strip("/").rpartition("/")
    return name == "step" or not (dataset.is_scale or (group, name) in FIXED)


def complete_rows(file: h5py.File) -> int:
    """Rows that all series have."""
    return min((len(dataset) for dataset in growing(file)), default=0)


def attributes(file: h5py.File) -> dict[str, Any]:
    """The root attributes of a spinsim file, ``finished`` only where it is."""
    values = {key: value.decode() if isinstance(value, bytes) else value for key, value in file.attrs.items()}
    return {key: value for key, value in values.items() if key != "finished" or value}


def text_attributes(file: h5py.File) -> dict[str, str]:
    """The same as ``attributes``, as text."""
    return {key: str(value) for key, value in attributes(file).items()}


def read_attributes(path: Path) -> dict[str, Any]:
    """The root attributes of a spinsim file.

    Raises:
        InputError: for a missing file and for one that is not of this schema.
    """
    with open_to_read(path) as file:
        return attributes(file)


@contextlib.contextmanager
def open_to_read(path: Path) -> Iterator[h5py.File]:
    """A spinsim file, open for reading.

    Raises:
        InputError: for a missing file and for one that is not of this schema.
    """
    if os.path.isdir(path):
        raise InputError(f"{path} is a directory: give a file that spinsim wrote")
    if not os.path.isfile(path):
        raise InputError(f"{path} is not there: give the path of a spinsim file")
    try:
        file = h5py.File(path, "r")
    except BlockingIOError as error:
        raise InputError(f"{path} is open in another process: wait until that one is done") from error
    except PermissionError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}): check its permissions") from error
    except OSError as error:
        raise InputError(f"{path} is not an HDF5 file: give a file that spinsim wrote") from error
    with file:
        schema = str(file.attrs.get("schema"))
        if schema != SCHEMA:
            raise InputError(f"{path} has schema {schema!r}, not {SCHEMA}: give a file that spinsim wrote")
        try:
            yield file
        except (KeyError, OSError) as error:
            raise InputError(
                f"{path} is damaged, a part cannot be read: give another file that spinsim wrote"
            ) from error
