"""Diluted bonds: each is missing with one probability, whatever couplings the others have."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spinsim import rng
from spinsim.errors import InputError
from spinsim.model.drawing import below, uniforms

Rows = npt.NDArray[np.float64] | npt.NDArray[np.int8]


def check_dilution(dilution: float) -> None:
    """Refuse what is no probability of a missing bond.

    Raises:
        InputError: for a number outside [0, 1).
    """
    if not 0 <= dilution < 1:
        raise InputError(f"dilution {dilution} leaves no model: give a probability from 0 to below 1")


def dilute(couplings: Rows, seed: int, dilution: float) -> None:
    """Set the couplings (samples, bonds) of missing bonds to 0, in place.

    Bonds stay in the graph, which all samples share: a sample with its bonds is the same whichever samples go with it,
    and bonds that are not missing keep the couplings that they have without dilution.
    """
    for sample, row in enumerate(couplings):
        for where, uniform in uniforms(seed, rng.Stream.DILUTION, sample, row.size):
            row[where][below(uniform, dilution)] = 0
