"""Figures that all runs with a ladder have, of temperatures or of k, Gamma or beta: averages and crossings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING

from spinsim.analysis import figures
from spinsim.analysis.figures.paper import PaperFigure
from spinsim.analysis.runs import Tempered
from spinsim.analysis.sizes import check_sizes, compare_sizes, say_crossings, sites_of_space
from spinsim.analysis.summary import Summary, summarize
from spinsim.jobs.base import Drawing

if TYPE_CHECKING:
    from spinsim.jobs.base import Draw


def averages_of_one(result: Tempered, wanted: Drawing, summary: Callable[[], Summary]) -> Draw:
    """Returns functions that draw the averages of a run and, where it has any, what orders in it."""

    def thermodynamics() -> PaperFigure:
        return figures.averages_figure([result], [summary()], wanted.style, columns=wanted.options.get("columns"))

    drawn: Draw = {"thermodynamics": thermodynamics}
    if wanted.what == "order" or figures.order_names(result):
        drawn["order"] = lambda: figures.order_figure(result, summary(), wanted.style)
    return drawn


def figures_of_several(results: Sequence[Tempered], wanted: Drawing) -> Draw:
    """Returns functions that draw crossings of several sizes, which are said too, and their averages."""
    ordered = sorted(results, key=lambda result: sites_of_space(result.model))
    check_sizes(ordered)
    observable, near, columns = (wanted.options.get(name) for name in ("observable", "near", "columns"))

    @cache
    def summaries() -> list[Summary]:
        return [summarize(result) for result in ordered]

    def crossings() -> PaperFigure:
        found = compare_sizes(ordered, observable, near, summaries())
        say_crossings(found, wanted.say)
        return figures.crossings_figure(found, wanted.style, figures.ladder_label(ordered[0].axis))

    def thermodynamics() -> PaperFigure:
        return figures.averages_figure(ordered, summaries(), wanted.style, observable, columns)

    return {"crossings": crossings, "thermodynamics": thermodynamics}
