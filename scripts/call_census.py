"""Count the files and functions of spinsim that small runs pass through, as a reader of the code would meet them.

python scripts/call_census.py [--list]
"""

from __future__ import annotations

import os
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import spinsim as ss

PACKAGE = str(Path(ss.__file__).parent)
MODEL = ss.EdwardsAnderson(ss.square(8), samples=2, seed=1)
RUNS: dict[str, Callable[[str | None], Any]] = {
    "temper": lambda out: ss.temper(
        MODEL, "1:2:3", sweeps=200, thermalize=50, seed=1, device="cpu", threads=1, out=out
    ),
    "anneal": lambda out: ss.anneal(MODEL, [3.0, 2.0, 1.0], sweeps=10, seed=1, device="cpu", threads=1, out=out),
}


def census(call: Callable[[], Any]) -> set[tuple[str, str]]:
    """The file and the name of each function of the package that a call enters."""
    met: set[tuple[str, str]] = set()

    def enter(frame: FrameType, event: str, argument: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(PACKAGE):
            met.add((os.path.relpath(code.co_filename, PACKAGE), code.co_qualname))

    threading.setprofile(enter)
    sys.setprofile(enter)
    try:
        call()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
    return met


def main() -> None:
    """Print the counts of each run, in memory and into a file; with --list the names too."""
    for name, run in RUNS.items():
        run(None)  # imports and compiles
        with tempfile.TemporaryDirectory() as folder:
            for where, out in (("in memory", None), ("into a file", str(Path(folder, "run.h5")))):
                met = census(lambda run=run, out=out: run(out))  # type: ignore[misc]
                files = sorted({file for file, _ in met})
                sys.stdout.write(f"{name:8} {where:12} {len(files):3} files, {len(met):3} functions\n")
                if "--list" in sys.argv:
                    for file in files:
                        sys.stdout.write(f"  {file:55} {', '.join(sorted(one for at, one in met if at == file))}\n")


if __name__ == "__main__":
    main()
