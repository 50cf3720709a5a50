"""Graphs: any set of bonds between sites, and the colouring that checkerboard updates need."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from spinsim.errors import InputError
from spinsim.model.lattice import Lattice


@dataclass(frozen=True, eq=False)
class Graph:
    """Sites joined by bonds; two sites may share several.

    Attributes:
        sites: Number of sites.
        edges: End sites of each bond, shape (bonds, 2), ``int32``.
        lattice: The lattice it came from, if any.
    """

    sites: int
    edges: npt.NDArray[np.int32]
    lattice: Lattice | None = field(default=None)

    def __post_init__(self) -> None:
        if self.sites < 1:
            raise InputError(f"a graph of {self.sites} sites has nothing to simulate: give at least one site")
        if self.edges.ndim != 2 or self.edges.shape[1] != 2:
            raise InputError(f"edges have shape {self.edges.shape}: give an array of shape (bonds, 2)")
        if self.lattice is None and len(self.edges):
            low, high = int(self.edges.min()), int(self.edges.max())
            if low < 0 or high >= self.sites:
                bad = low if low < 0 else high
                raise InputError(f"edge end {bad} is not a site: use 0 to {self.sites - 1}")
            loops = np.flatnonzero(self.edges[:, 0] == self.edges[:, 1])
            if len(loops):
                raise InputError(f"bond {loops[0]} joins site {self.edges[loops[0], 0]} to itself: leave it out")

    @classmethod
    def of_lattice(cls, lattice: Lattice) -> Graph:
        """The graph of a lattice's bonds."""
        return cls(lattice.sites, lattice.edges(), lattice)

    @property
    def bonds(self) -> int:
        """Number of bonds."""
        return len(self.edges)

    @property
    def label(self) -> str:
        """Short text for file names."""
        return self.lattice.label if self.lattice else f"graph-{self.sites}"

    def degrees(self) -> npt.NDArray[np.int64]:
        """Bonds at each site, shape (sites,)."""
        if self.lattice and self.lattice.present_bonds() is None:
            return np.full(self.sites, 2 * self.lattice.dimension, np.int64)
        return np.bincount(self.edges.reshape(-1), minlength=self.sites)
