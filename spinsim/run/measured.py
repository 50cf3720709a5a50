"""What runs on a ladder measure: a record for each quantity, from which rows, series of files and results follow."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim.sampling import TemperFrame
from spinsim.store.layout import Series, Sizes


class Measured(NamedTuple):
    """A quantity of every copy, or pair of copies, at every place of a ladder.

    Attributes:
        name: Of its series in files and of the attribute of results.
        of: Finds it in a measurement.
        words: Its formula in words.
        per: ``copy`` or ``copy_pair``, the axis between samples and places.
        counts: ``sites`` or ``bonds`` where it is a number of these at most, for integers as wide as these need; else a
            type.
        axis: Its last axis, behind the places, if it has one.
        unit: Of its values.
        when: Which of the conditions of a run must hold for it to be measured, if any.
    """

    name: str
    of: Callable[[TemperFrame], npt.NDArray[Any]]
    words: str
    per: str = "copy"
    counts: str | type = "sites"
    axis: str = ""
    unit: str = ""
    when: str = ""


def series_of(table: Sequence[Measured], sizes: Sizes, place: str, holds: Container[str]) -> tuple[Series, ...]:
    """The series of a file, step and sweep first.

    Args:
        table: Of the job.
        sizes: Of the model.
        place: Name of the axis of the ladder.
        holds: Conditions that hold.
    """
    found = [
        Series("step", (), np.int64, "measurement"),
        Series("sweep", (), np.int64, "sweeps done since thermalisation"),
    ]
    for one in table:
        if not one.when or one.when in holds:
            kind = one.counts
            if isinstance(kind, str):
                kind = np.int32 if getattr(sizes, kind) < 2**31 else np.int64
            axes = ("sample", one.per, place, *filter(None, [one.axis]))
            found.append(Series(one.name, axes, kind, one.words, *filter(None, [one.unit])))
    return tuple(found)


def row_of(table: Sequence[Measured]) -> Callable[[TemperFrame], dict[str, Any]]:
    """Returns what makes a measurement a row of the file."""

    def row(frame: TemperFrame) -> dict[str, Any]:
        always = {"step": frame.step, "sweep": frame.sweep, "permutation": frame.holder}
        return always | {one.name: one.of(frame) for one in table}

    return row


def in_result(
    table: Sequence[Measured], found: Mapping[str, Any], rows: int, shape: tuple[int, int, int]
) -> dict[str, npt.NDArray[Any]]:
    """The first rows of all quantities, those that were not measured without pairs, copies or the last axis.

    Args:
        table: Of the job.
        found: Series that there are.
        rows: How many.
        shape: Samples, copies, places.
    """
    samples, copies, places = shape
    between = {"copy": copies, "copy_pair": copies * (copies - 1) // 2}
    series = {}
    for one in table:
        if one.name in found:
            series[one.name] = found[one.name][:rows]
        elif one.axis:
            kind = np.int64 if isinstance(one.counts, str) else one.counts
            series[one.name] = np.empty((rows, samples, between[one.per], places, 0), kind)
        else:
            series[one.name] = np.empty((rows, samples, 0, places), np.int64)
    return series
