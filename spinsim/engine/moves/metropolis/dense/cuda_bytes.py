"""Dense models with any couplings on a GPU: products of bytes, then warps that visit replicas.

Couplings are bytes in the order in which kernels/metropolis/dense_bytes.cu multiplies them.

A block of the sweep has 64 sites, four tiles of 16 rows. Of a tile, 64 columns of one byte of couplings are 1 kB. Lane
4 g + t of a warp has columns 16 t to 16 t + 15 of rows g and g + 8, eight columns in each half of it: four bytes of row
g, of row g + 8, the next four of row g, of row g + 8, as the tensor cores take them. All bytes of these columns follow
each other, then come the next 64 columns.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim.cuda.device import cupy
from spinsim.engine.moves.metropolis.dense.update import SITES, DensePlan, Program, stride

WHOLE: Final = 4 * SITES
"""Columns are a multiple of it, so that up to four thread blocks have whole blocks of sites each."""

STEP: Final = 1024  # bytes of 16 rows, 64 columns and one place of couplings
BYTES: Final = (1, 3, 4, 8)  # bytes of a coupling in kernels

Integers = npt.NDArray[np.signedinteger]


class Matrix(NamedTuple):
    """Couplings of all samples."""

    stages: npt.NDArray[np.uint8]  # as the kernel streams them, uint8 (1 or samples, bytes)
    own: Integers  # those within each block of the sweep to later sites, 0 to others, (1 or samples, blocks, 64, 64)
    bytes: int  # of a coupling, one of ``BYTES``
    wide: bool  # True if local fields have 64 bits
    depth: int  # columns, with those added that are 0

    @property
    def nbytes(self) -> int:
        return self.stages.nbytes + self.own.nbytes


def matrix(plan: DensePlan) -> Matrix:
    doubled, sites = plan.double_couplings, plan.order.size
    largest = int(np.abs(doubled).max()) // 2
    size = _bytes(doubled, largest)
    depth, blocks = -(-sites // WHOLE) * WHOLE, -(-sites // SITES)
    own = np.zeros((len(doubled), blocks, SITES, SITES), entry(size))
    stages = []
    for k, row in enumerate(doubled):
        for b in range(blocks):
            part = np.zeros((SITES, depth), np.int64)
            there = row[b * SITES : (b + 1) * SITES]
            part[: len(there), :sites] = there // 2
            own[k, b] = np.triu(part[:, b * SITES : (b + 1) * SITES])
            stages.append(_limbs(part, size))
    wide = doubled.dtype == np.int64 or size > 3
    return Matrix(np.stack(stages).reshape(len(doubled), -1), own, size, wide, depth)


def entry(size: int) -> type[np.signedinteger]:
    """Type of a block's own couplings, of so many bytes each."""
    return np.int8 if size <= 1 else np.int32 if size <= 4 else np.int64


def _bytes(doubled: Integers, largest: int) -> int:
    """The fewest bytes that serve: signed ones, from -128 to 127, whose sum is the coupling."""
    least = 3 if doubled.dtype == np.int64 else 1
    return next(size for size in BYTES if size >= least and largest <= 127 * sum(256**k for k in range(size)))


def _limbs(part: Integers, size: int) -> npt.NDArray[np.uint8]:
    """A block of rows (64, depth) as signed bytes, the lowest one first."""
    rest, limbs = part.astype(np.int64), []
    for _ in range(size):
        limb = rest.astype(np.int8)
        limbs.append(limb.reshape(4, 2, 8, -1, 4, 2, 2, 4))  # tile, g / 8, g, step, t, half, four, byte
        rest = (rest - limb) >> 8
    return np.ascontiguousarray(np.stack(limbs).transpose(1, 4, 0, 6, 3, 5, 7, 2, 8)).reshape(-1).view(np.uint8)


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
    of_block = THREADS // 32 * stages * STEP + SITES**2 * entry(size)().itemsize
    return replicas * (cluster * (share + GAP + sums) + 4 * SITES + 4) + of_block


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
    """The kernels of such a model, whose fields are int64 (1 or samples, 64 blocks)."""
    stages, own, size, wide, depth = matrix
    group, cluster = groups(matrix, sites, width, room, clusters)
    kind = size, "long long" if wide else "int", group, cluster
    fields = fields.astype(np.int64 if wide else np.int32)
    return Program(
        name="bytes", kind=kind, group=group, cluster=cluster, threads=THREADS,
        shared=group_bytes(sites, size, wide, group, cluster),
        arguments={
            "depth": np.uint32(depth),
            "couplings": cupy.asarray(stages), "coupling_stride": stride(stages, stages.shape[1]),
            "fields": cupy.asarray(fields), "field_stride": stride(fields, fields.shape[1]),
            "own": cupy.asarray(own), "own_stride": stride(own, own[0].nbytes),
        },
    )  # fmt: skip


def serves(size: int, group: int, cluster: int) -> bool:
    """Return True if there is a kernel: bytes are slower in clusters, products of 32 replicas must fit registers."""
    return group * cluster == 16 or (group * cluster == 32 and size in (3, 4))
