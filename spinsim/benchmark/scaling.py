"""Growth of rates with the number of devices: GPUs of one process, or ranks with a device each."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from spinsim.benchmark import Spread, sweep_rates, timed_tempering, wait_for
from spinsim.benchmark.sweeps import CRITICAL, LADDER, QUANTUM_LADDER
from spinsim.engine import Dynamics, Engine, create_engine, resolve_device
from spinsim.engine.devices import CUDA, seats
from spinsim.machine.threads import Threads
from spinsim.model.disorder import EdwardsAnderson
from spinsim.model.ising import Ising
from spinsim.model.lattice import chain, cubic, square
from spinsim.model.trotter import trotter
from spinsim.parallel.group import Group, make_group, together
from spinsim.parallel.session import first_ranks, others
from spinsim.transfer_matrix.layer import CRITICAL as K_CRITICAL
from spinsim.transfer_matrix.layer import Layer
from spinsim.transfer_matrix.operator import TransferOperator
from spinsim.transfer_matrix.vectors import Share, Vectors

Growth = Literal["weak", "strong"]  # weak: fixed work for each device; strong: fixed total work


@dataclass(frozen=True)
class SweepCase:
    """Sweeps of a model on a number of devices."""

    name: str
    growth: Growth  # ``weak``: the problem grows with the number of devices; ``strong``: it is the same for all numbers
    model: Callable[[int], Ising]  # returns the model for a number of devices
    replicas: int  # replicas of each sample
    temperatures: tuple[float, ...]  # one, or the lowest and the highest of the ladder of each copy
    copies: int = 0  # copies of the ladder in each sample, with an exchange after every sweep; 0 for sweeps alone

    unit = "updates"

    def rates(self, devices: int, device: str, threads: int | None, repeats: int, dynamics: Dynamics) -> list[float]:
        """Updates/ns of each of several runs of about half a second, on a number of devices."""
        in_ranks = bool(others())
        with first_ranks(devices) if in_ranks else nullcontext():
            asked = f"{CUDA}:{devices}" if device == CUDA and not in_ranks else device
            engine = create_engine(self.model(devices), self.replicas, dynamics, asked, threads)
            return sweep_rates(engine, repeats, self.timed(engine))[1]

    def timed(self, engine: Engine) -> Callable[[int], float] | None:
        """Give replicas their temperatures; return a timer of sweeps with exchanges where there is a ladder."""
        if not self.copies:
            engine.set_beta(1.0 / self.temperatures[0])
            return None
        low, high = self.temperatures
        engine.set_ladder(1.0 / np.linspace(low, high, self.replicas // self.copies), self.copies)
        return timed_tempering(engine)


@dataclass(frozen=True)
class ProductCase:
    """A product with the transfer matrix of a chain in the odd sector, each vector shared by a number of devices."""

    name: str
    growth: Growth  # as in ``SweepCase``
    spins: Callable[[int], int]  # returns the spins of the chain for a number of devices
    unit = "amplitudes"

    def rates(self, devices: int, device: str, threads: int | None, repeats: int, dynamics: Dynamics) -> list[float]:
        """Amplitudes of the result per nanosecond, for each of several products, on a number of devices."""
        asked = f"{CUDA}:{devices}" if device == CUDA and not others() else device
        members = make_group(seats(asked)[:devices])
        of_members = together(members, _product_seconds, self.spins(devices), device, threads, repeats)
        return [2 ** (self.spins(devices) - 1) / max(seconds) / 1e9 for seconds in zip(*of_members, strict=True)]


Case = SweepCase | ProductCase


@dataclass(frozen=True)
class ScalingRate:
    """A measured case."""

    case: Case
    devices: int  # number of devices that share the case
    rates: Spread  # of the repeats, in the case's unit
    gain: float  # median rate over the median rate of one device


_CUDA_CASES: Final = (
    SweepCase("2D ferromagnet, 131072 x 65536 each", "weak", lambda n: Ising(square(131072, 65536 * n)), 1,
              (CRITICAL,)),
    SweepCase("2D ferromagnet, L = 131072", "strong", lambda _: Ising(square(131072)), 1, (CRITICAL,)),
    SweepCase("2D ferromagnet, L = 65536", "strong", lambda _: Ising(square(65536)), 1, (CRITICAL,)),
    SweepCase("2D ferromagnet, L = 32768", "strong", lambda _: Ising(square(32768)), 1, (CRITICAL,)),
    SweepCase("3D +-J, L = 512", "strong", lambda _: EdwardsAnderson(cubic(512)), 1, (1.1,)),
    SweepCase("3D +-J, L = 16, 128 samples each", "weak", lambda n: EdwardsAnderson(cubic(16), 128 * n), 128, LADDER,
              4),
    SweepCase("3D +-J, L = 32, 4096 replicas", "strong", lambda _: EdwardsAnderson(cubic(32)), 4096, (1.1,)),
    SweepCase("2D +-J, L = 24, 512 slices, one sample", "strong", lambda _: trotter(EdwardsAnderson(square(24)), 512),
              128, QUANTUM_LADDER, 4),
    ProductCase("T of a chain, 32 spins for one", "weak", lambda n: 31 + n.bit_length()),
    ProductCase("T of a chain, 32 spins", "strong", lambda _: 32),
)  # fmt: skip
_CPU_CASES: Final = (
    SweepCase("2D ferromagnet, 4096 x 2048 each", "weak", lambda n: Ising(square(4096, 2048 * n)), 1, (CRITICAL,)),
    SweepCase("2D ferromagnet, L = 4096", "strong", lambda _: Ising(square(4096)), 1, (CRITICAL,)),
    SweepCase("3D +-J, L = 256", "strong", lambda _: EdwardsAnderson(cubic(256)), 1, (1.1,)),
    SweepCase("3D +-J, L = 8, 8 samples each", "weak", lambda n: EdwardsAnderson(cubic(8), 8 * n), 128, LADDER, 4),
    SweepCase("3D +-J, L = 16, 512 replicas", "strong", lambda _: EdwardsAnderson(cubic(16)), 512, (1.1,)),
    ProductCase("T of a chain, 22 spins", "strong", lambda _: 22),
)
CASES: Final[dict[str, tuple[Case, ...]]] = {"cpu": _CPU_CASES, CUDA: _CUDA_CASES}


def numbers_of_devices(device: str) -> list[int]:
    """1, 2, 4, ... up to the number of all devices, and that number; ``device`` is from ``resolve_device``."""
    everyone = 1 + len(others())
    if everyone == 1 and device == CUDA:
        from spinsim.cuda.device import names

        everyone = len(names())
    return sorted({everyone, *(2**k for k in range(everyone.bit_length()))})


def scaling_rates(device: str, threads: int | None, repeats: int, rng_rounds: int) -> Iterator[ScalingRate]:
    """Time every case on every number of devices: the median of ``repeats`` runs of about half a second each."""
    where = resolve_device(device)
    for case in CASES[where]:
        of_one_device = 0.0
        for devices in numbers_of_devices(where):
            if isinstance(case, ProductCase) and devices.bit_count() > 1:
                continue  # vectors are shared by powers of two
            rates = Spread.of(case.rates(devices, where, threads, repeats, Dynamics(rng_rounds=rng_rounds)))
            of_one_device = of_one_device or rates.median
            yield ScalingRate(case, devices, rates, rates.median / of_one_device)


def _product_seconds(group: Group, spins: int, device: str, threads: int | None, repeats: int) -> list[float]:
    """Seconds of each of several products, begun together by all members."""
    share, pool = Share(group), Threads(threads if device == "cpu" else 1)
    layer = Layer(Ising(chain(spins)), 0, K_CRITICAL[1], K_CRITICAL[1], "odd")
    vectors = Vectors(layer.dimension, device, pool, share)
    x, y = vectors.empty(), vectors.empty()
    vectors.random(1, 0, 0, x)
    operator = TransferOperator(layer, device, "auto", pool, share)

    def seconds() -> float:
        group.sum(np.zeros(1))  # waits for all
        began = time.perf_counter()
        operator.apply(x, y)
        wait_for(device)
        return time.perf_counter() - began

    seconds(), seconds()  # compiles, and makes room
    return [seconds() for _ in range(repeats)]
