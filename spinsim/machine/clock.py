"""Compiling of kernels: how long it took, which no clock of a search or of a rate counts, and who is told of it."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from typing import Final


class _CompilingTime:
    """Counts the time during which at least one thread compiles or waits for another that does."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._compiling, self._since, self._total = 0, 0.0, 0.0

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        with self._lock:
            if not self._compiling:
                self._since = time.perf_counter()
            self._compiling += 1
        try:
            yield
        finally:
            with self._lock:
                self._compiling -= 1
                if not self._compiling:
                    self._total += time.perf_counter() - self._since

    def seconds(self) -> float:
        with self._lock:
            return self._total + (time.perf_counter() - self._since if self._compiling else 0.0)


_COMPILING: Final = _CompilingTime()
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
    """Tell listeners that a kernel is compiled meanwhile, and count the time as that of compiling.

    Args:
        name: Of the kernel.
        waited_for: True if a run waits; a kernel that is compiled beside it costs no time until it is called.
    """
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


def compiling() -> contextlib.AbstractContextManager[None]:
    """Count what is done meanwhile as the compiling of kernels."""
    return _COMPILING.running()


def compiling_seconds() -> float:
    """Time in which this process has compiled kernels, or read compiled ones from disk, so far."""
    return _COMPILING.seconds()


def seconds_without_compiling() -> float:
    """A clock that stands still while kernels are compiled."""
    return time.perf_counter() - compiling_seconds()
