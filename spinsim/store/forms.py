"""The form of a job's files: what the store must know of them, and the pieces that checks of a form are made of.

Every function here that takes a part of a file raises ``DamageError`` where that part is missing or of another form.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import h5py
import numpy as np
import numpy.typing as npt

from spinsim.errors import InputError
from spinsim.registry import FOLDERS, record_of
from spinsim.store.contents import Contents, Sizes

_FILTERS: Final = {h5py.h5z.FILTER_DEFLATE, h5py.h5z.FILTER_SHUFFLE, h5py.h5z.FILTER_FLETCHER32}
_STORAGE: Final = {h5py.h5d.COMPACT, h5py.h5d.CONTIGUOUS, h5py.h5d.CHUNKED}


class DamageError(InputError):
    """Damage of a file, in words that follow its name."""


def _no_contents(file: h5py.File, sizes: Sizes) -> tuple[Contents, int]:
    raise DamageError("its job is unknown")


@dataclass(frozen=True)
class Form:
    """Properties of a job's files that the store must know.

    Attributes:
        planned: Keys of the job's table of settings that readers use, with the types that their values may have.
        groups: Groups with series and what belongs to them, beside the model, the lowest states and the summary.
        contents: Takes a file and the sizes of its model; returns the contents that the file should have, by its own
            axes, and the replicas of each sample. It raises ``DamageError`` where the axes make no sense.
        has_best: True if every file holds lowest states; else those of a killed run or of older versions may lack them.
        sums: Paths of the datasets that are written again and again instead of growing, by the names under which
            checkpoints hold the same arrays.
        check_numbers: Takes a file and its complete rows; raises ``DamageError`` where its numbers do not fit together.
            It is called by who reads all of a file.
    """

    planned: Mapping[str, tuple[type, ...]] = field(default_factory=dict)
    groups: tuple[str, ...] = ()
    contents: Callable[[h5py.File, Sizes], tuple[Contents, int]] = _no_contents
    has_best: bool = False
    sums: Mapping[str, str] = field(default_factory=dict)
    check_numbers: Callable[[h5py.File, int], object] = lambda file, rows: None


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


def check_dataset(group: h5py.Group, name: str, dtype: npt.DTypeLike, shape: Sequence[int]) -> None:
    """Refuse a dataset of another type or shape."""
    _check_form(plain_of(group, name), dtype, tuple(shape))


def growing_of(group: h5py.Group, name: str, dtype: npt.DTypeLike, shape: Sequence[int]) -> h5py.Dataset:
    """Returns a dataset of any number of rows of this type and shape."""
    dataset = plain_of(group, name)
    _check_form(dataset, dtype, (rows_of(dataset), *shape))
    return dataset


def _check_form(dataset: h5py.Dataset, dtype: npt.DTypeLike, shape: tuple[int, ...]) -> None:
    if dataset.dtype != np.dtype(dtype) or dataset.shape != shape:
        raise DamageError(f"{dataset.name} is {dataset.dtype} {dataset.shape} and not {np.dtype(dtype)} {shape}")


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
    """Returns the text that an attribute holds."""
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
