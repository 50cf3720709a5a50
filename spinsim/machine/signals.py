"""Signals by which users and batch systems ask a run to save itself and stop."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Final

_ALWAYS: Final = ("SIGINT", "SIGTERM")
_UNLESS_USED: Final = ("SIGHUP", "SIGUSR1", "SIGUSR2")  # batch systems send the last two ahead of a time limit
STOPPING: Final = [getattr(signal, name) for name in _ALWAYS + _UNLESS_USED if hasattr(signal, name)]


@contextlib.contextmanager
def stopping_on_signals(stop: Callable[[], None]) -> Iterator[None]:
    """Call ``stop`` for each signal that asks to stop, in the main thread; other threads hear none.

    A hang-up that is ignored, as under nohup, stays ignored, and a program's own handlers of it and of the signals for
    users stay where they are.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def handler(number: int, frame: FrameType | None) -> None:
        stop()

    free = [n for n in STOPPING if n.name in _ALWAYS or signal.getsignal(n) is signal.SIG_DFL]
    before = {number: signal.signal(number, handler) for number in free}
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)


def ignore() -> None:
    """Leave the decision when to stop to another process, which the same signals tell."""
    for number in STOPPING:
        signal.signal(number, signal.SIG_IGN)
