"""Sums over energy of a run on a ladder: what reweighting takes, kept in exact integers.

A weight of multi-histogram reweighting depends on the energy alone, and all temperatures have equally many
measurements. So measurements of all temperatures of one sample are added up together, by energy: how many each copy
has, and sums of the moments of copies; likewise for pairs of copies, by the sum of their two energies.

    energy      level = rint(E / unit), unit a power of two: exact where energies are multiples of it
    bin         (level >> shift) mod bins, of a pair (level_a + level_b >> shift) mod 2 bins

``shift`` is the smallest at which the levels met so far, from ``energy_range``, have bins of their own: as the range
grows, neighbouring bins are added to each other. Bins are a ring, so that nothing else ever moves. Each bin knows the
sum of its levels. Moments, at most 1 in size, are integers in units of 2^-e; each time that the measurements have
doubled, e is one less and all sums are halved, so that none overflows. All of it depends on the measurements of a
sample alone, in whatever order they come.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import frexp, ldexp
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim.model.ising import Ising

MOST_BINS: Final = 1024
"""Number for copies; pairs have twice as many. Energies of +-J, L = 16, from T = 0.5 to 3 have as many levels."""
_MOST_FINE: Final = 512  # the same where couplings are no multiples of a few units, so that bins never hold one level
_LEVEL_BITS: Final = 28  # bits of sites times the energy scale in levels at most: sums of 2^33 levels fit int64
_SUM_BITS: Final = 61
RANGE: Final = "energy_range"
COUNTS: Final[tuple[str, str]] = ("energy_counts", "energy_pair_counts")
SUMS: Final[tuple[str, str]] = ("energy_sums", "energy_pair_sums")


class Energies(NamedTuple):
    """Sums over energy that a run keeps."""

    unit: float  # of levels, a power of two
    bins: int  # of copies, a power of two
    blocks: int  # stretches of time that have bins of their own
    row: npt.NDArray[np.int64]  # first row of each term among the sums of copies, -1 where it has none, (terms,)
    pair_row: npt.NDArray[np.int64]  # likewise among those of pairs
    terms: tuple[list[int], list[int]]  # number of the term of each row of the sums of copies, and of those of pairs
    values: int  # numbers that one measurement adds to the bins of a sample, at most

    @property
    def rows(self) -> int:
        return len(self.terms[0])

    @property
    def pair_rows(self) -> int:
        return len(self.terms[1])

    def arrays(self, samples: int, copies: int) -> dict[str, tuple[tuple[int, ...], type]]:
        """Shapes and types of all arrays by name.

        ``energy_range`` (samples, 2), the lowest and the highest level; ``energy_counts`` (copies + 1, blocks, samples,
        bins), measurements of each copy and the sum of all levels; ``energy_sums`` (rows, blocks, samples, bins);
        where there are pairs, ``energy_pair_counts`` (2, ...) and ``energy_pair_sums`` (pair rows, ...) of 2 bins.
        """
        shapes: dict[str, tuple[int, ...]] = {RANGE: (samples, 2)}
        for names, rows, bins in (
            (("energy_counts", "energy_sums"), (copies + 1, self.rows), self.bins),
            (("energy_pair_counts", "energy_pair_sums"), (2, self.pair_rows), 2 * self.bins),
        ):
            if rows[1]:
                shapes |= {name: (row, self.blocks, samples, bins) for name, row in zip(names, rows, strict=True)}
        return {name: (shape, np.int64) for name, shape in shapes.items()}

    def exponent(self, number: int) -> int:
        """Return e, of the unit 2^-e of sums that hold a measurement, counted from 0, and those before it."""
        return _SUM_BITS - (self.values - 1).bit_length() - number.bit_length()

    def of_sample(self, arrays: Mapping[str, npt.NDArray[Any]], measurements: int, sample: int, name: str) -> Binned:
        """Return the bins of one sample that are not empty.

        Args:
            name: ``energy`` or ``energy_pair``.
        """
        low, high = (int(level) for level in arrays[RANGE][sample])
        shift, factor = shift_of(low, high, self.bins), 2 if name == "energy_pair" else 1
        numbers = np.arange(factor * low >> shift, (factor * high >> shift) + 1)
        counts, sums = (arrays[f"{name}_{part}"][:, :, sample] for part in ("counts", "sums"))
        there = numbers[counts[:-1, :, numbers % (factor * self.bins)].any(axis=(0, 1))] % (factor * self.bins)
        counts, sums = counts[..., there], sums[..., there]
        unit = ldexp(1.0, -self.exponent(measurements - 1))
        return Binned(counts[:-1].astype(np.float64), counts[-1] * self.unit, sums * unit, self.unit * 2**shift)


class Binned(NamedTuple):
    """Bins of one sample."""

    counts: npt.NDArray[np.float64]  # of each copy, or of all pairs together, (copies or 1, blocks, bins)
    energy: npt.NDArray[np.float64]  # sums of energies, (blocks, bins)
    sums: npt.NDArray[np.float64]  # of moments, (rows, blocks, bins)
    width: float  # in energy


def spacing_of(model: Ising) -> float:
    """Return a distance that the energies of a sample keep at least: exact for couplings of one size, else 0."""
    if not model.magnitude or model.fields.any():
        return 0.0
    degrees = np.bincount(model.graph.edges.ravel(), minlength=model.sites)
    return float(2 * model.coupling_unit * (1 if (degrees % 2).any() else 2))


def unit_and_bins(model: Ising) -> tuple[float, int]:
    """Return the unit of levels, and as many bins as hold one level each, if they are not too many, a power of two."""
    fine = ldexp(1.0, frexp(model.sites * model.energy_scale)[1] - _LEVEL_BITS)
    if model.quantum < fine:
        return fine, _MOST_FINE
    spacing, bins = spacing_of(model), MOST_BINS
    if spacing:
        width = 2.0 ** int(np.log2(spacing))
        bins = min(bins, power_from(2 * model.bonds * model.coupling_unit / width + 2))
    return model.quantum, bins


def power_from(number: float) -> int:
    """Return the least power of two that is a number or more."""
    return int(2 ** np.ceil(np.log2(number)))


def shift_of(low: int, high: int, bins: int) -> int:
    """Return the smallest shift at which levels from ``low`` to ``high`` have bins of their own."""
    shift = 0
    while (high >> shift) - (low >> shift) >= bins:
        shift += 1
    return shift


def is_halved(number: int) -> bool:
    """Return whether sums are halved before a measurement, counted from 0, is added."""
    return number > 0 and not number & (number - 1)


def left_in_unit(number: int) -> int:
    """Return how many measurements from this one on, counted from 0, are added without halving."""
    return int(2 ** number.bit_length()) - number
