"""Averages of runs in equilibrium against temperature, k, Gamma or beta, of one size or of several."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from matplotlib.axes import Axes

from spinsim.analysis import onsager
from spinsim.analysis.figures.panels import (
    BARS,
    OFF_SCALE,
    OPEN,
    curve_label,
    curve_styles,
    draw_estimate,
    draw_exact,
    draw_heat,
    is_onsager,
    ladder_label,
    run_text,
    scale_logarithmically,
    show_zero,
)
from spinsim.analysis.figures.paper import PaperFigure, drawn_panels
from spinsim.analysis.kinds import favours_parallel_spins
from spinsim.analysis.printed import chosen_columns
from spinsim.analysis.runs import Tempered
from spinsim.analysis.sizes import order_parameter, size_label
from spinsim.analysis.sources import facts_of
from spinsim.analysis.summary import Summary, observables_of
from spinsim.errors import InputError
from spinsim.observables import CROSSING, DRAWN, SYMBOLS

_EXACT: Final = {
    "energy_per_site": onsager.energy,
    "specific_heat": onsager.specific_heat,
    "abs_magnetization": onsager.magnetization,
}
_NEAR_ZERO: Final = 0.4  # of the largest value: an axis whose values begin above it shows no 0
_DECADES: Final = 1.3  # that a positive quantity spans where its axis is logarithmic


def averages_figure(
    results: Sequence[Tempered],
    summaries: Sequence[Summary],
    style: str = "single",
    observable: str | None = None,
    columns: str | None = None,
) -> PaperFigure:
    """Energy, specific heat, order parameter and susceptibility against temperature, with errors that can be trusted.

    The order parameter is |m|, |m_s| or the link overlap, by ``observable``, which is that of ``CROSSING``. |m| is left
    out where nothing favours parallel spins, as it is noise there. Points whose error cannot be trusted are open and
    have no bar, and specific heats far above dE/dT are marked above the panel. A square ferromagnet in zero field comes
    with the exact curves of the infinite lattice. ``columns``, names of estimates with commas between them, are drawn
    instead. Runs are of one size each, from the smallest on.
    """
    if columns is not None:
        for summary in summaries:
            names = chosen_columns(columns, summary.estimates)
    else:
        common = [name for name in summaries[0].estimates if all(name in summary.estimates for summary in summaries)]
        panels = DRAWN["energy"] + DRAWN.get(observable or _order(results), ())
        names = [name for panel in panels for name in [one for one in panel if one in common][:1]]
    return _draw_names(results, summaries, names, style)


def order_figure(result: Tempered, summary: Summary, style: str = "single") -> PaperFigure:
    names = order_names(result)
    if not names:
        raise InputError(
            f"the run of {result.model.name} has neither a Binder cumulant nor a correlation length of an order "
            "parameter: choose another figure"
        )
    return _draw_names([result], [summary], names, style)


def order_names(result: Tempered) -> list[str]:
    known = {o.name for o in observables_of(result)}
    return [name for name in CROSSING.get(_order([result]), ()) if name in known]


def _order(results: Sequence[Tempered]) -> str:
    """Returns what orders in all runs and was measured; empty where nothing is."""
    model, order = results[0].model, order_parameter(results)
    if order == "overlap" and not all(facts_of(result).copies > 1 for result in results):
        order = "magnetization"
    if order != "magnetization":
        return order
    noise = model.maxcut_weight is not None or not all(favours_parallel_spins(result.model) for result in results)
    return "" if noise else order


def _draw_names(results: Sequence[Tempered], summaries: Sequence[Summary], names: list[str], style: str) -> PaperFigure:
    several = len(results) > 1
    labels = [curve_label(size_label(result.model)) if several else run_text(result) for result in results]
    against = ladder_label(results[0].axis)
    height = 1.35 if len(names) > 3 and style == "single" else 1.6
    with drawn_panels(style, len(names), height, against) as (figure, panels):
        is_open = False
        for ax, name in zip(panels, names, strict=True):
            for run in zip(results, summaries, labels, curve_styles(len(results)), strict=True):
                is_open |= _draw_run(ax, name, *run, joined=several)
            ax.set_ylabel(SYMBOLS[name])
            _scale(ax, name, results, summaries)
    off_scale = any(line.get_label() == "off scale" for ax in panels for line in ax.lines)
    figure.caption = _caption(names, results, is_open, off_scale)
    return figure


def _draw_run(
    ax: Axes, name: str, result: Tempered, summary: Summary, label: str, look: tuple[str, str], *, joined: bool
) -> bool:
    """One estimate of one run, in a colour with a marker; returns whether some of its errors cannot be trusted."""
    x, estimate = result.axis.values, summary.estimates[name]
    if name != "specific_heat":
        return draw_estimate(ax, x, estimate, look[0], label, joined, look[1])
    energy = summary.estimates["energy_per_site"].value
    return draw_heat(ax, x, estimate, energy, look[0], label, joined, look[1])


def _scale(ax: Axes, name: str, results: Sequence[Tempered], summaries: Sequence[Summary]) -> None:
    """The axis of an estimate: logarithmic over decades, else from 0 for what is positive; exact curves in it."""
    values = np.concatenate([summary.estimates[name].value for summary in summaries])
    values = values[np.isfinite(values)]
    positive = len(values) > 0 and values.min() > 0
    if "susceptibility" in name and positive and np.log10(np.ptp(values) / values.min()) > _DECADES:
        scale_logarithmically(ax)
        return
    couplings = {result.model.coupling_unit for result in results}
    if name in _EXACT and len(couplings) == 1 and all(is_onsager(result.model) for result in results):
        temperature = np.concatenate([result.temperature for result in results])
        draw_exact(ax, temperature, _EXACT[name], couplings.pop(), 1.3 if name == "specific_heat" else None)
    if name != "energy_per_site" and len(values) and 0 <= values.min() < _NEAR_ZERO * values.max():
        show_zero(ax)


def _caption(names: list[str], results: Sequence[Tempered], is_open: bool, off_scale: bool) -> str:
    run = results[0]
    captions = {o.name: o.caption for o in observables_of(run)}
    runs = "; ".join(f"{result.model.name}, {run_text(result)}" for result in results)
    quantities = " and ".join(filter(None, (", ".join(captions[name] for name in names[:-1]), captions[names[-1]])))
    sentences = [f"{quantities[0].upper()}{quantities[1:]} against {ladder_label(run.axis)}, of {runs}.", BARS]
    sentences += [OPEN] if is_open else []
    sentences += [OFF_SCALE] if off_scale else []
    return " ".join(sentences)
