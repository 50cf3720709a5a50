"""dimod's files of binary quadratic models, version 1 and 2, as ``BinaryQuadraticModel.to_file`` writes them.

Source: the format specification in dimod's documentation of that function.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from spinsim.errors import InputError
from spinsim.model.formats.source import MOST_SITES, Source
from spinsim.model.quadratic import BINARY, SPIN, Labels, Quadratic, as_labels, label_of, one_half, plain_label

MAGIC: Final = b"DIMODBQM"
_LABELS: Final = b"VARS"
_INTEGER: Final = re.compile(r"u?int(8|16|32|64)")
_PAD: Final = 64  # headers and labels end at multiples of so many bytes


def read(source: Source) -> Quadratic:
    try:
        return _Reader(source).problem()
    except (ValueError, TypeError, KeyError, RecursionError, OverflowError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{source.name} is a damaged BQM file of dimod: take another copy of it") from error


class _Reader:
    """The parts of a file, one after the other."""

    def __init__(self, source: Source) -> None:
        self._source, self._rest = source, memoryview(source.data)[len(MAGIC) :]
        version = bytes(self._next(2))
        if version[0] not in (1, 2):
            raise InputError(f"{source.name} has version {version[0]} of dimod's format: write it as version 2")
        self._version = version[0]
        self._about = json.loads(bytes(self._next(self._number())).decode("ascii"))

    def problem(self) -> Quadratic:
        about = self._about
        sites, pairs = (self._whole(number) for number in about["shape"])
        value = np.dtype({"float64": "<f8", "float32": "<f4"}[about["dtype"]])
        outer, start = (self._integer(about[name]) for name in ("itype", "ntype"))
        if about["vartype"] not in (SPIN, BINARY):
            raise InputError(f"{self._source.name} has variables of other kinds: write a binary quadratic model")
        offset = self._array(value, 1)[0]
        linear = self._array(np.dtype([("start", start), ("value", value)]), sites)
        quadratic = self._array(np.dtype([("other", outer), ("value", value)]), 2 * pairs)
        begin = np.append(linear["start"].astype(np.int64), 2 * pairs)
        if begin[0] or (np.diff(begin) < 0).any():
            raise ValueError
        own, other = np.repeat(np.arange(sites), np.diff(begin)), quadratic["other"].astype(np.int64)
        if len(other) and not (other.min() >= 0 and other.max() < sites):
            raise ValueError
        half = one_half(np.stack([own, other], axis=1), quadratic["value"].astype(np.float64))
        if half is None or len(half[1]) != pairs:
            raise ValueError
        ends, values = half
        order = np.lexsort((ends[:, 1], ends[:, 0]))
        every, vartype, labels = np.arange(sites), about["vartype"], self._labels(sites)
        ends = np.concatenate([np.stack([every, every], axis=1), ends[order]])
        values = np.concatenate([linear["value"].astype(np.float64), values[order]])
        is_maxcut = about.get("maxcut") is True and vartype == SPIN and not linear["value"].any() and not offset
        return Quadratic(sites, ends, values, vartype, float(offset), labels, is_maxcut, self._source.model_name)

    def _labels(self, sites: int) -> Labels:
        said = self._about["variables"]
        if self._version > 1 and said:
            if bytes(self._next(len(_LABELS))) != _LABELS:
                raise ValueError
            said = json.loads(bytes(self._next(self._number())).decode("ascii"))
        return as_labels([label_of(label) for label in said], sites) if said else range(sites)

    def _array(self, dtype: np.dtype[Any], many: int) -> npt.NDArray[Any]:
        return np.frombuffer(self._next(many * dtype.itemsize), dtype)

    def _number(self) -> int:
        return int.from_bytes(self._next(4), "little")

    def _next(self, size: int) -> memoryview:
        if size > len(self._rest):
            raise ValueError
        taken, self._rest = self._rest[:size], self._rest[size:]
        return taken

    @staticmethod
    def _whole(number: Any) -> int:
        if type(number) is not int or not 0 <= number <= MOST_SITES:
            raise ValueError
        return number

    @staticmethod
    def _integer(name: Any) -> np.dtype[Any]:
        if not (isinstance(name, str) and _INTEGER.fullmatch(name)):
            raise ValueError
        return np.dtype(name).newbyteorder("<")


def write(problem: Quadratic) -> bytes:
    """The file of a problem, version 2; dimod reads it."""
    linear, ends, pairs = problem.added_up()
    own, other = np.concatenate([ends, ends[:, ::-1]]).T
    order = np.lexsort((other, own))
    begin = np.concatenate([[0], np.cumsum(np.bincount(own, minlength=problem.sites))[:-1]])
    if 2 * len(pairs) > MOST_SITES:
        raise InputError(f"{len(pairs)} pairs are too many for a BQM file: give another suffix, such as .mtx")
    first = np.empty(problem.sites, [("start", "<i4"), ("value", "<f8")])
    first["start"], first["value"] = begin, linear
    second = np.empty(len(order), [("other", "<i4"), ("value", "<f8")])
    second["other"], second["value"] = other[order], np.concatenate([pairs, pairs])[order]
    named = problem.names != range(problem.sites)
    about = {"dtype": "float64", "itype": "int32", "ntype": "int32", "shape": [problem.sites, len(pairs)]}
    kind = {"type": "BinaryQuadraticModel", "variables": named, "vartype": problem.vartype}
    more = {"maxcut": True} if problem.is_maxcut else {}
    head = json.dumps(about | kind | more).encode() + b"\n"
    head += b" " * (-(len(MAGIC) + 6 + len(head)) % _PAD)
    parts = [MAGIC, b"\x02\x00", len(head).to_bytes(4, "little"), head, np.float64(problem.offset).tobytes()]
    parts += [first.tobytes(), second.tobytes()]
    if named:
        labels = json.dumps([plain_label(name) for name in problem.names]).encode()
        labels += b" " * (-(len(_LABELS) + 4 + len(labels)) % _PAD)
        parts += [_LABELS, len(labels).to_bytes(4, "little"), labels]
    return b"".join(parts)
