"""Results of analyses: estimates at each temperature, their report and the curves of their figure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy.typing as npt

from spinsim.analysis.jackknife import Jackknife
from spinsim.analysis.tables import Report, Row, in_columns, unprinted


class Panel(NamedTuple):
    """Curves of a panel of the figure."""

    x: npt.NDArray[Any]  # (points,)
    curves: Jackknife  # (curves, points)
    axes: tuple[str, str]  # labels of x and y
    labels: tuple[str, ...] = ()  # of the curves, by default their temperatures


@dataclass(frozen=True)
class Estimates:
    """Estimates by name, as ``found["ratio"].value`` and ``.error``.

    Attributes:
        words: Subject of the analysis.
        arrays: Temperatures, abscissae and other arrays without errors, by name.
        estimates: Values, jackknife errors and biases of arrays, by name.
        printed: Columns of the report, (temperatures,) each, by their heads.
        panels: Curves of the figure.
    """

    words: str
    arrays: Mapping[str, npt.NDArray[Any]]
    estimates: Mapping[str, Jackknife]
    printed: Mapping[str, Jackknife]
    panels: list[Panel]

    def __getitem__(self, name: str) -> Jackknife:
        return self.estimates[name]

    def report(self, name: str) -> Report:
        """Return a table of the printed columns and, for ``--json``, all arrays."""
        columns = [Row("T", self.arrays["temperature"]), *(Row(k, e.value, e.error) for k, e in self.printed.items())]
        numbers: dict[str, object] = {"file": name, **self.arrays}
        for key, one in self.estimates.items():
            numbers |= {key: one.value, f"{key}_error": one.error}
        return Report([f"{name}: {self.words}", *in_columns(one.cells for one in columns), *unprinted(numbers)])
