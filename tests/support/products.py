"""Matrices of whole numbers, laid out in every way, and products that must be exact."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

import spinsim as ss
from spinsim.gemm import product as rungs

Array = npt.NDArray[Any]


TYPES = ("float32", "float64", "int32")


CASES = [(name, kind) for name, kinds in rungs.RUNGS.items() for kind in kinds]


POISON = {"float32": np.nan, "float64": np.nan, "int32": -(2**31)}


def whole(rng: np.random.Generator, shape: tuple[int, ...], kind: str) -> Array:
    """Numbers so small that sums of 300 products are exact in float32."""
    return rng.integers(-8, 9, shape).astype(kind)


def placed(xp: Any, x: Array, transposed: bool, gap: int = 0, offset: int = 0) -> Any:
    """A copy in a larger array of poison: as it is or as the transpose of what memory holds."""
    stored = x.T if transposed else x
    room = xp.full((stored.shape[0] + 2, stored.shape[1] + gap + offset), POISON[str(x.dtype)], x.dtype)
    view = room[1:-1, offset : offset + stored.shape[1]]
    view[...] = xp.asarray(stored)
    return view.T if transposed else view


def back(x: Any) -> Array:
    return x if isinstance(x, np.ndarray) else x.get()


def expected(a: Array, b: Array, alpha: int, beta: int, c: Array) -> Array:
    exact = alpha * (a.astype(np.float64) @ b.astype(np.float64))  # of whole numbers below 2^53
    return exact if beta == 0 else exact + beta * c


def check_exact(
    xp: Any,
    kernel: str,
    kind: str,
    shape: tuple[int, int, int],
    flips: tuple[bool, bool, bool],
    factors: tuple[int, int],
    gaps: tuple[int, int],
) -> None:
    m, n, k = shape
    rng = np.random.default_rng([m, n, k])
    a, b, c = whole(rng, (m, k), kind), whole(rng, (k, n), kind), whole(rng, (m, n), kind)
    alpha, beta = factors
    out = placed(xp, c, flips[2], *gaps)
    if beta == 0:
        out[...] = POISON[kind]
    around = back(out.base if out.base is not None else out).copy()
    given = ss.gemm.matmul(
        placed(xp, a, flips[0], *gaps), placed(xp, b, flips[1], *gaps[::-1]), kernel, alpha, beta, out
    )
    assert given is out
    np.testing.assert_array_equal(back(out).astype(np.float64), expected(a, b, alpha, beta, c))
    if xp is not np:
        out[...] = xp.asarray(c)
        again = back(out.base)
        inside = around.copy()
        (placed_view(inside, out.shape, flips[2], gaps[1]))[...] = c
        np.testing.assert_array_equal(again, inside, "written beyond the edge")


def placed_view(room: Array, shape: tuple[int, ...], transposed: bool, offset: int) -> Array:
    stored = shape[::-1] if transposed else shape
    view = room[1:-1, offset : offset + stored[1]]
    return view.T if transposed else view
