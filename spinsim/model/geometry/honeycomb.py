"""The honeycomb lattice, of two sites a cell.

Axes are those of the triangular lattice of its cells: x to the right, y 60 degrees upwards, each step sqrt(3) long. The
second site of a cell lies a third of both steps from the first one, which has its bonds to the second sites of its own
cell, of the cell before along x and of the cell before along y.

The ferromagnet's transition lies at T = 2 / ln(2 + sqrt 3) = 1.518652. Source: R. Houtappel, Physica 16, 425 (1950).
"""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING, Final

from spinsim.model.geometry.unit_cell import Bond, Colours, UnitCell

if TYPE_CHECKING:
    from spinsim.model.geometry.lattice import Lattice

CELL: Final = UnitCell(
    "honeycomb",
    vectors=((sqrt(3), 0.0), (sqrt(0.75), 1.5)),
    bonds=(Bond(0, 1, (0, 0)), Bond(0, 1, (-1, 0)), Bond(0, 1, (0, -1))),
    colours=Colours(2, (0, 0), (0, 1)),
    positions=((0, 0), (1, 1)),
    parts=3,
)


def honeycomb(width: int, height: int | None = None, periodic: bool = True) -> Lattice:
    """A honeycomb lattice of ``width`` x ``height`` cells of two sites (``height`` defaults to ``width``)."""
    return CELL.lattice((width, width if height is None else height), periodic)
