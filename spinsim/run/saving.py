"""When a run is saved: every so often, and when it is asked to stop."""

from __future__ import annotations

import contextlib
import math
import signal
import threading
import time
from collections.abc import Iterator
from types import FrameType
from typing import Final


class Saving:
    """Says when to save.

    Args:
        every: Seconds between checkpoints.

    Attributes:
        asked_to_stop: True once SIGINT, SIGTERM or SIGHUP has come.
    """

    def __init__(self, every: float) -> None:
        self._every, self._last = every, time.monotonic()
        self.asked_to_stop = False

    def due(self) -> bool:
        """Return True if it is time for a checkpoint."""
        return self.asked_to_stop or time.monotonic() - self._last >= self._every

    def saved(self) -> None:
        """A checkpoint was written: leave if that was asked for.

        Raises:
            KeyboardInterrupt: where it was.
        """
        self._last = time.monotonic()
        if self.asked_to_stop:
            raise KeyboardInterrupt

    @contextlib.contextmanager
    def on_signals(self) -> Iterator[None]:
        """The first SIGINT, SIGTERM or SIGHUP asks to save and stop, the second stops at once.

        A hang-up that is ignored already, as under nohup, stays ignored.
        """
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def ask(number: int, frame: FrameType | None) -> None:
            if self.asked_to_stop:
                raise KeyboardInterrupt
            self.asked_to_stop = True

        numbers = [signal.SIGINT, signal.SIGTERM]
        if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
            numbers.append(signal.SIGHUP)
        before = {number: signal.signal(number, ask) for number in numbers}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


NEVER: Final = Saving(math.inf)
"""Saving of a run without a file: never."""
