"""The figures of runs out of equilibrium: aging, coherence lengths, and averages along the protocol."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from spinsim.analysis.aging import Mean
from spinsim.analysis.figures import paper
from spinsim.analysis.figures.paper import PaperFigure, drawn_panels
from spinsim.jobs.base import Draw, Drawing
from spinsim.jobs.evolve.report import averages
from spinsim.jobs.evolve.result import EvolveResult
from spinsim.jobs.plotting import check_begun

_A_DECADE: Final = 16  # most points per decade of a logarithmic axis


def draw(results: Sequence[EvolveResult], wanted: Drawing) -> Draw:
    (result,), figures = results, Draw()
    check_begun(result.model, len(result.sweep))
    names = "correlation" if len(result.waiting) else "", "length" if result.overlap_correlation is not None else ""
    figures |= {name: partial(against_time_figure, result, name, wanted.style) for name in names if name}
    return figures | {"protocol": partial(protocol_figure, result, wanted.style)}


def _draw_curve(ax: Any, x: Any, mean: Mean, style: tuple[str, str], label: str = "") -> None:
    """Draw averages with error bars where the errors are known."""
    error, fmt = (mean.error if np.isfinite(mean.error).any() else None), f"{style[1]}-"
    ax.errorbar(x, mean.value, error, fmt=fmt, lw=0.6, color=style[0], label=label, **paper.POINTS)


def against_time_figure(result: EvolveResult, name: str, style: str = "single") -> PaperFigure:
    """Draw C(t, t_w) for each waiting time, or the coherence lengths xi_12 and xi_23, against a logarithmic time."""
    if name == "correlation":
        curves = [(f"$t_w = {t_w}$", *result.aging(number)) for number, t_w in enumerate(result.waiting.tolist())]
        labels, words = ("time $t$ after $t_w$ (sweeps)", "$C(t, t_w)$"), "Autocorrelation $C(t, t_w)$"
    else:
        names = r"$\xi_{12}$", r"$\xi_{23}$"
        curves = [(label, result.sweep, xi) for label, xi in zip(names, result.coherence_lengths, strict=True)]
        labels = "time $t$ (sweeps)", r"coherence length $\xi$"
        words = r"Coherence lengths $\xi_{k,k+1} = I_{k+1} / I_k$ from $C_4(r)$"
    with drawn_panels(style, 1, 2.4) as (figure, (ax,)):
        for (label, x, mean), look in zip(curves, paper.curve_styles(len(curves)), strict=True):
            later = np.flatnonzero((x > 0) & np.isfinite(mean.value))
            apart = later[np.unique(np.rint(_A_DECADE * np.log10(x[later])), return_index=True)[1]]
            _draw_curve(ax, x[apart], Mean(mean.value[apart], mean.error[apart]), look, label)
        ax.set(xscale="log", xlabel=labels[0], ylabel=labels[1])
    figure.caption = f"{words} against time, {_of_run(result)}"
    return figure


def _of_run(result: EvolveResult) -> str:
    return f"of {result.model.name}, {paper.replicas_text(result)}, {result.config['evolve']['protocol']}. {paper.BARS}"


def protocol_figure(result: EvolveResult, style: str = "single") -> PaperFigure:
    """Draw temperature, field where there is one, energy and magnetisation per site along the protocol."""
    labels = {"temperature": "$T$"} | ({"field": "$h$"} if result.field.any() else {})
    labels |= {"energy_per_site": "$E / N$", "magnetization": r"$\langle m \rangle$"}
    rows = {row.key: row for row in averages(result)}
    with drawn_panels(style, len(labels), 1.3, "time (sweeps)") as (figure, axes):
        for ax, (name, label) in zip(axes, labels.items(), strict=True):
            ax.set_ylabel(label)
            if rows[name].error is None:
                ax.step(result.sweep, rows[name].value, where="pre", color=paper.VERMILION, lw=0.8)
            else:
                _draw_curve(ax, result.sweep, Mean(rows[name].value, rows[name].error), (paper.BLUE, "o"))
    figure.caption = f"Conditions, energy and magnetisation per site {_of_run(result)}"
    return figure
