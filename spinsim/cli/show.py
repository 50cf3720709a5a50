"""``spinsim show``: what is in a file, how far it got, the main numbers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from spinsim.overview import TemperOverview
    from spinsim.result import AnnealResult, TransferResult


def show(
    file: Annotated[Path, typer.Argument(help="A file that spinsim wrote.")],
    as_json: Annotated[bool, typer.Option("--json", help="The same as one JSON object.")] = False,
) -> None:
    """Say what is in a file, how far it got and its main numbers."""
    from spinsim.overview import overview
    from spinsim.result import load_anneal, load_transfer
    from spinsim.store import read_attributes

    job = read_attributes(file).get("job")
    if job == "transfer":
        _show_transfer(file, load_transfer(file), as_json)
        return
    result: AnnealResult | TemperOverview
    if job == "temper":
        result = overview(file)
        rows, replicas, run = result.steps, result.round_trips.shape[1], result.config.get("temper", {})
        planned = run["sweeps"] // run["measure_every"] if run else rows
        numbers, lines = _of_tempering(result)
    else:
        result = load_anneal(file)
        rows, replicas = len(result.energy), result.energy.shape[2]
        planned = result.config.get("anneal", {}).get("steps", rows)
        numbers, lines = _of_annealing(result)
    if as_json:
        typer.echo(
            json.dumps(result.attributes | {"file": str(file), "steps": rows, "planned_steps": planned} | numbers)
        )
        return
    model, attributes = result.model, result.attributes
    typer.echo(f"{file}: {attributes['job']} of {model.name}")
    size = f"{model.sites} sites, {model.bonds} bonds, {model.samples} samples"
    typer.echo(f"Model      {size}, quantum {model.quantum:g}")
    typer.echo(f"Run        {replicas} replicas, {attributes['engine']}, spinsim {attributes['spinsim_version']}")
    state = f"finished {attributes['finished']}" if result.finished else "NOT finished: the same command completes it"
    typer.echo(f"Progress   {rows} of {planned} steps, begun {attributes['created']}, {state}")
    typer.echo(f"Command    {attributes['command']}")
    typer.echo(f"Identity   {attributes['config_sha256']}")
    for line in lines:
        typer.echo(line)


def _of_annealing(result: AnnealResult) -> tuple[dict[str, Any], list[str]]:
    """Main numbers of an annealing run, for ``--json`` and as lines."""
    from spinsim.analysis.thermodynamics import thermodynamics
    from spinsim.cli.showing import lowest_lines

    lowest = result.lowest_energy
    if not len(result.temperature):
        return {"lowest_energy": None}, []
    table = thermodynamics(result)
    lines = lowest_lines(result.model, lowest)
    lines.append("       T        E/N      error        C/N      error      <|m|>      error")
    for k in sorted({round(k * (len(table.temperature) - 1) / 9) for k in range(10)}):
        row = (table.temperature, table.energy, table.energy_error, table.specific_heat, table.specific_heat_error,
               table.magnetization, table.magnetization_error)  # fmt: skip
        lines.append(" ".join(f"{column[k]:10.6f}" for column in row).lstrip(" "))
    return {"lowest_energy": float(lowest.min())}, lines


def _of_tempering(result: TemperOverview) -> tuple[dict[str, Any], list[str]]:
    """The same of a tempering run."""
    from spinsim.cli.temper import numbers, report

    if not result.steps:
        return {"round_trips": 0}, []
    return numbers(result), report(result)


def _show_transfer(file: Path, result: TransferResult, as_json: bool) -> None:
    """The whole of a transfer-matrix run."""
    from spinsim.cli.transfer import lacking, report, summary

    if as_json:
        typer.echo(json.dumps(result.attributes | {"file": str(file)} | summary(result)))
        return
    model, attributes = result.model, result.attributes
    typer.echo(f"{file}: {attributes['job']} of {model.name}")
    typer.echo(f"Model      a layer of {model.sites} sites, {model.bonds} bonds, {model.samples} samples")
    couplings = result.planned_rows // model.samples
    typer.echo(f"Run        {couplings} couplings, {attributes['engine']}, spinsim {attributes['spinsim_version']}")
    rows, planned = int(result.there.sum()), result.planned_rows
    state = "NOT finished" + ("" if rows == planned else ": the same command completes it")
    state = f"finished {attributes['finished']}" if result.finished else state
    typer.echo(f"Progress   {rows} of {planned} rows, begun {attributes['created']}, {state}")
    typer.echo(f"Command    {attributes['command']}")
    typer.echo(f"Identity   {attributes['config_sha256']}")
    for line in report(result) + lacking(result, file):
        typer.echo(line)
