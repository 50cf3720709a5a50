"""Cutting of the sum over the depth k of a product into parts that are computed side by side and then added.

Where C has few tiles and k is large, a block for each tile would leave most of a GPU idle and add up long chains, whose
rounding errors grow with their length. How the sum is cut depends on shape and type alone, not on the GPU or the rung:
results have the same bits everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np

from spinsim.gemm import operands
from spinsim.gemm.operands import C_TYPES, Strides

FILE: Final = "gemm/parts.cu"
TILE: Final = 128  # side of the tiles of C that are counted
STEP: Final = 16  # parts begin at multiples of it
SHORTEST: Final = 32  # depth of a part, at least
LONGEST: Final = 4096  # and at most, where there is room for so many parts
ROOM: Final = 2**28  # bytes for all parts
EACH: Final = 8  # parts that a thread adds
MOST: Final = 256  # parts: EACH for each of 32 threads
THREADS: Final = 256  # of a block that adds parts


@dataclass(frozen=True)
class Pace:
    """Throughput of an H200; a fixed measure, so that other GPUs cut sums alike."""

    tiles: int  # tiles that are computed side by side
    begin: float  # depth by which they would come in the time that another launch takes
    add: float  # depth by which they would come while one tile of a part is written and added


PACES: Final = {"float32": Pace(264, 23, 0.17), "float64": Pace(132, 50, 0.7), "int32": Pace(264, 23, 0.17)}


def expression(kind: str) -> str:
    """The kernel that adds parts."""
    return f"gemm_parts<{C_TYPES[kind]}, {EACH}>"


def expressions() -> list[tuple[str, str]]:
    """Every instance, with its file."""
    return [(FILE, expression(kind)) for kind in C_TYPES]


def _tiles(kind: str, m: int, n: int) -> int:
    """Tiles that cover C, in pairs where the kernel takes pairs, whichever way these lie."""
    rows, columns = -(-m // TILE), -(-n // TILE)
    if kind != "float32" or min(rows, columns) == 1:
        return rows * columns
    return 2 * max(rows * -(-columns // 2), columns * -(-rows // 2))


@lru_cache(4096)
def parts(kind: str, m: int, n: int, k: int) -> int:
    """Into how many parts, computed side by side, a sum over k is cut: as many as take least time; none is empty."""
    size = m * n * np.dtype(kind).itemsize
    most = max(1, min(MOST, -(-k // SHORTEST), ROOM // size))
    least = min(most, -(-k // LONGEST))
    tiles, pace = _tiles(kind, m, n), PACES[kind]

    def time(count: int) -> float:
        """In steps of depth."""
        adding = pace.begin + pace.add * count * m * n / TILE**2 if count > 1 else 0
        return -(-tiles * count // pace.tiles) * _length(k, count) + adding

    count = min(range(max(1, least), most + 1), key=time)
    return -(-k // _length(k, count)) if count > 1 else 1


def _length(k: int, count: int) -> int:
    """Depth of a part, of which the last may be shorter."""
    return STEP * -(-k // (STEP * count))


def add(partial: Any, out: tuple[Any, Strides], factors: tuple[Any, Any], kind: str) -> None:
    """``alpha`` times the sum of parts, (parts, m, n) without gaps, plus ``beta out``."""
    count, m, n = partial.shape
    groups = 1 << max(0, -(-count // EACH) - 1).bit_length()
    launch = operands.prepare(
        out[0], FILE, expression(kind), 0, partial=partial, c=operands.rows(*out), size=operands.size(m, n, 0),
        parts=np.int32(count), groups=np.int32(groups), alpha=factors[0], beta=factors[1],
    )  # fmt: skip
    operands.start(out[0], launch, -(-m * n * groups // THREADS), THREADS)
