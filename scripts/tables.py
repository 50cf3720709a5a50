"""Write tables of rates and of validation in the pages anew, from docs/benchmarks/results and docs/images/made.

    python scripts/tables.py            # after the command that a results file names has made it anew

Results of the examples, which scripts/pictures.py keeps, become tables and blocks likewise. A table stands between the
lines ``<!-- table NAME -->`` and ``<!-- end -->`` of a page. tests/house/test_rates.py compares all of them with the
results.
"""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[1]
RESULTS: Final = ROOT / "docs/benchmarks/results"
PAGES: Final = (
    "README.md", "docs/benchmarks/index.md", "docs/benchmarks/performance.md", "docs/benchmarks/scaling.md",
    "docs/benchmarks/optimisation.md",
    "paper/paper.md", "docs/validation/index.md", "docs/validation/spin_glass.md", "docs/validation/clusters.md",
    "docs/validation/nishimori.md", "docs/validation/out_of_equilibrium.md", "docs/validation/quantum_glass.md",
    "docs/theory/clusters.md", "docs/theory/quantum.md", "docs/theory/gemm.md",
)  # fmt: skip
TABLE: Final = re.compile(
    r"(?:<!--|#) table (?P<name>[\w-]+)(?: -->)?\n(?P<text>.*?)(?=^(?:<!--|#) end)", re.DOTALL | re.MULTILINE
)
SCATTER: Final = 0.02  # of a median, from which on the slowest and the fastest run are told too
MACHINES: Final = {"NVIDIA H200": "H200", "NVIDIA H100 80GB HBM3": "H100", "CPU znver3": "Zen 3"}
PROGRAMS: Final = "spinsim", "mcising"

Row = dict[str, Any]


def results(file: str) -> dict[str, Any]:
    """What a command has printed."""
    return dict(json.loads((RESULTS / f"{file}.json").read_text()))


def rows(file: str) -> list[Row]:
    """Rows of its table."""
    return list(results(file)["rows"])


def machine(file: str) -> str:
    """A short name of the machine that made it."""
    name, _, _ = results(file)["machine"].partition(",")
    return MACHINES[name]


def number(value: float) -> str:
    """A rate with three digits, or all before the point."""
    return f"{value:,.0f}" if value >= 100 else f"{value:#.3g}"


def rate(row: Row) -> str:
    """The median, and the span of the runs where these scatter."""
    low, high = row["slowest"], row["fastest"]
    scatters = high - low > SCATTER * row["median"]
    return number(row["median"]) + (f" ({number(low)} to {number(high)})" if scatters else "")


def percent(share: float, digits: int = 0) -> str:
    """A share in words."""
    return f"{100 * share:.{digits}f} %"


def of_lines(head: Iterable[str], lines: Iterable[Iterable[str]]) -> str:
    """A table."""
    cells = [tuple(head), *map(tuple, lines)]
    cells.insert(1, ("---",) * len(cells[0]))
    return "".join(f"| {' | '.join(line)} |\n" for line in cells)


def name_of(row: Row) -> str:
    """The case, as the pages write it."""
    case = str(row["case"]).replace("+-J", "±J")
    if not case.endswith(", ladder"):
        return case
    samples = "one sample" if row["samples"] == 1 else f"{row['samples']} samples"
    return f"{case.removesuffix(', ladder')}, {samples}, {row['replicas']} temperatures"


def metropolis(file: str, measuring: bool) -> str:
    """Rates of sweeps; of one lattice in one column, as measuring is another matter there."""
    head = ["model", "replicas", "cores", "updates/ns", "measuring"]
    lines = [
        [name_of(row), f"{row['replicas']:,}", str(row["cores"]), rate(row), percent(row["measuring"], 1)]
        for row in rows(file)
    ]
    kept = [0, 1, 2, 3] if not measuring else [0, 1, 3, 4]
    return of_lines([head[k] for k in kept], [[line[k] for k in kept] for line in lines])


def one_lattice(file: str) -> str:
    """Rates by the side of a lattice, a row for each model."""
    found = {tuple(str(row["case"]).replace("+-J", "±J").split(", L = ")): rate(row) for row in rows(file)}
    models = list(dict.fromkeys(model for model, _ in found))
    sides = sorted({int(side) for _, side in found})
    head = ["side L", *map(str, sides)]
    return of_lines(head, [[model, *(found.get((model, str(side)), "") for side in sides)] for model in models])


def tempering(file: str) -> str:
    """Rates of tempering beside those of sweeps."""
    lines = [
        [
            f"{name_of(row)}, {row['samples']:,} x {row['temperatures']} x {row['copies']}",
            number(row["sweeps_alone"]),
            f"{rate(row)}, {percent(row['median'] / row['sweeps_alone'])}",
            f"{number(row['correlations'])}, {percent(row['correlations'] / row['sweeps_alone'])}",
        ]
        for row in rows(file)
    ]  # fmt: skip
    case = "case, samples x temperatures x copies"
    return of_lines([case, "sweeps alone", "energies, magnetisations, overlaps", "and correlations"], lines)


def jobs(file: str) -> str:
    """Whole commands beside their engines."""
    lines = [
        [
            name_of(row), number(row["engine"]), number(row["command"]), percent(row["command"] / row["engine"]),
            f"{row['seconds']:.1f}", number(row["file_bytes"] / 1e6),
        ]
        for row in rows(file)
    ]  # fmt: skip
    return of_lines(["case", "engine", "command", "share", "seconds", "file, MB"], lines)


def scaling(file: str) -> str:
    """Rates of one device and of several."""
    lines = []
    for row in rows(file):
        gain = f"{row['gain']:.3f}", percent(row["gain"] / row["devices"], 1)
        lines.append([name_of(row), row["growth"], str(row["devices"]), rate(row), *gain])
    return of_lines(["case", "", "GPUs", "a ns", "times one", "of linear"], lines)


def one_chain(file: str) -> str:
    """Single chains beside mcising."""
    lines = [
        [f"L = {row['size']}", str(row["temperatures"]), str(row["every"]), *(number(row[name]) for name in PROGRAMS)]
        for row in rows(file)
    ]
    return of_lines(["lattice", "temperatures", "sweeps between measurements", *PROGRAMS], lines)


def rate_of(program: Row) -> float:
    """The rate of a program, typed or from the row of a file."""
    if "file" not in program:
        return float(program["rate"] if "program" in program else program["typed"])
    wanted = program["row"].items()
    (found,) = (row for row in rows(program["file"]) if wanted <= row.items())
    return float(found[program["rate"]])


def told(program: Row) -> str:
    """The same in words; published rates have the digits of their authors."""
    return number(rate_of(program)) if "file" in program else f"{rate_of(program):,g}"


def where(program: Row) -> str:
    """The machine of a program."""
    if "machine" in program:
        return str(program["machine"])
    name = machine(program["file"])
    return f"one {name}" if name.startswith("H") else f"one {name} core"


def elsewhere(program: Row) -> str:
    """The machine where it is not ours."""
    return "" if where(program).startswith("the same") else f", {where(program)}"


def others() -> list[Row]:
    """Programs beside spinsim, by problem."""
    return list(json.loads((RESULTS / "others.json").read_text()))


def beside() -> str:
    """All of them, with how their rates came about."""
    lines = []
    for one in others():
        texts = [
            f"{told(other)}, {other['program']}, {where(other)}" + (f", {other['how']}" if "how" in other else "")
            for other in one["others"]
        ]
        lines.append([one["problem"], f"{told(one['ours'])}, {where(one['ours'])}", "; ".join(texts)])
    return of_lines(["problem", "spinsim", "other programs"], lines)


def front() -> str:
    """Those of the README."""
    lines = []
    for one in others():
        if "title" in one:
            texts = [f"{told(other)} ({other['program']}{elsewhere(other)})" for other in one["others"]]
            ours = f"{told(one['ours'])} ({where(one['ours'])})"
            lines.append([one["title"], ours, ", ".join(texts)])
    return of_lines(["problem", "spinsim", "others"], lines)


def chart() -> str:
    """The same as Python, for the chart."""
    text = "rates = {\n"
    for one in others():
        if "title" in one:
            bars = [("spinsim", one["ours"]), *((other["program"], other) for other in one["others"])]
            text += f'    "{one["title"]}": [\n'
            text += "".join(f'        ("{name}, {where(bar)}", {rate_of(bar):.4g}),\n' for name, bar in bars)
            text += "    ],\n"
    return text + "}\n"


def made(name: str) -> dict[str, Any]:
    """How an example made its picture, with its output."""
    return dict(json.loads((ROOT / f"docs/images/made/{name}.json").read_text()))


def output(name: str) -> str:
    """Command, machine and output of an example, as a block of text."""
    known = made(name)
    lines = [f"$ {known['command']}", *known["output"], f"({known['machine']}, {known['seconds']:.0f} s)"]
    return "```text\n" + "\n".join(textwrap.fill(line, 110, subsequent_indent="    ") for line in lines) + "\n```\n"


def with_error(value: str, error: str = "") -> str:
    """Number and error as the field writes them, 1.234 and 0.056 as 1.234(56)."""
    if not error:
        return value
    digits = len(value.partition(".")[2])
    return f"{value}({round(float(error.rstrip('.')) * 10**digits)})"


def compared(table: str) -> str:
    """Exact or published values beside those of the examples."""
    lines = []
    for row in json.loads((ROOT / "docs/validation/comparisons.json").read_text()):
        if row["table"] == table:
            text = "\n".join(made(row["example"])["output"])
            values = []
            for pattern in row["patterns"]:
                found = re.search(pattern, text, re.DOTALL)
                if found is None:
                    raise ValueError(f"{row['example']} prints nothing like {pattern}")
                values.append(with_error(*found.groups()))
            lines.append([row["quantity"], row["known"], row["words"].format(*values), row["how"]])
    return of_lines(["quantity", "exact or published", "spinsim", "how"], lines)


def products() -> str:
    """Rates of the rungs of matrix products."""
    found = re.findall(
        r"^(\S+) +(\w+) (\d+)\^3 +[\d.]+ +([\d.]+) +([\d.]+)%", "\n".join(made("gemm")["output"]), re.MULTILINE
    )
    cases = list(dict.fromkeys((kind, side) for _, kind, side, _, _ in found))
    rates = {(name, kind, side): f"{rate}, {share} %" for name, kind, side, rate, share in found}
    names = dict.fromkeys(name for name, *_ in found)
    head = ["rung", *(f"{kind} ${side}^3$" for kind, side in cases)]
    return of_lines(head, [[name, *(rates.get((name, *case), "") for case in cases)] for name in names])


def searches() -> str:
    """Times to the best known value by program, in milliseconds, and the fastest other one over ``ss.solve``."""
    found = results("solve-peers")
    programs = list(dict.fromkeys(name for row in found["rows"] for name in row["seconds"]))
    lines = []
    for row in found["rows"]:
        seconds = row["seconds"]
        cells = [
            "" if name not in seconds
            else f"> {found['limit']:g} s" if seconds[name] is None
            else number(1e3 * seconds[name])
            for name in programs
        ]  # fmt: skip
        others = [one for name, one in seconds.items() if not name.startswith("spinsim") and one is not None]
        solve = seconds["spinsim solve"]
        ratio = (
            number(min(others) / solve) if others and solve else f"> {number(found['limit'] / solve)}" if solve else ""
        )
        lines.append([row["instance"], str(row["sites"]), f"{row['value']} {row['target']:.12g}", *cells, ratio])
    heads = [name.replace("spinsim ", "") for name in programs]
    return of_lines(["instance", "sites", "target", *heads, "fastest other / solve"], lines)


def portfolio() -> str:
    """Best values of single methods and of the portfolio."""
    methods, said = ("anneal", "temper", "solve"), {True: "optimal", False: ""}
    lines = [
        [
            row["instance"],
            str(row["sites"]),
            row["value"],
            *(f"{row[name]:.12g}" for name in methods),
            said[row["proven"]],
        ]
        for row in rows("portfolio")
    ]
    return of_lines(["instance", "sites", "value", *methods, "proof"], lines)


def records() -> str:
    """Shortest and longest seconds of whole calls that meet the best value known, and how many of them did."""
    calls = "anneal", "temper", "solve"

    def said(seconds: list[float | None]) -> str:
        met = sorted(one for one in seconds if one is not None)
        if not met:
            return "no"
        times = number(met[0]) if len(met) == 1 else f"{number(met[0])} to {number(met[-1])}"
        return times if len(met) == len(seconds) else f"{times} ({len(met)} of {len(seconds)})"

    lines = [
        [row["instance"], str(row["sites"]), f"{row['target']:.12g}", *(said(row[call]) for call in calls)]
        for row in rows("records-gpu")
    ]
    return of_lines(["instance", "sites", "target", *(f"`{call}`, s" for call in calls)], lines)


def g_set() -> str:
    """Cuts and seconds of all graphs, and proofs."""
    said = {True: "optimal", False: ""}
    lines = [
        [*(str(row[name]) for name in ("graph", "sites", "known", "cut")), number(row["seconds"]), said[row["proven"]]]
        for row in rows("gset")
    ]
    return of_lines(["graph", "sites", "largest known cut", "cut", "seconds", "proof"], lines)


def independent_sets(name: str) -> str:
    """Sizes and seconds of the instances that take longest."""
    lines = [
        [row["instance"], str(row["sites"]), f"{row['size']} of {row['known']}", number(row["seconds"])]
        for row in rows(name)
        if row["seconds"] > 0.1 or row["size"] < row["known"]
    ]
    return of_lines(["instance", "sites", "size, of the largest known", "seconds"], lines)


OUTPUTS: Final = (
    "coherence", "continuous_time", "critical_coupling", "critical_field", "dynamic_exponent", "ground_states",
    "houdayer", "houdayer_large", "nishimori", "nishimori_cubic", "quantum_glass_transition", "residual_energy",
    "spin_glass_transition",
)  # fmt: skip
"""Examples whose output stands in a page."""
TABLES: Final[dict[str, Callable[[], str]]] = {
    "metropolis-cpu": lambda: metropolis("metropolis-cpu", measuring=False),
    "metropolis-gpu": lambda: metropolis("metropolis-gpu", measuring=True),
    "one-lattice-cpu": lambda: one_lattice("one-lattice-cpu"),
    "one-lattice-gpu": lambda: one_lattice("one-lattice-gpu"),
    "temper-cpu": lambda: tempering("temper-cpu"),
    "temper-gpu": lambda: tempering("temper-gpu"),
    "jobs-cpu": lambda: jobs("jobs-cpu"),
    "jobs-gpu": lambda: jobs("jobs-gpu"),
    "scaling": lambda: scaling("scaling"),
    "solve-peers": searches,
    "portfolio": portfolio,
    "independent-sets": lambda: independent_sets("independent-sets"),
    "independent-sets-gpu": lambda: independent_sets("independent-sets-gpu"),
    "records-gpu": records,
    "gset": g_set,
    "one-chain": lambda: one_chain("one-chain"),
    "beside": beside,
    "front": front,
    "chart": chart,
    "classical": lambda: compared("classical"),
    "quantum": lambda: compared("quantum"),
    "gemm": products,
    **{f"output-{name}": partial(output, name) for name in OUTPUTS},
}


def written_anew(text: str) -> str:
    """A page with its tables as the results have them."""

    def replaced(found: re.Match[str]) -> str:
        first, _, _ = found[0].partition("\n")
        return f"{first}\n{TABLES[found['name']]()}"

    return TABLE.sub(replaced, text)


def main() -> None:
    """Write all pages."""
    for page in PAGES:
        path = ROOT / page
        path.write_text(written_anew(path.read_text()))


if __name__ == "__main__":
    main()
