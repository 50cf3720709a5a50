"""Distributions of the overlap, P(q)."""

from __future__ import annotations

from typing import Final

import matplotlib.style
import numpy as np
from matplotlib import colormaps
from matplotlib.figure import Figure

from spinsim.analysis.figures.panels import show_zero
from spinsim.analysis.figures.paper import PAPER, WIDTH, draw_legend
from spinsim.analysis.overlaps import overlap_distribution
from spinsim.result import TemperResult

_CURVES: Final = 5  # temperatures whose P(q) is drawn


def overlap_figure(result: TemperResult) -> Figure:
    """P(q) at temperatures from the lowest to the highest, evenly chosen; bands are standard errors.

    There is no band where the error cannot be trusted.

    Raises:
        InputError: for a run of one copy or without measurements.
    """
    found = overlap_distribution(result)
    count = len(result.temperature)
    chosen = sorted({round(k * (count - 1) / (_CURVES - 1)) for k in range(_CURVES)})
    colours = colormaps["plasma"](np.linspace(0, 0.85, len(chosen)))
    with matplotlib.style.context(PAPER):
        figure = Figure(figsize=(WIDTH, 2.8), layout="constrained")
        ax = figure.subplots()
        for colour, k in zip(colours, chosen, strict=True):
            label = f"$T = {result.temperature[k]:.4g}$"
            ax.plot(found.q, found.density[k], color=colour, linewidth=0.8, label=label)
            low, high, known = found.density[k] - found.error[k], found.density[k] + found.error[k], found.trusted[k]
            if known.any():
                ax.fill_between(found.q, np.maximum(low, 0), high, where=known, color=colour, alpha=0.25, linewidth=0)
        ax.set_xlim(-1, 1)
        ax.set_xlabel("overlap $q$")
        ax.set_ylabel("probability density $P(q)$")
        show_zero(ax)
        draw_legend(figure, ax)
    return figure
