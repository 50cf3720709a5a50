"""What a run without a file keeps, in the place of its file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from spinsim.machine.memory import require
from spinsim.store.layout import Layout


class Kept:
    """Every row of the series of a run, and what is written again and again: a ``RunFile`` in memory.

    Args:
        layout: Of the run.
        rows: How many there will be.
        what: Names them in a refusal.
        mend: Says there how to have fewer.

    Attributes:
        series: All rows of each series, by name.
        sums: What was written again and again, by path.

    Raises:
        InputError: where they do not fit in memory.
    """

    def __init__(self, layout: Layout, rows: int, what: str, mend: str) -> None:
        require(2 * rows * layout.row_bytes, f"a record of {rows} {what}", mend)
        self.series: dict[str, npt.NDArray[Any]] = {
            s.name: np.empty((rows, *layout.shape(s)), s.dtype) for s in layout.series
        }
        self.sums: dict[str, npt.NDArray[Any]] = {}

    def write(self, row: Mapping[str, Any]) -> None:
        """Take in the row of number ``row["step"]``."""
        for name, series in self.series.items():
            series[row["step"]] = row[name]

    def write_again(self, values: Mapping[str, npt.NDArray[Any]]) -> None:
        """Take in datasets of fixed size, by path."""
        self.sums.update(values)

    def write_best(self, energy: npt.NDArray[np.float64], spins: npt.NDArray[np.int8]) -> None:
        """Take in the lowest states met so far."""
        self.write_again({"best/energy": energy, "best/spins": spins})

    def save(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Nothing: there is no other process that could go on."""
