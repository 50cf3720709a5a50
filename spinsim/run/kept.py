"""What a run without a file keeps, in the place of its file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from spinsim.bits import States
from spinsim.machine.memory import require
from spinsim.store.layout import BEST, Layout, arrays_of_best, rows_at


class Kept:
    """Every row of the series of a run, and what is written again and again: a ``RunFile`` in memory.

    Series of groups that have a row at every so many-th row of the run alone are kept apart.

    Args:
        layout: Of the run.
        rows: How many there will be.
        what: Names them in a refusal.
        mend: Says there how to have fewer.

    Attributes:
        series: All rows of each series, by name.
        sparse: Rows of the series of groups that have fewer, by the group's name and their own.
        sums: What was written again and again, by path.

    Raises:
        InputError: where they do not fit in memory.
    """

    def __init__(self, layout: Layout, rows: int, what: str, mend: str) -> None:
        require(2 * layout.room(rows), f"a record of {rows} {what}", mend)
        self.series: dict[str, npt.NDArray[Any]] = {}
        self.sparse: dict[str, dict[str, npt.NDArray[Any]]] = {name: {} for name in layout.numbers}
        self._every = {name: layout.every(name) for name in layout.numbers}
        for s in layout.series:
            room: npt.NDArray[Any] = np.empty((rows // layout.every(s.group), *layout.shape(s)), s.dtype)
            self.sparse.get(s.group, self.series)[s.name] = room
        self.sums: dict[str, npt.NDArray[Any]] = {}
        self._rows = 0

    def write(self, row: Mapping[str, Any]) -> None:
        """Take in the row of number ``row["step"]``."""
        step = row["step"]
        self._rows = max(self._rows, step + 1)
        for name, series in self.series.items():
            series[step] = row[name]
        for sparse, group in self.sparse.items():
            for own in rows_at(self._every[sparse], [row]):
                for name, series in group.items():
                    series[own["step"]] = own[name]

    def written(self) -> tuple[dict[str, npt.NDArray[Any]], dict[str, dict[str, npt.NDArray[Any]]]]:
        """Returns series, and those of groups that have fewer rows, as far as they were written."""
        sparse = {
            name: {one: values[: self._rows // self._every[name]] for one, values in group.items()}
            for name, group in self.sparse.items()
        }
        return {name: values[: self._rows] for name, values in self.series.items()}, sparse

    def write_again(self, values: Mapping[str, npt.NDArray[Any]]) -> None:
        """Take in datasets of fixed size, by path."""
        self.sums.update(values)

    def write_best(self, energy: npt.NDArray[np.float64], spins: npt.NDArray[np.int8] | States) -> None:
        """Take in the lowest states met so far."""
        self.write_again({f"{BEST}/{name}": array for name, array in arrays_of_best(energy, spins).items()})

    def save(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Nothing: there is no other process that could go on."""
