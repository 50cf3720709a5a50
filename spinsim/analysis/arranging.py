"""The order of a table's columns, and their units."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from spinsim.observables.table import TABLE
from spinsim.store.layout import ENERGY, TEMPERATURE

if TYPE_CHECKING:
    import pandas as pd

_MAIN: Final = (
    "energy_per_site",
    "specific_heat",
    "binder_cumulant",
    "correlation_length_over_L",
    "overlap_binder_cumulant",
    "overlap_correlation_length_over_L",
)
"""Observables that lead, with their errors: a dozen columns."""
_LAST: Final = ("_tau", "_trusted", "_verdict")
_OBSERVABLES: Final = {one.name: one.units for one in TABLE}
_UNITS: Final = _OBSERVABLES | {
    "temperature": TEMPERATURE,
    "field": ENERGY,
    "gamma": ENERGY,
    "beta": "1 / coupling unit",
    "k": "1 / coupling unit",
    "lowest_energy_per_site": ENERGY,
    "mean_slice_energy_per_site": ENERGY,
    "first_sweep": "sweeps",
    "last_sweep": "sweeps",
}


def in_order(names: list[str]) -> list[str]:
    """Return the names of columns in the order of ``arranged``."""
    first = next((place for place, name in enumerate(names) if name in _OBSERVABLES), len(names))
    front, rest = names[:first], names[first:]
    main = [name for one in _MAIN for name in (one, f"{one}_error") if name in rest]
    last = [name for ending in _LAST for name in rest if name.endswith(ending)]
    return [*front, *main, *(name for name in rest if name not in {*main, *last}), *last]


def arranged(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table that begins with the observables that matter most and ends with autocorrelation times.

    Columns in front of the first observable, such as the temperature, stay there. ``frame.attrs["units"]`` has the unit
    of each column by name, 1 for pure numbers.
    """
    found = frame[in_order(list(frame.columns))]
    found.attrs["units"] = {name: _unit(name) for name in found.columns}
    return found


def _unit(name: str) -> str:
    if name.endswith("_tau"):
        return "sweeps"
    return _UNITS.get(name.removesuffix("_error"), "1")
