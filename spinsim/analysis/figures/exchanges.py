"""Exchanges of a tempering run and the round trips that they make."""

from __future__ import annotations

from typing import Any

import matplotlib.style
import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from spinsim.analysis.figures.panels import TEMPERATURE, run_text, show_zero, tick_integers
from spinsim.analysis.figures.paper import BLUE, GREY, PAPER, WIDTH, draw_legend
from spinsim.errors import InputError
from spinsim.result import TemperResult

Array = npt.NDArray[np.float64]


def exchange_figure(result: TemperResult) -> Figure:
    """Accepted exchanges of each pair of neighbouring temperatures, and round trips of each replica.

    Bars reach from the lowest to the highest of the samples. A pair stands at the geometric mean of its temperatures.

    Raises:
        InputError: where nothing was exchanged yet.
    """
    if not result.attempts.any():
        raise InputError(
            f"the run of {result.model.name} has saved no exchange yet: a first checkpoint must come before"
        )
    ladder = result.temperature
    rates = result.accepts / np.maximum(result.attempts, 1)
    trips = result.round_trips.astype(np.float64)
    with matplotlib.style.context(PAPER):
        figure = Figure(figsize=(WIDTH, 3.6), layout="constrained")
        top, bottom = figure.subplots(2)
        _draw_range(top, np.sqrt(ladder[1:] * ladder[:-1]), rates, result.swap_rate, run_text(result))
        top.set_ylim(0, 1)
        top.set_xlabel(TEMPERATURE)
        top.set_ylabel("exchanges accepted")
        _draw_range(bottom, np.arange(trips.shape[1], dtype=np.float64), trips, trips.mean(axis=0), run_text(result))
        bottom.axhline(1, color=GREY, linewidth=0.8, zorder=1, label="one round trip")
        show_zero(bottom)
        tick_integers(bottom.xaxis)
        bottom.set_xlabel("replica")
        bottom.set_ylabel("round trips")
        figure.align_ylabels()
        draw_legend(figure, top, bottom)
    return figure


def _draw_range(ax: Axes, x: Array, samples: Array, mean: Array, label: str) -> None:
    """Means with bars over the range of the samples (samples, points), where there are several."""
    style: dict[str, Any] = {"fmt": "o", "ms": 2.2, "mec": "none", "elinewidth": 0.6, "capthick": 0.6, "color": BLUE}
    reach = np.stack([mean - samples.min(axis=0), samples.max(axis=0) - mean]) if len(samples) > 1 else None
    # the rate of all samples can lie outside the range by rounding
    ax.errorbar(x, mean, None if reach is None else np.maximum(reach, 0), label=label, **style)
