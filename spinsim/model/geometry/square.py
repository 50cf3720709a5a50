"""The square lattice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from spinsim.model.geometry.unit_cell import rectangular

if TYPE_CHECKING:
    from spinsim.model.geometry.lattice import Lattice

CELL: Final = rectangular("square", 2)


def square(width: int, height: int | None = None, periodic: bool = True) -> Lattice:
    """A square lattice of ``width`` x ``height`` sites (``height`` defaults to ``width``)."""
    return CELL.lattice((width, width if height is None else height), periodic)
