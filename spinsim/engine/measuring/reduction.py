"""Measurements of a ladder added up as they are made, to sums whose size does not grow with the length of the run.

A *term* is a number of every copy, or of every pair of copies, at each place of the ladder: a weighted sum of one or
two measured numbers (its *sources*) and a constant, or its absolute value, square or fourth power. Of every term there
are

* sums over *blocks* of equally many measurements. There are ``blocks`` of them; when all are full, neighbours are added
  to each other and new ones begin, so that between half of them and all of them are in use;
* of some terms, sums of each copy over the whole run, and at the coldest place of each copy over many more blocks, by
  which a run is judged;
* of the terms whose autocorrelation is followed, sums and squares of sums over 1, 2, 4, ... consecutive measurements
  (*levels*), from which autocorrelation times follow by blocking (H. Flyvbjerg, H. G. Petersen, J. Chem. Phys. 91, 461
  (1989)), about the first value, so that little is lost to rounding. They follow the sum over copies or pairs, as it is
  their average that has an error: copies that exchange clusters forget sooner than that average does.

The places of replicas on the ladder are added up over many blocks too, and overlaps and link overlaps have histograms.

*Sums over energy* are what reweighting takes, kept in exact integers. A weight of multi-histogram reweighting depends
on the energy alone, and all temperatures have equally many measurements. So measurements of all temperatures of one
sample are added up together, by energy: how many each copy has, and sums of the moments of copies; likewise for pairs
of copies, by the sum of their two energies.

    energy      level = rint(E / unit), unit a power of two: exact where energies are multiples of it
    bin         (level >> shift) mod bins, of a pair (level_a + level_b >> shift) mod 2 bins

``shift`` is the smallest at which the levels met so far, from ``energy_range``, have bins of their own: as the range
grows, neighbouring bins are added to each other. Bins are a ring, so that nothing else ever moves. Each bin knows the
sum of its levels. Moments, at most 1 in size, are integers in units of 2^-e; each time that the measurements have
doubled, e is one less and all sums are halved, so that none overflows.

Every number belongs to one sample and, but for the walks, to one place. It is added to in the order of the measurements
and, within one, of the copies, by plain IEEE operations: so a run has the same bits on every device, however samples
are shared out and however often it is interrupted. ``Reduced.arrays`` lists all arrays with their shapes.
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


LEVELS: Final = 16
"""Sums of up to 2^15 consecutive measurements are followed; sums over longer times are those of blocks."""
_CELLS: Final = (256, 128, 64)  # cells of a histogram at most; a cell holds the like number of neighbouring values
_HISTOGRAM_BYTES: Final = 2**24  # bytes that a histogram may take before it has fewer cells
_FEW_SAMPLES: Final = 16
"""Samples below which runs are judged one by one, so that levels are kept block by block."""
_BLOCKS: Final = (64, 32, 16)
_MANY_BLOCKS: Final = tuple(2**k for k in range(13, 3, -1))  # blocks of copies at the coldest place, and of walks
_MANY_BYTES: Final = 2**23  # bytes that the sums over each of these may take before there are fewer blocks
_BLOCK_BYTES: Final = 2**26  # bytes that the sums over blocks may take before there are fewer blocks
_ENERGY_BYTES: Final = 2**26  # bytes that all sums over energy may take before there are fewer bins
_FEWEST_BINS: Final = 4
"""Bins for each unit of the root of all sites that are worth their room: energies of one temperature spread over some
such units, those of a ladder over sites."""
_OF_OTHERS: Final = 2
"""Part of all other sums that so few bins may take, if they take more than these bytes, before there are none."""
ABSOLUTE: Final = 0
CONNECTED: Final = -1
"""Powers of terms that are none: |x|, and the connected square of overlaps (``cpu_reduction``)."""


class Source(NamedTuple):
    """A measured number of every copy, or of every pair of copies, at each place."""

    name: str  # field of ``LadderMeasurement`` or of its ``correlations``
    elements: tuple[int, ...] = ()  # along its last axis, which are added up in turn; none without such an axis


class Term(NamedTuple):
    """A number that is added up: a power of scale_0 x_0 + scale_1 x_1 + constant."""

    name: str  # of what it averages to, as ``observables.moments`` has it
    sources: tuple[Source, ...]  # one or two
    scales: npt.NDArray[np.float64]  # of each source, (sources, places)
    constant: npt.NDArray[np.float64]  # (places,)
    power: int  # 1, 2 or 4, ``ABSOLUTE`` or ``CONNECTED``
    of_pairs: bool = False  # True if it is a number of pairs of copies
    followed: bool = False  # True if its autocorrelation is followed
    by_copy: bool = False  # True if there are sums of each copy
    is_judged: bool = False  # True if copies are followed over many blocks at the coldest place
    over_energy: bool = False  # True if there are sums of it over energy; its size is 1 at most then


class Histogram(NamedTuple):
    """Cells of the values -n, -n + 2, ..., n of an overlap."""

    source: str  # ``overlap`` or ``link_overlap``
    values: int  # n + 1
    cells: int  # how many; value number v is in cell v cells // values


@dataclass(frozen=True)
class Reduced:
    """Terms and histograms that a run on a ladder adds up."""

    model: Ising
    copies: int  # at each place of the ladder
    places: int  # of the ladder
    terms: tuple[Term, ...]  # in the order of the arrays
    all_samples: int = 0  # of the whole run, by which sizes are chosen, where the model has a part; else 0
    # True if there are sums over energy, where terms ask for them and there is room, as runs of earlier versions have
    # none; of a part those of the whole run
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
        """Histograms of overlaps and, where they are measured, of link overlaps; none without pairs of copies."""
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
        """Blocks that have levels of their own; of many samples all measurements are one."""
        return self.blocks if self.few else 1

    def arrays(self) -> dict[str, tuple[tuple[int, ...], type]]:
        """Shapes and types of all arrays by name.

        ``block_sums`` (terms, blocks, samples, places), sums over copies or pairs and the measurements of a block;
        ``copy_sums`` (terms with ``by_copy``, samples, copies, places); ``coldest_sums`` (judged terms, coldest blocks,
        samples, copies or pairs), those of the coldest place; of followed terms ``level_sums`` and
        ``level_squares`` (followed, level blocks, levels, samples, places), the sums that wait for their other half,
        ``level_open`` (followed, levels, samples, places), and ``first_value`` (followed, samples, places), which
        levels are about; ``walk_sums`` (1, walk blocks, samples, replicas) and ``walk_squares`` (samples,) of
        2 place - places + 1; ``<source>_histogram`` (samples, places, cells); ``measurements``, how many have been
        added of each sample, (samples,); those of ``Energies.arrays``.
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
    second: npt.NDArray[np.int64]  # of its second source, -1 where it has none, likewise
    scales: npt.NDArray[np.float64]  # (terms, 2, places)
    constant: npt.NDArray[np.float64]  # (terms, places)
    power: npt.NDArray[np.int64]  # (terms,)
    of_pairs: npt.NDArray[np.bool_]  # (terms,)
    followed: npt.NDArray[np.int64]  # place of a term among those that are followed, -1 where it is none, (terms,)
    by_copy: npt.NDArray[np.int64]  # likewise of those with sums of each copy
    judged: npt.NDArray[np.int64]  # likewise of those that are judged


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
"""Axis of the samples in the arrays of ``Reduced.arrays``; the first one in all others."""


def empty_arrays(reduced: Reduced) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays of a run that has not measured yet."""
    return {name: np.zeros(shape, kind) for name, (shape, kind) in reduced.arrays().items()}


def merge_blocks(sums: Any, axis: int) -> None:
    """Add neighbouring blocks to each other, in place: the first half holds the results, the other half is emptied.

    ``sums`` is an array of NumPy or CuPy whose blocks stand along ``axis``.
    """
    blocks, before = sums.shape[axis], (slice(None),) * axis
    half = blocks // 2
    sums[(*before, slice(0, half))] = sums[(*before, slice(0, blocks, 2))] + sums[(*before, slice(1, blocks, 2))]
    sums[(*before, slice(half, blocks))] = 0


def block_length(blocks: int, measurements: int) -> int:
    """Return the measurements of each of so many blocks once so many have been added, a power of two."""
    length = 1
    while length * blocks < measurements:
        length *= 2
    return length


def block_of(blocks: int, number: int) -> tuple[int, bool]:
    """Return the block of a measurement, counted from 0, and whether neighbouring blocks are merged before it."""
    length = block_length(blocks, number + 1)
    return number // length, number == length * blocks // 2 and length > 1


class Blocks(NamedTuple):
    """Blocks that a measurement belongs to."""

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
    """Return how many measurements ``block``, ``coldest_block`` and ``walk_block`` have from number ``number`` on."""
    block, coldest, walk = (block_length(blocks, number + 1) for blocks in _families(reduced))
    return block, coldest, walk


def left_in_succession(reduced: Reduced, number: int, most: int) -> int:
    """Return how many measurements from this one on, at most so many, come before blocks are merged or sums halved."""
    lengths = lengths_of_blocks(reduced, number)
    until_merged = (length * blocks - number for length, blocks in zip(lengths, _families(reduced), strict=True))
    return min(most, left_in_unit(number), *until_merged)


def _families(reduced: Reduced) -> tuple[int, int, int]:
    return reduced.blocks, reduced.coldest_blocks, reduced.walk_blocks


def blocks_in_succession(reduced: Reduced, number: int, most: int) -> npt.NDArray[np.int64]:
    """Return blocks of measurements from this one on, (measurements, 5), as ``left_in_succession`` has them."""
    several = np.arange(number, number + left_in_succession(reduced, number, most))
    block, coldest, walk = (several // length for length in lengths_of_blocks(reduced, number))
    has_energy_blocks = reduced.energies is not None and reduced.energies.blocks > 1
    in_blocks = block, block * (reduced.level_blocks > 1), coldest, walk, block * has_energy_blocks
    return np.stack(in_blocks, axis=1)
