"""The content of an instance file, and refusals that quote its lines."""

from __future__ import annotations

import json
import os
import re
import zlib
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from math import isfinite
from typing import Any, Final

from spinsim.errors import InputError
from spinsim.inputs.checks import check_whole
from spinsim.inputs.texts import printable
from spinsim.machine.files import as_path, open_regular
from spinsim.machine.memory import require
from spinsim.model.problems.labels import Labels, as_labels, label_of, plain_label
from spinsim.model.problems.quadratic import LARGEST_VALUE, Quadratic

FORMATS: Final = (
    "give a rudy / G-set / Biq Mac file ('n m', then lines 'i j w' or 'i j'; with the suffix .sparse a QUBO), a dimod "
    "COO file ('# vartype=SPIN' or '# vartype=BINARY', then lines 'i j value'), a qbsolv file ('p qubo 0 maxNodes "
    "nDiagonals nElements', then lines 'i j value'), a MatrixMarket file ('%%MatrixMarket matrix ...'), an edge list "
    "with the suffix .edgelist or a BQM file of dimod"
)
_ROOM_A_BYTE: Final = 16  # of text, while it is read
_GZIP: Final = b"\x1f\x8b"
_NOTE: Final = re.compile(r"[ \t]*[#cC%][ \t]*spinsim:(.*)")


class Source:
    """An instance file, whose lines count from 1; one that gzip packed is unpacked.

    Attributes:
        name: As messages have it.
        model_name: Of the model that it holds: without its last suffix.
        suffix: In small letters.
        data: Its bytes.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        found = as_path(path, "an instance")
        self.name = str(path) if str(path) and str(path).isprintable() else repr(str(path))
        self.data = _read(found, self.name)
        if self.data.startswith(_GZIP):
            self.data = _unpacked(self.data, self.name)
            found = found.with_suffix("") if found.suffix.lower() == ".gz" else found
        self.model_name, self.suffix = printable(found.stem), found.suffix.lower()

    @cached_property
    def text(self) -> str:
        """The text, with line ends of one kind."""
        try:
            text = self.data.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
        except UnicodeDecodeError as error:
            number, byte = self.data.count(b"\n", 0, error.start) + 1, self.data[error.start]
            raise InputError(
                f"line {number} of {self.name} has the byte 0x{byte:02x}, but instance files are UTF-8 text: {FORMATS}"
            ) from error
        if not text.strip():
            raise InputError(f"instance file {self.name} is empty: {FORMATS}")
        return text

    @cached_property
    def lines(self) -> list[str]:
        return self.text.split("\n")

    @cached_property
    def first(self) -> int:
        """Number of the first line that is not blank."""
        return next(number for number, line in enumerate(self.lines, 1) if line.strip())

    def line(self, number: int) -> str:
        return self.lines[number - 1]

    def first_beyond(self, comments: str) -> int:
        """First line that is neither blank nor a comment by its first character; the first of all if there is none."""
        found = (n for n, line in enumerate(self.lines, 1) if line.strip() and line.lstrip()[0] not in comments)
        return next(found, self.first)

    def below(self, header: int, comments: str = "") -> list[str]:
        """The lines below a header; comments, told by their first characters, are blanked, which keeps the numbers."""
        text = re.sub(rf"^[ \t]*[{comments}].*", "", self.text, flags=re.MULTILINE) if comments else self.text
        return text.split("\n")[header:]

    def refusal(self, number: int, rule: str) -> InputError:
        text = self.line(number).strip()
        shown = repr(text if len(text) <= 60 else text[:57] + "...")
        return InputError(f"line {number} of {self.name} reads {shown}, but {rule}")

    def unknown(self, number: int) -> InputError:
        return self.refusal(number, f"it is the header of no known format: {FORMATS}")

    @cached_property
    def note(self) -> Note:
        """What a comment of this program says beside the numbers."""
        for number, line in enumerate(self.lines if "spinsim:" in self.text else (), 1):
            if "spinsim:" in line and (found := _NOTE.fullmatch(line)):
                try:
                    return _note_of(json.loads(found[1]))
                except (ValueError, TypeError, RecursionError) as error:
                    reason = str(error) if isinstance(error, InputError) else "what follows 'spinsim:' is no valid JSON"
                    raise self.refusal(number, f"{printable(reason).partition(': ')[0]}: delete the line") from error
        return Note()

    def with_note(self, problem: Quadratic) -> Quadratic:
        """A problem with the name of the file, and with the labels and the constant that its comment says."""
        note = self.note
        labels = problem.labels if note.labels is None else _labels(note.labels, problem.sites, self.name)
        offset = problem.offset if note.offset is None else note.offset
        return replace(problem, labels=labels, offset=offset, name=self.model_name)


@dataclass(frozen=True)
class Note:
    """What formats with comments hold in one of them, where it has no other place.

    Attributes:
        labels: Of the variables.
        offset: The constant.
        vartype: Of the variables.
        is_maxcut: Whether the values are weights of a MaxCut instance.
    """

    labels: list[Any] | range | None = None
    offset: float | None = None
    vartype: str | None = None
    is_maxcut: bool = False


def _note_of(said: Any) -> Note:
    if not isinstance(said, dict) or set(said) - {"labels", "first_label", "offset", "vartype", "maxcut"}:
        raise InputError("it says more than labels, first_label, offset, vartype and maxcut: ")
    labels, first, offset = said.get("labels"), said.get("first_label"), said.get("offset")
    if labels is not None and not isinstance(labels, list):
        raise InputError("its labels are no list: ")
    if first is not None and (type(first) is not int or abs(first) > 2**62):
        raise InputError("its first_label is no whole number: ")
    if offset is not None and (type(offset) not in (int, float) or not isfinite(offset) or abs(offset) > LARGEST_VALUE):
        raise InputError("its offset is no finite number: ")
    if said.get("vartype") not in (None, "SPIN", "BINARY"):
        raise InputError("its vartype is neither SPIN nor BINARY: ")
    every = labels if first is None else range(first, first + 1)
    if isinstance(offset, int):
        check_whole(offset, "its offset")
    return Note(every, None if offset is None else float(offset), said.get("vartype"), said.get("maxcut") is True)


def _labels(said: list[Any] | range, sites: int, name: str) -> Labels:
    if isinstance(said, range):
        return range(said.start, said.start + sites)
    try:
        return as_labels([label_of(label) for label in said], sites)
    except (InputError, RecursionError) as error:
        raise InputError(f"the labels in {name} do not fit ({error}".partition(": ")[0] + "): correct them") from error


def note_text(problem: Quadratic, comment: str, first: int, **beside: Any) -> str:
    """The comment line that holds what a format has no other place for; empty where there is nothing.

    Args:
        problem: Which is written.
        comment: How comments of the format begin.
        first: Label of the first variable that the format itself counts from.
        beside: More to say, where it is not 0 and not False.
    """
    said = {name: value for name, value in beside.items() if value}
    names = problem.names
    if isinstance(names, range):
        if names.start != first:
            said["first_label"] = names.start
    else:
        said["labels"] = [plain_label(label) for label in names]
    return f"{comment} spinsim: {json.dumps(said)}\n" if said else ""


def _read(path: str | os.PathLike[str], name: str) -> bytes:
    try:
        with open_regular(path) as file:
            require(_ROOM_A_BYTE * os.fstat(file.fileno()).st_size, f"reading {name}", "give a smaller instance")
            return file.read()
    except FileNotFoundError as error:
        raise InputError(f"instance file {name} does not exist: check the path") from error
    except IsADirectoryError as error:
        raise InputError(f"{name} is a directory: give one instance file in it") from error
    except InputError:
        raise
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise InputError(
            f"instance file {name} cannot be read ({reason}): check the path and its permissions"
        ) from error


def _unpacked(data: bytes, name: str) -> bytes:
    """The content of a gzip file, which ends in its length."""
    length = int.from_bytes(data[-4:], "little")
    require(_ROOM_A_BYTE * length, f"reading {name}", "give a smaller instance")
    unpacker, found = zlib.decompressobj(16 + zlib.MAX_WBITS), b""
    with suppress(zlib.error):
        found = unpacker.decompress(data, length + 1)
    if not unpacker.eof or unpacker.unused_data or len(found) != length:
        raise InputError(f"{name} is a gzip file that is damaged or has several parts: unpack it by gunzip")
    return found
