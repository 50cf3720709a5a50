"""Configurations as bits, one after the other: bit b of byte k is site 8 k + b, set where the spin is +1.

Bits past the last site are 0. This is how files hold saved configurations, of engines of every packing.
"""

from __future__ import annotations

from typing import Any, Final, overload

import numpy as np
import numpy.typing as npt

from spinsim.machine.compiled import kernel, part

Bits = npt.NDArray[np.uint8]

_SPINS: Final = (
    2 * np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little").astype(np.int8) - 1
).view(np.uint64)[:, 0]
"""The eight spins of a byte, in as many bytes."""
_SET_BITS: Final = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).sum(axis=1, dtype=np.uint8)


def packed_spins(spins: npt.NDArray[np.int8]) -> Bits:
    """Returns configurations (..., sites) of +1 and -1 as bits (..., bytes)."""
    return np.packbits(spins > 0, axis=-1, bitorder="little")


def unpacked_spins(bits: Bits, sites: int) -> npt.NDArray[np.int8]:
    """Returns the configurations (..., sites), +1 and -1, of bits (..., bytes)."""
    spins = _SPINS[bits].view(np.int8)
    return spins if spins.shape[-1] == sites else np.ascontiguousarray(spins[..., :sites])


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


@part
def _apart(word):  # type: ignore[no-untyped-def]
    """The low 32 bits of a word at the even places of 64."""
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
def _interleave(words, height, out):  # type: ignore[no-untyped-def]
    """``out`` (rows, words of a row) in the order of sites, of ``words`` (colour, rows, words of half a row)."""
    high = np.uint64(32)
    for row in range(words.shape[1]):
        odd = (row % height + row // height) % 2
        for k in range(words.shape[2]):
            even_x, odd_x = words[odd, row, k], words[1 - odd, row, k]
            out[row, 2 * k] = _apart(even_x) | (_apart(odd_x) << np.uint64(1))
            out[row, 2 * k + 1] = _apart(even_x >> high) | (_apart(odd_x >> high) << np.uint64(1))


def of_site_packed(words: npt.NDArray[np.uint64], shape: tuple[int, ...]) -> Bits:
    """Returns the bits (bytes,) of a configuration as site-packed words (colours, rows, groups, 2) of these sides."""
    colours, rows = words.shape[:2]
    halves = np.ascontiguousarray(words).reshape(colours, rows, -1)
    out = np.empty((rows, 2 * halves.shape[2]), np.uint64)
    _interleave(halves, shape[1], out)
    return out.astype("<u8", copy=False).view(np.uint8).reshape(-1)


class States:
    """Configurations of large lattices, one for each sample: held as bits, and unpacked when they are asked for.

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
        """The configuration of a sample, ``int8`` (sites,), +1 and -1; those of several stay as they are."""
        sites = self.shape[1]
        return States(self.bits[which], sites) if isinstance(which, slice) else unpacked_spins(self.bits[which], sites)

    def __len__(self) -> int:
        return len(self.bits)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        """All of them, ``int8`` (samples, sites)."""
        return unpacked_spins(self.bits, self.shape[1]).astype(dtype or np.int8, copy=False)
