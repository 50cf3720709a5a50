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


def describe(plan: EvolvePlan) -> str:
    e, model = plan.config.evolve, plan.model
    samples = f"{model.samples} samples x " if model.samples > 1 else ""
    replicas = count(plan.config.run.number_of_replicas, "replica")
    where = "CPU" if plan.device == "cpu" else "GPU"
    return (
        f"Evolving {model.name}: {model.size_in_words}, {samples}{replicas}, {e.protocol}, "
        f"{count(plan.rows, 'measurement')}, on the {where}"
    )


def outcome(plan: EvolvePlan, result: EvolveResult, rate: float | None) -> Report:
    following = [f"spinsim plot {quoted(plan.path)}"]
    rows = [*reports.facts(plan.path, result), *_numbers(result), Row(key="updates_per_ns", value=rate)]
    return Report([*_last(result), *rows], following)


def show(path: Path, result: EvolveResult) -> Report:
    planned = len(EvolveSettings(**EvolveSettings.stored(result.config[result.job])).measured)
    head = reports.head_of_steps(path, result, result.energy.shape[2], len(result.sweep), planned)
    rows = [*head, Row("Protocol", note=result.config[result.job]["protocol"])]
    if not len(result.sweep):
        return Report([*rows, *_numbers(result)])
    some = np.unique(np.linspace(0, len(result.sweep) - 1, 10).round().astype(int))
    table = in_columns(row.at(some).cells for row in averages(result) if row.label)
    return Report([*rows, *_last(result), *table, *_numbers(result)])


def _last(result: EvolveResult) -> list[Row]:
    """Return the last C(t, t_w) of each waiting time, with its error."""
    rows = []
    for number, waiting in enumerate(() if result.waiting is None else result.waiting.tolist()):
        t, correlation = result.aging(number)
        if len(t):
            last = f"after t = {t[-1]} sweeps of t_w = {waiting}"
            rows.append(Row("C(t, t_w)", float(correlation.value[-1]), float(correlation.error[-1]), note=last))
    return rows


def _numbers(result: EvolveResult) -> list[Row]:
    """Return rows that only ``--json`` prints."""
    averages_by_sweep = columns_of(averages(result)) if len(result.sweep) else None
    return unprinted({"measurements": len(result.sweep), "averages": averages_by_sweep})


def columns(result: EvolveResult, by: str) -> Columns:
    if not len(result.sweep):
        raise InputError(f"the run of {result.model.name} has no measurement yet: there is nothing to tabulate")
    if by != "temperature":
        raise InputError(f"there is no table by {by!r} of this run: its rows are measurements, leave by out")
    return columns_of(averages(result))


def averages(result: EvolveResult) -> list[Row]:
    """Return averages at each measurement as columns of a table; only columns with a label are printed."""
    sites = result.model.sites
    rows = [
        Row("sweep", result.sweep, key="sweep"),
        Row("T", result.temperature, key="temperature"),
        Row("h" * bool(result.field.any()), result.field, key="field"),
        Row("E/N", *mean_of(result.energy / sites), key="energy_per_site"),
        Row("<m>", *mean_of(result.magnetization / sites), key="magnetization"),
        Row("", *mean_of(np.abs(result.magnetization) / sites), key="abs_magnetization"),
    ]
    if result.staggered_magnetization is not None:
        of_sublattices = mean_of(np.abs(result.staggered_magnetization) / sites)
        rows.append(Row("", *of_sublattices, key="abs_staggered_magnetization"))
    if result.overlap_correlation is not None:
        lengths = result.coherence_lengths
        rows += [Row("xi_12", *lengths[:2], key="xi_12"), Row("", *lengths[2:], key="xi_23")]
    for number, waiting in enumerate(() if result.waiting is None else result.waiting.tolist()):
        of_pair = mean_of(result.correlation[..., number]) if result.correlation is not None else None
        rows += [] if of_pair is None else [Row("", *of_pair, key=f"correlation_{waiting}")]
    return rows
