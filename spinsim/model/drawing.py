"""Random numbers of disorder, missing bonds and random fields.

Number i of sample k depends on the disorder seed, the stream, i and k alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Final

import numpy as np
import numpy.typing as npt

from spinsim import rng
from spinsim.machine.compiled import kernel, part
from spinsim.machine.threads import Threads
from spinsim.model.quanta import Rows

GAUSSIAN_GRID: Final = 2.0**-24  # Gaussian couplings and fields are multiples of it, so that local fields fit 32 bits
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
    """Fill ``out`` with 64-bit uniform integers, those of numbers ``first`` on."""
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
    """Pieces of 64-bit uniform integers of one sample, with where they stand; each overwrites the one before."""
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
    samples: int = 1  # how many there are
    first: int = 0  # number of the first of them

    @property
    def limit(self) -> int | None:
        """The 64-bit uniform integers below it give +1; None where all do."""
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
        """The lowest and the highest coupling, for which most often a few are drawn."""
        if not 0 < self.bond_fraction < 1:
            return (1, 1) if self.bond_fraction else (-1, -1)
        few = replace(self, samples=1).rows(min(bonds, AT_ONCE))
        rows = few if few.min(initial=1) < few.max(initial=-1) else self.rows(bonds)
        return int(rows.min()), int(rows.max())


def dilute(couplings: Rows, seed: int, dilution: float) -> None:
    """Set the couplings (samples, bonds) of missing bonds to 0, in place.

    Bonds stay in the graph, which all samples share: a sample with its bonds is the same whichever samples go with it,
    and bonds that are not missing keep the couplings that they have without dilution.
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
