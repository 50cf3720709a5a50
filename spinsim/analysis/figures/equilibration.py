"""Averages over logarithmic bins of a run, by which its equilibrium is judged."""

from __future__ import annotations

from typing import Final

import matplotlib.style
import numpy as np

from spinsim.analysis.approach import approach
from spinsim.analysis.equilibration import TESTED
from spinsim.analysis.figures.panels import POINTS, in_math, run_text, some_temperatures
from spinsim.analysis.figures.paper import GREY, PAPER, PaperFigure, draw_legend, lay_panels
from spinsim.analysis.runs import Tempered
from spinsim.analysis.summary import Summary
from spinsim.observables import SYMBOLS

_LABELS: Final = {
    "energy_per_site": SYMBOLS["energy_per_site"],
    "overlap_squared": r"overlap $[\langle q^2\rangle]$",
    "link_overlap": r"link overlap $[\langle q_\ell\rangle]$",
    "link_residual": r"$U + (z/2)(1 - [\langle q_\ell\rangle])/T$",
}


def equilibration_figure(result: Tempered, summary: Summary, style: str = "single") -> PaperFigure:
    """Averages over the last half of the run, the quarter before and so on, at temperatures from lowest to highest.

    Each bin stands at its last sweep; those that the verdict compares are shaded. With Gaussian couplings
    a panel shows how far energy and link overlap miss each other. The caption holds the verdicts.
    """
    found = approach(result)
    between = np.sqrt(found.last_sweep[-TESTED - 1] * found.last_sweep[-TESTED])  # the points of two bins
    with matplotlib.style.context(PAPER):
        figure, panels = lay_panels(style, len(found.mean), 1.7, "sweeps after thermalisation")
        for ax, (name, mean) in zip(panels, found.mean.items(), strict=True):
            ax.axvspan(between, found.last_sweep[-1], color=GREY, alpha=0.15, linewidth=0, zorder=0)
            for k, colour in some_temperatures(result.temperature):
                error, label = found.error[name][:, k], f"$T = {result.temperature[k]:.3g}$"
                bars = np.where(np.isfinite(error), error, 0)  # none where a series does not move
                ax.errorbar(
                    found.last_sweep,
                    mean[:, k],
                    bars,
                    fmt="o-",
                    lw=0.6,
                    mec="none",
                    color=colour,
                    label=label,
                    **POINTS,
                )
            if name == "link_residual":
                ax.axhline(0, color=GREY, linewidth=0.8, zorder=1)
            ax.set_ylabel(_LABELS[name])
            ax.set_xscale("log")
        figure.align_ylabels()
        draw_legend(figure, *panels)
    residual = " The last panel is 0 in equilibrium." if "link_residual" in found.mean else ""
    verdicts = " ".join(f"{name}: {e.verdict}." for name, e in summary.equilibration.items())
    verdicts, verdict = in_math(verdicts), in_math(summary.verdict)
    figure.caption = (
        f"Averages over the last half of the measurements, the quarter before and so on, each bin at its last sweep, "
        f"of {result.model.name}, {run_text(result)}. Bars are standard errors; the verdict compares the shaded bins."
        f"{residual} The run: {verdict}. Of the lowest temperature, {verdicts}"
    )
    return figure
