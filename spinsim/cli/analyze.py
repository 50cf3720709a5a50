"""``spinsim analyze``, ``show``, ``check`` and ``merge``: averages with errors, main numbers, integrity, pooling."""

from __future__ import annotations

import errno
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from spinsim.cli import flags
from spinsim.cli.flags import Flag
from spinsim.cli.saying import refuse, say, say_json, table_width
from spinsim.errors import InputError
from spinsim.inputs.texts import count, either, wrapped
from spinsim.jobs import job_of

if TYPE_CHECKING:
    from spinsim.analysis.reweighted import Reweighting
    from spinsim.analysis.runs import Tempered
    from spinsim.analysis.summary import Summary
    from spinsim.analysis.tables import Columns, Report, Row
    from spinsim.model.ising import Ising

_THERMAL: Final = ("free_energy", "entropy")
_SPINS_COUNTED: Final = "counted again from saved spins; the file's /summary stays as it is"


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
    scaling: Annotated[
        bool,
        Flag(
            "--scaling",
            help="Finite-size scaling of several sizes instead: critical point and exponents from data collapse and "
            "from quotients, with errors.",
        ),
    ] = False,
    along: Annotated[
        str | None,
        Flag(
            metavar="SETTING",
            help="With --scaling: compare sizes against this setting of the models, such as bond_fraction; each file "
            "has one value of it.  [the ladder]",
        ),
    ] = None,
    at: Annotated[
        str | None, Flag(help="With --along: the temperature at which files are compared, or nishimori.  [nishimori]")
    ] = None,
    what: Annotated[
        str | None,
        Flag(
            help="An analysis instead, of saved configurations: space (correlations, xi, R_12; in a field the "
            "replicon), joint (overlap and link overlap), quantiles, triangles, boxes (overlaps of four copies, of "
            "three, within boxes), chaos of one run or two; or interface, of a periodic and an antiperiodic run."
        ),
    ] = None,
    density: Annotated[
        bool,
        Flag(
            "--density",
            help="Density of states of each file instead, and averages that follow from it; --csv has a line for each "
            "energy.",
        ),
    ] = False,
    device: Annotated[str | None, Flag(help="Device for --from-configurations: auto, cpu or cuda.  [auto]")] = None,
    overwrite: flags.Overwrite = False,
    every: Annotated[bool, Flag("--all", help="Print every column.")] = False,
    columns: Annotated[
        str | None, Flag(help="Columns to print, such as energy_per_site,link_overlap.  [those that suit the model]")
    ] = None,
) -> None:
    """Print averages with errors at each temperature, and write them to /summary of each file.

    Files that differ only in seeds, disorder, sweeps and thermalize are averaged together, as one run of all their
    samples. Runs of the same sample are independent chains of it. Quantum runs that differ only in their number of
    slices are extrapolated to infinitely many slices.

    On a terminal, a table wider than 80 characters is split; elsewhere, as in a file or a pipe, it is not.
    """
    from spinsim.analysis.summary import summarize
    from spinsim.analysis.tables import summary_columns, write_csv
    from spinsim.machine.files import check_output
    from spinsim.pooling import gathered

    if every and columns:
        raise InputError(f"--all prints --columns {columns} too: leave one of them out")
    if by and not csv:
        raise InputError(f"--by {by} is for the lines of a CSV file: add --csv FILE, or leave it out")
    if reweight and by:
        raise InputError(f"--by {by} says which lines --csv has, and with --reweight these are temperatures: leave one")
    if device and not from_configurations:
        raise InputError(f"--device {device} is where --from-configurations counts: add that flag, or leave it out")

    if (along or at) and not scaling:
        raise InputError("--along and --at are for finite-size scaling: add --scaling, or leave them out")
    if at and not along:
        raise InputError(f"--at {at} is the temperature of --along: add that flag, or leave it out")

    choose = partial(_names, columns=columns, every=every)
    if csv:
        check_output(csv, "csv", overwrite=True)  # refuses to replace other files, such as results
    if density:
        if scaling or from_configurations:
            raise InputError("--density goes with --reweight, --csv and --json alone: leave other options out")
        tell(_densities(files, reweight, csv, overwrite), as_json)
        return
    where = (device or "auto") if from_configurations else None
    runs = gathered(files, [_read(file, where) for file in files])
    names, results = [_name(of) for of, _ in runs], [result for _, result in runs]
    if scaling or what:
        if (scaling and what) or csv or reweight or columns or every or from_configurations:
            raise InputError("--scaling and --what stand alone, with --json: leave out --csv, --reweight and the rest")
        tell(_analyses(what, names, results) if what else [_scaling(results, along, at)], as_json)
        return
    if reweight:
        from spinsim.analysis.reweighted import reweighted
        from spinsim.inputs.numbers import read_grid

        reweightings = [reweighted(result, read_grid("reweight", reweight)) for result in results]
        reports = [_report_of(*run, choose, _THERMAL) for run in zip(names, results, reweightings, strict=True)]
        tables = [_reweighted_columns(one) for one in reweightings]
    else:
        summaries = [summarize(result) for result in results]
        reports = [_report_of(*run, choose) for run in zip(names, results, summaries, strict=True)]
        tables = [summary_columns(summary) for summary in summaries]
    if csv:
        if by:
            tables = [job_of(result.job).report.columns(result, by) for result in results]
        write_csv(one_below_the_other(names, tables), [result.model for result in results], csv, overwrite)
    reports = [one.with_note(_differences(result)) for one, result in zip(reports, results, strict=True)]
    if not reweight:
        for k, (of, result) in enumerate(runs):
            if from_configurations:
                reports[k] = reports[k].with_note(_SPINS_COUNTED)
            elif len(of) == 1:
                reports[k] = reports[k].with_note(_write_summary(of[0], result, summaries[k]))
        reports += _together(results, summaries, choose)
    tell(reports, as_json)


def pooled_analysis(runs: list[tuple[list[Path], Any]]) -> list[Report]:
    """Return reports on averages and scaling of pooled runs; on runs without averages those of ``spinsim show``."""
    from spinsim.analysis.scaling.report import scaling_report
    from spinsim.analysis.sizes import compare_sizes
    from spinsim.analysis.summary import summarize
    from spinsim.analysis.tables import Report, Row
    from spinsim.observables.table import LABELS

    results, choose = [result for _, result in runs], partial(_names, columns=None, every=False)
    try:
        for files, result in runs:
            job_of(result.job).check_averages(files[0], result)
        summaries = [summarize(result) for result in results]
    except InputError:
        return [job_of(result.job).report.show(files[0], result) for files, result in runs]
    each = zip(map(_name, [of for of, _ in runs]), results, summaries, strict=True)
    reports = [_report_of(*run, choose).with_note(_differences(run[1])) for run in each]
    reports += _together(results, summaries, choose)
    if len(runs) > 1:
        try:
            crossings = [
                (one.name, pair) for one in compare_sizes(results, summaries=summaries) for pair in one.crossings
            ]
            reports.append(Report([x for name, pair in crossings for x in wrapped(f"{LABELS[name]}: {pair.sentence}")]))
            reports.append(scaling_report(results))
        except InputError as error:
            reports.append(Report([Row("Note", note=f"no finite-size scaling: {error}")]))
    return reports


def _scaling(results: list[Any], along: str | None, at: str | None) -> Report:
    """Return the report on the finite-size scaling of runs, against their ladder or along a setting."""
    from spinsim.analysis.scaling.curves import sizes_along
    from spinsim.analysis.scaling.report import scaling_report

    return scaling_report(sizes_along(results, along, at or "nishimori") if along else results)


def _analyses(what: str, names: list[str], results: list[Any]) -> list[Report]:
    """Return reports of an analysis, of each run or, if it takes several, of all."""
    from spinsim.analysis.space import ANALYSES

    if what not in ANALYSES:
        raise InputError(f"there is no analysis {what!r}: choose {either(tuple(ANALYSES))}")
    if ANALYSES[what].most_runs == 1:
        return [ANALYSES[what](result).report(name) for name, result in zip(names, results, strict=True)]
    return [ANALYSES[what](*results).report(" and ".join(names))]


def _densities(files: list[Path], grid: str | None, csv: Path | None, overwrite: bool) -> list[Report]:
    """Return the report on the density of states of each file, and write the densities if a file is given."""
    from spinsim.analysis import density
    from spinsim.analysis.tables import write_csv
    from spinsim.inputs.numbers import read_grid

    of_files = {str(file): density.density_of_states(file) for file in files}
    if csv:
        tables = one_below_the_other(list(of_files), [density.density_columns(one) for one in of_files.values()])
        write_csv(tables, [one.model for one in of_files.values()], csv, overwrite)
    return [density.density_report(*one, grid and read_grid("reweight", grid)) for one in of_files.items()]


def _read(file: Path, recounted_on: str | None) -> Any:
    """Return the result of a file; if a device is given, recount it there from its saved configurations."""
    from spinsim.jobs.calls import recount
    from spinsim.result import load

    result = load(file)
    job_of(result.job).check_averages(file, result)
    return recount(result, recounted_on) if recounted_on else result


def _together(results: list[Any], summaries: list[Summary], choose: Callable[..., list[str]]) -> list[Report]:
    """Return joint reports on the runs of each job, if they say more than the reports on single runs."""
    by_job: dict[str, list[tuple[Any, Summary]]] = {}
    for result, summary in zip(results, summaries, strict=True):
        by_job.setdefault(result.job, []).append((result, summary))
    reports = [job_of(name).together(runs, partial(choose, runs[0][0].model)) for name, runs in by_job.items()]
    return [report for report in reports if report.rows]


def _name(files: list[Path]) -> str:
    return str(files[0]) if len(files) == 1 else f"{files[0]} and {count(len(files) - 1, 'more file')}, pooled"


def _differences(result: Any) -> str:
    """Return the sentence on differences between the runs of a pool; empty for a single run."""
    from spinsim.pooling import pool_of

    pool = pool_of(result)
    return "" if pool is None else pool.difference


def _reweighted_columns(averages: Reweighting) -> Columns:
    from spinsim.analysis.tables import estimate_columns

    columns: Columns = {"temperature": averages.temperature, "effective_measurements": averages.effective}
    return columns | estimate_columns(averages.estimates)


def _report_of(
    name: str,
    result: Tempered,
    averages: Summary | Reweighting,
    choose: Callable[..., list[str]],
    more: tuple[str, ...] = (),
) -> Report:
    """Return the averages of a run: a printed table with the chosen columns, and all columns for ``--json``."""
    from spinsim.analysis.summary import Summary
    from spinsim.analysis.tables import Report, Row, as_tables, printed_table, unprinted, verdict_rows

    rows: list[Row | str] = [heading(name, result)]
    rows += printed_table(averages, choose(result.model, averages.estimates, more=more), width=table_width())
    rows += [Row("Note", note=note) for note in averages.notes]
    if isinstance(averages, Summary):
        rows += [*verdict_rows(averages), *job_of(result.job).analysis(result)]
        numbers = as_tables(averages)
    else:
        columns = _reweighted_columns(averages)
        numbers = {name: column for name, column in columns.items() if not name.endswith("_trusted")}
        numbers |= {"notes": averages.notes}
    return Report([*rows, *unprinted({"file": name} | numbers)])


def tell(reports: list[Report], as_json: bool, apart: bool = True) -> None:
    if as_json:
        numbers = [report.numbers for report in reports]
        say_json(numbers[0] if len(numbers) == 1 else numbers)
        return
    for k, report in enumerate(reports):
        say(*[""] * (k > 0 and apart), *report.lines)


def heading(file: str, result: Any) -> str:
    from spinsim.analysis.runs import samples_in_words
    from spinsim.analysis.statistics import measurements_of

    rows = f"{result.model.name}, {samples_in_words(result)}, {count(measurements_of(result), 'measurement')}"
    return f"{file}: {rows}" + ("" if result.finished else ", which are those so far: the run is not finished")


def _names(
    model: Ising, estimates: Mapping[str, Any], columns: str | None, every: bool, more: tuple[str, ...] = ()
) -> list[str]:
    """Return the names of the requested columns; ``more`` replaces some main columns by those with these prefixes."""
    from spinsim.analysis.tables import all_columns, chosen_columns, main_columns

    if columns is not None:
        return chosen_columns(columns, estimates)
    if every:
        return all_columns(estimates)
    main = main_columns(model, estimates)
    return [*main[:3], *(name for name in estimates if name.startswith(more))] if more else main


def _write_summary(file: Path, result: Tempered, summary: Summary) -> str:
    """Write averages without untrusted errors to the file; return why that is impossible, such as for a file in use."""
    from spinsim.analysis.summary import observables_of
    from spinsim.analysis.tables import summary_columns
    from spinsim.record import Array, Record
    from spinsim.store.contents import SUMMARY_GROUP, UNITS_OF_LADDERS, summary_series
    from spinsim.store.files import open_to_write

    columns, series = summary_columns(summary), summary_series(observables_of(result), result.axis.name)
    axis = series[0].axes[0]
    scale = Array(columns[axis], (axis,), axis, UNITS_OF_LADDERS[axis])
    arrays = {one.name: Array(columns[one.name], one.axes, one.long_name, one.units) for one in series}
    try:
        with open_to_write(file) as opened:
            if not opened.is_whole:
                return "another program has added to the file, so its /summary is left as it is"
            record = opened.record.copy()
            record.groups[SUMMARY_GROUP] = Record({}, {axis: scale} | arrays)
            opened.write(record)
    except InputError as error:
        if isinstance(error.__cause__, BlockingIOError):
            return "another process writes the file, so its /summary is left as it is"
        if isinstance(error.__cause__, PermissionError) or getattr(error.__cause__, "errno", None) == errno.EROFS:
            return "the file cannot be written here, so its /summary is left as it is"
        raise
    return ""


def one_below_the_other(files: list[str], tables: list[Columns]) -> Columns:
    """Stack the tables of several files into one, with file names in the first column; missing numbers are NaN."""
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
        bool, Flag("--solution", help="Print the lowest states instead, a line 'label value' for each variable.")
    ] = False,
) -> None:
    """Summarise files: settings, progress of the run and main results."""
    from spinsim.result import load

    results = [load(file) for file in files]
    if solution:
        tell([_solutions(result) for result in results], as_json, apart=False)
    else:
        shown = [job_of(result.job).report.show(file, result) for file, result in zip(files, results, strict=True)]
        tell(shown, as_json)


def _solutions(result: Any) -> Report:
    from spinsim.analysis.tables import Report, unprinted
    from spinsim.solution import as_json, as_text

    lines = as_text(result.solutions, result.model.name).split("\n")
    return Report([*lines, *unprinted(as_json(result.solutions, result.model))])


def check(files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Files that spinsim wrote.")]) -> None:
    """Verify every byte of each FILE by its checksums and identity, and print one line for each file.

    The exit status is 0 if all files are intact, else 2.
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
        list[Path],
        typer.Argument(metavar="FILE...", help="Files of runs that differ in seeds, disorder, sweeps and thermalize."),
    ],
    out: Annotated[Path, Flag(help="The new file.")],
    overwrite: flags.Overwrite = False,
) -> None:
    """Merge runs into one file, as one run of all their samples.

    They may differ in seeds and disorder and, on a ladder, in --sweeps, --thermalize and --series.
    """
    from spinsim.pooling import merge as merged

    if difference := _differences(merged(files, out, overwrite)):
        say(*wrapped(difference), err=True)
    say(out)
