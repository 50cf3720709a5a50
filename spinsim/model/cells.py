"""Unit cells of lattices: their sites and bonds, and a colouring that continues from cell to cell.

``CELLS`` lists them by the names that users give, ``IN_TIME`` their products with a chain in time, and ``KNOWN`` all
that a file may name. Nothing here needs NumPy, so that the command line can name the lattices before it loads anything
slow.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isfinite, log, sqrt
from typing import Final, NamedTuple

from spinsim.errors import InputError
from spinsim.inputs.texts import count

SUFFIX: Final = "-in-time"


class Bond(NamedTuple):
    """One bond of a cell."""

    source: int  # number of the site within its cell from which the bond goes
    target: int  # number of the site within its cell to which it goes
    step: tuple[int, ...]  # how many cells further along each axis the target's cell lies


class Colours(NamedTuple):
    """A rule that colours a lattice: (sum of ``weight`` times coordinate of the cell, plus ``first``) % ``number``."""

    number: int  # how many colours there are
    weight: tuple[int, ...]  # by how much a step along each axis raises the colour
    first: tuple[int, ...] = (0,)  # the colour of each site of the first cell
    alternating: int | None = None
    """Axis, if any, whose coordinate counts modulo 2, so that any even side of it can be periodic."""


@dataclass(frozen=True)
class UnitCell:
    """The cell of a lattice; lengths are in distances of nearest neighbours."""

    name: str  # name of the lattice, as users give it
    vectors: tuple[tuple[float, ...], ...]
    """Steps from a cell to the next one along each axis, in Cartesian coordinates."""
    bonds: tuple[Bond, ...]  # the bonds that belong to a cell, in the order in which they are numbered
    colours: Colours  # a colouring of the infinite lattice in which no bond joins equal colours
    positions: tuple[tuple[int, ...], ...]
    """Position of each site of the cell along each axis, in units of 1 / ``parts`` of a step."""
    parts: int = 1  # into how many parts ``positions`` divide a step
    transition: float | None = None  # temperature of the ferromagnet's transition, J = k_B = 1, where it has one

    @cached_property
    def dimension(self) -> int:
        return len(self.vectors)

    @cached_property
    def sites(self) -> int:
        return len(self.positions)

    @cached_property
    def coordination(self) -> int:
        return 2 * len(self.bonds) // self.sites

    @cached_property
    def is_rectangular(self) -> bool:
        """True if a cell is one site whose bond number a goes to the next site along axis a."""
        return self.sites == 1 and [bond.step for bond in self.bonds] == _unit_steps(self.dimension)

    def check_along(self, along: Sequence[float]) -> None:
        """Refuse relative strengths of the couplings along the axes that do not fit the cell."""
        text = ",".join(f"{factor:g}" for factor in along)
        if not self.is_rectangular:
            raise InputError(
                f"couplings_along {text} has no meaning on a {self.name} lattice, whose bonds do not lie along "
                "its axes: take a square, cubic or hypercubic lattice"
            )
        if len(along) != self.dimension:
            raise InputError(
                f"couplings_along {text} has {count(len(along), 'strength')} but a {self.name} lattice has "
                f"{self.dimension} axes: give one for each"
            )
        if not all(isfinite(factor) and factor for factor in along):
            raise InputError(f"couplings_along {text} must be finite and not 0: give numbers such as 1 and 0.5")


def rectangular(name: str, dimension: int) -> UnitCell:
    """Cell of a chain, square, cubic or hypercubic lattice: one site, one bond along each axis."""
    steps = _unit_steps(dimension)
    return UnitCell(
        name,
        vectors=tuple(tuple(map(float, step)) for step in steps),
        bonds=tuple(Bond(0, 0, step) for step in steps),
        colours=Colours(2, (1,) * dimension),
        positions=((0,) * dimension,),
        transition=_TRANSITIONS.get(dimension),
    )


_TRANSITIONS: Final = {2: 2 / log(1 + sqrt(2)), 3: 4.511523, 4: 6.680263}
"""Transitions of rectangular lattices by dimension.

Sources: L. Onsager, Phys. Rev. 65, 117 (1944); A. Ferrenberg, J. Xu, D. Landau, Phys. Rev. E 97, 043301 (2018);
P. Lundow, K. Markstroem, Nucl. Phys. B 845, 120 (2011).
"""


def _unit_steps(dimension: int) -> list[tuple[int, ...]]:
    return [tuple(int(a == axis) for a in range(dimension)) for axis in range(dimension)]


def in_time(space: UnitCell, known: Iterable[UnitCell]) -> UnitCell:
    """Return the cell of a lattice in space with bonds between equal sites of neighbouring slices.

    The bonds in time come first, one for each site of the cell, then the bonds in space. The product of a rectangular
    cell with a chain is the known cell with one axis more.
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


TRIANGULAR: Final = UnitCell(
    "triangular",
    vectors=((1.0, 0.0), (0.5, sqrt(0.75))),
    bonds=(Bond(0, 0, (1, 0)), Bond(0, 0, (0, 1)), Bond(0, 0, (-1, 1))),
    colours=Colours(3, (1, 2)),
    positions=((0, 0),),
    transition=4 / log(3),
)
"""Axis 0 (x) points to the right, axis 1 (y) 60 degrees upwards from it. The bonds of a site go to its neighbours at
x + 1, at y + 1 and at (x - 1, y + 1). Three colours serve it where periodic sides are multiples of 3.

The ferromagnet's transition lies at T = 4 / ln 3 = 3.640957. Source: R. Houtappel, Physica 16, 425 (1950).
"""
HONEYCOMB: Final = UnitCell(
    "honeycomb",
    vectors=((sqrt(3), 0.0), (sqrt(0.75), 1.5)),
    bonds=(Bond(0, 1, (0, 0)), Bond(0, 1, (-1, 0)), Bond(0, 1, (0, -1))),
    colours=Colours(2, (0, 0), (0, 1)),
    positions=((0, 0), (1, 1)),
    parts=3,
    transition=2 / log(2 + sqrt(3)),
)
"""Two sites a cell. Axes are those of the triangular lattice of its cells: x to the right, y 60 degrees upwards, each
step sqrt(3) long. The second site of a cell lies a third of both steps from the first one, which has its bonds to the
second sites of its own cell, of the cell before along x and of the cell before along y.

The ferromagnet's transition lies at T = 2 / ln(2 + sqrt 3) = 1.518652. Source: R. Houtappel, Physica 16, 425 (1950).
"""
_RECTANGULAR: Final = [rectangular(name, d) for d, name in enumerate(("chain", "square", "cubic", "hypercubic"), 1)]
CELLS: Final[dict[str, UnitCell]] = {cell.name: cell for cell in (*_RECTANGULAR, TRIANGULAR, HONEYCOMB)}
IN_TIME: Final[dict[str, UnitCell]] = {name: in_time(cell, CELLS.values()) for name, cell in CELLS.items()}
KNOWN: Final[dict[str, UnitCell]] = CELLS | {cell.name: cell for cell in IN_TIME.values()}
