"""Observables of runs in equilibrium: one record each (``table.py``), from which files, tables and figures follow."""

from spinsim.observables.measured import Facts as Facts
from spinsim.observables.measured import in_field as in_field
from spinsim.observables.measured import is_uniform as is_uniform
from spinsim.observables.table import CROSSING as CROSSING
from spinsim.observables.table import DRAWN as DRAWN
from spinsim.observables.table import LABELS as LABELS
from spinsim.observables.table import LEADING as LEADING
from spinsim.observables.table import MAIN as MAIN
from spinsim.observables.table import SYMBOLS as SYMBOLS
from spinsim.observables.table import TABLE as TABLE
from spinsim.observables.table import Observable as Observable
from spinsim.observables.table import Point as Point
from spinsim.observables.table import left_out as left_out
from spinsim.observables.table import observables as observables
from spinsim.observables.table import own_observables as own_observables
from spinsim.observables.table import printed_order as printed_order
