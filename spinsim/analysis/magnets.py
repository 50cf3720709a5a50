"""What kind of magnet a model is, by its couplings."""

from __future__ import annotations

from typing import Final

import numpy as np

from spinsim.model.identity import described
from spinsim.model.ising import Ising
from spinsim.model.quanta import distinct

_CLEAR: Final = 4.0  # standard errors by which the mean coupling of a model is above 0


def is_ferromagnet(model: Ising) -> bool:
    """Whether no coupling is negative, so that the magnetisation is the order parameter; some may be 0."""
    lowest, highest = model.extreme_couplings
    return lowest >= 0 and highest > 0


def is_antiferromagnet(model: Ising) -> bool:
    """Whether no coupling is positive and all join two sublattices, whose staggered magnetisation is then its order."""
    lowest, highest = model.extreme_couplings
    return model.is_bipartite and highest <= 0 and lowest < 0


def favours_parallel_spins(model: Ising) -> bool:
    """Returns whether fields or the mean coupling align spins; elsewhere, as in a +-J glass, |m| is noise of finite N.

    The mean is over bonds and samples, and counts where it is clearly above 0.
    """
    if np.any(model.fields):
        return True
    couplings = model.couplings
    return couplings.size > 0 and bool(couplings.mean() > _CLEAR * couplings.std() / np.sqrt(couplings.size))


def is_symmetric_glass(model: Ising) -> bool:
    """Return True for drawn couplings that are even about 0, in zero field: <s_i s_j> then averages to 0 over disorder.

    The magnetisation of such a glass, and each of its modes, is that of free spins. The settings by which couplings
    were drawn decide, so that all sizes of one model agree; couplings that were given count as none of these.
    """
    made = described(model)
    drawn = made.get("couplings") == "gaussian" or (made.get("couplings"), made.get("bond_fraction")) == ("pm-j", 0.5)
    return drawn and not np.any(distinct(model.fields))
