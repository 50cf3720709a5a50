"""Bit operations that NumPy lacks, and arrays without reference counts, for functions that Numba compiles."""

from __future__ import annotations

from typing import Any

from spinsim.machine.compiled import intrinsic


def _of_word(name: str, *others: int) -> Any:
    """Return an operation on a uint64 by its name in LLVM's builder; ``others`` are its further one-bit arguments."""

    def operation(typing_context, word):  # type: ignore[no-untyped-def]
        from llvmlite import ir
        from numba import types

        def generate(context, builder, signature, args):  # type: ignore[no-untyped-def]
            return getattr(builder, name)(args[0], *(ir.Constant(ir.IntType(1), bit) for bit in others))

        return types.uint64(types.uint64), generate

    return intrinsic(operation)


trailing_zeros: Any = _of_word("cttz", 1)  # position of the lowest set bit of a nonzero word
leading_zeros: Any = _of_word("ctlz", 1)  # number of clear bits above the highest set bit of a nonzero word
set_bits: Any = _of_word("ctpop")  # number of set bits


@intrinsic
def borrowed(typing_context, array):  # type: ignore[no-untyped-def]
    """Return the same array without a reference count; its owner must live longer.

    Atomic instructions that count references of slices and arguments cost more than the work on a few words.
    """
    from llvmlite import ir

    def generate(context, builder, signature, args):  # type: ignore[no-untyped-def]
        struct = context.make_array(signature.return_type)(context, builder, args[0])
        struct.meminfo = ir.Constant(struct.meminfo.type, None)
        return struct._getvalue()

    return array(array), generate


@intrinsic
def scan_ring(typing_context, row, opened):  # type: ignore[no-untyped-def]
    """Pass bits of ``row`` on along a ring of groups of 8 words, once up and once down; group k is open to k + 1.

    Both are uint64 (8 * groups,). The code uses the processor's vectors. A loop over words would not be vectorised,
    because each group depends on the previous one.
    """
    from llvmlite import ir
    from numba import types
    from numba.core import cgutils as of_numba

    cgutils: Any = of_numba

    def generate(context, builder, signature, args):  # type: ignore[no-untyped-def]
        kind = ir.VectorType(ir.IntType(64), 8)
        arrays = [context.make_array(of)(context, builder, each) for of, each in zip(signature.args, args, strict=True)]
        rows, gates = (builder.bitcast(array.data, kind.as_pointer()) for array in arrays)
        length = builder.extract_value(arrays[0].shape, 0)
        one, zero = (ir.Constant(length.type, number) for number in (1, 0))
        groups = builder.lshr(length, ir.Constant(length.type, 3))
        last = builder.sub(groups, one)

        def load(base: Any, at: Any) -> Any:
            return builder.load(builder.gep(base, [at]), align=8)

        carry = cgutils.alloca_once_value(builder, builder.and_(load(rows, last), load(gates, last)))
        with cgutils.for_range(builder, groups) as loop:
            reached = builder.or_(load(rows, loop.index), builder.load(carry))
            builder.store(reached, builder.gep(rows, [loop.index]), align=8)
            builder.store(builder.and_(reached, load(gates, loop.index)), carry)
        builder.store(load(rows, zero), carry)
        with cgutils.for_range(builder, groups) as loop:
            at = builder.sub(last, loop.index)
            reached = builder.or_(load(rows, at), builder.and_(builder.load(carry), load(gates, at)))
            builder.store(reached, builder.gep(rows, [at]), align=8)
            builder.store(reached, carry)
        return context.get_dummy_value()

    return types.none(row, opened), generate
