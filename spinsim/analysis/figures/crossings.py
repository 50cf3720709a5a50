"""Figures of several sizes together: curves that cross near a critical point, and what lies around the crossings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import matplotlib.style
import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes

from spinsim.analysis.figures.panels import (
    BARS,
    CROSSINGS,
    OPEN,
    TEMPERATURE,
    curve_label,
    curve_styles,
    draw_estimate,
    in_math,
    mark_crossing,
)
from spinsim.analysis.figures.paper import GREY, PAPER, PaperFigure, draw_legend, lay_panels
from spinsim.analysis.sizes import Comparison
from spinsim.observables import SYMBOLS

Array = npt.NDArray[np.float64]

_INSET: Final = 0.36  # of the width and of the height of a panel
_TICKS: Final = 0.12  # likewise, for the labels of its ticks
_EDGE: Final = 0.04  # likewise, to the frame
_WIDEST: Final = 0.36  # of the range of temperatures: a wider one enlarges nothing
_FINE: Final = 400  # points along the curves


def crossings_figure(
    comparisons: Sequence[Comparison], style: str = "single", against: str = TEMPERATURE
) -> PaperFigure:
    """Each estimate against temperature or what stands in its place, a panel each, with crossings and errors.

    Points whose error cannot be trusted are open and have no bar, and so have crossings between such points. An inset
    shows what lies around the crossings, where the panel has room for it.
    """
    with matplotlib.style.context(PAPER):
        figure, panels = lay_panels(style, len(comparisons), 2.3, against)
        is_open = False
        for ax, comparison in zip(panels, comparisons, strict=True):
            is_open |= _draw(ax, comparison)
            ax.set_ylabel(SYMBOLS[comparison.name])
        figure.align_ylabels()
        draw_legend(figure, *panels)
        figure.draw_without_rendering()  # panels have their places: room for insets can be measured
        for ax, comparison in zip(panels, comparisons, strict=True):
            _draw_inset(ax, comparison)
    insets = any(ax.child_axes for ax in panels)
    figure.caption = _caption(comparisons, is_open, against, insets)
    return figure


def _draw(ax: Axes, comparison: Comparison) -> bool:
    """Curves and crossings; whether some errors of the curves cannot be trusted."""
    is_open = False
    colours = {}
    for curve, (colour, marker) in zip(comparison.curves, curve_styles(len(comparison.curves)), strict=True):
        label, colours[curve.label] = curve_label(curve.label), colour
        is_open |= draw_estimate(ax, curve.temperature, curve.estimate, colour, label, joined=True, marker=marker)
    for pair in comparison.crossings:
        if not np.isnan(pair.crossing.value):
            error = pair.crossing.error if pair.trusted else np.nan
            of_both = colours[pair.labels[0]], colours[pair.labels[1]]
            mark_crossing(ax, pair.crossing.value, pair.height, error, of_both)
    return is_open


def _draw_inset(ax: Axes, comparison: Comparison) -> None:
    """The surroundings of the crossings, in the corner where the panel is empty; nothing where none is."""
    window, corner = _window(comparison), _empty_corner(ax, comparison)
    if window is None or corner is None:
        return
    left, lower = corner
    inset = ax.inset_axes((left, lower, _INSET, _INSET))
    _draw(inset, comparison)
    low, high, bottom, top = window
    inset.set_xlim(low, high)
    inset.set_ylim(bottom, top)
    inset.tick_params(labelsize=6, pad=1.5)
    inset.locator_params(nbins=3)
    ax.indicate_inset((low, bottom, high - low, top - bottom), edgecolor=GREY, lw=0.6, alpha=1)


def _window(comparison: Comparison) -> tuple[float, float, float, float] | None:
    """Returns the ends of an inset along x and along y: crossings with two errors and two points on both sides."""
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
    """Lower left corner of an inset with its tick labels' room, in fractions of the panel, that hides no curve."""
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


def _caption(comparisons: Sequence[Comparison], is_open: bool, against: str, insets: bool) -> str:
    sentences = [f"Curves of several sizes against {against}."]
    for comparison in comparisons:
        pairs = "; ".join(in_math(pair.sentence) for pair in comparison.crossings)
        sentences.append(f"{SYMBOLS[comparison.name]}: {pairs}.")
    sentences.append(BARS)
    if any(np.isfinite(pair.crossing.value) for comparison in comparisons for pair in comparison.crossings):
        sentences.append(
            f"Diamonds in the colours of two sizes are their {CROSSINGS}, with bars where the error is known"
            f"{'; insets enlarge them' * insets}."
        )
    return " ".join([*sentences, OPEN] if is_open else sentences)
