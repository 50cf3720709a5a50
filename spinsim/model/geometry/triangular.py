"""The triangular lattice.

Axis 0 (x) points to the right, axis 1 (y) 60 degrees upwards from it. The bonds of a site go to its neighbours at
x + 1, at y + 1 and at (x - 1, y + 1). Three colours serve it where periodic sides are multiples of 3.

The ferromagnet's transition lies at T = 4 / ln 3 = 3.640957. Source: R. Houtappel, Physica 16, 425 (1950).
"""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING, Final

from spinsim.model.geometry.unit_cell import Bond, Colours, UnitCell

if TYPE_CHECKING:
    from spinsim.model.geometry.lattice import Lattice

CELL: Final = UnitCell(
    "triangular",
    vectors=((1.0, 0.0), (0.5, sqrt(0.75))),
    bonds=(Bond(0, 0, (1, 0)), Bond(0, 0, (0, 1)), Bond(0, 0, (-1, 1))),
    colours=Colours(3, (1, 2)),
    positions=((0, 0),),
)


def triangular(width: int, height: int | None = None, periodic: bool = True) -> Lattice:
    """A triangular lattice of ``width`` x ``height`` sites, a rhombus (``height`` defaults to ``width``)."""
    return CELL.lattice((width, width if height is None else height), periodic)
