"""What an unpacked run needs on every device: the order of the sites, couplings in quanta, temperatures."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spinsim.engine.measuring.sums import of_energy_and_down
from spinsim.engine.metropolis.unpacked.replica_order import WORDS
from spinsim.model.colouring import adjacency, colouring
from spinsim.model.ising import Ising


class UnpackedPlan:
    """An unpacked run of a model.

    Attributes:
        order: Sites, colour by colour.
        colour_start: Colour c has ``order[colour_start[c]:colour_start[c + 1]]``.
        start: Those of site i are ``neighbour[start[i]:start[i + 1]]``.
        neighbour: Neighbours in compressed rows.
        couplings: J of each neighbour in quanta, (1 or samples, neighbours), int32 where local fields fit, else int64.
        fields: h in quanta, (1 or samples, sites), of the same type.
        colours: Half-sweeps in a sweep.
        first: Sites of the first sublattice, which come first in the order; 0 where the model is not bipartite.
        observables: From energies, the spins -1 and those of the first sublattice, which CUDA kernels count.
    """

    def __init__(self, model: Ising) -> None:
        near = adjacency(model.graph)
        colour = colouring(model.graph)
        self.colours = int(colour.max()) + 1
        self.order = np.argsort(colour, kind="stable").astype(np.uint32)
        self.colour_start = np.searchsorted(colour[self.order], np.arange(self.colours + 1))
        self.first = int(self.colour_start[1]) if model.is_bipartite else 0
        self.observables = of_energy_and_down(model, self.first)
        self.start, self.neighbour = near.start, near.neighbour.astype(np.uint32)
        width = np.int32 if 2 * model.largest_local_field < 2**31 else np.int64
        rows = range(len(model.couplings)), range(len(model.fields))
        self.couplings = np.stack([model.integer_couplings(k)[near.bond].astype(width) for k in rows[0]])
        self.fields = np.stack([model.integer_fields(k).astype(width) for k in rows[1]])

    @staticmethod
    def double_beta(model: Ising, beta: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Twice ``beta`` (1 or samples, replicas) times the quantum, of replicas padded to whole Philox calls."""
        padding = np.repeat(beta[:, -1:], -beta.shape[1] % WORDS, axis=1)
        return np.asarray(2.0 * model.quantum * np.append(beta, padding, axis=1))
