"""Lowest states of problems that can be solved exactly: narrow graphs, few sites, planar graphs."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spinsim.errors import InputError
from spinsim.model.ising import Ising
from spinsim.optimum import elimination
from spinsim.optimum.planar import planar_ground_state

Spins = npt.NDArray[np.int8]


def ground_state(model: Ising) -> Spins | None:
    """Return a lowest state of a model of one sample, int8 (sites,), or None where none of the exact methods applies.

    Planar graphs are left out where the packages of the extra ``solve`` are not installed.
    """
    found = elimination.lowest(model)
    if found is not None:
        return np.asarray(found.spins, np.int8)
    try:
        planar = planar_ground_state(model)
    except InputError:
        return None
    return None if planar is None or not planar.is_proven else planar.spins
