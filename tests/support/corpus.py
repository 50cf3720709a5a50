"""Tables, counters and verdicts of small runs, frozen as JSON in ``tests/corpus``: a file for each run and command.

A file holds tables by name, a table columns by name, a column the values of its rows: numbers to the last bit, text,
null for NaN; or the table and name of an equal column. Of a long table evenly spaced rows are kept. To write all files
anew, or those of some runs:

    python tests/support/corpus.py --record [NAME ...]

An issue that changes statistics on purpose records anew and says by how much its numbers moved.
"""

from __future__ import annotations

import contextlib
import io
import json
import math
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
from corpus_runs import COMMANDS, REWEIGHTED, RUNS, SAVED
from places import ROOT

import spinsim as ss
from spinsim import cli
from spinsim.analysis.reweighted import reweighted
from spinsim.analysis.summary import summarize
from spinsim.analysis.tables import estimate_columns
from spinsim.jobs.ladder.result import LadderResult
from spinsim.result import Result

AVERAGES: Final = 1e-9  # relative tolerance of averages and of other numbers without a kind of their own
ERRORS: Final = 1e-9  # of columns that end with _error
TAUS: Final = 1e-9  # of columns that end with _tau, autocorrelation times
DENSITIES: Final = 1e-9  # of P(q) and its errors
FITS: Final = 1e-9  # of gaps, which are fitted to correlations in time
LEVELS: Final = 1e-9  # of eigenvalues of transfer matrices and what follows from them
ROUNDING: Final = 1e-12  # of any number: a smaller difference is the rounding of numbers of order 1

FOLDER: Final = ROOT / "tests" / "corpus"
MOST_ROWS: Final = 4  # of a table that are kept
MORE_ROWS: Final = {"temperature": 12, "overlap": 10}  # of these tables
MOST_TOLD: Final = 30  # differences of a run that a failure prints
TABLES: Final = {
    "anneal": ("temperature", "sample"),
    "quantum": ("temperature", "sample", "time", "gap", "site"),
    "temper": ("temperature", "sample", "overlap", "bin"),
}
"""Tables of ``ss.table`` that runs of a job have; the one by sample is frozen of several samples alone."""
LEFT_OUT: Final = {
    "command", "config", "config_sha256", "created", "devices", "file", "finished", "model_sha256", "spinsim_version",
    "updates_per_ns",
}  # fmt: skip
"""Keys of JSON on the command line whose values differ from machine to machine, or from version to version."""

Value = bool | int | float | str | None
Columns = dict[str, list[Value]]
Tables = dict[str, Columns]


def frozen(result: Result, reweights: bool = False) -> Tables:
    """Tables, counters, lowest energies and words of a result, and averages at another temperature if asked for."""
    names = (by for by in TABLES.get(result.job, ()) if by != "sample" or result.model.samples > 1)
    tables = {by: _table(result, by) for by in names}
    tables |= {f"own {name}": _own(result, name) for name in getattr(result, "measured", {})}
    tables["counters"] = _counters(result)
    if isinstance(result, LadderResult):
        tables["words"] = _words(result)
    if reweights:
        tables["reweighted"] = _told(lambda: _reweighted(result))
    if result.job == "transfer":
        tables["levels"] = _levels(result)
    return tables


def of_run(name: str, folder: Path | None = None) -> tuple[Tables, Tables | None]:
    """Tables of a run in memory and, where a folder is given and the run is one of ``SAVED``, those of its file."""
    result, reweights = RUNS[name](), name in REWEIGHTED
    in_memory = frozen(result, reweights)
    if folder is None or name not in SAVED:
        return in_memory, None
    return in_memory, frozen(ss.load(result.save(folder / "run.h5")), reweights)


def of_command(name: str) -> Tables:
    """Numbers that a command line prints as JSON, and those of ``spinsim show`` on its file."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        done = _printed(*COMMANDS[name].split(), "--device", "cpu", "--out", "run.h5", "--json")
        return {name: done, "show": _printed("show", "run.h5", "--json")}


def path_of(name: str) -> Path:
    """The file of a run or a command."""
    return FOLDER / f"{name}.json"


def read(name: str) -> Tables:
    """The tables that a file holds."""
    tables = json.loads(path_of(name).read_text())
    for columns in tables.values():
        for column, values in columns.items():
            if isinstance(values, str):
                table, _, other = values.partition("/")
                columns[column] = tables[table][other]
    return dict(tables)


def differences(name: str, was: Tables, now: Tables) -> list[str]:
    """Lines on all that differs by more than its tolerance: run, table, column, row, what was and what is."""
    found = list(_differences(was, now))
    lines = [f"{name}: {line}" for line in found[:MOST_TOLD]]
    return lines + ([f"{name}: and {len(found) - MOST_TOLD} more"] if len(found) > MOST_TOLD else [])


def record(names: list[str]) -> None:
    """Write the files of some runs and commands, or of all, and delete files of no run."""
    makers: dict[str, Callable[[], Tables]] = {name: lambda name=name: of_run(name)[0] for name in RUNS}
    makers |= {f"command-{name}": lambda name=name: of_command(name) for name in COMMANDS}
    for name in names or makers:
        path_of(name).write_text(_as_text(makers[name]()))
    for path in FOLDER.glob("*.json"):
        if path.stem not in makers:
            path.unlink()


def _table(result: Result, by: str) -> Columns:
    def columns() -> dict[str, Any]:
        table = ss.table(result, by)
        table.attrs.clear()  # which each column would copy
        return table.to_dict("list")

    return _told(columns, MORE_ROWS.get(by, MOST_ROWS))


def _told(table: Callable[[], Mapping[str, Any]], most: int = MORE_ROWS["temperature"]) -> Columns:
    """A table, thinned, or the sentence that says why there is none."""
    try:
        columns = {str(name): np.asarray(values) for name, values in table().items()}
    except ss.InputError as refusal:
        return {"refused": [str(refusal)]}
    columns = {name: values for name, values in columns.items() if not _says_the_same(columns, name)}
    rows = len(next(iter(columns.values())))
    kept = np.unique(np.linspace(0, rows - 1, min(rows, most)).round().astype(int)) if rows else []
    return {"row": list(map(int, kept))} | {name: _values(values[kept]) for name, values in columns.items()}


def _says_the_same(columns: Mapping[str, np.ndarray], name: str) -> bool:
    """True of marks of trusted errors that say no more than the errors, which are NaN elsewhere."""
    errors = columns.get(name.removesuffix("_trusted") + "_error")
    return name.endswith("_trusted") and errors is not None and bool((np.isnan(errors) != columns[name]).all())


def _own(result: Result, name: str) -> Columns:
    """An observable of the user's own; of a job without tables of it, its mean over samples and replicas."""
    if isinstance(result, LadderResult):
        return _table(result, name)
    series = result.measured[name]  # type: ignore[attr-defined]
    means = series.mean(axis=(1, 2)).reshape(len(series), -1)
    return _told(lambda: {f"{name} {k}": means[:, k] for k in range(means.shape[1])})


def _counters(result: Result) -> Columns:
    """Whole numbers of a run and its lowest energies; no products with T, whose number follows from rounding."""
    names = ("attempts", "accepts", "round_trips", "best_energy", "cut", "local_measurements")
    arrays = {name: _attribute(result, name) for name in names}
    for kind in ("search", "anneals"):
        found = _attribute(result, kind)
        arrays |= {f"{kind}_{name}": _attribute(found, name) for name in ("done", "met_after", "restarts", "sweeps")}
    arrays["solution_energies"] = [one.energy for one in _attribute(result, "solutions") or ()] or None
    reduced, saved = _attribute(result, "reduced"), _attribute(result, "configurations")
    arrays["rows"] = len(result.sweep) if isinstance(result, LadderResult) else None
    arrays["measurements"] = _attribute(reduced, "measurements")
    arrays["saved_parity"] = None if saved is None else saved.parity[:: max(1, len(saved) // 20)]
    return {name: _values(np.asarray(array).ravel()) for name, array in arrays.items() if array is not None}


def _words(result: LadderResult) -> Columns:
    try:
        summary = summarize(result)
    except ss.InputError as refusal:
        return {"refused": [str(refusal)]}
    clauses = {"problems": summary.problems, "doubts": summary.doubts, "notes": summary.notes}
    return {"verdict": [summary.verdict]} | {name: list(words) for name, words in clauses.items()}


def _reweighted(result: Any) -> dict[str, Any]:
    """Averages between the two lowest temperatures of a run, or near the only one."""
    found = reweighted(result, result.temperature[:2].mean() * 1.02)
    return {"temperature": found.temperature, "effective": found.effective} | estimate_columns(found.estimates)


def _levels(result: Any) -> Columns:
    """Levels of each sample, temperature and sector, and the sums of squares of matrix elements of the lowest."""
    samples, points, sectors, levels = result.levels.shape
    of_point = {"gap": result.gap, "free_energy": result.free_energy_per_site, "energy": result.energy_per_site}
    of_point |= {"sigma_squares": (result.sigma[:, :, 0] ** 2).sum(axis=-1)}
    of_point |= {"sigma_sigma": result.sigma_sigma[:, :, 0].sum(axis=-1)}
    table = {
        "k": np.tile(result.k, samples),
        "sectors": [" ".join(result.sectors)] * (samples * points),
        **{name: values.ravel() for name, values in of_point.items()},
    }
    for sector, level in np.ndindex(sectors, levels):
        place = f"{result.sectors[sector]} {level}"
        table[f"level {place}"] = result.levels[:, :, sector, level].ravel()
        table[f"correlation_length {place}"] = result.correlation_length[:, :, sector, level].ravel()
    return _told(lambda: table)


def _attribute(thing: Any, name: str) -> Any:
    """An attribute, None where there is none or the run has nothing to say."""
    try:
        return getattr(thing, name, None)
    except ss.InputError:
        return None


def _values(array: Any) -> list[Value]:
    """Plain numbers and text of a column: None for NaN, text for infinity."""
    plain = (value.item() if isinstance(value, np.generic) else value for value in np.asarray(array).tolist())
    return [_finite(value) for value in plain]


def _finite(value: Value) -> Value:
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value


def _printed(*arguments: str) -> Columns:
    """The JSON that a command prints, a column for each key; of keys within keys joined by dots."""
    before, out = sys.argv, io.StringIO()
    sys.argv = ["spinsim", *arguments]
    try:
        with contextlib.redirect_stdout(out):
            cli.main()
    except SystemExit as end:
        if end.code:
            raise RuntimeError(f"{' '.join(arguments)} ended with status {end.code}") from end
    finally:
        sys.argv = before
    return dict(_flat("", json.loads(out.getvalue())))


def _flat(key: str, value: Any) -> Iterator[tuple[str, list[Value]]]:
    if isinstance(value, dict) and value:
        for name, inner in value.items():
            yield from _flat(f"{key}.{name}" if key else name, inner)
    elif key.rpartition(".")[2] in LEFT_OUT:
        yield key, ["left out"]
    else:
        yield key, np.ravel(np.array(value, object)).tolist()


def _as_text(tables: Tables) -> str:
    """JSON with a line for each column; of long columns that are equal all but the first say where that is."""
    first: dict[str, str] = {}
    blocks = []
    for table, columns in sorted(tables.items()):
        lines = []
        for column, values in sorted(columns.items()):
            text, here = json.dumps(values), f"{table}/{column}"
            there = first.setdefault(text, here)
            shown = text if there == here or len(text) <= len(there) else json.dumps(there)
            lines.append(f"  {json.dumps(column)}: {shown}")
        blocks.append(f" {json.dumps(table)}: {{\n" + ",\n".join(lines) + "\n }")
    return "{\n" + ",\n".join(blocks) + "\n}\n"


def _differences(was: Tables, now: Tables) -> Iterator[str]:
    for table in sorted(was.keys() | now.keys()):
        old, new = was.get(table, {}), now.get(table, {})
        for column in sorted(old.keys() | new.keys()):
            yield from _of_column(table, column, old.get(column), new.get(column), old.get("row"))


def _of_column(
    table: str, column: str, old: list[Value] | None, new: list[Value] | None, rows: list[Value] | None
) -> Iterator[str]:
    where = f"table {table}, column {column}"
    if old is None or new is None:
        yield f"{where}: {'is new' if old is None else 'is gone'}"
    elif len(old) != len(new):
        yield f"{where}: had {len(old)} rows, has {len(new)}"
    else:
        tolerance = _tolerance(table, column)
        for number, (a, b) in enumerate(zip(old, new, strict=True)):
            if not _agree(a, b, tolerance):
                yield f"{where}, row {rows[number] if rows else number}: was {a!r}, is {b!r}{_apart(a, b)}"


def _tolerance(table: str, column: str) -> float:
    """Relative tolerance of floats; those of counters, such as lowest energies, are exact."""
    if table == "counters" or column.rpartition(".")[2].startswith(("lowest_energy", "best_energy")):
        return 0.0
    kinds = {"overlap": DENSITIES, "gap": FITS, "levels": LEVELS}
    endings = {"_error": ERRORS, "_tau": TAUS}
    of_column = next((value for ending, value in endings.items() if column.endswith(ending)), AVERAGES)
    return kinds.get(table, of_column)


def _agree(a: Value, b: Value, tolerance: float) -> bool:
    if type(a) is float and type(b) is float and tolerance:
        return math.isclose(a, b, rel_tol=tolerance, abs_tol=ROUNDING)
    return type(a) is type(b) and a == b


def _apart(a: Value, b: Value) -> str:
    """Relative difference of two numbers in words."""
    if type(a) is not float or type(b) is not float or not a:
        return ""
    return f", {abs(b / a - 1):.1e} of it"


if __name__ == "__main__":
    os.environ.setdefault("COLUMNS", "100")
    if sys.argv[1:2] != ["--record"]:
        sys.exit("usage: python tests/support/corpus.py --record [NAME ...]")
    record(sys.argv[2:])
