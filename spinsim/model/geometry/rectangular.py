"""Lattices with right angles and one site a cell: the chain, square, cubic and hypercubic lattice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from spinsim.model.geometry.unit_cell import rectangular

if TYPE_CHECKING:
    from spinsim.model.geometry.lattice import Lattice

CHAIN: Final = rectangular("chain", 1)
SQUARE: Final = rectangular("square", 2)
CUBIC: Final = rectangular("cubic", 3)
HYPERCUBIC: Final = rectangular("hypercubic", 4)


def chain(length: int, periodic: bool = True) -> Lattice:
    """A chain of ``length`` sites."""
    return CHAIN.lattice((length,), periodic)


def square(width: int, height: int | None = None, periodic: bool = True) -> Lattice:
    """A square lattice of ``width`` x ``height`` sites (``height`` defaults to ``width``)."""
    return SQUARE.lattice((width, width if height is None else height), periodic)


def cubic(width: int, height: int | None = None, depth: int | None = None, periodic: bool = True) -> Lattice:
    """A cubic lattice of ``width`` x ``height`` x ``depth`` sites (both default to ``width``)."""
    return CUBIC.lattice((width, width if height is None else height, width if depth is None else depth), periodic)


def hypercubic(
    width: int, height: int | None = None, depth: int | None = None, length: int | None = None, periodic: bool = True
) -> Lattice:
    """A hypercubic lattice of ``width`` x ``height`` x ``depth`` x ``length`` sites (all default to ``width``)."""
    sides = (width, height, depth, length)
    return HYPERCUBIC.lattice(tuple(width if side is None else side for side in sides), periodic)
