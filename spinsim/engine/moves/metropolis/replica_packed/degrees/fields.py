"""Fields as bonds to a spin that is always +1, of graphs whose degrees differ much.

So many units of field are as many unsatisfied bonds where the spin is against the field, and none elsewhere: the count
of unsatisfied bonds begins with them, and no neighbour is looked at.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim.engine.moves.metropolis.packed.batches import Batches
from spinsim.engine.moves.metropolis.packed.classes import LEAST_COUNT_BITS, MAX_COUNT_BITS

OTHER_SHIFT: Final = MAX_COUNT_BITS  # of a site's start: bits that differ where the spin is against the field
UP_SHIFT: Final = 2 * MAX_COUNT_BITS  # of whether the field is above 0
COLUMNS: Final = 8  # that are read at once: so many words behind the last site


def starts(
    batches: Batches, units: npt.NDArray[np.int64], fields: npt.NDArray[np.int64] | None
) -> npt.NDArray[np.uint64]:
    """Where each site of ``batches.order`` begins to count, (1 or samples, sites and some words), or (1, 0).

    The lowest bits are the unsatisfied phantom bonds; then come bits that differ where the field is unsatisfied, and
    whether it is above 0.

    Args:
        batches: The order of the sites.
        units: Bonds of each site, those to the spin that is always +1 among them, (sites,).
        fields: These alone, below 0 where the field is, (1 or samples, sites).
    """
    if fields is None:
        return np.empty((1, 0), np.uint64)
    order, sizes = batches.order, np.diff(batches.first)
    units, fields = units[order], fields[:, order]
    bits = np.array([max(LEAST_COUNT_BITS, int(most).bit_length()) for most in batches.most])
    full = (1 << np.repeat(bits, sizes)) - 2 + units % 2
    base = (full - units) // 2
    other = base ^ (base + np.abs(fields[0]))
    found = np.zeros((len(fields), order.size + COLUMNS), np.uint64)
    found[:, : order.size] = (fields > 0).astype(np.int64) << UP_SHIFT | other << OTHER_SHIFT | base
    return found


class LoneBonds(NamedTuple):
    """Bonds to the spin that is always +1.

    Attributes:
        sites: Of them, (bonds,).
        positive: Which have a coupling above 0, (1 or samples, bonds).
    """

    sites: npt.NDArray[np.uint32]
    positive: npt.NDArray[np.uint8]

    @classmethod
    def of(cls, fields: npt.NDArray[np.int64] | None) -> LoneBonds:
        """Those of fields in units, (1 or samples, sites)."""
        if fields is None:
            return cls(np.empty(0, np.uint32), np.empty((1, 0), np.uint8))
        units = np.abs(fields[0])
        sites = np.repeat(np.arange(units.size, dtype=np.uint32), units)
        return cls(sites, np.ascontiguousarray(fields[:, sites] > 0, np.uint8))
