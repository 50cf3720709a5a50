"""One search in a process of its own, importing no more than its program needs: solve_peers.py --fresh starts these.

    python benchmarks/fresh_process.py PROGRAM FILE TARGET SETTING SEED

SETTING is JSON as solve_peers.py makes it. The exit status is 0 once the target, a cut of a rudy file, is met.
"""

from __future__ import annotations

import itertools
import json
import sys
from pathlib import Path
from typing import Any

MOST_READS = 1024


def spinsim(file: str, target: float, seed: int, setting: dict[str, Any]) -> None:
    """As a user of Python would."""
    import spinsim as ss

    ss.anneal(ss.read_instance(file), target=target, seed=seed, threads=1)


def others(program: str, file: str, target: float, seed: int, setting: dict[str, Any]) -> None:
    """The samplers of dimod, with a reader of their own."""
    import dimod

    lines = (line.split() for line in Path(file).read_text().splitlines()[1:])
    weights = {(int(i), int(j)): float(w) for i, j, w in (line for line in lines if len(line) == 3)}
    bqm = dimod.BinaryQuadraticModel.from_ising({}, weights)
    energy = sum(weights.values()) - 2 * target
    sampler: Any
    named: dict[str, Any] = {"num_sweeps": setting["sweeps"]}
    if program == "OpenJij":
        import openjij

        sampler = openjij.SASampler()
        named |= {} if setting["own_range"] else dict(zip(("beta_min", "beta_max"), setting["range"], strict=True))
    else:
        from dwave.samplers import SimulatedAnnealingSampler

        sampler = SimulatedAnnealingSampler()
        named |= {} if setting["own_range"] else {"beta_range": setting["range"]}
    reads = 1
    for number in itertools.count():
        own = {} if program == "OpenJij" else {"seed": 100_000 * seed + number}
        if sampler.sample(bqm, num_reads=reads, **named, **own).record.energy.min() <= energy + 1e-9 * abs(energy):
            return
        reads = min(2 * reads, MOST_READS) if setting["doubling"] else 1


def main() -> None:
    """Search as asked."""
    program, file, target, setting, seed = sys.argv[1:]
    if program == "spinsim anneal":
        spinsim(file, float(target), int(seed), json.loads(setting))
    else:
        others(program, file, float(target), int(seed), json.loads(setting))


if __name__ == "__main__":
    main()
