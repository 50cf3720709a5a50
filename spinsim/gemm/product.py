"""``matmul``: the general product, by any rung of a ladder of kernels.

Where C has few tiles and the depth k is large, a block for each tile would leave most of a GPU idle, and rounding
errors would grow with the length of sums. The sum is therefore cut into parts that are computed side by side and then
added. The cut depends on shape and type alone, not on the GPU or the rung: results have the same bits everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Any, Final

import numpy as np

from spinsim.errors import InputError
from spinsim.gemm import operands
from spinsim.gemm.operands import Strides
from spinsim.inputs.arguments import public
from spinsim.machine.memory import is_on_gpu

TILE: Final = 128  # side of the tiles of C that are counted
STEP: Final = 16  # parts begin at multiples of it
SHORTEST: Final = 32  # depth of a part, at least
LONGEST: Final = 4096  # depth of a part, at most, where there is room for the parts
ROOM: Final = 2**28  # bytes for all parts
EACH: Final = 8  # parts that a thread adds
MOST: Final = 256  # parts: EACH for each of 32 threads
THREADS: Final = 256  # of a block that adds parts
VECTOR: Final = 16  # bytes


@dataclass(frozen=True)
class Variant:
    """One rung for one type."""

    parameters: tuple[int | str, ...]  # template arguments after the type
    tile: tuple[int, int]  # rows and columns of C that a block computes
    threads: int  # threads of a block
    shared: int = 0  # dynamic shared memory of a block, bytes

    def blocks(self, m: int, n: int) -> int:
        return -(-m // self.tile[0]) * -(-n // self.tile[1])

    def area(self, m: int, n: int) -> int:
        """Elements that all blocks compute, including elements beyond C's edges."""
        return self.blocks(m, n) * self.tile[0] * self.tile[1]


def _square(side: int) -> Variant:
    return Variant((side,), (side, side), side * side)


def _thread1d(m: int, n: int, k: int, results: int) -> Variant:
    return Variant((m, n, k, results), (m, n), m * n // results)


def _thread2d(m: int, n: int, k: int, side: int) -> Variant:
    return Variant((m, n, k, side), (m, n), m * n // side**2)


def _warps(m: int, n: int, k: int, warp: tuple[int, int], thread: tuple[int, int]) -> Variant:
    return Variant((m, n, k, *warp, *thread), (m, n), m // warp[0] * (n // warp[1]) * 32)


def _pipelined(
    bytes_each: int, m: int, n: int, k: int, warp: tuple[int, int], thread: tuple[int, int], stages: int
) -> Variant:
    shared = stages * k * ((m + n) * bytes_each + 2 * VECTOR)  # a vector of padding ends each line
    return Variant((m, n, k, *warp, *thread, stages), (m, n), m // warp[0] * (n // warp[1]) * 32, shared)


def _tensorcore(m: int, n: int, k: int, warp: tuple[int, int], stages: int, steps: int, sets: int) -> Variant:
    parameters = (m, n, k, *warp, stages, steps, sets, "true")
    return Variant(parameters, (m, n), m // warp[0] * (n // warp[1]) * 32, 8 * stages * k * (m + n))


def _each(*variants: Variant) -> dict[str, Variant]:
    """Variants by type: for float32, float64 and, where there is a third, int32."""
    return dict(zip(("float32", "float64", "int32"), variants, strict=False))


RUNGS: Final[dict[str, dict[str, Variant]]] = {
    "naive": _each(*(_square(32),) * 3),
    "coalesced": _each(*(_square(32),) * 3),
    "block2d": _each(*(_square(32),) * 3),
    "block2d_thread1d": _each(_thread1d(64, 64, 8, 16), _thread1d(64, 64, 8, 8), _thread1d(64, 64, 8, 16)),
    "block2d_thread2d": _each(_thread2d(128, 128, 8, 8), _thread2d(64, 64, 8, 4), _thread2d(128, 128, 8, 8)),
    "vectorized": _each(_thread2d(128, 128, 8, 8), _thread2d(64, 64, 16, 4)),
    "warptile": _each(_warps(128, 128, 16, (32, 64), (8, 8)), _warps(64, 64, 16, (16, 32), (4, 4))),
    "pipelined": _each(
        _pipelined(4, 128, 256, 16, (64, 64), (8, 16), 2), _pipelined(8, 64, 128, 8, (32, 64), (8, 8), 3)
    ),
    "tensorcore": {"float64": _tensorcore(128, 128, 16, (64, 32), 4, 1, 2)},
}
NAMES: Final = ("auto", *RUNGS)
MULTIPROCESSORS: Final = 132
BEST: Final = {  # as measured on an H200 (docs/theory/gemm.md)
    "float32": ("pipelined", "warptile"),
    "float64": ("tensorcore", "tensorcore"),
    "int32": ("block2d_thread2d", "block2d_thread1d"),
}


def expression(name: str, kind: str, a: Strides, b: Strides) -> str:
    parameters = RUNGS[name][kind].parameters
    if name == "tensorcore":  # also whether rows of A, columns of B, lie side by side in memory
        flags = (str(flag).lower() for flag in (not a.row_major, b.row_major))
        return f"gemm_tensorcore<{', '.join(map(str, (*parameters, *flags)))}>"
    return f"gemm_{name}<{', '.join(map(str, (operands.C_TYPES[kind], *parameters)))}>"


def expressions() -> list[tuple[str, str]]:
    """Every instance of every rung, with its file, and the instances that add parts."""
    strides_of = Strides(1, 1, 2, 1), Strides(1, 1, 1, 2)
    instances = [
        (f"gemm/{name}.cu", expression(name, kind, a, b))
        for name, kinds in RUNGS.items()
        for kind in kinds
        for a, b in product(strides_of, repeat=2)
    ]
    return [*dict.fromkeys(instances), *(_adding(kind) for kind in operands.C_TYPES)]


def best(kind: str, m: int, n: int, parts: int) -> str:
    """The rung for a shape and a type, the same on every GPU.

    The first rung of ``BEST`` is taken if its tiles, times the parts of the depth, are enough for half of an H200's
    multiprocessors, and cover less than 4/3 of the area of the second rung's tiles. Else the second is taken.
    """
    large, small = (RUNGS[name][kind] for name in BEST[kind])
    enough = large.blocks(m, n) * parts >= MULTIPROCESSORS // 2
    tight = 3 * large.area(m, n) < 4 * small.area(m, n)
    return BEST[kind][0 if enough and tight else 1]


@public
def matmul(a: Any, b: Any, kernel: str = "auto", alpha: float = 1, beta: float = 0, out: Any = None) -> Any:
    """``alpha a b + beta out`` for matrices of float32, float64 or int32.

    NumPy arrays are multiplied by NumPy, CuPy arrays by the kernel that is named. Give ``x.T`` for a transposed matrix
    and ``x[i:j, k:l]`` for a part of one: strides are used as they are and nothing is copied. Products of int32 are
    modulo 2^32. NaN in an operand reaches the result whatever ``alpha`` is. On a GPU deep sums are cut into parts of
    at most 256 MB together, by a rule of shape and type alone, and added in a fixed order: the same bits at every call.

    Args:
        a: (m, k).
        b: (k, n), of the same type on the same device.
        kernel: A rung of the ladder (``KERNELS``), or "auto", which picks by shape and type. NumPy needs none.
        alpha: Factor of the product.
        beta: Factor of the values in ``out``; where it is 0 ``out`` may hold anything, NaN too.
        out: (m, n), written and returned; a new array by default. It must not overlap ``a`` or ``b``.

    Raises:
        InputError: arrays of different kinds, devices or types, shapes that do not match, strides with gaps, an ``out``
            that overlaps an operand, a kernel that does not exist or lacks the type.
    """
    kind = operands.type_of("matmul", operands.C_TYPES, {"a": a, "b": b}, out)
    if a.shape[1] != b.shape[0]:
        raise InputError(f"a has shape {a.shape} and b {b.shape}: give b as many rows as a has columns")
    if kernel not in NAMES:
        raise InputError(f"there is no kernel {kernel!r}: give one of {', '.join(NAMES)}")
    if kernel != "auto" and kind not in RUNGS[kernel]:
        raise InputError(f"kernel {kernel} takes {' or '.join(RUNGS[kernel])}, not {kind}: convert with astype")
    out, *factors = operands.result(out, (a.shape[0], b.shape[1]), {"a": a, "b": b}, alpha, beta)
    for name, array in {"a": a, "b": b, "out": out}.items():
        operands.strides(name, array)  # refuses arrays that the kernels cannot read
    if out.size == 0:
        return out
    if not is_on_gpu(a):
        return operands.store_sum(out, a @ b, *factors)
    _by_kernel(kernel, kind, a, b, out, factors)
    return out


def _by_kernel(kernel: str, kind: str, a: Any, b: Any, out: Any, factors: list[Any]) -> None:
    """Launch a kernel, for the transposed product where only that has row-major results."""
    if not operands.strides("out", out).row_major:
        a, b, out = b.T, a.T, out.T
    of_a, of_b, of_out = operands.strides("a", a), operands.strides("b", b), operands.strides("out", out)
    (m, k), n = a.shape, b.shape[1]
    count = parts(kind, m, n, k)
    name = best(kind, m, n, count) if kernel == "auto" else kernel
    variant = RUNGS[name][kind]
    if count == 1:
        c, (alpha, beta) = operands.rows(out, of_out), factors
    else:
        partial, one = operands.empty((count, m, n), out), operands.scalar("alpha", 1, kind)
        c, alpha, beta = operands.rows(partial, Strides(m, n, n, 1)), one, one - one
    kernel_of = f"gemm/{name}.cu", expression(name, kind, of_a, of_b)
    operands.launch(
        out, kernel_of, (variant.blocks(m, n), count), variant.threads, variant.shared, a=operands.matrix(a, of_a),
        b=operands.matrix(b, of_b), c=c, size=operands.size(m, n, k), alpha=alpha, beta=beta,
    )  # fmt: skip
    if count > 1:
        add(partial, (out, of_out), (factors[0], factors[1]), kind)


@dataclass(frozen=True)
class Pace:
    """Throughput of an H200; a fixed measure, so that other GPUs cut sums alike."""

    tiles: int  # tiles that are computed side by side
    begin: float  # depth that they advance in the time of another launch
    add: float  # depth that they advance while one tile of a part is written and added


PACES: Final = {"float32": Pace(264, 23, 0.17), "float64": Pace(132, 50, 0.7), "int32": Pace(264, 23, 0.17)}


def _adding(kind: str) -> tuple[str, str]:
    return "gemm/parts.cu", f"gemm_parts<{operands.C_TYPES[kind]}, {EACH}>"


def _tiles(kind: str, m: int, n: int) -> int:
    """Tiles that cover C, in pairs where the kernel takes pairs, whichever way these lie."""
    rows, columns = -(-m // TILE), -(-n // TILE)
    if kind != "float32" or min(rows, columns) == 1:
        return rows * columns
    return 2 * max(rows * -(-columns // 2), columns * -(-rows // 2))


@lru_cache(4096)
def parts(kind: str, m: int, n: int, k: int) -> int:
    """Number of parts, computed side by side, into which a sum over k is cut for the least time; none is empty."""
    most = max(1, min(MOST, -(-k // SHORTEST), ROOM // (m * n * np.dtype(kind).itemsize)))
    least = min(most, -(-k // LONGEST))
    tiles, pace = _tiles(kind, m, n), PACES[kind]

    def time(count: int) -> float:
        """Time in steps of depth."""
        adding = pace.begin + pace.add * count * m * n / TILE**2 if count > 1 else 0
        return -(-tiles * count // pace.tiles) * _length(k, count) + adding

    count = min(range(max(1, least), most + 1), key=time)
    return -(-k // _length(k, count)) if count > 1 else 1


def _length(k: int, count: int) -> int:
    """Depth of a part; the last part may be shorter."""
    return STEP * -(-k // (STEP * count))


def add(partial: Any, out: tuple[Any, Strides], factors: tuple[Any, Any], kind: str) -> None:
    """``alpha`` times the sum of parts, (parts, m, n) without gaps, plus ``beta out``."""
    count, m, n = partial.shape
    groups = 1 << max(0, -(-count // EACH) - 1).bit_length()
    operands.launch(
        out[0], _adding(kind), (-(-m * n * groups // THREADS), 1), THREADS, partial=partial,
        c=operands.rows(*out), size=operands.size(m, n, 0), parts=np.int32(count), groups=np.int32(groups),
        alpha=factors[0], beta=factors[1],
    )  # fmt: skip
