"""Sums of the measurements of a ladder, added up as they are made; their size is independent of the run's length.

A *term* is a number of every copy, or of every pair of copies, at each place of the ladder: a weighted sum of one or
two measured numbers (its *sources*) and a constant, or its absolute value, square or fourth power. Every term has

* sums over *blocks* of equally many measurements. There are ``blocks`` blocks. When all are full, neighbours are merged
  and new blocks begin, so that at least half of them are in use;
* for some terms, sums of each copy over the whole run, and sums of each copy at the coldest place over many more
  blocks, by which a run is judged;
* for terms whose autocorrelation is followed, sums and squares of sums over 1, 2, 4, ... consecutive measurements
  (*levels*), from which autocorrelation times follow by blocking (H. Flyvbjerg, H. G. Petersen, J. Chem. Phys. 91, 461
  (1989)), about the first value, so that little is lost to rounding. They follow the sum over copies or pairs, because
  the error belongs to their average: copies that exchange clusters decorrelate faster than the average.

The places of replicas on the ladder are also added up over many blocks, and overlaps and link overlaps have histograms.

*Sums over energy* are the input of reweighting, kept in exact integers. A weight of multi-histogram reweighting depends
only on the energy, and all temperatures have equally many measurements. So measurements at all temperatures of one
sample are binned together by energy: the count of each copy, and sums of the copies' moments. Pairs of copies are
binned likewise, by the sum of their two energies.

    energy      level = rint(E / unit), unit a power of two: exact where energies are multiples of it
    bin         (level >> shift) mod bins, of a pair (level_a + level_b >> shift) mod 2 bins

``shift`` is the smallest one at which the range of levels so far (``energy_range``) fits the bins. As the range grows,
neighbouring bins are merged. Bins form a ring, so that no other bin ever moves. Each bin knows the sum of its levels.
Moments, at most 1 in size, are integers in units of 2^-e; each time the number of measurements doubles, e decreases by
one and all sums are halved, so that none overflows.

Every number belongs to one sample and, but for the walks, to one place. Additions are plain IEEE operations in the
order of measurements and, within a measurement, of copies. So a run has the same bits on every device, however its
samples are shared out and however often it is interrupted. ``Reduced.arrays`` lists all arrays with their shapes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import frexp, ldexp, prod
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim.model.ising import Ising

MOST_BINS: Final = 1024
"""Most bins of copies; pairs have twice as many. Energies of +-J, L = 16, from T = 0.5 to 3 have about 1024 levels."""
_MOST_FINE: Final = 512  # the same for couplings without a coarse common unit: each bin then holds several levels
_LEVEL_BITS: Final = 28  # most bits of sites times the energy scale, in levels: sums of 2^33 levels fit int64
_SUM_BITS: Final = 61
RANGE: Final = "energy_range"
COUNTS: Final[tuple[str, str]] = ("energy_counts", "energy_pair_counts")
SUMS: Final[tuple[str, str]] = ("energy_sums", "energy_pair_sums")


class Energies(NamedTuple):
    """Sums over energy that a run keeps."""

    unit: float  # unit of levels, a power of two
    bins: int  # bins of copies, a power of two
    blocks: int  # stretches of time with separate bins
    row: npt.NDArray[np.int64]  # first row of each term among the sums of copies, or -1, (terms,)
    pair_row: npt.NDArray[np.int64]  # likewise among the sums of pairs
    terms: tuple[list[int], list[int]]  # term number of each row of the sums of copies, and of the sums of pairs
    values: int  # most numbers that one measurement adds to a sample's bins

    @property
    def rows(self) -> int:
        return len(self.terms[0])

    @property
    def pair_rows(self) -> int:
        return len(self.terms[1])

    def arrays(self, samples: int, copies: int) -> dict[str, tuple[tuple[int, ...], type]]:
        """Shapes and types of all arrays by name.

        ``energy_range`` (samples, 2) has the lowest and the highest level; ``energy_counts`` (copies + 1, blocks,
        samples, bins) the number of measurements of each copy, and the sum of all levels; ``energy_sums`` (rows,
        blocks, samples, bins); with pairs, ``energy_pair_counts`` (2, ...) and ``energy_pair_sums`` (pair rows, ...)
        have 2 bins entries.
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
        """Return e of the unit 2^-e of sums up to measurement ``number``, counted from 0."""
        return _SUM_BITS - (self.values - 1).bit_length() - number.bit_length()

    def of_sample(self, arrays: Mapping[str, npt.NDArray[Any]], measurements: int, sample: int, name: str) -> Binned:
        """Return the bins of one sample, without empty ones.

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
    """Non-empty bins of one sample."""

    counts: npt.NDArray[np.float64]  # measurements of each copy, or of all pairs together, (copies or 1, blocks, bins)
    energy: npt.NDArray[np.float64]  # sums of energies, (blocks, bins)
    sums: npt.NDArray[np.float64]  # sums of moments, (rows, blocks, bins)
    width: float  # bin width in energy


def spacing_of(model: Ising) -> float:
    """Return a lower bound of the spacing of a sample's energies: exact for couplings of one size, else 0."""
    if not model.magnitude or model.fields.any():
        return 0.0
    degrees = np.bincount(model.graph.edges.ravel(), minlength=model.sites)
    return float(2 * model.coupling_unit * (1 if (degrees % 2).any() else 2))


def unit_and_bins(model: Ising) -> tuple[float, int]:
    """Return the unit of levels, and a number of bins, a power of two: one per level unless that is too many."""
    fine = ldexp(1.0, frexp(model.sites * model.energy_scale)[1] - _LEVEL_BITS)
    if model.quantum < fine:
        return fine, _MOST_FINE
    spacing, bins = spacing_of(model), MOST_BINS
    if spacing:
        width = 2.0 ** int(np.log2(spacing))
        bins = min(bins, power_from(2 * model.bonds * model.coupling_unit / width + 2))
    return model.quantum, bins


def power_from(number: float) -> int:
    """Return the least power of two not below a number."""
    return int(2 ** np.ceil(np.log2(number)))


def shift_of(low: int, high: int, bins: int) -> int:
    """Return the smallest shift at which levels from ``low`` to ``high`` have separate bins."""
    shift = 0
    while (high >> shift) - (low >> shift) >= bins:
        shift += 1
    return shift


def is_halved(number: int) -> bool:
    """Return True if sums are halved before a measurement, counted from 0, is added."""
    return number > 0 and not number & (number - 1)


def left_in_unit(number: int) -> int:
    """Return the number of measurements, from this one (counted from 0) on, that are added without halving."""
    return int(2 ** number.bit_length()) - number


LEVELS: Final = 16
"""Sums of up to 2^15 consecutive measurements are followed; longer times are covered by the sums over blocks."""
_CELLS: Final = (256, 128, 64)  # most cells of a histogram; each holds about the same number of neighbouring values
_HISTOGRAM_BYTES: Final = 2**24  # bytes above which a histogram has fewer cells
_FEW_SAMPLES: Final = 16
"""With fewer samples, runs are judged sample by sample, so that levels are kept block by block."""
_BLOCKS: Final = (64, 32, 16)
_MANY_BLOCKS: Final = tuple(2**k for k in range(13, 3, -1))  # blocks of copies at the coldest place, and of walks
_MANY_BYTES: Final = 2**23  # bytes of the sums over each of these, above which there are fewer blocks
_BLOCK_BYTES: Final = 2**26  # bytes of the sums over blocks, above which there are fewer blocks
_ENERGY_BYTES: Final = 2**26  # bytes of all sums over energy, above which there are fewer bins
_FEWEST_BINS: Final = 4
"""Fewest useful bins, per root of the number of sites: in units of this root, energies spread over a few at one
temperature, and over about the root itself on a ladder."""
_OF_OTHERS: Final = 2
"""Sums over energy with the fewest bins are dropped if they exceed the bytes above and 1/2 of the bytes of all other
sums.
"""
ABSOLUTE: Final = 0
CONNECTED: Final = -1
"""Codes in place of a power: |x|, and the connected square of overlaps (``cpu_reduction``)."""


class Source(NamedTuple):
    """Measured number of every copy, or of every pair of copies, at each place."""

    name: str  # field of ``LadderMeasurement`` or of its ``correlations``
    elements: tuple[int, ...] = ()  # along its last axis, added up in turn; empty without such an axis


class Term(NamedTuple):
    """Summed quantity: a power of scale_0 x_0 + scale_1 x_1 + constant."""

    name: str  # name of its average, as in ``observables.moments``
    sources: tuple[Source, ...]  # one or two
    scales: npt.NDArray[np.float64]  # scale of each source, (sources, places)
    constant: npt.NDArray[np.float64]  # (places,)
    power: int  # 1, 2 or 4, ``ABSOLUTE`` or ``CONNECTED``
    of_pairs: bool = False  # True for a number of pairs of copies
    followed: bool = False  # True if its autocorrelation is followed
    by_copy: bool = False  # True if it has sums of each copy
    is_judged: bool = False  # True if copies at the coldest place are followed over many blocks
    over_energy: bool = False  # True if it has sums over energy; it is then at most 1 in size


class Histogram(NamedTuple):
    """Cells of the values -n, -n + 2, ..., n of an overlap."""

    source: str  # ``overlap`` or ``link_overlap``
    values: int  # n + 1
    cells: int  # number of cells; value number v is in cell v cells // values


@dataclass(frozen=True)
class Reduced:
    """Terms and histograms that a run on a ladder adds up."""

    model: Ising
    copies: int  # copies at each place of the ladder
    places: int  # places of the ladder
    terms: tuple[Term, ...]  # in the order of the arrays
    all_samples: int = 0  # samples of the whole run, which determine sizes, if the model has only some of them; else 0
    # True for sums over energy, if terms request them and they fit. False for runs of earlier versions, which have
    # none. An engine of some samples gets the ``Energies`` of the whole run
    by_energy: bool | Energies = True

    @property
    def samples_in_run(self) -> int:
        return self.all_samples or self.model.samples

    @property
    def pairs(self) -> int:
        return self.copies * (self.copies - 1) // 2

    @cached_property
    def few(self) -> bool:
        """True if samples are so few that each is judged by its own levels."""
        return self.samples_in_run < _FEW_SAMPLES

    @cached_property
    def blocks(self) -> int:
        one = 8 * len(self.terms) * self.samples_in_run * self.places
        return next((blocks for blocks in _BLOCKS if blocks * one <= _BLOCK_BYTES), _BLOCKS[-1])

    @cached_property
    def followed(self) -> tuple[int, ...]:
        return tuple(k for k, term in enumerate(self.terms) if term.followed)

    @cached_property
    def by_copy(self) -> tuple[int, ...]:
        return tuple(k for k, term in enumerate(self.terms) if term.by_copy)

    @cached_property
    def judged(self) -> tuple[int, ...]:
        return tuple(k for k, term in enumerate(self.terms) if term.is_judged)

    @cached_property
    def coldest_blocks(self) -> int:
        return _many_blocks(len(self.judged) * self.samples_in_run * self.most_chains)

    @cached_property
    def walk_blocks(self) -> int:
        return _many_blocks(self.samples_in_run * self.copies * self.places)

    @property
    def most_chains(self) -> int:
        return max(self.copies, self.pairs)

    @cached_property
    def histograms(self) -> tuple[Histogram, ...]:
        """Histograms of overlaps and, if measured, of link overlaps; none without pairs of copies."""
        names = {source.name for term in self.terms for source in term.sources}
        one = 4 * self.samples_in_run * self.places
        cells = next((cells for cells in _CELLS if cells * one <= _HISTOGRAM_BYTES), _CELLS[-1])
        most = {"overlap": self.model.sites, "link_overlap": self.model.bonds}
        return tuple(
            Histogram(name, n + 1, min(n + 1, cells)) for name, n in most.items() if self.pairs and name in names
        )

    @cached_property
    def energies(self) -> Energies | None:
        if isinstance(self.by_energy, Energies):
            return self.by_energy
        return energies_of(self) if self.by_energy else None

    @cached_property
    def sources(self) -> tuple[Source, ...]:
        return tuple(dict.fromkeys(source for term in self.terms for source in term.sources))

    @property
    def level_blocks(self) -> int:
        """Number of blocks with separate levels; with many samples all measurements form one."""
        return self.blocks if self.few else 1

    def arrays(self) -> dict[str, tuple[tuple[int, ...], type]]:
        """Shapes and types of all arrays by name.

        ``block_sums`` (terms, blocks, samples, places): sums over copies or pairs and over the measurements of a block;
        ``copy_sums`` (terms with ``by_copy``, samples, copies, places); ``coldest_sums`` (judged terms, coldest blocks,
        samples, copies or pairs): sums at the coldest place; for followed terms ``level_sums`` and ``level_squares``
        (followed, level blocks, levels, samples, places), ``level_open`` (followed, levels, samples, places): sums that
        wait for their other half, and ``first_value`` (followed, samples, places), subtracted before levels are summed;
        ``walk_sums`` (1, walk blocks, samples, replicas) and ``walk_squares`` (samples,) of 2 place - places + 1;
        ``<source>_histogram`` (samples, places, cells); ``measurements`` (samples,): the number added for each sample;
        and the arrays of ``Energies.arrays``.
        """
        samples, places, followed = self.model.samples, self.places, len(self.followed)
        levels = followed, self.level_blocks, LEVELS, samples, places
        shapes: dict[str, tuple[tuple[int, ...], type]] = {
            "block_sums": ((len(self.terms), self.blocks, samples, places), np.float64),
            "copy_sums": ((len(self.by_copy), samples, self.copies, places), np.float64),
            "coldest_sums": ((len(self.judged), self.coldest_blocks, samples, self.most_chains), np.float64),
            "level_sums": (levels, np.float64),
            "level_squares": (levels, np.float64),
            "level_open": ((followed, LEVELS, samples, places), np.float64),
            "first_value": ((followed, samples, places), np.float64),
            "walk_sums": ((1, self.walk_blocks, samples, self.copies * places), np.float64),
            "walk_squares": ((samples,), np.int64),
            "measurements": ((samples,), np.int64),
        }
        for one in self.histograms:
            shapes[f"{one.source}_histogram"] = ((samples, places, one.cells), np.uint32)
        return shapes | ({} if self.energies is None else self.energies.arrays(samples, self.copies))

    @property
    def nbytes(self) -> int:
        return sum(prod(shape) * np.dtype(kind).itemsize for shape, kind in self.arrays().values())


def _many_blocks(numbers: int) -> int:
    return int(next((blocks for blocks in _MANY_BLOCKS if 8 * blocks * numbers <= _MANY_BYTES), _MANY_BLOCKS[-1]))


def energies_of(reduced: Reduced) -> Energies | None:
    """Return the sums over energy that fit in memory; None if none fit or no term requests them."""
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
    unit, bins = unit_and_bins(model)
    words = copies + 1 + len(rows) + (2 * (len(pair_rows) + 2) if pair_rows else 0)
    of_bin, fewest = 8 * reduced.samples_in_run * blocks * words, power_from(_FEWEST_BINS * np.sqrt(model.sites))
    while bins > fewest and bins * of_bin > _ENERGY_BYTES:
        bins //= 2
    if bins * of_bin > max(_ENERGY_BYTES, replace(reduced, by_energy=False).nbytes // _OF_OTHERS):
        return None
    values = reduced.places * max(copies, reduced.pairs)
    return Energies(unit, bins, blocks, row, pair_row, (rows, pair_rows), values)


class Tables(NamedTuple):
    """Terms as kernels take them."""

    first: npt.NDArray[np.int64]  # number of each term's first source among ``Reduced.sources``, int64 (terms,)
    second: npt.NDArray[np.int64]  # number of its second source, or -1, likewise
    scales: npt.NDArray[np.float64]  # (terms, 2, places)
    constant: npt.NDArray[np.float64]  # (terms, places)
    power: npt.NDArray[np.int64]  # (terms,)
    of_pairs: npt.NDArray[np.bool_]  # (terms,)
    followed: npt.NDArray[np.int64]  # number of a term among the followed ones, or -1, (terms,)
    by_copy: npt.NDArray[np.int64]  # likewise among the terms with sums of each copy
    judged: npt.NDArray[np.int64]  # likewise among the judged terms


def tables_of(reduced: Reduced) -> Tables:
    """Return the terms of a reduction as kernels take them."""
    number = {source: k for k, source in enumerate(reduced.sources)}
    terms, places = reduced.terms, reduced.places
    scales, constant = np.zeros((len(terms), 2, places)), np.zeros((len(terms), places))
    for k, term in enumerate(terms):
        scales[k, : len(term.sources)], constant[k] = term.scales, term.constant

    def place_among(chosen: Sequence[int]) -> npt.NDArray[np.int64]:
        rows = np.full(len(terms), -1)
        rows[list(chosen)] = np.arange(len(chosen))
        return rows

    return Tables(
        np.array([number[term.sources[0]] for term in terms], np.int64),
        np.array([number[term.sources[1]] if len(term.sources) > 1 else -1 for term in terms], np.int64), scales,
        constant, np.array([term.power for term in terms], np.int64),
        np.array([term.of_pairs for term in terms], np.bool_), place_among(reduced.followed),
        place_among(reduced.by_copy), place_among(reduced.judged),
    )  # fmt: skip


SAMPLE_AXIS: Final = {
    **dict.fromkeys(("block_sums", "coldest_sums", "level_open", "walk_sums", *COUNTS, *SUMS), 2),
    **dict.fromkeys(("level_sums", "level_squares"), 3),
    **dict.fromkeys(("copy_sums", "first_value"), 1),
}
"""Axis of the samples in the arrays of ``Reduced.arrays``; in all others it is the first axis."""


def empty_arrays(reduced: Reduced) -> dict[str, npt.NDArray[Any]]:
    """Return zeroed arrays, before the first measurement."""
    return {name: np.zeros(shape, kind) for name, (shape, kind) in reduced.arrays().items()}


def merge_blocks(sums: Any, axis: int) -> None:
    """Add neighbouring blocks in place: the first half gets the results, the other half is set to 0.

    ``sums`` is an array of NumPy or CuPy with its blocks along ``axis``.
    """
    blocks, before = sums.shape[axis], (slice(None),) * axis
    half = blocks // 2
    sums[(*before, slice(0, half))] = sums[(*before, slice(0, blocks, 2))] + sums[(*before, slice(1, blocks, 2))]
    sums[(*before, slice(half, blocks))] = 0


def block_length(blocks: int, measurements: int) -> int:
    """Return the length of each of ``blocks`` blocks after ``measurements`` measurements, a power of two."""
    length = 1
    while length * blocks < measurements:
        length *= 2
    return length


def block_of(blocks: int, number: int) -> tuple[int, bool]:
    """Return the block of a measurement, counted from 0, and True if neighbouring blocks are merged before it."""
    length = block_length(blocks, number + 1)
    return number // length, number == length * blocks // 2 and length > 1


class Blocks(NamedTuple):
    """Block numbers of a measurement."""

    block: int  # in ``block_sums``
    level_block: int  # in ``level_sums`` and ``level_squares``
    coldest_block: int  # in ``coldest_sums``
    walk_block: int  # in ``walk_sums``
    energy_block: int  # in sums over energy


def blocks_of(reduced: Reduced, number: int) -> tuple[Blocks, list[str]]:
    """Return the blocks of a measurement, counted from 0, and the arrays whose blocks are merged before it."""
    block, block_merges = block_of(reduced.blocks, number)
    coldest, coldest_merges = block_of(reduced.coldest_blocks, number)
    walk, walk_merges = block_of(reduced.walk_blocks, number)
    has_level_blocks = reduced.level_blocks > 1
    merges = {
        "block_sums": block_merges, "level_sums": block_merges and has_level_blocks,
        "level_squares": block_merges and has_level_blocks, "coldest_sums": coldest_merges, "walk_sums": walk_merges,
    }  # fmt: skip
    merged = [name for name, is_full in merges.items() if is_full]
    energies, energy_block = reduced.energies, 0
    if energies is not None and energies.blocks > 1:
        energy_block = block
        merged += [name for name in (*COUNTS, *SUMS) if block_merges and name in reduced.arrays()]
    return Blocks(block, block if has_level_blocks else 0, coldest, walk, energy_block), merged


def lengths_of_blocks(reduced: Reduced, number: int) -> tuple[int, int, int]:
    """Return the lengths of ``block``, ``coldest_block`` and ``walk_block`` from measurement ``number`` on."""
    block, coldest, walk = (block_length(blocks, number + 1) for blocks in _families(reduced))
    return block, coldest, walk


def left_in_succession(reduced: Reduced, number: int, most: int) -> int:
    """Return how many measurements from ``number`` on, at most ``most``, precede a merge of blocks or a halving."""
    lengths = lengths_of_blocks(reduced, number)
    until_merged = (length * blocks - number for length, blocks in zip(lengths, _families(reduced), strict=True))
    return min(most, left_in_unit(number), *until_merged)


def _families(reduced: Reduced) -> tuple[int, int, int]:
    return reduced.blocks, reduced.coldest_blocks, reduced.walk_blocks


def blocks_in_succession(reduced: Reduced, number: int, most: int) -> npt.NDArray[np.int64]:
    """Return the blocks, (measurements, 5), of the measurements that ``left_in_succession`` counts."""
    several = np.arange(number, number + left_in_succession(reduced, number, most))
    block, coldest, walk = (several // length for length in lengths_of_blocks(reduced, number))
    has_energy_blocks = reduced.energies is not None and reduced.energies.blocks > 1
    in_blocks = block, block * (reduced.level_blocks > 1), coldest, walk, block * has_energy_blocks
    return np.stack(in_blocks, axis=1)
