"""Transfer matrices: operator, Lanczos, spectrum."""

from spinsim.transfer_matrix.lanczos import Cause as Cause
from spinsim.transfer_matrix.lanczos import Levels as Levels
from spinsim.transfer_matrix.lanczos import NotConvergedError as NotConvergedError
from spinsim.transfer_matrix.lanczos import ThickRestart as ThickRestart
from spinsim.transfer_matrix.layer import Layer as Layer
from spinsim.transfer_matrix.layer import sectors_of as sectors_of
from spinsim.transfer_matrix.operator import TransferOperator as TransferOperator
from spinsim.transfer_matrix.recurrence import at_once as at_once
from spinsim.transfer_matrix.recurrence import one_by_one as one_by_one
from spinsim.transfer_matrix.spectrum import Fit as Fit
from spinsim.transfer_matrix.spectrum import Settings as Settings
from spinsim.transfer_matrix.spectrum import Solver as Solver
from spinsim.transfer_matrix.spectrum import fit as fit
from spinsim.transfer_matrix.vectors import Vectors as Vectors
