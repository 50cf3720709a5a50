"""Reports of transfer-matrix runs: before they begin, when they are done, and by ``show``."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, Final

import numpy as np

from spinsim.inputs.texts import count, quoted
from spinsim.jobs import reports
from spinsim.jobs.base import Told
from spinsim.jobs.reports import completed_by, head
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


def outcome(plan: TransferPlan, result: TransferResult, rate: float | None) -> Told:
    following = (
        [f"spinsim plot {quoted(plan.path)}"] if len(result.k) > 1 and (result.correlation_length > 0).any() else []
    )
    lines = _report(result) + _lacking(result, plan.path)
    return Told(reports.about(plan.path, result) | _summary(result), lines, following)


def show(path: Path, result: TransferResult) -> Told:
    model, attributes = result.model, result.attributes
    rows, planned = int(result.there.sum()), result.planned_rows
    state = "NOT finished" + ("" if rows == planned else f": {completed_by(path)}")
    state = f"finished {attributes['finished']}" if result.finished else state
    size = f"a layer of {model.size_in_words}, {count(model.samples, 'sample')}"
    run, progress = count(planned // model.samples, "coupling"), f"{rows} of {count(planned, 'row')}"
    lines = head(path, result, size, run, progress, state)
    lines += _report(result) + _lacking(result, path)
    return Told(reports.about(path, result) | _summary(result), lines)


def _report(result: TransferResult) -> list[str]:
    levels = [f"ln lambda_{i}" for i in range(min(result.levels.shape[-1], 3))]
    head = "  sample          T          k  sector" + "".join(f"{name:>17}" for name in levels)
    lines = [head + "   residual         xi"]
    for sample, point in np.argwhere(result.there):
        k = result.k[point]
        for i, sector in enumerate(result.sectors):
            at = sample, point, i
            numbers = "".join(f"{value:17.10f}" for value in result.levels[at][: len(levels)])
            reached = np.fmax.reduce(result.residual[at])
            length = _longest(result.correlation_length[at], result.in_noise[at])
            lines.append(f"{sample:8d} {1 / k:10.6f} {k:10.6f}  {sector:6}{numbers} {reached:10.1e} {length:>10}")
    if len(lines) > MOST_LINES + 1:
        lines = [*lines[: MOST_LINES + 1], f"... and {len(lines) - MOST_LINES - 1} more lines, all in the file"]
    if result.in_noise.any():
        lines.append(f"? {result.in_noise.sum()} lengths xi that rounding may have changed by more than 1 %")
    if result.levels.shape[:2] == (1, 1):
        energies = {"Free energy per site": result.free_energy_per_site, "Energy per site": result.energy_per_site}
        known = {name: float(table[0, 0]) for name, table in energies.items() if not math.isnan(table[0, 0])}
        lines += [f"{name:20}  {value:.10f}" for name, value in known.items()]
    return lines


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
    """Returns a sector's longest correlation length, with a ? where rounding matters, a dash where there is none."""
    known = [(float(xi), bool(hidden)) for xi, hidden in zip(lengths, in_noise, strict=True) if xi == xi]
    if not known:
        return "-"
    length, hidden = max(known)
    return f"{length:.6g}{'?' * hidden}"


def _summary(result: TransferResult) -> dict[str, Any]:
    names = ("residual", "correlation_length", "gap", "free_energy_per_site", "energy_per_site")
    return {
        "axes": ["sample", "point", "sector", "level"],
        "sectors": list(result.sectors),
        "rows": int(result.there.sum()),
        "planned_rows": result.planned_rows,
        "incomplete": np.argwhere(result.incomplete).tolist(),
        "in_noise": np.argwhere(result.in_noise).tolist(),
        "k": result.k.tolist(),
        "k_time": result.k_time.tolist(),
        "log_eigenvalue": result.levels.tolist(),
        **{name: getattr(result, name).tolist() for name in names},
    }
