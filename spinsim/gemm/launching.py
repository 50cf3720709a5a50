"""From arrays to a kernel's arguments, and its launch on the arrays' device."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from spinsim.cuda.launch import Launch
from spinsim.cuda.records import struct
from spinsim.gemm.operands import Layout


def matrix(array: Any, where: Layout) -> npt.NDArray[np.void]:
    """``Matrix`` of gemm.cuh."""
    return struct(array, where.row, where.column)


def rows(array: Any, where: Layout) -> npt.NDArray[np.void]:
    """``Output`` of gemm.cuh."""
    return struct(array, where.row)


def size(m: int, n: int, k: int) -> npt.NDArray[np.void]:
    """``Size`` of gemm.cuh."""
    return struct(m, n, k)


def prepare(array: Any, file: str, expression: str, shared: int, **arguments: Any) -> Launch:
    """A kernel with its arguments by name, on the device of ``array``."""
    return Launch(array.device.id, file, expression, arguments, shared)


def start(array: Any, launch: Launch, blocks: int, threads: int, layers: int = 1) -> None:
    """Launch so many layers of blocks on the current stream of the array's device."""
    import cupy

    with array.device:
        launch(cupy.cuda.get_current_stream(), (blocks, layers, 1), threads)


def blocks_that_fit(array: Any, launch: Launch, threads: int, wanted: int) -> int:
    """As many blocks as are resident at once, or fewer where less is to do."""
    from spinsim.cuda.device import multiprocessors

    with array.device:
        return max(1, min(wanted, multiprocessors(array.device.id) * launch.blocks_at_once(threads)))
