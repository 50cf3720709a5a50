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
        edges: End sites of each bond, integers of shape (bonds, 2), held as ``int32``.
        lattice: The lattice it came from, if any.
    """

    sites: int
    edges: npt.NDArray[np.int32]
    lattice: Lattice | None = field(default=None)

    def __post_init__(self) -> None:
        edges = np.asarray(self.edges)
        if edges.size == 0:
            edges = edges.reshape(0, 2)
        elif edges.dtype.kind not in "iu":
            raise InputError(f"edges of type {edges.dtype} are not site numbers: give integers")
        if self.sites < 1:
            raise InputError(f"a graph of {self.sites} sites has nothing to simulate: give at least one site")
        if self.sites >= 2**31:
            raise InputError(f"a graph of {self.sites} sites exceeds the limit of 2^31 - 1: split it in parts")
        if edges.ndim != 2 or edges.shape[1] != 2:
            raise InputError(f"edges have shape {edges.shape}: give an array of shape (bonds, 2)")
        if len(edges) >= 2**31:
            raise InputError(f"a graph of {len(edges)} bonds exceeds the limit of 2^31 - 1: split it in parts")
        if self.lattice is None and len(edges):
            low, high = int(edges.min()), int(edges.max())
            if low < 0 or high >= self.sites:
                bad = low if low < 0 else high
                raise InputError(f"edge end {bad} is not a site: use 0 to {self.sites - 1}")
            loops = np.flatnonzero(edges[:, 0] == edges[:, 1])
            if len(loops):
                raise InputError(f"bond {loops[0]} joins site {edges[loops[0], 0]} to itself: leave it out")
        object.__setattr__(self, "edges", edges.astype(np.int32, copy=False))

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
