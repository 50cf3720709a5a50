"""Figure of transfer-matrix runs: xi / L for several widths, with the table of crossings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import floor, isnan, log10

import numpy as np
from matplotlib.figure import Figure

from spinsim.analysis.figures.paper import (
    TEMPERATURE,
    PaperFigure,
    curve_styles,
    drawn_panels,
    mark_crossing,
    scale_logarithmically,
    sides,
)
from spinsim.analysis.strips import LengthCrossing, length_crossings, length_curve, scaled_lengths
from spinsim.analysis.tables import with_error
from spinsim.errors import InputError, argument, worded
from spinsim.jobs.base import Draw, Drawing
from spinsim.jobs.transfer.run import TransferResult


def draw(results: Sequence[TransferResult], wanted: Drawing) -> Draw:
    average, near = wanted.options.get("average", "mean"), wanted.options.get("near")
    for result in results:
        _warn_of_omissions(result, wanted.warn)
    crossings = length_crossings(results, average, near) if len(results) > 1 else []

    def lengths() -> Figure:
        figure = lengths_figure(results, crossings, average, wanted.style)
        if crossings:
            wanted.say(f"  widths   crossing of {'exp[ln xi] / L' if average == 'typical' else 'xi / L'}")
        for c in crossings:
            wanted.say(f"{c.widths[0]:4d},{c.widths[1]:3d}   {c.reason or _where(c)}")
        return figure

    return {"lengths": lengths}


def _warn_of_omissions(result: TransferResult, warn: Callable[[str], None]) -> None:
    """Warn of points without xi / L: missing rows, levels that did not converge, lengths lost to rounding."""
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
    if len(result.k) == 1:
        warn(
            f"{result.model.name}: one coupling is one point of the figure: several make a curve, run with "
            f"{argument('temperature', '2:2.6:13')}"
        )
    if not result.finished:
        warn(f"{result.model.name}: the run is not finished: these are the rows it has so far")


def _where(c: LengthCrossing) -> str:
    known = [error for error in (c.error, c.interpolation) if not isnan(error)]
    decimals = max(2, min(10, 1 - floor(log10(max(known) or 1e-10)))) if known else 3
    where = f"{c.temperature:.{decimals}f}" if isnan(c.error) else f"{with_error(c.temperature, c.error)} over samples"
    off = "few points between which to interpolate"
    off = off if isnan(c.interpolation) else f"interpolation within {c.interpolation:.1g}"
    return f"T = {where}, k = {1 / c.temperature:.{decimals}f}, {off}"


def lengths_figure(
    results: Sequence[TransferResult], crossings: Sequence[LengthCrossing], average: str = "mean", style: str = "single"
) -> PaperFigure:
    """Draw correlation lengths over widths on a logarithmic axis, and their crossings near a transition.

    Error bars are standard errors over several samples. The axis is k if the first run was given k, else the
    temperature.
    """
    by_k = results[0].config.get("transfer", results[0].config).get("k") is not None
    ordered = sorted(results, key=lambda result: result.model.sites)
    colours = {}
    with drawn_panels(style, 1, 2.4) as (figure, (ax,)):
        for result, (colour, marker) in zip(ordered, curve_styles(len(ordered)), strict=True):
            curve = length_curve(result, average)
            colours[curve.width] = colour
            x = 1 / curve.temperature if by_k else curve.temperature
            known = not np.isnan(curve.log_error).all()
            bars = curve.value * np.expm1(np.multiply.outer([-1, 1], curve.log_error)) if known else None
            ax.errorbar(
                x, curve.value, None if bars is None else np.abs(bars), fmt=f"{marker if len(x) < 30 else ''}-", ms=2.2,
                lw=0.8, elinewidth=0.6, color=colour, label=_label(result),
            )  # fmt: skip
        for c in crossings:
            if not c.reason:
                t = c.temperature
                place, error = (1 / t, c.error / t**2) if by_k else (t, c.error)
                mark_crossing(ax, place, c.height, error, (colours[c.widths[0]], colours[c.widths[1]]))
        scale_logarithmically(ax)
        ax.set_xlabel(r"coupling $k = 1/T$" if by_k else TEMPERATURE)
        ax.set_ylabel(r"$\exp[\ln\xi]/L$" if average == "typical" else r"$\xi/L$")
    figure.caption = _caption(ordered, crossings, average)
    return figure


def _label(result: TransferResult) -> str:
    return f"$L = {sides(result.model.lattice)}$" if result.model.lattice else result.model.name


def _caption(results: Sequence[TransferResult], crossings: Sequence[LengthCrossing], average: str) -> str:
    samples = max(result.model.samples for result in results)
    quantity = r"Typical correlation length $\exp[\ln\xi]$" if average == "typical" else r"Correlation length $\xi$"
    names = ", ".join(result.model.name for result in results)
    over = f", over {samples} samples; bars are standard errors over them" if samples > 1 else ""
    sentences = [f"{quantity} over width $L$ from transfer matrices of {names}{over}."]
    for c in crossings:
        if not c.reason:
            known = not np.isnan(c.error)
            where = with_error(c.temperature, c.error) if known else f"{c.temperature:.5g}"
            sentences.append(f"$L = {c.widths[0]}$ and $L = {c.widths[1]}$ cross at $T = {where}$.")
    if len(sentences) > 1:
        sentences.append("Diamonds in the colours of two widths are their crossings.")
    return " ".join([*sentences, "Lines guide the eye."])
