"""Averages of tempering runs against temperature, of one size or of several."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from typing import Final

import matplotlib.style
import numpy as np
from matplotlib.axes import Axes

from spinsim.analysis import onsager
from spinsim.analysis.estimators import observables_of
from spinsim.analysis.figures.panels import (
    BARS,
    OFF_SCALE,
    OPEN,
    TEMPERATURE,
    curve_label,
    draw_estimate,
    draw_exact,
    draw_heat,
    is_onsager,
    run_text,
    scale_logarithmically,
    show_zero,
)
from spinsim.analysis.figures.paper import (
    COLOURS,
    MARKERS,
    PAPER,
    PaperFigure,
    draw_legend,
    lay_panels,
)
from spinsim.analysis.printed import chosen_columns
from spinsim.analysis.runs import Tempered
from spinsim.analysis.sizes import order_parameter, size_label
from spinsim.analysis.summary import Summary
from spinsim.observables import SEVERAL, SYMBOLS

_EXACT: Final = {
    "energy_per_site": onsager.energy,
    "specific_heat": onsager.specific_heat,
    "abs_magnetization": onsager.magnetization,
}
_OF_ONE: Final = {
    "magnetization": "abs_magnetization",
    "staggered_magnetization": "abs_staggered_magnetization",
    "overlap": "spin_glass_susceptibility",
}
"""What is drawn of one run beside energy and specific heat, by the order parameter."""
_DECADES: Final = 1.3  # that a positive quantity spans where its axis is logarithmic


def averages_figure(
    results: Sequence[Tempered],
    summaries: Sequence[Summary],
    style: str = "single",
    observable: str | None = None,
    columns: str | None = None,
) -> PaperFigure:
    """Energy, specific heat and order parameters against temperature, with errors that can be trusted.

    Of one run there are three panels; the third is mean |m| for ferromagnets and where there are no overlaps, mean
    |m_s| for antiferromagnets, else the spin-glass susceptibility, and left out for MaxCut instances where it would be
    |m|. Of several sizes a curve each in panels of all that they have in common: order parameter (|m|, |m_s| or the
    link overlap), susceptibility, xi / L, Binder cumulant. Points whose error cannot be trusted are open and have no
    bar, and specific heats far above dE/dT are marked above the panel. A square ferromagnet in zero field comes with
    the exact curves of the infinite lattice.

    Args:
        results: Of one size each, from the smallest on.
        summaries: Of each.
        style: Width, ``single`` or ``double``.
        observable: Of several sizes, ``magnetization``, ``staggered_magnetization`` or ``overlap``.
        columns: Names of estimates, with commas between them, that are drawn instead.

    Raises:
        InputError: for columns that a run does not have.
    """
    names = _names(results, summaries, observable, columns)
    labels = [
        run_text(results[0]) if len(results) == 1 else curve_label(size_label(result.model)) for result in results
    ]
    with matplotlib.style.context(PAPER):
        figure, panels = lay_panels(
            style, len(names), 1.25 if len(names) > 3 and style == "single" else 1.6, TEMPERATURE
        )
        is_open = False
        for ax, name in zip(panels, names, strict=True):
            for run in zip(results, summaries, labels, cycle(COLOURS), cycle(MARKERS)):
                is_open |= _draw_run(ax, name, *run, joined=len(results) > 1)
            ax.set_ylabel(SYMBOLS[name])
            _scale(ax, name, results, summaries)
        figure.align_ylabels()
        draw_legend(figure, *panels)
    off_scale = any(line.get_label() == "off scale" for ax in panels for line in ax.lines)
    figure.caption = _caption(names, results, is_open, off_scale)
    return figure


def _names(
    results: Sequence[Tempered], summaries: Sequence[Summary], observable: str | None, columns: str | None
) -> list[str]:
    """Estimates to be drawn."""
    if columns is not None:
        chosen = [chosen_columns(columns, summary.estimates) for summary in summaries]
        return chosen[0]
    common = [name for name in summaries[0].estimates if all(name in summary.estimates for summary in summaries)]
    order = order_parameter(results)
    if order == "overlap" and "overlap_squared" not in common:
        order = "magnetization"
    if len(results) > 1:
        wanted: tuple[str, ...] = SEVERAL[observable or order]
    else:
        cut = results[0].model.maxcut_weight is not None
        wanted = () if cut and order == "magnetization" else (_OF_ONE[order],)
    if "susceptibility_abs" not in common:  # in a field it is the connected one that counts
        wanted = tuple("susceptibility" if name == "susceptibility_abs" else name for name in wanted)
    return [name for name in ("energy_per_site", "specific_heat", *wanted) if name in common]


def _draw_run(
    ax: Axes,
    name: str,
    result: Tempered,
    summary: Summary,
    label: str,
    colour: str,
    marker: str,
    *,
    joined: bool,
) -> bool:
    """One estimate of one run; whether some of its errors cannot be trusted."""
    x, estimate = result.temperature, summary.estimates[name]
    if name != "specific_heat":
        return draw_estimate(ax, x, estimate, colour, label, joined, marker)
    energy = summary.estimates["energy_per_site"].value
    return draw_heat(ax, x, estimate, energy, colour, label, joined, marker)


def _scale(ax: Axes, name: str, results: Sequence[Tempered], summaries: Sequence[Summary]) -> None:
    """The axis of an estimate: logarithmic over decades, else from 0 for what is positive; exact curves in it."""
    values = np.concatenate([summary.estimates[name].value for summary in summaries])
    values = values[np.isfinite(values)]
    if (
        "susceptibility" in name
        and len(values)
        and values.min() > 0
        and np.log10(np.ptp(values) / values.min()) > _DECADES
    ):
        scale_logarithmically(ax)
        return
    couplings = {result.model.coupling_unit for result in results}
    if name in _EXACT and len(couplings) == 1 and all(is_onsager(result.model) for result in results):
        temperature = np.concatenate([result.temperature for result in results])
        draw_exact(ax, temperature, _EXACT[name], couplings.pop(), 1.3 if name == "specific_heat" else None)
    if name != "energy_per_site" and len(values) and values.min() >= 0:
        show_zero(ax)


def _caption(names: list[str], results: Sequence[Tempered], is_open: bool, off_scale: bool) -> str:
    run = results[0]
    what = {o.name: o.formula for o in observables_of(run)}
    runs = "; ".join(f"{result.model.name}, {run_text(result)}" for result in results)
    quantities = " and ".join(filter(None, (", ".join(what[name] for name in names[:-1]), what[names[-1]])))
    sentences = [f"Against temperature: {quantities}, of {runs}.", BARS]
    sentences += [OPEN] if is_open else []
    sentences += [OFF_SCALE] if off_scale else []
    return " ".join(sentences)
