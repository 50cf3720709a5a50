"""Flip classes of an energy of two terms.

A site with z_t bonds of term t, n_t of them unsatisfied, has flip costs 2 |J_t| (z_t - 2 n_t) in quanta of each term,
and 2 h s in term 0. Its class is n_0, then n_1 in the bits above, then, in a field, one bit of the spin. Phantom bonds,
half of them satisfied, raise degrees without changing costs, so that all sites with equal parities of z_0 and z_1 are
of one *kind*, with one table. Which classes gain energy depends on the temperatures: the tables say it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

LEAST_CLASS_BITS, MOST_CLASS_BITS = 4, 6  # of which kernels are made


def bits_of_counts(degrees: tuple[int, ...], in_field: bool) -> tuple[int, int]:
    """Bits of the count of each term, where sites have at most so many bonds of it."""
    first, second = (max(1, degree.bit_length()) for degree in degrees)
    return first, max(second, LEAST_CLASS_BITS - in_field - first)


@dataclass(frozen=True)
class TermClasses:
    """Flip classes of a model of two terms.

    Attributes:
        kinds: Bonds of each term, phantom ones included, of every kind of site, (kinds, 2).
        magnitudes: |J| of each term in quanta.
        field: h in quanta.
    """

    kinds: npt.NDArray[np.int64]
    magnitudes: tuple[int, ...]
    field: int

    @property
    def count_bits(self) -> tuple[int, int]:
        """Bits of the count of each term."""
        return bits_of_counts(tuple(self.kinds.max(axis=0).tolist()), bool(self.field))

    @property
    def bits(self) -> int:
        """Bits of a class."""
        return sum(self.count_bits) + bool(self.field)

    @property
    def tables(self) -> int:
        """Kinds of sites, each with a table of its own."""
        return len(self.kinds)

    def costs(self) -> npt.NDArray[np.int64]:
        """Flip costs of each term in quanta, (kinds, classes, 2); no site has a class of more bonds than its kind."""
        first, second = self.count_bits
        index = np.arange(2**self.bits)
        counts = np.stack([index & (2**first - 1), index >> first & (2**second - 1)], axis=-1)
        costs = 2 * np.array(self.magnitudes) * (self.kinds[:, None] - 2 * counts)
        costs[..., 0] += 2 * self.field * np.where(index >> (first + second), 1, -1)
        return np.asarray(costs)
