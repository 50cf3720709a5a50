"""Figures of series for a paper, a file for each thing that they draw; all in one style (``paper.py``).

What a job alone draws lies in its folder below ``spinsim/jobs``.
"""

from spinsim.analysis.figures.averages import averages_figure as averages_figure
from spinsim.analysis.figures.averages import crossings_figure as crossings_figure
from spinsim.analysis.figures.averages import order_figure as order_figure
from spinsim.analysis.figures.averages import order_names as order_names
from spinsim.analysis.figures.panels import ladder_label as ladder_label
from spinsim.analysis.figures.paper import FORMATS as FORMATS
from spinsim.analysis.figures.paper import STYLES as STYLES
from spinsim.analysis.figures.paper import bar_figure as bar_figure
from spinsim.analysis.figures.paper import save_figure as save_figure
from spinsim.analysis.figures.paper import save_figures as save_figures
from spinsim.analysis.figures.runs import equilibration_figure as equilibration_figure
from spinsim.analysis.figures.runs import exchange_figure as exchange_figure
from spinsim.analysis.figures.runs import overlap_figure as overlap_figure
