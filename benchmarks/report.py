"""Results of the programs beside, as text or as an object for docs/benchmarks/results."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

from spinsim.cli.bench import machine

COMPILING = 0.4  # seconds of the first call for each model: kernels compile, and the model keeps forms of its matrix


def arguments(
    about: str, seconds: float, several: str = "+", kind: Callable[[str], Any] = Path
) -> argparse.ArgumentParser:
    """Return the options that scripts of searches share, from their docstring and the time of a search.

    ``several`` and ``kind`` say how many instances are given, and as what.
    """
    parser = argparse.ArgumentParser(description=about.split("\n", maxsplit=1)[0])
    parser.add_argument("instances", nargs=several, type=kind)
    parser.add_argument("--seconds", type=float, default=seconds, help="largest time of each search")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, help="file for the results, by default standard output")
    return parser


def write(out: Path | None, command: str, device: str, rows: list[dict[str, Any]], **more: Any) -> None:
    """Write rows as a file of docs/benchmarks/results, or to standard output; ``more`` is told beside them."""
    about = {"command": command, "machine": machine(device, None), "date": date.today().isoformat()}
    text = json.dumps({**about, **more, "rows": rows}, indent=1)
    if out is None:
        print(text)
    else:
        out.write_text(f"{text}\n")


def report(about: str, rows: Iterable[dict[str, Any]], programs: tuple[str, ...]) -> None:
    """Print rows of the same names, as they come; ``programs`` are the distributions whose versions are told."""
    if "--json" in sys.argv:
        told = {
            "command": f"python benchmarks/{Path(sys.argv[0]).name}",
            "machine": machine("cpu", 1),
            "date": date.today().isoformat(),
            "about": about,
            "versions": {name: version(name) for name in ("spinsim-ising", *programs)},
        }
        print(json.dumps({**told, "rows": list(rows)}))
        return
    print(f"{about}; {machine('cpu', 1)}")
    widths: dict[str, int] = {}
    for row in rows:
        texts = {name: f"{value:.4g}" if isinstance(value, float) else str(value) for name, value in row.items()}
        if not widths:
            widths = {name: max(len(name), len(text), 12) + 2 for name, text in texts.items()}
            print("".join(f"{name:>{width}}" for name, width in widths.items()))
        print("".join(f"{texts[name]:>{width}}" for name, width in widths.items()), flush=True)
