"""The figures of an annealing run."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from spinsim.analysis.figures.panels import replicas_text
from spinsim.analysis.figures.paper import PaperFigure
from spinsim.analysis.figures.runs import Course, check_begun, draw_cuts
from spinsim.jobs.anneal.lowest_state import configuration_figure, why_no_configuration
from spinsim.jobs.anneal.result import AnnealResult
from spinsim.jobs.anneal.thermodynamics import thermodynamics_figure
from spinsim.jobs.base import Drawing

if TYPE_CHECKING:
    from spinsim.jobs.base import Draw


def draw(results: Sequence[AnnealResult], wanted: Drawing) -> Draw:
    """Returns functions that draw the figures that can be drawn of a run, by their names."""
    (result,), sample = results, wanted.options.get("sample")
    figures: Draw = {"thermodynamics": partial(thermodynamics_figure, result, wanted.style)}
    if wanted.what == "cut" or result.model.maxcut_weight is not None:
        figures["cut"] = partial(cut_figure, result, wanted.style)
    reason = why_no_configuration(result, sample or 0)
    if wanted.what == "configuration" or sample is not None or not reason:
        figures["configuration"] = partial(configuration_figure, result, sample or 0, wanted.style)
    elif wanted.what == "all" and result.model.lattice is not None:
        wanted.warn(f"No figure of the configuration: {reason}.")
    return figures


def cut_figure(result: AnnealResult, style: str = "single") -> PaperFigure:
    """Cuts against sweeps: mean and range of the replicas, and the best measured so far.

    The abscissa is the step where it is not known how many sweeps a step had.

    Raises:
        InputError: for a model that is no MaxCut instance, and where nothing is measured yet.
    """
    steps = len(result.energy)
    check_begun(result.model, steps)
    sweeps = result.config.get(result.job, result.config).get("sweeps")
    done = np.arange(1, steps + 1, dtype=np.float64) * (sweeps or 1)
    shown, unit, lowest = result.energy.reshape(steps, -1), "sweeps" if sweeps else "steps", result.lowest_energy.min()
    course = Course(result.energy, shown, done, unit, float(lowest), replicas_text(result))
    return draw_cuts(result.model, course, style)
