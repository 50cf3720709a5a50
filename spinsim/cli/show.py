"""``spinsim show``: what is in a file, how far it got, the main numbers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spinsim.cli.saying import say

if TYPE_CHECKING:
    from spinsim.model.ising import Ising
    from spinsim.overview import TemperOverview
    from spinsim.result import AnnealResult, TransferResult


def show(
    files: Annotated[list[Path], typer.Argument(help="Files that spinsim wrote.", metavar="FILE...")],
    as_json: Annotated[
        bool, typer.Option("--json", help="The same as one JSON object, a list of them for several files.")
    ] = False,
) -> None:
    """Say what is in files, how far their runs got and their main numbers."""
    shown = [_of_file(file) for file in files]
    if as_json:
        say(json.dumps(shown[0][0] if len(files) == 1 else [numbers for numbers, _ in shown]))
        return
    for number, (_, lines) in enumerate(shown):
        for line in [""] * bool(number) + lines:
            say(line)


def _of_file(file: Path) -> tuple[dict[str, Any], list[str]]:
    """What is to be said of a file, for ``--json`` and as lines."""
    from spinsim.overview import overview
    from spinsim.result import load_anneal, load_transfer
    from spinsim.store import read_attributes

    job = read_attributes(file).get("job")
    if job == "transfer":
        return _of_transfer(file, load_transfer(file))
    result: AnnealResult | TemperOverview
    if job == "temper":
        result = overview(file)
        rows, replicas, run = result.steps, result.round_trips.shape[1], result.config.get("temper", {})
        planned = run["sweeps"] // run["measure_every"] if run else rows
        numbers, lines = _of_tempering(file, result)
    else:
        result = load_anneal(file)
        rows, replicas = len(result.energy), result.energy.shape[2]
        planned = result.config.get("anneal", {}).get("steps", rows)
        numbers, lines = _of_annealing(result)
    model, attributes = result.model, result.attributes
    state = f"finished {attributes['finished']}" if result.finished else f"NOT finished: {_next(file)}"
    head = [
        f"{file}: {attributes['job']} of {model.name}",
        f"Model      {model.sites} sites, {model.bonds} bonds, {model.samples} samples, quantum {model.quantum:g}",
        *_rounded(model),
        f"Run        {replicas} replicas, {attributes['engine']}, spinsim {attributes['spinsim_version']}",
        f"Progress   {rows} of {planned} steps, begun {attributes['created']}",
        f"           {state}",
        *_origin(attributes),
    ]
    return result.attributes | {"file": str(file), "steps": rows, "planned_steps": planned} | numbers, head + lines


def _rounded(model: Ising) -> list[str]:
    """What rounding took, where that matters."""
    from spinsim.cli.averages import wrapped

    return wrapped(model.caution, "Rounded    ") if model.caution else []


def _next(file: Path) -> str:
    """Who completes a run."""
    from spinsim.files import is_locked

    return "another process is at it" if is_locked(file) else "the same command completes it"


def _origin(attributes: dict[str, str]) -> list[str]:
    """What was typed, the identity of the run, and how it became as long as it is."""
    from spinsim.run.identity import history_of

    lines = [f"Command    {attributes['command']}", f"Identity   {attributes['config_sha256']}"]
    for number, entry in enumerate(history_of(attributes)):
        lines.append(f"{'' if number else 'History':11}{entry['date']}  {entry['sweeps']} sweeps: {entry['command']}")
    return lines


def _of_annealing(result: AnnealResult) -> tuple[dict[str, Any], list[str]]:
    """Main numbers of an annealing run, for ``--json`` and as lines."""
    from numpy import isfinite

    from spinsim.analysis.thermodynamics import thermodynamics
    from spinsim.cli.showing import lowest_lines, precision

    lowest = result.lowest_energy
    if not len(result.temperature):
        return {"lowest_energy": None}, []
    table = thermodynamics(result)
    lines = lowest_lines(result.model, lowest)
    first, last = ("T", "<|m|>") if result.field is None else ("h", "<m>")
    lines.append(f"{first:>8}        E/N      error        C/N      error {last:>10}      error")
    means = (table.magnetization, table.magnetization_error)
    if result.field is not None:
        means = (table.signed_magnetization, table.signed_magnetization_error)
    for k in sorted({round(k * (len(table.temperature) - 1) / 9) for k in range(10)}):
        row = (table.temperature if result.field is None else result.field, table.energy, table.energy_error,
               table.specific_heat, table.specific_heat_error, *means)  # fmt: skip
        texts = [f"{column[k]:.6f}" if isfinite(column[k]) else "-" for column in row]
        lines.append(" ".join(f"{text:>10}" for text in texts).removeprefix("  "))
    if not isfinite(table.specific_heat).all() and result.energy.shape[2] > 1:
        lines.append("-: the replicas' energies scatter by another amount than their mean's slope: out of equilibrium")
    return {"lowest_energy": float(lowest.min()), **precision(result.model)}, lines


def _of_tempering(file: Path, result: TemperOverview) -> tuple[dict[str, Any], list[str]]:
    """The same of a tempering run."""
    from spinsim.cli.averages import averages_of
    from spinsim.cli.temper import numbers, report

    if not result.steps:
        return {"round_trips": 0}, []
    averages = averages_of(file, result)
    return numbers(result, averages), report(result, averages)


def _of_transfer(file: Path, result: TransferResult) -> tuple[dict[str, Any], list[str]]:
    """The whole of a transfer-matrix run."""
    from spinsim.cli.transfer import lacking, report, summary

    model, attributes = result.model, result.attributes
    couplings = result.planned_rows // model.samples
    rows, planned = int(result.there.sum()), result.planned_rows
    state = "NOT finished" + ("" if rows == planned else f": {_next(file)}")
    state = f"finished {attributes['finished']}" if result.finished else state
    head = [
        f"{file}: {attributes['job']} of {model.name}",
        f"Model      a layer of {model.sites} sites, {model.bonds} bonds, {model.samples} samples",
        *_rounded(model),
        f"Run        {couplings} couplings, {attributes['engine']}, spinsim {attributes['spinsim_version']}",
        f"Progress   {rows} of {planned} rows, begun {attributes['created']}",
        f"           {state}",
        *_origin(attributes),
    ]
    return result.attributes | {"file": str(file)} | summary(result), head + report(result) + lacking(result, file)
