"""Lowest states of problems that can be solved exactly: narrow graphs, few sites, planar graphs."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
import numpy.typing as npt

from spinsim.errors import InputError
from spinsim.machine.threads import Threads
from spinsim.model.ising import Ising
from spinsim.optimum import elimination
from spinsim.optimum.enumeration import lowest_states
from spinsim.optimum.planar import planar_ground_state

Spins = npt.NDArray[np.int8]
FEW: Final = {"cpu": 30, "cuda": 40}  # sites whose states are all compared in a second or a few


def ground_state(
    model: Ising, device: str = "cpu", threads: int | None = None, seconds: float = math.inf
) -> Spins | None:
    """Return a lowest state of a model of one sample, int8 (sites,), or None where none of the exact methods applies.

    Planar graphs are left out where the packages of the extra ``solve`` are not installed, or where drawing them would
    take more than ``seconds``.
    """
    found = elimination.lowest(model)
    if found is not None:
        return np.asarray(found.spins)
    if model.sites <= FEW[device]:
        return np.asarray(lowest_states(model, 1, 0 if device == "cuda" else None, Threads(threads)).spins[0])
    try:
        planar = planar_ground_state(model, seconds)
    except InputError:
        return None
    return None if planar is None or not planar.is_proven else np.asarray(planar.spins)
