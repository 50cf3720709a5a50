"""Rates of the Metropolis kernels on this machine, measured on states in equilibrium dynamics, never frozen ones."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from spinsim.engine import Dynamics, create_engine
from spinsim.engine.cpu.threads import available_threads
from spinsim.model.disorder import EdwardsAnderson
from spinsim.model.ising import Ising
from spinsim.model.lattice import cubic, square

WARM_UP_SWEEPS: Final = 50
SECONDS: Final = 0.5


@dataclass(frozen=True)
class Case:
    """One line of the table: a model at a temperature near its transition, where many flips are undecided."""

    name: str
    model: Callable[[], Ising]
    temperature: float
    replicas: int


@dataclass(frozen=True)
class Rate:
    """A measured case.

    Attributes:
        median, slowest, fastest: Attempted spin updates per nanosecond over the repeats, all threads together.
        cores: Threads that had work; 1 on a GPU.
    """

    case: Case
    packing: str
    cores: int
    median: float
    slowest: float
    fastest: float


METROPOLIS: Final = (
    Case("2D ferromagnet, L = 64", lambda: Ising(square(64)), 2.269, 128),
    Case("2D ferromagnet, L = 64", lambda: Ising(square(64)), 2.269, 256),
    Case("3D +-J, L = 10", lambda: EdwardsAnderson(cubic(10)), 1.1, 128),
    Case("3D +-J, L = 10", lambda: EdwardsAnderson(cubic(10)), 1.1, 256),
    Case("3D +-J, L = 10, field 0.5", lambda: EdwardsAnderson(cubic(10), field=0.5), 1.1, 128),
    Case("3D Gaussian, L = 10", lambda: EdwardsAnderson(cubic(10), couplings="gaussian"), 0.95, 128),
    Case("3D Gaussian, L = 10", lambda: EdwardsAnderson(cubic(10), couplings="gaussian"), 0.95, 256),
)


@dataclass(frozen=True)
class Reference:
    """A rate of another program, in updates/ns."""

    what: str
    hardware: str
    rate: str


REFERENCES: Final = (
    Reference("3D +-J, dwave-samplers 1.8 (benchmarks/peers.py)", "one Xeon core, README", "0.083"),
    Reference("3D +-J, OpenJij 0.12 (benchmarks/peers.py)", "one Xeon core, README", "0.080"),
    Reference("3D +-J, Lulli, Bernaschi, Parisi 2015", "GTX Titan", "333"),
    Reference("2D Ising, Romero, Bisson, Fatica, Bernaschi 2019", "one H200", "884"),
    Reference("2D Ising, Bisson et al. 2025", "one H100", "1288 to 1432"),
)


def metropolis_rates(device: str, threads: int | None, repeats: int) -> Iterator[Rate]:
    """Time every case: the median of ``repeats`` runs of about half a second each, after warming up."""
    for case in METROPOLIS:
        model = case.model()
        engine = create_engine(model, case.replicas, Dynamics(), device, threads)
        engine.set_beta(1.0 / case.temperature)
        updates = model.sites * model.samples * case.replicas
        engine.sweep(1)  # compiles, or loads what is compiled
        engine.wait()
        began = time.perf_counter()
        engine.sweep(WARM_UP_SWEEPS)
        engine.wait()
        sweeps = max(1, int(SECONDS / (time.perf_counter() - began) * WARM_UP_SWEEPS))
        rates = []
        for _ in range(repeats):
            began = time.perf_counter()
            engine.sweep(sweeps)
            engine.wait()
            rates.append(updates * sweeps / (time.perf_counter() - began) / 1e9)
        cores = min(threads or available_threads(), engine.tasks) if engine.device_name == "cpu" else 1
        yield Rate(case, engine.packing, cores, statistics.median(rates), min(rates), max(rates))
