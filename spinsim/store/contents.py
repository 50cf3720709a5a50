"""The record of a run before it has rows, by which its file is planned: the arrays that each job has, and their words.

An array whose first axis is ``step`` gets a row for each measurement. Others are written again and again, or once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim.observables.table import Observable
from spinsim.packing import States
from spinsim.record import Array, Record

MEASUREMENTS, SUMMARY_GROUP, BEST, START = "measurements", "summary", "best", "start"
"""Groups of a file that those of several jobs have."""
REDUCED: Final = "reduced"  # the group of the sums of a run on a ladder, and what results call them
STRIDE: Final = "stride"  # the attribute of that group that says how many measurements there are for each row
DISORDER: Final = "pooled/disorder"
"""Array of pooled runs on a ladder of which some are of one sample: number of the sample, (samples of all runs,)."""

STEP: Final = "step"  # the axis along the rows of a run, the first of all arrays that have it
BYTE: Final = "byte"  # the axis along the bytes of a configuration
BITS: Final = "a bit each: bit b of byte k is site 8 k + b, set where it is +1; bits past the last site are 0"

ENERGY, TEMPERATURE, INVERSE = "coupling unit", "coupling unit / k_B", "1 / coupling unit"
"""Units: those of the couplings as they were given, see docs/reference/conventions.md."""
UNITS_OF_LADDERS: Final = {"temperature": TEMPERATURE, "k": INVERSE, "gamma": ENERGY, "beta": INVERSE}
"""Quantities along which a ladder may go."""

OF_LATTICE, DRAWN = "those of the lattice, in the order of bond_order", "pm-j"
"""Values of the attributes ``edges`` and ``couplings`` of a model that stand for datasets of these names."""
OWN = "its own, on the sites of the lattice"
"""Value of the attribute ``edges`` beside a dataset of bonds that are not those of the model's lattice."""

EVERY = "every"
"""The attribute of a group that has rows at every so many-th row of the run alone: rows every - 1, 2 every - 1, ..."""
LABELS: Final = "labels"
"""The attribute of a group that has, as JSON, names or numbers along some of its axes by the names of these axes."""

COORDINATES = ("measurement", "temperature", "field", "gamma", "sweep", "sample", "k", "k_time")
"""Arrays with a number for each row that say where the row stands: coordinates for xarray."""

Arrays = Mapping[str, npt.NDArray[Any]]  # by their names, or by their paths in a file
BestSpins = npt.NDArray[np.int8] | States  # the lowest state of each sample, ``int8`` (samples, sites) or in bits


class Series(NamedTuple):
    """An array of a run to come, of which the lengths of axes are not known yet."""

    name: str
    axes: tuple[str, ...]  # the first is ``step`` where it has rows
    dtype: type  # type of its numbers
    long_name: str  # for readers
    units: str = "1"  # likewise

    def array(self, lengths: Mapping[str, int]) -> Array:
        """Return it without rows, or with one number everywhere, which takes no room: 0, or NaN of floats."""
        number: npt.NDArray[Any] = np.asarray(np.nan if self.dtype is np.float64 else 0, self.dtype)
        shape = tuple(0 if axis == STEP else lengths[axis] for axis in self.axes)
        return Array(np.broadcast_to(number, shape), self.axes, self.long_name, self.units)


def group_of(
    series: Iterable[Series],
    lengths: Mapping[str, int],
    arrays: Mapping[str, Array] | None = None,
    attributes: Mapping[str, Any] | None = None,
) -> Record:
    """Return a group without rows of some series, and of arrays that have their values already."""
    coming = {one.name: one.array(lengths) for one in series}
    where = [name for name, array in coming.items() if array.axes == (STEP,) and name in COORDINATES]
    coordinates = {"coordinates": " ".join(where)} if where else {}
    return Record({**coordinates, **(attributes or {})}, {**(arrays or {}), **coming})


def has_rows(array: Array) -> bool:
    return array.axes[:1] == (STEP,)


def rows_in(group: Record) -> dict[str, Array]:
    """The arrays of a group that have rows."""
    return {name: array for name, array in group.arrays.items() if has_rows(array)}


def is_to_come(array: Array) -> bool:
    """True if an array of ``Series.array`` that has no rows was not written yet."""
    return not has_rows(array) and not any(array.values.strides)


def every_of(group: Record) -> int:
    return int(group.attributes.get(EVERY, 1))


def room_of_group(group: Record, rows: int) -> int:
    """Bytes of a group's arrays after so many rows of the run."""
    row = sum(
        np.prod(one.values.shape[1:], dtype=np.int64) * one.values.dtype.itemsize for one in rows_in(group).values()
    )
    return int(rows // every_of(group) * row)


def room_of(contents: Record, rows: int) -> int:
    return sum(room_of_group(group, rows) for group in contents.groups.values())


def bytes_of_sums(contents: Record) -> int:
    """Bytes of the arrays that are written again and again."""
    return sum(one.values.size * one.values.dtype.itemsize for _, one in contents.paths() if is_to_come(one))


def arrays_of_best(energy: npt.NDArray[np.float64], spins: BestSpins) -> dict[str, npt.NDArray[Any]]:
    """The lowest states of a run by path, those of large lattices as bits; energies are NaN where none was met."""
    states = {f"{BEST}/bits": spins.bits} if isinstance(spins, States) else {f"{BEST}/spins": spins}
    return {f"{BEST}/energy": np.where(np.isfinite(energy), energy, np.nan)} | states


def group_of_best(energy: npt.NDArray[np.float64], spins: BestSpins) -> Record:
    """The group of these before there are any."""
    words = "state of lowest energy met"
    states = Series("spins", ("sample", "site"), np.int8, words)
    if isinstance(spins, States):
        states = Series("bits", ("sample", BYTE), np.uint8, f"{words}, {BITS}")
    *_, one = arrays_of_best(energy, spins).values()
    lengths = dict(zip(("sample", "replica", states.axes[1]), (*energy.shape, one.shape[1]), strict=True))
    return group_of([Series("energy", ("sample", "replica"), np.float64, "lowest energy met", ENERGY), states], lengths)


def summary_series(observables: tuple[Observable, ...], axis: str = "temperature") -> list[Series]:
    """Every observable, its error and its autocorrelation time, as /summary has them."""
    rows = []
    for o in observables:
        error = f"{o.name}_error", f"standard error of the {o.formula}", o.units
        rows += [(o.name, o.formula, o.units), error, (f"{o.name}_tau", "autocorrelation time", "sweeps")]
    return [Series(name, (axis,), np.float64, words, units) for name, words, units in rows]
