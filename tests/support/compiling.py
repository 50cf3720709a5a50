"""The CPU's kernels, compiled once by all workers together: in a fresh checkout each would else compile all of them."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt

import spinsim as ss
from spinsim.engine import Dynamics, create_engine
from spinsim.engine.moves.houdayer import dimension_of
from spinsim.engine.moves.metropolis.by_replica import Annealer
from spinsim.engine.moves.move import Moment
from spinsim.model.trotter import trotter
from spinsim.optimum.enumeration import lowest_states
from spinsim.optimum.fixing import reduce
from spinsim.sampling.tabu import Tabu
from spinsim.sampling.temperatures import automatic_temperatures

Array = npt.NDArray[np.float64]
LIMIT = 300  # seconds to wait for what others compile


def _sweep(model: ss.Ising, beta: float | Array = 0.5) -> None:
    engine = create_engine(model, 64, Dynamics(), "cpu", 1)
    engine.set_beta(beta)
    engine.sweep(1)
    engine.counts()


def _anneal(model: ss.Ising) -> None:
    Annealer(model, 2, Dynamics(), 1).anneal(np.array([0.5]), np.array([1]), np.array([True]))


def _temper(model: ss.Ising) -> None:
    ss.temper(model, [2.0, 3.0], sweeps=20, thermalize=0, device="cpu")


def _complete(couplings: Callable[[Array], Array]) -> ss.Ising:
    pairs = np.column_stack(np.triu_indices(130, 1))
    return ss.Ising(ss.Graph(130, pairs), couplings(np.arange(len(pairs), dtype=float)))


def _sparse(couplings: Callable[[int], object], field: float = 0.0) -> ss.Ising:
    """A circle with every third chord."""
    pairs = [*((i, (i + 1) % 18) for i in range(18)), *((i, i + 7) for i in range(0, 11, 3))]
    return ss.Ising(ss.Graph(18, pairs), couplings(len(pairs)), field)


def _unpacked(space: ss.Ising) -> None:
    _sweep(space)
    _temper(space)
    _sweep(trotter(space, 4, by_term=True), np.full((64, 2), 0.5))
    ss.quantum(space, gamma=[0.5, 1.0], beta=1.0, slices=8, sweeps=20, thermalize=0, device="cpu")


def _clusters(*models: ss.Ising) -> None:
    for model in models:
        engine = create_engine(model, 64, Dynamics(), "cpu", 1)
        engine.apply(ss.SwendsenWang(), Moment(0.5, 0, 1))


def _optimum() -> None:
    reduce(ss.Ising(ss.square(600)))  # too many steps for Python
    for couplings in (1.0, np.sin(np.arange(32.0))):
        lowest_states(ss.Ising(ss.square(4), couplings))


def _single_spins() -> None:
    for couplings in ("pm-j", "gaussian"):
        ss.evolve(
            ss.EdwardsAnderson(ss.square(3), couplings=couplings), "T=1 for 1", dynamics="typewriter", device="cpu"
        )


def _search(couplings: Callable[[int], object]) -> None:
    """Enough steps for a pool, and for children of its states."""
    Tabu(_sparse(couplings), 1).advance(25_000)


RUNS: dict[str, Callable[[], object]] = {
    "degrees-tempered": lambda: _temper(ss.EdwardsAnderson(ss.hypercubic(3))),
    "field-tempered": lambda: _temper(ss.EdwardsAnderson(ss.square(4), field=1.0)),
    "degrees": lambda: _sweep(ss.EdwardsAnderson(ss.hypercubic(3))),
    "site-packed": lambda: _temper(ss.EdwardsAnderson(ss.square(256, 2))),
    "field": lambda: _sweep(ss.EdwardsAnderson(ss.square(4), field=1.0)),
    "replica-packed": lambda: _sweep(ss.EdwardsAnderson(ss.cubic(4))),
    "unpacked": lambda: _unpacked(ss.EdwardsAnderson(ss.square(4), couplings="gaussian")),
    "tempering": lambda: _temper(ss.EdwardsAnderson(ss.cubic(4))),
    "single-spins": _single_spins,
    "tabu": lambda: [_search(np.ones), _search(lambda n: np.linspace(0.1, 1, n))],
    "clusters": lambda: _clusters(ss.Ising(ss.square(4)), _sparse(np.ones)),
    "lattice-clusters": lambda: _clusters(ss.Ising(ss.square(256, 2))),
    "by-replica": lambda: [
        _anneal(_sparse(values, field))
        for values, field in (
            (np.ones, 0.0),
            (np.ones, 0.3),
            (lambda n: np.linspace(0.1, 1, n), 0.0),
            (lambda n: 1000.0 + np.arange(n), 0.0),
        )
    ],
    "wide-integers": lambda: _unpacked(ss.Ising(ss.square(4), np.linspace(1, 1e9, 32))),
    "dense": lambda: [
        *(
            run(_complete(couplings))
            for couplings in (lambda b: b % 3, lambda b: b % 4001)
            for run in (_sweep, _temper)
        ),
        _sweep(_complete(np.sin)),
    ],
    "range-of-temperatures": lambda: (automatic_temperatures(_sparse(np.ones)), dimension_of(_sparse(np.ones))),
    "optimum": _optimum,
    "multicanonical": lambda: ss.multicanonical(ss.Ising(ss.square(4)), 10, 10),
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
