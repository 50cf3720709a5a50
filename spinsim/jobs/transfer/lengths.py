"""xi / L of transfer matrices against temperature, a curve for each width."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from spinsim.analysis.figures.panels import TEMPERATURE, curve_styles, mark_crossing, scale_logarithmically, sides
from spinsim.analysis.figures.paper import PaperFigure, drawn_panels
from spinsim.analysis.printed import with_error
from spinsim.analysis.strips import LengthCrossing, length_curve
from spinsim.jobs.transfer.result import TransferResult


def lengths_figure(
    results: Sequence[TransferResult],
    crossings: Sequence[LengthCrossing],
    average: str = "mean",
    style: str = "single",
) -> PaperFigure:
    """Correlation lengths over widths, on a logarithmic axis, which cross near a transition, with the crossings.

    Error bars are those over samples, of curves and of crossings, where there are several.

    The axis is k where the first run was given k, else the temperature.

    Raises:
        InputError: where a result has no such length.
    """
    by_k = "k" in given_by(results[0])
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
    """The sides of a layer, as a formula."""
    return f"$L = {sides(result.model.lattice)}$" if result.model.lattice else result.model.name


def _caption(results: Sequence[TransferResult], crossings: Sequence[LengthCrossing], average: str) -> str:
    samples = max(result.model.samples for result in results)
    what = r"Typical correlation length $\exp[\ln\xi]$" if average == "typical" else r"Correlation length $\xi$"
    names = ", ".join(result.model.name for result in results)
    over = f", over {samples} samples; bars are standard errors over them" if samples > 1 else ""
    sentences = [f"{what} over width $L$ from transfer matrices of {names}{over}."]
    for c in crossings:
        if not c.reason:
            known = not np.isnan(c.error)
            where = with_error(c.temperature, c.error) if known else f"{c.temperature:.5g}"
            sentences.append(f"$L = {c.widths[0]}$ and $L = {c.widths[1]}$ cross at $T = {where}$.")
    if len(sentences) > 1:
        sentences.append("Diamonds in the colours of two widths are their crossings.")
    return " ".join([*sentences, "Lines guide the eye."])


def given_by(result: TransferResult) -> list[str]:
    """Which of ``temperature`` and ``k`` a run was given."""
    settings = result.config.get("transfer", result.config)
    return [name for name in ("temperature", "k") if settings.get(name) is not None]
