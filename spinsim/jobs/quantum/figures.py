"""Figures of a quantum run, and of several sizes together."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial
from typing import Any, Final

import matplotlib.style
import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes

from spinsim.analysis.cosh_fits import decay
from spinsim.analysis.figures.paper import (
    BARS,
    PAPER,
    POINTS,
    PaperFigure,
    draw_legend,
    drawn_panels,
    lay_panels,
    scale_logarithmically,
    some_temperatures,
    tick_integers,
)
from spinsim.analysis.gaps import (
    FEWEST_STEPS,
    LEAST,
    PARITIES,
    Decay,
    correlation_in_time,
    decays,
    gaps_by_parity,
    has_even,
)
from spinsim.analysis.runs import sample_of, samples_in
from spinsim.analysis.scaling.dynamic import local_tail
from spinsim.analysis.statistics import measurements_of
from spinsim.analysis.summary import FEWEST_STEPS as FEWEST_MEASUREMENTS
from spinsim.analysis.summary import summarize
from spinsim.analysis.tables import with_error
from spinsim.analysis.walks import FEW_SAMPLES
from spinsim.errors import InputError
from spinsim.inputs.texts import count
from spinsim.jobs.base import Draw, Drawing
from spinsim.jobs.plotting import averages_of_one, figures_of_several
from spinsim.jobs.quantum.run import QuantumResult

_MOST_BINS: Final = 40
_WIDE: Final = 4  # ratio of the largest to the smallest gap from which their axis is logarithmic
_TOLD: Final = "Points less than an error above 0 are left out."
_SYMBOLS: Final = {"k": "$k$", "gamma": r"$\Gamma$", "beta": r"$\beta$"}


def draw(results: Sequence[QuantumResult], wanted: Drawing) -> Draw:
    if len(results) > 1:
        return figures_of_several(results, wanted)
    (result,) = results
    figures: Draw = {}
    if wanted.figure in ("thermodynamics", "order") or measurements_of(result) >= FEWEST_MEASUREMENTS:
        figures |= averages_of_one(result, wanted, cache(partial(summarize, result)))
    figures["time"] = partial(time_figure, result, wanted.style)
    if wanted.figure == "gaps" or (samples_in(result) > 1 and _has_gaps(result)):
        figures["gaps"] = partial(gaps_figure, result, wanted.style)
    if wanted.figure == "local" or result.local_squares is not None:
        figures["local"] = partial(local_figure, result, wanted.style)
    return figures


def time_figure(result: QuantumResult, style: str = "single") -> PaperFigure:
    """Draw C(t) of each parity with the fits of gaps, at some points of the ladder, for the first sample."""
    one = sample_of(result, 0)
    parities = [parity for parity in PARITIES if parity == "odd" or (has_even(result) and _has_gaps(result))]
    drawn = {parity: _decays(result, one, parity) for parity in parities}
    with matplotlib.style.context(PAPER):
        figure, axes = lay_panels(style, len(parities), 2.4, r"time $t$ (slices)")
        for ax, (parity, of_parity) in zip(axes, drawn.items(), strict=True):
            for place, colour in some_temperatures(result.axis.values):
                _draw_decay(ax, of_parity[place], result.slices, colour, _point(result, place))
            ax.set_ylabel(f"$C(t)$, {parity}" if len(axes) > 1 else "$C(t)$")
            scale_logarithmically(ax)
            tick_integers(ax.xaxis)
        draw_legend(figure, axes[0])
    lines = "Lines are fits of one level, $c\\cosh[\\Delta(L_\\tau/2 - t)]$, or two, within their windows."
    which = "Correlations in time" + (" of the first sample" if samples_in(result) > 1 else "")
    about = [f"{which} of {result.model.name}."]
    about += [_of_operators(parity, of_parity[0].operators) for parity, of_parity in drawn.items()]
    figure.caption = " ".join([*about, BARS, _TOLD, *([lines] if _has_gaps(result) else [])])
    return figure


def _of_operators(parity: str, number: int) -> str:
    simple, kind = {"odd": ("spins", "spins"), "even": ("products of neighbours", "products of two spins")}[parity]
    if number == 1:
        return f"{parity.capitalize()} parity: {simple}, averaged."
    return f"{parity.capitalize()} parity: the combination of {number} {kind} that shows the lowest level best."


def _point(result: QuantumResult, place: int) -> str:
    return f"{_SYMBOLS[result.axis.name]} $= {result.axis.values[place]:.4g}$"


def _has_gaps(result: QuantumResult) -> bool:
    return not result.model.fields.any() and measurements_of(result) >= FEWEST_STEPS


def _decays(result: QuantumResult, one: QuantumResult, parity: str) -> list[Decay]:
    if _has_gaps(result):
        return decays(result, parity)
    curve = correlation_in_time(one, parity)
    errors = np.where(curve.trusted, curve.error, np.nan)
    return [Decay(curve.time, value, error) for value, error in zip(curve.value, errors, strict=True)]


def _draw_decay(ax: Axes, of: Decay, slices: int, colour: Any, label: str) -> None:
    told = of.value > np.nan_to_num(of.error)
    ax.errorbar(of.time[told], of.value[told], of.error[told], fmt="o", color=colour, mec="none", label=label, **POINTS)
    if of.first:
        ax.plot(np.arange(of.first, of.last + 1), drawn_fit(of, slices), color=colour, linewidth=0.6)


def drawn_fit(of: Decay, slices: int) -> npt.NDArray[np.float64]:
    """Return the whole fit, of one level or two, at the times of its window."""
    t = np.arange(of.first, of.last + 1)
    one = of.amplitude * decay(of.gap, t, slices / 2)
    return one + of.second_amplitude * decay(of.second_gap, t, slices / 2) if of.second_amplitude else one


def gaps_figure(result: QuantumResult, style: str = "single") -> PaperFigure:
    """Draw the cumulative distribution of the samples' gaps, for each parity at some points of the ladder."""
    gaps = gaps_by_parity(result)
    with drawn_panels(style, len(gaps), 2.2) as (figure, axes):
        for ax, (parity, of) in zip(axes, gaps.items(), strict=True):
            for place, colour in some_temperatures(result.axis.values):
                order = np.argsort(of.gap[:, place])[: np.isfinite(of.gap[:, place]).sum()]
                hot = int(of.is_hot[:, place].sum())  # hot odd gaps are smaller than all others, hot even ones unknown
                below, all_known = (hot, len(of.gap)) if parity == "odd" else (0, len(of.gap) - hot)
                share = (below + np.arange(len(order)) + 0.5) / max(1, all_known)
                gap, error = of.gap[order, place], of.error[order, place]
                label = _point(result, place)
                ax.errorbar(gap, share, xerr=error, fmt="o", color=colour, mec="none", label=label, **POINTS)
            if np.nanmax(of.gap, initial=0) > _WIDE * np.nanmin(of.gap, initial=np.inf):
                scale_logarithmically(ax, "x")
            ax.set_xlabel(rf"gap $\Delta$, {parity} parity (1 / step in time)")
            ax.set_ylabel("share of samples")
            ax.set_ylim(0, 1)
    hot, lost = int(gaps["odd"].is_hot.sum()), sum(int(np.isnan(of.gap[~of.is_hot]).sum()) for of in gaps.values())
    samples, name = samples_in(result), result.model.name
    about = [f"Gaps of {count(samples, 'sample')} of {name}: the share of samples with at most that gap."]
    about += [_of_operators(parity, int(of.operators[0, 0])) for parity, of in gaps.items()]
    about += [f"The {lost} gaps without a good fit count as larger ones."] if lost else []
    about += [f"{hot} odd gaps below ${LEAST:g}/\\beta$ count as smaller ones."] if hot else []
    if "even" in gaps and gaps["even"].is_hot.any():
        about += ["Even gaps are left out where the odd one is not above that."]
    if any((of.operators == 1).any() for of in gaps.values()):
        about += ["Gaps from averages are upper bounds."]
    figure.caption = " ".join([*about, BARS])
    return figure


def local_figure(result: QuantumResult, style: str = "single") -> PaperFigure:
    """Draw the distribution of local susceptibilities over sites and samples, at some points of the ladder."""
    logarithms = np.log10(result.local_susceptibility.mean(axis=1))
    samples, _, sites = logarithms.shape
    if not np.isfinite(logarithms).all():
        raise InputError("the run has no measurement in its sums for local susceptibilities yet: let it go on")
    bins = max(4, min(_MOST_BINS, round(np.sqrt(samples * sites))))
    edges = np.linspace(logarithms.min(), logarithms.max() + 1e-9, bins + 1)
    with drawn_panels(style, 1, 2.4, r"local susceptibility $\chi_x$ (1 / coupling unit)") as (figure, (ax,)):
        for place, colour in some_temperatures(result.axis.values):
            share, _ = np.histogram(logarithms[:, place], edges, density=True)
            ax.stairs(share, 10**edges, color=colour, label=_point(result, place))
        scale_logarithmically(ax, "x")
        ax.set_yscale("log")
        ax.set_ylabel(r"density of $\log_{10}\,\chi_x$")
    figure.caption = (
        f"Local susceptibilities of the {count(sites, 'site')} of {count(samples, 'sample')} of {result.model.name}, "
        f"averaged over copies: the density of their decimal logarithms.{_tail_sentence(result)}"
    )
    return figure


def _tail_sentence(result: QuantumResult) -> str:
    """Sentence on the exponents of the tails that are drawn; empty for few sites."""
    if samples_in(result) < FEW_SAMPLES:
        return ""
    tail = local_tail(result)
    each = [
        f"{with_error(tail.exponent[place], tail.error[place])} at {_point(result, place)}"
        for place, _ in some_temperatures(result.axis.values)
    ]
    return f" Their largest tenth falls as $P(\\chi_x > c) \\sim c^{{-d/z'}}$, with $d/z'$ = {', '.join(each)}."
