"""A run as a table, by temperature, sample, overlap or logarithmic bin: columns, pandas, a CSV file."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from spinsim.analysis.runs import AnyRun, Floats, Tempered, lowest, sample_of
from spinsim.errors import InputError
from spinsim.machine.outputs import write_outputs
from spinsim.model.identity import described
from spinsim.observables import LEADING, TABLE
from spinsim.registry import record_of
from spinsim.result import Result, load
from spinsim.store.contents import ENERGY, INVERSE, TEMPERATURE

if TYPE_CHECKING:
    import pandas as pd

    from spinsim.analysis.summary import Estimate, Summary

Columns = dict[str, npt.NDArray[np.generic]]
Run = Result | str | os.PathLike[str]

_LAST: Final = ("_tau", "_trusted", "_verdict")
_OBSERVABLES: Final = {one.name: one.units for one in TABLE}
_UNITS: Final = _OBSERVABLES | {
    "temperature": TEMPERATURE,
    "field": ENERGY,
    "gamma": ENERGY,
    "beta": INVERSE,
    "k": INVERSE,
    "lowest_energy_per_site": ENERGY,
    "mean_slice_energy_per_site": ENERGY,
    "first_sweep": "sweeps",
    "last_sweep": "sweeps",
}


def table(run: Run | Iterable[Run], by: str = "temperature") -> pd.DataFrame:
    """Averages of a run, or of several below each other, as a pandas table.

    The rows depend on ``by``:

    * ``temperature``: a row for each temperature. Each observable has its value, ``<name>_error``, and for tempering
      runs ``<name>_tau`` in sweeps and ``<name>_trusted``; where that is False the error is NaN. For annealing runs,
      whose rows are the steps, ``specific_heat_trusted`` is True if the specific heat agrees with the slope of the
      energy; it is NaN if it does not. Populations, and runs in a field that changes, are not compared: False there,
      with the specific heat. Populations also have free energy, entropy and families, quantum anneals ``gamma`` and
      energies only. * ``sample``: a row for each sample and temperature. Errors come from the sample's own series (of
      an annealing run, from its replicas). ``lowest_energy_per_site`` is the lowest that any replica met, ``hits`` the
      number of replicas that met it. * ``overlap``: a row for each sample, temperature and bin of q:
      ``probability_density``, the sample's P(q), with its error, and the ``width`` of the bin. * ``bin``: a row for
      each temperature and logarithmic bin of the run, the last of which is its second half: first and last sweep,
      number of measurements, averages with errors, and ``<name>_verdict`` over all bins. * the name of an observable of
      your own: a row for each temperature and element of the array (``<name>_axis_0`` and so on).

    For several runs the first columns are ``file``, ``model``, ``size`` and ``sites``. Columns that a run lacks are
    NaN.

    Args:
        run: A result, or a file that spinsim wrote; or a list of these.
        by: ``temperature``, ``sample`` or, of a tempering run, ``bin`` and, if it has two copies or more, ``overlap``.

    Returns:
        The table, with the units of its columns in ``attrs["units"]``.

    Raises:
        InputError: where pandas is not installed, for another ``by``, as ``load``, and for too few measurements.
    """
    try:
        import pandas as pd
    except ImportError as error:
        raise InputError("pandas is missing: install spinsim[xarray] to use table()") from error
    if isinstance(run, Result | str | os.PathLike):
        result = _result(run)
        return arranged(pd.DataFrame(record_of(result.job).columns(result, by)))
    try:
        runs = list(run)
    except TypeError as error:
        raise InputError(f"a {type(run).__name__} is no run: give a result, a file, or a list of these") from error
    if not runs:
        raise InputError("no runs are given: give a result, a file, or a list of these")
    return arranged(pd.concat([pd.DataFrame(_named_columns(one, by)) for one in runs], ignore_index=True))


def _result(run: Run) -> Result:
    return run if isinstance(run, Result) else load(run)


def _named_columns(run: Run, by: str) -> Columns:
    """Returns the columns of one run of several, behind those that say which it is."""
    result = _result(run)
    columns: Columns = record_of(result.job).columns(result, by)
    about = described(result.model)
    rows = len(next(iter(columns.values())))
    file = "" if isinstance(run, Result) else os.fspath(run)
    which = {"file": file, "model": result.model.name, "size": about.get("size", ""), "sites": about["sites"]}
    return {name: np.full(rows, value) for name, value in which.items()} | columns


def columns_of_samples(
    run: AnyRun, columns: Callable[[AnyRun], Columns], best_energy: Callable[[AnyRun], Floats | None]
) -> Columns:
    """Returns the columns of each sample alone, below each other, behind the sample's number.

    ``best_energy`` gives the lowest energies that a sample's replicas met, (1, replicas), None where they are unknown.
    """
    tables = []
    for sample in range(run.model.samples):
        one = sample_of(run, sample)
        own, best = columns(one), best_energy(one)
        rows = len(next(iter(own.values())))
        least = None if best is None or not best.size else lowest(one.model, best)
        tables.append(
            {
                "sample": np.full(rows, sample),
                **own,
                "lowest_energy_per_site": np.full(rows, least.mean if least else np.nan),
                "hits": np.full(rows, least.hits[0] if least else 0),
            }
        )
    return below_each_other(tables)


def below_each_other(tables: list[Columns]) -> Columns:
    return {name: np.concatenate([columns[name] for columns in tables]) for name in tables[0]}


def summary_columns(summary: Summary) -> Columns:
    return {summary.axis.name: summary.axis.values} | estimate_columns(summary.estimates)


def estimate_columns(estimates: dict[str, Estimate]) -> Columns:
    """Four columns of each estimate, without errors that cannot be trusted."""
    columns: Columns = {}
    for name, estimate in estimates.items():
        columns |= {
            name: estimate.value,
            f"{name}_error": np.where(estimate.trusted, estimate.error, np.nan),
            f"{name}_tau": estimate.tau,
            f"{name}_trusted": estimate.trusted,
        }
    return columns


def own_columns(result: Tempered, name: str) -> Columns:
    """Columns of an observable of the user's own, a row for each place of the ladder and element of an array."""
    from spinsim.analysis.summary import own_estimate

    shape = result.measured[name].shape[3:]  # type: ignore[attr-defined]
    place, *elements = np.indices(shape).reshape(len(shape), -1)
    where = {f"{name}_axis_{k}": element for k, element in enumerate(elements)}
    return {result.axis.name: result.axis.values[place], **where} | estimate_columns({name: own_estimate(result, name)})


def in_order(names: list[str]) -> list[str]:
    """Return the names of columns in the order of ``arranged``."""
    first = next((place for place, name in enumerate(names) if name in _OBSERVABLES), len(names))
    front, rest = names[:first], names[first:]
    main = [name for one in LEADING.split() for name in (one, f"{one}_error") if name in rest]
    last = [name for ending in _LAST for name in rest if name.endswith(ending)]
    return [*front, *main, *(name for name in rest if name not in {*main, *last}), *last]


def arranged(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table that begins with the observables that matter most and ends with autocorrelation times.

    Columns in front of the first observable, such as the temperature, stay there. ``frame.attrs["units"]`` has the unit
    of each column by name, 1 for pure numbers.
    """
    table = frame[in_order(list(frame.columns))]
    table.attrs["units"] = {name: _unit(name) for name in table.columns}
    return table


def _unit(name: str) -> str:
    if name.endswith("_tau"):
        return "sweeps"
    return _UNITS.get(name.removesuffix("_error"), "1")


def write_csv(columns: Columns, path: Path, overwrite: bool = False) -> None:
    """Write columns as a CSV file: a line of names, numbers that read back the same, nothing for NaN.

    Another CSV file is replaced with ``overwrite``; nothing else ever is.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    names = in_order(list(columns))
    writer.writerow(names)
    for row in zip(*(columns[name].tolist() for name in names), strict=True):
        writer.writerow(["" if value != value else value for value in row])
    write_outputs({path: ("csv", text.getvalue().encode())}, overwrite)
