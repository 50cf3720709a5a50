"""Records with some of the samples of a run, which has its first SHA-256 in a root attribute."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

import numpy as np
import numpy.typing as npt

from spinsim.record import Record
from spinsim.store.segments import LISTED

ORIGIN: Final = "config_sha256_of_all"  # root attribute with the first ``config_sha256`` of the run of all samples
_SAMPLE: Final = "sample"


def origin_of(attributes: Mapping[str, str]) -> str:
    """Return the first ``config_sha256`` of a run, or of the run of all samples of which it has some."""
    first = [entry["config_sha256"] for entry in json.loads(attributes.get("history", "[]"))[:1]]
    return attributes.get(ORIGIN) or (first or [attributes.get("config_sha256", "")])[0]


def with_numbers(record: Record, numbers: npt.NDArray[np.int64]) -> Record:
    """Return a record with some of the samples in all its measurements; its model and checkpoint stay as they are."""
    own = record.copy()
    for path, axis in axes_of_samples(record).items():
        group, _, name = path.rpartition("/")
        array = record.group(group).arrays[name]
        if name == _SAMPLE:  # the numbers along the axis
            own.put(path, array._replace(values=np.arange(len(numbers))))
        elif array.values.shape[axis] > 1:  # initial configurations may be the same for all samples
            own.put(path, array._replace(values=np.asarray(array.values).take(numbers, axis)))
    for group_ in own.groups.values():
        group_.attributes.pop(LISTED, None)  # segments of the other file
    return own


def axes_of_samples(record: Record) -> dict[str, int]:
    """Axis of the samples in each array of measurements, by path."""
    return {
        path: array.axes.index(_SAMPLE)
        for path, array in record.paths()
        if _SAMPLE in array.axes and path.partition("/")[0] not in ("model", "checkpoint")
    }
