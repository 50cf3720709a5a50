"""The best values of ``ss.solve`` beside those of ``ss.anneal`` and ``ss.temper`` alone, in the same time.

    python benchmarks/portfolio.py FILES... --seconds 4 --out results.json

Each call has all cores, defaults and a process that has compiled its kernels. scripts/tables.py makes the table of
docs/benchmarks/optimisation.md from docs/benchmarks/results/portfolio.json.
"""

from __future__ import annotations

import sys
from functools import partial
from typing import Any

from report import arguments, write

import spinsim as ss
from spinsim.model.targets import value_name, value_of


def main() -> None:
    """Search for the best value of each instance by each call."""
    given = arguments(str(__doc__), 4.0).parse_args()
    rows = []
    for path in given.instances:
        model = ss.read_instance(path)
        calls = {call.__name__: partial(call, model, seed=given.seed, device=given.device) for call in CALLS}
        row = {"instance": model.name, "sites": model.sites, "value": value_name(model)}
        for name, call in calls.items():
            call(time_limit=0.02)  # compiles
            found: Any = call(time_limit=given.seconds)
            row[name] = float(value_of(model, found.best_energy.min()))
        row["proven"] = found.quality.is_proven  # of solve, which comes last
        rows.append(row)
        print(row, file=sys.stderr, flush=True)
    command = f"python benchmarks/portfolio.py FILES --seconds {given.seconds:g}"
    write(given.out, command, given.device, rows, seed=given.seed)


CALLS = ss.anneal, ss.temper, ss.solve

if __name__ == "__main__":
    main()
