"""Transfer matrices: operator, Lanczos, spectrum."""

from spinsim.transfer_matrix.lanczos import Levels, NotConvergedError, ThickRestart
from spinsim.transfer_matrix.layer import Layer, sectors_of
from spinsim.transfer_matrix.operator import TransferOperator
from spinsim.transfer_matrix.recurrence import two_vectors
from spinsim.transfer_matrix.spectrum import Settings, Solver, fit_basis
from spinsim.transfer_matrix.vectors import Vectors

__all__ = [
    "Layer",
    "Levels",
    "NotConvergedError",
    "Settings",
    "Solver",
    "ThickRestart",
    "TransferOperator",
    "Vectors",
    "fit_basis",
    "sectors_of",
    "two_vectors",
]
