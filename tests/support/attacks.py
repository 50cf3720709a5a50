"""What the attacking tests share: a time limit for each case, nasty words, and a picture of a folder."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Final

NUMBERS: Final = [
    "0", "-0", "1", "2", "3", "-1", "0.5", "1e17", "1e-17", "1e-30", "1e-320", "1e300", "1e400", "-1e400", "nan", "inf",
    "-inf", "2147483647", "2147483648", "18446744073709551616", "9" * 400, "0x10", "1_0", "1e", "٣", "½", "1,5", "+2",
]  # fmt: skip
"""Words in the place of a number."""


class TooSlowError(BaseException):
    """A case took longer than it may; no handler of exceptions takes it for its own."""


@contextlib.contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """End what takes longer; without effect where there are no timers or in another thread."""
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: FrameType | None) -> None:
        raise TooSlowError(f"longer than {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def picture(folder: Path) -> dict[str, tuple[int, int, int]]:
    """Everything below a folder: inode, size and time of change."""
    found = {}
    for where, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = os.path.join(where, name)
            known = os.lstat(path)
            time = 0 if name in folders else known.st_mtime_ns
            found[os.path.relpath(path, folder)] = (known.st_ino, 0 if name in folders else known.st_size, time)
    return found
