"""What quantum anneals show: the energies of best slices, and of all slices, against the transverse field."""

from __future__ import annotations

from typing import NamedTuple

import matplotlib.style
import numpy as np
import numpy.typing as npt

from spinsim.analysis.figures.panels import BARS, POINTS, replicas_text
from spinsim.analysis.figures.paper import BLUE, ORANGE, PAPER, PaperFigure, draw_legend, lay_panels
from spinsim.analysis.thermodynamics import mean_of_replicas
from spinsim.jobs.anneal.result import AnnealResult
from spinsim.observables import SYMBOLS

Array = npt.NDArray[np.float64]


class Means(NamedTuple):
    """An energy per site at each step, (steps,).

    Attributes:
        mean: Over replicas and samples.
        error: Its standard error; NaN where a single replica of a single sample allows none.
    """

    mean: Array
    error: Array


def quantum_energies(result: AnnealResult) -> tuple[Means, Means]:
    """Returns the energies of the best slice of each replica, and those of the mean over its slices."""
    assert result.mean_slice_energy is not None  # noqa: S101  (it is a quantum anneal)
    sites = result.model.sites
    best, mean = (Means(*mean_of_replicas(e / sites)) for e in (result.energy, result.mean_slice_energy))
    return best, mean


def quantum_figure(result: AnnealResult, gamma: Array, style: str = "single") -> PaperFigure:
    """Energies per site of best slices, and of all slices, against the transverse field."""
    with matplotlib.style.context(PAPER):
        figure, (ax,) = lay_panels(style, 1, 1.4, r"transverse field $\Gamma$")
        ax.set_ylabel(SYMBOLS["energy_per_site"])
        labels = ("best slices", "all slices"), (BLUE, ORANGE)
        for found, label, color in zip(quantum_energies(result), *labels, strict=True):
            bars = None if np.isnan(found.error).all() else found.error
            ax.errorbar(gamma, found.mean, bars, fmt="o", mec="none", color=color, label=label, **POINTS)
        draw_legend(figure, ax)
    entries = "over samples" if result.model.samples > 1 else "over replicas"
    figure.caption = (
        f"Energy per site of the best slice of each replica, and of all its slices, after each step of "
        f"{result.model.name}, {replicas_text(result)}. {BARS[:-1]} {entries}."
    )
    return figure
