"""``spinsim analyze``: means, errors, autocorrelation times, whether the run was in equilibrium."""

from __future__ import annotations

import json
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spinsim.cli import flags

if TYPE_CHECKING:
    from spinsim.analysis.summary import Summary

SHOWN = {
    "energy_per_site": "E/N",
    "specific_heat": "C/N",
    "abs_magnetization": "<|m|>",
    "binder_cumulant": "U_m",
    "overlap_squared": "<q^2>",
    "overlap_binder_cumulant": "U_q",
    "correlation_length_over_L": "xi_m/L",
    "overlap_correlation_length_over_L": "xi_q/L",
}


def analyze(
    file: Annotated[Path, typer.Argument(help="A file that spinsim temper wrote.")],
    as_json: Annotated[bool, typer.Option("--json", help="All numbers as one JSON object.")] = False,
    csv: Annotated[Path | None, typer.Option(help="Write them to this file too, a line for each temperature.")] = None,
    overwrite: flags.Overwrite = False,
) -> None:
    """Find averages with errors at each temperature and write them into the file's /summary."""
    import numpy as np

    from spinsim.analysis.summary import summarize
    from spinsim.analysis.tables import summary_columns, write_csv
    from spinsim.errors import InputError
    from spinsim.outputs import check_output
    from spinsim.result import load_temper
    from spinsim.store import open_to_append, read_attributes

    if csv:
        check_output(csv, "csv", overwrite=True)  # no other file, such as a result
    if read_attributes(file).get("job") == "transfer":
        raise InputError(
            f"{file} holds a transfer run, whose levels are no averages: 'spinsim show {file}' prints them and "
            f"'spinsim plot {file}' draws the correlation length over the width"
        )
    result = load_temper(file)
    found = summarize(result)
    if csv:
        write_csv(summary_columns(found), csv, overwrite)
    with open_to_append(file) as opened:
        values = {}
        for name, estimate in found.estimates.items():
            error = np.where(estimate.trusted, estimate.error, np.nan)
            for suffix, numbers in (("", estimate.value), ("_error", error), ("_tau", estimate.tau)):
                values[f"summary/{name}{suffix}"] = numbers
        opened.write_again(values)
    if as_json:
        typer.echo(json.dumps(as_tables(found)))
        return
    typer.echo(f"{file}: {result.model.name}, {result.model.samples} samples, {len(result.sweep)} measurements")
    for line in report(found):
        typer.echo(line)
    if not result.finished:
        typer.echo("The run is not finished: these are the rows it has so far.")


def report(found: Summary) -> list[str]:
    """The main averages, a line each temperature, and what they are worth."""
    shown = [name for name in SHOWN if name in found.estimates]
    lines = ["       T" + "".join(f"{SHOWN[name]:>12}{'error':>10}" for name in shown) + "  tau/sweeps"]
    doubtful = False
    for k, temperature in enumerate(found.temperature):
        rows = [found.estimates[name] for name in shown]
        trusted = all(row.trusted[k] for row in rows)
        doubtful |= not trusted
        numbers = "".join(
            f"{row.value[k]:12.6f}" + (f"{row.error[k]:10.6f}" if row.trusted[k] else f"{'?':>10}") for row in rows
        )
        lines.append(f"{temperature:8.5g}{numbers}{max(row.tau[k] for row in rows):12.3g}")
    if doubtful:
        lines.append(
            "? : the series spans fewer than 20 autocorrelation times, does not move, or has no value without some "
            "samples: no error can be given."
        )
    lines += [
        f"Equilibrium by {name} at the lowest temperature: {e.verdict}" for name, e in found.equilibration.items()
    ]
    lines.append(f"Verdict: {found.verdict}")
    return lines


def as_tables(found: Summary) -> dict[str, object]:
    """Everything, for ``--json``; what is no number and errors that cannot be trusted are null."""
    tables: dict[str, object] = {"temperature": found.temperature.tolist()}
    for name, e in found.estimates.items():
        tables[name] = [value if isfinite(value) else None for value in e.value.tolist()]
        tables[f"{name}_error"] = [
            float(error) if trusted and isfinite(error) else None
            for error, trusted in zip(e.error, e.trusted, strict=True)
        ]
        tables[f"{name}_tau"] = e.tau.tolist()
    tables |= {"verdict": found.verdict, "problems": list(found.problems)}
    tables["equilibrated"] = {name: e.equilibrated for name, e in found.equilibration.items()}
    return tables
