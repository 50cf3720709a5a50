"""Averages over logarithmic bins of a run, by which its equilibrium is judged."""

from __future__ import annotations

import textwrap
from typing import Any, Final

import matplotlib.style
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from spinsim.analysis.equilibration import TESTED, Equilibration
from spinsim.analysis.figures.panels import ENERGY, run_text
from spinsim.analysis.figures.paper import BLUE, PAPER, WIDTH
from spinsim.analysis.summary import Summary
from spinsim.result import TemperResult

_COLUMNS: Final = 62  # characters of a verdict's line


def equilibration_figure(result: TemperResult, summary: Summary) -> Figure:
    """Averages over the last half of the run, the quarter before and so on, at the lowest temperature; the verdicts.

    Each bin stands at its end; the three that the verdict compares are filled.
    """
    names = {"energy": ENERGY, "q^2": r"$[\langle q^2\rangle]$", "q_link": r"$[\langle q_\ell\rangle]$"}
    with matplotlib.style.context(PAPER):
        figure = Figure(figsize=(WIDTH, 0.3 + 1.9 * len(summary.equilibration)), layout="constrained")
        panels = figure.subplots(len(summary.equilibration), squeeze=False, sharex=True)[:, 0]
        for ax, (name, found) in zip(panels, summary.equilibration.items(), strict=True):
            _draw_bins(ax, found)
            ax.set_ylabel(names.get(name, name))
            ax.set_title(textwrap.fill(found.verdict, _COLUMNS), loc="left", fontsize=7)
        panels[-1].set_xscale("log")
        every = int(result.sweep[1] - result.sweep[0])
        panels[-1].set_xlabel("measurements" + (f", one in {every} sweeps" if every > 1 else ""))
        figure.suptitle(f"{run_text(result)}, $T = {result.temperature[0]:.4g}$", fontsize=8)
        figure.align_ylabels()
    return figure


def _draw_bins(ax: Axes, found: Equilibration) -> None:
    """Averages over bins against their ends; those that decide filled."""
    value, error = found.mean, found.error
    bars = None if np.isnan(error).any() else error
    tested = np.arange(len(value)) >= len(value) - TESTED
    for chosen, face in ((~tested, "white"), (tested, BLUE)):
        style: dict[str, Any] = {"ms": 3, "mew": 0.6, "elinewidth": 0.6, "capthick": 0.6, "color": BLUE, "mfc": face}
        ax.errorbar(found.stop[chosen], value[chosen], None if bars is None else bars[chosen], fmt="o", **style)
