"""The unpacked update: the order of the sites, couplings in quanta, temperatures, memory, engines."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from spinsim.engine.layouts.unpacked import WORDS
from spinsim.engine.update import Outline, Pace, Update, by_sites, bytes_with_adjacency
from spinsim.model.graph import MOST_TERMS, adjacency, adjacency_by_term, colouring
from spinsim.model.ising import Ising
from spinsim.packing import LANES, Packing


class UnpackedPlan:
    """An unpacked run of a model.

    Attributes:
        colour_start: Colour c has ``order[colour_start[c]:colour_start[c + 1]]``.
        start: Those of site i are ``neighbour[start[i]:start[i + 1]]``.
        middle: Of these, neighbours by bonds of term 0 come first, up to ``middle[i]``; all, where there is one term.
        couplings: J of each neighbour in quanta, (1 or samples, neighbours), int32 where local fields fit, else int64.
        fields: h in quanta, (1 or samples, sites), of the same type.
        first: Sites of the first sublattice, which come first in the order; 0 where the model is not bipartite.
        terms: Terms of the energy: 2 where the model states them.
        bonds: The model's bonds, those of term 0 first.
    """

    def __init__(self, model: Ising) -> None:
        near = adjacency(model.graph)
        colour = colouring(model.graph)
        self.colours = int(colour.max()) + 1
        self.order = np.argsort(colour, kind="stable").astype(np.uint32)
        self.colour_start = np.searchsorted(colour[self.order], np.arange(self.colours + 1))
        self.first = int(self.colour_start[1]) if model.is_bipartite else 0
        self.terms = 1 if model.terms is None else MOST_TERMS
        self.start, self.middle = near.start, near.start[1:]
        self.bonds: slice | npt.NDArray[np.int64] = slice(None)
        self.of_first = model.bonds
        if model.terms is not None:
            near, self.middle = adjacency_by_term(model.graph, model.terms)
            self.bonds, self.of_first = np.argsort(model.terms, kind="stable"), int(np.count_nonzero(model.terms == 0))
        self.neighbour, self.edges = near.neighbour.astype(np.uint32), model.graph.edges[self.bonds]
        width = np.int32 if 2 * model.largest_local_field < 2**31 else np.int64
        rows = range(len(model.couplings)), range(len(model.fields))
        self.couplings = np.stack([model.integer_couplings(k)[near.bond].astype(width) for k in rows[0]])
        self.fields = np.stack([model.integer_fields(k).astype(width) for k in rows[1]])

    @staticmethod
    def double_beta(model: Ising, beta: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Twice ``beta`` times the quantum, (1 or samples, 1 or 2 terms, replicas padded to whole Philox calls).

        ``beta`` is (1 or samples, replicas) or, of both terms, (1 or samples, replicas, 2).
        """
        padding = np.repeat(beta[:, -1:], -beta.shape[1] % WORDS, axis=1)
        padded = np.append(beta, padding, axis=1).reshape(len(beta), beta.shape[1] + padding.shape[1], -1)
        return np.ascontiguousarray(2.0 * model.quantum * padded.swapaxes(1, 2))


def suits(_: Outline) -> bool:
    return True


def needed_bytes(outline: Outline, replicas: int) -> int:
    unpacking = 3 * LANES * outline.sites  # of one block's start
    return unpacking + bytes_with_adjacency(outline, replicas, LANES)


UPDATE: Final = Update(
    *(Packing.UNPACKED, suits, needed_bytes, by_sites, f"{__package__}.cpu:engine", f"{__package__}.cuda:engine"),
    pace=Pace(500, in_one_call=False),
)
