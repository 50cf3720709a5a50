"""What a run of a dense model needs on every device: the order of the sites and the matrix of their couplings."""

from __future__ import annotations

from typing import Final

import numpy as np

from spinsim.model.graph import colouring
from spinsim.model.ising import Ising

SITES: Final = 64
"""Of a block of the sweep on a GPU."""


class DensePlan:
    """A run of a dense model, whose matrices have the sites in the order in which they are visited.

    Attributes:
        order: Sites, colour by colour, as the unpacked update visits them.
        colour: The colour of each of them.
        colours: Half-sweeps in a sweep: nearly as many as sites.
        double_couplings: 2 J in quanta, (1 or samples, sites, sites), symmetric with zeros on the diagonal, in the
            narrowest of int16, int32 and int64 that local fields and their changes fit.
        fields: h in quanta, int64 (1 or samples, sites).
        all_down: Local fields where all spins are -1, (1 or samples, sites), of the type of the couplings.
    """

    def __init__(self, model: Ising) -> None:
        colour = colouring(model.graph)
        self.order = np.argsort(colour, kind="stable").astype(np.uint32)
        self.colour = colour[self.order].astype(np.uint32)
        self.colours = int(colour.max()) + 1
        place = np.argsort(self.order)
        one, other = place[model.graph.edges].T
        width = next(t for t in (np.int16, np.int32, np.int64) if 2 * model.largest_local_field <= np.iinfo(t).max)
        sites, samples = model.sites, max(len(model.couplings), len(model.fields))
        self.double_couplings = np.zeros((len(model.couplings), sites, sites), width)
        for k, matrix in enumerate(self.double_couplings):
            doubled = (2 * model.integer_couplings(k)).astype(width)
            for first, second in ((one, other), (other, one)):
                np.add.at(matrix.reshape(-1), first * sites + second, doubled)
        self.fields = np.stack([model.integer_fields(k)[self.order] for k in range(len(model.fields))])
        self.all_down = np.empty((samples, sites), width)
        for k, row in enumerate(self.all_down):
            couplings = self.double_couplings[k % len(self.double_couplings)]
            row[:] = self.fields[k % len(self.fields)] - couplings.sum(axis=1, dtype=np.int64) // 2
