"""Philox4x32: every random number of a run is a pure function of (seed, counter).

The 64-bit seed is the key. The four 32-bit counter words are laid out once, here:

    word 0   group         index of the 128-bit group of spins (replica-packed: the site; site-packed: counted
                           row by row within its colour, for initial spins on through both colours)
    word 1   block         sample << 14 | block of 128 replicas (site-packed: the replica)
    word 2   half-sweep    low 32 bits of sweep * colours + colour
    word 3   half-sweep's high 16 bits << 16 | stream << 8 | plane

The plane stands in word 3 on purpose: two of Philox's rounds then do not depend on it, and a kernel that draws
many planes of one group computes them once (``philox_prefix``).

The functions are written with plain ``uint64`` operators, so that the same source serves NumPy arrays here and,
compiled by Numba, the CPU engine. Values live in the low 32 bits; the high halves may hold rubbish until ``low32``.

Source: J. Salmon, M. Moraes, R. Dror, D. Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC'11 (2011).
"""

from __future__ import annotations

from enum import IntEnum
from operator import index
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from spinsim.errors import InputError
from spinsim.machine.compiled import inlined

Words: TypeAlias = Any  # np.uint64 or an array of it: one body for NumPy and Numba

MASK32: Final = np.uint64(0xFFFFFFFF)
SHIFT32: Final = np.uint64(32)
MULTIPLIER_0: Final = np.uint64(0xD2511F53)
MULTIPLIER_1: Final = np.uint64(0xCD9E8D57)
WEYL_0: Final = np.uint64(0x9E3779B9)
WEYL_1: Final = np.uint64(0xBB67AE85)

DYNAMICS: Final = 2
"""Version of the trajectories that follow from a configuration and a seed: it rises with every change of their bits.

Every file and checkpoint holds it. Runs with another version can be read but not continued."""

ROUNDS: Final = 10
FEWER_ROUNDS: Final = 7  # also passes BigCrush (Salmon et al. 2011, table 2)

GROUP_BITS: Final = 32
SAMPLE_BITS: Final = 18
BLOCK_BITS: Final = 14
HALF_SWEEP_BITS: Final = 48
STREAM_BITS: Final = 8
PLANE_BITS: Final = 8
if GROUP_BITS + SAMPLE_BITS + BLOCK_BITS + HALF_SWEEP_BITS + STREAM_BITS + PLANE_BITS != 128:
    raise AssertionError("the counter fields must fill Philox's 128 counter bits exactly")


class Stream(IntEnum):
    """Uses of random numbers. Streams never share a counter."""

    UPDATE = 1  # Metropolis acceptance
    START = 2  # initial spins
    COUPLINGS = 3  # disorder, keyed by the disorder seed
    SWAP = 4  # exchanges of temperatures
    PRE_RUN = 5  # seeds of pre-runs, which come before a run itself
    LANCZOS = 6  # start vectors of transfer matrices
    DILUTION = 7  # which bonds are missing, keyed by the disorder seed
    RANDOM_FIELD = 8  # fields at sites, keyed by the disorder seed
    RESTART = 9  # seeds of further anneals of a search
    RESAMPLE = 10  # which replicas of a population are copied
    MOVE = 11  # user-defined moves
    HOUDAYER = 12  # pairs of copies and the seeds of their clusters
    FORTUIN_KASTELEYN = 13  # open bonds, coins and seeds of clusters
    SINGLE_SPIN = 14  # sites and acceptance of single-spin dynamics by name
    PERTURBATION = 15  # changes of couplings, keyed by a seed of their own
    MULTICANONICAL = 16  # sites and acceptance of walkers in energy
    TABU = 17  # starts of tabu searches, and seeds of the generator within each
    PORTFOLIO = 18  # seeds of the methods of a portfolio
    MATCHING = 19  # starts, paths and choices of searches on surfaces


@inlined
def low32(x: Words) -> Words:
    return x & MASK32


@inlined
def philox_round(x0: Words, x1: Words, x2: Words, x3: Words, k0: Words, k1: Words) -> tuple[Words, ...]:
    """Apply one Philox round; only the low 32 bits of the arguments count."""
    a = MULTIPLIER_0 * (x0 & MASK32)
    b = MULTIPLIER_1 * (x2 & MASK32)
    return (b >> SHIFT32) ^ x1 ^ k0, b, (a >> SHIFT32) ^ x3 ^ k1, a


@inlined
def philox(c0: Words, c1: Words, c2: Words, c3: Words, k0: Words, k1: Words, rounds: int) -> tuple[Words, ...]:
    """Apply Philox4x32 with 7 or 10 ``rounds`` to four counter words and two key words; return four 32-bit words."""
    for _ in range(7):
        c0, c1, c2, c3 = philox_round(c0, c1, c2, c3, k0, k1)
        k0 = (k0 + WEYL_0) & MASK32
        k1 = (k1 + WEYL_1) & MASK32
    if rounds > 7:
        for _ in range(3):
            c0, c1, c2, c3 = philox_round(c0, c1, c2, c3, k0, k1)
            k0 = (k0 + WEYL_0) & MASK32
            k1 = (k1 + WEYL_1) & MASK32
    return c0, c1, c2, c3


@inlined
def philox_prefix(c0: Words, c1: Words, c2: Words, k0: Words, k1: Words) -> tuple[Words, ...]:
    """Compute the part of Philox's first three rounds that does not depend on counter word 3."""
    x0, x1, x2, x3 = philox_round(c0, c1, c2, np.uint64(0), k0, k1)
    k0 = (k0 + WEYL_0) & MASK32
    k1 = (k1 + WEYL_1) & MASK32
    a = MULTIPLIER_0 * (x0 & MASK32)
    y0 = x1 ^ k0
    y2 = (a >> SHIFT32) ^ x3 ^ k1
    k0 = (k0 + WEYL_0) & MASK32
    k1 = (k1 + WEYL_1) & MASK32
    b = MULTIPLIER_1 * (y2 & MASK32)
    return x2, y0, (b >> SHIFT32) ^ k0, b, a ^ k1


@inlined
def philox_finish(
    p0: Words, p1: Words, p2: Words, p3: Words, p4: Words, c3: Words, k0: Words, k1: Words, rounds: int
) -> tuple[Words, ...]:
    """Finish Philox4x32, from the five words of ``philox_prefix`` and counter word 3."""
    b = MULTIPLIER_1 * ((p0 ^ c3) & MASK32)  # round 2, the half that depends on the plane
    a = MULTIPLIER_0 * (((b >> SHIFT32) ^ p1) & MASK32)  # round 3
    x0 = p2 ^ b
    x1 = p3
    x2 = (a >> SHIFT32) ^ p4
    x3 = a
    k0 = (k0 + np.uint64(3) * WEYL_0) & MASK32
    k1 = (k1 + np.uint64(3) * WEYL_1) & MASK32
    for _ in range(4):
        x0, x1, x2, x3 = philox_round(x0, x1, x2, x3, k0, k1)
        k0 = (k0 + WEYL_0) & MASK32
        k1 = (k1 + WEYL_1) & MASK32
    if rounds > 7:
        for _ in range(3):
            x0, x1, x2, x3 = philox_round(x0, x1, x2, x3, k0, k1)
            k0 = (k0 + WEYL_0) & MASK32
            k1 = (k1 + WEYL_1) & MASK32
    return x0, x1, x2, x3


@inlined
def counter_block(sample: Words, block: Words) -> Words:
    """Counter word 1."""
    return (sample << np.uint64(BLOCK_BITS)) | block


@inlined
def counter_plane(half_sweep: Words, stream: Words, plane: Words) -> Words:
    """Counter word 3."""
    return ((half_sweep >> SHIFT32) << np.uint64(16)) | (stream << np.uint64(8)) | plane


def check_dynamics(number: int, name: str) -> None:
    """Refuse to continue ``name`` if its dynamics have another version than this program's."""
    if number != DYNAMICS:
        raise InputError(
            f"{name} has dynamics {number} and this version of spinsim has dynamics {DYNAMICS}, which give other bits: "
            "go on with the version that wrote it, or run it anew under another name"
        )


def check_seed(seed: int) -> int:
    try:
        value = index(seed)
    except TypeError as error:
        raise InputError(f"seed {seed!r} is not a whole number: give an integer from 0 to 2^64 - 1") from error
    if not 0 <= value < 2**64:
        raise InputError(f"seed {value} is out of range: give an integer from 0 to 2^64 - 1")
    return value


def split_seed(seed: int) -> tuple[np.uint64, np.uint64]:
    """The two key words of a 64-bit seed."""
    value = check_seed(seed)
    return np.uint64(value & 0xFFFFFFFF), np.uint64(value >> 32)


def derived_seed(seed: int, number: int, stream: Stream = Stream.PRE_RUN) -> int:
    """Return a 64-bit seed for pre-run ``number``, or for another stream; ``number`` is the group of the counter."""
    low, high, _, _ = (int(word) for word in draw(seed, stream, group=number))
    return high << 32 | low


def draw(
    seed: int, stream: Stream, *, group: npt.ArrayLike = 0, sample: npt.ArrayLike = 0, block: npt.ArrayLike = 0,
    half_sweep: npt.ArrayLike = 0, plane: npt.ArrayLike = 0, rounds: int = ROUNDS,
) -> npt.NDArray[np.uint64]:  # fmt: skip
    """Random words for broadcast arrays of counters; shape (4, ...), each below 2^32."""
    k0, k1 = split_seed(seed)
    g, s, b, t, p = np.broadcast_arrays(*(np.asarray(x, np.uint64) for x in (group, sample, block, half_sweep, plane)))
    c3 = counter_plane(t, np.uint64(stream), p)
    words = philox(g, counter_block(s, b), t & MASK32, c3, k0, k1, rounds)
    return np.stack([low32(w) for w in np.broadcast_arrays(*words)])


def check_budget(
    *, groups: int, samples: int, blocks: int, half_sweeps: int, block_name: str = "blocks of 128 replicas"
) -> None:
    """Refuse a run whose counters would not fit their fields; ``block_name`` describes a block in the message."""
    for counted, value, bits in (
        ("groups of spins", groups, GROUP_BITS),
        ("samples", samples, SAMPLE_BITS),
        (block_name, blocks, BLOCK_BITS),
        ("half-sweeps", half_sweeps, HALF_SWEEP_BITS),
    ):
        if value > 2**bits:
            raise InputError(f"{value} {counted} exceed the random counter's limit of 2^{bits}: split the run in parts")
