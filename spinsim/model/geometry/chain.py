"""The chain."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from spinsim.model.geometry.unit_cell import rectangular

if TYPE_CHECKING:
    from spinsim.model.geometry.lattice import Lattice

CELL: Final = rectangular("chain", 1)


def chain(length: int, periodic: bool = True) -> Lattice:
    """A chain of ``length`` sites."""
    return CELL.lattice((length,), periodic)
