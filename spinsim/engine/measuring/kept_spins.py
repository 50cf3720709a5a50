"""Configurations of one moment: one by one or, where that is faster, all replicas of a sample as bits."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np
import numpy.typing as npt

from spinsim.bits import Bits, of_site_packed, packed_spins
from spinsim.engine.protocols import Saves, Spins
from spinsim.packing import unpack_sites


class KeptSpins:
    """The configurations of one moment, whatever comes later.

    Args:
        read: Finds the one of a sample and replica.
        bits: Finds those of all replicas of a sample as ``spinsim.bits`` says; None where one by one is as fast.
    """

    def __init__(self, read: Spins, bits: Callable[[int], Bits] | None) -> None:
        self._read, self.bits = read, bits

    def __call__(self, sample: int, replica: int) -> npt.NDArray[np.int8]:
        """Returns one configuration, (sites,), +1 or -1."""
        return self._read(sample, replica)


class PresentSpins(KeptSpins):
    """The present configurations of a site-packed engine, of which a snapshot is taken when the first is asked for.

    Args:
        engine: Any whose snapshot holds site-packed words.
        shape: Sides of its lattice.
    """

    def __init__(self, engine: Saves, shape: tuple[int, ...]) -> None:
        self._engine, self._shape = engine, shape
        super().__init__(lambda sample, replica: unpack_sites(self._words[sample, replica], shape), self._all_of)

    @cached_property
    def _words(self) -> npt.NDArray[np.uint64]:
        return np.asarray(self._engine.snapshot()["spins"], np.uint64)

    def one(self, sample: int, replica: int) -> Bits:
        """Returns one configuration as bits, (bytes,)."""
        return of_site_packed(self._words[sample, replica], self._shape)

    def _all_of(self, sample: int) -> Bits:
        return np.stack([of_site_packed(words, self._shape) for words in self._words[sample]])


def bits_of_one(spins: Spins, sample: int, replica: int) -> Bits:
    """Returns one configuration as bits, (bytes,)."""
    return spins.one(sample, replica) if isinstance(spins, PresentSpins) else packed_spins(spins(sample, replica))


def bits_of(spins: Spins, sample: int, replicas: int) -> Bits:
    """Returns the configurations of all replicas of a sample as bits, (replicas, bytes)."""
    if isinstance(spins, KeptSpins) and spins.bits is not None:
        return spins.bits(sample)
    return np.stack([packed_spins(spins(sample, r)) for r in range(replicas)])
