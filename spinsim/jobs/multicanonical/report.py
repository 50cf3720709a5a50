"""Reports of multicanonical runs: before the run, at its end and for ``show``."""

from __future__ import annotations

from pathlib import Path

from spinsim.analysis.density import density_columns
from spinsim.analysis.tables import Columns, Report, Row
from spinsim.inputs.texts import count, quoted
from spinsim.jobs import reports
from spinsim.jobs.multicanonical.run import MulticanonicalPlan, MulticanonicalResult


def describe(plan: MulticanonicalPlan) -> str:
    walkers = f"{count(plan.model.samples, 'sample')} x {count(plan.config.run.number_of_replicas, 'walker')}"
    stages = f"{count(plan.of_job.wang_landau, 'sweep')} of Wang-Landau and {plan.of_job.sweeps} of production"
    return f"Multicanonical sampling of {plan.model.name}: {plan.model.size_in_words}, {walkers}, {stages}, on the CPU"


def outcome(plan: MulticanonicalPlan, result: MulticanonicalResult, rate: float | None) -> Report:
    following = [f"spinsim analyze --density {quoted(plan.path)}", f"spinsim plot {quoted(plan.path)}"]
    rate_row = Row(key="updates_per_ns", value=rate)
    return Report([*_findings(result), *reports.facts(plan.path, result), rate_row], following)


def show(path: Path, result: MulticanonicalResult) -> Report:
    m, rows = result.config["multicanonical"], len(result.record["measurements/sweep"])
    every = m["measure_every"]
    head = reports.head_of_steps(path, result, result.round_trips.shape[1], rows, m["sweeps"] // every, every)
    return Report([*head, *_findings(result)])


def _findings(result: MulticanonicalResult) -> list[Row]:
    note = "from energy 0 to the lowest known one and back"
    return [Row("Round trips", int(result.round_trips.sum()), note=note, key="round_trips")]


def columns(result: MulticanonicalResult, by: str) -> Columns:
    if by not in ("temperature", "energy"):
        raise reports.no_table(f"a multicanonical run by {by}", result)
    return density_columns(result.density) if by == "energy" else dict(result.density.averages())
