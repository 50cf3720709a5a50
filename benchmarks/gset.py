"""Time in which ``ss.solve`` meets the largest cut known of each graph of the G-set, and what it proves.

    python benchmarks/gset.py                     all 71 graphs, 10 s each at most
    python benchmarks/gset.py 22 63 --device cuda

The graphs are made by rudy.py. scripts/tables.py makes the table of docs/benchmarks/optimisation.md from
docs/benchmarks/results/gset.json.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from report import COMPILING, arguments, write
from rudy import NUMBERS, write_graph

import spinsim as ss

_CUTS: Final = (
    11624, 11620, 11622, 11646, 11631, 2178, 2006, 2005, 2054, 2000, 564, 556, 582, 3064, 3050, 3052, 3047, 992, 906,
    941, 931, 13359, 13344, 13337, 13340, 13328, 3341, 3298, 3405, 3413, 3310, 1410, 1382, 1384, 7687, 7680, 7691, 7688,
    2408, 2400, 2405, 2481, 6660, 6650, 6654, 6649, 6657, 6000, 6000, 5880, 3848, 3851, 3850, 3852, 10299, 4017, 3494,
    19293, 6086, 14188, 5796, 4872, 27047, 8751, 5562, 6364, 6950, 9595, 7008, 9940, 14060,
)  # fmt: skip
KNOWN: Final = dict(zip(NUMBERS, _CUTS, strict=True))
"""Largest cuts known in 2026, by number, as lists in public programs have them (many are of Benlic, Hao, Eng. Appl.
Artif. Intell. 26, 1162 (2013); G63 of arXiv 2510.21105 (2025)). Such lists have 4,870 for G62; 4,872 is the proven
largest cut of the graph that rudy.py makes, whose seed is a guess."""


def main() -> None:
    """Solve each graph, and print or write what was found."""
    given = arguments(str(__doc__), 10.0, "*", int).parse_args()
    command = f"python benchmarks/gset.py --seconds {given.seconds:g} --device {given.device}"
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        for number in given.instances or NUMBERS:
            model, known = ss.read_instance(write_graph(number, Path(folder))), KNOWN[number]
            ss.solve(model, COMPILING, device=given.device)
            began = time.perf_counter()
            result = ss.solve(model, given.seconds, known, seed=given.seed, device=given.device)
            seconds, cut = time.perf_counter() - began, round(result.best.cut or 0)
            rows.append({"graph": f"G{number}", "sites": model.sites, "bonds": model.bonds, "known": known, "cut": cut})
            rows[-1] |= {"seconds": round(seconds, 4), "proven": result.quality.is_proven}
            print(rows[-1], file=sys.stderr, flush=True)
    write(given.out, command, given.device, rows, seed=given.seed)


if __name__ == "__main__":
    main()
