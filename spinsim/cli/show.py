"""``spinsim show``: what is in a file, how far it got, the main numbers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer


def show(
    file: Annotated[Path, typer.Argument(help="A file that spinsim wrote.")],
    as_json: Annotated[bool, typer.Option("--json", help="The same as one JSON object.")] = False,
) -> None:
    """Say what is in a file, how far it got and its main numbers."""
    from spinsim.analysis.thermodynamics import thermodynamics
    from spinsim.cli.anneal import report
    from spinsim.result import load

    result = load(file)
    lowest = result.lowest_energy
    planned = result.config.get("anneal", {}).get("steps", len(result.temperature))
    if as_json:
        facts = {"file": str(file), "steps": len(result.temperature), "planned_steps": planned}
        typer.echo(
            json.dumps(result.attributes | facts | {"lowest_energy": float(lowest.min()) if lowest.size else None})
        )
        return
    model, attributes = result.model, result.attributes
    typer.echo(f"{file}: {attributes['job']} of {model.name}")
    size = f"{model.sites} sites, {model.bonds} bonds, {model.samples} samples"
    typer.echo(f"Model      {size}, quantum {model.quantum:g} |J|")
    version = attributes["spinsim_version"]
    typer.echo(f"Run        {result.energy.shape[2]} replicas, {attributes['engine']}, spinsim {version}")
    state = f"finished {attributes['finished']}" if result.finished else "NOT finished: the same command completes it"
    typer.echo(f"Progress   {len(result.temperature)} of {planned} steps, begun {attributes['created']}, {state}")
    typer.echo(f"Command    {attributes['command']}")
    typer.echo(f"Identity   {attributes['config_sha256']}")
    if not len(result.temperature):
        return
    for line in report(model, lowest):
        typer.echo(line)
    table = thermodynamics(result)
    typer.echo("       T        E/N      error        C/N      error      <|m|>      error")
    chosen = sorted({round(k * (len(table.temperature) - 1) / 9) for k in range(10)})
    for k in chosen:
        row = (table.temperature, table.energy, table.energy_error, table.specific_heat, table.specific_heat_error,
               table.magnetization, table.magnetization_error)  # fmt: skip
        typer.echo(" ".join(f"{column[k]:10.6f}" for column in row).lstrip(" "))
