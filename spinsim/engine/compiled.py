"""How kernels are compiled, and the one bit operation that NumPy lacks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic


def kernel(function: Callable[..., Any]) -> Any:
    """Compile an entry point: without the interpreter lock, cached on disk."""
    return njit(nogil=True, cache=True, boundscheck=False, error_model="numpy")(function)


def part(function: Callable[..., Any]) -> Any:
    """Compile a piece of a kernel, always inlined: a call inside a loop would stop its vectorisation."""
    return njit(nogil=True, boundscheck=False, error_model="numpy", forceinline=True)(function)


def _trailing_zeros(typing_context, word):  # type: ignore[no-untyped-def]
    """Position of the lowest set bit of a nonzero uint64."""

    def generate(context, builder, signature, args):  # type: ignore[no-untyped-def]
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.uint64(types.uint64), generate


trailing_zeros: Any = intrinsic(_trailing_zeros)
