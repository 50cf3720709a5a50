"""Transfer matrices: operator, Lanczos, spectrum."""

from spinsim.transfer_matrix.layer import Layer as Layer
from spinsim.transfer_matrix.operator import TransferOperator as TransferOperator
