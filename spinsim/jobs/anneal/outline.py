"""What a quantum anneal moves, before it is built."""

from __future__ import annotations

from spinsim.engine.update import OfModel
from spinsim.model.ising import Ising


class OfSlices(OfModel):
    """The ``Outline`` of space and time with two terms, from the model in space, as ``model.trotter`` makes it."""

    def __init__(self, model: Ising, slices: int) -> None:
        super().__init__(model)
        self.sites, self.bonds = model.sites * slices, (model.bonds + model.sites) * slices
        self.lattice, self.one_coupling, self.slices, self.in_terms = None, False, slices, True

    @property
    def largest_degree(self) -> int:
        """Bonds of the site that has most of them."""
        return super().largest_degree + 2

    @property
    def degrees_of_terms(self) -> tuple[int, int] | None:
        """Bonds of each of two terms at the site that has most of them, where a term's couplings are +J or -J."""
        return (super().largest_degree, 2) if self.one_magnitude else None
