"""Lattices of space and time: the cell of a lattice in space times a chain in (imaginary) time, axis 0.

Time comes first, so that the slices of one site of space are neighbours in memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from spinsim.model.geometry.unit_cell import Bond, Colours, UnitCell

if TYPE_CHECKING:
    from collections.abc import Iterable

SUFFIX: Final = "-in-time"


def in_time(space: UnitCell, known: Iterable[UnitCell]) -> UnitCell:
    """Returns the cell of a lattice in space with bonds between equal sites of neighbouring slices.

    The bonds in time come first, one for each site of the cell, then those of space.

    Args:
        space: The cell in space.
        known: Cells that are there already: the product of a rectangular cell with a chain is the one that has
            one axis more.
    """
    if space.is_rectangular:
        for cell in known:
            if cell.is_rectangular and cell.dimension == space.dimension + 1:
                return cell
    along = tuple(Bond(site, site, (1, *[0] * space.dimension)) for site in range(space.sites))
    number = max(2, space.colours.number)
    return UnitCell(
        f"{space.name}{SUFFIX}",
        vectors=((1.0, *[0.0] * space.dimension), *((0.0, *vector) for vector in space.vectors)),
        bonds=along + tuple(Bond(bond.source, bond.target, (0, *bond.step)) for bond in space.bonds),
        colours=Colours(number, (1, *space.colours.weight), space.colours.first, alternating=0),
        positions=tuple((0, *position) for position in space.positions),
        parts=space.parts,
    )
