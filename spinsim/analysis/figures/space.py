"""Figures of correlations in space."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from spinsim.analysis.figures import paper
from spinsim.analysis.figures.paper import PaperFigure, drawn_panels
from spinsim.analysis.jackknife import Jackknife
from spinsim.analysis.kinds import is_antiferromagnet, is_ferromagnet
from spinsim.analysis.runs import Array, Integers, Tempered
from spinsim.analysis.space.correlations import space


def draw_curves(ax: Axes, x: Array | Integers, estimate: Jackknife, temperature: Array) -> None:
    """Draw an estimate (temperatures, points) against x at up to five temperatures."""
    for k, colour in paper.some_temperatures(temperature):
        bars = np.where(np.isfinite(estimate.error[k]), estimate.error[k], 0)
        look: dict[str, Any] = {"fmt": "o-", "lw": 0.6, "mec": "none", "color": colour, **paper.POINTS}
        ax.errorbar(x, estimate.value[k], bars, label=f"$T = {temperature[k]:.3g}$", **look)


def correlations_figure(result: Tempered, style: str = "single") -> PaperFigure:
    """Draw the correlation along an axis against distance, and the susceptibility against momentum.

    Both are of the overlap if the run has it, except for models whose spins order alone; in a field the replicon.
    """
    found = space(result)
    shown: tuple[Jackknife, Jackknife]
    shown, names, words = (found.correlation, found.structure_factor), ("$C(r)$", "$S(k)$"), "spins"
    order_alone = is_ferromagnet(result.model) or is_antiferromagnet(result.model)
    c4, chi = found.overlap_correlation, found.overlap_susceptibility
    if c4 is not None and chi is not None and (found.is_replicon or not order_alone):
        shown, names, words = (c4, chi), ("$C_4(r)$", r"$\chi_{\rm SG}(k)$"), "overlaps"
        if found.is_replicon:
            names, words = ("$G_R(r)$", r"$\chi_R(k)$"), "connected overlaps of four copies"
    with drawn_panels(style, 2, 1.9) as (figure, (left, right)):
        draw_curves(left, found.distance, shown[0], found.temperature)
        draw_curves(right, found.wave_number, shown[1], found.temperature)
        paper.tick_integers(left.xaxis)
        for ax, x, y in zip((left, right), ("distance $r$", "wave number $k$"), names, strict=True):
            ax.set_xlabel(x)
            ax.set_ylabel(y)
        paper.scale_logarithmically(right)
    figure.caption = (
        f"Correlation {names[0]} along an axis, and its Fourier transform {names[1]} at momenta along an axis, of "
        f"{words} of {result.model.name}, {paper.run_text(result)}. {paper.BARS}"
    )
    return figure
