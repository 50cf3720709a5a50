"""The same 3D +-J instance with spinsim, dwave-samplers and OpenJij: attempted spin updates per nanosecond and core.

    python -m pip install '.[bench]' && python benchmarks/peers.py

Every program runs the same number of sweeps on one core, from T = 3 to 1/3; spinsim and dwave-samplers linearly in the
inverse temperature, OpenJij by its own schedule. Peers sweep in sequential order, spinsim in checkerboard order; all
are Metropolis. The rate is of the whole call, as a user meets it.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import numpy as np
import openjij
from dwave.samplers import SimulatedAnnealingSampler

import spinsim as ss

SIDE, SWEEPS, READS, REPEATS = 10, 1000, 20, 3
BETA = np.linspace(1 / 3, 3, 100)


def spinsim_job(model: ss.Ising, replicas: int) -> Callable[[int], float]:
    """Annealing by spinsim on one thread; returns the lowest energy."""

    def job(seed: int) -> float:
        sweeps = SWEEPS // len(BETA)
        result = ss.anneal(model, 1 / BETA, sweeps=sweeps, replicas=replicas, seed=seed, threads=1)
        return float(result.best_energy.min())

    return job


def dwave_job(fields: dict[int, float], couplings: dict[tuple[int, int], float]) -> Callable[[int], float]:
    """Simulated annealing by dwave-samplers."""
    sampler = SimulatedAnnealingSampler()

    def job(seed: int) -> float:
        found = sampler.sample_ising(
            fields,
            couplings,
            num_reads=READS,
            num_sweeps=SWEEPS,
            seed=seed,
            beta_range=[BETA[0], BETA[-1]],
            beta_schedule_type="linear",
        )
        return float(found.first.energy)

    return job


def openjij_job(fields: dict[int, float], couplings: dict[tuple[int, int], float]) -> Callable[[int], float]:
    """Simulated annealing by OpenJij."""
    sampler = openjij.SASampler()

    def job(seed: int) -> float:
        found = sampler.sample_ising(
            fields, couplings, num_reads=READS, num_sweeps=SWEEPS, seed=seed, beta_min=BETA[0], beta_max=BETA[-1]
        )
        return float(found.first.energy)

    return job


def time_job(job: Callable[[int], float], updates: int) -> tuple[float, float]:
    """Median updates/ns and the lowest energy over the repeats, after one warm-up."""
    job(0)
    rates, energies = [], []
    for seed in range(1, REPEATS + 1):
        began = time.perf_counter()
        energies.append(job(seed))
        rates.append(updates / (time.perf_counter() - began) / 1e9)
    return statistics.median(rates), min(energies)


def main() -> None:
    """Time everything and print the table."""
    packed = ss.EdwardsAnderson(ss.cubic(SIDE), seed=1)
    general = ss.EdwardsAnderson(ss.cubic(SIDE), seed=1, couplings="gaussian")
    sites = packed.sites
    rows = []
    for kind, model, replicas in (("+-J", packed, 1024), ("Gaussian", general, 256)):
        ends = model.graph.edges.tolist()
        couplings = {(i, j): -float(c) for (i, j), c in zip(ends, model.couplings[0], strict=True)}
        fields = dict.fromkeys(range(sites), 0.0)
        for name, job, reads in (
            ("spinsim", spinsim_job(model, replicas), replicas),
            ("dwave-samplers", dwave_job(fields, couplings), READS),
            ("OpenJij", openjij_job(fields, couplings), READS),
        ):
            rows.append((kind, name, reads, *time_job(job, sites * SWEEPS * reads)))
    reference = {kind: rate for kind, name, _, rate, _ in rows if name == "dwave-samplers"}
    print(f"3D, L = {SIDE}, {SWEEPS} sweeps, one core, whole call timed, median of {REPEATS}")
    print(f"{'model':10}{'program':16}{'reads':>6}{'updates/ns':>12}{'/ dwave':>9}{'lowest energy':>15}")
    for kind, name, reads, rate, energy in rows:
        print(f"{kind:10}{name:16}{reads:6d}{rate:12.4f}{rate / reference[kind]:9.1f}{energy:15.4f}")


if __name__ == "__main__":
    main()
