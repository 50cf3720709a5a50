"""The layout of packed spins, stated once, and the rule that picks a packing.

Replica-packed: ``words[sample, block, site, half]`` is ``uint64``; bit ``b`` of half ``h`` is replica
``128 * block + 64 * h + b`` of that site. As 32-bit little-endian words it is word ``w`` (0 to 3), bit ``b``: replica
``128 * block + 32 * w + b``, the word of the Philox call that serves it. A set bit is +1, lanes past the last are 0.

Site-packed: ``words[sample, replica, colour, group, half]`` is ``uint64``. On a lattice of sides (Lx, Ly, Lz) the sites
of colour ``c`` are counted row by row: number ``i`` lies in row ``y + Ly * z = i // W`` of ``W = Lx / 2`` sites, at
``x = 2 (i % W) + (y + z + c) % 2``. Bit ``b`` of half ``h`` of group ``g`` is number ``i = 128 * g + 64 * h + b``;
32-bit words, bits and signs as above, lanes past the last are 0. A row may begin within a word.

Unpacked: ``spins[sample, site, replica]`` is ``int8``, +1 or -1; on a GPU words as replica-packed.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from functools import lru_cache
from math import lcm, prod
from typing import Any, Final, overload

import numpy as np
import numpy.typing as npt

from spinsim.machine.compiled import kernel, part

LANES: Final = 128
_GROUPS_AT_ONCE: Final = 2**13  # limits how many lane numbers are in memory at a time


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
    """Masks of the lanes in use; shape (blocks, 2)."""
    lanes = np.arange(block_count(replicas) * LANES) < replicas
    return np.packbits(lanes, bitorder="little").view("<u8").reshape(-1, 2).astype(np.uint64)


def pack_lanes(bits: npt.NDArray[np.bool_]) -> npt.NDArray[np.uint64]:
    """Pack booleans (..., 128) into words (..., 2)."""
    return np.packbits(bits, axis=-1, bitorder="little").view("<u8").astype(np.uint64)


def pack(spins: npt.NDArray[np.int8]) -> npt.NDArray[np.uint64]:
    """Pack ``spins`` (sample, site, replica) into replica-packed words (sample, block, site, 2)."""
    samples, sites, replicas = spins.shape
    bits = np.zeros((samples, sites, block_count(replicas) * LANES), np.bool_)
    bits[..., :replicas] = spins > 0
    words = pack_lanes(bits.reshape(samples, sites, -1, LANES))
    return np.ascontiguousarray(words.transpose(0, 2, 1, 3))


def unpack(words: npt.NDArray[np.uint64], replicas: int) -> npt.NDArray[np.int8]:
    """Unpack replica-packed words (sample, block, site, 2) to ``spins`` (sample, site, replica)."""
    samples, _, sites, _ = words.shape
    flat = np.ascontiguousarray(words.transpose(0, 2, 1, 3)).astype("<u8")
    bits = np.unpackbits(flat.view(np.uint8).reshape(samples, sites, -1), axis=-1, bitorder="little")
    return (2 * bits[..., :replicas].astype(np.int8) - 1).astype(np.int8)


def unpack_replica(words: npt.NDArray[np.uint64], replica: int) -> npt.NDArray[np.int8]:
    """Unpack one replica's spins (site,) from the words (block, site, 2) of one sample."""
    block, lane = divmod(replica, LANES)
    return unpack_lane(words[block, :, lane // 64], lane % 64)


def unpack_lane(words: npt.NDArray[np.uint64], bit: int) -> npt.NDArray[np.int8]:
    """Unpack spins (site,) from one bit of words (site,)."""
    bits = (words >> np.uint64(bit)) & np.uint64(1)
    return (2 * bits.astype(np.int8) - 1).astype(np.int8)


def rows_fill_groups(shape: tuple[int, ...]) -> bool:
    """True if rows are a multiple of 256 sites."""
    return shape[0] % (2 * LANES) == 0


def site_groups(sites: int) -> int:
    """Groups of 128 lanes that hold one colour of a lattice with this number of sites."""
    return -(-sites // (2 * LANES))


def site_shape(shape: tuple[int, ...]) -> tuple[int, int, int]:
    """Return (colours, groups, halves) of one site-packed lattice of sides ``shape``, x first."""
    return 2, site_groups(prod(shape)), 2


def repeating_groups(shape: tuple[int, ...]) -> int:
    """Period, in groups of a colour, of the layout of lanes in rows and planes; at most the number of groups."""
    lanes = prod(shape[:2]) if len(shape) > 2 else shape[0]  # of two planes, or rows, with different first colours
    return min(lcm(lanes, LANES) // LANES, site_groups(prod(shape)))


def _odd_rows(shape: tuple[int, ...]) -> npt.NDArray[np.bool_]:
    """Rows whose first site has colour 1; shape (rows, 1)."""
    row = np.arange(prod(shape[1:]))[:, None]
    return np.asarray((row % shape[1] + row // shape[1]) % 2 == 1)


def mask_of_lanes(groups: int, is_set: Callable[[npt.NDArray[np.int64]], Any]) -> npt.NDArray[np.uint64]:
    """Words (groups, 2) with a bit set for each lane of a colour whose number satisfies ``is_set``."""
    mask = np.empty((groups, 2), np.uint64)
    for first in range(0, groups, _GROUPS_AT_ONCE):
        lane = np.arange(LANES * first, LANES * min(groups, first + _GROUPS_AT_ONCE))
        mask[first : first + _GROUPS_AT_ONCE] = pack_lanes(np.asarray(is_set(lane)).reshape(-1, LANES))
    return mask


@lru_cache(maxsize=16)
def odd_lanes(shape: tuple[int, ...]) -> npt.NDArray[np.uint64]:
    """Words (groups, 2) of ``repeating_groups``, with a bit set where the site of colour 0 has odd x."""

    def is_odd(lane: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        row = lane // (shape[0] // 2)
        return np.asarray((row % shape[1] + row // shape[1]) % 2 == 1)

    return mask_of_lanes(repeating_groups(shape), is_odd)


def pack_sites(spins: npt.NDArray[np.int8], shape: tuple[int, ...]) -> npt.NDArray[np.uint64]:
    """Pack configurations (..., site) into site-packed words (..., colour, group, half)."""
    before, (colours, groups, _) = spins.shape[:-1], site_shape(shape)
    pairs = (spins > 0).reshape(*before, prod(shape[1:]), shape[0] // 2, 2)
    odd = _odd_rows(shape)
    bits = np.zeros((*before, colours, groups * LANES), np.bool_)
    for c in range(colours):
        lanes = np.where(odd, pairs[..., 1 - c], pairs[..., c])
        bits[..., c, : spins.shape[-1] // 2] = lanes.reshape(*before, -1)
    return pack_lanes(bits.reshape(*before, colours, groups, LANES))


def unpack_sites(words: npt.NDArray[np.uint64], shape: tuple[int, ...]) -> npt.NDArray[np.int8]:
    """Unpack site-packed words (..., colour, group, half) to configurations (..., site)."""
    before, rows, odd = words.shape[:-3], prod(shape[1:]), _odd_rows(shape)
    flat = np.ascontiguousarray(words).astype("<u8", copy=False).view(np.uint8).reshape(*before, 2, -1)
    bits = np.unpackbits(flat, axis=-1, count=prod(shape) // 2, bitorder="little")
    zero, one = (bits[..., c, :].reshape(*before, rows, shape[0] // 2) for c in range(2))
    spins = np.empty((*before, rows, shape[0] // 2, 2), np.int8)
    spins[..., 0], spins[..., 1] = np.where(odd, one, zero), np.where(odd, zero, one)
    spins *= 2
    spins -= 1
    return spins.reshape(*before, -1)


Bits = npt.NDArray[np.uint8]

_SPINS: Final = (
    2 * np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little").astype(np.int8) - 1
).view(np.uint64)[:, 0]
"""Eight spins of each value of a byte, as the eight bytes of a word."""
_SET_BITS: Final = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).sum(axis=1, dtype=np.uint8)


def packed_spins(spins: npt.NDArray[np.int8]) -> Bits:
    """Pack configurations (..., sites) of +1 and -1 into bits (..., bytes)."""
    return np.packbits(spins > 0, axis=-1, bitorder="little")


def unpacked_spins(bits: Bits, sites: int) -> npt.NDArray[np.int8]:
    """Unpack bits (..., bytes) to configurations (..., sites) of +1 and -1."""
    spins = _SPINS[bits].view(np.int8)
    return spins if spins.shape[-1] == sites else np.ascontiguousarray(spins[..., :sites])


def spins_up(bits: Bits) -> npt.NDArray[np.int64]:
    """Number of spins +1 in each configuration (..., bytes)."""
    return np.asarray(_SET_BITS[bits].sum(axis=-1, dtype=np.int64))


def of_replica_packed(words: npt.NDArray[np.uint64], replicas: int) -> Bits:
    """Return the configurations (replicas, bytes) in one sample's replica-packed words (blocks, sites, 2)."""
    blocks, sites, _ = words.shape
    lanes = np.ascontiguousarray(words).astype("<u8", copy=False).view(np.uint8).reshape(blocks, sites, -1)
    by_site = np.unpackbits(lanes, axis=-1, bitorder="little")
    by_replica = np.ascontiguousarray(by_site.transpose(0, 2, 1)).reshape(-1, sites)
    return np.packbits(by_replica[:replicas], axis=-1, bitorder="little")


@part
def _apart(word):  # type: ignore[no-untyped-def]
    """Spread the low 32 bits of a word over the even bit positions of 64."""
    word &= np.uint64(0xFFFFFFFF)
    for shift, mask in (
        (np.uint64(16), np.uint64(0x0000FFFF0000FFFF)),
        (np.uint64(8), np.uint64(0x00FF00FF00FF00FF)),
        (np.uint64(4), np.uint64(0x0F0F0F0F0F0F0F0F)),
        (np.uint64(2), np.uint64(0x3333333333333333)),
        (np.uint64(1), np.uint64(0x5555555555555555)),
    ):
        word = (word | (word << shift)) & mask
    return word


@kernel
def _interleave(words, odd, out):  # type: ignore[no-untyped-def]
    """Write ``words`` (colour, words) to ``out`` in the order of sites; ``odd`` comes from ``odd_lanes``."""
    high = np.uint64(32)
    for k in range(words.shape[1]):
        mask = odd[k % odd.size]
        even_x = (words[0, k] & ~mask) | (words[1, k] & mask)
        odd_x = (words[1, k] & ~mask) | (words[0, k] & mask)
        out[2 * k] = _apart(even_x) | (_apart(odd_x) << np.uint64(1))
        out[2 * k + 1] = _apart(even_x >> high) | (_apart(odd_x >> high) << np.uint64(1))


def of_site_packed(words: npt.NDArray[np.uint64], shape: tuple[int, ...]) -> Bits:
    """Return the bits (bytes,) of a configuration in site-packed words (colours, groups, 2), for sides ``shape``."""
    halves = np.ascontiguousarray(words).reshape(2, -1)
    out = np.empty(halves.size, np.uint64)
    _interleave(halves, odd_lanes(shape).reshape(-1), out)
    return out.astype("<u8", copy=False).view(np.uint8)[: -(-prod(shape) // 8)]


class States:
    """Configurations of large lattices, one for each sample: stored as bits, and unpacked on access.

    Args:
        bits: Configurations of all samples, (samples, bytes).

    Attributes:
        shape: (samples, sites).
    """

    def __init__(self, bits: Bits, sites: int) -> None:
        self.bits, self.shape = bits, (len(bits), sites)

    @overload
    def __getitem__(self, which: int) -> npt.NDArray[np.int8]: ...

    @overload
    def __getitem__(self, which: slice) -> States: ...

    def __getitem__(self, which: int | slice) -> npt.NDArray[np.int8] | States:
        """Return the configuration of a sample, ``int8`` (sites,), +1 and -1; a slice of samples stays packed."""
        sites = self.shape[1]
        return States(self.bits[which], sites) if isinstance(which, slice) else unpacked_spins(self.bits[which], sites)

    def __len__(self) -> int:
        return len(self.bits)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        """Unpack all configurations, ``int8`` (samples, sites)."""
        return unpacked_spins(self.bits, self.shape[1]).astype(dtype or np.int8, copy=False)
