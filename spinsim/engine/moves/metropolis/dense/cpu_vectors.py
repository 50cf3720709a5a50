"""What the update of dense models does with 64 sites or a tile of a row at once, as vectors of any machine."""

from __future__ import annotations

from typing import Any, Final

from llvmlite import ir

from spinsim.machine.compiled import intrinsic

SITES: Final = 64
"""Of a block of the sweep: as many as a word has bits."""
TILE: Final = 512
"""Bytes of a row that are kept in registers while others are added to them."""

_WORD: Final = ir.IntType(64)
_FIRST: Final = ir.Constant(_WORD, 0)


@intrinsic
def float_bits(typing_context, x):  # type: ignore[no-untyped-def]
    """The bits of a float32 as int32."""
    from numba import types

    def generate(context, builder, signature, args):  # type: ignore[no-untyped-def]
        return builder.bitcast(args[0], ir.IntType(32))

    return types.int32(types.float32), generate


@intrinsic
def as_float(typing_context, x):  # type: ignore[no-untyped-def]
    """The float32 of such bits."""
    from numba import types

    def generate(context, builder, signature, args):  # type: ignore[no-untyped-def]
        return builder.bitcast(args[0], ir.FloatType())

    return types.float32(types.int32), generate


class _Vectors:
    """Vectors of the elements of an array, as code is written.

    Args:
        context: Of Numba.
        builder: Writes the code.
        kind: Numba's type of the array.
        array: The array itself.
        count: Elements of a vector.
    """

    def __init__(self, context: Any, builder: Any, kind: Any, array: Any, count: int) -> None:
        self._builder, self._size = builder, kind.dtype.bitwidth // 8
        element = ir.FloatType() if kind.dtype.name.startswith("float") else ir.IntType(kind.dtype.bitwidth)
        self.type = ir.VectorType(element, count)
        self._array = context.make_array(kind)(context, builder, array)

    @property
    def stride(self) -> Any:
        """Elements of a row of a matrix."""
        return self._builder.extract_value(self._array.shape, 1)

    def load(self, at: Any) -> Any:
        """The vector whose first element has this number."""
        found = self._builder.load(self._pointer(at))
        found.align = self._size
        return found

    def store(self, vector: Any, at: Any) -> None:
        """Write a vector there."""
        self._builder.store(vector, self._pointer(at)).align = self._size

    def _pointer(self, at: Any) -> Any:
        return self._builder.bitcast(self._builder.gep(self._array.data, [at]), self.type.as_pointer())


def _possible(context, builder, costs, double_beta, bounds):  # type: ignore[no-untyped-def]
    """A word that tells of which of 64 sites the cost times ``double_beta`` is no more than its bound, or is NaN."""
    floats, one = ir.VectorType(ir.FloatType(), SITES), ir.VectorType(ir.IntType(32), SITES)
    nothing = ir.Constant(floats, ir.Undefined)
    first = builder.insert_element(nothing, double_beta, ir.Constant(ir.IntType(32), 0))
    everywhere = builder.shuffle_vector(first, nothing, ir.Constant(one, [0] * SITES))
    exponents = builder.fmul(builder.sitofp(costs, floats), everywhere)
    return builder.bitcast(builder.fcmp_unordered("<=", exponents, bounds), _WORD)


@intrinsic
def begin_costs(typing_context, costs, fields, first, up, double_beta, bounds):  # type: ignore[no-untyped-def]
    """Write half the costs of flips of 64 sites from ``fields[first:]`` and their spins; returns what may flip.

    Args:
        typing_context: Of Numba.
        costs: (64,), of the type of the fields.
        fields: Local fields of a replica.
        first: The first of the sites, int64.
        up: Which of their spins are +1, a word.
        double_beta: Twice the inverse temperature times the quantum, float32.
        bounds: What a cost times ``double_beta`` must not exceed for a flip, float32 (64,).
    """
    from numba import types

    def generate(context, builder, signature, args):  # type: ignore[no-untyped-def]
        made, held, limits = (_Vectors(context, builder, signature.args[k], args[k], SITES) for k in (0, 1, 5))
        there = held.load(args[2])
        spins = builder.bitcast(args[3], ir.VectorType(ir.IntType(1), SITES))
        found = builder.select(spins, there, builder.neg(there))
        made.store(found, _FIRST)
        return _possible(context, builder, found, args[4], limits.load(_FIRST))

    return types.uint64(costs, fields, types.int64, types.uint64, types.float32, bounds), generate


@intrinsic
def flip_costs(typing_context, costs, row, first, alike, double_beta, bounds):  # type: ignore[no-untyped-def]
    """Change the costs of 64 sites by the flip of one of them; returns what may flip then.

    Args:
        typing_context: Of Numba.
        costs: Half the costs of the 64 flips, (64,), as ``begin_costs`` wrote them.
        row: Twice the couplings to the site that flips.
        first: The first of the sites, int64.
        alike: Which of the 64 spins were like its own, a word.
        double_beta: As ``begin_costs`` takes it.
        bounds: As ``begin_costs`` takes them.
    """
    from numba import types

    def generate(context, builder, signature, args):  # type: ignore[no-untyped-def]
        made, held, limits = (_Vectors(context, builder, signature.args[k], args[k], SITES) for k in (0, 1, 5))
        before, change = made.load(_FIRST), held.load(args[2])
        spins = builder.bitcast(args[3], ir.VectorType(ir.IntType(1), SITES))
        found = builder.select(spins, builder.sub(before, change), builder.add(before, change))
        made.store(found, _FIRST)
        return _possible(context, builder, found, args[4], limits.load(_FIRST))

    return types.uint64(costs, row, types.int64, types.uint64, types.float32, bounds), generate


@intrinsic
def add_rows(typing_context, fields, rows, first, at, minus, plus):  # type: ignore[no-untyped-def]
    """Subtract some of 64 rows from ``fields`` and add others, in a tile of columns.

    Args:
        typing_context: Of Numba.
        fields: Of a replica, (columns,).
        rows: All of them, (sites, columns).
        first: The first of the 64, int64.
        at: The first column of the tile, int64.
        minus: Which of them are subtracted, a word.
        plus: Which are added.
    """
    from numba import types

    def generate(context, builder, signature, args):  # type: ignore[no-untyped-def]
        count = TILE // (signature.args[0].dtype.bitwidth // 8)
        target, source = (_Vectors(context, builder, signature.args[k], args[k], count) for k in (0, 1))
        stride = source.stride
        found = target.load(args[3])
        for word, change in ((args[4], builder.sub), (args[5], builder.add)):
            found = _with_rows(builder, found, word, change, source, (args[2], stride, args[3]))
        target.store(found, args[3])
        return context.get_dummy_value()

    return types.void(fields, rows, types.int64, types.int64, types.uint64, types.uint64), generate


def _with_rows(builder, found, word, change, source, place):  # type: ignore[no-untyped-def]
    """A loop over the set bits of a word, of whose rows the tiles change what was ``found``."""
    first, stride, at = place
    before = builder.block
    head, work, done = (builder.append_basic_block(name) for name in ("rows", "row", "done"))
    builder.branch(head)
    builder.position_at_end(head)
    held, left = builder.phi(found.type), builder.phi(_WORD)
    held.add_incoming(found, before)
    left.add_incoming(word, before)
    builder.cbranch(builder.icmp_unsigned("==", left, _FIRST), done, work)
    builder.position_at_end(work)
    row = builder.add(first, builder.cttz(left, ir.Constant(ir.IntType(1), 1)))
    held.add_incoming(change(held, source.load(builder.add(builder.mul(row, stride), at))), work)
    left.add_incoming(builder.and_(left, builder.sub(left, ir.Constant(_WORD, 1))), work)
    builder.branch(head)
    builder.position_at_end(done)
    return held
