"""The figure of transfer-matrix runs: xi / L over widths, with the table of crossings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import floor, isnan, log10
from typing import TYPE_CHECKING

import numpy as np

from spinsim.analysis.printed import with_error
from spinsim.analysis.strips import LengthCrossing, length_crossings, scaled_lengths
from spinsim.errors import InputError, worded
from spinsim.jobs.base import Drawing
from spinsim.jobs.transfer.lengths import lengths_figure
from spinsim.jobs.transfer.result import TransferResult

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from spinsim.jobs.base import Draw


def draw(results: Sequence[TransferResult], wanted: Drawing) -> Draw:
    """Returns a function that draws xi / L of one run or more and says where neighbouring widths cross.

    Raises:
        InputError: for runs without xi / L.
    """
    average, near = wanted.options.get("average", "mean"), wanted.options.get("near")
    for result in results:
        _say_what_is_left_out(result, wanted.warn)
    crossings = length_crossings(results, average, near) if len(results) > 1 else []

    def lengths() -> Figure:
        figure = lengths_figure(results, crossings, average, wanted.style)
        if crossings:
            wanted.say(f"  widths   crossing of {'exp[ln xi] / L' if average == 'typical' else 'xi / L'}")
        for c in crossings:
            wanted.say(f"{c.widths[0]:4d},{c.widths[1]:3d}   {c.reason or _where(c)}")
        return figure

    return {"lengths": lengths}


def _say_what_is_left_out(result: TransferResult, warn: Callable[[str], None]) -> None:
    """Say how many points have no xi / L: rows to come, levels that did not converge, lengths that rounding hides.

    Raises:
        InputError: where that leaves nothing to be drawn.
    """
    known = np.isfinite(scaled_lengths(result))
    count, hidden = f"{known.size - known.sum()} of {known.size}", int(result.in_noise[:, :, 1, 0].sum())
    if not known.any():
        raise InputError(
            f"the run of {result.model.name} has a finite xi / L at no coupling in all samples: complete it with "
            f"{worded('spinsim resume', 'ss.resume')}, or give smaller couplings"
        )
    if not known.all():
        why = f": rounding may have changed {hidden} of {result.gap.size} lengths by more than 1 %" if hidden else ""
        warn(f"{result.model.name}: {count} couplings without a finite xi / L in all samples are left out{why}")
    if not result.finished:
        warn(f"{result.model.name}: the run is not finished: these are the rows it has so far")


def _where(c: LengthCrossing) -> str:
    """Returns the temperature of a crossing with what is known of its errors."""
    known = [error for error in (c.error, c.interpolation) if not isnan(error)]
    decimals = max(2, min(10, 1 - floor(log10(max(known) or 1e-10)))) if known else 3
    where = f"{c.temperature:.{decimals}f}" if isnan(c.error) else f"{with_error(c.temperature, c.error)} over samples"
    off = "few points between which to interpolate"
    off = off if isnan(c.interpolation) else f"interpolation within {c.interpolation:.1g}"
    return f"T = {where}, k = {1 / c.temperature:.{decimals}f}, {off}"
