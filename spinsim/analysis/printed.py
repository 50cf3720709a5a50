"""Averages with their errors as tables that fit a terminal, and as lists for ``--json``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from math import floor, isfinite, log10
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from spinsim.analysis.kinds import is_antiferromagnet, is_ferromagnet
from spinsim.errors import InputError
from spinsim.inputs.texts import WIDTH, wrapped
from spinsim.observables import LABELS, MAIN, in_field, printed_order

if TYPE_CHECKING:
    from spinsim.analysis.reweighted import Reweighting
    from spinsim.analysis.summary import Estimate, Summary
    from spinsim.model.ising import Ising

NO_ERROR: Final = "?"
_MOST_DECIMALS: Final = 8
_TAU: Final = "tau/sweeps"


def with_error(value: float, error: float, trusted: bool = True) -> str:
    """A number with the standard error of its last two digits in brackets, such as -1.7466(12); - for no number.

    An error that is not known, or cannot be trusted, is a question mark.
    """
    if not isfinite(value):
        return "-"
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


def main_columns(model: Ising, estimates: Mapping[str, Estimate]) -> list[str]:
    """The estimates that say most of a model, the most important first: connected in a field, else of m, m_s or q."""
    glassy = "overlap_squared" in estimates and not is_ferromagnet(model)
    kind = "field" if in_field(model) else "glass" if glassy else "magnet"
    if "abs_staggered_magnetization" in estimates and is_antiferromagnet(model):
        kind = "antiferromagnet"
    if model.graph.slices > 1:
        kind = "quantum glass" if glassy else "quantum magnet"
    own = [name for name in estimates if name not in LABELS]  # the user's
    return [name for name in MAIN[kind].split() if name in estimates] + own


def chosen_columns(text: str, estimates: Mapping[str, Estimate]) -> list[str]:
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in estimates:
            close = get_close_matches(name, estimates, 1, 0.5)
            hint = f"did you mean {close[0]!r}?" if close else f"choose among {', '.join(estimates)}"
            raise InputError(f"column {name!r} is none of this run's: {hint}")
    return names


def all_columns(estimates: Mapping[str, Estimate]) -> list[str]:
    return printed_order(list(estimates))


def table(
    averages: Summary | Reweighting, names: Sequence[str], beside: Mapping[str, Sequence[str]] | None = None
) -> list[str]:
    """A line for each temperature, cut into several tables where columns do not fit side by side.

    ``beside`` has more columns for the first table, by their heads.
    """
    first = [averages.axis.symbol, *(f"{value:.5g}" for value in averages.axis.values)]
    tables = [[first, *([head, *cells] for head, cells in (beside or {}).items())]]
    taus: list[list[npt.NDArray[np.float64]]] = [[]]
    for name in names:
        e = averages.estimates[name]
        column = [LABELS.get(name, name), *map(with_error, e.value.tolist(), e.error.tolist(), e.trusted.tolist())]
        if sum(map(_width, (*tables[-1], column, [_TAU]))) > WIDTH and taus[-1]:
            tables.append([first])
            taus.append([])
        tables[-1].insert(len(taus[-1]) + 1, column)
        taus[-1].append(e.tau)
    lines = []
    for number, (columns, of_each) in enumerate(zip(tables, taus, strict=True)):
        longest = np.max([np.zeros(len(averages.axis.values)), *of_each], axis=0)
        columns.append([_TAU, *(f"{tau:.3g}" for tau in longest)])
        rows = zip(*([cell.rjust(_width(column)) for cell in column] for column in columns), strict=True)
        lines += [""] * bool(number) + ["".join(row) for row in rows]
    if any(f"({NO_ERROR})" in line for line in lines):
        lines += wrapped(
            "no error can be given, as the series spans fewer than 20 autocorrelation times, does not move, has no "
            "value without some samples, or there are two or three samples.",
            "(?): ",
        )
    return lines


def _width(column: list[str]) -> int:
    return max(map(len, column)) + 2


def as_tables(summary: Summary) -> dict[str, object]:
    """Returns everything, for ``--json``; errors that cannot be trusted are NaN."""
    tables: dict[str, object] = {summary.axis.name: summary.axis.values.tolist()}
    for name, e in summary.estimates.items():
        tables[name] = e.value.tolist()
        tables[f"{name}_error"] = np.where(e.trusted, e.error, np.nan).tolist()
        tables[f"{name}_tau"] = e.tau.tolist()
    tables |= {"verdict": summary.verdict, "problems": list(summary.problems), "doubts": list(summary.doubts)}
    tables["notes"] = summary.notes
    tables["equilibrated"] = {name: e.equilibrated for name, e in summary.equilibration.items()}
    return tables
