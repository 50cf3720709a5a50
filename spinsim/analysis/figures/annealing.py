"""Averages of annealing runs against temperature."""

from __future__ import annotations

from typing import Any, Final

import matplotlib.style
import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from spinsim.analysis import onsager
from spinsim.analysis.figures.panels import (
    ENERGY,
    TEMPERATURE,
    draw_exact,
    is_constant,
    is_onsager,
    show_zero,
    size_text,
    tick_integers,
)
from spinsim.analysis.figures.paper import BLUE, PAPER, VERMILION, WIDTH, draw_legend
from spinsim.analysis.thermodynamics import thermodynamics
from spinsim.errors import InputError
from spinsim.result import AnnealResult

Array = npt.NDArray[np.float64]

_FEWEST_FOR_SLOPE: Final = 10  # temperatures


def thermodynamics_figure(result: AnnealResult) -> Figure:
    """Energy and specific heat per site and mean |m| against temperature, with standard errors.

    Runs at one temperature are drawn against the step number. A square ferromagnet in zero field comes with the exact
    curves of the infinite lattice.
    The specific heat is the spread of the replicas' energies: where they fall out of equilibrium it says nothing and
    can dwarf all else, so points far above dE/dT are marked above the panel, "off scale".

    Raises:
        InputError: where no step is done yet.
    """
    if not len(result.temperature):
        raise InputError(f"the run of {result.model.name} has no finished step: there is nothing to draw yet")
    table, unit = thermodynamics(result), result.model.coupling_unit
    temperature, energy = table.temperature, table.energy
    x = np.arange(len(temperature), dtype=np.float64) if is_constant(temperature) else temperature
    with matplotlib.style.context(PAPER):
        figure = Figure(figsize=(WIDTH, 4.6), layout="constrained")
        top, middle, bottom = figure.subplots(3, sharex=True)
        _label_axes(top, middle, bottom, temperature)
        _draw_series(top, x, energy, table.energy_error, _size_label(result))
        _draw_heat(middle, x, table.specific_heat, table.specific_heat_error, _heat_ceiling(temperature, energy))
        _draw_series(bottom, x, table.magnetization, table.magnetization_error)
        if is_onsager(result.model):
            draw_exact(top, temperature, onsager.energy, unit)
            draw_exact(middle, temperature, onsager.specific_heat, unit)
            draw_exact(bottom, temperature, onsager.magnetization, unit)
        show_zero(bottom)
        figure.align_ylabels()
        draw_legend(figure, top, middle)
    return figure


def _size_label(result: AnnealResult) -> str:
    """Such as "8 x 8 x 8, 4 samples of 128 replicas"."""
    _, samples, replicas = result.energy.shape
    size = size_text(result.model)
    copies = f"{replicas} replica" + "s" * (replicas > 1)
    return f"{size}, {samples} samples of {copies}" if samples > 1 else f"{size}, {copies}"


def _label_axes(top: Axes, middle: Axes, bottom: Axes, temperature: Array) -> None:
    top.set_ylabel(ENERGY)
    middle.set_ylabel(r"specific heat $C/(Nk_\mathrm{B})$")
    bottom.set_ylabel(r"magnetisation $\langle|m|\rangle$")
    bottom.set_xlabel(TEMPERATURE)
    if is_constant(temperature):
        margin = max(0.5, len(temperature) / 30)
        bottom.set_xlim(-margin, len(temperature) - 1 + margin)
        bottom.set_xlabel(f"step number, all at $T = {temperature[0]:.6g}$")
        tick_integers(bottom.xaxis)


def _draw_series(ax: Axes, x: Array, mean: Array, error: Array, label: str | None = None) -> None:
    """Points with error bars, or a word where there are none to draw."""
    if np.isnan(mean).all():
        ax.text(0.5, 0.5, "undefined for a single replica", transform=ax.transAxes, ha="center", va="center")
        ax.set_yticks([])
        ax.set_yticks([], minor=True)
        return
    bars = None if np.isnan(error).all() else error
    ax.errorbar(x, mean, bars, fmt="o", ms=2.2, mec="none", elinewidth=0.6, capthick=0.6, color=BLUE, label=label)


def _heat_ceiling(temperature: Array, energy: Array) -> float:
    """Twice the largest dE/dT over thirtieths of the range, in k_B: in equilibrium dE/dT is the specific heat."""
    if len(temperature) < _FEWEST_FOR_SLOPE or is_constant(temperature):
        return np.inf
    order = np.argsort(temperature, kind="stable")
    grid, step = np.linspace(temperature.min(), temperature.max(), 31, retstep=True)
    slope = float(np.diff(np.interp(grid, temperature[order], energy[order])).max() / step)
    return 2 * slope if slope > 0 else np.inf


def _draw_heat(ax: Axes, x: Array, heat: Array, error: Array, ceiling: float) -> None:
    """Points up to the ceiling, and a mark above the frame for each beyond it; all points where none is below it."""
    beyond = (heat > ceiling) & bool((heat <= ceiling).any())
    _draw_series(ax, x, np.where(beyond, np.nan, heat), error)
    show_zero(ax)
    if beyond.any():
        place: dict[str, Any] = {"transform": ax.get_xaxis_transform(), "clip_on": False, "ms": 2.5, "mec": "none"}
        ax.plot(x[beyond], np.full(beyond.sum(), 1.04), "^", color=VERMILION, label="off scale", **place)
