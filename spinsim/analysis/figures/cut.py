"""The cut of a MaxCut instance while a run goes on."""

from __future__ import annotations

import matplotlib.style
import numpy as np
import numpy.typing as npt

from spinsim.analysis.figures.panels import replicas_text, run_text, tick_integers
from spinsim.analysis.figures.paper import BLUE, PAPER, SKY, VERMILION, PaperFigure, draw_legend, lay_panels
from spinsim.errors import InputError
from spinsim.result import AnnealResult, TemperResult

Array = npt.NDArray[np.float64]


def cut_figure(result: AnnealResult | TemperResult, style: str = "single") -> PaperFigure:
    """Cuts against sweeps: mean and range of the replicas, and the best measured so far.

    Of a tempering run, mean and range are those of the copies at the lowest temperature; the best is that of all.

    Raises:
        InputError: for a model that is no MaxCut instance, and where nothing is measured yet.
    """
    model = result.model
    if not len(result.energy):
        raise InputError(f"the run of {model.name} has no finished step: there is nothing to draw yet")
    cuts = model.cut(result.energy)  # refuses what is none
    best = np.maximum.accumulate(cuts.reshape(len(cuts), -1).max(axis=1))
    tempered = isinstance(result, TemperResult)
    shown = (cuts[..., 0] if tempered else cuts).reshape(len(cuts), -1)
    sweep, label = _abscissae(result)
    with matplotlib.style.context(PAPER):
        figure, (ax,) = lay_panels(style, 1, 2.3)
        if shown.shape[1] > 1:
            ax.fill_between(
                sweep, shown.min(axis=1), shown.max(axis=1), color=SKY, alpha=0.5, lw=0, label="range of replicas"
            )
        ax.plot(sweep, shown.mean(axis=1), color=BLUE, lw=0.8, label="mean of replicas")
        ax.plot(sweep, best, color=VERMILION, lw=0.8, label="best so far")
        ax.set_xlim(0, sweep[-1])
        ax.set_xlabel(label)
        ax.set_ylabel("cut")
        if (cuts == np.rint(cuts)).all():
            tick_integers(ax.yaxis)
        draw_legend(figure, ax)
    of = " at the lowest temperature" if tempered else ""
    text = run_text(result) if isinstance(result, TemperResult) else replicas_text(result)
    figure.caption = (
        f"Cuts of the MaxCut instance {model.name}, {text}, against sweeps: mean and range of the replicas{of}, and "
        f"the best that was measured so far. The best is {float(model.cut(_lowest(result))):.10g}."
    )
    return figure


def _abscissae(result: AnnealResult | TemperResult) -> tuple[Array, str]:
    """Sweeps done at each measurement, or steps where it is not known how many those had."""
    if isinstance(result, TemperResult):
        return result.sweep.astype(np.float64), "sweeps after thermalisation"
    step = np.arange(1, len(result.energy) + 1, dtype=np.float64)
    sweeps = result.config.get("anneal", result.config).get("sweeps")
    return (step * sweeps, "sweeps") if sweeps else (step, "steps")


def _lowest(result: AnnealResult | TemperResult) -> float:
    """Lowest energy known, between measurements too."""
    if isinstance(result, AnnealResult):
        return float(result.lowest_energy.min())
    return float(result.energy.min() if result.best_energy is None else result.best_energy.min())
