"""``spinsim analyze --reweight``: averages, free energy and entropy at temperatures that were not simulated."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING

from spinsim.errors import InputError
from spinsim.inputs.texts import wrapped

if TYPE_CHECKING:
    from spinsim.analysis.reweighted import Reweighting
    from spinsim.analysis.runs import Tempered
    from spinsim.analysis.tables import Columns
    from spinsim.model.ising import Ising


def reweight(result: Tempered, grid: str) -> Reweighting:
    """A run's averages at the temperatures of a grid such as 1.0:1.2:101.

    Raises:
        InputError: for a grid that cannot be read, and as ``reweighted``.
    """
    from spinsim.analysis.reweighted import reweighted
    from spinsim.inputs.grids import read_grid

    return reweighted(result, read_grid("reweight", grid))


def report(model: Ising, found: Reweighting, columns: str | None, every: bool) -> list[str]:
    """The columns asked for, a line each temperature, and what they are worth.

    Raises:
        InputError: for columns that there are not.
    """
    from spinsim.analysis.printed import all_columns, chosen_columns, main_columns, table

    if columns is not None:
        names = chosen_columns(columns, found.estimates)
    elif every:
        names = all_columns(found.estimates)
    else:
        thermal = [name for name in found.estimates if name.startswith(("free_energy", "entropy"))]
        names = [*main_columns(model, found.estimates)[:3], *thermal]
    return table(found, names) + [line for note in found.notes for line in wrapped(note, "Note     ")]


def columns_of(found: Reweighting) -> Columns:
    """Everything, for ``--csv``."""
    from spinsim.analysis.tables import estimate_columns

    columns: Columns = {"temperature": found.temperature, "effective_measurements": found.effective}
    return columns | estimate_columns(found.estimates)


def as_lists(found: Reweighting) -> dict[str, object]:
    """Everything, for ``--json``; what is no number is null."""
    lists: dict[str, object] = {}
    for name, column in columns_of(found).items():
        lists[name] = [value if isfinite(value) else None for value in column.tolist()]
    return lists | {"notes": found.notes}


def check_options(by: str | None) -> None:
    """Refuse what would do nothing.

    Raises:
        InputError: for ``--by``.
    """
    if by:
        raise InputError(
            f"--by {by} says which lines --csv has, and with --reweight these are its temperatures: leave one"
        )
