"""Figures for a paper: single column, 8 pt, Okabe-Ito colours, the same bytes for the same result.

Figures are plain ``Figure`` objects, never pyplot's, and need no display. Colours: M. Okabe, K. Ito, Color Universal
Design (2008), https://jfly.uni-koeln.de/color. Sizes in inches.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any, Final

import matplotlib.style
import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import AutoMinorLocator, MaxNLocator

from spinsim.analysis import onsager
from spinsim.analysis.thermodynamics import thermodynamics
from spinsim.errors import InputError
from spinsim.model.ising import Ising
from spinsim.model.lattice import Lattice
from spinsim.result import AnnealResult

Array = npt.NDArray[np.float64]

FORMATS: Final = ("pdf", "png")

_WIDTH: Final = 3.4
_BLUE: Final = "#0072B2"
_ORANGE: Final = "#E69F00"
_GREY: Final = "#7F7F7F"
_STYLE: Final[dict[str, Any]] = {
    "font.family": "STIXGeneral",
    "mathtext.fontset": "stix",
    "font.size": 8,
    "axes.labelsize": 8,
    "axes.titlesize": 8,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "axes.linewidth": 0.6,
    "xtick.direction": "in",
    "ytick.direction": "in",
    "xtick.top": True,
    "ytick.right": True,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.minor.width": 0.4,
    "ytick.minor.width": 0.4,
    "xtick.minor.visible": True,
    "ytick.minor.visible": True,
    "errorbar.capsize": 1.2,
    "savefig.dpi": 300,
    "pdf.fonttype": 42,
}
_PAPER: Final[list[str | dict[str, Any]]] = ["default", _STYLE]  # a user's matplotlibrc changes nothing


def thermodynamics_figure(result: AnnealResult) -> Figure:
    """Energy and specific heat per site and mean |m| against temperature, with standard errors.

    Axes are in units of |J| where all bonds share one, else in the model's own. Runs at one temperature are drawn against
    the step number. The square ferromagnet in zero field comes with the exact curves of the infinite lattice.

    Raises:
        InputError: where no step is done yet.
    """
    if not len(result.temperature):
        raise InputError(f"the run of {result.model.name} has no finished step: there is nothing to draw yet")
    table, unit = thermodynamics(result), _coupling_unit(result.model)
    temperature = table.temperature / unit
    constant = bool(np.all(temperature == temperature[0]))
    at = np.arange(len(temperature), dtype=np.float64) if constant else temperature
    panels = (
        ("energy $E/(N|J|)$", table.energy / unit, table.energy_error / unit, onsager.energy),
        (r"specific heat $C/(Nk_\mathrm{B})$", table.specific_heat, table.specific_heat_error, onsager.specific_heat),
        (r"magnetisation $\langle|m|\rangle$", table.magnetization, table.magnetization_error, onsager.magnetization),
    )
    with matplotlib.style.context(_PAPER):
        figure = Figure(figsize=(_WIDTH, 4.8), layout="constrained")
        axes = figure.subplots(3, sharex=True)
        for ax, (label, mean, error, exact) in zip(axes, panels, strict=True):
            ax.set_ylabel(label)
            _draw_series(ax, at, mean, error, _size_label(result))
            if _is_onsager(result.model):
                x, t = (ax.get_xlim(), temperature[[0, 0]]) if constant else (grid := _grid(temperature), grid)
                _draw_exact(ax, x, exact(t))
        axes[-1].set_xlabel(
            rf"step, all at $T = {temperature[0]:.6g}\,|J|/k_\mathrm{{B}}$" if constant else r"temperature $T$ ($|J|/k_\mathrm{B}$)"
        )
        if constant:
            axes[-1].xaxis.set_major_locator(MaxNLocator(integer=True))
        figure.align_ylabels()
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=2)
    return figure
