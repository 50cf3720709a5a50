"""Flip classes of the packed updates, and the planes of random bits that decide flips.

A site of degree z with n unsatisfied bonds has a flip cost 2 |J| (z - 2 n) + 2 h s. Phantom bonds, half of them
satisfied, raise every degree to one of two values without changing the cost: 2^K - 2 for even and 2^K - 1 for odd
degrees, K the bits of the count. Without a field, n >= 2^(K-1) then means "gains energy, always flip", and the low
K - 1 bits of n are the *class* that picks a threshold. With a field the class is n + 2^K [s = +1], of K + 1 bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Final

import numpy as np
import numpy.typing as npt

OWN_PLANES: Final = 5
"""Most significant bits of every lane's uniform: bit b of word w of the calls ``plane`` 0 to 4 is lane 32 w + b's."""

COLUMN_PLANES: Final = 4
"""Bits that one more call, plane ``OWN_PLANES``, holds for each column: lanes b, 32 + b, 64 + b and 96 + b.

The first of them that is still undecided takes bit b of the call's four words as its next bits."""

PLANES: Final = OWN_PLANES + COLUMN_PLANES

TAIL_PLANE: Final = 128
"""A lane still undecided takes 64 further bits from a call of its own, plane ``TAIL_PLANE + lane``."""

MAX_DEGREE: Final = 255
MAX_DEGREE_IN_FIELD: Final = 31  # with the spin in the class, tables of more than 64 classes would be looked up
LEAST_COUNT_BITS: Final = 3
MAX_COUNT_BITS: Final = MAX_DEGREE.bit_length()


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
    tables: ClassVar[int] = 2  # of even and of odd degrees

    @classmethod
    def of(cls, largest_degree: int, magnitude: int, field: int) -> Classes:
        """The classes of sites of at most ``largest_degree`` bonds."""
        return cls(max(LEAST_COUNT_BITS, int(largest_degree).bit_length()), magnitude, field)

    @property
    def bits(self) -> int:
        """Bits of a class."""
        return self.count_bits + 1 if self.field else self.count_bits - 1

    def padded_degree(self, parity: int) -> int:
        """The degree that phantom bonds raise sites of even (0) or odd (1) degree to."""
        return int(2**self.count_bits - 2 + parity)

    @cached_property
    def costs(self) -> npt.NDArray[np.int64]:
        """Flip costs in quanta, shape (2 parities, classes)."""
        index = np.arange(2**self.bits)
        count = index & (2**self.count_bits - 1)
        spin = np.where(index >> self.count_bits, 1, -1) if self.field else np.ones_like(index)
        degree = np.array([[self.padded_degree(0)], [self.padded_degree(1)]])
        return np.asarray(2 * self.magnitude * (degree - 2 * count) + 2 * self.field * spin)
