"""Measurements of equal energy added up: as much as reweighting needs of a run, in less memory than its series take.

A weight depends on the energy alone. Energies of integer couplings take some thousand values, so that millions of
measurements become some ten thousand cells; of other couplings a cell is a measurement.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim.machine.memory import require

Array = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_ROWS: Final = 2**19
"""Measurements that are added up at a time."""
_MOST_LEVELS: Final = 2**22
"""Whole numbers between the lowest and the highest energy up to which each has a place of its own."""
_WORK: Final = 4
"""Copies of the sums that are made while they are added up, and while a stretch of time is left out."""


@dataclass(frozen=True)
class Cells:
    """Sums over the measurements of one energy and one chain.

    Attributes:
        energy: Total, (cells,).
        chain: Copy or, where sums are over all chains, 0, likewise.
        names: Of the numbers that are added up.
        sums: Row 0 counts measurements, then a row for each number, (1 + names, cells).
        stretches: The same of each stretch of time alone: which cells it has, and its sums (1 + names, its cells).
    """

    energy: Array
    chain: Integers
    names: tuple[str, ...]
    sums: Array
    stretches: tuple[tuple[Integers, Array], ...]

    @property
    def count(self) -> Array:
        """Measurements, (cells,)."""
        return np.asarray(self.sums[0])

    def of(self, name: str) -> Array:
        """Returns the sums of a number, (cells,)."""
        return np.asarray(self.sums[1 + self.names.index(name)])

    def without(self, stretch: int) -> Cells:
        """Leave a stretch of time out."""
        cells, sums = self.stretches[stretch]
        rest = self.sums.copy()
        rest[:, cells] -= sums
        return replace(self, sums=rest)


class _Piece(NamedTuple):
    """Sums over some of the chains, for each stretch of time: arrays (cells,), and sums (1 + names, cells)."""

    energy: Array
    stretch: Integers
    chain: Integers
    sums: Array


def add_up(
    energy: Callable[[slice], Array],
    values: Callable[[slice], dict[str, Array]],
    shape: tuple[int, int, int],
    stretch: Integers,
    by_chain: bool,
) -> Cells:
    """Add up the measurements of chains, some of them at a time.

    Args:
        energy: Returns the total energies of some chains, (steps, chains, temperatures).
        values: Returns the numbers of some chains by name, likewise.
        shape: Steps, chains and temperatures.
        stretch: Of time to which each step belongs, -1 where it belongs to none, (steps,).
        by_chain: Whether chains have cells of their own.

    Raises:
        InputError: where they do not fit in memory.
    """
    steps, chains, temperatures = shape
    at_once = max(1, _ROWS // (steps * temperatures))
    pieces: list[_Piece] = []
    names: tuple[str, ...] = ()
    for first in range(0, chains, at_once):
        chosen = slice(first, min(first + at_once, chains))
        group = (stretch + 1)[:, None] * chains + (np.arange(chains)[chosen] if by_chain else 0)
        numbers = values(chosen)
        names = tuple(numbers)
        pieces.append(_piece(energy(chosen), list(numbers.values()), group, chains))
        if not first:
            needed = 8.0 * _WORK * pieces[0].sums.size * -(-chains // at_once)
            require(needed, "reweighting", "choose fewer --replicas, or measure less often")
    return _joined(_Piece(*(np.concatenate(parts, axis=-1) for parts in zip(*pieces, strict=True))), names)


def _piece(energy: Array, numbers: list[Array], group: Integers, chains: int) -> _Piece:
    """Add up measurements (steps, chains, temperatures), whose stretch and chain ``group`` (steps, chains) counts."""
    lowest, highest = float(energy.min()), float(energy.max())
    if highest - lowest < _MOST_LEVELS and (energy == np.rint(energy)).all():  # sorting takes ten times as long
        levels, level = np.arange(lowest, highest + 1), (energy - lowest).astype(np.int64)
    else:
        levels, level = np.unique(energy, return_inverse=True)
    key = (group[..., None] * len(levels) + level.reshape(energy.shape)).ravel()
    there = np.zeros((int(group.max()) + 1) * len(levels), np.bool_)
    there[key] = True
    cells = np.flatnonzero(there)
    place = (np.cumsum(there) - 1)[key]
    groups = cells // len(levels)
    sums = [np.bincount(place, minlength=len(cells)), *(np.bincount(place, n.ravel(), len(cells)) for n in numbers)]
    return _Piece(levels[cells % len(levels)], groups // chains - 1, groups % chains, np.array(sums, np.float64))


def _joined(piece: _Piece, names: tuple[str, ...]) -> Cells:
    """Add up stretches of time, and keep each."""
    levels, level = np.unique(piece.energy, return_inverse=True)
    cells, place = np.unique(piece.chain * len(levels) + level, return_inverse=True)
    order = np.argsort(piece.stretch, kind="stable")
    ends = np.cumsum(np.bincount(piece.stretch + 1))
    stretches = [_distinct(place[chosen], piece.sums[:, chosen]) for chosen in np.split(order, ends[:-1])[1:]]
    whole = np.array([np.bincount(place, row, len(cells)) for row in piece.sums])
    return Cells(levels[cells % len(levels)], cells // len(levels), names, whole, tuple(stretches))


def _distinct(place: Integers, sums: Array) -> tuple[Integers, Array]:
    """Add up what pieces have at one place."""
    cells, own = np.unique(place, return_inverse=True)
    return cells, np.array([np.bincount(own, row, len(cells)) for row in sums])
