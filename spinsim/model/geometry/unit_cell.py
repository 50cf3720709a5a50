"""What a lattice repeats: the sites of one cell, their bonds, and a colouring that continues from cell to cell.

Nothing here needs NumPy, so that the command line can name the lattices before it loads anything slow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, NamedTuple

from spinsim.errors import InputError
from spinsim.inputs.texts import count

if TYPE_CHECKING:
    from spinsim.model.geometry.lattice import Lattice


class Bond(NamedTuple):
    """One bond of a cell.

    Attributes:
        source: Number of the site within its cell from which the bond goes.
        target: Number of the site within its cell to which it goes.
        step: How many cells further along each axis the target's cell lies.
    """

    source: int
    target: int
    step: tuple[int, ...]


class Colours(NamedTuple):
    """A rule that colours a lattice: (sum of ``weight`` times coordinate of the cell, plus ``first``) % ``number``.

    Attributes:
        number: How many colours there are.
        weight: By how much a step along each axis raises the colour.
        first: The colour of each site of the first cell.
        alternating: An axis whose coordinate counts modulo 2, so that any even side of it can be periodic, if any.
    """

    number: int
    weight: tuple[int, ...]
    first: tuple[int, ...] = (0,)
    alternating: int | None = None


@dataclass(frozen=True)
class UnitCell:
    """The cell of a lattice; lengths are in distances of nearest neighbours.

    Attributes:
        name: What users call the lattice.
        vectors: Steps from a cell to the next one along each axis, in Cartesian coordinates.
        bonds: The bonds that belong to a cell, in the order in which they are numbered.
        colours: A colouring of the infinite lattice in which no bond joins equal colours.
        positions: Where each site of the cell lies along each axis, in units of 1 / ``parts`` of a step.
        parts: Into how many parts ``positions`` divide a step.
    """

    name: str
    vectors: tuple[tuple[float, ...], ...]
    bonds: tuple[Bond, ...]
    colours: Colours
    positions: tuple[tuple[int, ...], ...]
    parts: int = 1

    @property
    def dimension(self) -> int:
        """Number of axes."""
        return len(self.vectors)

    @property
    def sites(self) -> int:
        """Number of sites in a cell."""
        return len(self.positions)

    @property
    def coordination(self) -> int:
        """Number of bonds at a site where none is missing."""
        return 2 * len(self.bonds) // self.sites

    @property
    def is_rectangular(self) -> bool:
        """Whether a cell is one site whose bond number a goes to the next site along axis a."""
        return self.sites == 1 and [bond.step for bond in self.bonds] == _unit_steps(self.dimension)

    def check_along(self, along: Sequence[float]) -> None:
        """Refuse relative strengths of the couplings along the axes that do not fit the cell.

        Raises:
            InputError: where bonds do not lie along axes, for another number of strengths, and for one that is 0 or not
                finite.
        """
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

    def lattice(self, shape: tuple[int, ...], periodic: bool = True) -> Lattice:
        """The lattice of ``shape`` cells, the x axis first.

        Raises:
            InputError: for a wrong number of sides and for sides that are no positive integers.
        """
        from spinsim.model.geometry.lattice import Lattice

        return Lattice(shape, periodic, self)


def rectangular(name: str, dimension: int) -> UnitCell:
    """The cell of a chain, a square lattice or its like in more dimensions: one site, one bond along each axis."""
    steps = _unit_steps(dimension)
    return UnitCell(
        name,
        vectors=tuple(tuple(map(float, step)) for step in steps),
        bonds=tuple(Bond(0, 0, step) for step in steps),
        colours=Colours(2, (1,) * dimension),
        positions=((0,) * dimension,),
    )


def _unit_steps(dimension: int) -> list[tuple[int, ...]]:
    return [tuple(int(a == axis) for a in range(dimension)) for axis in range(dimension)]
