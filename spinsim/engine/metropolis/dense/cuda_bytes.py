"""Dense models with any couplings on a GPU: products of bytes, then warps that visit replicas."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from spinsim.engine.metropolis.dense.matrix import LARGE_GROUPS, PARTS, STAGE, Matrix, entry
from spinsim.engine.metropolis.dense.plan import SITES
from spinsim.engine.metropolis.dense.program import Program, stride

THREADS: Final = 512
STAGES: Final = 3  # of couplings that a warp has room for
APART: Final = 4  # fields between one replica's and the next one's
GAP: Final = 64  # bytes between replicas' spins
LARGE: Final = 4096  # replicas from which on groups are of 32, as reading couplings takes longest


def group_bytes(sites: int, size: int, wide: bool, replicas: int) -> int:
    """Shared memory of a group of replicas, of couplings of so many bytes and fields of 32 or 64 bits."""
    depth = -(-sites // (PARTS * SITES)) * PARTS * SITES
    fields = (8 if wide else 4) * (SITES + APART)
    alone = THREADS // 32 * STAGES * STAGE + SITES**2 * entry(size)().itemsize
    return replicas * (depth + GAP + fields + 4 * SITES + 4) + alone


def program(matrix: Matrix, fields: Any, sites: int, width: int, room: int) -> Program:
    """The kernels of such a model, whose fields are int64 (1 or samples, 64 blocks), in ``room`` bytes at most."""
    import cupy

    stages, own, size, wide, depth = matrix
    many = size in LARGE_GROUPS and width >= LARGE and group_bytes(sites, size, wide, 32) <= room
    group = 32 if many else 16
    kind = size, "long long" if wide else "int", group
    fields = fields.astype(np.int64 if wide else np.int32)
    return Program(
        name="bytes",
        kind=kind,
        counting=kind,
        group=group,
        threads=THREADS,
        shared=group_bytes(sites, size, wide, group),
        arguments={
            "depth": np.uint32(depth),
            "couplings": cupy.asarray(stages), "coupling_stride": stride(stages, stages.shape[1]),
            "fields": cupy.asarray(fields), "field_stride": stride(fields, fields.shape[1]),
        },
        sweeping={"own": cupy.asarray(own), "own_stride": stride(own, own[0].nbytes)},
        adding={},
    )  # fmt: skip
