"""Single chains of the square ferromagnet with spinsim and mcising: attempted spin updates per nanosecond, one core.

    python -m pip install '.[bench]' && python benchmarks/one_chain.py

A textbook run: one replica at one temperature or at each of a small ladder, with energy and magnetisation kept at
regular intervals. Both programs use Metropolis; mcising has its own order of sites. A rate is printed if the energies
of both agree within 0.5 % or four of their errors.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from mcising import ExecutionMode, LatticeConfig, Simulation, SimulationConfig
from report import report

import spinsim as ss

CRITICAL, REPEATS, THERMALIZE = 2.269185, 5, 2000


class Case(NamedTuple):
    """A run."""

    size: int
    temperatures: tuple[float, ...]
    every: int  # sweeps between measurements
    sweeps: int

    @property
    def updates(self) -> int:
        """Attempted updates of a run."""
        return self.size**2 * len(self.temperatures) * (self.sweeps + THERMALIZE)


LADDER = tuple(np.linspace(2.1, 2.4, 16).tolist())
CASES = (
    Case(32, (CRITICAL,), 1, 100_000),
    Case(32, (CRITICAL,), 10, 200_000),
    Case(128, (CRITICAL,), 10, 20_000),
    Case(32, LADDER, 10, 20_000),
)


def by_spinsim(case: Case, seed: int) -> float:
    """Mean energy of a site at the lowest temperature."""
    run = ss.temper(
        ss.Ising(ss.square(case.size)), case.temperatures, sweeps=case.sweeps, thermalize=THERMALIZE,
        measure_every=case.every, replicas=1, seed=seed, threads=1,
    )  # fmt: skip
    return float(np.mean(run.energy[..., 0])) / case.size**2


def by_mcising(case: Case, seed: int) -> float:
    """The same."""
    mode = ExecutionMode.PARALLEL_TEMPERING if len(case.temperatures) > 1 else ExecutionMode.COOLDOWN
    config = SimulationConfig(
        lattice=LatticeConfig(size=case.size), seed=seed, temperatures=case.temperatures, mode=mode,
        n_sweeps=case.sweeps, n_thermalization=THERMALIZE, measurement_interval=case.every, store_configs=False,
    )  # fmt: skip
    found = Simulation(config).run(show_progress=False)
    return float(np.mean(found.energy[case.temperatures[0]]))


def timed(run: Callable[[Case, int], float], case: Case) -> tuple[float, list[float]]:
    """Median updates/ns of whole calls after one to warm up, and their energies."""
    run(case._replace(sweeps=10 * case.every), 0)
    rates, energies = [], []
    for seed in range(1, REPEATS + 1):
        began = time.process_time()
        energies.append(run(case, seed))
        rates.append(case.updates / (time.process_time() - began) / 1e9)
    return statistics.median(rates), energies


def rows() -> Iterator[dict[str, Any]]:
    """Time everything."""
    for case in CASES:
        (ours, energies), (theirs, their_energies) = timed(by_spinsim, case), timed(by_mcising, case)
        apart = abs(np.mean(energies) - np.mean(their_energies))
        error = np.hypot(np.std(energies), np.std(their_energies)) / np.sqrt(REPEATS - 1)
        if apart > max(0.005 * abs(np.mean(energies)), 4 * error):
            raise SystemExit(f"{case}: energies differ, {np.mean(energies):.5f} and {np.mean(their_energies):.5f}")
        yield {
            "size": case.size, "temperatures": len(case.temperatures), "every": case.every, "spinsim": ours,
            "mcising": theirs, "energy": float(np.mean(energies)),
        }  # fmt: skip


if __name__ == "__main__":
    about = f"2D ferromagnet at T_c or from 2.1 to 2.4, whole calls, processor time, median of {REPEATS}"
    report(about, rows(), ("mcising",))
