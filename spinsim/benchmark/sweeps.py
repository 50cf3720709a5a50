"""Rates of Metropolis sweeps, the cost of measurements, and rates of parallel tempering as a user runs it."""

from __future__ import annotations

import statistics
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np

from spinsim.benchmark import MEASURE_EVERY, WARM_UP_SWEEPS, Case, Spread, sweep_rates
from spinsim.engine import Counts, Dynamics, Engine, create_engine, resolve_device
from spinsim.engine.measuring.correlations import Quantities
from spinsim.machine.threads import available_threads
from spinsim.model.disorder import EdwardsAnderson
from spinsim.model.ising import Ising
from spinsim.model.lattice import cubic, square
from spinsim.model.trotter import trotter
from spinsim.sampling import Times
from spinsim.sampling.tempering import tempering_in_beta

CRITICAL: Final = 2.269185  # temperature of the square ferromagnet


@dataclass(frozen=True)
class SweepRate:
    """A measured case."""

    case: Case
    samples: int
    packing: str
    cores: int  # threads that had work; 1 on a GPU
    rates: Spread  # of attempted spin updates, over the repeats
    measuring: float  # share of time added by energy and magnetisation after every tenth sweep


_PEERS: Final = "dwave-samplers 0.070, OpenJij 0.046 (one core of an AMD Zen 3)"
_FIELD: Final = 0.5
_CRITICAL: Final = (CRITICAL, CRITICAL)
_CPU_SWEEPS: Final = (
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
LADDER: Final = (0.8, 2.0)  # temperatures about the transition of the glass in three dimensions
_CUDA_SWEEPS: Final = (
    Case("2D ferromagnet, L = 32768", lambda: Ising(square(32768)), (*_CRITICAL, 1), reference=_RECORD),
    Case("2D ferromagnet, L = 4096", lambda: Ising(square(4096)), (*_CRITICAL, 1)),
    Case("2D +-J, L = 32768", lambda: EdwardsAnderson(square(32768)), (1.1, 1.1, 1), reference=_ROMERO),
    Case("3D +-J, L = 512", lambda: EdwardsAnderson(cubic(512)), (1.1, 1.1, 1)),
    Case("3D +-J, L = 16, ladder", lambda: EdwardsAnderson(cubic(16), samples=256), (*LADDER, 128), reference=_GLASS),
    Case("3D +-J, L = 32, ladder", lambda: EdwardsAnderson(cubic(32), samples=64), (*LADDER, 128), reference=_GLASS),
    Case("3D +-J, L = 16, ladder", lambda: EdwardsAnderson(cubic(16)), (*LADDER, 128)),
    Case("3D +-J, L = 16, field 0.5", lambda: EdwardsAnderson(cubic(16), samples=256, field=_FIELD), (1.1, 1.1, 128)),
    Case("3D Gaussian, L = 32", lambda: EdwardsAnderson(cubic(32), couplings="gaussian"), (0.95, 0.95, 1024)),
)
SWEEPS: Final = {"cpu": _CPU_SWEEPS, "cuda": _CUDA_SWEEPS}


def _alone(squares: tuple[int, ...], cubes: tuple[int, ...]) -> tuple[Case, ...]:
    """Cases of one replica: ferromagnets in two dimensions and glasses in three, of the sides given."""
    in_plane = (
        Case(f"2D ferromagnet, L = {n}", partial(lambda side: Ising(square(side)), n), (*_CRITICAL, 1)) for n in squares
    )
    in_space = (
        Case(f"3D +-J, L = {n}", partial(lambda side: EdwardsAnderson(cubic(side)), n), (1.1, 1.1, 1)) for n in cubes
    )
    return *in_plane, *in_space


ONE_LATTICE: Final = {
    "cpu": _alone((32, 64, 128, 192, 256), (10, 16, 32, 48, 64)),
    "cuda": _alone((64, 128, 256, 512, 1024, 2048, 4096), (32, 64, 96, 100, 128, 192, 256, 512)),
}


def _measuring_cost(engine: Engine, sweeps: int) -> float:
    """Share of time added by measurements after every tenth sweep, which are read while later sweeps run."""
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


def metropolis_rates(
    device: str, threads: int | None, repeats: int, rng_rounds: int, one_lattice: bool = False
) -> Iterator[SweepRate]:
    """Time every case: the median of ``repeats`` runs of about half a second each, after warming up."""
    for case in (ONE_LATTICE if one_lattice else SWEEPS)[resolve_device(device)]:
        model = case.model()
        engine = create_engine(model, case.replicas, Dynamics(rng_rounds=rng_rounds), device, threads)
        engine.set_beta(case.beta)
        sweeps, rates = sweep_rates(engine, repeats)
        cost = _measuring_cost(engine, sweeps)
        cores = min(threads or available_threads(), engine.tasks) if engine.device_name == "cpu" else 1
        yield SweepRate(case, model.samples, engine.packing, cores, Spread.of(rates), cost)


@dataclass(frozen=True)
class TemperRate:
    """A measured case."""

    case: Case
    samples: int
    packing: str
    rates: Spread
    """Rates of attempted spin updates over the repeats, where energies, magnetisations and overlaps are measured, and
    correlations in time where the case has times."""
    correlations: float  # the median where link overlaps and modes are measured too
    raw: float  # the median of sweeps alone


_OTHERS: Final = "30 (GPU of 2014) Fang et al. 2014; just over 1000 (four A100, quantum) Bernaschi et al. 2024"
_GAUSSIAN: Final = (0.5, 1.8)
QUANTUM_LADDER: Final = (1 / 0.33, 1 / 0.24)  # as 1 / k, about the transition of the glass in two dimensions of space
_TIMES: Final = tuple(range(1, 17))
_TERMS: Final = (0.5, 1.5)  # times 1 / T: K_s and K_tau


def _glass_in_time(side: int, slices: int, samples: int, by_term: bool = False) -> Callable[[], Ising]:
    """Return a function that makes a square lattice of +-J couplings in space and time."""
    return lambda: trotter(EdwardsAnderson(square(side), samples=samples), slices, by_term)


_CPU_TEMPERING: Final = (
    Case("3D +-J, L = 6", lambda: EdwardsAnderson(cubic(6), samples=16), (*LADDER, 16), 2),
    Case("3D +-J, L = 6", lambda: EdwardsAnderson(cubic(6), samples=16), (*LADDER, 16), 8),
    Case("3D +-J, L = 16", lambda: EdwardsAnderson(cubic(16), samples=4), (*LADDER, 32), 4, _OTHERS),
    Case("3D Gaussian, L = 4", lambda: EdwardsAnderson(cubic(4), 8, couplings="gaussian"), (*_GAUSSIAN, 16), 2),
    Case("2D +-J, L = 4, 32 slices, K_s, K_tau", _glass_in_time(4, 32, 8, True), (1.5, 3.0, 16), 8, terms=_TERMS),
)
_CUDA_TEMPERING: Final = (
    Case("3D +-J, L = 16", lambda: EdwardsAnderson(cubic(16), samples=128), (*LADDER, 32), 4, _OTHERS),
    Case("3D +-J, L = 8", lambda: EdwardsAnderson(cubic(8), samples=1024), (*LADDER, 32), 4),
    Case("3D +-J, L = 32", lambda: EdwardsAnderson(cubic(32), samples=16), (*LADDER, 32), 4),
    Case("3D +-J, L = 16, one sample", lambda: EdwardsAnderson(cubic(16)), (*LADDER, 32), 4),
    Case("3D +-J, L = 24", lambda: EdwardsAnderson(cubic(24), samples=16), (*LADDER, 32), 4),
    Case("2D +-J, L = 16, 256 slices, k", _glass_in_time(16, 256, 32), (*QUANTUM_LADDER, 32), 4, _OTHERS, _TIMES),
    Case("2D +-J, L = 24, 512 slices, k", _glass_in_time(24, 512, 8), (*QUANTUM_LADDER, 32), 4, _OTHERS, _TIMES),
    Case("2D +-J, L = 16, 64 slices, K_s, K_tau", _glass_in_time(16, 64, 32, True), (1.5, 3.0, 32), 4,
         times=_TIMES, terms=_TERMS),
    Case("2D clean, L = 16, 64 slices, K_s, K_tau", lambda: trotter(Ising(square(16)), 64, True), (1.5, 3.0, 32), 4,
         times=_TIMES, terms=_TERMS),
    Case("3D Gaussian, L = 10", lambda: EdwardsAnderson(cubic(10), 16, couplings="gaussian"), (*_GAUSSIAN, 32), 4),
)  # fmt: skip
TEMPERING: Final = {"cpu": _CPU_TEMPERING, "cuda": _CUDA_TEMPERING}


def _tempering_rates(
    case: Case, model: Ising, make: Callable[[], Engine], times: Times, repeats: int, correlations: bool
) -> list[float]:
    """Updates/ns of each of ``repeats`` parts of a run, from the arrival times of its measurements."""
    part = (times.measurements - 1) // repeats
    frames = tempering_in_beta(make(), case.beta, times, case.copies, wanted=Quantities(correlations, case.times))
    moments = [time.perf_counter() for _ in frames][::part]
    updates = model.sites * model.samples * case.replicas * part * times.measure_every
    return [updates / float(seconds) / 1e9 for seconds in np.diff(moments)]


def _times(sweeps: int, repeats: int, measure_every: int, swap_every: int) -> Times:
    """Times of a run: ``repeats`` parts of about ``sweeps`` sweeps, at least two measurements, and one measurement."""
    part = max(2, sweeps // measure_every)
    warm_up = -(-WARM_UP_SWEEPS // swap_every) * swap_every
    return Times(warm_up, (part * repeats + 1) * measure_every, measure_every, swap_every)


def temper_rates(
    device: str,
    threads: int | None,
    repeats: int,
    rng_rounds: int,
    measure_every: int = MEASURE_EVERY,
    swap_every: int = 1,
) -> Iterator[TemperRate]:
    """Time every case: the median of ``repeats`` runs of about half a second each, after warming up."""
    Times(0, measure_every, measure_every, swap_every)
    dynamics = Dynamics(rng_rounds=rng_rounds)
    for case in TEMPERING[resolve_device(device)]:
        model = case.model()
        make = partial(create_engine, model, case.replicas, dynamics, device, threads, slabs=False)
        engine = make()
        engine.set_beta(np.concatenate([case.beta] * case.copies))
        sweeps, raw = sweep_rates(engine, repeats)
        packing = engine.packing
        del engine  # its memory
        times = _times(sweeps, repeats, measure_every, swap_every)
        rates, full = (_tempering_rates(case, model, make, times, repeats, more) for more in (False, True))
        medians = statistics.median(full), statistics.median(raw)
        yield TemperRate(case, model.samples, packing, Spread.of(rates), *medians)
