"""Couplings and fields as rows of numbers, given or drawn, and the power of two of which all are multiples.

Drawn number i of sample k depends on the disorder seed, the stream, i and k alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from math import frexp, fsum, ldexp
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from spinsim import rng
from spinsim.errors import InputError
from spinsim.inputs.numbers import as_floats
from spinsim.machine.compiled import kernel, part
from spinsim.machine.threads import Threads

_EXACT_BITS: Final = 52  # energies stay below 2^53 quanta, so float64 holds them exactly
_LARGEST_VALUE: Final = 1e300
_SMALLEST_EXPONENT: Final = -1000
_LEAST_EXPONENT: Final = -1074  # of float64
_FEW: Final = 2**9  # numbers up to which fsum is faster
IN_CACHE: Final = 2**16  # numbers that are worked on at once
Rows = npt.NDArray[np.float64] | npt.NDArray[np.int8]


def as_rows(values: npt.ArrayLike, length: int, name: str, unit: str) -> Rows:
    """Values as float64 (samples, length), or int8 as they are; numbers broadcast without a copy."""
    array: npt.NDArray[Any]
    try:
        array = np.asarray(values)
        if array.dtype != np.int8 or distinct(array).min(initial=0) == np.iinfo(np.int8).min:  # has no absolute value
            array = as_floats(values, f"a value of the {name}")
    except InputError:
        raise
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} cannot be read as numbers: give floats or integers") from error
    rows = np.broadcast_to(array, (1, length)) if array.ndim == 0 else np.atleast_2d(array)
    if rows.ndim != 2 or rows.shape[1] != length or len(rows) < 1:
        raise InputError(
            f"{name} have shape {array.shape}: give ({length},) or (samples, {length}) for {length} {unit}"
        )
    probe = array.reshape(-1)
    if array.dtype == np.float64 and not np.isfinite(probe).all():
        bad = np.flatnonzero(~np.isfinite(probe))[0]
        raise InputError(f"{name} contain {probe[bad]} at position {bad}: every value must be finite")
    return rows


def distinct(rows: Rows) -> Rows:
    return rows[..., :1] if rows.ndim and rows.strides[-1] == 0 else rows


def one_if_equal(rows: Rows) -> Rows:
    """One number, (1, 1), where all are equal; else the rows."""
    values = distinct(rows)
    return np.asarray(values[:1, :1], np.float64) if values.size and values.min() == values.max() else rows


def with_plain_zeros(rows: Rows) -> Rows:
    """Rows as they are, or 0 without a sign if all are 0: files omit such rows, and readers take them as 0."""
    values = distinct(rows)
    return rows if values.any() else np.broadcast_to(np.abs(values), rows.shape)


def round_to(rows: npt.NDArray[Any], quantum: float) -> npt.NDArray[np.float64]:
    return np.asarray(np.rint(rows / quantum) * quantum)


def relative_change(given: npt.NDArray[Any], rounded: npt.NDArray[Any]) -> float:
    """Largest relative change of values that were rounded, 0 where there are none."""
    if rounded is given:
        return 0.0
    there = given != 0
    return float(np.max(np.abs(rounded[there] / given[there] - 1), initial=0))


def are_signs(values: Rows) -> bool:
    """True if there are values and all are +1 or -1 in int8, like drawn couplings of one size.

    The test takes three passes without a copy, after which sums, means and common divisors are known.
    """
    if values.dtype != np.int8 or not values.size:
        return False
    return bool(values.min() >= -1 and values.max() <= 1 and np.count_nonzero(values) == values.size)


def power_above(rows: Rows) -> float:
    """Smallest power of two above every |value|, 0 where all are 0."""
    if are_signs(distinct(rows)):
        return 2.0
    largest = float(np.abs(distinct(rows)).max()) if rows.size else 0.0
    return ldexp(1.0, frexp(largest)[1]) if largest else 0.0


def mean_square(rows: Rows, unit: float) -> float:
    """Mean of (value / unit)^2, summed without rounding so that it does not depend on the processor."""
    values = distinct(rows)
    if are_signs(values):
        return values.size / unit**2 / values.size
    if not values.any():
        return 0.0
    if values.dtype == np.int8:
        return int(np.square(values, dtype=np.int16).sum(dtype=np.int64)) / unit**2 / values.size
    return sum_of((values / unit) ** 2) / values.size


def sum_of(values: npt.NDArray[np.float64]) -> float:
    """The sum of all values, rounded once."""
    numbers = values.reshape(-1)
    if numbers.size <= _FEW:
        return fsum(numbers.tolist())
    pieces = (numbers[first : first + IN_CACHE] for first in range(0, numbers.size, IN_CACHE))
    return fsum(float(part.sum()) for piece in pieces for part in parts_of(piece))


def parts_of(values: npt.NDArray[np.float64]) -> Iterator[npt.NDArray[np.float64]]:
    """Arrays that add up to the values; sums within one array are exact in any order."""
    rest, room = values, 53 - len(values).bit_length()
    while rest.any():
        exponent = int(np.frexp(np.abs(rest).max())[1])
        unit = np.ldexp(1.0, max(exponent - room, _LEAST_EXPONENT))
        part = rest / unit
        np.rint(part, out=part)
        part *= unit
        yield part
        rest = rest - part


def are_multiples(values: Rows, unit: float) -> bool:
    """True if all values are whole multiples of a power of two."""
    numbers = values.reshape(-1)
    pieces = (numbers[first : first + IN_CACHE] for first in range(0, numbers.size if unit else 0, IN_CACHE))
    return all((np.rint(piece / unit) * unit == piece).all() for piece in pieces)


def common_quantum(couplings: Rows, fields: Rows) -> tuple[float, bool]:
    """The coarsest power of two that divides every value, or the finest that energies allow; and True if it rounds."""
    total = 0.0
    for rows in (couplings, fields):
        values = distinct(rows)
        if are_signs(values):
            total += rows.shape[1]
            continue
        if not values.any():
            continue
        sizes = np.abs(values)
        largest = float(sizes.max())
        if not largest < _LARGEST_VALUE / rows.shape[1]:
            raise InputError(f"{largest:g} is too large for exact energies: rescale couplings and fields to order 1")
        sums = sizes.sum(axis=1, dtype=np.int64) if values.dtype == np.int8 else list(map(sum_of, sizes))
        total += float(max(sums)) * (rows.shape[1] // values.shape[1])
    if not total:
        return 1.0, False
    exponent = frexp(total)[1] - _EXACT_BITS
    if exponent < _SMALLEST_EXPONENT:
        raise InputError(f"couplings and fields add up to {total:g}, too small for float64: rescale them to order 1")
    finest, bits = ldexp(1.0, exponent), 0
    for rows in (couplings, fields):
        values = distinct(rows)
        if values.dtype == np.int8:  # their common divisor is that of all of their bits
            values = np.array([np.bitwise_or.reduce(values, axis=None)], np.float64)
        if not are_multiples(values, finest):
            return finest, True
        bits |= int(np.bitwise_or.reduce(np.abs(values / finest).astype(np.int64), axis=None))
    return finest * (bits & -bits), False


GAUSSIAN_GRID: Final = 2.0**-24  # Gaussian couplings and fields are multiples of this, so that local fields fit 32 bits
AT_ONCE: Final = 2**22  # numbers that are drawn at once
SIGNS_A_WORD: Final = 64  # signs that are drawn in the time of a word of 128 spins, as ``Threads`` counts


@part
def _uniform(stream, sample, number, k0, k1):  # type: ignore[no-untyped-def]
    """A 64-bit uniform integer; the bits of its number past the 32nd stand in counter word 2."""
    word = np.uint64(stream) << np.uint64(8)
    block = rng.counter_block(np.uint64(sample), np.uint64(0))
    x0, x1, _, _ = rng.philox(number, block, number >> rng.SHIFT32, word, k0, k1, rng.ROUNDS)
    return (x0 << rng.SHIFT32) | rng.low32(x1)


@kernel
def _draw(stream, sample, first, k0, k1, out):  # type: ignore[no-untyped-def]
    """Fill ``out`` with 64-bit uniform integers, from number ``first`` on."""
    for i in range(out.size):
        out[i] = _uniform(stream, sample, np.uint64(first + i), k0, k1)


@kernel
def _draw_signs(stream, sample, first, step, k0, k1, limit, out):  # type: ignore[no-untyped-def]
    """Fill ``out`` with every ``step``-th sign from ``first`` on, +1 where a uniform is below ``limit``."""
    number = np.uint64(first)
    for i in range(out.size):
        out[i] = np.int8(1) if _uniform(stream, sample, number, k0, k1) < limit else np.int8(-1)
        number += np.uint64(step)


def uniforms(seed: int, stream: rng.Stream, sample: int, count: int) -> Iterator[tuple[slice, npt.NDArray[np.uint64]]]:
    """Pieces of 64-bit uniform integers of one sample, with their slices; each overwrites the one before."""
    room = np.empty(min(count, AT_ONCE), np.uint64)
    for first in range(0, count, AT_ONCE):
        piece = room[: count - first]
        _draw(int(stream), sample, first, *rng.split_seed(seed), piece)
        yield slice(first, first + len(piece)), piece


@dataclass(frozen=True)
class Drawn:
    """+-J couplings of a lattice as they are drawn: bond i of sample k depends on the seed, i and k alone."""

    bond_fraction: float  # share of +1
    seed: int  # seed of the disorder
    samples: int = 1  # number of samples
    first: int = 0  # number of the first sample

    @property
    def limit(self) -> int | None:
        """Limit below which 64-bit uniform integers give +1; None where all do."""
        return int(self.bond_fraction * 2.0**64) if self.bond_fraction < 1 else None

    def rows(self, bonds: int) -> npt.NDArray[np.int8]:
        rows = np.empty((self.samples, bonds), np.int8)
        pieces = product(range(self.samples), range(0, bonds, AT_ONCE))
        tasks = (partial(self.draw, rows[k, first : first + AT_ONCE], k, first) for k, first in pieces)
        Threads().run(tasks, rows.size // SIGNS_A_WORD)
        return rows

    def draw(self, out: npt.NDArray[np.int8], sample: int, first: int, step: int = 1) -> None:
        """Fill ``out`` with every ``step``-th coupling of one sample from number ``first`` on."""
        if self.limit is None:
            out[:] = 1
        else:
            key = rng.split_seed(self.seed)
            _draw_signs(int(rng.Stream.COUPLINGS), self.first + sample, first, step, *key, np.uint64(self.limit), out)

    def of_samples(self, first: int, stop: int) -> Drawn:
        return replace(self, samples=stop - first, first=self.first + first)

    def extremes(self, bonds: int) -> tuple[int, int]:
        """The lowest and the highest coupling; most often it suffices to draw a few couplings."""
        if not 0 < self.bond_fraction < 1:
            return (1, 1) if self.bond_fraction else (-1, -1)
        few = replace(self, samples=1).rows(min(bonds, AT_ONCE))
        rows = few if few.min(initial=1) < few.max(initial=-1) else self.rows(bonds)
        return int(rows.min()), int(rows.max())


def dilute(couplings: Rows, seed: int, dilution: float) -> None:
    """Set the couplings (samples, bonds) of missing bonds to 0, in place.

    Bonds stay in the graph, which all samples share, so that a sample does not depend on the other samples. Bonds that
    are not missing keep the couplings that they have without dilution.
    """
    for sample, row in enumerate(couplings):
        for where, uniform in uniforms(seed, rng.Stream.DILUTION, sample, row.size):
            row[where][uniform < np.uint64(int(dilution * 2.0**64))] = 0


def gaussian_rows(
    samples: int, count: int, seed: int, stream: rng.Stream, deviation: float = 1.0
) -> npt.NDArray[np.float64]:
    """Normal numbers (samples, count) of mean 0 and this standard deviation, multiples of 2^-24."""
    from scipy.special import ndtri  # which takes long to load

    rows = np.empty((samples, count))
    for sample, row in enumerate(rows):
        for where, uniform in uniforms(seed, stream, sample, count):
            between = ((uniform >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52
            row[where] = np.rint(deviation * ndtri(between) / GAUSSIAN_GRID) * GAUSSIAN_GRID
    return rows
