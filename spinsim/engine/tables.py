"""Acceptance tables of the packed updates.

A site of degree z with n unsatisfied bonds has a flip cost 2 |J| (z - 2 n) + 2 h s. Phantom bonds, half of them
satisfied, raise every degree to one of two values without changing the cost: 2^K - 2 for even and 2^K - 1 for odd
degrees, K the bits of the count. Without a field, n >= 2^(K-1) then means "gains energy, always flip", and the low
K - 1 bits of n are the *class* that picks a threshold. With a field the class is n + 2^K [s = +1], of K + 1 bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from spinsim.acceptance import acceptance
from spinsim.packing import LANES, block_count, pack_lanes

OWN_PLANES: Final = 5
"""Most significant bits of every lane's uniform: bit b of word w of the calls ``plane`` 0 to 4 is lane 32 w + b's."""

COLUMN_PLANES: Final = 4
"""Bits that one more call, plane ``OWN_PLANES``, holds for each column: lanes b, 32 + b, 64 + b and 96 + b.

The first of them that is still undecided takes bit b of the call's four words as its next bits."""

PLANES: Final = OWN_PLANES + COLUMN_PLANES

TAIL_PLANE: Final = 128
"""A lane still undecided takes 64 further bits from a call of its own, plane ``TAIL_PLANE + lane``."""

MAX_DEGREE: Final = 31  # five bits of count: beyond it the unpacked kernel is as fast


@dataclass(frozen=True)
class Classes:
    """Flip classes of a model with couplings of one magnitude.

    Attributes:
        count_bits: K, bits of the count of unsatisfied bonds.
        magnitude: |J| in quanta.
        field: h in quanta.
    """

    count_bits: int
    magnitude: int
    field: int

    @classmethod
    def of(cls, largest_degree: int, magnitude: int, field: int) -> Classes:
        """The classes of sites of at most ``largest_degree`` bonds."""
        return cls(max(3, int(largest_degree).bit_length()), magnitude, field)

    @property
    def bits(self) -> int:
        """Bits of a class."""
        return self.count_bits + 1 if self.field else self.count_bits - 1

    def padded_degree(self, parity: int) -> int:
        """The degree that phantom bonds raise sites of even (0) or odd (1) degree to."""
        return int(2**self.count_bits - 2 + parity)

    def costs(self) -> npt.NDArray[np.int64]:
        """Flip costs in quanta, shape (2 parities, classes)."""
        index = np.arange(2**self.bits)
        count = index & (2**self.count_bits - 1)
        spin = np.where(index >> self.count_bits, 1, -1) if self.field else np.ones_like(index)
        degree = np.array([[self.padded_degree(0)], [self.padded_degree(1)]])
        return np.asarray(2 * self.magnitude * (degree - 2 * count) + 2 * self.field * spin)


@dataclass(frozen=True)
class Tables:
    """Thresholds of every lane, of each sample or, of length 1, of all.

    Attributes:
        always: ``always[sample, block, parity, class, half]``: a set bit is a lane whose flip needs no random number.
        planes: ``planes[sample, block, parity, plane, class, half]``: bit ``63 - plane`` of each lane's threshold.
        thresholds: ``thresholds[sample, block, parity, class, lane]``: the thresholds of acceptance.py.
    """

    always: npt.NDArray[np.uint64]
    planes: npt.NDArray[np.uint64]
    thresholds: npt.NDArray[np.uint64]


def build_tables(classes: Classes, beta: npt.NDArray[np.float64], zero_acceptance: float) -> Tables:
    """The tables for ``beta`` (replicas,): inverse temperature times the quantum of each replica."""
    blocks = block_count(len(beta))
    if blocks > 1 and np.all(beta == beta[0]):  # annealing: one block's tables serve all
        one = build_tables(classes, beta[:1], zero_acceptance)
        return Tables(*(np.repeat(a, blocks, axis=1) for a in (one.always, one.planes, one.thresholds)))
    lanes = np.full(blocks * LANES, beta[-1])
    lanes[: len(beta)] = beta
    distinct, place = np.unique(lanes, return_inverse=True)
    always, threshold = acceptance(classes.costs()[..., None], distinct, zero_acceptance)
    shape = (2, 2**classes.bits, -1, LANES)
    always = np.moveaxis(always[..., place].reshape(shape), 2, 0)
    threshold = np.moveaxis(threshold[..., place].reshape(shape), 2, 0)
    planes = [
        pack_lanes((threshold >> np.uint64(63 - plane) & np.uint64(1)).astype(np.bool_)) for plane in range(PLANES)
    ]
    return Tables(
        always=pack_lanes(always)[None],
        planes=np.ascontiguousarray(np.stack(planes, axis=2))[None],
        thresholds=np.ascontiguousarray(threshold)[None],
    )


def empty_tables(classes: Classes, samples: int, replicas: int) -> Tables:
    """Room for tables of each sample."""
    blocks = block_count(replicas)
    kinds = (samples, blocks, 2), 2**classes.bits
    return Tables(
        always=np.empty((*kinds[0], kinds[1], 2), np.uint64),
        planes=np.empty((*kinds[0], PLANES, kinds[1], 2), np.uint64),
        thresholds=np.zeros((*kinds[0], kinds[1], LANES), np.uint64),
    )


@dataclass(frozen=True)
class SiteTables:
    """Thresholds of every replica, the same in all lanes, of each sample or, of length 1, of all; sites of even degree.

    Attributes:
        always: ``always[sample, replica, class]``, uint32: all bits set where a flip needs no random number, else none.
        planes: ``planes[sample, replica, plane, class]``, uint32: bit ``63 - plane`` of the threshold in every bit.
        thresholds: ``thresholds[sample, replica, class]``, uint64: the thresholds of acceptance.py.
    """

    always: npt.NDArray[np.uint32]
    planes: npt.NDArray[np.uint32]
    thresholds: npt.NDArray[np.uint64]


def build_site_tables(classes: Classes, beta: npt.NDArray[np.float64], zero_acceptance: float) -> SiteTables:
    """The tables for ``beta`` (1 or samples, replicas): inverse temperature times the quantum of each replica."""
    always, threshold = acceptance(classes.costs()[0], beta[..., None], zero_acceptance)
    shift = np.arange(63, 63 - PLANES, -1, dtype=np.uint64)[:, None]
    bits = (threshold[..., None, :] >> shift & np.uint64(1)).astype(np.uint32)
    full = np.uint32(0xFFFFFFFF)
    return SiteTables(always.astype(np.uint32) * full, bits * full, threshold)
