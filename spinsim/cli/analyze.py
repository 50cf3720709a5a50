"""``spinsim analyze``: means, errors, autocorrelation times, whether the run was in equilibrium."""

from __future__ import annotations

import json
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spinsim.cli import flags
from spinsim.cli.saying import say
from spinsim.texts import quoted

if TYPE_CHECKING:
    from spinsim.analysis.summary import Summary
    from spinsim.analysis.tables import Columns
    from spinsim.layout import Series
    from spinsim.result import TemperResult


def analyze(
    files: Annotated[list[Path], typer.Argument(help="Files that spinsim temper wrote.", metavar="FILE...")],
    as_json: Annotated[
        bool, typer.Option("--json", help="All numbers as one JSON object, a list of them for several files.")
    ] = False,
    csv: Annotated[
        Path | None,
        typer.Option(
            help="Write them to this file too, a line for each temperature; of several files with their names."
        ),
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(
            help="Lines of --csv: temperature, sample, overlap for each sample's P(q), or bin for averages over "
            "logarithmic bins of the run, which show its approach to equilibrium.  [temperature]"
        ),
    ] = None,
    overwrite: flags.Overwrite = False,
    every: Annotated[bool, typer.Option("--all", help="Print every column.")] = False,
    columns: Annotated[
        str | None, typer.Option(help="Print these, such as energy_per_site,link_overlap.  [what the model asks for]")
    ] = None,
) -> None:
    """Find averages with errors at each temperature and write them into the files' /summary."""
    from spinsim.analysis.summary import summarize
    from spinsim.analysis.tables import columns_by, summary_columns, write_csv
    from spinsim.errors import InputError
    from spinsim.layout import summary_series
    from spinsim.observables import observables
    from spinsim.outputs import check_output
    from spinsim.result import load_temper

    if every and columns:
        raise InputError(f"--all prints --columns {columns} too: leave one of them out")
    if by and not csv:
        raise InputError(f"--by {by} is for the lines of a CSV file: add --csv FILE, or leave it out")
    for file in files:
        _check(file)
    if csv:
        check_output(csv, "csv", overwrite=True)  # no other file, such as a result
    summaries, reports, rooms, rows = [], [], [], []
    for file in files:
        result = load_temper(file)
        found = summarize(result)
        summaries.append(found)
        reports.append([heading(file, result), *report(result, found, columns, every)])
        rooms.append(summary_series(observables(result.model, result.energy.shape[2], result.has_correlations)))
        if csv:
            rows.append(columns_by(result, by) if by else summary_columns(found))
    if csv:
        write_csv(rows[0] if len(files) == 1 else one_below_the_other(files, rows), csv, overwrite)
    for file, room, found, lines in zip(files, rooms, summaries, reports, strict=True):
        lines += _write_summary(file, room, found)
    if as_json:
        tables = [{"file": str(file)} | as_tables(found) for file, found in zip(files, summaries, strict=True)]
        say(json.dumps(tables[0] if len(files) == 1 else tables))
        return
    for k, lines in enumerate(reports):
        for line in [""] * (k > 0) + lines:
            say(line)


def _check(file: Path) -> None:
    """Refuse, before anything is written, what cannot be analysed."""
    from spinsim.errors import InputError
    from spinsim.store import read_attributes

    if read_attributes(file).get("job") == "transfer":
        raise InputError(
            f"{file} holds a transfer run, whose levels are no averages: 'spinsim show {quoted(file)}' prints them and "
            f"'spinsim plot {quoted(file)}' draws the correlation length over the width"
        )


def heading(file: Path, result: TemperResult) -> str:
    """What was analysed, in a line."""
    rows = f"{result.model.name}, {result.model.samples} samples, {len(result.sweep)} measurements"
    return f"{file}: {rows}" + ("" if result.finished else ", which are those so far: the run is not finished")


def report(result: TemperResult, found: Summary, columns: str | None = None, every: bool = False) -> list[str]:
    """The averages asked for, a line each temperature, and what they are worth.

    Raises:
        InputError: for columns that the run does not have.
    """
    from spinsim.cli.averages import all_columns, chosen_columns, main_columns, table, wrapped

    if columns is not None:
        names = chosen_columns(columns, found.estimates)
    else:
        names = all_columns(found.estimates) if every else main_columns(result.model, found.estimates)
    notes = [line for note in found.notes for line in wrapped(note, "Note     ")]
    return table(found, names) + notes + wrapped(found.verdict, "Verdict  ")


def _write_summary(file: Path, room: list[Series], found: Summary) -> list[str]:
    """Keep the averages in the file, without errors that cannot be trusted; lines on those it has no room for.

    A file that another process writes is left as it is.
    """
    from spinsim.analysis.tables import summary_columns
    from spinsim.cli.averages import wrapped
    from spinsim.errors import InputError
    from spinsim.store import open_to_append

    columns = summary_columns(found)
    try:
        with open_to_append(file) as opened:
            unwritten = opened.write_summary({series: columns[series.name] for series in room})
    except InputError as error:
        if not isinstance(error.__cause__, BlockingIOError):
            raise
        return wrapped("another process writes the file, so its /summary is left as it is", "Note     ")
    lacking = ", ".join(name for name in found.estimates if name in unwritten)
    return wrapped(f"an older version made the file, without room for {lacking}", "Note     ") if lacking else []


def one_below_the_other(files: list[Path], tables: list[Columns]) -> Columns:
    """One table of several files, the first column their names; numbers that a file does not have are NaN."""
    import numpy as np

    names = dict.fromkeys(name for columns in tables for name in columns)
    lengths = [len(columns["temperature"]) for columns in tables]
    whole: Columns = {"file": np.repeat([str(file) for file in files], lengths)}
    for name in names:
        parts = [columns.get(name, np.full(n, np.nan)) for columns, n in zip(tables, lengths, strict=True)]
        whole[name] = np.concatenate(parts)
    return whole


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
    tables |= {"verdict": found.verdict, "problems": list(found.problems), "notes": found.notes}
    tables["equilibrated"] = {name: e.equilibrated for name, e in found.equilibration.items()}
    return tables
