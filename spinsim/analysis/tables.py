"""A run as a table, by temperature, sample, overlap or logarithmic bin: columns, pandas, a CSV file."""

from __future__ import annotations

import csv
import io
import os
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from spinsim.analysis.approach import Approach, approach
from spinsim.analysis.overlaps import overlap_distribution
from spinsim.analysis.samples import lowest, sample_of
from spinsim.analysis.summary import Estimate, Summary, estimates
from spinsim.analysis.thermodynamics import thermodynamics
from spinsim.errors import InputError
from spinsim.outputs import write_outputs
from spinsim.result import AnnealResult, TemperResult, load

if TYPE_CHECKING:
    import pandas as pd

Columns = dict[str, npt.NDArray[np.generic]]


def table(run: AnnealResult | TemperResult | str | os.PathLike[str], by: str = "temperature") -> pd.DataFrame:
    """Averages of a run as a pandas table.

    By temperature, a row each, columns are ``temperature`` and, for each of ``observables.observables``, its value,
    ``<name>_error``, and of a tempering run ``<name>_tau`` in sweeps and ``<name>_trusted``: where that is False the
    error is NaN. Of an annealing run, whose steps are the rows, there are ``energy_per_site``, ``specific_heat`` and
    ``abs_magnetization``, and ``specific_heat_trusted``: whether it agrees with the slope of the energy. Where it does
    not it is NaN. Where a field changed there are ``field`` and the signed ``magnetization`` besides.

    By sample, a row for each sample and temperature, the same columns come from each sample alone, with errors from
    its own series (of an annealing run, over its replicas), behind ``sample``; ``lowest_energy_per_site`` is the lowest
    that the sample's replicas met at any temperature and ``hits`` how many of them met it.

    By overlap, a row for each sample, temperature and bin of q: ``probability_density``, the sample's P(q), with its
    error, and ``width`` of the bin.

    By bin, a row for each temperature and logarithmic bin of the run, the last of which is its second half: the sweeps
    done before the bin's first and last measurement, how many measurements it has, and the averages over it of
    ``approach.Approach`` with errors and ``<name>_verdict``, which is that on all bins.

    Args:
        run: A result, or a file that spinsim wrote.
        by: ``temperature``, ``sample`` or, of a tempering run, ``bin`` and, if it has two copies or more, ``overlap``.

    Raises:
        InputError: where pandas is not installed, for another ``by``, as ``load``, and for too few measurements.
    """
    try:
        import pandas as pd
    except ImportError as error:
        raise InputError("pandas is missing: install spinsim[xarray] to use table()") from error
    result = run if isinstance(run, AnnealResult | TemperResult) else load(run)
    if not isinstance(result, AnnealResult | TemperResult):
        raise InputError(f"{run} holds a {result.attributes['job']} run: its own dataset().to_dataframe() is its table")
    return pd.DataFrame(columns_by(result, by))


def columns_by(result: AnnealResult | TemperResult, by: str) -> Columns:
    """The columns of ``table``.

    Raises:
        InputError: as ``table``.
    """
    if by == "temperature":
        return _columns(result)
    if by == "sample":
        return _below_each_other([_columns_of_sample(result, k) for k in range(result.model.samples)])
    if by == "overlap" and isinstance(result, TemperResult):
        return _below_each_other([_overlap_columns(result, k) for k in range(result.model.samples)])
    if by == "bin" and isinstance(result, TemperResult):
        return _bin_columns(approach(result))
    rest = "sample, overlap or bin" if isinstance(result, TemperResult) else "or sample"
    raise InputError(f"there is no table by {by!r} of this run: choose temperature, {rest}".replace(", or", " or"))


def _columns(result: AnnealResult | TemperResult) -> Columns:
    if isinstance(result, AnnealResult):
        return _annealing_columns(result)
    return {"temperature": result.temperature} | estimate_columns(estimates(result))


def _columns_of_sample(result: AnnealResult | TemperResult, sample: int) -> Columns:
    """Columns of one sample alone, its number in front."""
    one: AnnealResult | TemperResult = sample_of(result, sample)
    columns = _columns(one)
    rows = len(columns["temperature"])
    best = one.lowest_energy if isinstance(one, AnnealResult) else one.best_energy
    found = None if best is None or not best.size else lowest(one.model, best)
    return {
        "sample": np.full(rows, sample),
        **columns,
        "lowest_energy_per_site": np.full(rows, found.mean if found else np.nan),
        "hits": np.full(rows, found.hits[0] if found else 0),
    }


def _overlap_columns(result: TemperResult, sample: int) -> Columns:
    """P(q) of one sample."""
    found = overlap_distribution(sample_of(result, sample))
    temperatures, bins = found.density.shape
    return {
        "sample": np.full(found.density.size, sample),
        "temperature": np.repeat(result.temperature, bins),
        "q": np.tile(found.q, temperatures),
        "width": np.tile(found.width, temperatures),
        "probability_density": found.density.ravel(),
        "probability_density_error": np.where(found.trusted, found.error, np.nan).ravel(),
    }


def _bin_columns(found: Approach) -> Columns:
    """Averages over logarithmic bins, those of a temperature in succession."""
    bins, temperatures = len(found.start), len(found.temperature)
    columns: Columns = {
        "temperature": np.repeat(found.temperature, bins),
        "first_sweep": np.tile(found.first_sweep, temperatures),
        "last_sweep": np.tile(found.last_sweep, temperatures),
        "measurements": np.tile(found.stop - found.start, temperatures),
    }
    for name, mean in found.mean.items():
        columns |= {name: mean.T.ravel(), f"{name}_error": found.error[name].T.ravel()}
        columns[f"{name}_verdict"] = np.repeat(found.verdict[name], bins)
    return columns


def _below_each_other(tables: list[Columns]) -> Columns:
    return {name: np.concatenate([columns[name] for columns in tables]) for name in tables[0]}


def summary_columns(summary: Summary) -> Columns:
    """Columns of a tempering run, as ``table`` has them."""
    return {"temperature": summary.temperature} | estimate_columns(summary.estimates)


def estimate_columns(found: dict[str, Estimate]) -> Columns:
    """Four columns of each estimate, without errors that cannot be trusted."""
    columns: Columns = {}
    for name, estimate in found.items():
        columns |= {
            name: estimate.value,
            f"{name}_error": np.where(estimate.trusted, estimate.error, np.nan),
            f"{name}_tau": estimate.tau,
            f"{name}_trusted": estimate.trusted,
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
    in_field: Columns = {}
    if result.field is not None:
        in_field = {
            "field": result.field,
            "magnetization": found.signed_magnetization,
            "magnetization_error": found.signed_magnetization_error,
        }
    return {
        "temperature": found.temperature,
        **in_field,
        "energy_per_site": found.energy,
        "energy_per_site_error": found.energy_error,
        "specific_heat": found.specific_heat,
        "specific_heat_error": found.specific_heat_error,
        "specific_heat_trusted": found.specific_heat_trusted,
        "abs_magnetization": found.magnetization,
        "abs_magnetization_error": found.magnetization_error,
    }
