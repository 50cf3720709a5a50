"""Rates of the Metropolis kernels, and what measuring adds."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from spinsim.benchmark import MEASURE_EVERY, Case, Spread, sweep_rates
from spinsim.engine import Counts, Dynamics, Engine, create_engine, resolve_device
from spinsim.machine.threads import available_threads
from spinsim.model.disorder import EdwardsAnderson
from spinsim.model.ising import Ising
from spinsim.model.lattice import cubic, square

CRITICAL: Final = 2.269185  # temperature of the square ferromagnet


@dataclass(frozen=True)
class Rate:
    """A measured case."""

    case: Case
    samples: int
    packing: str
    cores: int  # threads that had work; 1 on a GPU
    rates: Spread  # of attempted spin updates, over the repeats
    measuring: float  # share of time that energy and magnetisation after every tenth sweep add


_PEERS: Final = "dwave-samplers 0.083, OpenJij 0.080 (README's core)"
_FIELD: Final = 0.5
_CRITICAL: Final = (CRITICAL, CRITICAL)
CPU_CASES: Final = (
    Case("2D ferromagnet, L = 64", lambda: Ising(square(64)), (*_CRITICAL, 128)),
    Case("2D ferromagnet, L = 64", lambda: Ising(square(64)), (*_CRITICAL, 256)),
    Case("2D ferromagnet, L = 4096", lambda: Ising(square(4096)), (*_CRITICAL, 1)),
    Case("3D +-J, L = 10", lambda: EdwardsAnderson(cubic(10)), (1.1, 1.1, 128), reference=_PEERS),
    Case("3D +-J, L = 10", lambda: EdwardsAnderson(cubic(10)), (1.1, 1.1, 256), reference=_PEERS),
    Case("3D +-J, L = 256", lambda: EdwardsAnderson(cubic(256)), (1.1, 1.1, 1)),
    Case("3D +-J, L = 10, field 0.5", lambda: EdwardsAnderson(cubic(10), field=_FIELD), (1.1, 1.1, 128)),
    Case("3D Gaussian, L = 10", lambda: EdwardsAnderson(cubic(10), couplings="gaussian"), (0.95, 0.95, 128)),
    Case("3D Gaussian, L = 10", lambda: EdwardsAnderson(cubic(10), couplings="gaussian"), (0.95, 0.95, 256)),
)
_RECORD: Final = "1288 to 1432 (H100), 1800 (GB200) Bisson et al. 2025; 884 (H200) Romero et al. 2019"
_ROMERO: Final = "752 (H200) Romero et al. 2019"
_GLASS: Final = "333 (GTX Titan) Lulli et al. 2015"
_LADDER: Final = (0.8, 2.0)
CUDA_CASES: Final = (
    Case("2D ferromagnet, L = 32768", lambda: Ising(square(32768)), (*_CRITICAL, 1), reference=_RECORD),
    Case("2D ferromagnet, L = 4096", lambda: Ising(square(4096)), (*_CRITICAL, 1)),
    Case("2D +-J, L = 32768", lambda: EdwardsAnderson(square(32768)), (1.1, 1.1, 1), reference=_ROMERO),
    Case("3D +-J, L = 512", lambda: EdwardsAnderson(cubic(512)), (1.1, 1.1, 1)),
    Case("3D +-J, L = 16, ladder", lambda: EdwardsAnderson(cubic(16), samples=256), (*_LADDER, 128), reference=_GLASS),
    Case("3D +-J, L = 32, ladder", lambda: EdwardsAnderson(cubic(32), samples=64), (*_LADDER, 128), reference=_GLASS),
    Case("3D +-J, L = 16, ladder", lambda: EdwardsAnderson(cubic(16)), (*_LADDER, 128)),
    Case("3D +-J, L = 16, field 0.5", lambda: EdwardsAnderson(cubic(16), samples=256, field=_FIELD), (1.1, 1.1, 128)),
    Case("3D Gaussian, L = 32", lambda: EdwardsAnderson(cubic(32), couplings="gaussian"), (0.95, 0.95, 1024)),
)


def _measuring_cost(engine: Engine, sweeps: int) -> float:
    """Share of time that measurements after every tenth sweep add, read while later sweeps run."""
    rounds = max(1, sweeps // MEASURE_EVERY)

    def seconds(measure: bool) -> float:
        waiting: deque[Callable[[], Counts]] = deque()
        began = time.perf_counter()
        for _ in range(rounds):
            engine.sweep(MEASURE_EVERY)
            if measure:
                waiting.append(engine.begin_counts())
            if len(waiting) > 2:
                waiting.popleft()()
        for counts in waiting:
            counts()
        engine.wait()
        return time.perf_counter() - began

    seconds(True)  # compiles the counting kernel
    plain, measured = (min(seconds(measure) for _ in range(3)) for measure in (False, True))
    return measured / plain - 1


def metropolis_rates(device: str, threads: int | None, repeats: int, rng_rounds: int) -> Iterator[Rate]:
    """Time every case: the median of ``repeats`` runs of about half a second each, after warming up."""
    for case in CUDA_CASES if resolve_device(device) == "cuda" else CPU_CASES:
        model = case.model()
        engine = create_engine(model, case.replicas, Dynamics(rng_rounds=rng_rounds), device, threads)
        engine.set_beta(case.beta)
        sweeps, rates = sweep_rates(engine, repeats)
        cost = _measuring_cost(engine, sweeps)
        cores = min(threads or available_threads(), engine.tasks) if engine.device_name == "cpu" else 1
        yield Rate(case, model.samples, engine.packing, cores, Spread.of(rates), cost)
