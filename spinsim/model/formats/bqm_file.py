"""dimod's files of binary quadratic models, version 1 and 2, as ``BinaryQuadraticModel.to_file`` writes them.

Source: the format specification in dimod's documentation of that function.
"""

from __future__ import annotations

import io
import json
import re
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from spinsim.errors import InputError
from spinsim.model.formats.source import MOST_SITES, Source
from spinsim.model.quadratic import BINARY, SPIN, Quadratic, as_labels, label_of, one_half, plain_label

MAGIC: Final = b"DIMODBQM"
_LABELS: Final = b"VARS"
_INTEGER: Final = re.compile(r"u?int(8|16|32|64)")
_PAD: Final = 64  # bytes; headers and labels end at multiples of this


def read(source: Source) -> Quadratic:
    try:
        return _problem(source, io.BytesIO(source.data[len(MAGIC) :]))
    except (ValueError, TypeError, KeyError, RecursionError, OverflowError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{source.name} is a damaged BQM file of dimod: take another copy of it") from error


def _problem(source: Source, file: io.BytesIO) -> Quadratic:
    version = _next(file, 2)[0]
    if version not in (1, 2):
        raise InputError(f"{source.name} has version {version} of dimod's format: write it as version 2")
    about = _json(file)
    sites, pairs = about["shape"]
    if not all(type(number) is int and 0 <= number <= MOST_SITES for number in (sites, pairs)):
        raise ValueError
    if about["vartype"] not in (SPIN, BINARY):
        raise InputError(f"{source.name} has variables of other kinds: write a binary quadratic model")
    value = np.dtype({"float64": "<f8", "float32": "<f4"}[about["dtype"]])
    offset = float(_array(file, value, 1)[0])
    linear = _array(file, np.dtype([("start", _integer(about["ntype"])), ("value", value)]), sites)
    quadratic = _array(file, np.dtype([("other", _integer(about["itype"])), ("value", value)]), 2 * pairs)
    begin = np.append(linear["start"].astype(np.int64), 2 * pairs)
    if begin[0] or (np.diff(begin) < 0).any():
        raise ValueError
    own, other = np.repeat(np.arange(sites), np.diff(begin)), quadratic["other"].astype(np.int64)
    if len(other) and not (other.min() >= 0 and other.max() < sites):
        raise ValueError
    half = one_half(np.stack([own, other], axis=1), quadratic["value"].astype(np.float64))
    if half is None or len(half[1]) != pairs:
        raise ValueError
    names = about["variables"]
    if version > 1 and names:
        if _next(file, len(_LABELS)) != _LABELS:
            raise ValueError
        names = _json(file)
    labels = as_labels([label_of(label) for label in names], sites) if names else range(sites)
    order, every = np.lexsort((half[0][:, 1], half[0][:, 0])), np.arange(sites)
    ends = np.concatenate([np.stack([every, every], axis=1), half[0][order]])
    values = np.concatenate([linear["value"].astype(np.float64), half[1][order]])
    is_graph = about["vartype"] == SPIN and not linear["value"].any() and not offset
    is_maxcut = about.get("maxcut") is True and is_graph
    return Quadratic(sites, ends, values, about["vartype"], offset, labels, is_maxcut, source.model_name)


def _json(file: io.BytesIO) -> Any:
    """Content of a JSON text that follows its size."""
    size = int.from_bytes(_next(file, 4), "little")
    return json.loads(_next(file, size).decode("ascii"))


def _array(file: io.BytesIO, dtype: np.dtype[Any], many: int) -> npt.NDArray[Any]:
    return np.frombuffer(_next(file, many * dtype.itemsize), dtype)


def _next(file: io.BytesIO, size: int) -> bytes:
    taken = file.read(size)
    if len(taken) < size:
        raise ValueError
    return taken


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
