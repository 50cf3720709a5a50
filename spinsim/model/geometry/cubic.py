"""The simple cubic lattice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from spinsim.model.geometry.unit_cell import rectangular

if TYPE_CHECKING:
    from spinsim.model.geometry.lattice import Lattice

CELL: Final = rectangular("cubic", 3)


def cubic(width: int, height: int | None = None, depth: int | None = None, periodic: bool = True) -> Lattice:
    """A cubic lattice of ``width`` x ``height`` x ``depth`` sites (both default to ``width``)."""
    return CELL.lattice((width, width if height is None else height, width if depth is None else depth), periodic)
