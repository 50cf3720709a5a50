"""The figures of a tempering run, and those of several sizes together."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial

import numpy as np

from spinsim.analysis import figures as draw_series
from spinsim.analysis.figures.panels import run_text
from spinsim.analysis.figures.paper import PaperFigure
from spinsim.analysis.figures.runs import Course, check_begun, draw_cuts
from spinsim.analysis.sources import facts_of
from spinsim.analysis.summary import summarize
from spinsim.jobs.base import Draw, Drawing
from spinsim.jobs.plotting import averages_of_one, figures_of_several
from spinsim.jobs.temper.run import TemperResult


def draw(results: Sequence[TemperResult], wanted: Drawing) -> Draw:
    if len(results) > 1:
        return figures_of_several(results, wanted)
    (result,), figure, style = results, wanted.figure, wanted.style
    summary = cache(partial(summarize, result))
    figures = averages_of_one(result, wanted, summary)
    if figure == "cut" or result.model.maxcut_weight is not None:
        figures["cut"] = partial(cut_figure, result, style)
    if figure == "overlap" or facts_of(result).copies > 1:
        figures["overlap"] = partial(draw_series.overlap_figure, result, style)
    if figure == "exchange" or result.attempts.any():
        figures["exchange"] = partial(draw_series.exchange_figure, result, style)
    figures["equilibration"] = lambda: draw_series.equilibration_figure(result, summary(), style)
    return figures


def cut_figure(result: TemperResult, style: str = "single") -> PaperFigure:
    """Cuts against sweeps: mean and range of the copies at the lowest temperature, and the best of all so far."""
    check_begun(result.model, len(result.energy))
    best = result.energy if result.best_energy is None else result.best_energy
    course = Course(
        result.energy,
        shown=result.energy[..., 0].reshape(len(result.energy), -1),
        done=result.sweep.astype(np.float64),
        unit="sweeps after thermalisation",
        lowest=float(best.min()),
        run=run_text(result),
        which=" at the lowest temperature",
    )
    return draw_cuts(result.model, course, style)
