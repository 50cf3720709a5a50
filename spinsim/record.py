"""A run as data: named arrays with axes and units, attributes, and nested groups of these.

Files, results, tables and figures are views of a record. Groups nest as in an HDF5 file. An array is found by its path,
such as ``measurements/energy``.
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
    """Values with named axes. An array with one axis and the same name holds the coordinates along that axis."""

    values: Any  # a NumPy array, or an object that reads one piece by piece (``store.segments.Stored``)
    axes: tuple[str, ...] = ()  # one name for each axis of the values
    long_name: str = ""  # description for readers
    units: str = "1"  # unit for readers


class Record:
    """A group: attributes, arrays and further groups, each by name.

    Attributes may be given as a function, which is called at the first access.
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

    def __repr__(self) -> str:
        names = ", ".join([*self.arrays, *(f"{name}/" for name in self.groups)])
        return f"Record({names})"

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
        """Values of the array at a path; KeyError if there is none."""
        holder, name = self._holder(path)
        if holder is None:
            raise KeyError(path)
        return holder.arrays[name].values

    def get(self, path: str) -> npt.NDArray[Any] | None:
        holder, name = self._holder(path)
        array = None if holder is None else holder.arrays.get(name)
        return None if array is None else array.values

    def group(self, name: str) -> Record:
        """The group of this name, or an empty group if there is none."""
        return self.groups.get(name) or Record()

    def put(self, path: str, array: Array) -> None:
        """Set the array at a path, and create missing groups."""
        folder, _, name = path.rpartition("/")
        holder = self
        for step in folder.split("/") if folder else ():
            holder = holder.groups.setdefault(step, Record())
        holder.arrays[name] = array

    def replaced(self, arrays: Mapping[str, npt.NDArray[Any]]) -> Record:
        """Return a copy in which the arrays at the given paths have other values."""
        copy = self.copy()
        for path, values in arrays.items():
            holder, name = self._holder(path)
            assert holder is not None  # noqa: S101  (only existing arrays are replaced)
            copy.put(path, holder.arrays[name]._replace(values=values))
        return copy

    def copy(self) -> Record:
        """Return a copy with its own groups and attributes; arrays are shared."""
        groups = {name: group.copy() for name, group in self.groups.items()}
        attributes = dict(self._attributes) if isinstance(self._attributes, dict) else self._attributes
        return Record(attributes, self.arrays, groups)

    def paths(self, prefix: str = "") -> Iterator[tuple[str, Array]]:
        """Iterate over every array of the group and of its subgroups, with its path."""
        for name, array in self.arrays.items():
            yield prefix + name, array
        for name, group in self.groups.items():
            yield from group.paths(f"{prefix}{name}/")

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays; an array that repeats a single number takes none."""
        return sum(int(one.values.nbytes) for _, one in self.paths() if any(getattr(one.values, "strides", (1,))))


def as_dataset(group: Record) -> xarray.Dataset:
    """Return the arrays of a group as an xarray dataset; the attribute ``coordinates`` names the coordinates of rows.

    Raises:
        InputError: if xarray is not installed.
    """
    try:
        import xarray
    except ImportError as error:
        raise InputError("xarray is missing: install spinsim-ising[xarray] to use dataset()") from error
    variables: dict[str, Any] = {}
    for name, array in group.arrays.items():
        values = np.asarray(array.values)
        if values.dtype.kind == "S":  # names become Python strings
            values = np.array([one.decode() for one in values.tolist()], object)
        variables[name] = array.axes, values, {"long_name": array.long_name, "units": array.units}
    attributes = dict(group.attributes)
    coordinates = str(attributes.pop("coordinates", "")).split()
    coordinates += [name for name, array in group.arrays.items() if array.axes == (name,)]
    return xarray.Dataset(variables, attrs=attributes).set_coords(coordinates)
