"""Rates of the matrix products on one GPU, compared with cuBLAS, a copy of memory and the chip's peak."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from spinsim import gemm
from spinsim.cuda.device import require_memory
from spinsim.gemm.product import RUNGS

SIZES: Final = {"float32": (4096, 8192), "float64": (8192,), "int32": (4096,)}
SLOWEST: Final = 8192  # side from which the rungs in SLOW are timed once
SLOW: Final = ("naive", "coalesced", "block2d", "block2d_thread1d")
AMPLITUDES: Final = 2**29  # of the products with small factors
TALL_ROWS: Final = 10**8
# Operations a clock and multiprocessor, by compute capability: of float32 outside the tensor cores, of float64 on them
# (NVIDIA, CUDA C++ programming guide and architecture white papers)
PER_CLOCK: Final = {"80": {"float32": 128, "float64": 128}, "90": {"float32": 256, "float64": 256}}


@dataclass(frozen=True)
class Rate:
    """One line of a table."""

    name: str  # kernel
    case: str  # product that it computes
    seconds: float  # median time of a call
    operations: float  # additions and multiplications
    moved: float  # bytes that the kernel's blocks read and write, before any cache
    of_library: float  # rate as a share of the rate of cuBLAS, or of a copy, timed in turns with it
    of_peak: float | None  # share of the chip's arithmetic peak, None where it is not known

    @property
    def teraflops(self) -> float:  # 10^12 operations a second
        return self.operations / self.seconds / 1e12


def seconds_of(calls: Sequence[Callable[[], object]], repeats: int) -> list[float]:
    """Median time on the GPU of each of several calls, which alternate, since the clock falls when a chip gets hot."""
    import cupy

    for call in calls:  # warms up
        call()
    marks = [cupy.cuda.Event() for _ in range(len(calls) * repeats + 1)]
    for i, mark in enumerate(marks[:-1]):
        mark.record()
        calls[i % len(calls)]()
    marks[-1].record()
    marks[-1].synchronize()
    times = [1e-3 * cupy.cuda.get_elapsed_time(*pair) for pair in pairwise(marks)]
    return [float(statistics.median(times[k :: len(calls)])) for k in range(len(calls))]


def peak(kind: str) -> float | None:
    """Operations a second at the highest clock, None for a chip that is not listed."""
    import cupy

    device = cupy.cuda.Device()
    rate = PER_CLOCK.get(device.compute_capability, {}).get(kind)
    attributes = device.attributes
    return None if rate is None else rate * 1e3 * attributes["ClockRate"] * attributes["MultiProcessorCount"]


def asked(name: str, kind: str, size: int) -> float:
    """Bytes that the blocks of a rung read and write for a square product."""
    tile = (1, 1) if name in ("naive", "coalesced") else RUNGS[name][kind].tile
    each = 4 if kind in ("float32", "int32") else 8
    return each * (size**3 * (1 / tile[0] + 1 / tile[1]) + size**2)


def _operands(kind: str, size: int) -> tuple[Any, Any, Any]:
    import cupy

    rng = cupy.random.RandomState(1)
    if kind == "int32":
        a, b = (rng.randint(-100, 100, (size, size)).astype(kind) for _ in range(2))
    else:
        a, b = (rng.random_sample((size, size), dtype=kind) - cupy.asarray(0.5, kind) for _ in range(2))
    return a, b, cupy.empty((size, size), kind)


Call = Callable[[], object]


def _rate(
    name: str, case: str, call: Call, reference: Call | None, repeats: int, work: tuple[str, float, float]
) -> Rate:
    """Time a call, in turns with a ``reference`` if there is one; ``work`` is its type, operations and bytes."""
    kind, operations, moved = work
    seconds, *others = seconds_of([call] if reference is None else [call, reference], repeats)
    most = peak(kind)
    share = None if most is None or not operations else operations / seconds / most
    return Rate(name, case, seconds, operations, moved, others[0] / seconds if others else 1.0, share)


def ladder(kind: str, size: int, repeats: int) -> Iterator[Rate]:
    """Every rung for a square product, after cuBLAS or, for int32, CuPy's own kernel, as cuBLAS lacks this type."""
    import cupy

    require_memory(0, 4 * size**2 * (8 if kind == "float64" else 4), f"a product of {size} x {size} matrices")
    a, b, out = _operands(kind, size)
    library = partial(cupy.matmul, a, b, out=out)
    case, operations = f"{kind} {size}^3", 2.0 * size**3
    least = kind, operations, 3.0 * size**2 * a.itemsize
    yield _rate("CuPy" if kind == "int32" else "cuBLAS", case, library, None, repeats, least)
    for name, kinds in RUNGS.items():
        if kind in kinds:
            times = 1 if size >= SLOWEST and name in SLOW else repeats
            work = kind, operations, asked(name, kind, size)
            yield _rate(name, case, partial(gemm.matmul, a, b, name, out=out), library, times, work)


def wide_products(repeats: int) -> Iterator[Rate]:
    """Small factors times ``AMPLITUDES`` float64 numbers against cuBLAS; on both sides at once against a copy."""
    import cupy

    require_memory(0, 16 * AMPLITUDES, f"a vector of {AMPLITUDES} amplitudes and its product")
    x = cupy.random.RandomState(1).random_sample(AMPLITUDES)
    y = cupy.empty_like(x)
    copy = partial(cupy.copyto, y, x)
    yield _rate("copy", "2^29 float64", copy, None, repeats, _amplitudes(0))
    for side in (32, 64, 128):
        factor = cupy.random.RandomState(2).random_sample((side, side))
        for hand, shape in (("left", (side, -1)), ("right", (-1, side))):
            wide, out = x.reshape(shape), y.reshape(shape)
            pair, case = (factor, wide) if hand == "left" else (wide, factor), f"{side} x {side} from the {hand}"
            library, ours = partial(cupy.matmul, *pair, out=out), getattr(gemm, f"{hand}_factor")
            yield _rate("cuBLAS", case, library, None, repeats, _amplitudes(side))
            yield _rate(ours.__name__, case, partial(ours, *pair, out), library, repeats, _amplitudes(side))
    factor, tiles = cupy.random.RandomState(2).random_sample((64, 64)), x.reshape(-1, 64, 64)
    both = partial(gemm.both_factors, factor, tiles, factor, y.reshape(tiles.shape))
    yield _rate("both_factors", "64 x 64 on both sides", both, copy, repeats, _amplitudes(128))


def _amplitudes(side: int) -> tuple[str, float, float]:
    return "float64", 2.0 * side * AMPLITUDES, 16.0 * AMPLITUDES


def tall_products(repeats: int) -> Iterator[Rate]:
    """Tall-skinny products and transposition of 10^8 x 16 float64 numbers, against a copy of equally many bytes."""
    import cupy

    require_memory(0, 3 * 128 * TALL_ROWS, f"three matrices of {TALL_ROWS} rows")
    rng = cupy.random.RandomState(1)
    v, w = (rng.random_sample((TALL_ROWS, 16)) for _ in range(2))
    out, small = cupy.empty_like(v), rng.random_sample((16, 16))
    operations, moved = 2.0 * 16 * 16 * TALL_ROWS, 256.0 * TALL_ROWS
    square, turned = v.reshape(40_000, -1), out.reshape(40_000, -1)
    copy = partial(cupy.copyto, out, v)
    for name, case, call, work in (
        ("copy", "10^8 x 16", copy, 0.0),
        ("tall_dot", "V^T W, 10^8 x 16", partial(gemm.tall_dot, v, w), operations),
        ("tall_matmul", "V Y, 10^8 x 16", partial(gemm.tall_matmul, v, small, out=out), operations),
        ("transpose", "40000 x 40000, tiled", partial(gemm.transpose, square, turned), 0.0),
        ("transpose", "40000 x 40000, naive", partial(gemm.transpose, square, turned, "naive"), 0.0),
    ):
        yield _rate(name, case, call, None if call is copy else copy, repeats, ("float64", work, moved))


LABELS: Final = {
    "naive": "one entry a thread",
    "coalesced": "coalesced loads",
    "block2d": "tiles in shared memory",
    "block2d_thread1d": "columns in registers",
    "block2d_thread2d": "squares in registers",
    "vectorized": "128-bit loads",
    "warptile": "tiles of a warp",
    "pipelined": "copies in a pipeline",
    "tensorcore": "tensor cores",
}
"""Labels of the rungs in figures."""


def draw(rates: list[Rate], file: Path, overwrite: bool = False) -> None:
    """Bar chart of the ladder: a group of bars a rung, a colour for each type and size."""
    import numpy as np

    from spinsim.analysis.figures import bar_figure, save_figure

    cases = list(dict.fromkeys(rate.case for rate in rates))
    names = list(dict.fromkeys(["cuBLAS", "CuPy", *(rate.name for rate in rates)]))
    values = np.full((len(cases), len(names)), np.nan)
    for rate in rates:
        values[cases.index(rate.case), names.index(rate.name)] = rate.teraflops
    labels = [LABELS.get(name, name) for name in names]
    series = dict(zip((case.replace("^3", "$^3$") for case in cases), values, strict=True))
    save_figure(bar_figure(labels, series, "$10^{12}$ operations / s"), file, overwrite)
