"""Reports of transfer-matrix runs: before the run, at its end and for ``show``."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, Final

import numpy as np

from spinsim.analysis.tables import Columns, Report, Row, in_columns, unprinted
from spinsim.inputs.texts import count, quoted
from spinsim.jobs import reports
from spinsim.jobs.transfer.run import TransferPlan, TransferResult

MOST_LINES: Final = 20
MOST_NAMED: Final = 3


def describe(plan: TransferPlan) -> str:
    work, model = plan.work(), plan.model
    bits = model.sites - (work.sectors != ("all",))
    stored = count(work.room.basis, "stored vector") if work.room.basis else "no stored vectors"
    kind = "CPU" if plan.device == "cpu" else "GPU"
    where = f"the {kind}" if work.devices == 1 else f"{work.devices} {'ranks' if kind == 'CPU' else 'GPUs'}"
    return (
        f"Transfer matrix of {model.name}: {count(model.sites, 'spin')} a layer, 2^{bits} amplitudes, {stored}, "
        f"{count(model.samples, 'sample')} x {count(len(work.points.k), 'coupling')}, "
        f"{' and '.join(work.sectors)}, on {where}"
    )


def outcome(plan: TransferPlan, result: TransferResult, rate: float | None) -> Report:
    has_figure = len(result.k) > 1 and (result.correlation_length > 0).any()
    following = [f"spinsim plot {quoted(plan.path)}"] if has_figure else []
    return Report([*_findings(result, plan.path), *reports.facts(plan.path, result)], following)


def show(path: Path, result: TransferResult) -> Report:
    model, attributes = result.model, result.attributes
    rows, planned = int(result.there.sum()), result.planned_rows
    state = "NOT finished" + ("" if rows == planned else f": {reports.completed_by(path)}")
    state = f"finished {attributes['finished']}" if result.finished else state
    size = f"a layer of {model.size_in_words}, {count(model.samples, 'sample')}"
    run, progress = count(planned // model.samples, "coupling"), f"{rows} of {count(planned, 'row')}"
    return Report([*reports.head(path, result, size, run, progress, state), *_findings(result, path)])


def _findings(result: TransferResult, path: Path) -> list[Row | str]:
    rows: list[Row | str] = [*_levels(result)]
    if result.in_noise.any():
        rows.append(f"? {result.in_noise.sum()} lengths xi that rounding may have changed by more than 1 %")
    energies = {"free_energy_per_site": "Free energy per site", "energy_per_site": "Energy per site"}
    for name, label in energies.items():
        values = getattr(result, name)
        if values.size == 1 and not math.isnan(values[0, 0]):
            rows.append(Row(label, f"{values[0, 0]:.10f}"))
    names = ("k", "k_time", "residual", "correlation_length", "gap", *energies)
    numbers = {
        "axes": ["sample", "point", "sector", "level"],
        "sectors": list(result.sectors),
        "rows": int(result.there.sum()),
        "planned_rows": result.planned_rows,
        "incomplete": np.argwhere(result.incomplete),
        "in_noise": np.argwhere(result.in_noise),
        "log_eigenvalue": result.levels,
        **{name: getattr(result, name) for name in names},
    }
    return [*rows, *unprinted(numbers), *_lacking(result, path)]


def _levels(result: TransferResult) -> list[str]:
    """Return the table of levels, with at most ``MOST_LINES`` lines."""
    levels = min(result.levels.shape[-1], 3)
    head = "sample", "T", "k", "sector", *(f"ln lambda_{i}" for i in range(levels)), "residual", "xi"
    rows = [head]
    for sample, point in np.argwhere(result.there)[:MOST_LINES]:
        k = result.k[point]
        for i, sector in enumerate(result.sectors):
            at = sample, point, i
            length = _longest(result.correlation_length[at], result.in_noise[at])
            values = (f"{value:.10f}" for value in result.levels[at][:levels])
            reached = f"{np.fmax.reduce(result.residual[at]):.1e}"
            rows.append((str(sample), f"{1 / k:.6f}", f"{k:.6f}", sector, *values, reached, length))
    lines = in_columns(zip(*rows, strict=True), width=None)[: MOST_LINES + 1]
    more = int(result.there.sum()) * len(result.sectors) + 1 - len(lines)
    return [*lines, f"... and {more} more lines, all in the file"] if more else lines


def _lacking(result: TransferResult, path: Path) -> list[str]:
    rows = np.argwhere(result.incomplete)
    if not len(rows):
        return []
    named = ", ".join(f"sample {sample} at k = {result.k[point]:.6g}" for sample, point in rows[:MOST_NAMED])
    named += ", ..." if len(rows) > MOST_NAMED else ""
    return [
        f"INCOMPLETE: {len(rows)} of {count(result.planned_rows, 'row')} lack levels that did not converge, which are "
        f"nan ({named}); spinsim resume {quoted(path)} --most-steps N tries them again, N steps at most, and "
        "says what else helps"
    ]


def _longest(lengths: Any, in_noise: Any) -> str:
    """Return a sector's longest correlation length, with a ? if rounding matters, or a dash if there is none."""
    known = [(float(xi), bool(hidden)) for xi, hidden in zip(lengths, in_noise, strict=True) if xi == xi]
    if not known:
        return "-"
    length, hidden = max(known)
    return f"{length:.6g}{'?' * hidden}"


def columns(result: TransferResult, by: str) -> Columns:
    raise reports.no_table("a transfer run", result)
