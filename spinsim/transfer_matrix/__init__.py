"""Transfer matrices: operator, Lanczos, spectrum."""

from spinsim.transfer_matrix.lanczos import Cause, Levels, NotConvergedError, ThickRestart
from spinsim.transfer_matrix.layer import Layer, sectors_of
from spinsim.transfer_matrix.operator import TransferOperator
from spinsim.transfer_matrix.recurrence import at_once, one_by_one
from spinsim.transfer_matrix.spectrum import Fit, Settings, Solver, fit
from spinsim.transfer_matrix.vectors import Vectors

__all__ = [
    "Cause",
    "Fit",
    "Layer",
    "Levels",
    "NotConvergedError",
    "Settings",
    "Solver",
    "ThickRestart",
    "TransferOperator",
    "Vectors",
    "at_once",
    "fit",
    "one_by_one",
    "sectors_of",
]
