"""``spinsim plot``: figures fit for a paper."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer


def plot(
    file: Annotated[Path, typer.Argument(help="A file that spinsim wrote.")],
    what: Annotated[str, typer.Option(help="all, thermodynamics or configuration.")] = "all",
    sample: Annotated[int, typer.Option(help="Disorder sample of the configuration.")] = 0,
    out: Annotated[Path | None, typer.Option(help="Figure file.  [beside FILE, <FILE's stem>-<what>.pdf]")] = None,
    suffix: Annotated[str | None, typer.Option("--format", help="pdf or png.  [the suffix of --out, else pdf]")] = None,
) -> None:
    """Draw the measurements of a run and its lowest state, for a paper."""
    from spinsim.analysis.figures import configuration_figure, has_configuration, save_figure, thermodynamics_figure
    from spinsim.errors import InputError
    from spinsim.result import load_anneal

    if what not in ("all", "thermodynamics", "configuration"):
        raise InputError(f"figure {what!r} is unknown: choose all, thermodynamics or configuration")
    if out and what == "all":
        raise InputError(f"--out {out} names one figure: add --what thermodynamics or --what configuration")
    if out and suffix and out.suffix[1:].lower() != suffix.lower():
        raise InputError(f"--out {out} and --format {suffix} disagree: leave one of them out")
    if out and os.path.realpath(out) == os.path.realpath(file):
        raise InputError(f"--out {out} is the result file itself: choose another name")
    result = load_anneal(file)
    figures = {}
    if what != "configuration":
        figures["thermodynamics"] = thermodynamics_figure(result)
    if what == "configuration" or (what == "all" and has_configuration(result)):
        figures["configuration"] = configuration_figure(result, sample)
    for name, figure in figures.items():
        path = out or file.with_name(f"{file.stem}-{name}.{suffix or 'pdf'}")
        save_figure(figure, path)
        typer.echo(path)
