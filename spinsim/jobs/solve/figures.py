"""The figure of a solve run: its best energy against time."""

from __future__ import annotations

import numpy as np

from spinsim.analysis.figures import paper
from spinsim.analysis.figures.paper import PaperFigure, drawn_panels
from spinsim.errors import InputError
from spinsim.jobs.solve.result import SolveResult
from spinsim.model.targets import value_name, value_of


def progress_figure(result: SolveResult, style: str = "single") -> PaperFigure:
    """Draw the best energy, or cut, against the time of the search."""
    s, model = result.search, result.model
    if not len(s.improved_seconds):
        raise InputError(f"{model.name} was solved exactly, without a search: there is no progress to draw")
    seconds = np.append(np.maximum(s.improved_seconds, 1e-4), s.elapsed)
    values = value_of(model, np.append(s.improved_energy, s.improved_energy[-1]))
    with drawn_panels(style, 1, 2.2, "time (s)") as (figure, (ax,)):
        ax.step(seconds, values, where="post", color=paper.BLUE, lw=0.8)
        ax.set(xscale="log", ylabel=f"best {value_name(model)}")
    figure.caption = f"Best {value_name(model)} of {model.name} against the time of the search."
    return figure
