"""What a run gives back in Python, and the way to and from its file; a file a job."""

from spinsim.result.annealing import AnnealResult
from spinsim.result.base import Result
from spinsim.result.reading import load, load_anneal, load_temper, load_transfer
from spinsim.result.tempering import TemperResult, best_of, placement_of
from spinsim.result.transfer import TransferResult

__all__ = [
    "AnnealResult",
    "Result",
    "TemperResult",
    "TransferResult",
    "best_of",
    "load",
    "load_anneal",
    "load_temper",
    "load_transfer",
    "placement_of",
]
