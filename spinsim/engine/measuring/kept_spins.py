"""Configurations of one moment: one by one or, where that is faster, all replicas of a sample as bits."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from spinsim.bits import Bits, packed_spins
from spinsim.engine.protocols import Spins


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


def bits_of(spins: Spins, sample: int, replicas: int) -> Bits:
    """Returns the configurations of all replicas of a sample as bits, (replicas, bytes)."""
    if isinstance(spins, KeptSpins) and spins.bits is not None:
        return spins.bits(sample)
    return np.stack([packed_spins(spins(sample, r)) for r in range(replicas)])
