"""``spinsim plot`` of transfer-matrix runs: xi / L over widths, with the table of crossings."""

from __future__ import annotations

from math import floor, isnan, log10
from pathlib import Path
from typing import TYPE_CHECKING

from spinsim.cli.saying import say
from spinsim.cli.showing import save_and_say

if TYPE_CHECKING:
    from spinsim.analysis.strips import LengthCrossing
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
    count, hidden = f"{known.size - known.sum()} of {known.size}", int(result.in_noise[:, :, 1, 0].sum())
    if not known.any():
        raise InputError(
            f"{file} has a finite xi / L at no coupling in all samples: complete it with spinsim resume, or give "
            "smaller couplings"
        )
    if not known.all():
        why = f": rounding may have changed {hidden} of {result.gap.size} lengths by more than 1 %" if hidden else ""
        say(f"{file}: {count} couplings without a finite xi / L in all samples are left out{why}", err=True)
    if not result.finished:
        say(f"{file}: the run is not finished: these are the rows it has so far", err=True)


def plot_transfer(
    files: list[Path],
    what: str,
    out: Path | None,
    suffix: str | None,
    style: str,
    overwrite: bool,
    average: str,
    near: float | None,
) -> None:
    """Draw xi / L of one file or more, and say where neighbouring widths cross.

    Raises:
        InputError: for another figure, for files of other jobs and for those without xi / L.
    """
    from spinsim.analysis.figures.strips import lengths_figure
    from spinsim.analysis.strips import length_crossings
    from spinsim.errors import InputError
    from spinsim.result import load_transfer

    if what not in ("all", FIGURE):
        raise InputError(f"figure {what!r} is none of a transfer run: choose all or {FIGURE}")
    if near is not None and len(files) == 1:
        raise InputError("--near is for the crossings of several widths: leave it out")
    results = [load_transfer(file) for file in files]
    for file, result in zip(files, results, strict=True):
        _say_what_is_left_out(file, result)
    crossings = length_crossings(results, average, near) if len(files) > 1 else []
    path = out or files[0].with_name(f"{files[0].stem}-{FIGURE}.{suffix or 'pdf'}")
    figure = lengths_figure(results, crossings, average, style)
    if crossings:
        of = "exp[ln xi] / L" if average == "typical" else "xi / L"
        say(f"  widths   crossing of {of}")
    for c in crossings:
        say(f"{c.widths[0]:4d},{c.widths[1]:3d}   {c.reason or _where(c)}")
    save_and_say({path: figure}, overwrite)


def _where(c: LengthCrossing) -> str:
    """The temperature of a crossing with what is known of its errors."""
    known = [error for error in (c.error, c.interpolation) if not isnan(error)]
    digits = max(2, min(10, 1 - floor(log10(max(known) or 1e-10)))) if known else 3
    statistical = "" if isnan(c.error) else f" +- {c.error:.2g} over samples"
    off = "few points between which to interpolate"
    off = off if isnan(c.interpolation) else f"interpolation within {c.interpolation:.1g}"
    return f"T = {c.temperature:.{digits}f}{statistical}, k = {1 / c.temperature:.{digits}f}, {off}"
