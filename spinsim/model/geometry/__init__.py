"""Lattices: unit cells and the functions that users call; ``CELLS`` lists them all by the names that users give.

``IN_TIME`` has the product of each with a chain in time, and ``KNOWN`` all that a file may name.
"""

from __future__ import annotations

from typing import Final

from spinsim.model.geometry import honeycomb, triangular
from spinsim.model.geometry.in_time import in_time
from spinsim.model.geometry.rectangular import CHAIN, CUBIC, HYPERCUBIC, SQUARE
from spinsim.model.geometry.unit_cell import UnitCell

CELLS: Final[dict[str, UnitCell]] = {
    cell.name: cell for cell in (CHAIN, SQUARE, CUBIC, HYPERCUBIC, triangular.CELL, honeycomb.CELL)
}
IN_TIME: Final[dict[str, UnitCell]] = {name: in_time(cell, CELLS.values()) for name, cell in CELLS.items()}
KNOWN: Final[dict[str, UnitCell]] = CELLS | {cell.name: cell for cell in IN_TIME.values()}
