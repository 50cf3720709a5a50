"""Averages over logarithmic bins of a run, by which its equilibrium is judged."""

from __future__ import annotations

from typing import Any, Final

import matplotlib.style
import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes

from spinsim.analysis.equilibration import TESTED, Equilibration
from spinsim.analysis.figures.panels import ENERGY, POINTS, run_text
from spinsim.analysis.figures.paper import BLUE, PAPER, PaperFigure, draw_legend, lay_panels
from spinsim.analysis.summary import Summary
from spinsim.result import TemperResult

_NAMES: Final = {
    "energy": ENERGY,
    "q^2": r"overlap $[\langle q^2\rangle]$",
    "q_link": r"link overlap $[\langle q_\ell\rangle]$",
}


def equilibration_figure(result: TemperResult, summary: Summary, style: str = "single") -> PaperFigure:
    """Averages over the last half of the run, the quarter before and so on, at the lowest temperature.

    Each bin stands at its end; those that the verdict compares are filled. The caption holds the verdicts.
    """
    with matplotlib.style.context(PAPER):
        figure, panels = lay_panels(style, len(summary.equilibration), 1.7, "sweeps after thermalisation")
        for ax, (name, found) in zip(panels, summary.equilibration.items(), strict=True):
            _draw_bins(ax, result.sweep[found.stop - 1], found)
            ax.set_ylabel(_NAMES.get(name, name))
            ax.set_xscale("log")
        figure.align_ylabels()
        draw_legend(figure, *panels)
    verdicts = " ".join(f"{name}: {found.verdict}." for name, found in summary.equilibration.items())
    figure.caption = (
        f"Averages over the last half of the measurements, the quarter before and so on, each bin at its last sweep, "
        f"at the lowest temperature $T = {result.temperature[0]:.4g}$, of {result.model.name}, {run_text(result)}. "
        f"The run: {summary.verdict}. {verdicts}"
    )
    return figure


def _draw_bins(ax: Axes, sweep: npt.NDArray[np.int64], found: Equilibration) -> None:
    """Averages over bins against their ends; those that decide filled."""
    bars = None if np.isnan(found.error).any() else found.error
    tested = np.arange(len(sweep)) >= len(sweep) - TESTED
    for chosen, face, label in ((tested, BLUE, "bins compared"), (~tested, "white", "earlier bins")):
        style: dict[str, Any] = POINTS | {"ms": 3, "mew": 0.6, "color": BLUE, "mfc": face, "label": label}
        ax.errorbar(sweep[chosen], found.mean[chosen], None if bars is None else bars[chosen], fmt="o", **style)
