"""The content of an instance file: its comments, its lines ``i j value``, and refusals that quote them."""

from __future__ import annotations

import importlib
import io
import json
import os
import re
import zlib
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import takewhile
from math import isfinite
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim.errors import InputError
from spinsim.inputs.numbers import LARGEST, check_whole, check_word
from spinsim.inputs.texts import printable
from spinsim.machine.files import as_path, open_regular
from spinsim.machine.memory import require
from spinsim.model.quadratic import LARGEST_VALUE, Ends, Labels, Quadratic, Values, as_labels, label_of, plain_label

FORMATS: Final = (
    "give a rudy / G-set / Biq Mac file ('n m', then lines 'i j w' or 'i j'; with the suffix .sparse, .bq or .qs a "
    "QUBO), a dimod COO file ('# vartype=SPIN' or '# vartype=BINARY', then lines 'i j value'), a qbsolv file ('p qubo "
    "0 maxNodes nDiagonals nElements', then lines 'i j value'), a DIMACS graph ('p edge n m', then lines 'e i j'), a "
    "MatrixMarket file ('%%MatrixMarket matrix ...'), an edge list with the suffix .edgelist, .edges, .el or .wel or a "
    "BQM file of dimod"
)
_NOTE: Final = re.compile(r"[ \t]*[#cC%][ \t]*spinsim:(.*)")
_OFFSET: Final = re.compile(
    r"^[ \t]*[#cC%][ \t]*(?:vartype[:=][ \t]*\w+[ \t,;]+)?(objective)?offset(?:[ \t]*([:=])[ \t]*|[ \t]+)(\S+)",
    re.IGNORECASE | re.MULTILINE,
)
COMMENT: Final = r"#|[cC](?!\S)"
"""Beginning of a comment before any header: ``#``, or ``c`` as a word."""
MOST_SITES: Final = 2**31 - 1  # bonds hold their sites as int32
_SITES_UNASKED: Final = 2**20
_SITES_A_TERM: Final = 100
_COLUMNS: Final = {2: "two, two sites", 3: "three, two sites and a value"}


class Source:
    """An instance file, unpacked if gzip or xz packed it; its lines count from 1."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        file = as_path(path, "an instance")
        self.name = str(path) if str(path) and str(path).isprintable() else repr(str(path))
        self.data, file = unpacked(_read(file, self.name), file, self.name)
        self.model_name, self.suffix = printable(file.stem), file.suffix.lower()  # the former without its last suffix

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
        return next(number for number, line in enumerate(self.lines, 1) if line.strip())

    def line(self, number: int) -> str:
        return self.lines[number - 1]

    def above(self, comments: str = COMMENT) -> list[str]:
        """Lines above the first that is neither blank nor a comment; ``comments`` matches how comments begin."""
        begin = re.compile(comments)
        return list(takewhile(lambda line: not line.strip() or begin.match(line.lstrip()), self.lines))

    def first_beyond(self, comments: str = COMMENT) -> int:
        """First line that is neither blank nor a comment; the first of all if there is none."""
        above = len(self.above(comments))
        return above + 1 if above < len(self.lines) else self.first

    def below(self, header: int, comments: str = "", mark: str = "") -> list[str]:
        """The lines below a header; comments and marks before terms are blanked, which keeps the numbers of lines."""
        text = self.text
        if comments:
            text = re.sub(rf"^[ \t]*(?:{comments}).*", "", text, flags=re.MULTILINE)
        if mark:
            text = re.sub(rf"^[ \t]*{mark}(?!\S)", "", text, flags=re.MULTILINE)
        return text.split("\n")[header:]

    def refusal(self, number: int, rule: str) -> InputError:
        text = self.line(number).strip()
        shown = repr(text if len(text) <= 60 else text[:57] + "...")
        return InputError(f"line {number} of {self.name} reads {shown}, but {rule}")

    def unknown(self, number: int) -> InputError:
        return self.refusal(number, f"it is the header of no known format: {FORMATS}")

    @cached_property
    def note(self) -> Note:
        """The note that this program has written in a comment."""
        for number, line in enumerate(self.lines if "spinsim:" in self.text else (), 1):
            if "spinsim:" in line and (match := _NOTE.fullmatch(line)):
                try:
                    return _note_of(json.loads(match[1]))
                except (ValueError, TypeError, RecursionError) as error:
                    reason = str(error) if isinstance(error, InputError) else "what follows 'spinsim:' is no valid JSON"
                    raise self.refusal(number, f"{printable(reason).partition(': ')[0]}: delete the line") from error
        return Note()

    @cached_property
    def offset(self) -> float | None:
        """The constant that a comment of other programs states, such as ``# ObjectiveOffset 3`` or ``c offset: 3``."""
        offset = None
        for match in _OFFSET.finditer(self.text) if "ffset" in self.text else ():
            text, line = match[3], self.text.count("\n", 0, match.start()) + 1
            is_value = is_number(text) and abs(float(text)) < LARGEST_VALUE
            if not is_value and not (match[1] or match[2]):
                continue  # a remark that begins with this word
            if not is_value or offset not in (None, float(text)):
                rule = "the constant is one finite number below 1e300: correct it or delete the line"
                raise self.refusal(line, rule)
            check_word(text, f"the constant in line {line} of {self.name}")
            offset = float(text)
        return offset

    def with_note(self, problem: Quadratic) -> Quadratic:
        """A problem with the name of the file, and with the labels and the constant from its comments."""
        note = self.note
        labels = problem.labels if note.labels is None else _labels(note.labels, problem.sites, self.name)
        stated = None if problem.is_maxcut else self.offset
        offset = next((said for said in (note.offset, stated) if said is not None), problem.offset)
        return replace(problem, labels=labels, offset=offset, name=self.model_name)


@dataclass(frozen=True)
class Note:
    """Facts without another place in the file; formats with comments hold them in a comment."""

    labels: list[Any] | range | None = None  # labels of the variables
    offset: float | None = None  # the constant
    vartype: str | None = None  # type of the variables
    is_maxcut: bool = False  # True if the values are weights of a MaxCut instance


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


def note_text(problem: Quadratic, comment: str, first: int, **facts: Any) -> str:
    """The comment line that holds facts for which a format has no other place; empty where there are none.

    ``comment`` begins comments of the format, which itself counts variables from ``first``; facts that are 0 or False
    are left out.
    """
    said = {name: value for name, value in facts.items() if value}
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
            require(ROOM_A_BYTE * os.fstat(file.fileno()).st_size, f"reading {name}", "give a smaller instance")
            return file.read()
    except FileNotFoundError as error:
        raise InputError(f"instance file {name} does not exist: check the path") from error
    except IsADirectoryError as error:
        raise InputError(f"{name} is a directory: give one instance file in it") from error
    except InputError:
        raise
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise InputError(f"instance file {name} cannot be read ({reason}): check path and permissions") from error


class Terms:
    """Terms in the lines below a header: two numbers of sites from ``low`` to ``high`` and a value each.

    Comments may stand among them (``comments`` matches how they begin), and a ``mark`` before each term. If terms may
    be ``unweighted``, all lines may be ``i j`` alone, with values 1. ``ends`` are both sites of each term as the file
    numbers them, ``int64`` (terms, 2), ``values`` are ``float64`` (terms,). The first line that is no term raises
    InputError.
    """

    def __init__(
        self,
        source: Source,
        header: int,
        low: int,
        high: int,
        comments: str = "",
        unweighted: bool = False,
        mark: str = "",
    ) -> None:
        self._source, self._header, self._body = source, header, source.below(header, comments, mark)
        first = next((line for line in self._body if line.strip()), "")
        self._columns = 2 if unweighted and len(first.split()) == 2 else 3
        table = self._parse()
        self.values = table[:, 2] if self._columns == 3 else np.ones(len(table))
        self.demand(np.abs(self.values) < LARGEST_VALUE, "the value must be finite and below 1e300: correct it")
        # whole numbers that float64 cannot hold are refused
        for term in np.flatnonzero(np.abs(self.values) >= LARGEST).tolist() if self._columns == 3 else []:
            at = self.line_number(term)
            check_word(self._body[at - header - 1].split()[2], f"the value in line {at} of {source.name}")
        one, other = table[:, 0], table[:, 1]
        self.demand((np.rint(one) == one) & (np.rint(other) == other), "sites have whole numbers: correct the index")
        inside = (np.minimum(one, other) >= low) & (np.maximum(one, other) <= high)
        self.demand(inside, f"sites are numbered {low} to {high}: correct the index or the header")
        self.ends = table[:, :2].astype(np.int64)

    def __len__(self) -> int:
        return len(self.values)

    def demand(self, good: npt.NDArray[np.bool_], rule: str) -> None:
        if not good.all():
            raise self._source.refusal(self.line_number(int(np.argmin(good))), rule)

    def line_number(self, term: int) -> int:
        """Line of a term; a slow search, for refusals only."""
        return [number for number, line in enumerate(self._body, self._header + 1) if line.strip()][term]

    def check_number(self, announced: int) -> None:
        """Refuse another number of terms than the header announces as m."""
        if len(self) > announced:
            raise self._source.refusal(
                self.line_number(announced),
                f"line {self._header} announces m = {announced} and {len(self)} bonds follow: correct m or delete the "
                "extra lines",
            )
        if len(self) < announced:
            raise self._source.refusal(
                self._header,
                f"only {len(self)} of m = {announced} bonds follow: correct m or add the missing lines, or give a list "
                "of edges without a header the suffix .edgelist",
            )

    def check_room(self, sites: int) -> None:
        """Refuse numbers of sites that look like a typing error, and numbers that do not fit in memory."""
        name = self._source.name
        if sites > max(_SITES_UNASKED, _SITES_A_TERM * len(self)):
            raise InputError(
                f"{name} with {sites} sites and only {len(self)} lines below its header leaves nearly all sites "
                f"without a bond: correct the number of sites, at most {_SITES_A_TERM} a line where there are more "
                f"than {_SITES_UNASKED}"
            )
        require(64.0 * sites, f"{name} with {sites} sites")

    def _parse(self) -> npt.NDArray[np.float64]:
        if not "".join(self._body).strip():
            return np.empty((0, self._columns))
        try:
            table = np.loadtxt(self._body, np.float64, comments=None, ndmin=2)
        except ValueError as error:
            raise self._malformed() from error
        if table.shape[1] != self._columns:
            raise self._malformed()
        return table

    def _malformed(self) -> InputError:
        """Error for the first line that does not consist of the required numbers."""
        write = _COLUMNS[self._columns]
        for number, line in enumerate(self._body, self._header + 1):
            columns = line.split()
            if columns and len(columns) != self._columns:
                count = f"{len(columns)} column" + "s" * (len(columns) > 1)
                return self._source.refusal(number, f"it has {count}: write {write}")
            for text in columns:
                if not is_number(text):
                    return self._source.refusal(number, f"{text[:20]!r} is not a number: write {write.split(', ')[1]}")
        return self._source.refusal(self._header, f"the lines below it are not {write} each: {FORMATS}")


def is_number(text: str) -> bool:
    """True if NumPy reads it as a number."""
    try:
        float(text)
    except ValueError:
        return False
    return text.isascii() and "_" not in text  # Python takes more than NumPy


def check_sites(source: Source, header: int, sites: int, name: str, least: int = 1) -> None:
    if not least <= sites <= MOST_SITES:
        raise source.refusal(header, f"{name} = {sites} is not a number of sites: use {least} to {MOST_SITES}")


def lines_of(ends: Ends, values: Values | None, mark: str = "") -> str:
    """Lines of terms, a ``mark`` before each; values to the last digit, without exponents, which some readers lack."""
    if values is None:
        return "".join(f"{mark}{i} {j}\n" for i, j in ends.tolist())
    pairs = zip(ends.tolist(), values.tolist(), strict=True)
    return "".join(f"{mark}{i} {j} {number(value)}\n" for (i, j), value in pairs)


def number(value: float) -> str:
    text = repr(float(value))
    return np.format_float_positional(value, trim="-") if "e" in text else text.removesuffix(".0")


ROOM_A_BYTE: Final = 16  # of text, while it is read
_AT_ONCE: Final = 2**20  # bytes of content that are unpacked before memory is looked at again


class Compression(NamedTuple):
    """A way to compress files."""

    name: str
    suffix: str  # of files that are compressed so
    magic: bytes  # their first bytes
    module: str  # module of the standard library, loaded where it is needed: some Pythons lack one
    options: dict[str, int]  # so that equal contents make equal files

    def compress(self, content: bytes) -> bytes:
        module = self._load(f"the suffix {self.suffix} asks for {self.name}", "give another, such as .gz, or none")
        return bytes(module.compress(content, **self.options))

    def contents(self, data: bytes, name: str) -> bytes:
        """The content of a file in memory, all its parts; refused as soon as more unpacks than memory has room for."""
        module = self._load(f"{name} is packed by {self.name}", "unpack it, or take another Python")
        parts, size = [], 0
        try:
            with module.open(io.BytesIO(data)) as stream:
                while part := stream.read(_AT_ONCE):
                    size += len(part)
                    require(ROOM_A_BYTE * size, f"reading {name}", "give a smaller instance")
                    parts.append(part)
        except InputError:
            raise
        except (OSError, EOFError, zlib.error, ValueError, getattr(module, "LZMAError", EOFError)) as error:
            raise InputError(f"{name} is a damaged {self.name} file: take another copy of it") from error
        return b"".join(parts)

    def _load(self, reason: str, mend: str) -> Any:
        try:
            return importlib.import_module(self.module)
        except ImportError as error:
            raise InputError(f"{reason}, but this Python lacks the module {self.module}: {mend}") from error


_EVERY: Final = (
    Compression("gzip", ".gz", b"\x1f\x8b", "gzip", {"mtime": 0}),
    Compression("xz", ".xz", b"\xfd7zXZ\0", "lzma", {}),
)


def unpacked(data: bytes, path: Path, name: str) -> tuple[bytes, Path]:
    """Content of a file, compressed or not, and its path without the suffix of the compression."""
    for each in _EVERY:
        if data.startswith(each.magic):
            return each.contents(data, name), path.with_suffix("") if path.suffix.lower() == each.suffix else path
    return data, path


def by_suffix(path: Path) -> tuple[Compression | None, Path]:
    """The compression that a suffix asks for, and the path without that suffix."""
    chosen = next((each for each in _EVERY if path.suffix.lower() == each.suffix), None)
    return chosen, path.with_suffix("") if chosen else path
