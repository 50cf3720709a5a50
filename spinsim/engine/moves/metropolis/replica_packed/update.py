"""The replica-packed update: models that it suits, memory, engines."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from spinsim import packing
from spinsim.engine.moves.metropolis.packed.classes import MAX_DEGREE, MAX_DEGREE_IN_FIELD
from spinsim.engine.update import Outline, Update, by_sites, bytes_with_adjacency, engine_of
from spinsim.model.ising import Ising
from spinsim.packing import Packing

WORD_BYTES: Final = 16  # of a site of 128 replicas
MOST_UNITS: Final = 127  # of a site's couplings and field: beyond, local fields are faster where replicas are hot
UNIT_BYTES: Final = 64  # of a bond, which stands there once for each unit of its coupling


def suits(outline: Outline) -> bool:
    """Returns whether couplings of one term have one magnitude in a uniform field, or are few units as their fields."""
    if outline.in_terms:
        return False
    if outline.one_magnitude and outline.one_field:
        largest = MAX_DEGREE_IN_FIELD if outline.in_field else MAX_DEGREE
        if outline.largest_degree <= largest:
            return True
    units, most = outline.most_units, MOST_UNITS
    if units is None:
        return False
    if outline.one_magnitude:  # then fields may be as strong as bonds
        most = max(most, min(MAX_DEGREE, 2 * outline.largest_degree))
    return units <= most


def needed_bytes(outline: Outline, replicas: int) -> int:
    """Memory that a run takes at most."""
    units = 0 if outline.one_magnitude and outline.one_field else outline.sites * (outline.most_units or 0) // 2
    return bytes_with_adjacency(outline, replicas, WORD_BYTES) + units * UNIT_BYTES


def pack(_: Ising, spins: npt.NDArray[np.int8]) -> npt.NDArray[np.uint64]:
    """Words (blocks, sites, 2) of configurations (replicas, sites)."""
    return np.asarray(packing.pack(np.ascontiguousarray(spins.T)[None])[0])


on_cpu = engine_of(f"{__package__}.cpu")
on_cuda = engine_of(f"{__package__}.cuda")

UPDATE: Final = Update(Packing.REPLICA, suits, needed_bytes, by_sites, pack, on_cpu, on_cuda)
