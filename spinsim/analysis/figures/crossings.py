"""Figures of several sizes together: curves that cross near a critical point."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import matplotlib.style
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from spinsim.analysis.figures.panels import TEMPERATURE, draw_estimate
from spinsim.analysis.figures.paper import BLUE, GREEN, GREY, ORANGE, PAPER, PURPLE, SKY, VERMILION, WIDTH, draw_legend
from spinsim.analysis.sizes import Comparison, SizeCrossing

LABELS: Final = {
    "binder_cumulant": "Binder cumulant $U_m$",
    "overlap_binder_cumulant": "Binder cumulant $U_q$",
    "correlation_length_over_L": r"$\xi/L$",
    "overlap_correlation_length_over_L": r"$\xi/L$",
}
_COLOURS: Final = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY)


def crossings_figure(comparisons: Sequence[Comparison]) -> Figure:
    """Each estimate against temperature, a panel each with a curve for each size; crossings with their errors.

    Points whose error cannot be trusted are open and have no bar, and so have crossings between such points.

    Args:
        comparisons: As ``compare_sizes`` returns them.
    """
    with matplotlib.style.context(PAPER):
        figure = Figure(figsize=(WIDTH, 0.5 + 2.2 * len(comparisons)), layout="constrained")
        panels = figure.subplots(len(comparisons), squeeze=False, sharex=True)[:, 0]
        for ax, comparison in zip(panels, comparisons, strict=True):
            for k, curve in enumerate(comparison.curves):
                label = curve.label.replace("x", r"\times")
                colour = _COLOURS[k % len(_COLOURS)]
                draw_estimate(ax, curve.temperature, curve.estimate, colour, f"${label}$", joined=True)
            for pair in comparison.crossings:
                _mark(ax, pair)
            ax.set_ylabel(LABELS.get(comparison.name, comparison.name))
        panels[-1].set_xlabel(TEMPERATURE)
        figure.align_ylabels()
        draw_legend(figure, *panels)
    return figure


def _mark(ax: Axes, pair: SizeCrossing) -> None:
    """A diamond at a crossing, with a bar where its error can be trusted."""
    if np.isnan(pair.crossing.value):
        return
    ax.errorbar(
        [pair.crossing.value],
        [pair.height],
        xerr=[pair.crossing.error] if pair.trusted else None,
        fmt="D",
        ms=3,
        mew=0.6,
        mfc="none",
        color=GREY,
        elinewidth=0.8,
        zorder=3,
        label="crossings",
    )
