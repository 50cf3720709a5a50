"""How rates grow with the number of devices: GPUs of one process, or ranks with a device each."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
import numpy.typing as npt

from spinsim.benchmark.metropolis import CRITICAL
from spinsim.benchmark.timing import SECONDS, sweep_rates
from spinsim.engine import Dynamics, Engine, create_engine, resolve_device
from spinsim.mesh.session import first_ranks, others
from spinsim.model.disorder import EdwardsAnderson
from spinsim.model.geometry.cubic import cubic
from spinsim.model.geometry.square import square
from spinsim.model.ising import Ising
from spinsim.model.trotter import trotter

Growth = Literal["weak", "strong"]
"""Whether each device has as much to do as one alone, or all together have."""


@dataclass(frozen=True)
class ScalingCase:
    """A problem for a number of devices.

    Attributes:
        growth: ``weak``: the problem grows with the number of devices; ``strong``: it is the same for all numbers.
        model: What so many devices simulate.
        replicas: Of each sample.
        temperatures: One, or the lowest and the highest of the ladder of each copy.
        copies: Of the ladder in each sample, with an exchange after every sweep; 0 for sweeps alone.
    """

    name: str
    growth: Growth
    model: Callable[[int], Ising]
    replicas: int
    temperatures: tuple[float, ...]
    copies: int = 0

    def begin(self, engine: Engine) -> Callable[[int], None]:
        """Give replicas their temperatures; returns what sweeps so often, with exchanges where there is a ladder."""
        if not self.copies:
            engine.set_beta(1.0 / self.temperatures[0])
            return engine.sweep
        engine.set_ladder(self.beta(), self.copies)
        return lambda sweeps: engine.temper(sweeps, 1)

    def beta(self) -> npt.NDArray[np.float64]:
        """Inverse temperatures of the ladder, from the largest to the smallest."""
        low, high = self.temperatures
        return np.asarray(1.0 / np.linspace(low, high, self.replicas // self.copies))


@dataclass(frozen=True)
class ScalingRate:
    """A measured case.

    Attributes:
        devices: How many were asked to share it.
        median, slowest, fastest: Attempted spin updates per nanosecond over the repeats, all devices together.
        gain: The median over that of one device.
    """

    case: ScalingCase
    devices: int
    median: float
    slowest: float
    fastest: float
    gain: float


_LADDER: Final = (0.8, 2.0)
_QUANTUM: Final = (1 / 0.33, 1 / 0.24)  # as 1 / k
CUDA_CASES: Final = (
    ScalingCase(
        "2D ferromagnet, 131072 x 65536 each", "weak", lambda n: Ising(square(131072, 65536 * n)), 1, (CRITICAL,)
    ),
    ScalingCase("2D ferromagnet, L = 131072", "strong", lambda _: Ising(square(131072)), 1, (CRITICAL,)),
    ScalingCase("2D ferromagnet, L = 65536", "strong", lambda _: Ising(square(65536)), 1, (CRITICAL,)),
    ScalingCase("2D ferromagnet, L = 32768", "strong", lambda _: Ising(square(32768)), 1, (CRITICAL,)),
    ScalingCase("3D +-J, L = 512", "strong", lambda _: EdwardsAnderson(cubic(512)), 1, (1.1,)),
    ScalingCase(
        "3D +-J, L = 16, 128 samples each",
        "weak",
        lambda n: EdwardsAnderson(cubic(16), samples=128 * n),
        128,
        _LADDER,
        4,
    ),
    ScalingCase("3D +-J, L = 32, 4096 replicas", "strong", lambda _: EdwardsAnderson(cubic(32)), 4096, (1.1,)),
    ScalingCase(
        "2D +-J, L = 24, 512 slices, one sample",
        "strong",
        lambda _: trotter(EdwardsAnderson(square(24)), 512),
        128,
        _QUANTUM,
        4,
    ),
)
CPU_CASES: Final = (
    ScalingCase("2D ferromagnet, 4096 x 2048 each", "weak", lambda n: Ising(square(4096, 2048 * n)), 1, (CRITICAL,)),
    ScalingCase("2D ferromagnet, L = 4096", "strong", lambda _: Ising(square(4096)), 1, (CRITICAL,)),
    ScalingCase("3D +-J, L = 256", "strong", lambda _: EdwardsAnderson(cubic(256)), 1, (1.1,)),
    ScalingCase(
        "3D +-J, L = 8, 8 samples each", "weak", lambda n: EdwardsAnderson(cubic(8), samples=8 * n), 128, _LADDER, 4
    ),
    ScalingCase("3D +-J, L = 16, 512 replicas", "strong", lambda _: EdwardsAnderson(cubic(16)), 512, (1.1,)),
)


def numbers_of_devices(device: str) -> list[int]:
    """1, 2, 4, ... up to all devices that there are, and all of them.

    Args:
        device: As ``resolve_device`` returns it.
    """
    everyone = 1 + len(others())
    if everyone == 1 and device == "cuda":
        from spinsim.cuda.device import names

        everyone = len(names())
    return sorted({everyone, *(2**k for k in range(everyone.bit_length()))})


def scaling_rates(device: str, threads: int | None, repeats: int, rng_rounds: int) -> Iterator[ScalingRate]:
    """Time every case on every number of devices: the median of ``repeats`` runs of about half a second each."""
    where = resolve_device(device)
    for case in CUDA_CASES if where == "cuda" else CPU_CASES:
        alone = 0.0
        for devices in numbers_of_devices(where):
            rates = _rates(case, devices, where, threads, repeats, Dynamics(rng_rounds=rng_rounds))
            median = statistics.median(rates)
            alone = alone or median
            yield ScalingRate(case, devices, median, min(rates), max(rates), median / alone)


def _rates(
    case: ScalingCase, devices: int, device: str, threads: int | None, repeats: int, dynamics: Dynamics
) -> list[float]:
    """Updates/ns of each repeat."""
    in_ranks = bool(others())
    with first_ranks(devices) if in_ranks else nullcontext():
        asked = f"cuda:{devices}" if device == "cuda" and not in_ranks else device
        engine = create_engine(case.model(devices), case.replicas, dynamics, asked, threads)
        sweep = case.begin(engine)
        if not case.copies:
            return sweep_rates(engine, repeats)[1]
        return _timed(engine, sweep, repeats)


def _timed(engine: Engine, sweep: Callable[[int], None], repeats: int) -> list[float]:
    """Updates/ns of each of several runs of about half a second, once warm."""

    def seconds(sweeps: int) -> float:
        engine.wait()
        began = time.perf_counter()
        sweep(sweeps)
        engine.wait()
        return time.perf_counter() - began

    warm_up = 50
    seconds(warm_up)
    sweeps = max(1, int(SECONDS / seconds(warm_up) * warm_up))
    updates = engine.model.sites * engine.model.samples * engine.replicas * sweeps
    return [updates / seconds(sweeps) / 1e9 for _ in range(repeats)]
