"""The CPU's kernels, compiled once by all workers together: in a fresh checkout each would else compile all of them."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import spinsim as ss
from spinsim.engine import Dynamics, create_engine

LIMIT = 300  # seconds to wait for what others compile


def _sweep(model: ss.Ising, replicas: int = 64) -> None:
    engine = create_engine(model, replicas, Dynamics(), "cpu", 1)
    engine.set_beta(0.5)
    engine.sweep(1)
    engine.counts()


def _anneal(model: ss.Ising) -> None:
    ss.anneal(model, [2.0], sweeps=1, replicas=2)


def _temper(model: ss.Ising) -> None:
    ss.temper(model, [2.0, 3.0], sweeps=20, thermalize=0)


def _complete(sites: int, modulus: int = 3) -> ss.Ising:
    pairs = np.column_stack(np.triu_indices(sites, 1))
    return ss.Ising(ss.Graph(sites, pairs), np.arange(len(pairs)) % modulus)


def _sparse(couplings: Callable[[int], object], field: float = 0.0) -> ss.Ising:
    """A circle with every third chord."""
    pairs = [*((i, (i + 1) % 18) for i in range(18)), *((i, i + 7) for i in range(0, 11, 3))]
    return ss.Ising(ss.Graph(18, pairs), couplings(len(pairs)), field)


def _unpacked(values: object) -> None:
    for model in (ss.Ising(ss.square(4), values), ss.trotter(ss.Ising(ss.square(4), values), 4)):
        _sweep(model)
        _temper(model)


RUNS: dict[str, Callable[[], object]] = {
    "degrees-tempered": lambda: _temper(ss.EdwardsAnderson(ss.hypercubic(3))),
    "field-tempered": lambda: _temper(ss.EdwardsAnderson(ss.square(4), field=1.0)),
    "degrees": lambda: _sweep(ss.EdwardsAnderson(ss.hypercubic(3))),
    "site-packed": lambda: _temper(ss.EdwardsAnderson(ss.square(256, 2))),
    "field": lambda: _sweep(ss.EdwardsAnderson(ss.square(4), field=1.0)),
    "replica-packed": lambda: _sweep(ss.EdwardsAnderson(ss.cubic(4))),
    "unpacked": lambda: _unpacked(np.linspace(0.1, 1, 32)),
    "tempering": lambda: _temper(ss.EdwardsAnderson(ss.cubic(4))),
    "by-replica": lambda: [
        _anneal(_sparse(np.ones)),
        _anneal(_sparse(np.ones, 0.3)),
        _anneal(_sparse(lambda n: np.linspace(0.1, 1, n))),
    ],
    "wide-integers": lambda: _unpacked(np.linspace(1, 1e9, 32).round()),
    "dense": lambda: [run(_complete(130, modulus)) for modulus in (3, 4001) for run in (_sweep, _temper)],
    "two-terms": lambda: _temper(ss.EdwardsAnderson(ss.square(4), couplings_along=(1, 0.5))),
    "transfer": lambda: [ss.transfer(ss.EdwardsAnderson(layer), k=0.3) for layer in (ss.chain(4), ss.square(3))],
}
"""Small runs that need about all kernels, those that take longest first."""


def compile_together(folder: Path) -> None:
    """Do the runs that no other worker has begun, then wait until all are done; ``folder`` belongs to all workers."""
    for name, run in RUNS.items():
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
