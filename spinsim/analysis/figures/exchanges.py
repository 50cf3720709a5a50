"""Exchanges of a tempering run and the round trips that they make."""

from __future__ import annotations

from typing import Any, Final

import matplotlib.style
import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes

from spinsim.analysis.figures.panels import POINTS, TEMPERATURE, run_text, tick_integers
from spinsim.analysis.figures.paper import BLUE, PAPER, SKY, VERMILION, PaperFigure, draw_legend, lay_panels
from spinsim.analysis.runs import Tempered
from spinsim.errors import InputError

_BARS: Final = 30  # of the histogram, at most


def exchange_figure(result: Tempered, style: str = "single") -> PaperFigure:
    """Accepted exchanges of each pair of neighbouring temperatures, and a histogram of the replicas' round trips.

    Bars reach from the lowest to the highest rate of the samples: they are no errors. A pair stands at the geometric
    mean of its temperatures. Replicas that made no round trip have a colour of their own.

    Raises:
        InputError: where nothing was exchanged yet.
    """
    if not result.attempts.any():
        raise InputError(
            f"the run of {result.model.name} has saved no exchange yet: a first checkpoint must come before"
        )
    samples = result.model.samples
    with matplotlib.style.context(PAPER):
        figure, (rates, trips) = lay_panels(style, 2, 1.7)
        _draw_rates(rates, result)
        _draw_trips(trips, result.round_trips)
        figure.align_ylabels()
        draw_legend(figure, rates, trips)
    bars = " Bars reach from the lowest to the highest of the samples." if samples > 1 else ""
    none = int((result.round_trips == 0).sum())
    figure.caption = (
        f"Share of exchanges accepted between neighbouring temperatures, at their geometric mean, and histogram of "
        f"round trips from the highest temperature to the lowest and back, of {result.model.name}, {run_text(result)}."
        f"{bars} Of {result.round_trips.size} replicas {none} made no round trip; the mean is "
        f"{result.round_trips.mean():.3g} in {int(result.sweep[-1])} sweeps."
    )
    return figure


def _draw_rates(ax: Axes, result: Tempered) -> None:
    """Means over the samples, with bars over their range where there are several."""
    rates, mean, ladder = result.accepts / np.maximum(result.attempts, 1), result.swap_rate, result.temperature
    x = np.sqrt(ladder[1:] * ladder[:-1])
    if len(rates) > 1:
        # the rate of all samples can lie outside the range by rounding
        reach = np.maximum(np.stack([mean - rates.min(axis=0), rates.max(axis=0) - mean]), 0)
        ax.errorbar(x, mean, reach, fmt="none", color=SKY, elinewidth=1.6, capsize=0, label="range of samples")
    label = "mean of samples" if len(rates) > 1 else "rate"
    ax.plot(x, mean, "o", ms=POINTS["ms"], mec="none", color=BLUE, label=label)
    margin = 0.03 * np.ptp(ladder)
    ax.set_xlim(ladder.min() - margin, ladder.max() + margin)  # the whole ladder, not the middles of its pairs alone
    ax.set_ylim(0, 1)
    ax.set_xlabel(TEMPERATURE)
    ax.set_ylabel("exchanges accepted")


def _draw_trips(ax: Axes, trips: npt.NDArray[np.int64]) -> None:
    """How many replicas made how many round trips."""
    none, most = int((trips == 0).sum()), max(1, int(trips.max()))
    least = 1 if none else int(trips.min())
    width = -(-(most - least + 1) // _BARS)
    edges = np.arange(least, most + width + 1, width)
    counts, _ = np.histogram(trips, edges)
    style: dict[str, Any] = {"align": "edge", "ec": "white", "lw": 0.3}
    ax.bar(edges[:-1] - 0.5, counts, np.diff(edges), color=BLUE, **style)
    if none:
        ax.bar([-0.5], [none], 1, color=VERMILION, label="no round trip", **style)
    ax.set_xlim((0 if none else least) - 0.5, edges[-1] - 0.5)
    tick_integers(ax.xaxis)
    tick_integers(ax.yaxis)
    ax.set_xlabel("round trips")
    ax.set_ylabel("replicas")
