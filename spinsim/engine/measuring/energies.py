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

On the host what belongs to a bin stands side by side, a *column* each, so that a value adds to all of them at once:

    of_copies[block, sample, bin]    measurements of each copy, the sum of levels, sums
    of_pairs[block, sample, bin]     pairs and measurements, the sum of levels, sums, room up to a multiple of LANES
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import frexp, ldexp
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim.machine.compiled import part, step
from spinsim.model.ising import Ising

if TYPE_CHECKING:
    from spinsim.engine.measuring.reduction import Reduced

MOST_BINS: Final = 1024
"""Number for copies; pairs have twice as many. Energies of +-J, L = 16, from T = 0.5 to 3 have as many levels."""
_MOST_FINE: Final = 512  # the same where couplings are no multiples of a few units, so that bins never hold one level
_FEWEST: Final = 4
"""Bins for each unit of the root of all sites that are worth their room: energies of one temperature spread over some
such units, those of a ladder over sites."""
_BYTES: Final = 2**26  # bytes that all sums over energy may take before there are fewer bins
_OF_OTHERS: Final = 2
"""Part of all other sums that so few bins may take, if they take more than these bytes, before there are none."""
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


def energies_of(reduced: Reduced) -> Energies | None:
    """Return which sums over energy there is room for; None for none, or where no term asks for them."""
    model, copies, terms = reduced.model, reduced.copies, reduced.terms
    row, pair_row = np.full(len(terms), -1), np.full(len(terms), -1)
    rows: list[int] = []
    pair_rows: list[int] = []
    for k, term in enumerate(terms):
        if term.over_energy and term.of_pairs:
            pair_row[k] = len(pair_rows)
            pair_rows.append(k)
        elif term.over_energy:
            row[k] = len(rows)
            rows += [k] * (copies if term.by_copy else 1)
    if not rows:
        return None
    blocks = reduced.blocks if reduced.samples_in_run == 1 else 1
    fine = ldexp(1.0, frexp(model.sites * model.energy_scale)[1] - _LEVEL_BITS)
    bins = _bins_of_levels(model) if model.quantum >= fine else _MOST_FINE
    words = copies + 1 + len(rows) + (2 * (len(pair_rows) + 2) if pair_rows else 0)
    of_bin, fewest = 8 * reduced.samples_in_run * blocks * words, _power_from(_FEWEST * np.sqrt(model.sites))
    while bins > fewest and bins * of_bin > _BYTES:
        bins //= 2
    if bins * of_bin > max(_BYTES, replace(reduced, by_energy=False).nbytes // _OF_OTHERS):
        return None
    values = reduced.places * max(copies, reduced.pairs)
    return Energies(max(model.quantum, fine), bins, blocks, row, pair_row, (rows, pair_rows), values)


def spacing_of(model: Ising) -> float:
    """Return a distance that the energies of a sample keep at least: exact for couplings of one size, else 0."""
    if not model.magnitude or model.fields.any():
        return 0.0
    degrees = np.bincount(model.graph.edges.ravel(), minlength=model.sites)
    return float(2 * model.coupling_unit * (1 if (degrees % 2).any() else 2))


def _bins_of_levels(model: Ising) -> int:
    """Return how many bins hold one level each, if they are not too many, a power of two."""
    spacing, bins = spacing_of(model), MOST_BINS
    if spacing:
        width = 2.0 ** int(np.log2(spacing))
        bins = _power_from(2 * model.bonds * model.coupling_unit / width + 2)
    return min(bins, MOST_BINS)


def _power_from(number: float) -> int:
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


Integers = npt.NDArray[np.int64]
LANES: Final = 8  # columns that are added together
_COUNTED: Final = 2  # columns before those of terms, of pairs


class EnergyBins(NamedTuple):
    """Sums over energy as kernels take them; without bins where there are none."""

    column: Integers  # place of each term among those of copies that are added up, -1 where it is none, (terms,)
    pair_column: Integers  # column of each term of pairs, likewise
    rows: Integers  # first column of each of these terms, and how far that of the next copy is, (of copies, 2)
    places: int  # of one sample
    inverse: float  # 1 / unit of levels
    ranges: Integers  # lowest and highest level, (samples, 2)
    of_copies: Integers  # (blocks, samples, bins, columns)
    of_pairs: Integers  # (blocks, samples, bins, columns); no columns without pairs

    def arrays(self, copies: int, pair_rows: int) -> dict[str, Integers]:
        """Views of all arrays by name, as ``Energies.arrays`` has them."""
        counts, sums = (np.moveaxis(part, -1, 0) for part in np.split(self.of_copies, [copies + 1], axis=-1))
        arrays = {RANGE: self.ranges, COUNTS[0]: counts, SUMS[0]: sums}
        if pair_rows:
            columns = np.moveaxis(self.of_pairs, -1, 0)
            arrays |= {COUNTS[1]: columns[:_COUNTED], SUMS[1]: columns[_COUNTED : _COUNTED + pair_rows]}
        return arrays


def empty_bins(reduced: Reduced) -> EnergyBins:
    """Return the sums over energy of a run that has not measured yet."""
    terms, samples, copies, energies = reduced.terms, reduced.model.samples, reduced.copies, reduced.energies
    column, pair_column = np.full(len(terms), -1), np.full(len(terms), -1)
    if energies is None:
        rows, ranges, none = np.empty((0, 2), np.int64), np.empty((0, 2), np.int64), np.empty((1, 0, 0, 0), np.int64)
        return EnergyBins(column, pair_column, rows, reduced.places, 1.0, ranges, none, none)
    of_terms: list[tuple[int, int]] = []
    for k, term in enumerate(terms):
        if energies.row[k] >= 0:
            column[k] = len(of_terms)
            of_terms.append((copies + 1 + energies.row[k], int(term.by_copy)))
        if energies.pair_row[k] >= 0:
            pair_column[k] = _COUNTED + energies.pair_row[k]
    width = -(-(_COUNTED + energies.pair_rows) // LANES) * LANES if energies.pair_rows else 0
    shape = energies.blocks, samples
    return EnergyBins(
        column, pair_column, np.array(of_terms, np.int64).reshape(-1, 2), reduced.places, 1 / energies.unit,
        np.zeros((samples, 2), np.int64), np.zeros((*shape, energies.bins, copies + 1 + energies.rows), np.int64),
        np.zeros((*shape, 2 * energies.bins, width), np.int64),
    )  # fmt: skip


@step
def shift_over(low, high, bins):  # type: ignore[no-untyped-def]
    """``shift_of``."""
    shift = 0
    while (high >> shift) - (low >> shift) >= bins:
        shift += 1
    return shift


@part
def widen(sums, low, high, shift, wider):  # type: ignore[no-untyped-def]
    """Add bins of ``sums`` (bins, columns) that share one of a larger shift; levels go from ``low`` to ``high``."""
    bins = sums.shape[0]
    room = np.zeros(sums.shape, np.int64)
    for number in range(low >> shift, (high >> shift) + 1):
        room[(number >> (wider - shift)) & (bins - 1)] += sums[number & (bins - 1)]
    sums[:] = room


@part
def room_over_energy(bins, copies, pairs, n):  # type: ignore[no-untyped-def]
    """Room for levels (copies, n) and for terms of copies (copies, terms, n) and pairs (pairs, columns, n)."""
    if not bins.of_copies.size:
        n = 0
    width = bins.of_pairs.shape[3]
    levels, of_copies = np.empty((copies, n), np.int64), np.empty((copies, bins.rows.shape[0], n), np.int64)
    of_pairs = np.zeros((pairs if width else 0, width, n), np.int64)
    of_pairs[:, :1] = 1
    return levels, of_copies, of_pairs


@part
def find_levels(energy, bins, number, first, samples, levels):  # type: ignore[no-untyped-def]
    """Find the levels of energies, and widen bins that do not hold them.

    Args:
        energy: (copies, places of all samples).
        number: Of the measurement.
        first: Sample that comes first.
        levels: (copies, places of these samples), written.
    """
    copies, places, number_of_bins = energy.shape[0], bins.places, bins.of_copies.shape[2]
    n = samples * places
    for chain in range(copies):
        of_chain, row = energy[chain, first * places : first * places + n], levels[chain, :n]
        for e in range(n):
            row[e] = np.int64(np.rint(of_chain[e] * bins.inverse))
    for k in range(samples):
        sample = first + k
        old_low, old_high = bins.ranges[sample, 0], bins.ranges[sample, 1]
        low, high = old_low, old_high
        if number == 0:
            low = high = levels[0, k * places]
        for chain in range(copies):
            for e in range(k * places, (k + 1) * places):
                low, high = min(low, levels[chain, e]), max(high, levels[chain, e])
        shift, old = shift_over(low, high, number_of_bins), shift_over(old_low, old_high, number_of_bins)
        if number > 0 and shift > old:
            for one in range(bins.of_copies.shape[0]):
                widen(bins.of_copies[one, sample], old_low, old_high, old, shift)
                if bins.of_pairs.size:
                    widen(bins.of_pairs[one, sample], 2 * old_low, 2 * old_high, old, shift)
        bins.ranges[sample, 0], bins.ranges[sample, 1] = low, high


@step
def in_units(y, scale, values):  # type: ignore[no-untyped-def]
    """Put numbers ``y`` (n,) into ``values``, in units of sums."""
    for e in range(y.size):
        values[e] = np.int64(np.rint(y[e] * scale))


@step
def add_over_energy(bins, block, first, samples, pairs, levels, values, pair_values):  # type: ignore[no-untyped-def]
    """Add terms of copies and of pairs to the bins of a block.

    Arguments are those of ``find_levels`` and what ``room_over_energy`` made.
    """
    copies, places, width = levels.shape[0], bins.places, pair_values.shape[1]
    for k in range(samples):
        table, pair_table = bins.of_copies[block, first + k], bins.of_pairs[block, first + k]
        last, pair_last = np.int64(table.shape[0] - 1), np.int64(pair_table.shape[0] - 1)
        shift = shift_over(bins.ranges[first + k, 0], bins.ranges[first + k, 1], table.shape[0])
        for chain in range(copies):
            terms = values[chain]
            for e in range(k * places, (k + 1) * places):
                level = levels[chain, e]
                to = table[np.uint64((level >> shift) & last)]
                to[chain] += 1
                to[copies] += level
                for j in range(terms.shape[0]):
                    to[bins.rows[j, 0] + bins.rows[j, 1] * chain] += terms[j, e]
        for p in range(pair_values.shape[0]):
            one, other = levels[pairs[p, 0]], levels[pairs[p, 1]]
            for column in range(0, width, LANES):
                terms = pair_values[p, column : column + LANES]
                for e in range(k * places, (k + 1) * places):
                    level = one[e] + other[e]
                    if column == 0:
                        terms[1, e] = level
                    to = pair_table[np.uint64((level >> shift) & pair_last), column : column + LANES]
                    for j in range(LANES):
                        to[j] += terms[j, e]
