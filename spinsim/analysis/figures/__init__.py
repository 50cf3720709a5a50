"""Figures for a paper, by job; all in one style (``paper.py``)."""

from spinsim.analysis.figures.annealing import thermodynamics_figure
from spinsim.analysis.figures.averages import averages_figure
from spinsim.analysis.figures.bars import bar_figure
from spinsim.analysis.figures.configuration import configuration_figure, has_configuration
from spinsim.analysis.figures.crossings import crossings_figure
from spinsim.analysis.figures.equilibration import equilibration_figure
from spinsim.analysis.figures.exchanges import exchange_figure
from spinsim.analysis.figures.overlaps import overlap_figure
from spinsim.analysis.figures.paper import FORMATS, save_figure, save_figures

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
    "save_figures",
    "thermodynamics_figure",
]
