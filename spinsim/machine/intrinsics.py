"""Bit operations that NumPy lacks, and arrays that are not counted, for functions that Numba compiles."""

from __future__ import annotations

from spinsim.machine.compiled import intrinsic


@intrinsic
def trailing_zeros(typing_context, word):  # type: ignore[no-untyped-def]
    """Position of the lowest set bit of a nonzero uint64."""
    from llvmlite import ir
    from numba import types

    def generate(context, builder, signature, args):  # type: ignore[no-untyped-def]
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.uint64(types.uint64), generate


@intrinsic
def borrowed(typing_context, array):  # type: ignore[no-untyped-def]
    """The same array without a count of references, whose owner must live longer.

    Atomic instructions that count the references of slices and arguments cost more than what is done with a few words.
    """
    from llvmlite import ir

    def generate(context, builder, signature, args):  # type: ignore[no-untyped-def]
        struct = context.make_array(signature.return_type)(context, builder, args[0])
        struct.meminfo = ir.Constant(struct.meminfo.type, None)
        return struct._getvalue()

    return array(array), generate


@intrinsic
def set_bits(typing_context, word):  # type: ignore[no-untyped-def]
    """Number of set bits of a uint64."""
    from numba import types

    def generate(context, builder, signature, args):  # type: ignore[no-untyped-def]
        return builder.ctpop(args[0])

    return types.uint64(types.uint64), generate


@intrinsic
def leading_zeros(typing_context, word):  # type: ignore[no-untyped-def]
    """Number of clear bits above the highest set one of a nonzero uint64."""
    from llvmlite import ir
    from numba import types

    def generate(context, builder, signature, args):  # type: ignore[no-untyped-def]
        return builder.ctlz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.uint64(types.uint64), generate
