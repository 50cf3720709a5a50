"""Reports of multicanonical runs: before the run, at its end and for ``show``."""

from __future__ import annotations

from pathlib import Path

from spinsim.analysis.density import density_columns
from spinsim.analysis.tables import Columns, Report, Row
from spinsim.errors import InputError
from spinsim.inputs.texts import count, quoted
from spinsim.jobs import reports
from spinsim.jobs.multicanonical.run import MulticanonicalPlan, MulticanonicalResult


def describe(plan: MulticanonicalPlan) -> str:
    m, model = plan.config.multicanonical, plan.model
    samples = f"{model.samples} samples x " if model.samples > 1 else ""
    return (
        f"Multicanonical sampling of {model.name}: {model.size_in_words}, {samples}"
        f"{count(plan.config.run.number_of_replicas, 'walker')}, {count(m.wang_landau, 'sweep')} of Wang-Landau "
        f"sampling and {m.sweeps} with fixed weights, on the CPU"
    )


def outcome(plan: MulticanonicalPlan, result: MulticanonicalResult, rate: float | None) -> Report:
    path = quoted(plan.path)
    following = [f"spinsim analyze --density {path}", f"spinsim plot {path}"]
    facts = [*reports.facts(plan.path, result), Row(key="updates_per_ns", value=rate)]
    return Report([*_findings(result), *facts], following)


def show(path: Path, result: MulticanonicalResult) -> Report:
    m = result.config["multicanonical"]
    every, replicas = m["measure_every"], result.visits.shape[1]
    head = reports.head_of_steps(path, result, replicas, len(result.sweep), m["sweeps"] // every, every)
    return Report([*head, *_findings(result)])


def _findings(result: MulticanonicalResult) -> list[Row]:
    met, trips = result.visits.sum(axis=1) > 0, result.round_trips
    if not met.any():
        return [Row("Stage", note="Wang-Landau, which finds the weights")]
    return [
        Row("Energies", int(met.sum(axis=1).max()), key="levels"),
        Row("Lowest energy", float(result.level_energy[met].min()), key="lowest_energy"),
        Row("Round trips", int(trips.sum()), key="round_trips", note=f"between energy 0 and the lowest known energy, "
            f"of a walker at least {int(trips.min())}"),
    ]  # fmt: skip


def columns(result: MulticanonicalResult, by: str) -> Columns:
    if by == "temperature":
        return dict(result.density.averages(result.density.usual_temperatures))
    if by == "energy":
        return density_columns(result.density)
    raise InputError(f"a table of a multicanonical run has no lines by {by!r}: choose temperature or energy")
