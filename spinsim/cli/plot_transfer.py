"""``spinsim plot`` of transfer-matrix runs: xi / L over widths, with the table of crossings."""

from __future__ import annotations

from math import floor, isnan, log10
from pathlib import Path
from typing import TYPE_CHECKING

from spinsim.cli.saying import say

if TYPE_CHECKING:
    from spinsim.result import TransferResult

FIGURE = "lengths"


def is_transfer(file: Path) -> bool:
    """Whether a file holds a transfer-matrix run."""
    from spinsim.store import read_attributes

    return bool(read_attributes(file)["job"] == "transfer")


def _say_what_is_left_out(file: Path, result: TransferResult) -> None:
    """Points without xi / L: of rows that are not there yet, levels that did not converge, lengths beyond rounding.

    Raises:
        InputError: where that leaves nothing to be drawn.
    """
    import numpy as np

    from spinsim.analysis.strips import scaled_lengths
    from spinsim.errors import InputError

    known = np.isfinite(scaled_lengths(result))
    count = f"{known.size - known.sum()} of {known.size}"
    if not known.any():
        raise InputError(
            f"{file} has a finite xi / L at no coupling in all samples: complete it with spinsim resume, or give "
            "smaller couplings"
        )
    if not known.all():
        say(f"{file}: {count} couplings without a finite xi / L in all samples are left out", err=True)
    if not result.finished:
        say(f"{file}: the run is not finished: these are the rows it has so far", err=True)


def plot_transfer(files: list[Path], what: str, out: Path | None, suffix: str | None, overwrite: bool) -> None:
    """Draw xi / L of one file or more, and say where neighbouring widths cross.

    Raises:
        InputError: for another figure, for files of other jobs and for those without xi / L.
    """
    from spinsim.analysis.figures import save_figure
    from spinsim.analysis.figures.strips import lengths_figure
    from spinsim.analysis.strips import length_crossings
    from spinsim.errors import InputError
    from spinsim.result import load_transfer

    if what not in ("all", FIGURE):
        raise InputError(f"figure {what!r} is none of a transfer run: choose all or {FIGURE}")
    results = [load_transfer(file) for file in files]
    for file, result in zip(files, results, strict=True):
        _say_what_is_left_out(file, result)
    crossings = length_crossings(results) if len(files) > 1 else []
    path = out or files[0].with_name(f"{files[0].stem}-{FIGURE}.{suffix or 'pdf'}")
    save_figure(lengths_figure(results, crossings), path, overwrite)
    if crossings:
        say("  widths   crossing of xi / L")
    for c in crossings:
        digits = 3 if isnan(c.error) else max(2, min(10, -floor(log10(c.error or 1e-10))))
        off = "few points between which to interpolate" if isnan(c.error) else f"interpolation within {c.error:.1g}"
        where = f"T = {c.temperature:.{digits}f}, k = {1 / c.temperature:.{digits}f}, {off}"
        say(f"{c.widths[0]:4d},{c.widths[1]:3d}   {c.reason or where}")
    say(path)
