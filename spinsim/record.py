"""A run as data: named arrays with axes and units, attributes and groups, which files, tables and results show.

Groups nest as those of an HDF5 file do. An array is found by its path, such as ``measurements/energy``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim.errors import InputError

if TYPE_CHECKING:
    import xarray


class Array(NamedTuple):
    """Values with named axes. An array with the name of its only axis holds the coordinates along that axis."""

    values: Any  # a NumPy array, or what reads one piece by piece (``store.segments.Stored``)
    axes: tuple[str, ...] = ()  # one name for each axis of the values
    long_name: str = ""  # for readers
    units: str = "1"  # likewise


class Record:
    """A group: attributes, arrays and further groups, each by name.

    Attributes may be given as a function, which is called when they are first looked at.
    """

    def __init__(
        self,
        attributes: Mapping[str, Any] | Callable[[], Mapping[str, Any]] | None = None,
        arrays: Mapping[str, Array] | None = None,
        groups: Mapping[str, Record] | None = None,
    ) -> None:
        self._attributes = attributes
        self.arrays: dict[str, Array] = dict(arrays or {})
        self.groups: dict[str, Record] = dict(groups or {})

    @property
    def attributes(self) -> dict[str, Any]:
        if not isinstance(self._attributes, dict):
            given = self._attributes
            self._attributes = dict(given() if callable(given) else given or {})
        return self._attributes

    def __getstate__(self) -> tuple[dict[str, Any], dict[str, Array], dict[str, Record]]:
        return self.attributes, self.arrays, self.groups

    def __setstate__(self, state: tuple[dict[str, Any], dict[str, Array], dict[str, Record]]) -> None:
        self._attributes, self.arrays, self.groups = state

    def _holder(self, path: str) -> tuple[Record | None, str]:
        folder, _, name = path.rpartition("/")
        holder: Record | None = self
        for step in folder.split("/") if folder else ():
            holder = None if holder is None else holder.groups.get(step)
        return holder, name

    def __contains__(self, path: str) -> bool:
        holder, name = self._holder(path)
        return holder is not None and (name in holder.arrays or name in holder.groups)

    def __getitem__(self, path: str) -> Any:
        """Values of the array of a path; KeyError where there is none."""
        holder, name = self._holder(path)
        if holder is None:
            raise KeyError(path)
        return holder.arrays[name].values

    def get(self, path: str) -> npt.NDArray[Any] | None:
        holder, name = self._holder(path)
        array = None if holder is None else holder.arrays.get(name)
        return None if array is None else array.values

    def group(self, name: str) -> Record:
        """The group of a name, empty where there is none."""
        return self.groups.get(name) or Record()

    def put(self, path: str, array: Array) -> None:
        """Set the array of a path, whose groups are made where they are missing."""
        folder, _, name = path.rpartition("/")
        holder = self
        for step in folder.split("/") if folder else ():
            holder = holder.groups.setdefault(step, Record())
        holder.arrays[name] = array

    def replaced(self, arrays: Mapping[str, npt.NDArray[Any]]) -> Record:
        """A copy in which the arrays of some paths have other values."""
        copy = self.copy()
        for path, values in arrays.items():
            holder, name = self._holder(path)
            assert holder is not None  # noqa: S101  (what is replaced is there)
            copy.put(path, holder.arrays[name]._replace(values=values))
        return copy

    def copy(self) -> Record:
        """A copy whose groups and attributes may change; arrays are the same."""
        groups = {name: group.copy() for name, group in self.groups.items()}
        attributes = dict(self._attributes) if isinstance(self._attributes, dict) else self._attributes
        return Record(attributes, self.arrays, groups)

    def paths(self, prefix: str = "") -> Iterator[tuple[str, Array]]:
        """Every array of the group and of those within it, with its path."""
        for name, array in self.arrays.items():
            yield prefix + name, array
        for name, group in self.groups.items():
            yield from group.paths(f"{prefix}{name}/")

    @property
    def nbytes(self) -> int:
        return sum(int(array.values.nbytes) for _, array in self.paths())


def as_dataset(group: Record, coordinates: tuple[str, ...], attributes: Mapping[str, Any]) -> xarray.Dataset:
    """The arrays of a group as an xarray dataset; arrays named in ``coordinates`` are coordinates where they exist.

    Raises:
        InputError: where xarray is not installed.
    """
    try:
        import xarray
    except ImportError as error:
        raise InputError("xarray is missing: install spinsim-ising[xarray] to use dataset()") from error
    variables: dict[str, Any] = {}
    for name, array in group.arrays.items():
        values = np.asarray(array.values)
        if values.dtype.kind == "S":  # names, as Python's text
            values = np.array([one.decode() for one in values.tolist()], object)
        variables[name] = array.axes, values, {"long_name": array.long_name, "units": array.units}
    scales = [name for name, array in group.arrays.items() if array.axes == (name,) or name in coordinates]
    return xarray.Dataset(variables, attrs=dict(attributes)).set_coords(scales)
