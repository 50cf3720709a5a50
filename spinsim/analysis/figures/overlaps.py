"""Distributions of the overlap, P(q)."""

from __future__ import annotations

from dataclasses import replace

import matplotlib.style
import numpy as np

from spinsim.analysis.figures.panels import run_text, show_zero, some_temperatures
from spinsim.analysis.figures.paper import GREY, PAPER, PaperFigure, draw_legend, lay_panels
from spinsim.analysis.overlaps import bins_for, overlap_distribution
from spinsim.analysis.runs import Tempered
from spinsim.observables import in_field


def overlap_figure(result: Tempered, style: str = "single") -> PaperFigure:
    """P(q) at temperatures from the lowest to the highest, evenly chosen; bands are standard errors.

    Without a field it is the mean of P(q) and P(-q), which are equal. There is no band where the error cannot be
    trusted.

    Raises:
        InputError: for a run of one copy or without measurements.
    """
    chosen, even = some_temperatures(result.temperature), not in_field(result.model)
    is_known = True
    with matplotlib.style.context(PAPER):
        figure, (ax,) = lay_panels(style, 1, 2.4)
        for k, colour in chosen:
            alone = replace(result, overlap=result.overlap[..., [k]])
            found = overlap_distribution(alone, bins_for(result, k), symmetrize=even)
            density, error, known = found.density[0], found.error[0], found.trusted[0]
            ax.plot(found.q, density, color=colour, linewidth=0.8, label=f"$T = {result.temperature[k]:.3g}$")
            if known.any():
                low, high = np.maximum(density - error, 0), density + error
                ax.fill_between(found.q, low, high, where=known, color=colour, alpha=0.25, linewidth=0)
            is_known &= bool(known[density > 0].all())
        ax.fill_between([], [], color=GREY, alpha=0.4, linewidth=0, label="standard error")
        ax.set_xlim(-1, 1)
        ax.set_xticks([-1, -0.5, 0, 0.5, 1])
        ax.set_xlabel("overlap $q$")
        ax.set_ylabel("distribution $P(q)$")
        show_zero(ax)
        draw_legend(figure, ax)
    over = "over samples" if result.model.samples > 1 else "of one sample, from its autocorrelation times"
    symmetry = ", the mean of $P(q)$ and $P(-q)$" if even else ""
    none = "" if is_known else " There is none where the error cannot be trusted."
    figure.caption = (
        f"Distribution $P(q)$ of the overlap of two copies at {len(chosen)} of {len(result.temperature)} temperatures, "
        f"of {result.model.name}, {run_text(result)}{symmetry}, in bins as wide as its noise asks for. Bands are "
        f"standard errors {over}.{none}"
    )
    return figure
