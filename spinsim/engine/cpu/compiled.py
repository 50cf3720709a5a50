"""How kernels are compiled, and the one bit operation that NumPy lacks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

F = TypeVar("F", bound=Callable[..., Any])


def kernel(function: F) -> F:
    """Compile an entry point: without the interpreter lock, cached on disk."""
    compiled: F = njit(nogil=True, cache=True, boundscheck=False, error_model="numpy")(function)
    return compiled


def part(function: F) -> F:
    """Compile a piece of a kernel, always inlined: a call inside a loop would stop its vectorisation."""
    compiled: F = njit(nogil=True, boundscheck=False, error_model="numpy", forceinline=True)(function)
    return compiled


@intrinsic
def trailing_zeros(typing_context, word):  # type: ignore[no-untyped-def]
    """Position of the lowest set bit of a nonzero uint64."""

    def generate(context, builder, signature, args):  # type: ignore[no-untyped-def]
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.uint64(types.uint64), generate
