"""Dense models on the CPU: local fields of every replica are stored, and a flip adds a row of couplings to them.

Order, random numbers and exact comparison are as in unpacked.py, and so are the trajectories. Replicas are visited one
by one, 64 sites at a time, in vectors of sites. A uniform bounds the cost of an accepted flip, and a comparison of 64
costs with their bounds finds the next site that may flip. A flip changes the costs of its block at once, and all other
fields after the block. So the time grows with the number of flips, and attempts take little more than their random
numbers, even for few replicas.

Memory of a replica, where place k is the k-th visited site:

    up[k // 64]         bit k % 64 is set where the spin is +1
    local_fields[k]     sum of J s over all other sites plus h, in quanta, filled up to whole vectors
    rows[k]             2 J of the site with all sites, which its flip adds to local fields or subtracts from them

The bound is -ln(u) in float32, from the upper 31 bits of the uniform, plus ``MARGIN``. A cost less than twice the
margin below the bound is decided by all 64 bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from llvmlite import ir

from spinsim import packing, rng
from spinsim.acceptance import LARGEST_EXPONENT, exp_reduced
from spinsim.engine.cpu import CpuEngine, CpuParts
from spinsim.engine.dynamics import Dynamics
from spinsim.engine.layouts.unpacked import WORDS, InChunks
from spinsim.engine.measuring.cpu import CpuReplicaComparison
from spinsim.engine.measuring.sums import Counts
from spinsim.engine.moves.exchange import CpuTempering, Times, exchange
from spinsim.engine.moves.metropolis.dense import DensePlan, form_of
from spinsim.engine.moves.metropolis.unpacked import (
    HALVE,
    MANTISSA_BITS_32,
    REFINE,
    STREAM,
    TWO32,
    ChunkSweeper,
    UnpackedPlan,
)
from spinsim.engine.moves.resample import Moves
from spinsim.engine.protocols import Spins, room_like
from spinsim.machine.compiled import intrinsic, kernel, part
from spinsim.machine.intrinsics import trailing_zeros
from spinsim.machine.threads import Threads
from spinsim.model.ising import Ising
from spinsim.packing import LANES

SITES: Final = 64  # sites of a block of the sweep: the bits of a word
TILE: Final = 512  # bytes of a row kept in registers while other rows are added to them

_WORD: Final = ir.IntType(64)
_FIRST: Final = ir.Constant(_WORD, 0)


@intrinsic
def float_bits(typing_context, x):  # type: ignore[no-untyped-def]
    from numba import types

    def generate(context, builder, signature, args):  # type: ignore[no-untyped-def]
        return builder.bitcast(args[0], ir.IntType(32))

    return types.int32(types.float32), generate


@intrinsic
def as_float(typing_context, x):  # type: ignore[no-untyped-def]
    from numba import types

    def generate(context, builder, signature, args):  # type: ignore[no-untyped-def]
        return builder.bitcast(args[0], ir.FloatType())

    return types.float32(types.int32), generate


class _Vectors:
    """Vectors of the elements of an array, in code generation."""

    def __init__(self, context: Any, builder: Any, kind: Any, array: Any, count: int) -> None:
        self._builder, self._size = builder, kind.dtype.bitwidth // 8
        element = ir.FloatType() if kind.dtype.name.startswith("float") else ir.IntType(kind.dtype.bitwidth)
        self.type = ir.VectorType(element, count)
        self._array = context.make_array(kind)(context, builder, array)

    @property
    def stride(self) -> Any:
        return self._builder.extract_value(self._array.shape, 1)

    def load(self, at: Any) -> Any:
        """Load the vector that begins at an element number."""
        vector = self._builder.load(self._pointer(at))
        vector.align = self._size
        return vector

    def store(self, vector: Any, at: Any) -> None:
        self._builder.store(vector, self._pointer(at)).align = self._size

    def _pointer(self, at: Any) -> Any:
        return self._builder.bitcast(self._builder.gep(self._array.data, [at]), self.type.as_pointer())


def _possible(context, builder, costs, double_beta, bounds):  # type: ignore[no-untyped-def]
    """Word that marks which of 64 sites have a cost times ``double_beta`` not above the bound, or NaN."""
    floats, one = ir.VectorType(ir.FloatType(), SITES), ir.VectorType(ir.IntType(32), SITES)
    nothing = ir.Constant(floats, ir.Undefined)
    first = builder.insert_element(nothing, double_beta, ir.Constant(ir.IntType(32), 0))
    everywhere = builder.shuffle_vector(first, nothing, ir.Constant(one, [0] * SITES))
    exponents = builder.fmul(builder.sitofp(costs, floats), everywhere)
    return builder.bitcast(builder.fcmp_unordered("<=", exponents, bounds), _WORD)


def _write_costs(of_spins):  # type: ignore[no-untyped-def]
    """Make code that writes the costs of 64 flips and returns the flips that may be accepted.

    ``of_spins`` takes the builder, the earlier costs and 64 numbers of a row. It returns the costs for set bits of the
    spin word, and for the others.
    """

    def generate(context, builder, signature, args):  # type: ignore[no-untyped-def]
        costs, row, limits = (_Vectors(context, builder, signature.args[k], args[k], SITES) for k in (0, 1, 5))
        spins = builder.bitcast(args[3], ir.VectorType(ir.IntType(1), SITES))
        made = builder.select(spins, *of_spins(builder, costs, row.load(args[2])))
        costs.store(made, _FIRST)
        return _possible(context, builder, made, args[4], limits.load(_FIRST))

    return generate


@intrinsic
def begin_costs(typing_context, costs, fields, first, up, double_beta, bounds):  # type: ignore[no-untyped-def]
    """Write half the ``costs`` (64,) of flips, from ``fields[first:]`` and spins ``up``; return possible flips.

    A flip may be accepted if its cost times ``double_beta``, in float32, does not exceed its bound.
    """
    from numba import types

    generate = _write_costs(lambda builder, _, row: (row, builder.neg(row)))
    return types.uint64(costs, fields, types.int64, types.uint64, types.float32, bounds), generate


@intrinsic
def flip_costs(typing_context, costs, row, first, alike, double_beta, bounds):  # type: ignore[no-untyped-def]
    """Update ``costs`` of 64 sites after the flip of a site whose spin sites ``alike`` had; return possible flips."""
    from numba import types

    def changed(builder, costs, row):  # type: ignore[no-untyped-def]
        before = costs.load(_FIRST)
        return builder.sub(before, row), builder.add(before, row)

    return types.uint64(costs, row, types.int64, types.uint64, types.float32, bounds), _write_costs(changed)


@intrinsic
def add_rows(typing_context, fields, rows, first, at, minus, plus):  # type: ignore[no-untyped-def]
    """Subtract the rows of bits in ``minus``, add those of ``plus``, in a tile of ``fields`` from column ``at`` on."""
    from numba import types

    def generate(context, builder, signature, args):  # type: ignore[no-untyped-def]
        count = TILE // (signature.args[0].dtype.bitwidth // 8)
        target, source = (_Vectors(context, builder, signature.args[k], args[k], count) for k in (0, 1))
        stride = source.stride
        tile = target.load(args[3])
        for word, change in ((args[4], builder.sub), (args[5], builder.add)):
            tile = _with_rows(builder, tile, word, change, source, (args[2], stride, args[3]))
        target.store(tile, args[3])
        return context.get_dummy_value()

    return types.void(fields, rows, types.int64, types.int64, types.uint64, types.uint64), generate


def _with_rows(builder, tile, word, change, source, place):  # type: ignore[no-untyped-def]
    """Loop over the set bits of a word; ``change`` adds each bit's row to the tile, or subtracts it."""
    first, stride, at = place
    before = builder.block
    head, work, done = (builder.append_basic_block(name) for name in ("rows", "row", "done"))
    builder.branch(head)
    builder.position_at_end(head)
    changed, left = builder.phi(tile.type), builder.phi(_WORD)
    changed.add_incoming(tile, before)
    left.add_incoming(word, before)
    builder.cbranch(builder.icmp_unsigned("==", left, _FIRST), done, work)
    builder.position_at_end(work)
    row = builder.add(first, builder.cttz(left, ir.Constant(ir.IntType(1), 1)))
    changed.add_incoming(change(changed, source.load(builder.add(builder.mul(row, stride), at))), work)
    left.add_incoming(builder.and_(left, builder.sub(left, ir.Constant(_WORD, 1))), work)
    builder.branch(head)
    builder.position_at_end(done)
    return changed


LN_2: Final = np.float32(math.log(2))
LN: Final = tuple(
    np.float32(x)
    for x in (
        2.21597645e-07, 0.999970257, -0.499333948, 0.327511728, -0.223966897, 0.131989658, -0.0532674789, 0.0102438284,
    )
)  # fmt: skip
"""ln(1 + x) for x from 0 to 1 as a polynomial, from x^0 up; error at most 3e-7."""
ONE_BITS: Final = np.int32(0x3F800000)
MANTISSA: Final = np.int32(0x7FFFFF)
BIAS_31: Final = np.int32(127 + 31)
MARGIN: Final = np.float32(2.0**-14)  # twice 2^-15, the relative error of a uniform of 2^15 units of 2^-31
SURE: Final = np.float32(11.0)  # exp(-11) > 2^-16, below which a uniform has fewer known bits
NOTHING: Final = np.uint64(0)
ONE: Final = np.uint64(1)
ALL: Final = np.uint64(2**64 - 1)


@part
def log_bounds(uniform):  # type: ignore[no-untyped-def]
    """Replace 31-bit integers u (as floats) by -ln(u 2^-31) + ``MARGIN``; for 0, by more than any relevant exponent."""
    for k in range(uniform.size):
        bits = float_bits(uniform[k])
        power = np.float32((bits >> MANTISSA_BITS_32) - BIAS_31)
        x = as_float((bits & MANTISSA) | ONE_BITS) - np.float32(1.0)
        p = x * LN[7] + LN[6]
        p = p * x + LN[5]
        p = p * x + LN[4]
        p = p * x + LN[3]
        p = p * x + LN[2]
        p = p * x + LN[1]
        p = p * x + LN[0]
        uniform[k] = MARGIN - (power * LN_2 + p)


@part
def draw_bounds(n, bounds, order, colour, block, half_sweep, k0, k1, rounds, call):  # type: ignore[no-untyped-def]
    """Draw -ln u + ``MARGIN`` of n visits for the ``WORDS`` replicas of a Philox call, float32 (WORDS, n).

    ``order`` are the sites; ``colour`` are the times of the visits, in half-sweeps from ``half_sweep`` on.
    """
    of_0, of_1, of_2, of_3 = bounds[0], bounds[1], bounds[2], bounds[3]
    for k in range(n):
        time = half_sweep + np.uint64(colour[k])
        word3 = rng.counter_plane(time, STREAM, call)
        x0, x1, x2, x3 = rng.philox(np.uint64(order[k]), block, rng.low32(time), word3, k0, k1, rounds)
        of_0[k] = np.float32(np.int32(np.uint32(x0) >> HALVE))
        of_1[k] = np.float32(np.int32(np.uint32(x1) >> HALVE))
        of_2[k] = np.float32(np.int32(np.uint32(x2) >> HALVE))
        of_3[k] = np.float32(np.int32(np.uint32(x3) >> HALVE))
    log_bounds(bounds.reshape(WORDS * n))


@part
def word_of_call(word, site, block, time, call, k0, k1, rounds):  # type: ignore[no-untyped-def]
    x0, x1, x2, x3 = rng.philox(site, block, rng.low32(time), rng.counter_plane(time, STREAM, call), k0, k1, rounds)
    low, high = x0 if word == 0 else x1, x2 if word == 2 else x3
    return np.float64(np.uint32(low if word < 2 else high))


@part
def decide(half_cost, double_beta, zero_acceptance, upper, lower):  # type: ignore[no-untyped-def]
    """Return True if a flip is accepted by all 64 bits of its uniform integer, given as two halves."""
    if half_cost < 0:
        return True
    probability = zero_acceptance * TWO32
    if half_cost:
        mantissa, power = exp_reduced(max(-(np.float64(half_cost) * double_beta), -LARGEST_EXPONENT))
        probability = np.ldexp(mantissa, np.int32(power + 32.0))
    top = math.floor(probability)
    return upper < top or (upper == top and lower < math.floor((probability - top) * TWO32))


@kernel
def begin_fields(up, local_fields, rows):  # type: ignore[no-untyped-def]
    """Convert ``local_fields`` (replicas, columns) from all spins -1 to the spins ``up``."""
    for r in range(up.shape[0]):
        for at in range(0, rows.shape[1], TILE // rows.itemsize):
            for b in range(up.shape[1]):
                add_rows(local_fields[r], rows, np.int64(SITES * b), np.int64(at), NOTHING, up[r, b])


@kernel
def energies_from_fields(up, local_fields, fields, energy, magnetization):  # type: ignore[no-untyped-def]
    """Set energies in quanta, -1/2 times the sum of s (local field + h), and magnetisations, both (replicas,)."""
    for r in range(energy.size):
        total, spins = np.int64(0), np.int64(0)
        for k in range(fields.size):
            spin = np.int64((up[r, k // SITES] >> np.uint64(k % SITES)) & ONE) * 2 - 1
            total += spin * (np.int64(local_fields[r, k]) + fields[k])
            spins += spin
        energy[r], magnetization[r] = -(total // 2), spins


@part
def flips_of_block(  # type: ignore[no-untyped-def]
    spins, there, costs, bounds, local_fields, rows, first, double_beta, zero, visits, counter, key
):
    """Return a word of the flips among 64 sites of a replica; each site is visited after the earlier flips.

    ``there`` marks the existing sites of the 64. ``zero`` is the probability of a flip of zero cost and its exponent in
    float32. ``counter`` has counter word 1, the half-sweep, the replica's Philox call and its word in the call.
    """
    # Bit j of a word is site first + j; ``left`` marks sites not yet visited whose flip may be accepted:
    #
    #     bit     63 ... j + 1 | j | j - 1 ... 0
    #     left    later sites  | 1 | 0 ... 0        j is decided next; a 0 is rejected, unless a flip changes its cost
    (block, half_sweep, call, word), (k0, k1, rounds), (order, colour) = counter, key, visits
    (zero_acceptance, zero_exponent), beta_32, flips = zero, np.float32(double_beta), NOTHING
    left = begin_costs(costs, local_fields, first, spins, beta_32, bounds) & there
    while left:
        # The lowest set bit alone, and the bits above it.
        site = left & (~left + ONE)
        later, j = ~(site | (site - ONE)), np.int64(trailing_zeros(left))
        # Two margins below its bound the flip is certain; otherwise all 64 bits decide.
        half_cost, sure = costs[j], min(bounds[j] - np.float32(2) * MARGIN, SURE)
        accepted = (np.float32(half_cost) * beta_32 if half_cost else zero_exponent) < sure
        if not accepted:
            place, time = np.uint64(order[first + j]), half_sweep + np.uint64(colour[first + j])
            upper = word_of_call(word, place, block, time, call, k0, k1, rounds)
            lower = word_of_call(word, place, block, time, call + REFINE, k0, k1, rounds)
            accepted = decide(half_cost, double_beta, zero_acceptance, upper, lower)
        if accepted:
            flips |= site
            # The flip raises or lowers the costs of later sites, by whether their spins equalled this one before.
            alike = spins if spins & site else ~spins
            left = flip_costs(costs, rows[first + j], first, alike, beta_32, bounds) & later & there
        else:
            left &= later
    return flips


@kernel
def sweep_dense(  # type: ignore[no-untyped-def]
    up, local_fields, costs, visits, rows, double_beta, zero_acceptance, counter, key, half_sweep, sweeps
):
    """Update a chunk of replicas of one sample.

    Args:
        up: Spins, uint64 (replicas, blocks of 64), as described at the top of this file; changed in place, like fields.
        visits: Sites in order and the colour of each, both padded with 0 to whole blocks, and the number of colours.
        double_beta: Twice the inverse temperature times the quantum, for every replica.
        counter: Counter word 1, and the Philox call of the chunk's first replica within its block of 128.
    """
    (order, colour, colours), (block, first_call), (k0, k1, rounds) = visits, counter, key
    replicas, sites, tile = up.shape[0], rows.shape[0], TILE // rows.itemsize
    zero = zero_acceptance, np.float32(-math.log(zero_acceptance))
    bounds, flipped = np.empty((WORDS, SITES), np.float32), np.empty(replicas, np.int64)
    minus, plus = np.empty(replicas, np.uint64), np.empty(replicas, np.uint64)
    for _ in range(sweeps):
        for b in range(up.shape[1]):
            first, changed = np.int64(SITES * b), 0
            there = ALL >> np.uint64(max(0, first + SITES - sites))
            own = slice(first, first + SITES)
            for r in range(replicas):
                call, word = first_call + np.uint64(r // WORDS), r % WORDS
                if word == 0:
                    draw_bounds(SITES, bounds, order[own], colour[own], block, half_sweep, k0, k1, rounds, call)
                spins = up[r, b]
                flips = flips_of_block(
                    *(spins, there, costs, bounds[word], local_fields[r], rows, first, double_beta[r], zero),
                    *((order, colour), (block, half_sweep, call, word), (k0, k1, rounds)),
                )
                minus[r], plus[r], up[r, b] = flips & spins, flips & ~spins, spins ^ flips
                flipped[changed] = r
                changed += 1 if flips else 0
            for at in range(0, rows.shape[1], tile):
                for r in flipped[:changed]:
                    add_rows(local_fields[r], rows, first, np.int64(at), minus[r], plus[r])
        half_sweep += np.uint64(colours)


@kernel
def temper_dense(  # type: ignore[no-untyped-def]
    up, local_fields, costs, visits, rows, fields, double_beta, zero_acceptance, ladder, exchanged, sample, key,
    half_sweep, times,
):  # fmt: skip
    """Do rounds for a sample: sweeps of all replicas by ``sweep_dense``, then exchanges of their temperatures."""
    (steps, copies), (before, rounds, sweeps), (k0, k1, rng_rounds) = ladder, times, key
    place, attempts, accepts, trips, last_end = exchanged
    replicas = place.size
    energy, magnetization = np.empty((replicas, 1), np.int64), np.empty(replicas, np.int64)
    for done in range(rounds):
        of_replicas = double_beta[place]
        for first in range(0, replicas, LANES):
            some = slice(first, first + LANES)
            block = rng.counter_block(np.uint64(sample), np.uint64(first // LANES))
            sweep_dense(up[some], local_fields[some], costs, visits, rows, of_replicas[some], zero_acceptance,
                        (block, np.uint64(0)), key, half_sweep, sweeps)  # fmt: skip
        energies_from_fields(up, local_fields, fields, energy[:, 0], magnetization)
        exchange(
            energy, steps, copies, before + done, sample, (k0, k1), rng_rounds, place, attempts, accepts, trips,
            last_end,
        )  # fmt: skip
        half_sweep += np.uint64(sweeps * visits[2])


LINE = 64  # bytes of a cache line, and of the widest vectors
NANOSECONDS = 6  # time of two attempts, which equals that of 128 spins of other updates, the unit of work for threads


def in_lines(shape: tuple[int, ...], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Zeros that begin at a cache line."""
    kind = np.dtype(dtype)
    size = int(np.prod(shape)) * kind.itemsize
    memory = np.zeros(size + LINE, np.uint8)
    first = -memory.ctypes.data % LINE
    return memory[first : first + size].view(kind).reshape(shape)


class Rows:
    """A model in the CPU's form: rows of whole tiles, and orders of whole blocks.

    Attributes:
        order: Sites in the order of visits, uint32, padded with 0 to whole blocks.
        double_couplings: 2 J in quanta, (1 or samples, sites, columns).
        fields: h in quanta, int64 (1 or samples, sites).
        all_down: Local fields if all spins are -1, (1 or samples, columns).
    """

    def __init__(self, model: Ising) -> None:
        plan, sites = DensePlan(model), model.sites
        couplings = plan.double_couplings
        tile, self.sites, self.blocks = TILE // couplings.itemsize, sites, -(-sites // SITES)
        columns = -(-sites // tile) * tile
        self.order, self.colour = np.zeros((2, SITES * self.blocks), np.uint32)
        self.order[:sites], self.colour[:sites], self.colours = plan.order, plan.colour, plan.colours
        self.double_couplings = in_lines((len(couplings), sites, columns), couplings.dtype)
        self.double_couplings[..., :sites] = couplings
        self.fields = plan.fields
        self.all_down = np.zeros((len(plan.all_down), columns), couplings.dtype)
        self.all_down[:, :sites] = plan.all_down

    def of(self, sample: int) -> npt.NDArray[np.signedinteger]:
        return np.asarray(self.double_couplings[sample % len(self.double_couplings)])


class DenseState(InChunks):
    """Bits of spins and their local fields, as described at the top of this file."""

    def __init__(self, model: Ising, replicas: int, dynamics: Dynamics, threads: Threads, rows: Rows) -> None:
        super().__init__(model, replicas, threads, WORDS)
        self._rows = rows
        self.up = np.zeros((model.samples, replicas, rows.blocks), np.uint64)
        self.nbytes = self.up.nbytes
        shape = model.samples, replicas, rows.all_down.shape[1]
        self._fields = in_lines(shape, rows.all_down.dtype)
        self._begun: set[tuple[int, int]] = set()  # chunks with valid local fields
        self._start(dynamics)

    def _set(self, sample: int, first: int, spins: npt.NDArray[np.int8]) -> None:
        spins = spins[:, : self.replicas - first]
        bits = np.zeros((spins.shape[1], SITES * self._rows.blocks), np.bool_)
        bits[:, : self.model.sites] = spins[self._rows.order[: self.model.sites]].T > 0
        words = np.packbits(bits, axis=1, bitorder="little").view("<u8")
        self.up[sample, first : first + spins.shape[1]] = words
        self._begun.clear()

    def worth(self, sweeps: int) -> int:
        return self.model.samples * self.replicas * self.model.sites * sweeps // NANOSECONDS

    def of(self, sample: int, first: int) -> npt.NDArray[np.uint64]:
        """Return the spins of the chunk from replica ``first`` on, (width, blocks), which may be changed."""
        return self.up[sample, first : first + self.size]

    def fields_of(self, sample: int, first: int) -> npt.NDArray[np.signedinteger]:
        """Return the local fields of this chunk, (width, columns), in the order of visits."""
        fields: npt.NDArray[np.signedinteger] = self._fields[sample, first : first + self.size]
        if (sample, first) not in self._begun:
            fields[:] = self._rows.all_down[sample % len(self._rows.all_down)]
            begin_fields(self.of(sample, first), fields, self._rows.of(sample))
            self._begun.add((sample, first))
        return fields

    def all_fields_of(self, sample: int) -> npt.NDArray[np.signedinteger]:
        for first in self.firsts:
            self.fields_of(sample, first)
        return np.asarray(self._fields[sample])

    def words_of(self, samples: slice) -> npt.NDArray[np.uint64]:
        spins = _in_order(self.up[samples], self._rows).swapaxes(1, 2)
        return packing.pack(spins)

    def copy(self, moves: Moves) -> None:
        """Copy configurations, and their local fields in chunks with valid fields."""
        for sample, source, target in zip(*(array.tolist() for array in moves), strict=True):
            self.up[sample, target] = self.up[sample, source]
            if (sample, target - target % self.size) in self._begun:
                self._fields[sample, target] = self.all_fields_of(sample)[source]

    def spins(self, sample: int, replica: int) -> npt.NDArray[np.int8]:
        return self._read(self.up, sample, replica)

    def keep(self) -> tuple[Callable[[slice], None], Spins]:
        keep, copy = room_like(self.up)
        return keep, partial(self._read, copy)

    def _read(self, up: npt.NDArray[np.uint64], sample: int, replica: int) -> npt.NDArray[np.int8]:
        return _in_order(up[sample, replica], self._rows)

    def counts(self, samples: slice | None = None) -> Counts:
        mine = range(self.model.samples)[samples or slice(None)]
        energy = np.zeros((len(mine), self.replicas), np.int64)
        magnetization, rows = np.zeros_like(energy), self._rows

        def count(sample: int, first: int) -> None:
            chunk, fields = slice(first, first + self.size), rows.fields[sample % len(rows.fields)]
            of_chunk = energy[sample - mine.start, chunk], magnetization[sample - mine.start, chunk]
            energies_from_fields(self.of(sample, first), self.fields_of(sample, first), fields, *of_chunk)

        self.each(count, 1, samples)
        return Counts(energy, magnetization, np.zeros_like(energy))


def _in_order(up: npt.NDArray[np.uint64], rows: Rows) -> npt.NDArray[np.int8]:
    """Convert words (..., blocks) to spins (..., sites)."""
    bits = np.unpackbits(up.astype("<u8", copy=False).view(np.uint8), axis=-1, count=rows.sites, bitorder="little")
    spins = np.empty(bits.shape, np.int8)
    spins[..., rows.order[: rows.sites]] = 2 * bits.view(np.int8) - 1
    return spins


def engine(model: Ising, replicas: int, dynamics: Dynamics, threads: int | None = None) -> CpuEngine:
    rows, pool = form_of(model, Rows), Threads(threads)
    state = DenseState(model, replicas, dynamics, pool, rows)
    sweeper = DenseSweeper(model, rows, dynamics, state)
    parts = CpuParts(packing.Packing.UNPACKED, state, sweeper, state.counts, CpuReplicaComparison(model).compare, pool)
    return CpuEngine(model, replicas, dynamics, parts)


class DenseSweeper(ChunkSweeper):
    """A ``CpuSweeper`` of dense models."""

    long_round = 2**16

    def __init__(self, model: Ising, rows: Rows, dynamics: Dynamics, state: DenseState) -> None:
        super().__init__(model, rows.colours, 1, dynamics, state)
        self._rows, self._state = rows, state
        self._keys = (*self._key, dynamics.rng_rounds)

    def _sweep_chunk(
        self, double_beta: npt.NDArray[np.float64], count: int, half_sweep: int, sample: int, first: int
    ) -> None:
        rows, state, (block, lane) = self._rows, self._state, divmod(first, packing.LANES)
        up, couplings = state.of(sample, first), rows.of(sample)
        sweep_dense(
            up, state.fields_of(sample, first), in_lines((SITES,), couplings.dtype),
            (rows.order, rows.colour, rows.colours), couplings,
            double_beta[sample % len(double_beta), 0, first : first + len(up)].copy(), self._dynamics.zero_acceptance,
            (self._dynamics.counter_block(sample, block), np.uint64(lane // WORDS)), self._keys, np.uint64(half_sweep),
            count,
        )  # fmt: skip

    def temper(self, tempering: CpuTempering, times: Times, half_sweep: int, samples: slice) -> None:
        rows = self._rows
        double_beta = UnpackedPlan.double_beta(self._model, tempering.ladder.beta[None])[0, 0]
        for sample in range(samples.start, samples.stop):
            couplings = rows.of(sample)
            temper_dense(
                self._state.up[sample], self._state.all_fields_of(sample), in_lines((SITES,), couplings.dtype),
                (rows.order, rows.colour, rows.colours), couplings, rows.fields[sample % len(rows.fields)],
                double_beta, self._dynamics.zero_acceptance, (tempering.steps, tempering.ladder.copies),
                tempering.of_sample(sample), self._dynamics.first_sample + sample, self._keys, np.uint64(half_sweep),
                times,
            )  # fmt: skip
