"""Dense models with any couplings on a GPU: products of bytes, then warps that visit replicas."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from spinsim.engine.moves.metropolis.dense.matrix import STEP, WHOLE, Matrix, entry
from spinsim.engine.moves.metropolis.dense.plan import SITES
from spinsim.engine.moves.metropolis.dense.program import Program, stride

THREADS: Final = 512
STAGES: Final = 3  # of couplings that a warp has room for
STAGES_OF_CLUSTERS: Final = 6
APART: Final = 4  # fields between one replica's and the next one's
GAP: Final = 64  # bytes between replicas' spins
CLUSTER: Final = 2  # thread blocks that read couplings together
LARGE: Final = 4096  # replicas from which on blocks have 32, as multiprocessors have several blocks of 16


def group_bytes(sites: int, size: int, wide: bool, replicas: int, cluster: int = 1) -> int:
    """Shared memory of a thread block's replicas, of couplings of so many bytes and fields of 32 or 64 bits."""
    share = -(-sites // WHOLE) * WHOLE // cluster
    stages = STAGES_OF_CLUSTERS if cluster > 1 else STAGES
    sums = 4 * (SITES + APART) * ((size + 1) // 2 if wide else 1)
    alone = THREADS // 32 * stages * STEP + SITES**2 * entry(size)().itemsize
    return replicas * (cluster * (share + GAP + sums) + 4 * SITES + 4) + alone


def groups(matrix: Matrix, sites: int, width: int, room: int, clusters: bool) -> tuple[int, int]:
    """Replicas of a thread block and blocks of a cluster; the arguments are those of ``program``."""
    size, wide = matrix.bytes, matrix.wide
    return next(
        (group, cluster)
        for group, cluster in ((32, 1), (16, CLUSTER), (16, 1))
        if (group == 16 or width >= LARGE)
        and (cluster == 1 or (clusters and width > group))
        and serves(size, group, cluster)
        and ((group, cluster) == (16, 1) or group_bytes(sites, size, wide, group, cluster) <= room)
    )


def program(matrix: Matrix, fields: Any, sites: int, width: int, room: int, clusters: bool) -> Program:
    """The kernels of such a model, whose fields are int64 (1 or samples, 64 blocks).

    Args:
        matrix: Its couplings.
        fields: As said.
        sites: Of the model.
        width: Replicas, with those that fill a word.
        room: Bytes of shared memory that a thread block may have.
        clusters: Whether thread blocks can be launched together.
    """
    import cupy

    stages, own, size, wide, depth = matrix
    group, cluster = groups(matrix, sites, width, room, clusters)
    kind = size, "long long" if wide else "int", group, cluster
    fields = fields.astype(np.int64 if wide else np.int32)
    return Program(
        name="bytes",
        kind=kind,
        counting=kind,
        group=group,
        cluster=cluster,
        threads=THREADS,
        shared=group_bytes(sites, size, wide, group, cluster),
        arguments={
            "depth": np.uint32(depth),
            "couplings": cupy.asarray(stages), "coupling_stride": stride(stages, stages.shape[1]),
            "fields": cupy.asarray(fields), "field_stride": stride(fields, fields.shape[1]),
        },
        sweeping={"own": cupy.asarray(own), "own_stride": stride(own, own[0].nbytes)},
        adding={},
    )  # fmt: skip


def serves(size: int, group: int, cluster: int) -> bool:
    """Whether there is a kernel: single bytes are slower in clusters, products of 32 replicas must fit registers."""
    return group * cluster == 16 or (group * cluster == 32 and size in (3, 4))
