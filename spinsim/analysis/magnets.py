"""What kind of magnet a model is, by its couplings."""

from __future__ import annotations

from typing import Final

import numpy as np

from spinsim.model.ising import Ising

_CLEAR: Final = 4.0  # standard errors by which the mean coupling of a model is above 0


def is_ferromagnet(model: Ising) -> bool:
    """Whether no coupling is negative, so that the magnetisation is the order parameter; some may be 0."""
    return model.bonds > 0 and bool(model.couplings.min() >= 0 and model.couplings.max() > 0)


def is_antiferromagnet(model: Ising) -> bool:
    """Whether no coupling is positive and all join two sublattices, whose staggered magnetisation is then its order."""
    return model.is_bipartite and bool(model.bonds > 0 and model.couplings.max() <= 0 and model.couplings.min() < 0)


def favours_parallel_spins(model: Ising) -> bool:
    """Returns whether fields or the mean coupling align spins; elsewhere, as in a +-J glass, |m| is noise of finite N.

    The mean is over bonds and samples, and counts where it is clearly above 0.
    """
    if np.any(model.fields):
        return True
    couplings = model.couplings
    return couplings.size > 0 and bool(couplings.mean() > _CLEAR * couplings.std() / np.sqrt(couplings.size))
