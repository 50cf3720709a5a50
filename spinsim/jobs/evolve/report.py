"""Reports of runs out of equilibrium: before the run, at its end and for ``show``; tables."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from spinsim.analysis.aging import mean_of
from spinsim.analysis.tables import Columns, Report, Row, columns_of, in_columns, unprinted
from spinsim.errors import InputError
from spinsim.inputs.texts import count, quoted
from spinsim.jobs import reports
from spinsim.jobs.evolve.result import EvolveResult
from spinsim.jobs.evolve.run import EvolvePlan
from spinsim.jobs.evolve.settings import EvolveSettings
from spinsim.jobs.plotting import check_begun


def describe(plan: EvolvePlan) -> str:
    model, replicas = plan.model, count(plan.config.run.number_of_replicas, "replica")
    size = f"{model.size_in_words}, {count(model.samples, 'sample')} x {replicas}"
    rows, where = count(plan.rows, "measurement"), "CPU" if plan.device == "cpu" else "GPU"
    return f"Evolving {model.name}: {size}, {plan.config.evolve.protocol}, {rows}, on the {where}"


def outcome(plan: EvolvePlan, result: EvolveResult, rate: float | None) -> Report:
    rows = [*_table(result), *reports.facts(plan.path, result), Row(key="updates_per_ns", value=rate)]
    return Report(rows, [f"spinsim plot {quoted(plan.path)}"])


def show(path: Path, result: EvolveResult) -> Report:
    settings = EvolveSettings(**EvolveSettings.stored(result.config[result.job]))
    replicas, rows = result.energy.shape[2], len(result.sweep)
    head = reports.head_of_steps(path, result, replicas, rows, len(settings.schedule.measured))
    return Report([*head, Row("Protocol", note=settings.protocol), *_table(result)])


def _table(result: EvolveResult) -> list[Row | str]:
    """Return some of the averages as lines, and all of them for ``--json``."""
    if not len(result.sweep):
        return list(unprinted({"averages": None}))
    rows, some = averages(result), np.unique(np.linspace(0, len(result.sweep) - 1, 10).round().astype(int))
    return [*in_columns(row.at(some).cells for row in rows if row.label), *unprinted({"averages": columns_of(rows)})]


def columns(result: EvolveResult, by: str) -> Columns:
    check_begun(result.model, len(result.sweep))
    if by != "temperature":
        raise InputError(f"there is no table by {by!r} of this run: its rows are measurements, leave by out")
    return columns_of(averages(result))


def averages(result: EvolveResult) -> list[Row]:
    """Return averages at each measurement as columns of a table; only columns with a label are printed."""
    sites, staggered = result.model.sites, result.staggered_magnetization
    rows = [
        Row("sweep", result.sweep, key="sweep"),
        Row("T", result.temperature, key="temperature"),
        Row("h" * bool(result.field.any()), result.field, key="field"),
        Row("E/N", *mean_of(result.energy / sites), key="energy_per_site"),
        Row("<m>", *mean_of(result.magnetization / sites), key="magnetization"),
        Row("", *mean_of(np.abs(result.magnetization) / sites), key="abs_magnetization"),
    ]
    if staggered is not None:
        rows.append(Row("", *mean_of(np.abs(staggered) / sites), key="abs_staggered_magnetization"))
    if result.overlap_correlation is not None:
        rows += [Row(f"xi_{k}", *xi, key=f"xi_{k}") for k, xi in zip((12, 23), result.coherence_lengths, strict=True)]
    for number, waiting in enumerate(result.waiting.tolist()):
        rows.append(Row(f"t_w = {waiting}", *mean_of(result.correlation[..., number]), key=f"correlation_{waiting}"))
    return rows
