"""Figures of series for a paper, a file for each thing that they draw; all in one style (``paper.py``).

What a job alone draws lies in its folder below ``spinsim/jobs``.
"""

from spinsim.analysis.figures.averages import averages_figure, crossings_figure, order_figure, order_names
from spinsim.analysis.figures.panels import ladder_label
from spinsim.analysis.figures.paper import FORMATS, STYLES, bar_figure, save_figure, save_figures
from spinsim.analysis.figures.runs import equilibration_figure, exchange_figure, overlap_figure

__all__ = [
    "FORMATS", "STYLES", "averages_figure", "bar_figure", "crossings_figure", "equilibration_figure", "exchange_figure",
    "ladder_label", "order_figure", "order_names", "overlap_figure", "save_figure", "save_figures",
]  # fmt: skip
