"""``spinsim plot`` of transfer-matrix runs: xi / L over widths, with the table of crossings."""

from __future__ import annotations

from math import floor, isnan, log10
from pathlib import Path

import typer

FIGURE = "lengths"


def is_transfer(file: Path) -> bool:
    """Whether a file holds a transfer-matrix run."""
    from spinsim.store import read_attributes

    return bool(read_attributes(file)["job"] == "transfer")


def plot_transfer(files: list[Path], what: str, out: Path | None, suffix: str | None) -> None:
    """Draw xi / L of one file or more, and say where neighbouring widths cross.

    Raises:
        InputError: for another figure and for files of other jobs.
    """
    from spinsim.analysis.figures import save_figure
    from spinsim.analysis.figures.strips import lengths_figure
    from spinsim.analysis.strips import length_crossings
    from spinsim.errors import InputError
    from spinsim.result import load_transfer

    if what not in ("all", FIGURE):
        raise InputError(f"figure {what!r} is none of a transfer run: choose all or {FIGURE}")
    results = [load_transfer(file) for file in files]
    crossings = length_crossings(results) if len(files) > 1 else []
    path = out or files[0].with_name(f"{files[0].stem}-{FIGURE}.{suffix or 'pdf'}")
    save_figure(lengths_figure(results, crossings), path)
    if crossings:
        typer.echo("  widths   crossing of xi / L")
    for c in crossings:
        digits = 3 if isnan(c.error) else max(2, min(10, -floor(log10(c.error or 1e-10))))
        off = "few points between which to interpolate" if isnan(c.error) else f"interpolation within {c.error:.1g}"
        where = f"T = {c.temperature:.{digits}f}, k = {1 / c.temperature:.{digits}f}, {off}"
        typer.echo(f"{c.widths[0]:4d},{c.widths[1]:3d}   {c.reason or where}")
    typer.echo(path)
