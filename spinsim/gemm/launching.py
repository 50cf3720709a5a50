"""From arrays to a kernel's arguments, and its launch on the arrays' device."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from spinsim.cuda.launch import Launch
from spinsim.cuda.records import ADDRESS, record, struct_type
from spinsim.gemm.operands import Layout

MATRIX: Final = struct_type(at=ADDRESS, row=np.int64, column=np.int64)
OUTPUT: Final = struct_type(at=ADDRESS, row=np.int64)
SIZE: Final = struct_type(m=np.int64, n=np.int64, k=np.int64)


def matrix(array: Any, where: Layout) -> npt.NDArray[np.void]:
    """An operand: its address and the distances between elements."""
    return record(MATRIX, at=array, row=where.row, column=where.column)


def rows(array: Any, where: Layout) -> npt.NDArray[np.void]:
    """A row-major result, or an operand that is read by rows."""
    return record(OUTPUT, at=array, row=where.row)


def size(m: int, n: int, k: int) -> npt.NDArray[np.void]:
    """The size of a product."""
    return record(SIZE, m=m, n=n, k=k)


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
