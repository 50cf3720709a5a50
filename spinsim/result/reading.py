"""Runs read back from their files."""

from __future__ import annotations

import os
from pathlib import Path

from spinsim import store
from spinsim.errors import InputError
from spinsim.result import annealing, tempering, transfer
from spinsim.result.annealing import AnnealResult
from spinsim.result.tempering import TemperResult
from spinsim.result.transfer import TransferResult

AnyResult = AnnealResult | TemperResult | TransferResult


def load(path: str | os.PathLike[str]) -> AnyResult:
    """Read a run back from its file; of an unfinished one, the steps it has.

    Raises:
        InputError: for a missing file or one that spinsim did not write.
    """
    with store.open_to_read(Path(path)) as file:
        rows, attributes = store.complete_rows(file), store.text_attributes(file)
        if attributes.get("job") == "transfer":
            return transfer.read(file, rows, attributes)
        if attributes.get("job") == "temper":
            return tempering.read(file, rows, attributes)
        return annealing.read(file, rows, attributes)


def load_anneal(path: str | os.PathLike[str]) -> AnnealResult:
    """Read an annealing run back.

    Raises:
        InputError: as ``load``, and for a file of another job.
    """
    result = load(path)
    if not isinstance(result, AnnealResult):
        raise InputError(f"{path} holds a {result.attributes['job']} run: give the file of an anneal run")
    return result


def load_temper(path: str | os.PathLike[str]) -> TemperResult:
    """Read a tempering run back.

    Raises:
        InputError: as ``load``, and for a file of another job.
    """
    result = load(path)
    if not isinstance(result, TemperResult):
        raise InputError(f"{path} holds a {result.attributes['job']} run: give the file of a temper run")
    return result


def load_transfer(path: str | os.PathLike[str]) -> TransferResult:
    """Read a transfer-matrix run back.

    Raises:
        InputError: as ``load``, and for a file of another job.
    """
    result = load(path)
    if not isinstance(result, TransferResult):
        raise InputError(f"{path} holds a {result.attributes['job']} run: give the file of a transfer run")
    return result
