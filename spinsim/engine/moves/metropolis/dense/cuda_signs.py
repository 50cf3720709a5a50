"""Dense models of couplings of 0 and +-unit on a GPU: products of bits, and a warp for each of 16 replicas."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from spinsim.engine.moves.metropolis.dense.plan import SITES
from spinsim.engine.moves.metropolis.dense.program import DRAWS, Program, stride
from spinsim.engine.moves.metropolis.dense.signs import PARTS, WARPS, WHOLE, Signs

REPLICAS: Final = 16
AHEAD: Final = WARPS + REPLICAS // 4 * SITES // 32  # warps that multiply and that draw for the next block of sites
APART: Final = 4  # words between rows in shared memory


def group_bytes(sites: int) -> int:
    """Shared memory of a group of replicas."""
    depth = -(-sites // WHOLE) * WHOLE
    bits, sums, bounds = 4 * (depth // 32 + APART), 2 * PARTS * 4 * (32 + APART), 2 * SITES * 8
    return DRAWS + REPLICAS * (16 + bits + sums + bounds)


def program(signs: Signs, fields: Any) -> Program:
    """The kernels of such a model, whose fields are int64 (1 or samples, 64 blocks)."""
    import cupy

    planes, rows, complete, unit, depth = signs
    return Program(
        name="signs",
        kind=(complete,),
        counting=(complete,),
        group=REPLICAS,
        cluster=1,
        threads=32 * (REPLICAS + AHEAD),
        shared=group_bytes(depth),
        arguments={
            "depth": np.uint32(depth), "unit": np.uint32(unit),
            "couplings": cupy.asarray(planes), "coupling_stride": stride(planes, planes[0].size // 4),
            "rows": cupy.asarray(rows), "row_stride": stride(rows, rows[0].size // 4),
        },
        sweeping={},
        adding={"fields": cupy.asarray(fields.astype(np.int32)), "field_stride": stride(fields, fields.shape[1])},
    )  # fmt: skip
