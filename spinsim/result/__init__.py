"""What a run gives back in Python, and the way to and from its file; a file a job."""

from spinsim.result.annealing import AnnealResult
from spinsim.result.base import Result
from spinsim.result.reading import load, load_anneal, load_temper, load_transfer
from spinsim.result.tempering import TemperResult, placement_of, unmeasured, written_again
from spinsim.result.transfer import TransferResult

__all__ = [
    "AnnealResult",
    "Result",
    "TemperResult",
    "TransferResult",
    "load",
    "load_anneal",
    "load_temper",
    "load_transfer",
    "placement_of",
    "unmeasured",
    "written_again",
]
