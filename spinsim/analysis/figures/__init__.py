"""Figures for a paper, by job; all in one style (``paper.py``)."""

from spinsim.analysis.figures.annealing import configuration_figure, has_configuration, thermodynamics_figure
from spinsim.analysis.figures.bars import bar_figure
from spinsim.analysis.figures.crossings import crossings_figure
from spinsim.analysis.figures.paper import FORMATS, save_figure
from spinsim.analysis.figures.tempering import averages_figure, equilibration_figure, exchange_figure, overlap_figure

__all__ = [
    "FORMATS",
    "averages_figure",
    "bar_figure",
    "configuration_figure",
    "crossings_figure",
    "equilibration_figure",
    "exchange_figure",
    "has_configuration",
    "overlap_figure",
    "save_figure",
    "thermodynamics_figure",
]
