"""Transposing a matrix in memory, for changes of the order of large vectors."""

from __future__ import annotations

from typing import Any, Final

from spinsim.errors import InputError
from spinsim.gemm.operands import C_TYPES, by_rows, empty, launch, matrix, require_out, rows, size, type_of
from spinsim.machine.memory import is_on_gpu

KERNELS: Final = ("tiled", "naive")
TILE: Final = 32
THREAD_ROWS: Final = 8
_WORDS: Final = {4: "unsigned", 8: "unsigned long long"}  # by bytes an element


def expression(kernel: str, itemsize: int) -> str:
    return f"transpose_{kernel}<{_WORDS[itemsize]}, {TILE}, {THREAD_ROWS}>"


def expressions() -> list[tuple[str, str]]:
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
    type_of("transpose", C_TYPES, {"a": a}, out)
    if kernel not in KERNELS:
        raise InputError(f"there is no kernel {kernel!r}: give one of {', '.join(KERNELS)}")
    shape = a.shape[1], a.shape[0]
    if out is None:
        out = empty(shape, a)
    of_a, of_out = by_rows("a", a), by_rows("out", out)
    require_out(out, shape, {"a": a})
    if out.size == 0:
        return out
    if not is_on_gpu(a):
        out[...] = a.T
        return out
    blocks = -(-a.shape[0] // TILE) * -(-a.shape[1] // TILE)
    launch(
        a, ("gemm/transpose.cu", expression(kernel, a.itemsize)), (blocks, 1), TILE * THREAD_ROWS,
        a=matrix(a, of_a), b=rows(out, of_out), size=size(a.shape[0], a.shape[1], 0),
    )  # fmt: skip
    return out
