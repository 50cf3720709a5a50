"""A small square factor times a very wide matrix, its mirror, and both sides at once: what transfer matrices need."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import Any, Final, NamedTuple

import numpy as np

from spinsim.cuda.compile import instance
from spinsim.errors import InputError
from spinsim.gemm.operands import empty, launch, matrix, require_contiguous, require_out, strides, type_of
from spinsim.machine.memory import is_on_gpu

FILE: Final = "gemm/kronecker.cu"


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
    return FILE, instance(name, side, *_KERNELS[name][side])


def expressions() -> list[tuple[str, str]]:
    return [_kernel(name, side) for name, sides in _KERNELS.items() for side in sides]


def _begin(
    product: str, given: dict[str, Any], axes: dict[str, int], out: Any, dimensions: int = 2
) -> tuple[Any, bool]:
    """Check arrays, factors by the axis of ``x`` that they multiply, and make ``out`` where none is given.

    Returns ``out``, and True where a kernel is to fill it: NumPy's arrays are multiplied here, in the order given.
    """
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
