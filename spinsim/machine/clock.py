"""Compiling of kernels: how long it took, which no clock of a search or of a rate counts, and who is told of it."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from typing import Final

_lock: Final = threading.Lock()
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
    with _lock:
        _since = _since if _compiling else time.perf_counter()
        _compiling += 1
    try:
        yield
    finally:
        with _lock:
            _compiling -= 1
            _total += 0.0 if _compiling else time.perf_counter() - _since


def compiling_seconds() -> float:
    """Time in which at least one thread of this process has compiled kernels, or read compiled ones from disk."""
    with _lock:
        return _total + (time.perf_counter() - _since if _compiling else 0.0)


def seconds_without_compiling() -> float:
    """A clock that stands still while kernels are compiled."""
    return time.perf_counter() - compiling_seconds()
