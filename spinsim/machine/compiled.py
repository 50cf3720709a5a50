"""Functions that Numba compiles, and the time that compiling takes, which no clock of a search or of a rate counts.

Machine code is kept on disk (``stored.py``); Numba is loaded where it is not there.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final, TypeVar

import numpy as np

from spinsim.machine import stored

_CLOCK: Final = threading.Lock()
_compiling, _since, _total = 0, 0.0, 0.0  # threads that compile or wait for one, since when, and seconds before
COMPILED: Final[list[tuple[str, float]]] = []
"""Names of kernels that this process has compiled and the seconds each took; the CPU's that are on disk are not among
them, those of a GPU are, as CuPy does not say where it has them from."""
_listeners: Final[list[Callable[[bool], None]]] = []
_busy: Final[list[str]] = []


@contextlib.contextmanager
def told_of_compiling(listener: Callable[[bool], None]) -> Iterator[None]:
    """Call a listener with True when compiling begins, and with False when it ends."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


@contextlib.contextmanager
def said_to_compile(name: str, waited_for: bool = True) -> Iterator[None]:
    """Tell listeners that a kernel is compiled meanwhile, and count the time where a run waits for it."""
    with compiling() if waited_for else contextlib.nullcontext():
        began = time.perf_counter()
        _busy.append(name)
        _tell(True)
        try:
            yield
            COMPILED.append((name, time.perf_counter() - began))
        finally:
            _busy.remove(name)
            _tell(bool(_busy))


def _tell(busy: bool) -> None:
    for listener in _listeners:
        listener(busy)


@contextlib.contextmanager
def compiling() -> Iterator[None]:
    """Count what a thread does meanwhile as the compiling of kernels."""
    global _compiling, _since, _total
    with _CLOCK:
        _since = _since if _compiling else time.perf_counter()
        _compiling += 1
    try:
        yield
    finally:
        with _CLOCK:
            _compiling -= 1
            _total += 0.0 if _compiling else time.perf_counter() - _since


def compiling_seconds() -> float:
    """Time in which at least one thread of this process has compiled kernels, or read compiled ones from disk."""
    with _CLOCK:
        return _total + (time.perf_counter() - _since if _compiling else 0.0)


def seconds_without_compiling() -> float:
    """A clock that stands still while kernels are compiled."""
    return time.perf_counter() - compiling_seconds()


_LOCK: Final = threading.RLock()
if hasattr(os, "register_at_fork"):  # a child that is made meanwhile would wait for a thread that it does not have
    os.register_at_fork(before=_LOCK.acquire, after_in_parent=_LOCK.release, after_in_child=_LOCK.release)
_LAYOUT: Final = 0x1 | 0x2 | 0x100 | 0x400  # NumPy's flags of arrays in the order of C or Fortran, aligned, writable
_LARGEST: Final = 2**63 - 1
STEPS_BEFORE_LOADING = 2**15
"""Steps that Python takes of a loop before its machine code is loaded from disk, which takes as long."""
_TO_FURTHER: Final = 4
"""Powers of two by which these steps are fewer where what all machine code needs is loaded already."""
STEPS_BEFORE_COMPILING = 2**19  # steps that Python takes of a loop before it is compiled
_INLINED: Final[list[Callable[..., Any]]] = []  # functions of ``inlined`` that Numba does not know yet

Function = TypeVar("Function", bound=Callable[..., Any])


class Compiled:
    """A function that is compiled when it is first called, or used by another one that is.

    Its ``way`` is a key of ``compiler.WAYS``, or ``intrinsic``.
    """

    def __init__(self, function: Callable[..., Any], way: str) -> None:
        self._function, self._way = function, way
        self._name = f"{function.__module__}.{function.__qualname__}"
        self._is_kept = function.__module__.startswith("spinsim.")  # whose sources are known
        self._numba: Any = None
        self._entry_point: Any = None
        self._entries: dict[tuple[Any, ...], Callable[..., Any]] = {}
        self._by_types: dict[str, Callable[..., Any]] = {}
        self._steps = 0  # so far
        self._looked_at = 0  # steps when machine code was last looked for
        self.__doc__ = function.__doc__

    def __call__(self, *arguments: Any) -> Any:
        entry = self._entries.get(_kinds(arguments))
        return (entry or self._entry(arguments))(*arguments)

    def given(self, *constants: Any) -> Callable[..., Any]:
        """Return the function with its first arguments, whose types are then looked at but once."""
        kinds, entries = _kinds(constants), self._entries

        def call(*others: Any) -> Any:
            arguments = constants + others
            return (entries.get(kinds + _kinds(others)) or self._entry(arguments))(*arguments)

        return call

    def with_steps(self, steps: int, *arguments: Any) -> Any:
        """Call the function, which loops over so many steps: the first ones are left to Python."""
        if self._entries:
            return self(*arguments)
        self._steps += steps
        is_little = self._steps <= STEPS_BEFORE_LOADING >> (_TO_FURTHER if stored.has_loaded() else 0)
        if not is_little and self._steps <= STEPS_BEFORE_COMPILING:
            is_little = not self._is_on_disk(arguments)
        return (self._function if is_little else self)(*arguments)

    def _is_on_disk(self, arguments: tuple[Any, ...]) -> bool:
        """Look for machine code, which takes as long as a small problem, each time that steps have doubled."""
        if not self._is_kept or self._steps < 2 * self._looked_at:
            return False
        self._looked_at = self._steps
        return stored.is_there(self._name, _types(arguments))

    def _entry(self, arguments: tuple[Any, ...]) -> Callable[..., Any]:
        with _LOCK, compiling():
            types = _types(arguments)
            if types not in self._by_types:
                stored_code = stored.find(self._name, types) if self._is_kept else None
                self._by_types[types] = stored_code or self._compiled(arguments, types)
            entry = self._entries[_kinds(arguments)] = self._by_types[types]
            return entry

    def _compiled(self, arguments: tuple[Any, ...], types: str) -> Callable[..., Any]:
        from spinsim.machine import compiler  # loads Numba, which takes a fifth of a second

        with said_to_compile(self._name):
            compiler.learn(_INLINED)
            if self._entry_point is None:
                self._entry_point = compiler.entry_point(self._function, self._way)
            entry, code = compiler.compiled_for(self._entry_point, arguments)
            if code is not None and self._is_kept:
                stored.keep(self._name, types, code)
        return entry

    def of_numba(self) -> Any:
        with _LOCK:
            if self._numba is None:
                from spinsim.machine import compiler

                compiler.learn(_INLINED)
                self._numba = compiler.of_numba(self._function, self._way)
            return self._numba

    def __getattr__(self, name: str) -> Any:
        """Attributes of the function of Numba, for one that calls this one."""
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.of_numba(), name)


def forget(kernel: Compiled) -> None:
    kernel._entries.clear()
    kernel._by_types.clear()


def _kinds(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return a key that is the same for arguments that the same machine code takes."""
    key: list[Any] = []
    for value in arguments:
        kind = type(value)
        if kind is int:
            key.append(kind if value <= _LARGEST else "uint64")
        elif isinstance(value, np.ndarray):
            key += value.dtype, value.ndim, value.flags.num & _LAYOUT
        elif isinstance(value, tuple):
            key += kind, len(value), *_kinds(value)
        else:
            key.append(kind)
    return tuple(key)


def _types(value: Any) -> str:
    """Write the types of arguments, which decide about their machine code, in a way that all processes share."""
    if isinstance(value, tuple):
        name = "" if type(value) is tuple else type(value).__qualname__
        return f"{name}({','.join(map(_types, value))})"
    if isinstance(value, np.ndarray):
        flags = value.flags
        order = "C" if flags.c_contiguous else "F" if flags.f_contiguous else "A"
        rest = "" if flags.aligned and flags.writeable else f"{flags.aligned:d}{flags.writeable:d}"
        return f"{value.dtype.str}{value.ndim}{order}{rest}"
    if isinstance(value, bool | np.bool_):
        return "bool"
    if isinstance(value, int):
        return "int64" if value <= _LARGEST else "uint64"
    return "float64" if isinstance(value, float) else type(value).__name__


kernel: Callable[..., Any] = partial(Compiled, way="kernel")
"""Makes a function an entry point: without the interpreter lock, kept on disk until one of the sources changes."""
real_kernel: Callable[..., Any] = partial(Compiled, way="real_kernel")
"""Makes an entry point whose last bits are free: sums may be reordered and multiply-adds fused."""
part: Callable[..., Any] = partial(Compiled, way="part")
"""Makes a piece of a kernel, always inlined: a call inside a loop would stop its vectorisation."""
step: Callable[..., Any] = partial(Compiled, way="step")
"""Makes a part of a hot loop that makes and returns no arrays: references to its caller's are not counted."""
body: Callable[..., Any] = partial(Compiled, way="body")
"""Has a function written into the one kernel that calls it, before that is compiled: it is never compiled alone."""
intrinsic: Callable[..., Any] = partial(Compiled, way="intrinsic")
"""Makes an operation for compiled functions, whose definition gives its types and writes its code as Numba asks."""


def inlined(function: Function) -> Function:
    """A part that stays a function of Python too: one source for NumPy and for compiled functions."""
    _INLINED.append(function)
    return function
