"""Bars side by side, for benchmarks."""

from __future__ import annotations

import matplotlib.style
import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from spinsim.analysis.figures.paper import BLUE, GREY, ORANGE, PAPER, STYLES, VERMILION


def bar_figure(names: list[str], values: dict[str, npt.NDArray[np.float64]], label: str) -> Figure:
    """Horizontal bars: a group for each name, from the top, in it a bar for each series; NaN where there is none."""
    colours = (BLUE, ORANGE, VERMILION, GREY)
    with matplotlib.style.context(PAPER):
        figure = Figure(figsize=(STYLES["single"], 0.8 + 0.06 * len(names) * (1 + len(values))), layout="constrained")
        axes = figure.subplots()
        height, middle = 0.8 / len(values), np.arange(len(names), dtype=np.float64)
        for i, (series, lengths) in enumerate(values.items()):
            axes.barh(middle - 0.4 + (i + 0.5) * height, lengths, height, color=colours[i % len(colours)], label=series)
        axes.set_yticks(middle, names)
        axes.yaxis.set_minor_locator(NullLocator())
        axes.tick_params(axis="y", length=0)
        axes.invert_yaxis()
        axes.set_xlabel(label)
        axes.legend()
    return figure
