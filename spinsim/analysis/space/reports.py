"""Reports and columns of analyses that have estimates at each temperature."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from spinsim.analysis.jackknife import Jackknife
from spinsim.analysis.runs import Array
from spinsim.analysis.tables import Report, Row, in_columns, unprinted


def report_by_temperature(
    title: str, temperature: Array, columns: Mapping[str, Jackknife], numbers: Mapping[str, Any], notes: Sequence[str]
) -> Report:
    """Return a report with a table of columns (temperatures,) and, for ``--json``, further numbers."""
    printed = [Row("T", temperature), *(Row(label, one.value, one.error) for label, one in columns.items())]
    rows: list[Row | str] = [title, *in_columns(row.cells for row in printed)]
    rows += [Row("Note", note=note) for note in notes]
    return Report([*rows, *unprinted({"temperature": temperature, **numbers})])


def flat(estimates: Mapping[str, Jackknife]) -> dict[str, Array]:
    """Return values and errors as arrays, by name and ``<name>_error``."""
    pairs = ({name: one.value, f"{name}_error": one.error} for name, one in estimates.items())
    return {name: array for pair in pairs for name, array in pair.items()}


def at(one: Jackknife, k: int) -> Jackknife:
    """Return an estimate (temperatures, ...) at one index of its second axis."""
    return Jackknife(one.value[:, k], one.error[:, k], one.bias[:, k])


def over(one: Jackknife, scale: float) -> Jackknife:
    return replace(one, value=one.value / scale, error=one.error / scale, bias=one.bias / scale)
