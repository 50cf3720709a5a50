"""Distributions of the overlap, P(q)."""

from __future__ import annotations

import matplotlib.style
import numpy as np

from spinsim.analysis.figures.panels import run_text, show_zero, some_temperatures
from spinsim.analysis.figures.paper import GREY, PAPER, PaperFigure, draw_legend, lay_panels
from spinsim.analysis.overlaps import overlap_distribution
from spinsim.analysis.runs import Tempered


def overlap_figure(result: Tempered, style: str = "single") -> PaperFigure:
    """P(q) at temperatures from the lowest to the highest, evenly chosen; bands are standard errors.

    There is no band where the error cannot be trusted.

    Raises:
        InputError: for a run of one copy or without measurements.
    """
    found = overlap_distribution(result)
    chosen = some_temperatures(result.temperature)
    with matplotlib.style.context(PAPER):
        figure, (ax,) = lay_panels(style, 1, 2.4)
        for k, colour in chosen:
            label = f"$T = {result.temperature[k]:.3g}$"
            ax.plot(found.q, found.density[k], color=colour, linewidth=0.8, label=label)
            low, high, known = found.density[k] - found.error[k], found.density[k] + found.error[k], found.trusted[k]
            if known.any():
                ax.fill_between(found.q, np.maximum(low, 0), high, where=known, color=colour, alpha=0.25, linewidth=0)
        ax.fill_between([], [], color=GREY, alpha=0.4, linewidth=0, label="standard error")
        ax.set_xlim(-1, 1)
        ax.set_xlabel("overlap $q$")
        ax.set_ylabel("distribution $P(q)$")
        show_zero(ax)
        draw_legend(figure, ax)
    over = "over samples" if result.model.samples > 1 else "of one sample, from its autocorrelation times"
    none = "" if all(found.trusted[k].all() for k, _ in chosen) else " There is none where the error cannot be trusted."
    figure.caption = (
        f"Distribution $P(q)$ of the overlap of two copies at {len(chosen)} of {len(result.temperature)} temperatures, "
        f"of {result.model.name}, {run_text(result)}. Bands are standard errors {over}.{none}"
    )
    return figure
