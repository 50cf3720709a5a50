"""What kind of magnet a model is, by its couplings."""

from __future__ import annotations

from spinsim.model.ising import Ising


def is_ferromagnet(model: Ising) -> bool:
    """Whether no coupling is negative, so that the magnetisation is the order parameter; some may be 0."""
    return model.bonds > 0 and bool(model.couplings.min() >= 0 and model.couplings.max() > 0)


def is_antiferromagnet(model: Ising) -> bool:
    """Whether no coupling is positive and all join two sublattices, whose staggered magnetisation is then its order."""
    return model.is_bipartite and bool(model.bonds > 0 and model.couplings.max() <= 0 and model.couplings.min() < 0)
