"""``spinsim temper``: parallel tempering in equilibrium."""

from __future__ import annotations

import json
from math import isfinite
from typing import TYPE_CHECKING, Any, Final

from spinsim.cli import flags
from spinsim.cli.saying import say
from spinsim.cli.showing import closing_lines, lowest_lines, precision, run_shown
from spinsim.settings.temper import Temper
from spinsim.texts import quoted

if TYPE_CHECKING:
    from spinsim.analysis.summary import Summary
    from spinsim.overview import TemperOverview
    from spinsim.run import TemperPlan

_MOST_COLUMNS: Final = 4  # that fit beside the exchanges


@flags.command(Temper)
def temper(config: Temper, quiet: bool, as_json: bool) -> None:
    """Simulate an Ising model or spin glass in equilibrium at many temperatures that exchange configurations."""
    from spinsim.run import plan_temper

    carry_out(plan_temper(config), quiet, as_json)


def carry_out(plan: TemperPlan, quiet: bool, as_json: bool) -> None:
    """Run a plan and say how it went."""
    from spinsim.cli.averages import averages_of
    from spinsim.overview import overview
    from spinsim.run import temper_to_file

    ran, progress = run_shown(plan, temper_to_file, describe(plan), quiet or as_json)
    found = overview(plan.path)
    averages = averages_of(plan.path, found)
    if as_json:
        say(json.dumps(summary(plan, found, averages) | {"updates_per_ns": progress.rate if ran else None}))
    elif not quiet:
        for line in closing_lines(plan, ran, progress, report(found, averages)):
            say(line)
        for line in what_next(plan, averages):
            say(line)


def what_next(plan: TemperPlan, averages: Summary | None) -> list[str]:
    """Commands that go on from here: all averages, figures, and a longer run where this one was too short."""
    path, sweeps = quoted(plan.path), 2 * plan.config.temper.sweeps
    lines = [f"         spinsim analyze {path} --all", f"         spinsim plot {quoted(path)}"]
    if averages is not None and (averages.problems or not all(e.equilibrated for e in averages.equilibration.values())):
        lines.append(f"         spinsim resume {quoted(path)} --sweeps {sweeps}")
    return lines


def describe(plan: TemperPlan) -> str:
    """What is about to run, in one line."""
    t, r, model, wanted = plan.config.temper, plan.config.run, plan.model, plan.config.temper.to_place
    if wanted is None:
        ladder = t.ladder
        low, high, many = ladder[0], ladder[-1], str(len(ladder))
    else:
        low, high, many = wanted.low, wanted.high, f"{wanted.count or ''} placed".strip()
    samples = f"{model.samples} samples x " if model.samples > 1 else ""
    where = "CPU" if plan.device == "cpu" else "GPU"
    return (
        f"Tempering {model.name}: {model.sites} sites, {model.bonds} bonds, {samples}{r.replicas} copies x "
        + (f"T = {low:.4g}, " if many == "1" else f"{many} temperatures from {low:.4g} to {high:.4g}, ")
        + f"{t.thermalize} + {t.sweeps} sweeps, on the {where}"
    )


def report(found: TemperOverview, averages: Summary | None) -> list[str]:
    """Exchanges, means at each temperature, with errors where these are known, and whether it was equilibrium."""
    import numpy as np

    from spinsim.cli.averages import main_columns, table, wrapped

    known = bool(np.isfinite(found.swap_rate).all())
    trips = found.round_trips
    lines = [f"Round trips  {trips.mean():.3g} a replica, {int((trips == 0).sum())} of {trips.size} replicas made none"]
    if not known:
        lines = ["Exchanges and round trips are known from the first checkpoint on"]
    lines += _empty_lanes(found)
    if found.placement is not None:
        last = found.placement.swap_rate[-1]
        low, high = np.nanmin(last), np.nanmax(last)
        lines.append(f"Temperatures {len(found.temperature)}, placed; exchanges in the pre-run {low:.3f} to {high:.3f}")
    rates = [f"{rate:.3f}" for rate in found.swap_rate] + [""] if known else None
    if averages is None:
        lines += _means(found, rates)
    else:
        names = main_columns(found.model, averages.estimates)[:_MOST_COLUMNS]
        lines += table(averages, names, {"swaps": rates} if rates else None)
        if rates:
            lines += wrapped("share of the exchanges tried with the next temperature that were accepted.", "swaps: ")
        lines += wrapped(averages.verdict, "Verdict  ")
    return lines if found.best_energy is None else lines + lowest_lines(found.model, found.best_energy)


def _empty_lanes(found: TemperOverview) -> list[str]:
    """How many copies more the words of a replica-packed run have room for: it updates whole words in any case."""
    from spinsim.packing import LANES, Packing, block_count

    ladders, replicas = len(found.temperature), found.round_trips.shape[1]
    lanes = block_count(replicas) * LANES
    room = lanes // ladders
    if Packing.REPLICA not in found.attributes["engine"] or room * ladders <= replicas:
        return []
    return [f"Lanes        {replicas} of {lanes} in use: --replicas {room} would take hardly more time"]


def _means(found: TemperOverview, rates: list[str] | None) -> list[str]:
    """Means without errors, a line each temperature."""
    overlap = found.overlap_squared
    lines = [
        "       T        E/N     <m^2>" + ("" if overlap is None else "     <q^2>") + ("   swaps" if rates else "")
    ]
    for k, temperature in enumerate(found.temperature):
        row = f"{temperature:8.5g} {found.energy[k]:10.6f} {found.magnetization_squared[k]:9.6f}"
        row += "" if overlap is None else f" {overlap[k]:9.6f}"
        lines.append(row + (f"{rates[k]:>8}" if rates else ""))
    return [*lines, "Means have no errors here: spinsim analyze finds them."]


def summary(plan: TemperPlan, found: TemperOverview, averages: Summary | None) -> dict[str, Any]:
    """The same numbers for ``--json``."""
    return {
        "job": "temper",
        "file": str(plan.path),
        "config_sha256": plan.attributes["config_sha256"],
        "model": plan.model.name,
        "sites": plan.model.sites,
    } | numbers(found, averages)


def numbers(found: TemperOverview, averages: Summary | None) -> dict[str, Any]:
    """What ``report`` says, for ``--json``."""
    from spinsim.cli.analyze import as_tables

    lowest = None if found.best_energy is None else float(found.best_energy.min())
    is_cut = lowest is not None and found.model.maxcut_weight is not None
    return {
        "temperatures": found.temperature.tolist(),
        "energy_per_site": found.energy.tolist(),
        "magnetization_squared": found.magnetization_squared.tolist(),
        "overlap_squared": None if found.overlap_squared is None else found.overlap_squared.tolist(),
        "swap_rate": [rate if isfinite(rate) else None for rate in found.swap_rate.tolist()],
        "placed": found.placement is not None,
        **precision(found.model),
        "round_trips": int(found.round_trips.sum()),
        "lowest_energy": lowest,
        "cut": float(found.model.cut(lowest)) if is_cut and lowest is not None else None,
        "averages": None if averages is None else as_tables(averages),
    }
