"""A run as a table with a row for each temperature: columns, a pandas frame, a CSV file."""

from __future__ import annotations

import csv
import io
import os
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from spinsim.analysis.summary import Summary, summarize
from spinsim.analysis.thermodynamics import thermodynamics
from spinsim.errors import InputError
from spinsim.outputs import write_outputs
from spinsim.result import AnnealResult, TemperResult, load

if TYPE_CHECKING:
    import pandas as pd

Columns = dict[str, npt.NDArray[np.generic]]


def table(run: AnnealResult | TemperResult | str | os.PathLike[str]) -> pd.DataFrame:
    """Averages of a run as a pandas table, a row for each temperature.

    Columns are ``temperature`` and, for each observable of ``layout.SUMMARY``, its value, ``<name>_error``, and of a
    tempering run ``<name>_tau`` in sweeps and ``<name>_trusted``: where that is False the error is NaN. Of an annealing
    run, whose steps are the rows, there are ``energy_per_site``, ``specific_heat`` and ``abs_magnetization``, and
    ``specific_heat_trusted``: whether it agrees with the slope of the energy. Where it does not it is NaN.

    Args:
        run: A result, or a file that spinsim wrote.

    Raises:
        InputError: where pandas is not installed, as ``load``, and for too few measurements.
    """
    try:
        import pandas as pd
    except ImportError as error:
        raise InputError("pandas is missing: install spinsim[xarray] to use table()") from error
    result = run if isinstance(run, AnnealResult | TemperResult) else load(run)
    if isinstance(result, AnnealResult):
        frame = pd.DataFrame(_annealing_columns(result))
    elif not isinstance(result, TemperResult):
        raise InputError(f"{run} holds a {result.attributes['job']} run: its own dataset().to_dataframe() is its table")
    else:
        frame = pd.DataFrame(summary_columns(summarize(result)))
    return frame


def summary_columns(summary: Summary) -> Columns:
    """Columns of a tempering run, as ``table`` has them."""
    columns: Columns = {"temperature": summary.temperature}
    for name, found in summary.estimates.items():
        columns |= {
            name: found.value,
            f"{name}_error": np.where(found.trusted, found.error, np.nan),
            f"{name}_tau": found.tau,
            f"{name}_trusted": found.trusted,
        }
    return columns


def write_csv(columns: Columns, path: Path, overwrite: bool = False) -> None:
    """Write columns as a CSV file: a line of names, numbers that read back the same, nothing for NaN.

    Args:
        columns: Of equal lengths.
        path: The new file.
        overwrite: Whether another CSV file there is replaced; nothing else ever is.

    Raises:
        InputError: where another file is there, and where it cannot be written.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    for row in zip(*(column.tolist() for column in columns.values()), strict=True):
        writer.writerow(["" if value != value else value for value in row])
    write_outputs({path: ("csv", text.getvalue().encode())}, overwrite)


def _annealing_columns(result: AnnealResult) -> Columns:
    found = thermodynamics(result)
    return {
        "temperature": found.temperature,
        "energy_per_site": found.energy,
        "energy_per_site_error": found.energy_error,
        "specific_heat": found.specific_heat,
        "specific_heat_error": found.specific_heat_error,
        "specific_heat_trusted": found.specific_heat_trusted,
        "abs_magnetization": found.magnetization,
        "abs_magnetization_error": found.magnetization_error,
    }
