"""Lattices: chain, square and cubic, any side lengths, periodic or open.

Sites count with x fastest: i = x + Lx * (y + Ly * z). Bond d * i + a goes from site i to its neighbour along axis a; a
periodic axis of length 2 has two bonds between its two sites, one of length 1 none; open boundaries leave the missing
bonds out.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from spinsim.errors import InputError

DIMENSIONS: Final = {"chain": 1, "square": 2, "cubic": 3}
NAMES: Final = {dimension: name for name, dimension in DIMENSIONS.items()}


@dataclass(frozen=True)
class Lattice:
    """A hypercubic lattice of one to three dimensions.

    Attributes:
        shape: Side lengths, x first.
        periodic: Whether every axis closes on itself.
    """

    shape: tuple[int, ...]
    periodic: bool = True

    def __post_init__(self) -> None:
        if not 1 <= len(self.shape) <= 3:
            raise InputError(f"a lattice of {len(self.shape)} dimensions is not supported: give one to three sides")
        for side in self.shape:
            if not isinstance(side, int | np.integer) or side < 1:
                raise InputError(f"lattice side {side} must be at least 1: give positive integers such as 16 or 32x32")
        if self.sites * self.dimension > 2**31:
            raise InputError(f"{self.sites} sites with their bonds exceed the limit of 2^31: choose a smaller lattice")

    @property
    def dimension(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def name(self) -> str:
        """``chain``, ``square`` or ``cubic``."""
        return NAMES[self.dimension]

    @property
    def sites(self) -> int:
        """Number of sites."""
        return prod(self.shape)

    @property
    def bonds(self) -> int:
        """Number of bonds."""
        ends = 0 if self.periodic else 1
        return sum(self.sites // side * (side - ends) for side in self.shape if side > 1)

    @property
    def label(self) -> str:
        """Short text such as ``square-64x64``."""
        return f"{self.name}-{'x'.join(map(str, self.shape))}"

    def edges(self) -> npt.NDArray[np.int32]:
        """The bonds' end sites in the standard order; shape (bonds, 2)."""
        grid = np.arange(self.sites, dtype=np.int32).reshape(self.shape[::-1])
        ends = np.empty((*grid.shape, self.dimension, 2), np.int32)
        stride = 1
        for axis, side in enumerate(self.shape):
            ends[..., axis, 0] = grid
            np.add(grid, stride, out=ends[..., axis, 1])
            _along(ends[..., axis, 1], axis)[-1:] = _along(grid, axis)[:1]
            stride *= side
        ends = ends.reshape(-1, 2)
        present = self.present_bonds()
        return ends if present is None else ends[present]

    def present_bonds(self) -> npt.NDArray[np.bool_] | None:
        """Which of the dimension * sites bond numbers exist; None when all do."""
        if self.periodic and min(self.shape) > 1:
            return None
        present = np.ones((*self.shape[::-1], self.dimension), np.bool_)
        for axis, side in enumerate(self.shape):
            if side == 1:
                present[..., axis] = False
            elif not self.periodic:
                _along(present[..., axis], axis)[-1:] = False
        return present.reshape(-1)

    def two_colours(self) -> npt.NDArray[np.int32] | None:
        """Checkerboard colours (sites,), or None where an odd periodic side makes the lattice not bipartite."""
        if self.periodic and any(side % 2 and side > 1 for side in self.shape):
            return None
        colour = np.zeros(self.shape[::-1], np.int32)
        for axis in range(self.dimension):
            side = self.shape[axis]
            parity = np.arange(side, dtype=np.int32) & 1
            colour ^= parity.reshape([-1 if a == self.dimension - 1 - axis else 1 for a in range(self.dimension)])
        return colour.reshape(-1)


def _along(array: npt.NDArray[Any], axis: int) -> npt.NDArray[Any]:
    """A view of an array (..., Ly, Lx) with the lattice's ``axis`` in front."""
    return np.moveaxis(array, array.ndim - 1 - axis, 0)


def chain(length: int, periodic: bool = True) -> Lattice:
    """A chain of ``length`` sites."""
    return Lattice((length,), periodic)


def square(width: int, height: int | None = None, periodic: bool = True) -> Lattice:
    """A square lattice of ``width`` x ``height`` sites (``height`` defaults to ``width``)."""
    return Lattice((width, width if height is None else height), periodic)


def cubic(width: int, height: int | None = None, depth: int | None = None, periodic: bool = True) -> Lattice:
    """A cubic lattice of ``width`` x ``height`` x ``depth`` sites (both default to ``width``)."""
    return Lattice((width, width if height is None else height, width if depth is None else depth), periodic)
