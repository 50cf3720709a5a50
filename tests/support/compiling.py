"""The CPU's kernels, compiled once by all workers together: in a fresh checkout each would else compile all of them."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import spinsim as ss

LIMIT = 300  # seconds to wait for what others compile


def _anneal(model: ss.Ising) -> None:
    ss.anneal(model, [2.0], sweeps=1, replicas=2)


def _temper(model: ss.Ising) -> None:
    ss.temper(model, [2.0, 3.0], sweeps=20, thermalize=0)


RUNS: dict[str, Callable[[], object]] = {
    "two-terms": lambda: _temper(ss.EdwardsAnderson(ss.square(4), couplings_along=(1, 0.5))),
    "site-packed": lambda: _temper(ss.EdwardsAnderson(ss.square(256, 2))),
    "unpacked": lambda: _temper(ss.EdwardsAnderson(ss.square(4), couplings="gaussian")),
    "wide-integers": lambda: _temper(ss.Ising(ss.square(4), np.linspace(1, 1e9, 32))),
    "dense": lambda: _anneal(ss.Ising(ss.Graph(130, np.column_stack(np.triu_indices(130, 1))), np.arange(8385) % 3)),
    "transfer": lambda: [ss.transfer(ss.EdwardsAnderson(layer), k=0.3) for layer in (ss.chain(4), ss.square(3))],
    "replica-packed": lambda: _anneal(ss.EdwardsAnderson(ss.cubic(4))),
    "tempering": lambda: _temper(ss.EdwardsAnderson(ss.cubic(4))),
}
"""Small runs that need about all kernels; neighbours share pieces, and the first and the last take longest."""


def compile_together(folder: Path, worker: int) -> None:
    """Do the runs that no other worker has begun, then wait until all are done; ``folder`` belongs to all workers.

    Workers of odd numbers begin at the end of the list.
    """
    for name, run in list(RUNS.items())[:: 1 - worker % 2 * 2]:
        try:
            (folder / f"{name}.begun").touch(exist_ok=False)
        except FileExistsError:
            continue
        try:
            with contextlib.suppress(Exception):  # a kernel that fails is the business of its tests
                run()
        finally:
            (folder / f"{name}.done").touch()
    until = time.monotonic() + LIMIT
    while not all((folder / f"{name}.done").exists() for name in RUNS) and time.monotonic() < until:
        time.sleep(0.1)
