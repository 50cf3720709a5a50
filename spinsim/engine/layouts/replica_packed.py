"""A word holds one site of 64 replicas: ``state[sample, block, site, half]``. A block is two words, 128 replicas.

This module has the words on the CPU, the threads that process them, and exact integer counts of spins +1 and
unsatisfied bonds of every replica.

Spins are summed with vertical counters: plane p of a column holds bit p of 64 lanes' counts. Sites or bonds are dealt
to BATCH columns, seven rows at a time. Full adders turn seven rows into three planes, which are added to the counters.
When the counters are full, the columns are added up, still as planes, and the result is moved into integers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim.engine.dynamics import Dynamics, fill_start
from spinsim.engine.moves.resample import Moves, copy_replicas
from spinsim.engine.protocols import KeptSpins, Spins, room_like
from spinsim.machine.compiled import kernel, part, step
from spinsim.machine.threads import Threads
from spinsim.packing import LANES, Bits

Words = npt.NDArray[np.uint64]
SweepPart = Callable[[int, int, tuple[int, int], int, int, int], None]
"""Sweeps one part of a sample's block ``count`` times, from a half-sweep on, in the colours from ``colours[0]`` to
before ``colours[1]``: (count, half_sweep, colours, part, sample, block)."""

_PREPARED: Final = 64  # most kernel calls kept ready


class Blocks:
    """State of a packed engine; each (sample, block) is one task, or several that share its sites.

    Args:
        shape: Shape of the state, uint64 (samples, blocks, ..., 2).
        large: True if a half-sweep of one block is worth starting threads for.
        read: Finds a replica's configuration in a sample's words; ``read_all`` finds all as bits, if that is faster.
        numbers: Number of the first group in each of the equal parts into which a block's words are cut.
    """

    def __init__(
        self, shape: tuple[int, ...], lanes: Words, dynamics: Dynamics, threads: Threads, large: bool,
        read: Callable[[Words, int], npt.NDArray[np.int8]], read_all: Callable[[Words], Bits] | None = None,
        numbers: Sequence[int] = (0,),
    ) -> None:  # fmt: skip
        self.state = np.empty(shape, np.uint64)
        self.count, self.total, self.nbytes = shape[0] * shape[1], self.state.size // 2, self.state.nbytes
        self.parts = max(1, threads.count // self.count) if large else 1
        self._threads, self._read, self._read_all = threads, read, read_all
        self._prepared: dict[tuple[int, int, int], tuple[object, Callable[..., None]]] = {}

        def start(_: int, sample: int, block: int) -> None:
            words = self.state[sample, block].reshape(len(numbers), -1, 2)
            for first, own in zip(numbers, words, strict=True):
                fill_start(own, lanes[block], dynamics, sample, block, first)

        self.each(start)

    def each(self, task: Callable[[int, int, int], None], parts: int = 1, times: int | None = None) -> None:
        """Run ``task(part, sample, block)`` for all parts of all blocks; a task visits its words ``times`` times."""
        samples, blocks = self.state.shape[:2]
        if samples * blocks * parts == 1:
            task(0, 0, 0)
            return
        tasks = (partial(task, p, s, b) for s in range(samples) for b in range(blocks) for p in range(parts))
        self._threads.run(tasks, None if times is None else times * self.total)

    def sweep(
        self, sweep_part: SweepPart, count: int, half_sweep: int, colours: int,
        prepare: Callable[[int], None] | None = None,
    ) -> None:  # fmt: skip
        """Sweep all blocks ``count`` times from a half-sweep on; threads that share a block meet after each half-sweep.

        ``prepare`` is called before each half-sweep, with its colour.
        """
        if self.parts == 1 and prepare is None:
            self.each(partial(sweep_part, count, half_sweep, (0, colours)), times=count)
            return
        for each in range(half_sweep, half_sweep + count * colours):
            colour = each % colours
            if prepare is not None:
                prepare(colour)
            self.each(partial(sweep_part, 1, each, (colour, colour + 1)), self.parts)

    def prepared(
        self, where: tuple[int, int, int], tables: object, prepare: Callable[[], Callable[..., None]]
    ) -> Callable[..., None]:
        """Call ``prepare`` for a part, sample and block; with few blocks, keep the result while ``tables`` stay."""
        if self.count * self.parts > _PREPARED:
            return prepare()
        known = self._prepared.get(where)
        if known is None or known[0] is not tables:
            known = self._prepared[where] = tables, prepare()
        return known[1]

    def words_of(self, samples: slice) -> Words:
        return np.asarray(self.state[samples])

    def words(self) -> Words:
        return self.state.copy()

    def set_words(self, words: Words) -> None:
        self.state[:] = words

    def copy(self, moves: Moves) -> None:
        copy_replicas(self.state, moves, self._threads)

    def spins(self, sample: int, replica: int) -> npt.NDArray[np.int8]:
        return self._read(self.state[sample], replica)

    def keep(self) -> tuple[Callable[[slice], None], Spins]:
        keep, copy = room_like(self.state)
        return keep, self.reading(copy)

    def reading(self, words: Words) -> KeptSpins:
        """Return a reader of configurations from words of all samples."""
        read_all = self._read_all
        bits = None if read_all is None else lambda sample: read_all(words[sample])
        return KeptSpins(lambda sample, replica: self._read(words[sample], replica), bits)


BATCH: Final = 64  # sites whose words are processed together
ROW: Final = 2 * BATCH  # words of a scratch row: first half 0 of all sites, then half 1
ZERO: Final = np.uint64(0)
ONE: Final = np.uint64(1)


@part
def full_add(a, b, c):  # type: ignore[no-untyped-def]
    """Return sum and carry of three bits."""
    return a ^ b ^ c, (a & b) | (c & (a | b))


@part
def add_four(x0, x1, x2, x3):  # type: ignore[no-untyped-def]
    """Return three bit planes of 1 plus the number of bits set among four (degree 4 padded to 6)."""
    # x0 + x1 + x2 + x3 = (low) + 2 (carry_a + d), from a full adder and a half adder.
    sum_a, carry_a = full_add(x0, x1, x2)
    low, d = sum_a ^ x3, sum_a & x3
    # One of the two phantom bonds is unsatisfied. Adding 1 inverts the low bit and carries where it was 1.
    return ~low, carry_a ^ d ^ low, (carry_a & d) | (low & (carry_a ^ d))


@part
def add_six(x0, x1, x2, x3, x4, x5):  # type: ignore[no-untyped-def]
    """Return three bit planes of the number of bits set among six."""
    # Two full adders, for three bits each: ones in sum_a and sum_b, twos in carry_a and carry_b.
    sum_a, carry_a = full_add(x0, x1, x2)
    sum_b, carry_b = full_add(x3, x4, x5)
    # The twos are both carries and the carry of the two sums.
    middle, high = full_add(carry_a, carry_b, sum_a & sum_b)
    return sum_a ^ sum_b, middle, high


@part
def add_seven(x0, x1, x2, x3, x4, x5, x6):  # type: ignore[no-untyped-def]
    """Return three bit planes of the number of bits set among seven."""
    # Three full adders for the ones, the seventh bit being the third input of the last; one for their carries.
    sum_a, carry_a = full_add(x0, x1, x2)
    sum_b, carry_b = full_add(x3, x4, x5)
    low, carry_c = full_add(sum_a, sum_b, x6)
    middle, high = full_add(carry_a, carry_b, carry_c)
    return low, middle, high


PLANES: Final = 8
ROWS: Final = 7  # rows of items that are added together
FULL: Final = (2**PLANES - 1) // ROWS  # most additions that the counters hold
HALVINGS: Final = BATCH.bit_length() - 1  # halvings until all columns are one
SUM_PLANES: Final = PLANES + HALVINGS  # planes of the sum over all columns
ITEM: Final = SUM_PLANES * ROW
CARRY: Final = ITEM + ROWS * ROW
WORDS: Final = CARRY + ROW


class CountedBonds(NamedTuple):
    """Bonds of a model, as counted for the energy."""

    edges: npt.NDArray[np.int32]  # end sites of the bonds of term 0, (bonds, 2)
    negative: npt.NDArray[np.bool_]  # True where their coupling is below 0, (1 or samples, bonds)
    further_edges: npt.NDArray[np.int32]  # end sites of the bonds of term 1; empty if there is one term
    further_negative: npt.NDArray[np.bool_]
    lone: npt.NDArray[np.uint32]  # sites of bonds to the spin that is always +1, (bonds,)
    positive: npt.NDArray[np.uint8]  # 1 where such a bond's coupling is above 0, (1 or samples, bonds)
    phantoms: int  # unsatisfied phantom bonds counted with the bonds of the last colour


@step
def add_count(w, e, low, middle, high):  # type: ignore[no-untyped-def]
    """Add three planes of counts to the first planes of word e of the counters; the carry stays in its row."""
    carry = w[e] & low
    w[e] ^= low
    w[ROW + e], carry = full_add(w[ROW + e], middle, carry)
    w[2 * ROW + e], w[CARRY + e] = full_add(w[2 * ROW + e], high, carry)


@step
def add_carries(w, n, depth):  # type: ignore[no-untyped-def]
    """Add the carries of the first n columns to the higher planes, ``depth`` planes in all."""
    for plane in range(3, depth):
        for half in range(2):
            for q in range(n):
                e = half * BATCH + q
                low = w[plane * ROW + e]
                w[plane * ROW + e] = low ^ w[CARRY + e]
                w[CARRY + e] &= low


@step
def add_rows(w, n):  # type: ignore[no-untyped-def]
    """Add the item rows to the first planes of the counters of the first n columns; the carries stay in their row."""
    for half in range(2):
        for q in range(n):
            e = half * BATCH + q
            low, middle, high = add_seven(
                w[ITEM + e], w[ITEM + ROW + e], w[ITEM + 2 * ROW + e], w[ITEM + 3 * ROW + e], w[ITEM + 4 * ROW + e],
                w[ITEM + 5 * ROW + e], w[ITEM + 6 * ROW + e],
            )  # fmt: skip
            add_count(w, e, low, middle, high)


@step
def planes_for(additions):  # type: ignore[no-untyped-def]
    """Return the number of counter planes that ``additions`` additions of all rows can reach."""
    depth = 3
    while (1 << depth) <= ROWS * additions:
        depth += 1
    return depth


@step
def halve(columns, depth, w):  # type: ignore[no-untyped-def]
    """Add the second half of ``columns`` columns to the first half; the sum has ``depth`` + 1 planes."""
    # Columns of a plane, a word each; every lane has a counter in every column:
    #
    #     before    | one: 0 ... width - 1 | other: width ... columns - 1 |      planes 0 to depth - 1
    #     after     | one + other          | no longer used               |      planes 0 to depth
    width = columns // 2
    for half in range(2):
        carries = w[CARRY : CARRY + width]
        for q in range(width):
            carries[q] = ZERO
        # A full adder per plane, from the lowest; its carries wait in row CARRY for the next plane.
        for plane in range(depth):
            row = plane * ROW + half * BATCH
            first, second = w[row : row + width], w[row + width : row + columns]
            for q in range(width):
                one, other, carry = first[q], second[q], carries[q]
                differ = one ^ other
                first[q] = differ ^ carry
                carries[q] = (one & other) | (differ & carry)
        # The last carry is the new highest plane.
        row = depth * ROW + half * BATCH
        last = w[row : row + width]
        for q in range(width):
            last[q] = carries[q]


@kernel
def empty_into(totals, done, w):  # type: ignore[no-untyped-def]
    """Add the counters, which hold ``done`` additions, to ``totals`` (128,), and clear them."""
    # Counter of lane l in column q: bit l % 64 of word (plane ROW + (l // 64) BATCH + q) has weight 2^plane.
    depth = planes_for(done)
    halve(64, depth, w)  # written out: loops of constant length vectorise
    halve(32, depth + 1, w)
    halve(16, depth + 2, w)
    halve(8, depth + 3, w)
    halve(4, depth + 4, w)
    halve(2, depth + 5, w)
    # All columns are now in column 0, a counter per lane: add each lane's bits with their weights.
    depth += HALVINGS
    for plane in range(depth):
        for half in range(2):
            word = w[plane * ROW + half * BATCH]
            for bit in range(64):
                totals[half * 64 + bit] += np.int64(word >> np.uint64(bit) & ONE) << plane
    for e in range(depth * ROW):
        w[e] = ZERO


@step
def finish_addition(done, n, totals, w):  # type: ignore[no-untyped-def]
    """Add the carries of the first n columns, and empty full counters; return the additions that the counters hold."""
    add_carries(w, n, planes_for(done + 1))
    if done + 1 < FULL:
        return done + 1
    empty_into(totals, FULL, w)
    return 0


@step
def columns_of(items):  # type: ignore[no-untyped-def]
    """Return the number of columns that the next of ``items`` remaining items take."""
    return min(BATCH, (items + ROWS - 1) // ROWS)


@kernel
def count_sites(state, sites, positive, totals):  # type: ignore[no-untyped-def]
    """Add to ``totals`` (128,), for each lane, the number of ``sites`` that are -1 where ``positive``, or +1 elsewhere.

    ``state`` is uint64 (all sites, 2). If ``positive`` is None, spins +1 are counted.
    """
    w = np.zeros(WORDS, np.uint64)
    done = first = 0
    while first < sites.size:
        n = columns_of(sites.size - first)
        for k in range(ROWS):
            row = ITEM + k * ROW
            chosen = sites[first : first + n]
            for q in range(chosen.size):
                i, sign = chosen[q], ZERO
                if positive is not None:
                    sign = ZERO - np.uint64(positive[first + q])
                w[row + q] = state[i, 0] ^ sign
                w[row + BATCH + q] = state[i, 1] ^ sign
            clear_items(row, chosen.size, n, w)
            first += chosen.size
        add_rows(w, n)
        done = finish_addition(done, n, totals, w)
    empty_into(totals, done, w)


@kernel
def count_lattices(order, first, bonds, weights, constants, state, begin, blocks, counts, sample):  # type: ignore[no-untyped-def]
    """Count all replicas of some blocks; ``begin`` is the number of the first of them among the blocks of all samples.

    The first ``first`` sites of ``order`` are the first sublattice. ``weights`` (numbers, sums) weight the counts of
    spins +1, of unsatisfied bonds of each term and of spins +1 of the first sublattice; ``constants`` (numbers,) are
    added. The result goes into ``counts`` (numbers, samples, replicas), from sample ``sample`` on. ``state`` has these
    blocks, (blocks, sites, 2).
    """
    edges, negative, further_edges, further_negative, lone, positive, _ = bonds
    sums = np.empty((weights.shape[1], LANES), np.int64)
    for k in range(state.shape[0]):
        of_sample, b, words = (begin + k) // blocks, (begin + k) % blocks, state[k]
        row = of_sample % negative.shape[0]
        sums[:] = 0
        up, unsatisfied, up_first = sums[0], sums[1], sums[sums.shape[0] - 1]
        count_sites(words, order[:first], None, up_first)
        count_sites(words, order[first:], None, up)
        up += up_first
        count_unsatisfied(words, edges, negative[row], unsatisfied)
        if lone.size:
            count_sites(words, lone, positive[of_sample % positive.shape[0]], unsatisfied)
        if further_edges.size:
            count_unsatisfied(words, further_edges, further_negative[row], sums[2])
        for number in range(counts.shape[0]):
            mine = counts[number, of_sample - sample, b * LANES : (b + 1) * LANES]
            for r in range(mine.size):
                mine[r] = constants[number]
            for each in range(sums.shape[0]):
                for r in range(mine.size):
                    mine[r] += weights[number, each] * sums[each, r]


@step
def clear_items(row, start, stop, w):  # type: ignore[no-untyped-def]
    """Clear the columns of a row for which no items are left."""
    for half in range(2):
        for q in range(start, stop):
            w[row + half * BATCH + q] = ZERO


@kernel
def count_unsatisfied(state, edges, negative, totals):  # type: ignore[no-untyped-def]
    """Add to ``totals`` (128,), for each lane, the number of unsatisfied bonds; ``negative`` is 1 where J < 0."""
    # Bonds, row by row, n columns each; a bit is 1 if the bond is unsatisfied in the bit's lane:
    #
    #     ITEM            first, first + 1, ..., first + n - 1
    #     ITEM + ROW      first + n, ...                            and so on, in ROWS rows
    #
    # The rows of a column are added together, to one counter per lane and column.
    w = np.zeros(WORDS, np.uint64)
    done = first = 0
    while first < edges.shape[0]:
        n = columns_of(edges.shape[0] - first)
        for k in range(ROWS):
            row = ITEM + k * ROW
            ends, signs = edges[first : first + n], negative[first : first + n]
            for q in range(signs.size):
                i, j = np.uint32(ends[q, 0]), np.uint32(ends[q, 1])
                sign = ZERO - np.uint64(signs[q])
                # Spins that differ leave a bond of J > 0 unsatisfied, and equal spins one of J < 0.
                w[row + q] = state[i, 0] ^ state[j, 0] ^ sign
                w[row + BATCH + q] = state[i, 1] ^ state[j, 1] ^ sign
            clear_items(row, signs.size, n, w)
            first += signs.size
        add_rows(w, n)
        done = finish_addition(done, n, totals, w)
    empty_into(totals, done, w)
