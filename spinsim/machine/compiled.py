"""Functions that Numba compiles. It is loaded when the first of them is called, as runs on GPUs can do without."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Final, TypeVar

from spinsim.machine.clock import compiling

_LOCK: Final = threading.RLock()
_left_to_python = [2**18]
"""Steps of loops that Python may still take before Numba is loaded, which takes as long as all of them."""
_INLINED: Final[list[Callable[..., Any]]] = []
"""Functions of ``inlined`` that Numba does not know yet."""

Function = TypeVar("Function", bound=Callable[..., Any])


class Compiled:
    """A function that is compiled when it is first called, or used by another one that is.

    Args:
        function: In Python.
        way: Name of the function of machine/compiler.py that makes it one of Numba's.
    """

    def __init__(self, function: Callable[..., Any], way: str) -> None:
        self._function, self._way = function, way
        self._numba: Any = None
        self.__doc__ = function.__doc__

    def __call__(self, *arguments: Any) -> Any:
        """Call the compiled function."""
        return (self._numba if self._numba is not None else self.of_numba())(*arguments)

    def with_steps(self, steps: int, *arguments: Any) -> Any:
        """Call the function, which loops over so many steps: few are left to Python as long as Numba is not loaded."""
        if steps > _left_to_python[0]:
            return self(*arguments)
        _left_to_python[0] -= steps
        return self._function(*arguments)

    def of_numba(self) -> Any:
        """Numba's form of the function."""
        _left_to_python[0] = -1
        with _LOCK, compiling():
            if self._numba is None:
                from spinsim.machine import compiler  # loads Numba, which takes a fifth of a second

                while _INLINED:
                    compiler.make_known(_INLINED.pop())
                self._numba = getattr(compiler, self._way)(self._function)
            return self._numba

    def __getattr__(self, name: str) -> Any:
        """What Numba asks of a function that another one calls."""
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.of_numba(), name)


def kernel(function: Callable[..., Any]) -> Any:
    """Compile an entry point: without the interpreter lock, cached on disk until a source of ``SOURCES`` changes."""
    return Compiled(function, "kernel")


def real_kernel(function: Callable[..., Any]) -> Any:
    """The same where the last bits are free: sums may be reordered and multiply-adds fused."""
    return Compiled(function, "real_kernel")


def part(function: Callable[..., Any]) -> Any:
    """Compile a piece of a kernel, always inlined: a call inside a loop would stop its vectorisation."""
    return Compiled(function, "part")


def body(function: Callable[..., Any]) -> Any:
    """Write a function into the one kernel that calls it, before that is compiled: it is never compiled alone."""
    return Compiled(function, "body")


def inlined(function: Function) -> Function:
    """A part that stays a function of Python too: one source for NumPy and for compiled functions."""
    _INLINED.append(function)
    return function
