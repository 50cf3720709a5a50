"""Runs read back from their files."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

import h5py

from spinsim import store
from spinsim.errors import InputError
from spinsim.result import annealing, tempering, transfer
from spinsim.result.annealing import AnnealResult
from spinsim.result.base import Result
from spinsim.result.tempering import TemperResult
from spinsim.result.transfer import TransferResult

AnyResult = AnnealResult | TemperResult | TransferResult
READERS: Final[dict[str, Callable[[h5py.File, int, dict[str, str]], AnyResult]]] = {
    "anneal": annealing.read,
    "temper": tempering.read,
    "transfer": transfer.read,
}
OneResult = TypeVar("OneResult", bound=Result)


def load(path: str | os.PathLike[str]) -> AnyResult:
    """Read a run back from its file; of an unfinished one, the steps it has.

    Raises:
        InputError: for a missing file or one that spinsim did not write.
    """
    with store.open_to_read(Path(path)) as file:
        rows, attributes = store.complete_rows(file), store.text_attributes(file)
        store.check_room(file, rows)
        return READERS[attributes["job"]](file, rows, attributes)


def load_anneal(path: str | os.PathLike[str]) -> AnnealResult:
    """Read an annealing run back.

    Raises:
        InputError: as ``load``, and for a file of another job.
    """
    return _load_as(AnnealResult, path, "an anneal")


def load_temper(path: str | os.PathLike[str]) -> TemperResult:
    """Read a tempering run back.

    Raises:
        InputError: as ``load``, and for a file of another job.
    """
    return _load_as(TemperResult, path, "a temper")


def load_transfer(path: str | os.PathLike[str]) -> TransferResult:
    """Read a transfer-matrix run back.

    Raises:
        InputError: as ``load``, and for a file of another job.
    """
    return _load_as(TransferResult, path, "a transfer")


def _load_as(kind: type[OneResult], path: str | os.PathLike[str], job: str) -> OneResult:
    """A run that must be of one job, ``job`` with its article."""
    result = load(path)
    if not isinstance(result, kind):
        raise InputError(f"{path} holds a {result.attributes['job']} run: give the file of {job} run")
    return result
