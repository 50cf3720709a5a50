"""The cut of a MaxCut instance while a run goes on."""

from __future__ import annotations

from typing import NamedTuple

import matplotlib.style
import numpy as np
import numpy.typing as npt

from spinsim.analysis.figures.panels import tick_integers
from spinsim.analysis.figures.paper import BLUE, PAPER, SKY, VERMILION, PaperFigure, draw_legend, lay_panels
from spinsim.errors import InputError
from spinsim.model.ising import Ising

Array = npt.NDArray[np.float64]


class Course(NamedTuple):
    """The energies of a run in the order of its measurements.

    Attributes:
        energy: Total energies of all replicas, the measurement first.
        shown: Those whose mean and range are drawn, (measurements, replicas).
        done: How much was done at each measurement, (measurements,).
        unit: Of ``done``, in words.
        lowest: The lowest energy known, between measurements too.
        run: How large the run is, in words.
        which: Which replicas ``shown`` are, in words that follow theirs; empty for all.
    """

    energy: Array
    shown: Array
    done: Array
    unit: str
    lowest: float
    run: str
    which: str = ""


def draw_cuts(model: Ising, course: Course, style: str = "single") -> PaperFigure:
    """Cuts against what was done: mean and range of the replicas, and the best measured so far.

    Raises:
        InputError: for a model that is no MaxCut instance.
    """
    cuts, shown = model.cut(course.energy), model.cut(course.shown)  # refuses what is none
    best = np.maximum.accumulate(cuts.reshape(len(cuts), -1).max(axis=1))
    with matplotlib.style.context(PAPER):
        figure, (ax,) = lay_panels(style, 1, 2.3)
        if shown.shape[1] > 1:
            ax.fill_between(
                course.done, shown.min(axis=1), shown.max(axis=1), color=SKY, alpha=0.5, lw=0, label="range of replicas"
            )
        ax.plot(course.done, shown.mean(axis=1), color=BLUE, lw=0.8, label="mean of replicas")
        ax.plot(course.done, best, color=VERMILION, lw=0.8, label="best so far")
        ax.set_xlim(0, 1.05 * course.done[-1])  # room for the last label within the frame
        ax.set_xlabel(course.unit)
        ax.set_ylabel("cut")
        if (cuts == np.rint(cuts)).all():
            tick_integers(ax.yaxis)
        draw_legend(figure, ax)
    figure.caption = (
        f"Cuts of the MaxCut instance {model.name}, {course.run}, against {course.unit}: mean and range of the "
        f"replicas{course.which}, and the best that was measured so far. The best is "
        f"{float(model.cut(course.lowest)):.10g}."
    )
    return figure


def check_begun(model: Ising, measurements: int) -> None:
    """Refuse a run without measurements.

    Raises:
        InputError: for it.
    """
    if not measurements:
        raise InputError(f"the run of {model.name} has no finished step: there is nothing to draw yet")
