"""Configurations as bits, one after the other: bit b of byte k is site 8 k + b, set where the spin is +1.

Bits past the last site are 0. This is how files hold saved configurations, of engines of every packing.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

Bits = npt.NDArray[np.uint8]

_SET_BITS: Final = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).sum(axis=1, dtype=np.uint8)


def packed_spins(spins: npt.NDArray[np.int8]) -> Bits:
    """Returns configurations (..., sites) of +1 and -1 as bits (..., bytes)."""
    return np.packbits(spins > 0, axis=-1, bitorder="little")


def unpacked_spins(bits: Bits, sites: int) -> npt.NDArray[np.int8]:
    """Returns the configurations (..., sites), +1 and -1, of bits (..., bytes)."""
    spins = np.unpackbits(bits, axis=-1, count=sites, bitorder="little").view(np.int8)
    spins *= 2
    spins -= 1
    return spins


def spins_up(bits: Bits) -> npt.NDArray[np.int64]:
    """Returns how many spins are +1 in configurations (..., bytes)."""
    return np.asarray(_SET_BITS[bits].sum(axis=-1, dtype=np.int64))


def of_replica_packed(words: npt.NDArray[np.uint64], replicas: int) -> Bits:
    """Returns the configurations (replicas, bytes) of one sample's replica-packed words (blocks, sites, 2)."""
    blocks, sites, _ = words.shape
    lanes = np.ascontiguousarray(words).astype("<u8", copy=False).view(np.uint8).reshape(blocks, sites, -1)
    by_site = np.unpackbits(lanes, axis=-1, bitorder="little")
    by_replica = np.ascontiguousarray(by_site.transpose(0, 2, 1)).reshape(-1, sites)
    return np.packbits(by_replica[:replicas], axis=-1, bitorder="little")
