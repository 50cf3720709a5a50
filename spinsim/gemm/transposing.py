"""Transposing a matrix in memory, for changes of the order of large vectors."""

from __future__ import annotations

from typing import Any, Final

from spinsim.errors import InputError
from spinsim.gemm import operands
from spinsim.gemm.operands import C_TYPES, empty, require_out, require_type, same_place, strides
from spinsim.machine.memory import is_on_gpu

KERNELS: Final = ("tiled", "naive")
TILE: Final = 32
THREAD_ROWS: Final = 8
_WORDS: Final = {4: "unsigned", 8: "unsigned long long"}  # by bytes an element


def expression(kernel: str, itemsize: int) -> str:
    """The template instance for elements of so many bytes."""
    return f"transpose_{kernel}<{_WORDS[itemsize]}, {TILE}, {THREAD_ROWS}>"


def expressions() -> list[tuple[str, str]]:
    """Every instance, with its file."""
    return [("gemm/transpose.cu", expression(kernel, bytes_each)) for kernel in KERNELS for bytes_each in _WORDS]


def transpose(a: Any, out: Any = None, kernel: str = "tiled") -> Any:
    """The transpose of a matrix, in memory of its own.

    Args:
        a: (m, n), float32, float64 or int32, NumPy or CuPy; rows without gaps, with any distance between them.
        out: (n, m), of the same type; a new array by default.
        kernel: "tiled", through shared memory, or its slow twin "naive".

    Raises:
        InputError: as for ``matmul``.
    """
    given = {"a": a} | ({} if out is None else {"out": out})
    kind = same_place(given)
    require_type(kind, tuple(C_TYPES), "transpose")
    if kernel not in KERNELS:
        raise InputError(f"there is no kernel {kernel!r}: give one of {', '.join(KERNELS)}")
    shape = a.shape[1], a.shape[0]
    if out is None:
        out = empty(shape, a)
    strides_of = {name: strides(name, array) for name, array in {"a": a, "out": out}.items()}
    for name, where in strides_of.items():
        if not where.row_major:
            raise InputError(f"{name} runs along its columns in memory: give it as rows without gaps")
    require_out(out, shape, {"a": a})
    if out.size == 0:
        return out
    if not is_on_gpu(a):
        out[...] = a.T
        return out
    launch = operands.prepare(
        a, "gemm/transpose.cu", expression(kernel, a.itemsize), 0, a=operands.matrix(a, strides_of["a"]),
        b=operands.rows(out, strides_of["out"]), size=operands.size(a.shape[0], a.shape[1], 0),
    )  # fmt: skip
    operands.start(a, launch, -(-a.shape[0] // TILE) * -(-a.shape[1] // TILE), TILE * THREAD_ROWS)
    return out
