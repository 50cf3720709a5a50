"""Contents of a record beside its model: series with their axes and units, and what is written once or again and again.

Each job says which (its ``result.py``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim.model.ising import Ising
from spinsim.observables.table import Observable
from spinsim.packing import States

MEASUREMENTS, SUMMARY_GROUP, BEST, START = "measurements", "summary", "best", "start"
"""Groups of a file that those of several jobs have."""
REDUCED: Final = "reduced"  # the group of the sums of a run on a ladder, and what results call them
STRIDE: Final = "stride"  # the attribute of that group that says how many measurements there are for each row
DISORDER: Final = "pooled/disorder"
"""Array of pooled runs on a ladder of which some are of one sample: number of the sample, (samples of all runs,)."""

ENERGY, TEMPERATURE, INVERSE = "coupling unit", "coupling unit / k_B", "1 / coupling unit"
"""Units: those of the couplings as they were given, see docs/reference/conventions.md."""
UNITS_OF_LADDERS: Final = {"temperature": TEMPERATURE, "k": INVERSE, "gamma": ENERGY, "beta": INVERSE}
"""Quantities along which a ladder may go."""

OF_LATTICE, DRAWN = "those of the lattice, in the order of bond_order", "pm-j"
"""Values of the attributes ``edges`` and ``couplings`` of a model that stand for datasets of these names."""
OWN = "its own, on the sites of the lattice"
"""Value of the attribute ``edges`` beside a dataset of bonds that are not those of the model's lattice."""

BYTE: Final = "byte"  # the axis along the bytes of a configuration
BITS: Final = "a bit each: bit b of byte k is site 8 k + b, set where it is +1; bits past the last site are 0"

EVERY = "every"
"""The attribute of a group that has rows at every so many-th row of the run alone: rows every - 1, 2 every - 1, ..."""

COORDINATES = ("measurement", "temperature", "field", "gamma", "sweep", "sample", "k", "k_time")
"""Series that say where a row stands: coordinates for xarray."""

Arrays = Mapping[str, npt.NDArray[Any]]  # by their names, or by their paths in a file
BestSpins = npt.NDArray[np.int8] | States  # the lowest state of each sample, ``int8`` (samples, sites) or in bits


class Series(NamedTuple):
    """A dataset with a row for each measurement."""

    name: str  # name of the dataset
    axes: tuple[str, ...]  # axes of a row
    dtype: type  # type of its numbers
    long_name: str  # for readers
    units: str = "1"  # likewise
    group: str = MEASUREMENTS  # where it stands

    @property
    def path(self) -> str:
        return f"{self.group}/{self.name}"


class Sizes(NamedTuple):
    """Size of a model."""

    samples: int  # samples of disorder
    sites: int  # sites of the graph
    bonds: int  # likewise
    dimension: int  # dimension of the lattice, 0 where there is none

    @classmethod
    def of(cls, model: Ising) -> Sizes:
        return cls(model.samples, model.sites, model.bonds, model.embedding.dimension if model.embedding else 0)


@dataclass(frozen=True)
class Contents:
    """Contents of the file of a run beside its model."""

    scales: Mapping[str, npt.NDArray[np.generic]]  # values along each axis
    units: Mapping[str, str]  # units of axes that have some
    series: tuple[Series, ...]  # growing datasets; each group's first one is ``step``
    sums: tuple[Series, ...] = ()  # datasets that are written again and again
    given: tuple[tuple[Series, npt.NDArray[np.float64]], ...] = ()  # datasets that are written once, with their values
    start: npt.NDArray[np.int8] | None = None
    """Initial configurations where they were given, ``int8`` (1 or samples, 1 or replicas, sites)."""
    numbered: frozenset[str] = frozenset()  # axes that are numbered from 0, without coordinates in the record
    numbers: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Whole numbers that groups say of themselves as attributes, by group and name. The number ``every`` of a group
    means that its series have a row at every so many-th row of the run alone."""

    @property
    def groups(self) -> list[str]:
        return list(dict.fromkeys(s.group for s in self._all))

    def shape(self, series: Series) -> tuple[int, ...]:
        return tuple(len(self.scales[axis]) for axis in series.axes)

    def every(self, group: str) -> int:
        return self.numbers.get(group, {}).get(EVERY, 1)

    def room(self, rows: int) -> int:
        return sum(rows // self.every(s.group) * prod(self.shape(s)) * np.dtype(s.dtype).itemsize for s in self.series)

    @property
    def sums_bytes(self) -> int:
        return sum(prod(self.shape(s)) * np.dtype(s.dtype).itemsize for s in self.sums)

    def axes(self, group: str) -> list[str]:
        return list(dict.fromkeys(axis for s in self._all if s.group == group for axis in s.axes))

    def coordinates(self, group: str) -> list[str]:
        return [s.name for s in self.series if s.group == group and s.name in COORDINATES]

    @property
    def _all(self) -> tuple[Series, ...]:
        return *self.series, *self.sums, *(series for series, _ in self.given)


def arrays_of_best(energy: npt.NDArray[np.float64], spins: BestSpins, prefix: str) -> dict[str, npt.NDArray[Any]]:
    """The lowest states of a run as files hold them, those of large lattices as bits; their names have a prefix."""
    states = {"bits": spins.bits} if isinstance(spins, States) else {"spins": spins}
    return {f"{prefix}{name}": array for name, array in ({"energy": energy} | states).items()}


def rows_at(every: int, rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Returns the rows that a group of this ``every`` has, numbered by ``step`` as they are there."""
    if every == 1:
        return list(rows)
    return [{**row, "step": row["step"] // every} for row in rows if (row["step"] + 1) % every == 0]


def summary_series(observables: tuple[Observable, ...], axis: str = "temperature") -> list[Series]:
    """Room for every observable, its error and its autocorrelation time: NaN until the run is analysed."""
    rows = []
    for o in observables:
        error = f"{o.name}_error", f"standard error of the {o.formula}", o.units
        rows += [(o.name, o.formula, o.units), error, (f"{o.name}_tau", "autocorrelation time", "sweeps")]
    return [Series(name, (axis,), np.float64, words, units, SUMMARY_GROUP) for name, words, units in rows]
