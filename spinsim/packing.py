"""The layout of packed spins, stated once, and the rule that picks a packing.

Replica-packed: ``words[sample, block, site, half]`` is ``uint64``; bit ``b`` of half ``h`` is replica
``128 * block + 64 * h + b`` of that site. As 32-bit little-endian words it is word ``w`` (0 to 3), bit ``b``: replica
``128 * block + 32 * w + b``, the word of the Philox call that serves it. A set bit is +1, lanes past the last are 0.

Site-packed: ``words[sample, replica, colour, row, group, half]`` is ``uint64``; on a lattice of sides (Lx, Ly, Lz) the
row ``y + Ly * z`` of colour ``c`` holds the sites ``x = 2 i + (y + z + c) % 2``, and bit ``b`` of half ``h`` of group
``q`` is the one with ``i = 128 * q + 64 * h + b``; 32-bit words, bits and signs as above. Every lane is in use.

Unpacked: ``spins[sample, site, replica]`` is ``int8``, +1 or -1; on a GPU words as replica-packed.
"""

from __future__ import annotations

from enum import StrEnum
from math import prod
from typing import Final

import numpy as np
import numpy.typing as npt

LANES: Final = 128


class Packing(StrEnum):
    """Layout of an engine's spins. It follows from the configuration alone, never from the device."""

    REPLICA = "replica-packed"
    SITE = "site-packed"
    UNPACKED = "unpacked"
    ANISOTROPIC = "replica-packed by terms"


def block_count(replicas: int) -> int:
    """Blocks of 128 lanes that hold ``replicas``."""
    return -(-replicas // LANES)


def lane_masks(replicas: int) -> npt.NDArray[np.uint64]:
    """Words whose set bits are lanes in use; shape (blocks, 2)."""
    lanes = np.arange(block_count(replicas) * LANES) < replicas
    return np.packbits(lanes, bitorder="little").view("<u8").reshape(-1, 2).astype(np.uint64)


def pack_lanes(bits: npt.NDArray[np.bool_]) -> npt.NDArray[np.uint64]:
    """Booleans (..., 128) to words (..., 2)."""
    return np.packbits(bits, axis=-1, bitorder="little").view("<u8").astype(np.uint64)


def pack(spins: npt.NDArray[np.int8]) -> npt.NDArray[np.uint64]:
    """``spins`` (sample, site, replica) to replica-packed words (sample, block, site, 2)."""
    samples, sites, replicas = spins.shape
    bits = np.zeros((samples, sites, block_count(replicas) * LANES), np.bool_)
    bits[..., :replicas] = spins > 0
    words = pack_lanes(bits.reshape(samples, sites, -1, LANES))
    return np.ascontiguousarray(words.transpose(0, 2, 1, 3))


def unpack(words: npt.NDArray[np.uint64], replicas: int) -> npt.NDArray[np.int8]:
    """Replica-packed words (sample, block, site, 2) to ``spins`` (sample, site, replica)."""
    samples, _, sites, _ = words.shape
    flat = np.ascontiguousarray(words.transpose(0, 2, 1, 3)).astype("<u8")
    bits = np.unpackbits(flat.view(np.uint8).reshape(samples, sites, -1), axis=-1, bitorder="little")
    return (2 * bits[..., :replicas].astype(np.int8) - 1).astype(np.int8)


def unpack_replica(words: npt.NDArray[np.uint64], replica: int) -> npt.NDArray[np.int8]:
    """One replica's spins (site,) from the words (block, site, 2) of one sample."""
    block, lane = divmod(replica, LANES)
    return unpack_lane(words[block, :, lane // 64], lane % 64)


def unpack_lane(words: npt.NDArray[np.uint64], bit: int) -> npt.NDArray[np.int8]:
    """Spins (site,) from one bit of words (site,)."""
    bits = (words >> np.uint64(bit)) & np.uint64(1)
    return (2 * bits.astype(np.int8) - 1).astype(np.int8)


def rows_fill_groups(shape: tuple[int, ...], periodic: bool) -> bool:
    """True if a lattice can be site-packed: square or cubic, periodic, even sides, rows of a multiple of 256 sites."""
    return periodic and len(shape) > 1 and shape[0] % (2 * LANES) == 0 and all(side % 2 == 0 for side in shape)


def site_shape(shape: tuple[int, ...]) -> tuple[int, int, int, int]:
    """(colours, rows, groups in a row, halves) of one site-packed lattice of sides ``shape``, x first."""
    return 2, prod(shape[1:]), shape[0] // (2 * LANES), 2


def _odd_rows(shape: tuple[int, ...]) -> npt.NDArray[np.bool_]:
    """Rows whose first site has colour 1; shape (rows, 1)."""
    row = np.arange(prod(shape[1:]))[:, None]
    return np.asarray((row % shape[1] + row // shape[1]) % 2 == 1)


def pack_sites(spins: npt.NDArray[np.int8], shape: tuple[int, ...]) -> npt.NDArray[np.uint64]:
    """Configurations (..., site) to site-packed words (..., colour, row, group, half)."""
    pairs = (spins > 0).reshape(*spins.shape[:-1], prod(shape[1:]), shape[0] // 2, 2)
    odd = _odd_rows(shape)
    colours = [np.where(odd, pairs[..., 1 - c], pairs[..., c]) for c in (0, 1)]
    bits = np.stack(colours, axis=-3)
    return pack_lanes(bits.reshape(*bits.shape[:-1], -1, LANES))


def unpack_sites(words: npt.NDArray[np.uint64], shape: tuple[int, ...]) -> npt.NDArray[np.int8]:
    """Site-packed words (..., colour, row, group, half) to configurations (..., site)."""
    *before, _, rows, groups, _ = words.shape
    zero, one = words[..., 0, :, :, :], words[..., 1, :, :, :]
    odd = _odd_rows(shape)[..., None]
    spins = np.empty((*before, rows, groups * LANES, 2), np.int8)
    for parity, half in enumerate((np.where(odd, one, zero), np.where(odd, zero, one))):
        flat = half.astype("<u8", copy=False).view(np.uint8).reshape(*before, rows, -1)
        spins[..., parity] = np.unpackbits(flat, axis=-1, bitorder="little")
    spins *= 2
    spins -= 1
    return spins.reshape(*before, -1)
