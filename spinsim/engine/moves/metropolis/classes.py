"""Flip classes of the packed updates, and the planes of random bits that decide flips.

A site of degree z with n unsatisfied bonds has a flip cost 2 |J| (z - 2 n) + 2 h s. Phantom bonds, half of them
satisfied, raise every degree to one of two values without changing the cost: 2^K - 2 for even and 2^K - 1 for odd
degrees, where K is the number of bits of the count. Without a field, n >= 2^(K-1) then means "gains energy, always
flip", and the low K - 1 bits of n are the *class*, which selects a threshold. With a field the class is n + 2^K [s =
+1], of K + 1 bits. On a GPU it is the low bits of n and the spin, if n >= 2^(K-1) gains energy in the field too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import cached_property
from math import log2
from typing import ClassVar, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim.acceptance import LARGEST_EXPONENT, ZERO_ACCEPTANCE, exp_reduced
from spinsim.cuda.launch import ADDRESS, struct_type
from spinsim.engine.layouts.replica_packed import ONE, ZERO
from spinsim.machine.compiled import kernel
from spinsim.packing import LANES, block_count, pack_lanes

OWN_PLANES: Final = 5
"""Number of leading bits of each lane's uniform; bit b of word w of the calls ``plane`` 0 to 4 is lane 32 w + b's."""

COLUMN_PLANES: Final = 4
"""Bits of each column (lanes b, 32 + b, 64 + b and 96 + b) in one more call, of plane ``OWN_PLANES``.

The first undecided lane of a column takes bit b of the call's four words as its next bits."""

PLANES: Final = OWN_PLANES + COLUMN_PLANES

TAIL_PLANE: Final = 128
"""A lane that is still undecided takes 64 more bits from its own call, of plane ``TAIL_PLANE + lane``."""

MAX_DEGREE: Final = 255
MAX_DEGREE_IN_FIELD: Final = 31  # with the spin in the class, more would need tables of over 64 classes
LEAST_COUNT_BITS: Final = 3
MAX_COUNT_BITS: Final = MAX_DEGREE.bit_length()


@dataclass(frozen=True)
class Classes:
    """Flip classes of a model with couplings of one magnitude."""

    count_bits: int  # K, bits of the count of unsatisfied bonds
    magnitude: int  # |J| in quanta
    field: int  # h in quanta
    by_low_bits: bool = False
    """True if a class in a field omits the highest bit of n, which then also means "gains energy"."""
    tables: ClassVar[int] = 2  # tables for even and for odd degrees

    @classmethod
    def of(cls, largest_degree: int, magnitude: int, field: int) -> Classes:
        """Return the classes of sites with at most ``largest_degree`` bonds."""
        return cls(max(LEAST_COUNT_BITS, int(largest_degree).bit_length()), magnitude, field)

    def without_gains(self, first: int, stop: int) -> Classes:
        """Use low bits if n >= 2^(K-1) gains energy for both spins, at sites with tables in range(first, stop).

        This is for counts of three bits only, which have kernels.
        """
        if not self.field or self.count_bits > LEAST_COUNT_BITS:
            return self
        half = self.costs.reshape(2, -1, 2**self.count_bits)[first:stop, :, 2 ** (self.count_bits - 1) :]
        return replace(self, by_low_bits=bool((half < 0).all()))

    @property
    def low_bits(self) -> int:
        """Number of bits of n in a class."""
        return self.count_bits - (not self.field or self.by_low_bits)

    @property
    def bits(self) -> int:
        return self.low_bits + bool(self.field)

    def padded_degree(self, parity: int) -> int:
        """Degree to which phantom bonds raise sites of even (0) or odd (1) degree."""
        return int(2**self.count_bits - 2 + parity)

    @cached_property
    def costs(self) -> npt.NDArray[np.int64]:
        """Flip costs in quanta, shape (2 parities, classes)."""
        index = np.arange(2**self.bits)
        count = index & (2**self.low_bits - 1)
        spin = np.where(index >> self.low_bits, 1, -1) if self.field else np.ones_like(index)
        degree = np.array([[self.padded_degree(0)], [self.padded_degree(1)]])
        return np.asarray(2 * self.magnitude * (degree - 2 * count) + 2 * self.field * spin)


LEAST_CLASS_BITS, MOST_CLASS_BITS = 4, 6  # bits of two terms for which there are kernels


def bits_of_counts(degrees: tuple[int, ...], in_field: bool) -> tuple[int, int]:
    """Bits of the count of each of two terms, for sites with at most ``degrees`` bonds of them."""
    first, second = (max(1, degree.bit_length()) for degree in degrees)
    return first, max(second, LEAST_CLASS_BITS - in_field - first)


@dataclass(frozen=True)
class TermClasses:
    """Flip classes of a model of two terms: both counts, term 0 lowest, and in a field the spin as the highest bit."""

    kinds: npt.NDArray[np.int64]  # bonds of each term, including phantom bonds, for every kind of site, (kinds, 2)
    magnitudes: tuple[int, ...]  # |J| of each term in quanta
    field: int  # h in quanta

    @staticmethod
    def fit(degrees: tuple[int, ...], in_field: bool) -> bool:
        """Return True if there are kernels for sites with at most ``degrees`` bonds of the terms."""
        return sum(bits_of_counts(degrees, in_field)) + in_field <= MOST_CLASS_BITS

    @property
    def count_bits(self) -> tuple[int, int]:
        return bits_of_counts(tuple(self.kinds.max(axis=0).tolist()), bool(self.field))

    @property
    def bits(self) -> int:
        return sum(self.count_bits) + bool(self.field)

    @property
    def tables(self) -> int:
        """Number of kinds of sites; each has its own table."""
        return len(self.kinds)

    def costs(self) -> npt.NDArray[np.int64]:
        """Flip costs of each term in quanta, (kinds, classes, 2); classes with more bonds than the kind never occur."""
        first, second = self.count_bits
        index = np.arange(2**self.bits)
        counts = np.stack([index & (2**first - 1), index >> first & (2**second - 1)], axis=-1)
        costs = 2 * np.array(self.magnitudes) * (self.kinds[:, None] - 2 * counts)
        costs[..., 0] += 2 * self.field * np.where(index >> (first + second), 1, -1)
        return np.asarray(costs)


@dataclass(frozen=True)
class Tables:
    """Thresholds of every lane, for each sample and block, or, with length 1, for all of them."""

    always: npt.NDArray[np.uint64]  # ``[sample, block, parity, class, half]``, set if no random number is needed
    planes: npt.NDArray[np.uint64]  # ``[..., parity, plane, class, half]``: bit ``63 - plane`` of thresholds
    thresholds: npt.NDArray[np.uint64]  # ``[..., parity, class, lane]``, as in acceptance.py


def distinct_of(beta: npt.NDArray[np.float64]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.intp] | None]:
    """Distinct inverse temperatures of replicas, and the index of each lane's; None if there is only one.

    ``beta`` is the result of ``check_beta`` or ``check_betas``; lanes past the last replica have its temperature.
    """
    if not beta.strides[0] or np.all(beta == beta[0]):  # one given for all, or set by annealing
        return beta[:1], None
    lanes = np.concatenate([beta, np.repeat(beta[-1:], -len(beta) % LANES, axis=0)])
    distinct, place = np.unique(lanes, axis=None if beta.ndim == 1 else 0, return_inverse=True)
    return distinct, place.reshape(-1)


def build_tables(limits: Limits, place: npt.NDArray[np.intp] | None) -> Tables:
    """Tables of all lanes, at temperatures ``place`` (lanes,) of ``limits``; one block if ``place`` is None."""
    if place is None:
        certain, one = limits.certain[..., 0], limits.thresholds[..., 0]
        bits = one[:, None] >> np.arange(63, 63 - PLANES, -1, dtype=np.uint64)[:, None] & np.uint64(1)
        words = (np.repeat(ZERO - of_lane[..., None], 2, axis=-1) for of_lane in (certain.astype(np.uint64), bits))
        return Tables(*(rows[None, None] for rows in (*words, np.repeat(one[..., None], LANES, axis=-1))))
    shape = (*limits.certain.shape[:2], -1, LANES)
    always, threshold = (np.moveaxis(np.take(rows, place, axis=-1).reshape(shape), 2, 0) for rows in limits)
    planes = [pack_lanes((threshold >> np.uint64(63 - plane) & ONE).astype(np.bool_)) for plane in range(PLANES)]
    return Tables(
        always=pack_lanes(always)[None],
        planes=np.ascontiguousarray(np.stack(planes, axis=2))[None],
        thresholds=np.ascontiguousarray(threshold)[None],
    )


def empty_tables(classes: Classes | TermClasses, samples: int, replicas: int) -> Tables:
    tables, number = (samples, block_count(replicas), classes.tables), 2**classes.bits
    return Tables(
        always=np.empty((*tables, number, 2), np.uint64),
        planes=np.empty((*tables, PLANES, number, 2), np.uint64),
        thresholds=np.zeros((*tables, number, LANES), np.uint64),
    )


ZERO_PLANES: Final = round(-log2(1 - ZERO_ACCEPTANCE))
"""Under the default rule, flips of zero cost are refused if this number of planes are all ones."""


LEAST_BITS: Final = 2  # least bits of cheap classes


class Limits(NamedTuple):
    """Limits that decide flips at given temperatures, (parity of the degree, class, temperature)."""

    certain: npt.NDArray[np.bool_]  # True if a flip needs no random number
    thresholds: npt.NDArray[np.uint64]  # else the threshold of its random number


class Kind(IntEnum):
    """Special cases of the packed update that have their own kernels.

    ANY: no special case. PLAIN: no field, only gains flip for certain, and the default zero-cost rule; or a field with
    classes by low bits. WARM, COLD: in addition, thresholds begin with the numbers of zeros in ``WARM_CLEAR`` or
    ``COLD_CLEAR`` (in a field, for both spins), and only the last of their classes flip for certain.
    """

    ANY = 0
    PLAIN = 1
    WARM = 2
    COLD = 3


class Clear(NamedTuple):
    """Number of leading planes without threshold bits, for each class that costs energy."""

    largest: int  # class 0, the largest cost, which sites of four bonds do not have
    middle: int  # class 1
    smallest: int  # class 2


WARM_CLEAR: Final = Clear(4, 2, 1)  # with six bonds of +-J: below T = 4.32 |J|

COLD_CLEAR: Final = Clear(OWN_PLANES, OWN_PLANES, 2)
"""Below T = 2.31 |J|: in the own planes, only the smallest cost has bits."""


def kind_of(classes: Classes, zero_acceptance: float, limits: Limits) -> Kind:
    """Return the special case of a run at the temperatures of ``limits``; for sites of odd degree at most ``PLAIN``."""
    if classes.field and not classes.by_low_bits:
        return Kind.ANY
    if not classes.field and (zero_acceptance != ZERO_ACCEPTANCE or limits.certain.any()):
        return Kind.ANY
    certain, thresholds = (a[0].reshape(-1, 4, a.shape[-1])[:, :-1] for a in limits)  # in a field, for both spins
    for kind, clear in ((Kind.COLD, COLD_CLEAR), (Kind.WARM, WARM_CLEAR)):
        beyond = np.array([[64 - planes] for planes in clear], np.uint64)
        if not (certain.any() or (thresholds >> beyond).any()):
            return kind
    return Kind.PLAIN


def cheap_bits(limits: Limits) -> int:
    """Return B of cpu_sweep.py: without a field, all classes but the last 2^B have no bits in the planes."""
    in_planes = limits.certain | (limits.thresholds >> np.uint64(64 - PLANES) != 0)
    of_class: npt.NDArray[np.bool_] = in_planes.any(axis=(0, 2))[::-1]  # cheapest class first
    return bits_up_to(int(of_class.nonzero()[0].max(initial=0)))


def bits_up_to(last: int) -> int:
    """Bits of the number of the last class, counted from the cheapest, with bits in the planes."""
    return max(LEAST_BITS, last.bit_length())


APART: Final = 8  # words from one block's count to the next; polls then use different parts of the cache
TICKETS: Final = struct_type(next=ADDRESS, before=np.uint32)
LATTICE_BARRIER: Final = struct_type(arrived=ADDRESS, before=np.uint32)
NEIGHBOUR_BARRIER: Final = struct_type(arrived=ADDRESS, before=np.uint32, reach=np.uint32)


@kernel
def lay_one_temperature(costs, zero_acceptance, always, planes, thresholds, beta):  # type: ignore[no-untyped-def]
    """Set ``Tables`` (blocks, ...) for one temperature; return the last class, from the cheapest, with bits in planes.

    ``costs`` (table, class) are flip costs in quanta, ``beta`` is the inverse temperature times the quantum. The
    results equal ``acceptance``, but annealing needs them so often that NumPy would be too slow for small models.
    """
    classes, last = costs.shape[1], 0
    for table in range(costs.shape[0]):
        for c in range(classes):
            cost, probability = costs[table, c], 1.0
            if cost == 0:
                probability = zero_acceptance
            elif cost > 0:
                mantissa, power = exp_reduced(-min(beta * np.float64(cost), LARGEST_EXPONENT))
                probability = math.ldexp(mantissa, int(power))
            sure, threshold = ZERO, ZERO
            if probability >= 1.0:
                sure = ~ZERO
            else:
                threshold = np.uint64(math.ldexp(probability, 64))
            always[:, table, c] = sure
            thresholds[:, table, c] = threshold
            in_planes = sure
            for plane in range(planes.shape[2]):
                word = ZERO - (threshold >> np.uint64(63 - plane) & ONE)
                planes[:, table, plane, c] = word
                in_planes |= word
            if in_planes != ZERO:
                last = max(last, classes - 1 - c)
    return last


@kernel
def lay_tables(place, used, certain, limits, always, planes, thresholds):  # type: ignore[no-untyped-def]
    """Set one sample's ``Tables`` for replicas at temperatures ``place`` (replicas,).

    For each table, class and temperature, ``certain`` is True if a flip needs no random number; else ``limits`` is the
    threshold. Sites use the tables from ``used[0]`` to below ``used[1]``; other tables, and lanes past the last
    replica, stay unchanged.
    """
    temperatures = limits.shape[2]
    for block in range(always.shape[0]):
        places = place[block * LANES : (block + 1) * LANES]
        lanes = np.zeros((2, temperatures), np.uint64)  # lanes at each temperature
        for lane in range(places.size):
            lanes[lane // 64, places[lane]] |= ONE << np.uint64(lane % 64)
        for table in range(used[0], used[1]):
            for c in range(limits.shape[1]):
                of_class, sure = limits[table, c], certain[table, c]
                of_lanes = thresholds[block, table, c]
                for lane in range(places.size):
                    of_lanes[lane] = of_class[np.uint32(places[lane])]  # an unsigned index needs no check
                for half in range(2):
                    here = lanes[half]
                    word = ZERO
                    for t in range(temperatures):
                        word |= (ZERO - np.uint64(sure[t])) & here[t]
                    always[block, table, c, half] = word
                    for plane in range(planes.shape[2]):
                        word, shift = ZERO, np.uint64(63 - plane)
                        for t in range(temperatures):
                            word |= (ZERO - (of_class[t] >> shift & ONE)) & here[t]
                        planes[block, table, plane, c, half] = word
