"""Observables of runs in equilibrium: one record each (``table.py``), from which files, tables and figures follow."""

from spinsim.observables.observable import Facts, Observable, Point, in_field, is_uniform
from spinsim.observables.table import (
    CROSSING,
    DRAWN,
    LABELS,
    MAIN,
    SYMBOLS,
    TABLE,
    left_out,
    observables,
    own_observables,
    printed_order,
)

__all__ = [
    "CROSSING",
    "DRAWN",
    "LABELS",
    "MAIN",
    "SYMBOLS",
    "TABLE",
    "Facts",
    "Observable",
    "Point",
    "in_field",
    "is_uniform",
    "left_out",
    "observables",
    "own_observables",
    "printed_order",
]
