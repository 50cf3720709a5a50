"""What a site-packed run needs on every device: the layout of the state, signs of couplings, acceptance tables."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spinsim import packing
from spinsim.acceptance import acceptance, check_beta
from spinsim.engine.dynamics import Dynamics
from spinsim.engine.measuring.sums import of_up_and_unsatisfied
from spinsim.engine.metropolis.packed.classes import Classes
from spinsim.engine.metropolis.packed.kinds import Limits
from spinsim.engine.metropolis.site_packed.signs import build_signs
from spinsim.engine.metropolis.site_packed.tables import SiteTables, build_site_tables
from spinsim.engine.metropolis.site_packed.update import suits
from spinsim.engine.tempering.ladder import Ladder
from spinsim.engine.update import OfModel
from spinsim.errors import InputError
from spinsim.model.ising import Ising


class SitePlan:
    """A site-packed run of a model.

    Args:
        model: Couplings of one magnitude and a uniform field on a lattice whose ``rows_can_be_packed``.
        replicas: Replicas of each sample.
        dynamics: How they move.

    Attributes:
        shape: Of the packed state, (samples, replicas, colours, rows, groups in a row, 2).
        lattice: The model's lattice.
        groups: Groups of 128 lanes of one colour.
        signs: As ``signs.build_signs`` makes them; None where no coupling is below 0.
        classes: Flip classes.
        has_field: Whether the spin is part of the class.
        colours: Half-sweeps in a sweep.
        observables: From the spins +1, those of the first sublattice, which is colour 0, and the unsatisfied bonds.

    Raises:
        InputError: for a model that cannot be site-packed.
    """

    colours = 2

    def __init__(self, model: Ising, replicas: int, dynamics: Dynamics) -> None:
        lattice, magnitude, field = model.lattice, model.magnitude, model.uniform_field
        if lattice is None or magnitude is None or field is None or not suits(OfModel(model)):
            raise InputError(
                f"model {model.name} cannot be site-packed: take couplings of one magnitude, a uniform field and a "
                "periodic lattice of even sides, the first a multiple of 256"
            )
        self.model, self.replicas, self.dynamics = model, replicas, dynamics
        self.observables = of_up_and_unsatisfied(model, magnitude, field, model.sites // 2)
        self.lattice = lattice
        self.has_field = field != 0
        self.classes = Classes.of(2 * lattice.dimension, magnitude, field)
        self.shape = (model.samples, replicas, *packing.site_shape(lattice.shape))
        self.groups = model.sites // (2 * packing.LANES)
        self.signs = build_signs(lattice.shape, model.negative_bonds())

    def tables(self, beta: npt.ArrayLike) -> SiteTables:
        """Acceptance tables for an inverse temperature or one for each replica (replicas,)."""
        return self._tables(check_beta(beta, self.replicas)[None])

    def tables_at(self, ladder: Ladder, place: npt.NDArray[np.int32]) -> SiteTables:
        """The tables of samples whose replicas are at temperatures ``place`` (samples, replicas) of a ladder."""
        return self._tables(ladder.beta[place])

    def _tables(self, beta: npt.NDArray[np.float64]) -> SiteTables:
        return build_site_tables(self.classes, beta * self.model.quantum, self.dynamics.zero_acceptance)

    def limits(self, beta: npt.NDArray[np.float64]) -> Limits:
        """What decides flips at inverse temperatures ``beta``, of even degrees alone."""
        costs = self.classes.costs()[:1, :, None]
        return Limits(*acceptance(costs, beta * self.model.quantum, self.dynamics.zero_acceptance))
