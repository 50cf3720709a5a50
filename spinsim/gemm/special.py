"""Products of special shapes: small square factors times wide matrices, tall matrices, and transposing.

Transfer matrices need the factors: from the left, from the right, and on both sides at once. Lanczos needs products of
tall matrices of at most 64 columns, with a fixed order of summation.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import Any, Final, NamedTuple

import numpy as np

from spinsim.cuda.compile import instance
from spinsim.errors import InputError
from spinsim.gemm.operands import (
    C_TYPES,
    by_rows,
    empty,
    launch,
    matrix,
    require_contiguous,
    require_out,
    result,
    rows,
    size,
    store_sum,
    strides,
    type_of,
)
from spinsim.machine.memory import is_on_gpu


class Panel(NamedTuple):
    """Tiling of a wide matrix through which a factor of some side goes."""

    length: int  # columns (from the left) or rows (from the right) of a panel
    groups: int  # groups of warps that share a panel; each has a warp for every 16 rows of the factor
    stages: int  # panels in shared memory at a time
    steps: int  # depth of an instruction, in fours

    def threads(self, side: int) -> int:
        return side // 16 * self.groups * 32


LEFT: Final = {32: Panel(128, 2, 3, 2), 64: Panel(128, 2, 2, 2), 128: Panel(32, 1, 3, 1)}
RIGHT: Final = {32: Panel(128, 2, 3, 2), 64: Panel(128, 2, 2, 2), 128: Panel(32, 1, 3, 2)}
LEFT_PADDING: Final = 2  # numbers between the lines of a panel in shared memory, which spread columns over the banks
RIGHT_PADDING: Final = 8
# columns of the second product at a time, groups of warps, places for tiles, steps of an instruction in fours
BOTH: Final = {64: (32, 3, 5, 2)}


_KERNELS: Final[dict[str, Mapping[int, tuple[int, ...]]]] = {
    "left_factor": LEFT,
    "right_factor": RIGHT,
    "both_factors": BOTH,
}


def _kernel(name: str, side: int) -> tuple[str, str]:
    return "gemm/kronecker.cu", instance(name, side, *_KERNELS[name][side])


def _begin(
    product: str, given: dict[str, Any], axes: dict[str, int], out: Any, dimensions: int = 2
) -> tuple[Any, bool]:
    """Check arrays, and factors by their axis of ``x``; return ``out``, and True if a kernel must fill it."""
    x, sides = given["x"], _KERNELS[product]
    type_of(product, ("float64",), given, out, {name: 2 if name in axes else dimensions for name in (*given, "out")})
    for name, axis in axes.items():
        factor, side = given[name], x.shape[axis]
        if factor.shape != (side, side):
            raise InputError(
                f"{name} has shape {factor.shape} but x needs ({side}, {side}): give a square factor of that side"
            )
        if side not in sides:
            known = ", ".join(map(str, sides))
            raise InputError(f"{name} has side {side}: give a factor of side {known}, or use matmul")
    out = empty(x.shape, x) if out is None else out
    require_contiguous("x", x)
    require_contiguous("out", out)
    require_out(out, x.shape, given, in_place="x")
    if not is_on_gpu(x):
        out[...] = reduce(np.matmul, given.values())
    return out, is_on_gpu(x) and out.size > 0


def left_factor(factor: Any, x: Any, out: Any = None) -> Any:
    """``factor @ x``, for one wide matrix or a stack of them.

    Args:
        factor: (s, s), float64, s = 32, 64 or 128.
        x: (s, width) or (batch, s, width), C-contiguous; NumPy or CuPy.
        out: As ``x``, and may be ``x`` itself; a new array by default.

    Raises:
        InputError: as for ``matmul``.
    """
    dimensions = 3 if getattr(x, "ndim", 2) == 3 else 2
    out, by_kernel = _begin("left_factor", {"factor": factor, "x": x}, {"factor": -2}, out, dimensions)
    if not by_kernel:
        return out
    side, width = x.shape[-2:]
    panel, batch = LEFT[side], x.size // (side * width)
    launch(
        x, _kernel("left_factor", side), (batch * -(-width // panel.length), 1), panel.threads(side),
        8 * panel.stages * side * (panel.length + LEFT_PADDING), resident=True,
        factor=matrix(factor, strides("factor", factor)), x=x, y=out, batch=np.int64(batch), width=np.int64(width),
    )  # fmt: skip
    return out


def right_factor(x: Any, factor: Any, out: Any = None) -> Any:
    """``x @ factor``, the mirror of ``left_factor``.

    Args:
        x: (height, s), C-contiguous; NumPy or CuPy.
        factor: (s, s), float64, s = 32, 64 or 128.
        out: As ``x``, and may be ``x`` itself; a new array by default.

    Raises:
        InputError: as for ``matmul``.
    """
    out, by_kernel = _begin("right_factor", {"x": x, "factor": factor}, {"factor": -1}, out)
    if not by_kernel:
        return out
    height, side = x.shape
    panel = RIGHT[side]
    launch(
        x, _kernel("right_factor", side), (-(-height // panel.length), 1), panel.threads(side),
        8 * panel.stages * panel.length * (side + RIGHT_PADDING), resident=True,
        factor=matrix(factor, strides("factor", factor)), x=x, y=out, height=np.int64(height),
    )  # fmt: skip
    return out


def both_factors(left: Any, x: Any, right: Any, out: Any = None) -> Any:
    """``left @ x[h] @ right`` for every tile h, in one pass over memory: twelve spins of a transfer matrix.

    Args:
        left: (64, 64), float64.
        right: Likewise.
        x: (tiles, 64, 64), C-contiguous; NumPy or CuPy.
        out: As ``x``, and may be ``x`` itself; a new array by default.

    Raises:
        InputError: as for ``matmul``.
    """
    given = {"left": left, "x": x, "right": right}
    out, by_kernel = _begin("both_factors", given, {"left": -2, "right": -1}, out, 3)
    if not by_kernel:
        return out
    batch, side, _ = x.shape
    _, groups, places, _ = BOTH[side]
    launch(
        x, _kernel("both_factors", side), (-(-batch // groups), 1), side // 16 * 32 * groups,
        8 * side**2 * (2 + places), resident=True, left=matrix(left, strides("left", left)),
        right=matrix(right, strides("right", right)), x=x, y=out, batch=np.int32(batch),
    )  # fmt: skip
    return out


TALL: Final = "gemm/tall_skinny.cu"
COLUMNS: Final = 64  # at most
PANEL: Final = 16  # columns
STRIPS: Final = 2048  # at most: partial sums, each of rows that are added one after the other
STRIP_ROWS: Final = 512  # at least
SUM_THREADS: Final = 256  # of a block that adds strips
TIMES_THREADS: Final = 128  # of a block that makes new columns
TIMES_ROWS: Final = 16  # of a warp at a time, there
# (warps that share a panel of V, rows at a time), by panels of V and of W
PARTIAL: Final = {(1, 1): (4, 16), (1, 4): (4, 8), (4, 1): (2, 8), (4, 4): (1, 8)}


def _panels(columns: int) -> int:
    return 1 if columns <= PANEL else COLUMNS // PANEL


def _partial(panels_v: int, panels_w: int) -> str:
    return f"tall_partial<{panels_v}, {panels_w}, {', '.join(map(str, PARTIAL[panels_v, panels_w]))}>"


def _check(product: str, given: dict[str, Any], out: Any) -> None:
    type_of(product, ("float64",), given, out)
    one, other = given.values()
    if product == "tall_dot" and one.shape[0] != other.shape[0]:
        raise InputError(f"v has shape {one.shape} and w {other.shape}: give both as many rows")
    if product == "tall_matmul" and one.shape[1] != other.shape[0]:
        raise InputError(f"v has shape {one.shape} and y {other.shape}: give y as many rows as v has columns")
    for name, array in given.items():
        if array.shape[1] > COLUMNS:
            raise InputError(f"{name} has {array.shape[1]} columns: give at most {COLUMNS}, or use matmul")


def tall_dot(v: Any, w: Any, alpha: float = 1, beta: float = 0, out: Any = None) -> Any:
    """``alpha v.T @ w + beta out``: all scalar products of columns.

    On a GPU the order of summation depends on the shapes alone: the same bits at every call.

    Args:
        v: (rows, p), float64, p at most 64; rows without gaps.
        w: (rows, q), likewise.
        alpha: As for ``matmul``.
        beta: As for ``matmul``.
        out: (p, q), as for ``matmul``.

    Raises:
        InputError: as for ``matmul``.
    """
    given = {"v": v, "w": w}
    _check("tall_dot", given, out)
    out, factor, kept = result(out, (v.shape[1], w.shape[1]), given, alpha, beta)
    of_v, of_w, of_out = by_rows("v", v), by_rows("w", w), by_rows("out", out)
    if out.size == 0:
        return out
    if not is_on_gpu(v):
        return store_sum(out, v.T @ w, factor, kept)
    total, panels = v.shape[0], (_panels(v.shape[1]), _panels(w.shape[1]))
    warps, at_once = PARTIAL[panels]
    unit = warps * at_once
    length = -(-max(-(-total // STRIPS), STRIP_ROWS) // unit) * unit
    strips, width, strip_size = max(1, -(-total // length)), PANEL * panels[1], PANEL**2 * panels[0] * panels[1]
    partial = empty((strips, strip_size), v)
    launch(
        v, (TALL, _partial(*panels)), (strips, 1), panels[0] * warps * 32, v=rows(v, of_v), w=rows(w, of_w),
        partial=partial, rows=np.int64(total), length=np.int64(length), columns_v=np.int32(v.shape[1]),
        columns_w=np.int32(w.shape[1]),
    )  # fmt: skip
    launch(
        v, (TALL, "tall_sum"), (-(-out.size * 32 // SUM_THREADS), 1), SUM_THREADS, partial=partial,
        c=rows(out, of_out), size=size(v.shape[1], w.shape[1], 0), strips=np.int32(strips), width=np.int32(width),
        strip_size=np.int32(strip_size), alpha=factor, beta=kept,
    )  # fmt: skip
    return out


def tall_matmul(v: Any, y: Any, alpha: float = 1, beta: float = 0, out: Any = None) -> Any:
    """``alpha v @ y + beta out``: new columns from old ones.

    Args:
        v: (rows, p), float64, p at most 64; rows without gaps.
        y: (p, q), q at most 64, or the transpose of such a matrix.
        alpha: As for ``matmul``.
        beta: As for ``matmul``.
        out: (rows, q), as for ``matmul``.

    Raises:
        InputError: as for ``matmul``.
    """
    given = {"v": v, "y": y}
    _check("tall_matmul", given, out)
    out, factor, kept = result(out, (v.shape[0], y.shape[1]), given, alpha, beta)
    of_v, of_out = by_rows("v", v), by_rows("out", out)
    if out.size == 0:
        return out
    if not is_on_gpu(v):
        return store_sum(out, v @ y, factor, kept)
    wanted = -(-v.shape[0] // (TIMES_ROWS * TIMES_THREADS // 32))
    launch(
        v, (TALL, f"tall_times_small<{_panels(v.shape[1])}>"), (wanted, 1), TIMES_THREADS, resident=True,
        v=rows(v, of_v), y=matrix(y, strides("y", y)), c=rows(out, of_out),
        size=size(v.shape[0], y.shape[1], v.shape[1]), alpha=factor, beta=kept,
    )  # fmt: skip
    return out


TRANSPOSING: Final = ("tiled", "naive")
TILE: Final = 32
THREAD_ROWS: Final = 8
_WORDS: Final = {4: "unsigned", 8: "unsigned long long"}  # by bytes an element


def _transposing(kernel: str, itemsize: int) -> tuple[str, str]:
    return "gemm/transpose.cu", f"transpose_{kernel}<{_WORDS[itemsize]}, {TILE}, {THREAD_ROWS}>"


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
    if kernel not in TRANSPOSING:
        raise InputError(f"there is no kernel {kernel!r}: give one of {', '.join(TRANSPOSING)}")
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
        a, _transposing(kernel, a.itemsize), (blocks, 1), TILE * THREAD_ROWS,
        a=matrix(a, of_a), b=rows(out, of_out), size=size(a.shape[0], a.shape[1], 0),
    )  # fmt: skip
    return out


def expressions() -> list[tuple[str, str]]:
    """Every instance of these kernels, with its file."""
    factors = [_kernel(name, side) for name, sides in _KERNELS.items() for side in sides]
    tall = [*(_partial(*panels) for panels in PARTIAL), "tall_sum", "tall_times_small<1>", "tall_times_small<4>"]
    transposing = [_transposing(kernel, bytes_each) for kernel in TRANSPOSING for bytes_each in _WORDS]
    return [*transposing, *factors, *((TALL, name) for name in tall)]
