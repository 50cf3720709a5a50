"""A lattice: a unit cell repeated along its axes, any number of times, periodic or open.

Cells count with x fastest, c = x + Lx * (y + Ly * (z + ...)), and sites within them: with n sites a cell, its sites are
n * c to n * c + n - 1. With m bonds a cell, bond m * c + a is bond a of the cell. A periodic axis of length 2 has two
bonds between its two sites; a bond that would join a site to itself (an axis of length 1) is left out; open boundaries
leave out the bonds that would cross them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from math import fsum, pi, prod, sin, sqrt
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from spinsim.errors import InputError
from spinsim.inputs.arguments import judges, plain, public, whole
from spinsim.inputs.texts import Described, count, shown
from spinsim.model.cells import CELLS, IN_TIME, Bond, UnitCell
from spinsim.packing import rows_fill_groups

_BONDS_AT_ONCE: Final = 2**16  # that stay in a cache while they are hashed
WAVE_BITS: Final = 64  # of cosines and sines behind the point, before they are rounded to float64
_GUARD_BITS: Final = 64  # more while they are computed: enough for 2^31 steps
_PI: Final = 0x3243F6A8885A308D313198A2E03707344  # pi with 128 bits behind the point


@public
@judges("periodic")
@dataclass(frozen=True, repr=False)
class Lattice(Described):
    """A lattice of one to four dimensions.

    Attributes:
        shape: Side lengths in cells, x first.
        periodic: True if every axis closes on itself.
        cell: Cell that is repeated; by default that of the chain, square, cubic or hypercubic lattice.
    """

    shape: tuple[int, ...]
    periodic: bool = True
    cell: UnitCell = field(default=None, repr=False)  # type: ignore[assignment]  # set below where it is left out

    def __post_init__(self) -> None:
        if self.cell is None:
            cells = (c for c in CELLS.values() if c.is_rectangular and c.dimension == len(self.shape))  # type: ignore[unreachable]
            object.__setattr__(self, "cell", next(cells, None))
            if self.cell is None:
                raise InputError(f"a lattice of {len(self.shape)} dimensions is not supported: give one to four sides")
        if len(self.shape) != self.dimension:
            raise InputError(f"{self.name} lattices have {self.dimension} sides, not {len(self.shape)}: give as many")
        object.__setattr__(self, "shape", tuple(self._side(side) for side in self.shape))
        if not isinstance(self.periodic, bool | np.bool_):
            raise InputError(
                f"periodic is {shown(self.periodic)}: give True or False for all axes; {self.name} lattices have "
                f"{self.dimension} sides"
            )
        object.__setattr__(self, "periodic", bool(self.periodic))

    def _side(self, side: Any) -> int:
        """Return the length of a side, which may be given as a number of NumPy or a whole float."""
        try:
            length: int = whole(side)
        except (TypeError, ValueError):
            length = 0
        if length < 1:
            example = f"ss.{self.name}({', '.join(('8', '6', '4', '4')[: self.dimension])})"
            raise InputError(
                f"lattice side {shown(plain(side))} is no whole number of at least 1: give a number for each side, "
                f"such as {example}"
            )
        return length

    @property
    def _summary(self) -> dict[str, str]:
        return {
            "lattice": self.name,
            "sides": " x ".join(map(str, self.shape)),
            "boundaries": "periodic" if self.periodic else "open",
            "size": f"{count(self.sites, 'site')}, {count(self.bonds, 'bond')}",
        }

    @property
    def name(self) -> str:
        """Name that users give the lattice, such as ``square``."""
        return self.cell.name

    @property
    def dimension(self) -> int:
        """Number of axes."""
        return self.cell.dimension

    @property
    def sites(self) -> int:
        """Number of sites."""
        return prod(self.shape) * self.cell.sites

    @cached_property
    def bonds(self) -> int:
        """Number of bonds."""
        return sum(self._number_of(bond) for bond in self.cell.bonds)

    @property
    def most_bonds(self) -> int:
        """Number of bonds of all cells, including bonds that a boundary leaves out."""
        return prod(self.shape) * len(self.cell.bonds)

    @property
    def label(self) -> str:
        """Short text such as ``square-64x64``."""
        return f"{self.name}-{'x'.join(map(str, self.shape))}"

    @property
    def joins_layers(self) -> bool:
        """True if bonds join every site to the site at the same place in the next layer along each axis."""
        return self.cell.is_rectangular

    @property
    def sides_are_even(self) -> bool:
        """True if the lattice can be site-packed: square or cubic, periodic, of even sides."""
        even = all(side % 2 == 0 for side in self.shape)
        return self.joins_layers and self.dimension in (2, 3) and self.periodic and even

    @property
    def rows_can_be_packed(self) -> bool:
        """True if the lattice is site-packed for any replicas: ``sides_are_even`` holds and rows fill groups."""
        return self.sides_are_even and rows_fill_groups(self.shape)

    def edges(self) -> npt.NDArray[np.int32]:
        """End sites of each bond, shape (bonds, 2); bond m c + a starts in cell c and is bond a of the m of a cell.

        On chain, square, cubic and hypercubic lattices bond d i + a goes from site i along axis a, x being axis 0.
        Open boundaries leave bonds out.
        """
        return self._edges_of(range(self.shape[-1]), self.present_bonds())

    def edges_in_pieces(self) -> Iterator[npt.NDArray[np.int32]]:
        """End sites of all bonds in pieces of some ``_BONDS_AT_ONCE`` bonds, none of which is kept."""
        layers, present = self.shape[-1], self.present_bonds()
        bonds = self.most_bonds // layers
        at_once = max(1, _BONDS_AT_ONCE // bonds)
        for first in range(0, layers, at_once):
            some = range(first, min(first + at_once, layers))
            yield self._edges_of(some, None if present is None else present[some.start * bonds : some.stop * bonds])

    def _edges_of(self, layers: range, present: npt.NDArray[np.bool_] | None) -> npt.NDArray[np.int32]:
        """End sites of the bonds that begin in layers along the last axis, restricted to the bonds ``present``."""
        *sides, last = self.shape
        layer = np.arange(0, prod(sides) * self.cell.sites, self.cell.sites, dtype=np.int32).reshape(sides[::-1])
        number = np.arange(layers.start, layers.stop).reshape(-1, *[1] * layer.ndim)
        ends = np.empty((len(layers), *layer.shape, len(self.cell.bonds), 2), np.int32)
        for k, bond in enumerate(self.cell.bonds):
            there = number, (number + bond.step[-1]) % last
            cells = layer, _moved(layer, bond.step[:-1])
            for end, of_cell in enumerate((bond.source, bond.target)):
                in_front = there[end] * (layer.size * self.cell.sites) + of_cell
                np.add(cells[end], in_front.astype(np.int32), out=ends[..., k, end])
        ends = ends.reshape(-1, 2)
        return ends if present is None else ends[present]

    def bond_numbers(self) -> npt.NDArray[np.uint8]:
        """The number of each bond in its cell, (bonds,): its axis where ``joins_layers``."""
        numbers = np.tile(np.arange(len(self.cell.bonds), dtype=np.uint8), prod(self.shape))
        present = self.present_bonds()
        return numbers if present is None else numbers[present]

    def present_bonds(self) -> npt.NDArray[np.bool_] | None:
        """True for the bonds of all cells that exist; None when all do."""
        if self.periodic and not any(map(self._is_loop, self.cell.bonds)):
            return None
        present = np.ones((*self.shape[::-1], len(self.cell.bonds)), np.bool_)
        for k, bond in enumerate(self.cell.bonds):
            if self._is_loop(bond):
                present[..., k] = False
            elif not self.periodic:
                for axis, step in enumerate(bond.step):
                    outside = slice(-step, None) if step > 0 else slice(0, -step)
                    np.moveaxis(present[..., k], present.ndim - 2 - axis, 0)[outside] = False
        return present.reshape(-1)

    def closing_bonds(self, axis: int) -> npt.NDArray[np.bool_]:
        """True for the bonds that cross the periodic boundary of an axis, (bonds,), in the order of ``edges``."""
        cell = np.arange(prod(self.shape)) // prod(self.shape[:axis]) % self.shape[axis]
        ends = cell[:, None] + [bond.step[axis] for bond in self.cell.bonds]
        crosses, present = ((ends < 0) | (ends >= self.shape[axis])).reshape(-1), self.present_bonds()
        return crosses if present is None else crosses[present]

    def colours(self) -> npt.NDArray[np.int32] | None:
        """Colours (sites,) by the cell's rule, or None where a periodic side does not let it continue."""
        rule = self.cell.colours
        if not self._colours_continue:
            return None
        colour = np.zeros((*self.shape[::-1], self.cell.sites), np.int32)
        colour += np.array(rule.first, np.int32)
        for axis, (side, weight) in enumerate(zip(self.shape, rule.weight, strict=True)):
            along = np.arange(side, dtype=np.int32) % (2 if axis == rule.alternating else rule.number)
            steps = weight * along % rule.number
            colour += steps.reshape(-1, *[1] * (axis + 1))
        colour %= rule.number
        colour = colour.reshape(-1)
        used = np.bincount(colour) > 0
        return colour if used.all() else (np.cumsum(used, dtype=np.int32) - 1)[colour]  # few cells may lack a colour

    @property
    def is_bipartite(self) -> bool:
        """True if all bonds join two sublattices: the two colours of its cell, which continue across the boundary."""
        return self.cell.colours.number == 2 and self._colours_continue

    @property
    def _colours_continue(self) -> bool:
        """True if the colours of the cell's rule fit together where the lattice closes on itself."""
        rule, bare = self.cell.colours, self.joins_layers
        return not self.periodic or all(
            side % 2 == 0 if axis == rule.alternating else side * weight % rule.number == 0 or (side == 1 and bare)
            for axis, (side, weight) in enumerate(zip(self.shape, rule.weight, strict=True))
        )

    def layers(self, axis: int) -> npt.NDArray[np.int32]:
        """The sites layer by layer along an axis, (layers, sites a layer); each site of a cell has its own layers."""
        grid = np.arange(self.sites, dtype=np.int32).reshape(*self.shape[::-1], self.cell.sites)
        of_axis = np.moveaxis(grid, (self.dimension - 1 - axis, -1), (0, 1))
        return np.ascontiguousarray(of_axis).reshape(self.shape[axis] * self.cell.sites, -1)

    def phases(self) -> list[tuple[npt.NDArray[np.int64], int]]:
        """Positions of the layers of each axis, (layers,), and its length, in the same integer units.

        The phase of a layer in the mode of the axis is 2 pi times the ratio of the two. The mode's wave vector is the
        axis's reciprocal vector over its number of cells, the smallest one that is perpendicular to all other axes.
        """
        parts, phases = self.cell.parts, []
        for side, in_cell in zip(self.shape, np.array(self.cell.positions).T, strict=True):
            phases.append(((parts * np.arange(side)[:, None] + in_cell).reshape(-1), parts * side))
        return phases

    def momentum(self, axis: int) -> float:
        """The lattice momentum K of an axis's smallest wave vector k, in inverse distances of nearest neighbours.

        K^2 = 2 d / z times the sum over the z neighbours of a site of 1 - cos(k r), d the dimension: k^2 for small k,
        (2 sin(k / 2))^2 on lattices with right angles.
        """
        squares = []
        for bond in self.cell.bonds:
            ends = (self.cell.positions[site][axis] for site in (bond.target, bond.source))
            parts = self.cell.parts * bond.step[axis] + next(ends) - next(ends)
            squares.append(sin(pi * parts / (self.cell.parts * self.shape[axis])) ** 2)
        return 2 * sqrt(self.dimension / len(squares) * fsum(squares))

    def site_positions(self) -> npt.NDArray[np.float64]:
        """Cartesian coordinates of every site in distances of nearest neighbours, (sites, dimension)."""
        along = np.empty((*self.shape[::-1], self.cell.sites, self.dimension))
        for axis, side in enumerate(self.shape):
            in_cell = np.array([position[axis] for position in self.cell.positions]) / self.cell.parts
            along[..., axis] = np.arange(side).reshape(-1, *[1] * (axis + 1)) + in_cell
        return np.asarray(along.reshape(-1, self.dimension) @ np.array(self.cell.vectors))

    def _is_loop(self, bond: Bond) -> bool:
        at_home = all(step % side == 0 for step, side in zip(bond.step, self.shape, strict=True))
        return bond.source == bond.target and at_home

    def _number_of(self, bond: Bond) -> int:
        if self._is_loop(bond):
            return 0
        ends = [0 if self.periodic else abs(step) for step in bond.step]
        return prod(max(0, side - missing) for side, missing in zip(self.shape, ends, strict=True))


def _moved(grid: npt.NDArray[np.int32], step: tuple[int, ...]) -> npt.NDArray[np.int32]:
    """The entries ``step`` cells further in a periodic array (..., Ly, Lx)."""
    for axis, by in enumerate(step):
        if by:
            grid = np.roll(grid, -by, grid.ndim - 1 - axis)
    return grid


_by_lattice = judges("width", "height", "depth", "length", "periodic")  # which says more


@public
@_by_lattice
def chain(length: int, periodic: bool = True) -> Lattice:
    """A chain.

    Args:
        length: Number of sites; 1 has no bonds.
        periodic: False for open boundaries.

    Returns:
        The lattice, for ``Ising`` or ``EdwardsAnderson``.

    Examples:
        >>> ss.chain(8).bonds
        8
        >>> ss.chain(8, periodic=False).bonds
        7
    """
    return Lattice((length,), periodic)


@public
@_by_lattice
def square(width: int, height: int | None = None, periodic: bool = True) -> Lattice:
    """A square lattice.

    Args:
        width: Sites along x; along an axis of 1 there are no bonds.
        height: Sites along y, ``width`` by default.
        periodic: False for open boundaries.

    Returns:
        The lattice, for ``Ising`` or ``EdwardsAnderson``.

    Examples:
        >>> ss.square(4, 6).sites
        24
    """
    return Lattice(_sides(width, height), periodic)


@public
@_by_lattice
def cubic(width: int, height: int | None = None, depth: int | None = None, periodic: bool = True) -> Lattice:
    """A cubic lattice.

    Args:
        width: Sites along x; along an axis of 1 there are no bonds.
        height: Sites along y, ``width`` by default.
        depth: Sites along z, ``width`` by default.
        periodic: False for open boundaries.

    Returns:
        The lattice, for ``Ising`` or ``EdwardsAnderson``.

    Examples:
        >>> ss.cubic(4).shape
        (4, 4, 4)
    """
    return Lattice(_sides(width, height, depth), periodic)


@public
@_by_lattice
def hypercubic(
    width: int, height: int | None = None, depth: int | None = None, length: int | None = None, periodic: bool = True
) -> Lattice:
    """A hypercubic lattice in four dimensions.

    Args:
        width: Sites along x; along an axis of 1 there are no bonds.
        height: Sites along y, ``width`` by default.
        depth: Sites along z, ``width`` by default.
        length: Sites along the fourth axis, ``width`` by default.
        periodic: False for open boundaries.

    Returns:
        The lattice, for ``Ising`` or ``EdwardsAnderson``.

    Examples:
        >>> ss.hypercubic(4).sites
        256
    """
    return Lattice(_sides(width, height, depth, length), periodic)


def _sides(width: int, *others: int | None) -> tuple[int, ...]:
    return width, *(width if side is None else side for side in others)


@public
@_by_lattice
def triangular(width: int, height: int | None = None, periodic: bool = True) -> Lattice:
    """A triangular lattice, in the form of a rhombus.

    Args:
        width: Sites along x; along an axis of 1 there are no bonds.
        height: Sites along the axis at 60 degrees to x, ``width`` by default.
        periodic: False for open boundaries.

    Returns:
        The lattice, for ``Ising`` or ``EdwardsAnderson``.

    Examples:
        >>> ss.triangular(6).bonds
        108
    """
    return Lattice(_sides(width, height), periodic, CELLS["triangular"])


@public
@_by_lattice
def honeycomb(width: int, height: int | None = None, periodic: bool = True) -> Lattice:
    """A honeycomb lattice, in the form of a rhombus of cells that have two sites each.

    Args:
        width: Cells along x; along an axis of 1 there are no bonds.
        height: Cells along the axis at 60 degrees to x, ``width`` by default.
        periodic: False for open boundaries.

    Returns:
        The lattice, for ``Ising`` or ``EdwardsAnderson``.

    Examples:
        >>> ss.honeycomb(6).sites
        72
    """
    return Lattice(_sides(width, height), periodic, CELLS["honeycomb"])


def lattice_in_time(space: Lattice | None, slices: int) -> Lattice | None:
    """The lattice of space and time, None where space has none or is open."""
    if space is None or not space.periodic:
        return None
    return Lattice((slices, *space.shape), cell=IN_TIME[space.name])


def space_of(lattice: Lattice) -> Lattice:
    name = next(name for name, cell in IN_TIME.items() if cell is lattice.cell)
    return Lattice(lattice.shape[1:], lattice.periodic, CELLS[name])


def wave(side: int) -> npt.NDArray[np.float64]:
    """Cosines and sines of 2 pi x / side for all x, (2, side), the same bits on every machine.

    A rotation in fixed point: NumPy's cosine may differ in the last bit from one processor to another.
    """
    bits = WAVE_BITS + _GUARD_BITS
    one = 1 << bits
    cosine, sine = _of_angle(2 * _PI // side, bits)
    waves = np.empty((2, side))
    c, s = one, 0
    for x in range(side):
        waves[:, x] = [((part >> _GUARD_BITS - 1) + 1 >> 1) / (1 << WAVE_BITS) for part in (c, s)]
        c, s = (c * cosine - s * sine) >> bits, (s * cosine + c * sine) >> bits
    return waves


def _of_angle(angle: int, bits: int) -> tuple[int, int]:
    """Cosine and sine in fixed point by their series; ``angle`` is at most 2 pi."""
    sums, term, k = [0, 0, 0, 0], 1 << bits, 0
    while term:
        sums[k % 4] += term
        k += 1
        term = (term * angle >> bits) // k
    return sums[0] - sums[2], sums[1] - sums[3]
