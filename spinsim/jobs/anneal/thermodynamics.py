"""Averages of annealing runs against temperature."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes

from spinsim.analysis import onsager
from spinsim.analysis.figures.panels import (
    BARS,
    FIELD,
    OFF_SCALE,
    POINTS,
    TEMPERATURE,
    draw_exact,
    is_constant,
    is_off_scale,
    is_onsager,
    mark_off_scale,
    replicas_text,
    show_zero,
    tick_integers,
)
from spinsim.analysis.figures.paper import BLUE, ORANGE, PaperFigure, drawn_panels
from spinsim.analysis.kinds import favours_parallel_spins
from spinsim.analysis.population import FEWEST, MANY
from spinsim.analysis.thermodynamics import OrderParameter, Thermodynamics, thermodynamics
from spinsim.errors import InputError
from spinsim.jobs.anneal.result import AnnealResult
from spinsim.jobs.anneal.tables import quantum_energies
from spinsim.model.ising import Ising
from spinsim.observables import SYMBOLS, TABLE

Array = npt.NDArray[np.float64]


def thermodynamics_figure(result: AnnealResult, style: str = "single") -> PaperFigure:
    """Energy and specific heat per site and the order parameter against temperature, with standard errors.

    The order parameter is mean |m_s| of antiferromagnets, else mean |m| where something favours parallel spins; a
    glass and a MaxCut instance have none. Runs at one
    temperature are drawn against the step number. A square ferromagnet in zero field comes with the exact curves of the
    infinite lattice. Specific heats that are not the slope of the energy are left out, and those far above it where
    that could not be tested are marked "off scale". A run in a field that changes has its energy and m, with its sign,
    against the field, a quantum anneal the energies of its slices against the transverse field.

    Raises:
        InputError: where no step is done yet.
    """
    if not len(result.temperature):
        raise InputError(f"the run of {result.model.name} has no finished step: there is nothing to draw yet")
    if result.gamma is not None:
        return _quantum_figure(result, result.gamma, style)
    table, model = thermodynamics(result), result.model
    if result.field is not None:
        return _loop_figure(result, result.field, table, style)
    temperature = table.temperature
    x = np.arange(len(temperature), dtype=np.float64) if is_constant(temperature) else temperature
    order = table.order_parameter(model)
    names = ["energy_per_site", "specific_heat", *([order.name] if _is_shown(order, model) else [])]
    off_scale = is_off_scale(temperature, table.energy, table.specific_heat)
    heat = np.where(off_scale, np.nan, table.specific_heat)
    with drawn_panels(style, len(names), 1.4, _abscissae(temperature)) as (figure, panels):
        for ax, name in zip(panels, names, strict=True):
            ax.set_ylabel(SYMBOLS[name])
        _draw_series(panels[0], x, table.energy, table.energy_error, replicas_text(result))
        why = "undefined for a single replica" if result.energy.shape[2] == 1 else "nowhere the slope of the energy"
        _draw_series(panels[1], x, heat, table.specific_heat_error, why_none=why)
        if len(names) > 2:
            _draw_series(panels[2], x, order.mean, order.error)
        if is_onsager(model):
            draw_exact(panels[0], temperature, onsager.energy, model.coupling_unit)
            draw_exact(panels[1], temperature, onsager.specific_heat, model.coupling_unit, 1.3)
            draw_exact(panels[2], temperature, onsager.magnetization, model.coupling_unit)
        for ax in panels[1:]:
            show_zero(ax)
        mark_off_scale(panels[1], x[off_scale])
        if is_constant(temperature):
            _count_steps(panels, len(x))
        elif result.family is not None:  # from infinity on
            panels[-1].set_xscale("log")
    figure.caption = _caption(result, table, bool(off_scale.any()))
    return figure


def _is_shown(order: OrderParameter, model: Ising) -> bool:
    """Returns whether an order parameter is more than the noise of finite sizes."""
    return model.maxcut_weight is None and (order.name != "abs_magnetization" or favours_parallel_spins(model))


def _quantum_figure(result: AnnealResult, gamma: Array, style: str = "single") -> PaperFigure:
    """Energies per site of best slices, and of all slices, against the transverse field."""
    with drawn_panels(style, 1, 1.4, FIELD) as (figure, (ax,)):
        ax.set_ylabel(SYMBOLS["energy_per_site"])
        labels = ("best slices", "all slices"), (BLUE, ORANGE)
        for found, label, color in zip(quantum_energies(result), *labels, strict=True):
            bars = None if np.isnan(found.error).all() else found.error
            ax.errorbar(gamma, found.mean, bars, fmt="o", mec="none", color=color, label=label, **POINTS)
    figure.caption = (
        f"Energy per site of the best slice of each replica, and of all its slices, after each step of "
        f"{result.model.name}, {replicas_text(result)}. {BARS[:-1]} {_entries(result)}."
    )
    return figure


def _loop_figure(result: AnnealResult, field: Array, table: Thermodynamics, style: str) -> PaperFigure:
    """Energy and magnetisation per site against the field, in the order of the steps."""
    temperature = table.temperature
    where = f", at $T = {temperature[0]:.6g}$" if is_constant(temperature) else ""
    with drawn_panels(style, 2, 1.4, f"field $h${where}") as (figure, panels):
        for ax, label in zip(panels, (SYMBOLS["energy_per_site"], SYMBOLS["magnetization"]), strict=True):
            ax.set_ylabel(label)
        _draw_series(panels[0], field, table.energy, table.energy_error, replicas_text(result))
        _draw_series(panels[1], field, table.signed_magnetization, table.signed_magnetization_error)
    what = rf"Energy, that of the field included, and magnetisation $\langle m\rangle$ per site of {result.model.name}"
    figure.caption = f"{what}, {replicas_text(result)}, after each step. {BARS[:-1]} {_entries(result)}."
    return figure


def _draw_series(ax: Axes, x: Array, mean: Array, error: Array, label: str | None = None, why_none: str = "") -> None:
    """Points with error bars, or the words ``why_none`` where there are none to draw."""
    if np.isnan(mean).all():
        ax.text(0.5, 0.5, why_none, transform=ax.transAxes, ha="center", va="center")
        ax.set_yticks([])
        ax.set_yticks([], minor=True)
        return
    bars = None if np.isnan(error).all() else error
    ax.errorbar(x, mean, bars, fmt="o", mec="none", color=BLUE, label=label, **POINTS)


def _entries(result: AnnealResult) -> str:
    """Over what errors are taken, in words."""
    if result.model.samples > 1:
        return "over samples"
    if result.parents is None:
        return "over replicas"
    groups = "populations" if result.parents.shape[2] >= MANY else "families"
    few = f", left out where they count as fewer than {FEWEST}" if np.isnan(result.free_energy_error).any() else ""
    return f"over {groups}{few}"


def _abscissae(temperature: Array) -> str:
    return f"step number, all at $T = {temperature[0]:.6g}$" if is_constant(temperature) else TEMPERATURE


def _count_steps(panels: list[Axes], steps: int) -> None:
    """Abscissae for so many steps, whole numbers from 0."""
    margin = max(0.5, steps / 30)
    for ax in panels:
        ax.set_xlim(-margin, steps - 1 + margin)
        tick_integers(ax.xaxis)


def _caption(result: AnnealResult, table: Thermodynamics, off_scale: bool) -> str:
    order, what = table.order_parameter(result.model), "Energy and specific heat per site"
    if _is_shown(order, result.model):
        what = f"Energy, specific heat and {next(o.caption for o in TABLE if o.name == order.name)}"
    sentences = [
        f"{what} after each step of {result.model.name}, {replicas_text(result)}.",
        f"{BARS[:-1]} {_entries(result)}.",
    ]
    left_out = int(np.isnan(table.specific_heat).sum())
    if left_out and result.energy.shape[2] > 1:
        sentences.append(
            f"The specific heat is left out at {left_out} of {len(table.temperature)} steps, where it is not the slope "
            "of the energy: the replicas have frozen."
        )
    return " ".join([*sentences, OFF_SCALE] if off_scale else sentences)
