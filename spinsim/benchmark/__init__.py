"""Rates on this machine, measured on states in equilibrium dynamics, never frozen ones: parts that benchmarks share."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim.engine import Engine
from spinsim.model.ising import Ising

WARM_UP_SWEEPS: Final = 50
SECONDS: Final = 0.5  # of a run
MEASURE_EVERY: Final = 10  # sweeps between measurements


class Spread(NamedTuple):
    """Rates of several runs, in updates (of products amplitudes) per nanosecond, all devices together."""

    median: float
    slowest: float
    fastest: float

    @classmethod
    def of(cls, rates: Sequence[float]) -> Spread:
        return cls(statistics.median(rates), min(rates), max(rates))

    @property
    def span(self) -> str:
        return f"{self.slowest:.3f} to {self.fastest:.3f}"


@dataclass(frozen=True)
class Case:
    """One line of a table: a model on a ladder of temperatures near its transition, where many flips are undecided."""

    name: str
    model: Callable[[], Ising]
    ladder: tuple[float, float, int]  # lowest temperature, highest temperature, number of temperatures
    copies: int = 1  # copies of the ladder in each sample
    reference: str = ""  # rates of other programs for similar models, updates/ns
    times: tuple[int, ...] = ()  # times of correlations of spins, in slices
    terms: tuple[float, ...] = ()
    """Factor of the inverse temperature for each term of the model, where it has terms."""

    @property
    def beta(self) -> npt.NDArray[np.float64]:
        """Inverse temperatures from the largest to the smallest, (temperatures,) or (temperatures, terms)."""
        beta = 1.0 / np.linspace(*self.ladder)
        return np.multiply.outer(beta, self.terms) if self.terms else beta

    @property
    def replicas(self) -> int:
        return self.copies * self.ladder[2]


def sweep_rates(engine: Engine, repeats: int, timed: Callable[[int], float] | None = None) -> tuple[int, list[float]]:
    """Number of sweeps in half a second, once warm, and updates/ns of runs of that many; ``timed`` returns seconds."""
    timed = timed or seconds_of(engine, engine.sweep)
    updates = engine.model.sites * engine.model.samples * engine.replicas
    timed(1)  # compiles, or loads what is compiled
    sweeps = max(1, int(SECONDS / timed(WARM_UP_SWEEPS) * WARM_UP_SWEEPS))
    return sweeps, [updates * sweeps / timed(sweeps) / 1e9 for _ in range(repeats)]


def timed_tempering(engine: Engine) -> Callable[[int], float]:
    """Return a timer of an engine's sweeps on its ladder, with an exchange after each and no measurements."""
    return seconds_of(engine, lambda sweeps: engine.temper(sweeps, 1))


def seconds_of(engine: Engine, work: Callable[[int], None]) -> Callable[[int], float]:
    """Return a timer of an amount of work of an engine, until the work is done."""

    def seconds(amount: int) -> float:
        engine.wait()
        began = time.perf_counter()
        work(amount)
        engine.wait()
        return time.perf_counter() - began

    return seconds


def wait_for(device: str) -> None:
    """Wait until all work on the present stream of a GPU is done; return at once on the CPU."""
    if device == "cuda":
        import cupy

        cupy.cuda.get_current_stream().synchronize()
