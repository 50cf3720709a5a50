"""The figures of a quantum run, and those of several sizes together."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import matplotlib.style
import numpy as np

from spinsim.analysis import figures as draw_series
from spinsim.analysis.decay import FEWEST_STEPS, decay
from spinsim.analysis.figures.panels import BARS, POINTS, scale_logarithmically, some_temperatures
from spinsim.analysis.figures.paper import PAPER, PaperFigure, draw_legend, lay_panels
from spinsim.analysis.gaps import Gaps, correlation_in_time, gaps
from spinsim.analysis.samples import sample_of
from spinsim.analysis.sizes import check_sizes, compare_sizes
from spinsim.analysis.summary import Summary, summarize
from spinsim.jobs.base import Drawing
from spinsim.jobs.quantum.result import QuantumResult, load_quantum

if TYPE_CHECKING:
    from spinsim.jobs.base import Draw

_SYMBOLS: Final = {"k": "$k$", "gamma": r"$\Gamma$", "beta": r"$\beta$"}
_ABSCISSAE: Final = {
    "k": "step in time $k$",
    "gamma": r"transverse field $\Gamma$",
    "beta": r"inverse temperature $\beta$",
}


def draw(files: list[Path], wanted: Drawing) -> Draw:
    """Returns functions that draw the figures that can be drawn of one file or several, by their names."""
    results = [load_quantum(file) for file in files]
    if len(results) > 1:
        return {"crossings": partial(_crossings, sorted(results, key=lambda result: result.model.sites), wanted)}
    return {"time": partial(time_figure, results[0], wanted.style)}


def _crossings(results: list[QuantumResult], wanted: Drawing) -> PaperFigure:
    """Crossings along the ladder, which are said too."""
    check_sizes(results)
    summaries: list[Summary] = [summarize(result) for result in results]
    found = compare_sizes(results, wanted.options.get("observable"), wanted.options.get("near"), summaries)
    symbol = results[0].axis.symbol
    for comparison in found:
        for pair in comparison.crossings:
            choose = len(pair.crossing.candidates) > 1 and "say near which" in pair.crossing.reason
            wanted.say(f"{comparison.name}: {pair.sentence}{f', with --near {symbol.upper()}' if choose else ''}")
    return draw_series.crossings_figure(found, wanted.style, _ABSCISSAE[results[0].axis.name])


def time_figure(result: QuantumResult, style: str = "single") -> PaperFigure:
    """C(t) at some points of the ladder with the fits from which gaps come, of the first of several samples."""
    one = sample_of(result, 0)
    found, fits = correlation_in_time(one), _gaps(one)
    with matplotlib.style.context(PAPER):
        figure, (ax,) = lay_panels(style, 1, 2.4, r"time $t$ (slices)")
        for place, colour in some_temperatures(result.axis.values):
            known = found.trusted[place]
            error = np.where(known, found.error[place], np.nan)
            label = f"{_SYMBOLS[result.axis.name]} $= {result.axis.values[place]:.4g}$"
            ax.errorbar(found.time, found.value[place], error, fmt="o", color=colour, mec="none", label=label, **POINTS)
            if fits is not None and fits.first[0, place]:
                last = found.time == fits.last[0, place]
                shape = decay(float(fits.gap[0, place]), found.time, result.slices / 2)
                ax.plot(found.time, shape * (found.value[place] / shape)[last], color=colour, linewidth=0.6)
        ax.set_ylabel("$C(t)$")
        scale_logarithmically(ax)
        draw_legend(figure, ax)
    lines = "Lines are the lowest level, $c\\cosh[\\Delta(L_\\tau/2 - t)]$, through the last time of its fit."
    lines = lines if fits is not None else ""
    which = "Correlations in time" + (" of the first sample" if result.model.samples > 1 else "")
    figure.caption = f"{which} of {result.model.name}. {BARS} {lines}".rstrip()
    return figure


def _gaps(result: QuantumResult) -> Gaps | None:
    """The fits, where there are any."""
    return None if result.model.fields.any() or len(result.sweep) < FEWEST_STEPS else gaps(result)
