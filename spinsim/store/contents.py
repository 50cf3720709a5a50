"""The record of a run before it has rows, from which its file is planned: arrays of each job, with their descriptions.

An array whose first axis is ``step`` gets a row for each measurement. Other arrays are rewritten at each checkpoint, or
written once.
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
"""Groups of a file that several jobs share."""
REDUCED: Final = "reduced"  # group of the sums of a run on a ladder, and their name in results
STRIDE: Final = "stride"  # attribute of that group: number of measurements for each row
DISORDER: Final = "pooled/disorder"
"""Array of pooled runs on a ladder with common samples: number of the disorder sample, (samples of all runs,)."""

STEP: Final = "step"  # axis along the rows of a run, the first one of all arrays that have it
BYTE: Final = "byte"  # axis along the bytes of a configuration
BITS: Final = "a bit each: bit b of byte k is site 8 k + b, set where it is +1; bits past the last site are 0"

ENERGY, TEMPERATURE, INVERSE = "coupling unit", "coupling unit / k_B", "1 / coupling unit"
"""Units, in terms of the unit of the given couplings; see docs/reference/conventions.md."""
UNITS_OF_LADDERS: Final = {"temperature": TEMPERATURE, "k": INVERSE, "gamma": ENERGY, "beta": INVERSE}
"""Quantities along which a ladder may run, with their units."""

OF_LATTICE, DRAWN = "those of the lattice, in the order of bond_order", "pm-j"
"""Values of the attributes ``edges`` and ``couplings`` of a model that replace datasets of these names."""
OWN = "its own, on the sites of the lattice"
"""Value of the attribute ``edges`` in addition to a dataset of bonds that differ from those of the lattice."""

EVERY = "every"
"""Attribute of a group that has only every n-th row of the run, with the value n: rows n - 1, 2 n - 1, ..."""
LABELS: Final = "labels"
"""Attribute of a group with names or numbers along some of its axes, as JSON by the names of these axes."""

COORDINATES = ("measurement", "temperature", "field", "gamma", "sweep", "sample", "k", "k_time")
"""Arrays with one number for each row that identify the row: coordinates for xarray."""

Arrays = Mapping[str, npt.NDArray[Any]]  # by name, or by path in a file
BestSpins = npt.NDArray[np.int8] | States  # lowest state of each sample, ``int8`` (samples, sites) or packed


class Series(NamedTuple):
    """Description of an array of a planned run; the lengths of its axes are still unknown."""

    name: str
    axes: tuple[str, ...]  # the first axis is ``step`` if the array has rows
    dtype: type  # type of its numbers
    long_name: str  # description for readers
    units: str = "1"  # unit for readers

    def array(self, lengths: Mapping[str, int]) -> Array:
        """Return the array without rows, or else filled with 0 (NaN for floats), which takes no memory."""
        number: npt.NDArray[Any] = np.asarray(np.nan if self.dtype is np.float64 else 0, self.dtype)
        shape = tuple(0 if axis == STEP else lengths[axis] for axis in self.axes)
        return Array(np.broadcast_to(number, shape), self.axes, self.long_name, self.units)


def group_of(
    series: Iterable[Series],
    lengths: Mapping[str, int],
    arrays: Mapping[str, Array] | None = None,
    attributes: Mapping[str, Any] | None = None,
) -> Record:
    """Return a group with some series, still without rows, and with arrays that have their values already."""
    coming = {one.name: one.array(lengths) for one in series}
    where = [name for name, array in coming.items() if array.axes == (STEP,) and name in COORDINATES]
    coordinates = {"coordinates": " ".join(where)} if where else {}
    return Record({**coordinates, **(attributes or {})}, {**(arrays or {}), **coming})


def has_rows(array: Array) -> bool:
    return array.axes[:1] == (STEP,)


def rows_in(group: Record) -> dict[str, Array]:
    """Return the arrays of a group that have rows."""
    return {name: array for name, array in group.arrays.items() if has_rows(array)}


def is_to_come(array: Array) -> bool:
    """True if an array without rows, from ``Series.array``, has not been written yet."""
    return not has_rows(array) and not any(array.values.strides)


def every_of(group: Record) -> int:
    return int(group.attributes.get(EVERY, 1))


def room_of_group(group: Record, rows: int) -> int:
    """Bytes of a group's arrays for this number of rows of the run."""
    row = sum(
        np.prod(one.values.shape[1:], dtype=np.int64) * one.values.dtype.itemsize for one in rows_in(group).values()
    )
    return int(rows // every_of(group) * row)


def room_of(contents: Record, rows: int) -> int:
    return sum(room_of_group(group, rows) for group in contents.groups.values())


def bytes_of_sums(contents: Record) -> int:
    """Bytes of the arrays that are rewritten at each checkpoint."""
    return sum(one.values.size * one.values.dtype.itemsize for _, one in contents.paths() if is_to_come(one))


def arrays_of_best(energy: npt.NDArray[np.float64], spins: BestSpins) -> dict[str, npt.NDArray[Any]]:
    """Return the lowest states of a run by path, packed for large lattices; energies are NaN if no state was met."""
    states = {f"{BEST}/bits": spins.bits} if isinstance(spins, States) else {f"{BEST}/spins": spins}
    return {f"{BEST}/energy": np.where(np.isfinite(energy), energy, np.nan)} | states


def group_of_best(energy: npt.NDArray[np.float64], spins: BestSpins) -> Record:
    """Return the group of the lowest states before there are any."""
    words = "state of lowest energy met"
    states = Series("spins", ("sample", "site"), np.int8, words)
    if isinstance(spins, States):
        states = Series("bits", ("sample", BYTE), np.uint8, f"{words}, {BITS}")
    *_, one = arrays_of_best(energy, spins).values()
    lengths = dict(zip(("sample", "replica", states.axes[1]), (*energy.shape, one.shape[1]), strict=True))
    return group_of([Series("energy", ("sample", "replica"), np.float64, "lowest energy met", ENERGY), states], lengths)


def summary_series(observables: tuple[Observable, ...], axis: str = "temperature") -> list[Series]:
    """Return the series of /summary: every observable, its error and its autocorrelation time."""
    rows = []
    for o in observables:
        error = f"{o.name}_error", f"standard error of the {o.formula}", o.units
        rows += [(o.name, o.formula, o.units), error, (f"{o.name}_tau", "autocorrelation time", "sweeps")]
    return [Series(name, (axis,), np.float64, words, units) for name, words, units in rows]
