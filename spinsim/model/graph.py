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
        if self.sites >= 2**31:
            raise InputError(f"a graph of {self.sites} sites exceeds the limit of 2^31 - 1: split it in parts")
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

    @property
    def regular_lattice(self) -> Lattice | None:
        """The lattice, where every site has all its bonds."""
        return self.lattice if self.lattice and self.lattice.present_bonds() is None else None

    def degrees(self) -> npt.NDArray[np.int32]:
        """Bonds at each site, shape (sites,)."""
        lattice = self.regular_lattice
        if lattice:
            return np.full(self.sites, 2 * lattice.dimension, np.int32)
        return np.bincount(self.edges.reshape(-1), minlength=self.sites).astype(np.int32)
