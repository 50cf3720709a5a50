"""Time in which whole calls meet the best value known, by seed.

    python benchmarks/records.py G22.txt=13359 G55.txt=10299 dense2000=-67978 --seeds 5 --device cuda --out results.json

Each instance has its target behind =. ``ss.anneal``, ``ss.temper`` and ``ss.solve`` get it in turns, with defaults, in
a process that has compiled their kernels. scripts/tables.py makes the table of docs/benchmarks/optimisation.md from
docs/benchmarks/results/records-gpu.json.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

from report import COMPILING, write
from solve_peers import dense_model

import spinsim as ss

CALLS = ss.anneal, ss.temper, ss.solve


def main() -> None:
    """Time each call for each instance, and print or write the seconds."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("instances", nargs="+", help="file=target, or dense2000=target for all pairs coupled by +-1")
    parser.add_argument("--seeds", type=int, default=5, help="number of calls of each kind")
    parser.add_argument("--limit", type=float, default=10.0, help="seconds after which a call is given up")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--out", type=Path, default=None)
    given, rows = parser.parse_args(), []
    for instance in given.instances:
        name, _, target = instance.partition("=")
        model: Any = dense_model(int(name[5:])) if name.startswith("dense") else ss.read_instance(name)
        row: dict[str, Any] = {"instance": Path(name).stem, "sites": model.sites, "target": float(target)}
        for call in CALLS:
            call(model, target=target, time_limit=COMPILING, device=given.device)
            row[call.__name__] = []
            for seed in range(1, given.seeds + 1):
                began = time.perf_counter()
                result: Any = call(model, target=target, time_limit=given.limit, seed=seed, device=given.device)
                seconds = time.perf_counter() - began
                row[call.__name__].append(round(seconds, 4) if result.search.is_met else None)
        rows.append(row)
        print(row, file=sys.stderr, flush=True)
    limits = f"--seeds {given.seeds} --limit {given.limit:g} --device {given.device}"
    write(given.out, f"python benchmarks/records.py FILE=TARGET ... {limits}", given.device, rows)


if __name__ == "__main__":
    main()
