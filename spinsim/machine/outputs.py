"""Outputs for people, tables and figures: written whole or not at all, and never in the place of something else."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from spinsim.errors import InputError, argument
from spinsim.machine.files import Disk, new_file, not_written, replaced

CAPTION: Final = "Caption: "  # beginning of the caption of a figure, which tells it from other people's notes
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
"""Beginnings of the files of each kind; a CSV table has a line of names first."""
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
    """Write tables and figures, each whole or not at all; a file that has this very content is left as it is."""
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
            target = Path(os.path.realpath(path))  # a link goes on leading to its file
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
