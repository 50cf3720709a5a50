"""Rows and columns of a run, in one form for the terminal, ``--json``, CSV files and pandas.

A job gives its facts and averages as rows (``Row``). A row whose value is a number is a line of a report; rows whose
values are arrays are the columns of a table.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import floor, isfinite, log10
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from spinsim.analysis.kinds import is_antiferromagnet, is_ferromagnet
from spinsim.analysis.runs import AnyRun, Array, Tempered, lowest, sample_of, samples_in
from spinsim.errors import InputError
from spinsim.inputs.arguments import public
from spinsim.inputs.texts import WIDTH, alike, count, wrapped
from spinsim.machine.files import write_outputs
from spinsim.model.ising import Ising, described
from spinsim.observables.quantities import in_field
from spinsim.observables.table import LABELS, MAIN, TABLE, printed_order
from spinsim.registry import job_of
from spinsim.result import Result, Run, as_result, runs_in
from spinsim.store.contents import ENERGY, INVERSE, TEMPERATURE

if TYPE_CHECKING:
    import pandas as pd

    from spinsim.analysis.reweighted import Reweighting
    from spinsim.analysis.summary import Estimate, Summary


Columns = dict[str, npt.NDArray[np.generic]]

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
NO_ERROR: Final = "?"
_MOST_DECIMALS: Final = 8
_TAU: Final = "tau/sweeps"
_NEAR_FLOOR: Final = 0.6  # tau over the interval of measurements, up to which these are as good as independent
_ROUNDING: Final = 1e-15  # numbers of order 1 have no digits beyond
_AFTER_FAILED_TESTS: Final = (
    "One run in twenty that is in equilibrium fails these tests by chance: judge many runs by their pool. spinsim "
    "resume FILE --sweeps N makes a run longer; the tests leave its first eighth out. No option drops measurements "
    "afterwards: start anew with a larger --thermalize. Of temper runs, spinsim analyze FILE --csv bins.csv --by bin "
    "has energies and overlaps of the last half alone."
)
_LABEL: Final = 15  # width of the labels of a report


@dataclass(frozen=True)
class Row:
    """A fact of a run, or a column of its averages."""

    label: str = ""  # in front of the line, or above the column; empty in rows that are not printed
    value: Any = None  # number, text or array; None where the note says all
    error: Any = None  # standard error of the value
    unit: str = ""  # of the value, behind it
    note: str = ""  # end of the line
    key: str = ""  # name in ``--json`` and of the column; empty in rows that only a terminal prints

    @property
    def numbers(self) -> dict[str, Any]:
        """The value and its error by their names in ``--json`` and in tables."""
        if not self.key:
            return {}
        return {self.key: self.value} | ({} if self.error is None else {f"{self.key}_error": self.error})

    @property
    def lines(self) -> list[str]:
        """The line on a terminal; a note alone is broken into several."""
        head = f"{self.label}  ".ljust(_LABEL)
        if not self.label:
            return []
        if self.value is None:
            return wrapped(self.note, head)
        value = f"{self.value:.10g}" if isinstance(self.value, float) else str(self.value)
        value = value if self.error is None else with_error(self.value, self.error)
        return [head + " ".join(filter(None, (value, self.unit, self.note)))]

    @property
    def cells(self) -> list[str]:
        """The column on a terminal below its label, numbers with their errors in brackets."""
        if self.error is not None:
            return [self.label, *map(with_error, self.value.tolist(), self.error.tolist())]
        return [self.label, *(f"{value:.5g}" if value == value else "-" for value in self.value.tolist())]

    def at(self, places: Any) -> Row:
        """The column at some places only."""
        error = None if self.error is None else self.error[places]
        return replace(self, value=self.value[places], error=error)


@dataclass(frozen=True)
class Report:
    """Report of a command on a run: rows, and lines of tables between them."""

    rows: Sequence[Row | str] = ()
    next_commands: Sequence[str] = ()  # commands that go on from here
    verdict: str = ""  # verdict of a search on its target, the last line
    missed: bool = False  # True if the search ended without meeting its target

    @property
    def lines(self) -> list[str]:
        """Lines for a terminal."""
        return [line for row in self.rows for line in ([row] if isinstance(row, str) else row.lines)]

    @property
    def numbers(self) -> dict[str, Any]:
        """Numbers for ``--json``, arrays as lists."""
        return {
            name: _as_lists(value) for name, value in columns_of(r for r in self.rows if isinstance(r, Row)).items()
        }

    def with_note(self, note: str) -> Report:
        """The report with a note at its end; the same for an empty one."""
        return replace(self, rows=[*self.rows, Row("Note", note=note)]) if note else self


def unprinted(numbers: Mapping[str, Any]) -> list[Row]:
    """Rows for ``--json`` alone."""
    return [Row(key=name, value=value) for name, value in numbers.items()]


def columns_of(rows: Iterable[Row]) -> dict[str, Any]:
    """The values of rows and their errors by name."""
    return {name: value for row in rows for name, value in row.numbers.items()}


def _as_lists(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _as_lists(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_as_lists(one) for one in value]
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


def in_columns(columns: Iterable[Sequence[str]], width: int | None = WIDTH) -> list[str]:
    """Lines of a table from columns of cells, aligned to the right; the first cell of a column is its head.

    Columns beyond the width follow in further tables, which repeat the first column.
    """
    first, *rest = columns
    tables = [[first]]
    for column in rest:
        if width is not None and len(tables[-1]) > 1 and sum(map(_width, [*tables[-1], column])) > width:
            tables.append([first])
        tables[-1].append(column)
    lines: list[str] = []
    for number, table_columns in enumerate(tables):
        rows = zip(*([cell.rjust(_width(column)) for cell in column] for column in table_columns), strict=True)
        lines += [""] * bool(number) + ["".join(row) for row in rows]
    return lines


def _width(column: Sequence[str]) -> int:
    return max(map(len, column)) + 2


@public
def table(
    run: Run | Iterable[Run], by: str = "temperature", columns: str | Sequence[str] | None = None
) -> pd.DataFrame:
    """Averages of a run, or of several below each other, as a pandas table.

    The rows depend on ``by``:

    * ``temperature``: a row for each temperature. Each observable has its value, ``<name>_error``, and for tempering
      runs ``<name>_tau`` in sweeps and ``<name>_trusted``; where this is False the error is NaN. For annealing runs,
      whose rows are the steps, ``specific_heat_trusted`` is True if the specific heat agrees with the slope of the
      energy; if not, the specific heat is NaN. Populations, and runs in a changing field, are not compared: the mark is
      False, but the specific heat is given. Populations also have free energy, entropy and families; quantum anneals
      have ``gamma`` and energies only.
    * ``sample``: a row for each sample and temperature. Errors come from the sample's own series (of
      an annealing run, from its replicas). ``lowest_energy_per_site`` is the lowest that any replica reached, ``hits``
      the number of replicas that reached it.
    * ``overlap``: a row for each sample, temperature and bin of q:
      ``probability_density``, the sample's P(q), with its error, and the ``width`` of the bin.
    * ``bin``: a row for each temperature and logarithmic bin of the run, the last of which is its second half: first
      and last sweep, number of measurements, averages with errors, and ``<name>_verdict`` over all bins.
    * ``energy``: of a multicanonical run, a row for each energy (and sample), with ln g and its error; by
      ``temperature``, such a run has averages at temperatures around the peak of the specific heat.
    * ``method``: of a solve run, a row for each method: seconds, sweeps, lowest energy, independent starts and hits.
    * the name of an observable of your own: a row for each temperature and element of the array (``<name>_axis_0``
      and so on).

    The documentation has the formula of each average (reference/averages). For several runs the first columns are
    ``file``, ``model``, ``size`` and ``sites``. Columns that a run lacks are NaN.

    Args:
        run: A result, or a file that spinsim wrote; or a list of these.
        by: ``temperature``, ``sample`` or, of a tempering run, ``bin`` and, if it has two copies or more, ``overlap``;
            of a multicanonical run ``temperature`` or ``energy``; of a solve run ``method``.
        columns: Averages to show, each with its error: their names, or ``main`` for the few that say most of the model,
            as ``spinsim analyze`` prints them. By default all of them, those few first.

    Returns:
        The table, with the units of its columns in ``attrs["units"]``.

    Raises:
        InputError: for an unknown ``by``, too few measurements, a column that the table lacks, and files that ``load``
            refuses.
    """
    import pandas as pd  # takes longer to load than a small run

    tables, models, is_one = [], [], isinstance(run, Result | str | os.PathLike)
    for one in runs_in(run):  # one at a time, as files may be large
        result = as_result(one)
        own = job_of(result.job).report.columns(result, by)
        tables.append(pd.DataFrame(own if is_one else _named_columns(one, result.model, own)))
        models.append(result.model)
    whole = arranged(pd.concat(tables, ignore_index=True), models)
    return whole if columns is None else _with_columns(whole, models, columns)


def _with_columns(whole: pd.DataFrame, models: list[Ising], columns: str | Sequence[str]) -> pd.DataFrame:
    """Columns of a table that identify its rows, and some averages with their errors."""
    names = list(whole.columns)
    averages = [name for name in names if f"{name}_error" in names]
    if columns == "main":
        chosen = list(dict.fromkeys(name for model in models for name in main_columns(model, dict.fromkeys(averages))))
    else:
        chosen = chosen_columns(",".join([columns] if isinstance(columns, str) else columns), dict.fromkeys(averages))
    first = next((k for k, name in enumerate(names) if name in averages), len(names))
    return whole[[*names[:first], *(name for one in chosen for name in (one, f"{one}_error"))]]


def _named_columns(run: Run, model: Ising, columns: Columns) -> Columns:
    """Columns of one of several runs, behind columns that identify the run."""
    file, about = "" if isinstance(run, Result) else os.fspath(run), described(model)
    names = {"file": file, "model": model.name, "size": about.get("size", ""), "sites": about["sites"]}
    return {name: np.full(len(next(iter(columns.values()))), value) for name, value in names.items()} | columns


def columns_of_samples(
    run: AnyRun, columns: Callable[[AnyRun], Columns], best_energy: Callable[[AnyRun], Array | None]
) -> Columns:
    """Columns of all samples, one below the other; ``best_energy`` gives lowest energies (1, replicas) or None."""
    tables = []
    for sample in range(samples_in(run)):
        one = sample_of(run, sample)
        own, best = columns(one), best_energy(one)
        rows = len(next(iter(own.values())))
        least = None if best is None or not best.size else lowest(one.model, best.reshape(1, -1))
        energy, hits = (least.mean, least.hits[0]) if least else (np.nan, 0)
        ends = {"lowest_energy_per_site": np.full(rows, energy), "hits": np.full(rows, hits)}
        tables.append({"sample": np.full(rows, sample)} | own | ends)
    return below_each_other(tables)


def below_each_other(tables: list[Columns]) -> Columns:
    return {name: np.concatenate([columns[name] for columns in tables]) for name in tables[0]}


def summary_columns(summary: Summary) -> Columns:
    return {summary.axis.name: summary.axis.values} | estimate_columns(summary.estimates)


def estimate_columns(estimates: dict[str, Estimate]) -> Columns:
    """Four columns of each estimate, without errors that cannot be trusted."""
    columns: Columns = {}
    for name, e in estimates.items():
        columns |= {name: e.value, f"{name}_error": _trusted_error(e)}
        columns |= {f"{name}_tau": e.tau, f"{name}_trusted": e.trusted}
    return columns


def _trusted_error(e: Estimate) -> Array:
    return np.where(e.trusted, e.error, np.nan)


def own_columns(result: Tempered, name: str) -> Columns:
    """Columns of a user-defined observable, a row for each place of the ladder and element of an array."""
    from spinsim.analysis.summary import own_estimate

    shape = result.measured[name].shape[3:]  # type: ignore[attr-defined]
    place, *elements = np.indices(shape).reshape(len(shape), -1)
    where = {f"{name}_axis_{k}": element for k, element in enumerate(elements)}
    return {result.axis.name: result.axis.values[place], **where} | estimate_columns({name: own_estimate(result, name)})


def in_order(names: list[str], models: Iterable[Ising]) -> list[str]:
    """Return the names of columns in the order of ``arranged``."""
    first = next((place for place, name in enumerate(names) if name in _OBSERVABLES), len(names))
    front, rest = names[:first], names[first:]
    there = dict.fromkeys(name for name in rest if name in _OBSERVABLES)
    leading = dict.fromkeys(name for model in models for name in main_columns(model, there))
    main = [name for one in leading for name in (one, f"{one}_error") if name in rest]
    last = [name for ending in _LAST for name in rest if name.endswith(ending)]
    return [*front, *main, *(name for name in rest if name not in {*main, *last}), *last]


def arranged(frame: pd.DataFrame, models: Iterable[Ising]) -> pd.DataFrame:
    """Return a table that begins with the main observables of these models and ends with autocorrelation times.

    Columns in front of the first observable, such as the temperature, stay there. ``frame.attrs["units"]`` has the unit
    of each column by name, 1 for pure numbers.
    """
    table = frame[in_order(list(frame.columns), models)]
    table.attrs["units"] = {
        name: "sweeps" if name.endswith("_tau") else _UNITS.get(name.removesuffix("_error"), "1")
        for name in table.columns
    }
    return table


def write_csv(columns: Columns, models: Iterable[Ising], path: Path, overwrite: bool = False) -> None:
    """Write columns of runs of these models as CSV: numbers read back exactly, NaN is empty.

    ``overwrite`` may replace a different file.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    names = in_order(list(columns), models)
    writer.writerow(names)
    for row in zip(*(columns[name].tolist() for name in names), strict=True):
        writer.writerow(["" if value != value else value for value in row])
    write_outputs({path: ("csv", text.getvalue().encode())}, overwrite)


def with_error(value: float, error: float, trusted: bool = True) -> str:
    """Number with the error in its last two digits, such as -1.7466(12), or with (?); - for NaN and infinity."""
    if not isfinite(value):
        return "-"
    value = 0.0 if abs(value) < _ROUNDING else value
    if not trusted or not isfinite(error):
        return f"{value:.5g}({NO_ERROR})"
    if error == 0:
        return f"{value:.6g}(0)"
    decimals = min(1 - floor(log10(error)), _MOST_DECIMALS)
    if round(error, decimals) * 10**decimals >= 100:  # 0.0996 is 0.10
        decimals -= 1
    if decimals <= 0:
        return f"{value:.0f}({error:.0f})"
    digits = f"{error:.{decimals}f}" if error >= 1 else str(max(1, round(error * 10**decimals)))
    return f"{value:.{decimals}f}({digits})"


def lowest_in_words(model: Ising, best_energy: Array) -> str:
    """Best energy with the constant of the problem, or best cut, and the number of replicas that met it.

    ``best_energy`` (samples, replicas) is without the constant. Over several samples it is a mean per site.
    """
    found, replicas = lowest(model, best_energy), count(best_energy.shape[1], "replica")
    met = " to ".join(map(str, dict.fromkeys([found.hits.min(), found.hits.max()])))
    least = float(best_energy.min())
    best = f"energy {least + model.offset:.10g}" if model.maxcut_weight is None else f"cut {model.cut(least):.10g}"
    if model.samples > 1:
        best = f"energy per site {with_error(found.mean, found.error)} on average over samples"
    return f"best {best}, met by {met} of {replicas}"


def main_columns(model: Ising, estimates: Mapping[str, Any]) -> list[str]:
    """Main estimates of a model, the most important first: connected ones in a field, else those with m, m_s or q."""
    glassy = "overlap_squared" in estimates and not is_ferromagnet(model)
    kind = "field" if in_field(model) else "glass" if glassy else "magnet"
    if "abs_staggered_magnetization" in estimates and is_antiferromagnet(model):
        kind = "antiferromagnet"
    if model.graph.slices > 1:
        kind = "quantum glass" if glassy else "quantum magnet"
    own = [name for name in estimates if name not in LABELS]  # the user's
    return [name for name in MAIN[kind].split() if name in estimates] + own


def chosen_columns(text: str, estimates: Mapping[str, Any]) -> list[str]:
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in estimates:
            close = alike(name, estimates)
            hint = f"did you mean {close[0]!r}?" if close else f"choose among {', '.join(estimates)}"
            raise InputError(f"column {name!r} is none of this run's: {hint}")
    return names


def all_columns(estimates: Mapping[str, Estimate]) -> list[str]:
    return printed_order(list(estimates))


def printed_table(
    averages: Summary | Reweighting,
    names: Sequence[str],
    more: Mapping[str, Sequence[str]] = MappingProxyType({}),
    width: int | None = WIDTH,
) -> list[str]:
    """Lines for each temperature: estimates by name, further columns, and the longest autocorrelation times of these.

    Errors that cannot be trusted are shown as question marks. Lines below the table explain these, and autocorrelation
    times of independent measurements.
    """
    shown = {name: averages.estimates[name] for name in names}
    longest = np.max([np.zeros(len(averages.axis.values)), *(e.tau for e in shown.values())], axis=0)
    columns = [Row(averages.axis.symbol, averages.axis.values).cells]
    columns += [Row(LABELS.get(name, name), e.value, _trusted_error(e)).cells for name, e in shown.items()]
    columns += [[head, *cells] for head, cells in more.items()]
    lines = in_columns([*columns, [_TAU, *(f"{tau:.3g}" for tau in longest)]], width)
    if any(f"({NO_ERROR})" in line for line in lines):
        lines += wrapped(
            "a value without an error. One sample has errors if its run spans 64 autocorrelation times and 192 times "
            "of the walk along the ladder, and if five rare events or more carry the variance. Several samples have "
            "errors if they are four or more, and differ.",
            f"({NO_ERROR}): ",
        )
    if (longest < _NEAR_FLOOR * averages.every).any():
        lines += wrapped(
            f"autocorrelation time. Its floor is half of {count(averages.every, 'sweep')}, the interval of "
            "measurements: values near it belong to independent measurements.",
            f"{_TAU}: ",
        )
    return lines


def verdict_rows(summary: Summary) -> list[Row]:
    """Rows with the verdict and, if tests have failed, their false-alarm rate and what may be done."""
    rows = [Row("Verdict", note=summary.verdict)]
    if summary.by_chance:
        rows.append(Row("Note", note=_AFTER_FAILED_TESTS))
    return rows


def as_tables(summary: Summary) -> dict[str, object]:
    """Return all tables for ``--json``; errors that cannot be trusted are NaN."""
    marks = {f"{name}_trusted" for name in summary.estimates}
    columns = summary_columns(summary)
    tables: dict[str, object] = {name: column.tolist() for name, column in columns.items() if name not in marks}
    tables |= {"verdict": summary.verdict, "problems": list(summary.problems), "doubts": list(summary.doubts)}
    tables["notes"] = summary.notes
    tables["equilibrated"] = {name: e.equilibrated for name, e in summary.equilibration.items()}
    return tables
