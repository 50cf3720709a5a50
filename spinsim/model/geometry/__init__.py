"""Lattices: each has a file with its unit cell; ``CELLS`` lists them all by the names that users give."""

from __future__ import annotations

from typing import Final

from spinsim.model.geometry import chain, cubic, honeycomb, hypercubic, square, triangular
from spinsim.model.geometry.unit_cell import UnitCell

CELLS: Final[dict[str, UnitCell]] = {
    module.CELL.name: module.CELL for module in (chain, square, cubic, hypercubic, triangular, honeycomb)
}
