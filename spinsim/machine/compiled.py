"""Functions that Numba compiles. Machine code is kept on disk; Numba is loaded where it is not there."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Final, TypeVar

import numpy as np

from spinsim.machine import stored
from spinsim.machine.clock import compiling, said_to_compile

_LOCK: Final = threading.RLock()
STEPS_BEFORE_LOADING: Final = 2**15
"""Steps that Python takes of a loop before its machine code is loaded from disk, which takes as long."""
STEPS_BEFORE_COMPILING: Final = 2**19
"""Those before it is compiled."""
_INLINED: Final[list[Callable[..., Any]]] = []
"""Functions of ``inlined`` that Numba does not know yet."""
_LAYOUT: Final = 0x1 | 0x2 | 0x100 | 0x400
"""NumPy's flags of arrays in the order of C or Fortran, aligned, writable."""
_NUMBERS: Final = {bool: "bool", np.bool_: "bool", float: "float64", np.float64: "float64", np.int64: "int64"}

Function = TypeVar("Function", bound=Callable[..., Any])
Kind = Any


class Compiled:
    """A function that is compiled when it is first called, or used by another one that is.

    Args:
        function: In Python.
        way: Name of the function of machine/compiler.py that makes it one of Numba's.
    """

    def __init__(self, function: Callable[..., Any], way: str) -> None:
        self._function, self._way = function, way
        self._name = f"{function.__module__}.{function.__qualname__}"
        self._is_kept = function.__module__.startswith("spinsim.")  # whose sources are known
        self._numba: Any = None
        self._entries: dict[tuple[Kind, ...], Callable[..., Any]] = {}
        self._steps = 0
        self.__doc__ = function.__doc__

    def __call__(self, *arguments: Any) -> Any:
        """Call the compiled function."""
        entry = self._entries.get(tuple(map(_kind, arguments)))
        return (entry or self._entry(arguments))(*arguments)

    def with_steps(self, steps: int, *arguments: Any) -> Any:
        """Call the function, which loops over so many steps: the first ones are left to Python."""
        kinds = tuple(map(_kind, arguments))
        if kinds not in self._entries and self._steps + steps <= STEPS_BEFORE_COMPILING:
            self._steps += steps
            if self._steps <= STEPS_BEFORE_LOADING or not self._is_there(kinds):
                return self._function(*arguments)
        return self(*arguments)

    def _entry(self, arguments: tuple[Any, ...]) -> Callable[..., Any]:
        """Machine code for arguments of these types: from disk, or else compiled and written there."""
        kinds = tuple(map(_kind, arguments))
        with compiling(), _LOCK:
            if kinds not in self._entries:
                types = _as_text(kinds)
                entry = stored.find(self._name, types) if self._is_kept else None
                self._entries[kinds] = entry or self._compiled(arguments, types)
            return self._entries[kinds]

    def _is_there(self, kinds: tuple[Kind, ...]) -> bool:
        return self._is_kept and stored.is_there(self._name, _as_text(kinds))

    def _compiled(self, arguments: tuple[Any, ...], types: str) -> Callable[..., Any]:
        with said_to_compile(self._name):
            from spinsim.machine import compiler  # loads Numba, which takes a fifth of a second

            entry, code = compiler.compiled_for(self.of_numba(), arguments)
            if code is not None and self._is_kept:
                stored.keep(self._name, types, code)
        return entry

    def of_numba(self) -> Any:
        """Numba's form of the function."""
        with _LOCK:
            if self._numba is None:
                from spinsim.machine import compiler

                while _INLINED:
                    compiler.make_known(_INLINED.pop())
                self._numba = getattr(compiler, self._way)(self._function)
            return self._numba

    def __getattr__(self, name: str) -> Any:
        """What Numba asks of a function that another one calls."""
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.of_numba(), name)


def _kind(value: Any) -> Kind:
    """Return a hashable for the type of an argument that decides which machine code takes it."""
    kind = type(value)
    if kind is np.ndarray:
        return value.dtype, value.ndim, value.flags.num & _LAYOUT
    if kind is int:
        return "int64" if -(2**63) <= value < 2**63 else "uint64"
    if isinstance(value, tuple):
        return kind, *map(_kind, value)
    if isinstance(value, np.ndarray):
        return value.dtype, value.ndim, value.flags.num & _LAYOUT
    return _NUMBERS.get(kind, kind)


def _as_text(kind: Kind) -> str:
    """Write a kind, or a tuple of kinds, in a way that all processes share."""
    if isinstance(kind, tuple):
        return f"({','.join(map(_as_text, kind))})"
    if isinstance(kind, np.dtype):
        return kind.str
    return f"{kind.__module__}.{kind.__qualname__}" if isinstance(kind, type) else str(kind)


def kernel(function: Callable[..., Any]) -> Any:
    """Compile an entry point: without the interpreter lock, kept on disk until one of the sources changes."""
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


def intrinsic(definition: Callable[..., Any]) -> Any:
    """Make an operation for compiled functions, whose definition gives its types and writes its code as Numba asks."""
    return Compiled(definition, "intrinsic")


def inlined(function: Function) -> Function:
    """A part that stays a function of Python too: one source for NumPy and for compiled functions."""
    _INLINED.append(function)
    return function
