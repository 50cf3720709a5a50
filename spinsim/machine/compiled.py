"""Functions that Numba compiles, and the time of compilation, which clocks of searches and rates exclude.

Machine code is kept on disk (``stored.py``); Numba is loaded only if the code is missing there.
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
_compiling, _since, _total = 0, 0.0, 0.0  # compiling or waiting threads, since when, earlier seconds
COMPILED: Final[list[tuple[str, float]]] = []
"""Names of kernels that this process has compiled, with the seconds each took. CPU kernels that were found on disk are
left out; GPU kernels are always included, because CuPy does not report their origin."""
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
    """Tell listeners and the log that a kernel is compiled in this block; count the time if a run waits for it."""
    import logging  # compiling takes longer than this

    logging.getLogger("spinsim").info("compiling %s", name)
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
    """Count the time of this block as compilation."""
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
    """Time in which at least one thread of this process compiled kernels, or read compiled ones from disk."""
    with _CLOCK:
        return _total + (time.perf_counter() - _since if _compiling else 0.0)


def seconds_without_compiling() -> float:
    """Read a clock that stands still while kernels are compiled."""
    return time.perf_counter() - compiling_seconds()


_LOCK: Final = threading.RLock()
if hasattr(os, "register_at_fork"):  # a child forked while the lock is held would wait for a thread that it lacks
    os.register_at_fork(before=_LOCK.acquire, after_in_parent=_LOCK.release, after_in_child=_LOCK.release)
_LAYOUT: Final = 0x1 | 0x2 | 0x100 | 0x400  # NumPy's flags for arrays in C or Fortran order, aligned, writable
_LARGEST: Final = 2**63 - 1
STEPS_BEFORE_LOADING = 2**15
"""Steps of a loop that Python does before machine code is loaded from disk, which takes as long."""
_TO_FURTHER: Final = 4
"""Power of two by which these steps are reduced once the libraries that all machine code needs are loaded."""
STEPS_BEFORE_COMPILING = 2**19  # steps of a loop that Python does before it is compiled
_INLINED: Final[list[Callable[..., Any]]] = []  # functions of ``inlined`` that Numba does not know yet

Function = TypeVar("Function", bound=Callable[..., Any])


class Compiled:
    """A function that is compiled at its first call, or when another compiled function uses it.

    ``way`` is a key of ``compiler.WAYS``, or ``intrinsic``.
    """

    def __init__(self, function: Callable[..., Any], way: str) -> None:
        self._function, self._way = function, way
        self._name = f"{function.__module__}.{function.__qualname__}"
        self._is_kept = function.__module__.startswith("spinsim.")  # only these have known sources
        self._numba: Any = None
        self._entry_point: Any = None
        self._entries: dict[tuple[Any, ...], Callable[..., Any]] = {}
        self._by_types: dict[str, Callable[..., Any]] = {}
        self._steps = 0  # so far
        self._looked_at = 0  # steps at the last search for machine code
        self.__doc__ = function.__doc__

    def __call__(self, *arguments: Any) -> Any:
        entry = self._entries.get(_kinds(arguments))
        return (entry or self._entry(arguments))(*arguments)

    def given(self, *constants: Any) -> Callable[..., Any]:
        """Return the function with its first arguments fixed, so that their types are checked only once."""
        kinds, entries = _kinds(constants), self._entries

        def call(*others: Any) -> Any:
            arguments = constants + others
            return (entries.get(kinds + _kinds(others)) or self._entry(arguments))(*arguments)

        return call

    def with_steps(self, steps: int, *arguments: Any) -> Any:
        """Call the function, which loops over ``steps`` steps. Python does the first steps of all calls."""
        if self._entries:
            return self(*arguments)
        self._steps += steps
        is_little = self._steps <= STEPS_BEFORE_LOADING >> (_TO_FURTHER if stored.has_loaded() else 0)
        if not is_little and self._steps <= STEPS_BEFORE_COMPILING:
            is_little = not self._is_on_disk(arguments)
        return (self._function if is_little else self)(*arguments)

    def _is_on_disk(self, arguments: tuple[Any, ...]) -> bool:
        """Look for machine code, but only after steps have doubled, because it takes as long as a small problem."""
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
        """Return attributes of the Numba function, for a compiled function that calls this one."""
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.of_numba(), name)


def forget(kernel: Compiled) -> None:
    kernel._entries.clear()
    kernel._by_types.clear()


def _kinds(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return a key that is equal for arguments that share machine code."""
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
    """Return the types of arguments, which determine their machine code, as text that is equal in all processes."""
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
"""Decorator of an entry point: releases the interpreter lock, and is kept on disk until one of the sources changes."""
real_kernel: Callable[..., Any] = partial(Compiled, way="real_kernel")
"""Decorator of an entry point with free last bits: sums may be reordered and multiply-adds fused."""
part: Callable[..., Any] = partial(Compiled, way="part")
"""Decorator of a piece of a kernel, always inlined: a call inside a loop would prevent vectorisation."""
step: Callable[..., Any] = partial(Compiled, way="step")
"""Decorator of a part of a hot loop that creates and returns no arrays: references to the caller's are not counted."""
body: Callable[..., Any] = partial(Compiled, way="body")
"""Decorator of a function that is inlined in its only caller before compilation, and is never compiled separately."""
intrinsic: Callable[..., Any] = partial(Compiled, way="intrinsic")
"""Decorator of an operation for compiled functions; its definition returns types and a code generator, as in Numba."""


def inlined(function: Function) -> Function:
    """Mark a part that also stays a Python function: one source for NumPy and for compiled functions."""
    _INLINED.append(function)
    return function
