"""Figures for a paper, a file for each thing that they draw; all in one style (``paper.py``)."""

from spinsim.analysis.figures.annealing import thermodynamics_figure
from spinsim.analysis.figures.averages import averages_figure
from spinsim.analysis.figures.bars import bar_figure
from spinsim.analysis.figures.configuration import configuration_figure, why_no_configuration
from spinsim.analysis.figures.crossings import crossings_figure
from spinsim.analysis.figures.cut import cut_figure
from spinsim.analysis.figures.equilibration import equilibration_figure
from spinsim.analysis.figures.exchanges import exchange_figure
from spinsim.analysis.figures.overlaps import overlap_figure
from spinsim.analysis.figures.paper import FORMATS, STYLES, save_figure, save_figures

__all__ = [
    "FORMATS",
    "STYLES",
    "averages_figure",
    "bar_figure",
    "configuration_figure",
    "crossings_figure",
    "cut_figure",
    "equilibration_figure",
    "exchange_figure",
    "overlap_figure",
    "save_figure",
    "save_figures",
    "thermodynamics_figure",
    "why_no_configuration",
]
