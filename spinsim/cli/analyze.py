"""``spinsim analyze``, ``show`` and ``check``: averages with errors, main numbers, and whether files are whole."""

from __future__ import annotations

import errno
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from spinsim.cli import flags
from spinsim.cli.flags import Flag
from spinsim.cli.saying import refuse, say, say_json
from spinsim.errors import InputError
from spinsim.inputs.texts import count, wrapped
from spinsim.jobs import job_of
from spinsim.jobs.base import Told

if TYPE_CHECKING:
    from spinsim.analysis.reweighted import Reweighting
    from spinsim.analysis.runs import Tempered
    from spinsim.analysis.summary import Summary
    from spinsim.analysis.tables import Columns
    from spinsim.model.ising import Ising
    from spinsim.store.contents import Series

_THERMAL: Final = ("free_energy", "entropy")
_SPINS_COUNTED: Final = wrapped("counted again from saved spins; the file's /summary stays as it is", "Note     ")


def analyze(
    files: Annotated[list[Path], typer.Argument(help="Files of temper or quantum runs.", metavar="FILE...")],
    as_json: flags.AsJsonOfFiles = False,
    csv: Annotated[
        Path | None,
        Flag(help="Write the averages to this file too, a line for each temperature (or k, Gamma, beta) and file."),
    ] = None,
    by: Annotated[
        str | None,
        Flag(
            help="Lines of --csv. Of temper runs: temperature, sample, overlap for each sample's P(q), or bin for "
            "averages over logarithmic bins of the run, which show its approach to equilibrium. Of quantum runs: k, "
            "gamma or beta, sample, time for C(t), gap, or site for local susceptibilities.  [the ladder]"
        ),
    ] = None,
    reweight: Annotated[
        str | None,
        Flag(
            help="Reweight to these temperatures, such as 1.0:1.2:101, by multiple histograms over the whole ladder: "
            "averages, free energy and entropy. The file's /summary does not change."
        ),
    ] = None,
    from_configurations: Annotated[
        bool,
        Flag(
            "--from-configurations",
            help="Measure again from the spins of --save-configurations. The file's /summary does not change.",
        ),
    ] = False,
    device: Annotated[str | None, Flag(help="Device for --from-configurations: auto, cpu or cuda.  [auto]")] = None,
    overwrite: flags.Overwrite = False,
    every: Annotated[bool, Flag("--all", help="Print every column.")] = False,
    columns: Annotated[
        str | None,
        Flag(help="Columns to print, such as energy_per_site,link_overlap.  [those that suit the model]"),
    ] = None,
) -> None:
    """Average with errors at each temperature; the averages are also written to /summary of each file.

    Files that differ in seeds and disorder alone are averaged together, as one run of all their samples. Quantum runs
    that differ only in their number of slices are extrapolated to infinitely many slices.
    """
    from spinsim.analysis.summary import observables_of, summarize
    from spinsim.analysis.tables import as_tables, printed_table, summary_columns, write_csv
    from spinsim.machine.files import check_output
    from spinsim.pooling import gathered
    from spinsim.store.contents import summary_series

    if every and columns:
        raise InputError(f"--all prints --columns {columns} too: leave one of them out")
    if by and not csv:
        raise InputError(f"--by {by} is for the lines of a CSV file: add --csv FILE, or leave it out")
    if reweight and by:
        raise InputError(
            f"--by {by} says which lines --csv has, and with --reweight these are its temperatures: leave one"
        )
    if device and not from_configurations:
        raise InputError(f"--device {device} is where --from-configurations counts: add that flag, or leave it out")

    choose = partial(_names, columns=columns, every=every)
    if csv:
        check_output(csv, "csv", overwrite=True)  # no other file, such as a result
    where = (device or "auto") if from_configurations else None
    runs = gathered(files, [_read(file, where) for file in files])
    if reweight:
        each = [_reweighted(_name(of), run, reweight, choose) for of, run in runs]
        if csv:
            write_csv(
                one_below_the_other([one["file"] for *_, one in each], [rows for _, rows, _ in each]), csv, overwrite
            )
        _tell([lines for lines, _, _ in each], [numbers for _, _, numbers in each] if as_json else None)
        return
    names = [_name(of) for of, _ in runs]
    summaries, reports, rows = [], [], []
    kept: dict[str, list[tuple[Ising, Any]]] = {}
    for (_, result), name in zip(runs, names, strict=True):
        job, summary = job_of(result.job), summarize(result)
        summaries.append(summary)
        if len(runs) > 1:
            kept.setdefault(job.name, []).append((result.model, job.kept(result, summary)))
        lines = printed_table(summary, choose(result.model, summary.estimates)) + _notes(summary)
        lines += wrapped(summary.verdict, "Verdict  ")
        lines = [heading(name, result), *lines, *job.analysis(result)]
        if csv:
            rows.append(job.columns(result, by) if by else summary_columns(summary))
        reports.append(lines)
    if csv:
        write_csv(one_below_the_other(names, rows), csv, overwrite)
    for (of, result), summary, lines in zip(runs, summaries, reports, strict=True):
        if from_configurations:
            lines += _SPINS_COUNTED
        elif len(of) == 1:
            lines += _write_summary(of[0], summary_series(observables_of(result), result.axis.name), summary)
    together = _together(kept, choose)
    reports += [told.lines for told in together if told.lines]
    tables = [{"file": name} | as_tables(summary) for name, summary in zip(names, summaries, strict=True)]
    _tell(reports, tables + [told.numbers for told in together if told.numbers] if as_json else None)


def _read(file: Path, recounted_on: str | None) -> Any:
    """The result of a file, counted again from its configurations on a device if one is given."""
    from spinsim.jobs.calls import recount
    from spinsim.result import load

    result = load(file)
    job_of(result.job).check_averages(file, result)
    return recount(result, recounted_on) if recounted_on else result


def _together(kept: Mapping[str, list[tuple[Ising, Any]]], choose: Callable[..., list[str]]) -> list[Told]:
    """What the runs of each job say together, by what was kept of each."""
    return [
        job_of(name).together([one for _, one in each if one is not None], partial(choose, each[0][0]))
        for name, each in kept.items()
    ]


def _name(files: list[Path]) -> str:
    return str(files[0]) if len(files) == 1 else f"{files[0]} and {count(len(files) - 1, 'more file')}, pooled"


def _reweighted(
    file: str, result: Tempered, grid: str, choose: Callable[..., list[str]]
) -> tuple[list[str], Columns, dict[str, Any]]:
    """Returns what is printed of a file's reweighted averages, their columns, and their numbers for ``--json``."""
    from spinsim.analysis.reweighted import reweighted
    from spinsim.analysis.tables import estimate_columns, printed_table
    from spinsim.inputs.numbers import read_grid

    one = reweighted(result, read_grid("reweight", grid))
    table = printed_table(one, choose(result.model, one.estimates, more=_THERMAL))
    columns: Columns = {"temperature": one.temperature, "effective_measurements": one.effective}
    columns |= estimate_columns(one.estimates)
    numbers = {name: column.tolist() for name, column in columns.items() if not name.endswith("_trusted")}
    numbers = {"file": file, **numbers, "notes": one.notes}
    return [heading(file, result), *table, *_notes(one)], columns, numbers


def _tell(reports: list[list[str]], tables: list[dict[str, Any]] | None, apart: bool = True) -> None:
    if tables is None:
        for k, lines in enumerate(reports):
            say(*[""] * (k > 0 and apart), *lines)
        return
    say_json(tables[0] if len(tables) == 1 else tables)


def heading(file: str, result: Any) -> str:
    from spinsim.analysis.sources import measurements_of

    rows = (
        f"{result.model.name}, {count(result.model.samples, 'sample')}, {count(measurements_of(result), 'measurement')}"
    )
    return f"{file}: {rows}" + ("" if result.finished else ", which are those so far: the run is not finished")


def _notes(averages: Summary | Reweighting) -> list[str]:
    return [line for note in averages.notes for line in wrapped(note, "Note     ")]


def _names(
    model: Ising, estimates: Mapping[str, Any], columns: str | None, every: bool, more: tuple[str, ...] = ()
) -> list[str]:
    """Names of the columns asked for; with ``more``, fewer of the main ones and those that begin so."""
    from spinsim.analysis.tables import all_columns, chosen_columns, main_columns

    if columns is not None:
        return chosen_columns(columns, estimates)
    if every:
        return all_columns(estimates)
    main = main_columns(model, estimates)
    return [*main[:3], *(name for name in estimates if name.startswith(more))] if more else main


def _write_summary(file: Path, room: list[Series], summary: Summary) -> list[str]:
    """Keep the averages in the file, without errors that cannot be trusted; lines that say why where this cannot be.

    A file that another process writes, or that nobody may write here, is left as it is.
    """
    from spinsim.analysis.tables import summary_columns
    from spinsim.record import Array, Record
    from spinsim.store.contents import SUMMARY_GROUP, UNITS_OF_LADDERS
    from spinsim.store.files import open_to_write

    columns = summary_columns(summary)
    axis = room[0].axes[0]
    scale = Array(columns[axis], (axis,), axis, UNITS_OF_LADDERS[axis])
    arrays = {one.name: Array(columns[one.name], one.axes, one.long_name, one.units) for one in room}
    try:
        with open_to_write(file) as opened:
            if not opened.is_whole:
                return wrapped("another program has added to the file, so its /summary is left as it is", "Note     ")
            record = opened.record.copy()
            record.groups[SUMMARY_GROUP] = Record({}, {axis: scale} | arrays)
            opened.write(record)
    except InputError as error:
        if isinstance(error.__cause__, BlockingIOError):
            return wrapped("another process writes the file, so its /summary is left as it is", "Note     ")
        if isinstance(error.__cause__, PermissionError) or getattr(error.__cause__, "errno", None) == errno.EROFS:
            return wrapped("the file cannot be written here, so its /summary is left as it is", "Note     ")
        raise
    return []


def one_below_the_other(files: list[str], tables: list[Columns]) -> Columns:
    """One table of several files, the first column their names; numbers that a file does not have are NaN."""
    import numpy as np

    if len(tables) == 1:
        return tables[0]
    names = dict.fromkeys(name for columns in tables for name in columns)
    lengths = [len(next(iter(columns.values()))) for columns in tables]
    whole: Columns = {"file": np.repeat(files, lengths)}
    for name in names:
        parts = [columns.get(name, np.full(n, np.nan)) for columns, n in zip(tables, lengths, strict=True)]
        whole[name] = np.concatenate(parts)
    return whole


def show(
    files: Annotated[list[Path], typer.Argument(help="Files that spinsim wrote.", metavar="FILE...")],
    as_json: flags.AsJsonOfFiles = False,
    solution: Annotated[
        bool,
        Flag("--solution", help="Print the lowest states instead, a line 'label value' for each variable."),
    ] = False,
) -> None:
    """Summarise files: settings, progress of the run and main numbers."""
    from spinsim.result import load

    def said(file: Path) -> Told:
        result = load(file)
        return _solutions(result) if solution else job_of(result.job).show(file, result)

    told = [said(file) for file in files]
    numbers = [one.numbers for one in told] if as_json else None
    _tell([one.lines for one in told], numbers, apart=not solution)


def _solutions(result: Any) -> Told:
    from spinsim.solution import as_json, as_text

    solutions = result.solutions
    return Told(as_json(solutions, result.model), as_text(solutions, result.model.name).split("\n"))


def check(files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Files that spinsim wrote.")]) -> None:
    """Verify every byte of each FILE by its checksums and identity, and print a line for each.

    The exit status is 0 if all files are whole, else 2.
    """
    from spinsim.run.identity import verify

    status = 0
    for file in files:
        try:
            say(f"{file}: {verify(file)}")
        except InputError as error:
            status = refuse(str(error))
    if status:
        raise typer.Exit(status)


def merge(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="Files of runs that differ in seeds and disorder.")
    ],
    out: Annotated[Path, Flag(help="The new file.")],
    overwrite: flags.Overwrite = False,
) -> None:
    """Write runs that differ in seeds and disorder alone into one file, as one run of all their samples."""
    from spinsim.pooling import merge as merged

    say(merged(files, out, overwrite))
