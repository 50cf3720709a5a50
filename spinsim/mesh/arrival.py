"""An end to the wait for ranks that never arrive, during which MPI lets no thread of Python run."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_WATCH: Final = """
import os, select, signal, sys
seconds, process, words = float(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
if not select.select([0], [], [], seconds)[0]:
    sys.stderr.write(words)
    sys.stderr.flush()
    os.kill(process, signal.SIGKILL)
"""


@contextmanager
def awaited(seconds: float, ranks: int, by: str) -> Iterator[None]:
    """While MPI starts, which waits for all ranks: a small process ends this one when it has waited for so long.

    Args:
        seconds: Most of them.
        ranks: How many were started.
        by: What started them, in words.
    """
    words = (
        f"spinsim: {by} has started {ranks} ranks, of which not all have arrived after {seconds:.0f} s, so that the "
        "job ends: 'spinsim devices' under the same launcher shows who is there\n"
    )
    line = [sys.executable, "-I", "-S", "-c", _WATCH, str(seconds), str(os.getpid()), words]
    # Closing its input ends it, as does the end of this process.
    with subprocess.Popen(line, stdin=subprocess.PIPE):  # noqa: S603  (this Python and words of ours)
        yield
