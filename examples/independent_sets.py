"""Largest independent sets of graphs as QUBOs, and a submission in the form of the suite QOBLIB.

    python examples/independent_sets.py                      three random graphs, five seconds each
    python examples/independent_sets.py FILE.qs.xz ...       instances of QOBLIB, problem 07
    python examples/independent_sets.py --seconds 60 ...     seconds for each
    python examples/independent_sets.py --submission FOLDER  also write summaries and solutions there
    python examples/independent_sets.py --short              the form that the tests run

Size of the best independent set against the time of the search, for random graphs of 200, 400 and 800 sites in which
half of all pairs are joined. A site has the value -1, a pair of joined sites that are both chosen the penalty 2.

What to learn here: ``ss.solve`` with a time limit and a test of feasibility, its quality, and the course of a search.
Submissions go to https://github.com/ZIB-AOPT/QOBLIB; fields that only you know are left as N/A.
"""

import csv
import datetime as dt
import platform
import sys
from pathlib import Path

import matplotlib.style
import numpy as np
from matplotlib.figure import Figure

import spinsim as ss

matplotlib.style.use("spinsim.paper")  # one column of a paper


def argument(name: str, default: str) -> str:
    """The word after an option of the command line."""
    return sys.argv[sys.argv.index(name) + 1] if name in sys.argv else default


def random_graph(sites: int) -> ss.Ising:
    """The QUBO of a random graph in which half of all pairs are joined."""
    joined = np.triu(np.random.default_rng(sites).random((sites, sites)) < 0.5, 1)
    return ss.Ising.from_qubo(2.0 * joined - np.eye(sites), name=f"random-{sites}")


def submit(result: ss.SolveResult, folder: Path, values: list[int]) -> None:
    """Write the summary and the solution of one instance."""
    name, bound = result.model.name, result.quality.bound
    place = folder / name
    (place / "solutions").mkdir(parents=True, exist_ok=True)
    lines = "".join(f"x#{k} {value}\n" for k, value in enumerate(values, 1))
    (place / "solutions" / f"{name}_solution_000.mst").write_text(lines)
    s = result.search
    summary = {
        "Problem": name, "Submitter": "N/A", "Affiliation": "N/A", "Date": dt.date.today().isoformat(),
        "Reference": "spinsim, examples/independent_sets.py", "Best Objective Value": sum(values),
        "Optimality Bound": "N/A" if bound is None else int(np.floor(-bound)), "Modeling Approach": "QUBO",
        "# Decision Variables": len(values), "# Binary Variables": len(values), "# Integer Variables": "N/A",
        "# Continuous Variables": "N/A", "# Non-Zero Coefficients": result.model.quadratic.values.size,
        "Coefficients Type": "Integer", "Coefficients Range": "N/A",
        "Workflow": f"spinsim solve, methods {'; '.join(result.methods) or 'exact'}", "Algorithm Type": "Stochastic",
        "Paradigm": "Classical", "# Runs": 1, "# Feasible Runs": 1, "# Successful Runs": "N/A",
        "Success Threshold": "N/A", "Hardware Specifications": f"{result.attributes['devices']} {platform.machine()}",
        "Total Runtime": round(s.elapsed, 3), "Time to Solution": round(float(s.improved_seconds.max(initial=0)), 3),
        "CPU Runtime": "N/A", "GPU Runtime": "N/A", "QPU Runtime": "N/A", "Other HW Runtime": "N/A",
        "Remarks": "N/A" if not result.quality.is_proven else "proven to be optimal",
    }  # fmt: skip
    with (place / f"{name}_summary.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(summary))
        writer.writeheader()
        writer.writerow(summary)


files = [Path(word) for word in sys.argv[1:] if word.endswith((".qs", ".qs.xz"))]
sizes = (20, 40) if "--short" in sys.argv else (200, 400, 800)
models = [ss.read_instance(file) for file in files] or [random_graph(sites) for sites in sizes]
seconds = float(argument("--seconds", "0.3" if "--short" in sys.argv else "5"))

figure = Figure()
axes = figure.subplots()
for model in models:
    result = ss.solve(model, time_limit=seconds)
    chosen = list(result.best.by_label.values())
    print(f"{model.name}: {sum(chosen)} of {len(chosen)} sites, {result.quality.sentence}", flush=True)
    if result.best.energy != -sum(chosen):
        print("    two chosen sites are joined: give more time")
    s = result.search
    times = np.append(s.improved_seconds, s.elapsed)
    found = -np.append(s.improved_energy, s.improved_energy[-1:] if len(s.improved_energy) else result.best_energy[0])
    axes.step(np.maximum(times, 1e-3), found - model.offset, where="post", label=model.name)
    if "--submission" in sys.argv:
        submit(result, Path(argument("--submission", "")), chosen)
axes.set(xscale="log", xlabel="time (s)", ylabel="size of the best independent set")
axes.legend()
if "--figure" in sys.argv:
    figure.savefig(argument("--figure", ""))
