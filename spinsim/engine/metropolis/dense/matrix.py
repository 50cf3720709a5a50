"""The couplings of a dense model as its GPU kernel takes them: in the order in which warps feed their tensor cores.

A block of the sweep has 64 sites. Each of 16 warps multiplies 16 of their rows, a quarter of the columns, with spins,
or 32 rows of two bits, an eighth of the columns. It fetches 1 kB at a time: 64 columns of one byte of the couplings, or
128 columns of two bits. Within 64 columns lane 4 g + t of a warp has columns 16 t to 16 t + 15 of rows g, g + 8, ...
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim.engine.metropolis.dense.plan import DensePlan

SITES: Final = 64
PARTS: Final = 4
PARTS_OF_CODES: Final = 8
STAGE: Final = 1024
BYTES: Final = (0, 1, 3, 4, 8)
"""Bytes of a coupling in kernels; of those of 0 and +-unit two bits are kept."""

LARGE_GROUPS: Final = (3, 4)
"""Of these, those with kernels of 32 replicas too."""

DEEPEST: Final = PARTS_OF_CODES * 2 * SITES
"""Columns of two bits are a multiple of it."""

HELD: Final = (1, 2)
"""The multiples of which warps hold spins in registers."""

Integers = npt.NDArray[np.signedinteger]


class Matrix(NamedTuple):
    """Couplings of all samples, over a unit.

    Attributes:
        stages: As the kernel streams them, uint8 (1 or samples, bytes).
        own: Those within each block of the sweep, (1 or samples, blocks, 64, 64).
        bytes: Of a coupling, one of ``BYTES``.
        wide: Whether local fields have 64 bits.
        unit: In quanta.
        depth: Columns, with those added that are 0.
    """

    stages: npt.NDArray[np.uint8]
    own: Integers
    bytes: int
    wide: bool
    unit: int
    depth: int


def matrix(plan: DensePlan) -> Matrix:
    """The couplings of a run."""
    doubled, sites = plan.double_couplings, plan.order.size
    largest = int(np.abs(doubled).max()) // 2
    size = _bytes(doubled, largest)
    unit = max(largest, 1) if size == 0 else 1
    whole = DEEPEST if size == 0 else PARTS * SITES
    depth = -(-sites // whole) * whole
    blocks = -(-sites // SITES)
    own = np.zeros((len(doubled), blocks, SITES, SITES), entry(size))
    stages = []
    for k, row in enumerate(doubled):
        for b in range(blocks):
            part = np.zeros((SITES, depth), np.int64)
            there = row[b * SITES : (b + 1) * SITES]
            part[: len(there), :sites] = there // (2 * unit)
            own[k, b] = part[:, b * SITES : (b + 1) * SITES]
            stages.append(_codes(part) if size == 0 else _limbs(part, size))
    wide = doubled.dtype == np.int64 or size > 3
    return Matrix(np.stack(stages).reshape(len(doubled), -1), own, size, wide, unit, depth)


def entry(size: int) -> type[np.signedinteger]:
    """What a block's own couplings are held in."""
    return np.int8 if size <= 1 else np.int32 if size <= 4 else np.int64


def _bytes(doubled: Integers, largest: int) -> int:
    """The fewest bytes that serve: signed ones, from -128 to 127, whose sum is the coupling."""
    if doubled.dtype != np.int64 and np.all((doubled == 0) | (np.abs(doubled) == 2 * largest)):
        return 0
    least = 3 if doubled.dtype == np.int64 else 1
    return next(size for size in BYTES[1:] if size >= least and largest <= 127 * sum(256**k for k in range(size)))


def _codes(part: Integers) -> npt.NDArray[np.uint8]:
    """A block of rows (64, depth) of 0, +1 and -1 as bits; column 16 t + 4 q + j is at bit 8 j + 2 q of a word."""
    codes = (part + 1).astype(np.uint32).reshape(2, 2, 2, 8, PARTS_OF_CODES, -1, 2, 4, 4, 4)  # rows, part step k t q j
    q, j = np.ogrid[:4, :4]
    words = (codes << (8 * j + 2 * q).astype(np.uint32)).sum(axis=(-2, -1), dtype=np.uint32)
    return np.ascontiguousarray(words.transpose(0, 4, 5, 6, 3, 7, 1, 2), "<u4").reshape(-1).view(np.uint8)


def _limbs(part: Integers, size: int) -> npt.NDArray[np.uint8]:
    """A block of rows (64, depth) as signed bytes, the lowest one first."""
    rest, limbs = part.astype(np.int64), []
    for _ in range(size):
        limb = rest.astype(np.int8)
        limbs.append(limb.reshape(4, 2, 8, PARTS, -1, 4, 16))  # m h g part step t byte
        rest = (rest - limb) >> 8
    return np.ascontiguousarray(np.stack(limbs).transpose(1, 4, 5, 0, 2, 3, 6, 7)).reshape(-1).view(np.uint8)
