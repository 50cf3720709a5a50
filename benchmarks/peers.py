"""The same instances with spinsim, dwave-samplers and OpenJij: attempted spin updates per nanosecond and core.

    python -m pip install '.[bench]' && python benchmarks/peers.py

Every program runs the same number of sweeps on one core, between the same temperatures; spinsim and dwave-samplers
linearly in the inverse temperature, OpenJij by its own schedule. Peers sweep in sequential order, spinsim colour by
colour; all are Metropolis. The rate is of the whole call, by processor time. solve_peers.py has times to solution.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import openjij
from dwave.samplers import SimulatedAnnealingSampler
from report import report
from solve_peers import sk_model

import spinsim as ss

SIDE, SWEEPS, READS, REPEATS = 10, 1000, 20, 3
BETA = np.linspace(1 / 3, 3, 100)


class Case(NamedTuple):
    """A model, and the replicas of spinsim and reads of the others that it is timed with."""

    kind: str
    model: ss.Ising
    replicas: int
    reads: int


def spinsim_job(model: ss.Ising, replicas: int) -> Callable[[int], float]:
    """Annealing by spinsim on one thread; returns the lowest energy."""

    def job(seed: int) -> float:
        sweeps = SWEEPS // len(BETA)
        result = ss.anneal(model, 1 / BETA, sweeps=sweeps, replicas=replicas, seed=seed, threads=1)
        return float(result.best_energy.min())

    return job


def dwave_job(model: ss.Ising, reads: int) -> Callable[[int], float]:
    """Simulated annealing by dwave-samplers."""
    sampler, bqm = SimulatedAnnealingSampler(), model.to_bqm()
    ends = [BETA[0], BETA[-1]]

    def job(seed: int) -> float:
        found = sampler.sample(
            bqm, num_reads=reads, num_sweeps=SWEEPS, seed=seed, beta_range=ends, beta_schedule_type="linear"
        )
        return float(found.first.energy)

    return job


def openjij_job(model: ss.Ising, reads: int) -> Callable[[int], float]:
    """Simulated annealing by OpenJij."""
    sampler, bqm = openjij.SASampler(), model.to_bqm()

    def job(seed: int) -> float:
        found = sampler.sample(bqm, num_reads=reads, num_sweeps=SWEEPS, beta_min=BETA[0], beta_max=BETA[-1])
        return float(found.first.energy)

    return job


def time_job(job: Callable[[int], float], updates: int) -> tuple[float, float]:
    """Median updates/ns and the lowest energy over the repeats, after one warm-up."""
    job(0)
    rates, energies = [], []
    for seed in range(1, REPEATS + 1):
        began = time.process_time()
        energies.append(job(seed))
        rates.append(updates / (time.process_time() - began) / 1e9)
    return statistics.median(rates), min(energies)


def rows() -> Iterator[dict[str, Any]]:
    """Time everything."""
    sk = sk_model(400)
    cases = [
        Case("3D +-J", ss.EdwardsAnderson(ss.cubic(SIDE), seed=1), 1024, READS),
        Case("3D Gaussian", ss.EdwardsAnderson(ss.cubic(SIDE), seed=1, couplings="gaussian"), 256, READS),
        Case("SK 400", sk, 8, 8),
        Case("SK 400", sk, 128, 128),
    ]
    for case in cases:
        work = case.model.sites * SWEEPS
        timed = {
            "spinsim": (case.replicas, spinsim_job(case.model, case.replicas)),
            "dwave-samplers": (case.reads, dwave_job(case.model, case.reads)),
            "OpenJij": (case.reads, openjij_job(case.model, case.reads)),
        }
        for program, (reads, job) in timed.items():
            rate, energy = time_job(job, work * reads)
            yield {"model": case.kind, "program": program, "reads": reads, "rate": rate, "lowest energy": energy}


if __name__ == "__main__":
    about = f"{SWEEPS} sweeps, whole calls, updates/ns of processor time, median of {REPEATS}; 3D has L = {SIDE}"
    report(about, rows(), ("dwave-samplers", "openjij"))
