"""The figures of runs out of equilibrium: aging, coherence lengths, and averages along the protocol."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from spinsim.analysis.aging import Mean
from spinsim.analysis.figures.paper import (
    BARS,
    BLUE,
    POINTS,
    VERMILION,
    PaperFigure,
    curve_styles,
    drawn_panels,
    replicas_text,
    scale_logarithmically,
)
from spinsim.jobs.base import Draw, Drawing
from spinsim.jobs.evolve.report import averages
from spinsim.jobs.evolve.result import EvolveResult
from spinsim.jobs.plotting import check_begun

_A_DECADE: Final = 16  # most points per decade of a logarithmic axis


def draw(results: Sequence[EvolveResult], wanted: Drawing) -> Draw:
    (result,) = results
    check_begun(result.model, len(result.sweep))
    figures: Draw = {}
    if len(result.waiting):
        figures["correlation"] = partial(correlation_figure, result, wanted.style)
    if result.overlap_correlation is not None:
        figures["length"] = partial(length_figure, result, wanted.style)
    return figures | {"protocol": partial(protocol_figure, result, wanted.style)}


def _draw_curve(ax: Any, x: Any, mean: Mean, style: tuple[str, str], label: str) -> None:
    """Draw averages with error bars where the errors are known."""
    known = np.isfinite(mean.error).any()
    ax.errorbar(x, mean.value, mean.error if known else None, fmt=f"{style[1]}-", lw=0.6, color=style[0], label=label,
                **POINTS)  # fmt: skip


def _against_time(curves: Sequence[tuple[str, Any, Mean]], style: str, xlabel: str, ylabel: str) -> PaperFigure:
    """Draw curves (label, times, averages) against a logarithmic time, with at most ``_A_DECADE`` points per decade."""
    with drawn_panels(style, 1, 2.4) as (figure, (ax,)):
        for (label, x, mean), look in zip(curves, curve_styles(len(curves)), strict=True):
            later = np.flatnonzero((x > 0) & np.isfinite(mean.value))
            apart = later[np.unique(np.rint(_A_DECADE * np.log10(x[later])), return_index=True)[1]]
            _draw_curve(ax, x[apart], Mean(mean.value[apart], mean.error[apart]), look, label)
        if ax.has_data():
            scale_logarithmically(ax, "x")
        ax.set(xlabel=xlabel, ylabel=ylabel)
    return figure


def _of_run(result: EvolveResult) -> str:
    return f"of {result.model.name}, {replicas_text(result)}, {result.config[result.job]['protocol']}. {BARS}"


def correlation_figure(result: EvolveResult, style: str = "single") -> PaperFigure:
    """Draw C(t, t_w) against t, a curve for each waiting time."""
    curves = [(f"$t_w = {t_w}$", *result.aging(number)) for number, t_w in enumerate(result.waiting.tolist())]
    figure = _against_time(curves, style, "time $t$ after $t_w$ (sweeps)", "$C(t, t_w)$")
    figure.caption = f"Autocorrelation $C(t, t_w)$ against the time after each waiting time, {_of_run(result)}"
    return figure


def length_figure(result: EvolveResult, style: str = "single") -> PaperFigure:
    """Draw the coherence lengths xi_12 and xi_23 against the time from the beginning of the protocol."""
    names = r"$\xi_{12}$", r"$\xi_{23}$"
    curves = [(name, result.sweep, xi) for name, xi in zip(names, result.coherence_lengths, strict=True)]
    figure = _against_time(curves, style, "time (sweeps)", r"coherence length $\xi$")
    figure.caption = rf"Coherence lengths $\xi_{{k,k+1}} = I_{{k+1}} / I_k$ from $C_4(r)$ {_of_run(result)}"
    return figure


def protocol_figure(result: EvolveResult, style: str = "single") -> PaperFigure:
    """Draw temperature, field where there is one, energy and magnetisation per site along the protocol."""
    conditions = {"temperature": "$T$"} | ({"field": "$h$"} if result.field.any() else {})
    labels = conditions | {"energy_per_site": "$E / N$", "magnetization": r"$\langle m \rangle$"}
    rows = {row.key: row for row in averages(result)}
    with drawn_panels(style, len(labels), 1.3, "time (sweeps)") as (figure, axes):
        for ax, (name, label) in zip(axes, labels.items(), strict=True):
            if name in conditions:
                ax.step(result.sweep, rows[name].value, where="pre", color=VERMILION, lw=0.8)
            else:
                _draw_curve(ax, result.sweep, Mean(rows[name].value, rows[name].error), (BLUE, "o"), "")
            ax.set_ylabel(label)
    figure.caption = f"Conditions, energy and magnetisation per site {_of_run(result)}"
    return figure
