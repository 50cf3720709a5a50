"""Checks of the arrays of a product (kind, device, type, gaps, overlap with ``out``), and arguments of kernels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim.cuda.launch import ADDRESS, Launch, record, struct_type
from spinsim.errors import InputError, WrongTypeError
from spinsim.machine.memory import is_on_gpu, on_gpu

C_TYPES: Final = {"float32": "float", "float64": "double", "int32": "int"}
LARGEST: Final = 2**31 - 1  # of a dimension
MATRIX: Final = struct_type(at=ADDRESS, row=np.int64, column=np.int64)
OUTPUT: Final = struct_type(at=ADDRESS, row=np.int64)
SIZE: Final = struct_type(m=np.int64, n=np.int64, k=np.int64)


class Strides(NamedTuple):
    """A matrix in memory: element (i, j) stands ``i * row + j * column`` elements after the first.

    One of ``row`` and ``column`` is 1; the other is the leading dimension.
    """

    rows: int
    columns: int
    row: int
    column: int

    @property
    def row_major(self) -> bool:  # neighbours in a row are neighbours in memory
        return self.column == 1


def type_of(
    product: str,
    allowed: Iterable[str],
    given: Mapping[str, Any],
    out: Any = None,
    dimensions: int | Mapping[str, int] = 2,
) -> str:
    """Type of the arrays of a product, once kind, device, type and dimensions agree and the type is allowed."""
    first, reference = next(iter(given.items()))
    for name, array in (given if out is None else {**given, "out": out}).items():
        if not (is_on_gpu(array) or isinstance(array, np.ndarray)):
            raise WrongTypeError(f"{name} is a {type(array).__name__}: give a NumPy or CuPy array")
        wanted = dimensions if isinstance(dimensions, int) else dimensions[name]
        if array.ndim != wanted:
            raise InputError(f"{name} has shape {array.shape}: give an array of {wanted} dimensions")
        if is_on_gpu(array) != is_on_gpu(reference):
            kinds = ["a CuPy array" if is_on_gpu(a) else "a NumPy array" for a in (reference, array)]
            raise InputError(f"{first} is {kinds[0]} but {name} is {kinds[1]}: copy one to the other's memory")
        if is_on_gpu(array) and array.device != reference.device:
            raise InputError(
                f"{first} is on GPU {reference.device.id} but {name} on GPU {array.device.id}: copy one to the other's"
            )
        if array.dtype != reference.dtype:
            raise InputError(f"{first} is {reference.dtype} but {name} is {array.dtype}: convert one with astype")
        if max(array.shape, default=0) > LARGEST:
            raise InputError(f"{name} has shape {array.shape}: a dimension may have at most {LARGEST} elements")
    if str(reference.dtype) not in allowed:
        raise InputError(f"{product} takes {' or '.join(allowed)}, not {reference.dtype}: convert with astype")
    return str(reference.dtype)


def _apart(lines: int, length: int, between: int, within: int) -> int | None:
    """Distance from line to line, None where lines have gaps or overlap; for a single line, its length."""
    if (length > 1 and within != 1) or (lines > 1 and between < max(length, 1)):
        return None
    return between if lines > 1 else max(length, 1)


def strides(name: str, array: Any) -> Strides:
    """Strides of a matrix whose rows or columns are without gaps."""
    rows, columns = array.shape
    if array.size == 0:
        return Strides(rows, columns, max(columns, 1), 1)
    row, column = (stride // array.itemsize if stride % array.itemsize == 0 else 0 for stride in array.strides)
    if (apart := _apart(rows, columns, row, column)) is not None:
        return Strides(rows, columns, apart, 1)
    if (apart := _apart(columns, rows, column, row)) is not None:
        return Strides(rows, columns, 1, apart)
    raise InputError(
        f"{name} has strides {array.strides} for {array.dtype}: give a matrix whose rows have no gaps, or the "
        "transpose of one, for example ascontiguousarray of it"
    )


def by_rows(name: str, array: Any) -> Strides:
    """Strides of a matrix that must be row-major."""
    where = strides(name, array)
    if not where.row_major:
        raise InputError(f"{name} runs along its columns in memory: give it as rows without gaps")
    return where


def require_contiguous(name: str, array: Any) -> None:
    if not array.flags.c_contiguous:
        raise InputError(f"{name} has strides {array.strides}: give it without gaps, with ascontiguousarray")


class _Shadow:
    """The extent of an array as NumPy sees it, for questions about addresses only: the memory may be on a GPU."""

    def __init__(self, array: Any) -> None:
        self.__array_interface__ = {
            "shape": array.shape,
            "typestr": array.dtype.str,
            "strides": array.strides,
            "data": (array.data.ptr, False),
            "version": 3,
        }


def _extent(array: Any) -> np.ndarray[Any, Any]:
    return np.asarray(_Shadow(array)) if is_on_gpu(array) else array


def require_out(out: Any, shape: tuple[int, ...], inputs: Mapping[str, Any], in_place: str = "") -> None:
    """Check the shape of ``out`` and that it shares no memory with inputs; ``in_place`` may be the very same array."""
    if out.shape != shape:
        raise InputError(f"out has shape {out.shape} but the product has {shape}: give an array of that shape")
    if not is_on_gpu(out) and not out.flags.writeable:
        raise InputError("out is read-only: give an array that can be written")
    written = _extent(out)
    for name, array in inputs.items():
        read = _extent(array)
        if not np.shares_memory(written, read):
            continue
        is_same = written.ctypes.data == read.ctypes.data and written.strides == read.strides  # of equal shapes
        if name != in_place or not is_same:
            raise InputError(f"out overlaps {name} in memory: give an array of its own, or leave out away")


def empty(shape: tuple[int, ...], like: Any) -> Any:
    """Uninitialised C-ordered array of a shape, with the type and device of another array."""
    if not is_on_gpu(like):
        return np.empty(shape, like.dtype)
    import cupy

    with on_gpu(like.device.id):
        return cupy.empty(shape, like.dtype)


def scalar(name: str, value: float, kind: str) -> Any:
    if not isinstance(value, (int, float, np.integer, np.floating)):
        raise InputError(f"{name} {value!r} is no real number: give one")
    value = value.item() if isinstance(value, np.generic) else value  # a float32 would make float32 of the limit
    if kind == "int32" and not (-LARGEST - 1 <= value <= LARGEST and float(value).is_integer()):
        raise InputError(f"{name} {value} is no 32-bit integer, as products of int32 need: give a whole number")
    if kind != "int32" and float(np.finfo(kind).max) < abs(value) < np.inf:
        raise InputError(f"{name} is too large for a product of {kind}: give a smaller one")
    return np.dtype(kind).type(value)


def result(
    out: Any, shape: tuple[int, int], inputs: Mapping[str, Any], alpha: float, beta: float
) -> tuple[Any, Any, Any]:
    """Return ``out`` for ``alpha`` times a product plus ``beta out``, new where None, and both factors in its type."""
    like = next(iter(inputs.values()))
    factor, kept = scalar("alpha", alpha, str(like.dtype)), scalar("beta", beta, str(like.dtype))
    if out is None:
        if beta != 0:
            raise InputError(f"beta is {beta} but there is no out that it could multiply: give out, or beta = 0")
        out = empty(shape, like)
    require_out(out, shape, inputs)
    return out, factor, kept


def store_sum(out: Any, product: Any, alpha: Any, beta: Any) -> Any:
    """Write ``alpha product + beta out`` to ``out``; where ``beta`` is 0 its values, NaN too, are ignored."""
    scaled = product if alpha == 1 else alpha * product
    out[...] = scaled if beta == 0 else scaled + beta * out
    return out


def matrix(array: Any, where: Strides) -> npt.NDArray[np.void]:
    return record(MATRIX, at=array, row=where.row, column=where.column)


def rows(array: Any, where: Strides) -> npt.NDArray[np.void]:
    """A row-major result, or an operand that is read by rows."""
    return record(OUTPUT, at=array, row=where.row)


def size(m: int, n: int, k: int) -> npt.NDArray[np.void]:
    return record(SIZE, m=m, n=n, k=k)


def launch(
    array: Any,
    kernel: tuple[str, str],
    blocks: tuple[int, int],
    threads: int,
    shared: int = 0,
    resident: bool = False,
    **arguments: Any,
) -> None:
    """Launch a kernel (file and expression); ``resident`` launches no more blocks than run at once."""
    import cupy

    from spinsim.cuda.device import multiprocessors

    ready, (columns, layers) = Launch(array.device.id, *kernel, arguments, shared), blocks
    with on_gpu(array.device.id):
        if resident:
            columns = max(1, min(columns, multiprocessors(array.device.id) * ready.blocks_at_once(threads)))
        ready(cupy.cuda.get_current_stream(), (columns, layers, 1), threads)
