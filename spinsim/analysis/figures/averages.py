"""Averages of runs against temperature, field, k, Gamma or beta, of one run or several sizes, and crossings.

``draw_averages`` draws the averages of every job: of runs in equilibrium (``averages_figure``) and of anneals.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

import matplotlib.style
import numpy as np
from matplotlib.axes import Axes

from spinsim.analysis import onsager
from spinsim.analysis.figures import paper
from spinsim.analysis.figures.paper import GREY, PAPER, Mark, PaperFigure, drawn_panels
from spinsim.analysis.kinds import favours_parallel_spins
from spinsim.analysis.runs import Array, Tempered
from spinsim.analysis.sizes import Comparison, order_parameter, size_label
from spinsim.analysis.statistics import choice_of
from spinsim.analysis.summary import Estimate, Summary, observables_of
from spinsim.analysis.tables import chosen_columns
from spinsim.errors import InputError
from spinsim.model.ising import Ising
from spinsim.observables.table import CROSSING, DRAWN, SYMBOLS

_EXACT: Final = {
    "energy_per_site": onsager.energy,
    "specific_heat": onsager.specific_heat,
    "abs_magnetization": onsager.magnetization,
}
_NEAR_ZERO: Final = 0.4  # share of the largest value: an axis shows 0 if the smallest value is below it
_DECADES: Final = 1.3  # decades that a positive quantity must span for a logarithmic axis
_INSET: Final = 0.36  # of the width and of the height of a panel
_TICKS: Final = 0.12  # likewise, for the labels of its ticks
_EDGE: Final = 0.04  # likewise, to the frame
_WIDEST: Final = 0.36  # of the range of temperatures: a wider one enlarges nothing
_FINE: Final = 400  # points along the curves


class Averages(NamedTuple):
    """Averages of a run, drawn as a curve in each panel."""

    model: Ising
    x: Array  # abscissae, (points,)
    temperature: Array  # at each point; for quantum runs the quantity in its place
    estimates: Mapping[str, Estimate]  # by name
    label: str  # in the legend


def averages_figure(
    results: Sequence[Tempered],
    summaries: Sequence[Summary],
    style: str = "single",
    observable: str | None = None,
    columns: str | None = None,
    mark: Mark | None = None,
) -> PaperFigure:
    """Energy, specific heat, order parameter and susceptibility against temperature, with errors that can be trusted.

    The order parameter is |m|, |m_s| or the link overlap, by ``observable``, a key of ``CROSSING``. |m| is left out
    where nothing favours parallel spins, as it is noise there. Points whose error cannot be trusted are open and have
    no bar, and specific heats far above dE/dT are marked above the panel. For a square ferromagnet in zero field, the
    exact curves of the infinite lattice are added. ``columns``, comma-separated names of estimates, replace the default
    panels. A dotted line is drawn at a ``mark``, by default the exact T_c if there is one. Runs are of one size each,
    from the smallest on.
    """
    if columns is not None:
        for summary in summaries:
            names = chosen_columns(columns, summary.estimates)
    else:
        common = [name for name in summaries[0].estimates if all(name in summary.estimates for summary in summaries)]
        drawn = DRAWN["energy"] + DRAWN.get(observable or _order(results), ())
        names = [name for panel in drawn for name in [one for one in panel if one in common][:1]]
    return _draw_names(results, summaries, names, style, mark)


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
    """Return the order parameter that all runs have measured; empty where there is none."""
    model, order = results[0].model, order_parameter(results)
    if order == "overlap" and not all(choice_of(result).copies > 1 for result in results):
        order = "magnetization"
    if order != "magnetization":
        return order
    noise = model.maxcut_weight is not None or not all(favours_parallel_spins(result.model) for result in results)
    return "" if noise else order


def _draw_names(
    results: Sequence[Tempered], summaries: Sequence[Summary], names: list[str], style: str, mark: Mark | None = None
) -> PaperFigure:
    """Panels of runs in equilibrium, curves joined by lines where there are several."""
    several = len(results) > 1
    labels = [paper.curve_label(size_label(run.model)) if several else paper.run_text(run) for run in results]
    runs = [
        Averages(run.model, run.axis.values, run.axis.values, summary.estimates, label)
        for run, summary, label in zip(results, summaries, labels, strict=True)
    ]
    against = paper.ladder_label(results[0].axis)
    captions = {o.name: o.caption for o in observables_of(results[0])}
    figure = draw_averages(runs, names, style, against, joined=several, mark=mark)
    described = f"against {paper.without_unit(against)}, of {paper.runs_text(results)}"
    figure.caption = caption([captions[name] for name in names], described, figure)
    return figure


def draw_averages(
    runs: Sequence[Averages],
    names: Sequence[str],
    style: str,
    against: str,
    *,
    joined: bool = False,
    mark: Mark | None = None,
) -> PaperFigure:
    """Draw a panel for each average, with a curve for each run; the figure has no caption yet."""
    height = 1.35 if len(names) > 3 and style == "single" else 1.6
    with drawn_panels(style, len(names), height, against) as (figure, axes):
        for ax, name in zip(axes, names, strict=True):
            for run, (colour, marker) in zip(runs, paper.curve_styles(len(runs)), strict=True):
                _draw_run(ax, name, run, colour, marker, joined)
            ax.set_ylabel(SYMBOLS[name])
            _scale(ax, name, runs)
            paper.draw_mark(ax, mark or mark_of([run.model for run in runs], against))
    return figure


def mark_of(models: Sequence[Ising], against: str) -> Mark | None:
    """Mark of the exact T_c, if all models have the same and are drawn against temperature."""
    known = {paper.exact_transition(model) for model in models} if against == paper.TEMPERATURE else {None}
    (exact, *others) = known
    return None if exact is None or others else Mark(exact, "exact $T_c$")


def caption(quantities: Sequence[str], of_runs: str, figure: PaperFigure, bars: str = paper.BARS) -> str:
    """A caption that names the quantities, the runs, the bars and the marks of a figure."""
    named = " and ".join(filter(None, (", ".join(quantities[:-1]), quantities[-1])))
    labels = {line.get_label() for ax in figure.axes for line in ax.lines}
    sentences = [f"{named[0].upper()}{named[1:]} {of_runs}.", bars]
    sentences += [paper.OPEN] if paper.UNKNOWN_ERROR in labels else []
    return " ".join(sentences + ([paper.OFF_SCALE] if paper.BEYOND in labels else []))


def _draw_run(ax: Axes, name: str, run: Averages, colour: str, marker: str, joined: bool) -> None:
    estimate = run.estimates[name]
    if np.isnan(estimate.value).all():
        return
    if name == "specific_heat":  # values far above dE/dT become marks above the frame
        off_scale = paper.is_off_scale(run.temperature, run.estimates["energy_per_site"].value, estimate.value)
        paper.mark_off_scale(ax, run.x[off_scale])
        estimate = replace(estimate, value=np.where(off_scale, np.nan, estimate.value))
    paper.draw_estimate(ax, run.x, estimate, colour, run.label, joined, marker)


def _scale(ax: Axes, name: str, runs: Sequence[Averages]) -> None:
    """Scale the axis of an estimate, logarithmic over decades, else from 0 if positive; draw exact curves."""
    values = np.concatenate([run.estimates[name].value for run in runs])
    values = values[np.isfinite(values)]
    positive = len(values) > 0 and values.min() > 0
    if "susceptibility" in name and positive and np.log10(np.ptp(values) / values.min()) > _DECADES:
        paper.scale_logarithmically(ax)
        return
    couplings = {run.model.coupling_unit for run in runs}
    if name in _EXACT and len(couplings) == 1 and all(paper.is_onsager(run.model) for run in runs):
        temperature = np.concatenate([run.temperature for run in runs])
        paper.draw_exact(ax, temperature, _EXACT[name], couplings.pop(), 1.3 if name == "specific_heat" else None)
    if name != "energy_per_site" and len(values) and 0 <= values.min() < _NEAR_ZERO * values.max():
        paper.show_zero(ax)


def crossings_figure(
    comparisons: Sequence[Comparison],
    style: str = "single",
    against: str = paper.TEMPERATURE,
    mark: Mark | None = None,
    of_runs: str = "",
) -> PaperFigure:
    """Draw each estimate against temperature or the quantity in its place, a panel each, with crossings and errors.

    Points whose error cannot be trusted are open and have no bar; crossings between such points have no bar either. An
    inset enlarges the surroundings of the crossings, where the panel has room for it. A dotted line is drawn at a
    ``mark``. The caption names the runs, ``of_runs``.
    """
    is_open = False
    with drawn_panels(style, len(comparisons), 2.3, against) as (figure, axes):
        for ax, comparison in zip(axes, comparisons, strict=True):
            is_open |= _draw(ax, comparison)
            paper.draw_mark(ax, mark)
            ax.set_ylabel(SYMBOLS[comparison.name])
    with matplotlib.style.context(PAPER):
        figure.draw_without_rendering()  # panels have their places: room for insets can be measured
        for ax, comparison in zip(axes, comparisons, strict=True):
            _draw_inset(ax, comparison, mark)
    insets = any(ax.child_axes for ax in axes)
    figure.caption = _crossings_caption(
        comparisons, is_open, paper.without_unit(against) + f", of {of_runs}" * bool(of_runs), insets
    )
    return figure


def _draw(ax: Axes, comparison: Comparison) -> bool:
    """Draw curves and crossings; return True if some errors of the curves cannot be trusted."""
    is_open = False
    colours = {}
    for curve, (colour, marker) in zip(comparison.curves, paper.curve_styles(len(comparison.curves)), strict=True):
        label, colours[curve.label] = paper.curve_label(curve.label), colour
        is_open |= paper.draw_estimate(ax, curve.temperature, curve.estimate, colour, label, joined=True, marker=marker)
    for pair in comparison.crossings:
        if not np.isnan(pair.crossing.value):
            error = pair.crossing.error if pair.trusted else np.nan
            of_both = colours[pair.labels[0]], colours[pair.labels[1]]
            paper.mark_crossing(ax, pair.crossing.value, pair.height, error, of_both)
    return is_open


def _draw_inset(ax: Axes, comparison: Comparison, mark: Mark | None) -> None:
    """Draw the surroundings of the crossings in an empty corner of the panel; nothing where no corner is empty."""
    window, corner = _window(comparison), _empty_corner(ax, comparison)
    if window is None or corner is None:
        return
    left, lower = corner
    inset = ax.inset_axes((left, lower, _INSET, _INSET))
    _draw(inset, comparison)
    low, high, bottom, top = window
    inset.set_xlim(low, high)
    inset.set_ylim(bottom, top)
    paper.draw_mark(inset, mark)
    inset.tick_params(labelsize=6, pad=1.5)
    inset.locator_params(nbins=3)
    ax.indicate_inset((low, bottom, high - low, top - bottom), edgecolor=GREY, lw=0.6, alpha=1)


def _window(comparison: Comparison) -> tuple[float, float, float, float] | None:
    """Return the ends of an inset along x and y: crossings with two errors, and the next point on both sides."""
    crossed = [pair for pair in comparison.crossings if np.isfinite(pair.crossing.value)]
    if not crossed:
        return None
    grid = np.unique(np.concatenate([curve.temperature for curve in comparison.curves]))
    ends = []
    for pair in crossed:
        value, error = pair.crossing.value, 2 * pair.crossing.error
        above = int(np.searchsorted(grid, value))
        ends += [min(value - error, grid[max(0, above - 1)]), max(value + error, grid[min(len(grid) - 1, above)])]
    low, high = max(min(ends), grid[0]), min(max(ends), grid[-1])
    low, high = low - 0.05 * (high - low), high + 0.05 * (high - low)
    if high - low > _WIDEST * (grid[-1] - grid[0]):
        return None
    fine = np.linspace(max(low, grid[0]), min(high, grid[-1]), _FINE)
    heights = np.concatenate([_between(curve.temperature, curve.estimate.value, fine) for curve in comparison.curves])
    heights = heights[np.isfinite(heights)]
    margin = 0.08 * np.ptp(heights)
    return float(low), float(high), float(heights.min() - margin), float(heights.max() + margin)


def _between(x: Array, y: Array, fine: Array) -> Array:
    """Values on the line through points, NaN beyond them."""
    known = np.isfinite(y)
    return np.interp(fine, x[known], y[known], left=np.nan, right=np.nan) if known.any() else np.full_like(fine, np.nan)


def _empty_corner(ax: Axes, comparison: Comparison) -> tuple[float, float] | None:
    """Lower left corner, in fractions of the panel, of an inset that hides no curve, with room for tick labels."""
    (low, high), (bottom, top) = ax.get_xlim(), ax.get_ylim()
    fine = np.linspace(low, high, _FINE)
    points = []
    for curve in comparison.curves:
        error = np.where(curve.estimate.trusted, np.nan_to_num(curve.estimate.error), 0)
        for shift in (-error, error):
            y = _between(curve.temperature, curve.estimate.value + shift, fine)
            points.append(np.stack([(fine - low) / (high - low), (y - bottom) / (top - bottom)]))
    x, y = np.concatenate(points, axis=1)
    left, right = _TICKS + _EDGE, 1 - _INSET - _EDGE
    for start, lower in ((right, right), (left, left), (left, right), (right, left)):
        inside = (
            (x > start - _TICKS) & (x < start + _INSET + _EDGE) & (y > lower - _TICKS) & (y < lower + _INSET + _EDGE)
        )
        if not inside.any():
            return start, lower
    return None


def _crossings_caption(comparisons: Sequence[Comparison], is_open: bool, against: str, insets: bool) -> str:
    sentences = [f"Curves of several sizes against {against}."]
    for comparison in comparisons:
        pairs = "; ".join(paper.in_math(pair.sentence) for pair in comparison.crossings)
        sentences.append(f"{SYMBOLS[comparison.name]}: {pairs}.")
    sentences.append(paper.BARS)
    if any(np.isfinite(pair.crossing.value) for comparison in comparisons for pair in comparison.crossings):
        sentences.append(
            f"Diamonds in the colours of two sizes are their {paper.CROSSINGS}, with bars where the error is known"
            f"{'; insets enlarge them' * insets}."
        )
    return " ".join([*sentences, paper.OPEN] if is_open else sentences)
