"""The hypercubic lattice of four dimensions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from spinsim.model.geometry.unit_cell import rectangular

if TYPE_CHECKING:
    from spinsim.model.geometry.lattice import Lattice

CELL: Final = rectangular("hypercubic", 4)


def hypercubic(
    width: int, height: int | None = None, depth: int | None = None, length: int | None = None, periodic: bool = True
) -> Lattice:
    """A hypercubic lattice of ``width`` x ``height`` x ``depth`` x ``length`` sites (all default to ``width``)."""
    sides = (width, height, depth, length)
    return CELL.lattice(tuple(width if side is None else side for side in sides), periodic)
