"""Thermal and quantum annealing of MaxCut instances at equal numbers of attempted spin updates, as a table.

    python benchmarks/annealing.py tests/data/G11.txt tests/data/t3g5_5555.mc --sweeps 100 1000

For each number S of sweeps three runs make the same updates: 256 replicas cooled in S sweeps; 8 replicas cooled in 32 S
sweeps; and 8 replicas of 32 slices whose transverse field is turned down in S sweeps. All go through 100 steps by the
default schedules and look at the energies after each. Sixteen such runs are made side by side, of which the table has
the median of the best cut, in how many of them it was the best of all, and the mean of the best cuts of single
replicas (of a quantum run the best of all slices). The seconds of first rows have kernels compiled in them.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np

import spinsim as ss

RUNS, REPLICAS, SLICES, STEPS = 16, 256, 32, 100
WAYS = {"thermal, wide": (REPLICAS, 1, False), "thermal, long": (8, SLICES, False), "quantum": (8, 1, True)}


def cuts(model: ss.Ising, way: str, sweeps: int, device: str) -> tuple[np.ndarray, float]:
    """The best cut of each replica, (runs, replicas), and the seconds that it took."""
    replicas, longer, quantum = WAYS[way]
    options: dict[str, Any] = {"quantum": True, "slices": SLICES} if quantum else {}
    began = time.perf_counter()
    result = ss.anneal(
        model, steps=STEPS, sweeps=max(1, longer * sweeps // STEPS), replicas=RUNS * replicas, device=device, **options
    )
    return model.cut(result.best_energy).reshape(RUNS, replicas), time.perf_counter() - began


def main() -> None:
    """Print the table, a row for each instance and budget."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("instances", nargs="+", type=Path)
    parser.add_argument("--sweeps", nargs="+", type=int, default=[100, 1000])
    parser.add_argument("--device", default="auto")
    wanted = parser.parse_args()
    print("| instance | sweeps S | " + " | ".join(WAYS) + " | seconds |")
    print("| --- |" + " --- |" * (len(WAYS) + 2))
    for path in wanted.instances:
        model = ss.read_instance(path)
        for sweeps in wanted.sweeps:
            found = {way: cuts(model, way, sweeps, wanted.device) for way in WAYS}
            top = max(each.max() for each, _ in found.values())
            texts = [
                f"{np.median(each.max(axis=1)):.10g} ({int((each.max(axis=1) == top).sum())}), {each.mean():.8g}"
                for each, _ in found.values()
            ]
            seconds = ", ".join(f"{taken:.1f}" for _, taken in found.values())
            print(f"| {model.name} | {sweeps:,} | {' | '.join(texts)} | {seconds} |", flush=True)


if __name__ == "__main__":
    main()
