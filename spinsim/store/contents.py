"""Contents of a file beside its model: series, their axes and units, and the form that a job's files have.

Each job says which (its ``result.py``). Functions that take a part of a file raise ``DamageError`` where that part is
missing or of another form.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Any, Final, NamedTuple

import h5py
import numpy as np
import numpy.typing as npt

from spinsim.bits import States
from spinsim.errors import InputError
from spinsim.model.ising import Ising
from spinsim.observables.table import Observable
from spinsim.registry import FOLDERS, record_of

MEASUREMENTS, SUMMARY_GROUP, BEST, START = "measurements", "summary", "best", "start"
"""Groups of a file that those of several jobs have."""

ENERGY, TEMPERATURE, INVERSE = "coupling unit", "coupling unit / k_B", "1 / coupling unit"
"""Units: those of the couplings as they were given, see docs/reference/conventions.md."""

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

_FILTERS: Final = {h5py.h5z.FILTER_DEFLATE, h5py.h5z.FILTER_SHUFFLE, h5py.h5z.FILTER_FLETCHER32}
_STORAGE: Final = {h5py.h5d.COMPACT, h5py.h5d.CONTIGUOUS, h5py.h5d.CHUNKED}


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


class DamageError(InputError):
    """Damage of a file, in words that follow its name."""


@contextmanager
def damage_of(path: Path) -> Iterator[None]:
    """Name the file in the sentence on any damage."""
    try:
        yield
    except DamageError as error:
        raise InputError(f"{path} is damaged, {error}: take another copy of it") from error


def _no_contents(file: h5py.File, sizes: Sizes) -> tuple[Contents, int]:
    raise DamageError("its job is unknown")


@dataclass(frozen=True)
class Form:
    """Properties of a job's files that the store must know."""

    planned: Mapping[str, tuple[type, ...]] = field(default_factory=dict)
    """Keys of the job's table of settings that readers use, with the types that their values may have."""
    groups: tuple[str, ...] = ()  # with series and what belongs to them, beside model, lowest states and summary
    contents: Callable[[h5py.File, Sizes], tuple[Contents, int]] = _no_contents
    """Takes a file and the sizes of its model; returns the contents that the file should have, by its own axes, and the
    replicas of each sample. It raises ``DamageError`` where the axes make no sense."""
    has_best: bool = False  # every file holds lowest states; else those of killed runs and old versions may lack them
    sums: Mapping[str, str] = field(default_factory=dict)
    """Paths of datasets that are written again and again, by the names that they have in checkpoints."""
    check_numbers: Callable[[h5py.File, int], object] = lambda file, rows: None
    """Takes a file and its complete rows; raises ``DamageError`` where its numbers do not fit together."""


def form_of(file: h5py.File) -> Form:
    """Returns the form of a file's job, which says nothing where the job is unknown."""
    job = file.attrs.get("job")
    form: Form = record_of(job).form if isinstance(job, str) and job in FOLDERS else Form()
    return form


def item_of(group: h5py.Group, name: str) -> Any:
    """Returns what stands under a name, which must be a part of this very file."""
    link = group.get(name, getlink=True)
    if link is None:
        raise DamageError(f"{group.name.rstrip('/')}/{name} is missing")
    if not isinstance(link, h5py.HardLink):
        raise DamageError(f"{group.name.rstrip('/')}/{name} is a link that leads elsewhere")
    return group[name]


def group_of(parent: h5py.Group, name: str) -> h5py.Group:
    group = item_of(parent, name)
    if not isinstance(group, h5py.Group):
        raise DamageError(f"{parent.name.rstrip('/')}/{name} is no group")
    return group


def plain_of(group: h5py.Group, name: str) -> h5py.Dataset:
    """Returns a dataset whose numbers must lie in this file, by means that HDF5 always has."""
    dataset = item_of(group, name)
    if not isinstance(dataset, h5py.Dataset) or dataset.shape is None:
        raise DamageError(f"{group.name}/{name} is no dataset")
    how = dataset.id.get_create_plist()
    filters = {how.get_filter(k)[0] for k in range(how.get_nfilters())}
    if how.get_layout() not in _STORAGE or how.get_external_count() or not filters <= _FILTERS:
        raise DamageError(f"{group.name}/{name} is stored in a way that spinsim never uses")
    return dataset


def dataset_of(group: h5py.Group, name: str, dtype: npt.DTypeLike, shape: Sequence[int | None]) -> h5py.Dataset:
    """Returns a dataset of this type and shape, whose first length is None where it has any number of rows."""
    dataset = plain_of(group, name)
    wanted = tuple(rows_of(dataset) if length is None else length for length in shape)
    if dataset.dtype != np.dtype(dtype) or dataset.shape != wanted:
        raise DamageError(f"{dataset.name} is {dataset.dtype} {dataset.shape} and not {np.dtype(dtype)} {wanted}")
    return dataset


def axis_of(group: h5py.Group, name: str, dtype: npt.DTypeLike | None) -> npt.NDArray[Any]:
    """Returns the values along an axis, which are short texts where no type is given."""
    dataset = plain_of(group, name)
    fits = dataset.dtype.kind == "S" if dtype is None else dataset.dtype == np.dtype(dtype)
    if dataset.ndim != 1 or not fits:
        raise DamageError(f"{group.name}/{name} is no axis")
    if dataset.id.get_storage_size() < dataset.size * dataset.dtype.itemsize and not dataset.chunks:
        raise DamageError(f"{group.name}/{name} has no values")
    return np.asarray(dataset[...])


def length_of(group: h5py.Group, name: str) -> int:
    return len(axis_of(group, name, np.int64))


def rows_of(item: Any) -> int:
    """Returns the length along the first axis, -1 of what has none."""
    return int(item.shape[0]) if isinstance(item, h5py.Dataset) and item.shape else -1


def attribute_of(item: h5py.Group, name: str) -> h5py.h5a.AttrID:
    """Returns the attribute of this name, whose value is not read."""
    if name not in item.attrs:
        raise DamageError(f"the attribute {name} of {item.name} is missing")
    return item.attrs.get_id(name)


def text_of(item: h5py.Group, name: str) -> str:
    attribute = attribute_of(item, name)
    value = item.attrs[name] if h5py.check_string_dtype(attribute.dtype) and attribute.shape == () else None
    if not isinstance(value, str) or any("\ud800" <= c <= "\udfff" for c in value):
        raise DamageError(f"the attribute {name} of {item.name} is no text")
    return value


def check_texts(file: h5py.File) -> None:
    """Refuse a file with a text attribute that is not UTF-8: its copy, the finished file, could not be written."""

    def look(name: str, item: h5py.Group | h5py.Dataset) -> None:
        for key in list(item.attrs):
            if h5py.check_string_dtype(item.attrs.get_id(key).dtype):
                for text in np.ravel(item.attrs[key]).tolist():
                    _check_text(text, f"the attribute {key!r} of /{name}")
        if isinstance(item, h5py.Group):
            for key in list(item):
                _check_text(key, f"the name {key!r} in /{name}")

    look("", file)
    file.visititems(look)


def _check_text(text: str | bytes, subject: str) -> None:
    try:
        _ = text.decode() if isinstance(text, bytes) else text.encode()
    except UnicodeError as error:
        raise DamageError(f"{subject} is no text") from error


def number_of(item: h5py.Group, name: str, kinds: str) -> float:
    """Returns the number that an attribute holds, of one of the NumPy kinds."""
    attribute = attribute_of(item, name)
    if attribute.dtype.kind not in kinds or attribute.shape != ():
        raise DamageError(f"the attribute {name} of {item.name} is no number")
    return float(item.attrs[name])
