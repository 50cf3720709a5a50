"""Figures for a paper that serve several jobs, all in one style (``paper.py``).

Figures of a single job are in the job's folder below ``spinsim/jobs``.
"""

from spinsim.analysis.figures.averages import averages_figure, crossings_figure, mark_of, order_figure, order_names
from spinsim.analysis.figures.paper import FORMATS, STYLES, bar_figure, ladder_label, save_figure, save_figures
from spinsim.analysis.figures.scaling import collapse_figure, estimates_figure
from spinsim.analysis.figures.walks import walks_figure

__all__ = [
    "FORMATS", "STYLES", "averages_figure", "bar_figure", "collapse_figure", "crossings_figure", "estimates_figure",
    "ladder_label", "mark_of", "order_figure", "order_names", "save_figure", "save_figures", "walks_figure",
]  # fmt: skip
