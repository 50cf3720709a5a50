"""Time in which ``ss.solve`` meets the largest independent sets known of QOBLIB, problem 07.

    python benchmarks/qoblib.py FILE.qs.xz ... --seconds 60 --out results.json

Each instance gets one call with the known size as its target, in a process that has compiled its kernels. Sizes are
those of the suite's list of November 2026 (https://github.com/ZIB-AOPT/QOBLIB). scripts/tables.py makes the table of
docs/benchmarks/optimisation.md from docs/benchmarks/results/independent-sets.json.
"""

from __future__ import annotations

import sys
import time

from report import COMPILING, arguments, write

import spinsim as ss

KNOWN = {
    "C125-9": 34, "C500-9": 57, "MANN-a9": 3, "R_1000_005_1": 117, "R_500_005_1": 91, "aves-sparrow-social": 13,
    "brock200-2": 12, "brock400-1": 27, "brock800-1": 23, "c-fat200-1": 18, "chesapeake": 17, "es60fst01": 60,
    "es60fst02": 88, "es60fst03": 55, "es60fst04": 78, "farm": 10, "football": 16, "frb100-40": 94, "frb45-21-3": 45,
    "frb53-24-1": 52, "frb59-26-2": 58, "gen200_p0-9_44": 44, "hamming10-4": 40, "hamming6-2": 2, "hamming6-4": 12,
    "ibm32": 13, "insecta-ant-colony1-day38": 6, "insecta-ant-colony3-day09": 9, "johnson16-2-4": 15,
    "johnson8-2-4": 7, "johnson8-4-4": 5, "karate": 20, "keller4": 11, "mammalia-kangaroo-interactions": 4,
    "p_hat1500-3": 94, "sloane_1dc_64": 10, "sloane_1zc_128": 18, "sloane_2dc_128": 5, "socfb-haverford76": 282,
    "socfb-trinity100": 499, "sorrell7": 198,
}  # fmt: skip


def main() -> None:
    """Solve each instance, and print or write what was found."""
    given = arguments(str(__doc__), 60.0).parse_args()
    command = f"python benchmarks/qoblib.py *.qs.xz --seconds {given.seconds:g} --device {given.device}"
    rows = []
    for path in given.instances:
        model = ss.read_instance(path)
        ss.solve(model, COMPILING, device=given.device)
        began = time.perf_counter()
        result = ss.solve(model, given.seconds, -KNOWN[model.name], seed=given.seed, device=given.device)
        seconds, size = time.perf_counter() - began, round(-result.best.energy)
        proven = result.quality.is_proven
        rows.append({"instance": model.name, "sites": model.sites, "known": KNOWN[model.name], "size": size})
        rows[-1] |= {"seconds": round(seconds, 4), "proven": proven}
        print(rows[-1], file=sys.stderr, flush=True)
        if given.out is not None or path == given.instances[-1]:  # after each, as a search of all may be cut short
            write(given.out, command, given.device, rows, seed=given.seed)


if __name__ == "__main__":
    main()
