"""The figures of a tempering run, and those of several sizes together."""

from __future__ import annotations

from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from spinsim.analysis import figures as draw_series
from spinsim.analysis.figures.maxcut import Course, check_begun, draw_cuts
from spinsim.analysis.figures.panels import run_text
from spinsim.analysis.figures.paper import PaperFigure
from spinsim.analysis.sizes import check_sizes, compare_sizes
from spinsim.analysis.summary import Summary, summarize
from spinsim.jobs.base import Drawing
from spinsim.jobs.temper.result import TemperResult, load_temper
from spinsim.observables import LABELS

if TYPE_CHECKING:
    from spinsim.jobs.base import Draw


def draw(files: list[Path], wanted: Drawing) -> Draw:
    """Returns functions that draw the figures that can be drawn of one file or several, by their names."""
    results = [load_temper(file) for file in files]
    return _of_one(results[0], wanted) if len(results) == 1 else _of_several(results, wanted)


def _of_one(result: TemperResult, wanted: Drawing) -> Draw:
    what, style, columns = wanted.what, wanted.style, wanted.options.get("columns")
    summary = cache(partial(summarize, result))

    def averages() -> PaperFigure:
        return draw_series.averages_figure([result], [summary()], style, columns=columns)

    figures: Draw = {"thermodynamics": averages}
    if what == "cut" or result.model.maxcut_weight is not None:
        figures["cut"] = partial(cut_figure, result, style)
    if what == "overlap" or result.overlap.shape[2]:
        figures["overlap"] = partial(draw_series.overlap_figure, result, style)
    if what == "exchange" or result.attempts.any():
        figures["exchange"] = partial(draw_series.exchange_figure, result, style)
    figures["equilibration"] = lambda: draw_series.equilibration_figure(result, summary(), style)
    return figures


def _of_several(results: list[TemperResult], wanted: Drawing) -> Draw:
    """Crossings, which are said too, and averages."""
    ordered = sorted(results, key=lambda result: result.model.sites)
    check_sizes(ordered)
    observable, near, columns = (wanted.options.get(name) for name in ("observable", "near", "columns"))

    @cache
    def summaries() -> list[Summary]:
        return [summarize(result) for result in ordered]

    def crossings() -> PaperFigure:
        found = compare_sizes(ordered, observable, near, summaries())
        for comparison in found:
            for pair in comparison.crossings:
                choose = len(pair.crossing.candidates) > 1 and "say near which" in pair.crossing.reason
                wanted.say(f"{LABELS[comparison.name]}: {pair.sentence}{', with --near T' if choose else ''}")
        return draw_series.crossings_figure(found, wanted.style)

    def averages() -> PaperFigure:
        return draw_series.averages_figure(ordered, summaries(), wanted.style, observable, columns)

    return {"crossings": crossings, "thermodynamics": averages}


def cut_figure(result: TemperResult, style: str = "single") -> PaperFigure:
    """Cuts against sweeps: mean and range of the copies at the lowest temperature, and the best of all so far.

    Raises:
        InputError: for a model that is no MaxCut instance, and where nothing is measured yet.
    """
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
