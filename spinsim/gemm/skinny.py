"""Products of tall matrices with at most 64 columns, as Lanczos needs them, with a fixed order of summation."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from spinsim.errors import InputError
from spinsim.gemm.operands import by_rows, empty, launch, matrix, result, rows, size, store_sum, strides, type_of
from spinsim.machine.memory import is_on_gpu

FILE: Final = "gemm/tall_skinny.cu"
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


def expressions() -> list[tuple[str, str]]:
    names = [*(_partial(*panels) for panels in PARTIAL), "tall_sum", "tall_times_small<1>", "tall_times_small<4>"]
    return [(FILE, name) for name in names]


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
        v, (FILE, _partial(*panels)), (strips, 1), panels[0] * warps * 32, v=rows(v, of_v), w=rows(w, of_w),
        partial=partial, rows=np.int64(total), length=np.int64(length), columns_v=np.int32(v.shape[1]),
        columns_w=np.int32(w.shape[1]),
    )  # fmt: skip
    launch(
        v, (FILE, "tall_sum"), (-(-out.size * 32 // SUM_THREADS), 1), SUM_THREADS, partial=partial,
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
        v, (FILE, f"tall_times_small<{_panels(v.shape[1])}>"), (wanted, 1), TIMES_THREADS, resident=True,
        v=rows(v, of_v), y=matrix(y, strides("y", y)), c=rows(out, of_out),
        size=size(v.shape[0], y.shape[1], v.shape[1]), alpha=factor, beta=kept,
    )  # fmt: skip
    return out
