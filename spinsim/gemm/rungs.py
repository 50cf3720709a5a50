"""The ladder of matrix-product kernels: which types each rung has, its tiles, and which rung ``auto`` takes."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Final

from spinsim.gemm.operands import C_TYPES, Strides

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
        """Elements that they compute, those beyond C's edges too."""
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
    """One for float32, one for float64 and, where there is a third, one for int32."""
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
    return f"gemm_{name}<{', '.join(map(str, (C_TYPES[kind], *parameters)))}>"


def file(name: str) -> str:
    return f"gemm/{name}.cu"


def expressions() -> list[tuple[str, str]]:
    """Every instance of every rung, with its file."""
    strides_of = Strides(1, 1, 2, 1), Strides(1, 1, 1, 2)
    instances = [
        (file(name), expression(name, kind, a, b))
        for name, kinds in RUNGS.items()
        for kind in kinds
        for a, b in product(strides_of, repeat=2)
    ]
    return list(dict.fromkeys(instances))


def best(kind: str, m: int, n: int, parts: int) -> str:
    """The rung for a shape and a type, the same on every GPU.

    Of ``BEST`` the first where its tiles, times the parts into which the depth is cut, are enough for half of an H200's
    multiprocessors, and cover less than 4/3 of what the second's do.
    """
    large, small = (RUNGS[name][kind] for name in BEST[kind])
    enough = large.blocks(m, n) * parts >= MULTIPROCESSORS // 2
    tight = 3 * large.area(m, n) < 4 * small.area(m, n)
    return BEST[kind][0 if enough and tight else 1]
