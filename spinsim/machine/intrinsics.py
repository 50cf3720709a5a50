"""Bit operations that NumPy lacks, and arrays that are not counted, for functions that Numba compiles."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numba.np.arrayobj import make_array


def _trailing_zeros(typing_context, word):  # type: ignore[no-untyped-def]
    """Position of the lowest set bit of a nonzero uint64."""

    def generate(context, builder, signature, args):  # type: ignore[no-untyped-def]
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.uint64(types.uint64), generate


trailing_zeros: Any = intrinsic(_trailing_zeros)


def _borrowed(typing_context, array):  # type: ignore[no-untyped-def]
    """The same array without a count of references, whose owner must live longer.

    Atomic instructions that count the references of slices and arguments cost more than what is done with a few words.
    """

    def generate(context, builder, signature, args):  # type: ignore[no-untyped-def]
        found = make_array(signature.return_type)(context, builder, args[0])  # type: ignore[no-untyped-call]
        found.meminfo = ir.Constant(found.meminfo.type, None)
        return found._getvalue()

    return array(array), generate


borrowed: Any = intrinsic(_borrowed)


def _set_bits(typing_context, word):  # type: ignore[no-untyped-def]
    """Number of set bits of a uint64."""

    def generate(context, builder, signature, args):  # type: ignore[no-untyped-def]
        return builder.ctpop(args[0])

    return types.uint64(types.uint64), generate


set_bits: Any = intrinsic(_set_bits)
