"""Dense models of couplings of 0 and +-unit on a GPU: products of bits, and a warp for each of 16 replicas.

Couplings are bits in the order in which kernels/metropolis/dense_signs.cu multiplies them.

A block of the sweep has 64 sites. Each of 8 warps multiplies two tiles of 8 of them, half of the columns, with spins:
256 columns a step, and it fetches two steps of a tile at once. Within a step lane 4 g + t has words t and t + 4 of
eight, of the site of column g of the tile; columns 2 q and 2 q + 1 are sites 32 apart.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim.cuda.device import cupy
from spinsim.engine.moves.metropolis.dense.update import DRAWS, SITES, DensePlan, Program, stride

WARPS: Final = 8
PARTS: Final = 2
STEP: Final = 256  # columns
WHOLE: Final = 4 * PARTS * STEP  # columns are a multiple of it

_ONES: Final = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).sum(axis=1, dtype=np.uint8)

Words = npt.NDArray[np.uint32]


class Signs(NamedTuple):
    """Couplings of all samples."""

    # bits of positive couplings and, unless the graph is complete, of negative ones, without those to the block of
    # sites before, as they are streamed, uint32 (1 or samples, blocks, steps / 4, 2 tiles, planes, 256 lanes, 4)
    planes: Words
    # what lanes read of their two sites, uint32 (1 or samples, blocks, 3 or 5, 32 lanes, 4): bits of positive couplings
    # to the block before and to earlier sites of their own, local fields where no spin is counted, and such bits of all
    # couplings that are not 0
    rows: Words
    complete: bool  # True if no coupling is 0
    unit: int
    depth: int  # columns, with those added that are 0

    @property
    def nbytes(self) -> int:
        return self.planes.nbytes + self.rows.nbytes


def signs(plan: DensePlan) -> Signs | None:
    """The couplings of a run, None where they are of several magnitudes."""
    doubled, sites = plan.double_couplings, plan.order.size
    unit = int(np.abs(doubled).max()) // 2
    if doubled.dtype == np.int64 or not unit or not np.all((doubled == 0) | (np.abs(doubled) == 2 * unit)):
        return None
    complete = all(np.count_nonzero(matrix) == sites * (sites - 1) for matrix in doubled)
    depth = -(-sites // WHOLE) * WHOLE
    blocks = np.arange(-(-sites // SITES))
    before = (blocks - 1) % blocks.size
    planes, rows, uncounted = [], [], []
    for matrix in doubled:
        words = np.stack([_words(matrix > 0, depth), _words(matrix < 0, depth)])
        by_block = words.reshape(2, blocks.size, SITES, -1, 2)
        near = by_block[:, blocks, :, before]  # (blocks, 2, sites, 2)
        rows.append(_rows(by_block[:, blocks, :, blocks], near, complete))
        by_block[:, blocks, :, before] = 0
        planes.append(np.stack([_streamed(plane) for plane in (words[:1] if complete else words)], axis=3))
        ones = _count(words)
        uncounted.append(ones[1] - ones[0] + _count(near).sum(axis=1).reshape(-1))
    samples = max(len(doubled), len(plan.fields))
    all_rows = np.stack([rows[k % len(rows)] for k in range(samples)])
    for k, row in enumerate(all_rows):
        local = unit * uncounted[k % len(uncounted)]
        local[:sites] += plan.fields[k % len(plan.fields)]
        row[:, 2, :, :2] = local.astype(np.int32).view(np.uint32).reshape(-1, 2, 32).transpose(0, 2, 1)
    return Signs(np.stack(planes), all_rows, complete, unit, depth)


def _words(bonds: npt.NDArray[np.bool_], depth: int) -> Words:
    """Bits (64 blocks, depth / 32), the first column lowest."""
    sites = len(bonds)
    padded = np.zeros((-(-sites // SITES) * SITES, depth), np.bool_)
    padded[:sites, :sites] = bonds
    return np.packbits(padded, axis=1, bitorder="little").view("<u4").astype(np.uint32)


def _count(words: Words) -> npt.NDArray[np.int64]:
    return np.asarray(_ONES[np.ascontiguousarray(words).view(np.uint8)].sum(axis=-1, dtype=np.int64))


def _streamed(words: Words) -> Words:
    """These words as warps take them, (blocks, pairs of steps, 2 tiles, 256 lanes, 4)."""
    pairs = words.shape[1] // (16 * PARTS)
    split = words.reshape(-1, 2, 4, 2, 4, PARTS, pairs, 2, 2, 4)  # e tiles tile q part pair step half t
    return split.transpose(0, 6, 3, 2, 5, 4, 1, 9, 7, 8).reshape(len(split), pairs, 2, 32 * WARPS, 4)


def _rows(own: Words, near: Words, complete: bool) -> Words:
    """A lane's words, of bits (blocks, 2 planes, 64 sites, 2 words) of its sites' block and of the one before."""
    earlier = (2 ** np.arange(32, dtype=np.uint64) - 1).astype(np.uint32)
    rows = np.zeros((len(own), 5, 32, 4), np.uint32)
    for first, planes in ((0, slice(1)), (3, slice(2))):
        mine, before = (np.bitwise_or.reduce(words[:, planes], axis=1) for words in (own, near))
        rows[:, first, :, :2], rows[:, first, :, 2:] = before[:, :32], before[:, 32:]
        masked = mine[:, :32, 0] & earlier, mine[:, 32:, 0], mine[:, 32:, 1] & earlier
        rows[:, first + 1, :, :3] = np.stack(masked, axis=-1)
    return rows[:, :3] if complete else rows


REPLICAS: Final = 16
AHEAD: Final = WARPS + REPLICAS // 4 * SITES // 32  # warps that multiply and that draw for the next block of sites
APART: Final = 4  # words between rows in shared memory


def group_bytes(sites: int) -> int:
    depth = -(-sites // WHOLE) * WHOLE
    bits, sums, bounds = 4 * (depth // 32 + APART), 2 * PARTS * 4 * (32 + APART), 2 * SITES * 8
    return DRAWS + REPLICAS * (16 + bits + sums + bounds)


def program(signs: Signs, fields: Any) -> Program:
    """The kernels of such a model, whose fields are int64 (1 or samples, 64 blocks)."""
    planes, rows, complete, unit, depth = signs
    return Program(
        name="signs", kind=(complete,), group=REPLICAS, cluster=1, threads=32 * (REPLICAS + AHEAD),
        shared=group_bytes(depth),
        arguments={
            "depth": np.uint32(depth), "unit": np.uint32(unit),
            "couplings": cupy.asarray(planes), "coupling_stride": stride(planes, planes[0].size // 4),
            "rows": cupy.asarray(rows), "row_stride": stride(rows, rows[0].size // 4),
            "fields": cupy.asarray(fields.astype(np.int32)), "field_stride": stride(fields, fields.shape[1]),
        },
    )  # fmt: skip
