"""``spinsim temper``: parallel tempering in equilibrium."""

from __future__ import annotations

import json
from math import isfinite
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spinsim.cli import flags
from spinsim.cli.showing import closing_lines, lowest_lines, run_shown
from spinsim.cli.values import Whole

if TYPE_CHECKING:
    from spinsim.overview import TemperOverview
    from spinsim.run import TemperPlan

KEYS = (
    "start",
    "temperatures",
    "thermalize",
    "sweeps",
    "measure_every",
    "swap_every",
    "correlations",
    "zero_acceptance",
)


def temper(
    instance: flags.Instance = None,
    lattice: flags.Lattice = None,
    size: flags.Size = None,
    boundary: flags.Boundary = None,
    couplings: flags.Couplings = None,
    bond_fraction: flags.BondFraction = None,
    field: flags.Field = None,
    samples: flags.Samples = None,
    disorder_seed: flags.DisorderSeed = None,
    start: flags.Start = None,
    temperatures: Annotated[
        str | None,
        flags.Flag(
            help="from:to:count, geometric; 0.8,1.0,1.3; auto:from:to or auto:from:to:count, placed in a pre-run so "
            "that all exchange equally often.  [16 from 0.3 to 0.8 x the rms local field]"
        ),
    ] = None,
    thermalize: Annotated[int | None, Whole(help="Sweeps before the first measurement.  [2000]")] = None,
    sweeps: Annotated[int | None, Whole(help="Sweeps of the measured part.  [10000]")] = None,
    measure_every: Annotated[int | None, Whole(help="Sweeps between measurements.  [10]")] = None,
    swap_every: Annotated[int | None, Whole(help="Sweeps between exchanges of temperatures.  [1]")] = None,
    correlations: Annotated[
        bool | None,
        flags.Flag("--correlations/--no-correlations", help="Measure link overlaps and smallest Fourier modes.  [yes]"),
    ] = None,
    zero_acceptance: flags.ZeroAcceptance = None,
    replicas: Annotated[int | None, Whole(help="Copies at each temperature, for overlaps.  [2]")] = None,
    seed: flags.Seed = None,
    rng_rounds: flags.RngRounds = None,
    device: flags.Device = None,
    threads: flags.Threads = None,
    out: flags.Out = None,
    checkpoint_every: flags.CheckpointEvery = None,
    config: flags.ConfigFile = None,
    quiet: flags.Quiet = False,
    as_json: flags.AsJson = False,
) -> None:
    """Simulate an Ising model or spin glass in equilibrium at many temperatures that exchange configurations."""
    given = flags.tables(locals(), "temper", KEYS)
    from spinsim.config import Temper, build_config, read_toml
    from spinsim.run import plan_temper

    plan = plan_temper(build_config(Temper, read_toml(config, Temper) if config else {}, given))
    carry_out(plan, quiet, as_json)


def carry_out(plan: TemperPlan, quiet: bool, as_json: bool) -> None:
    """Run a plan and say how it went."""
    from spinsim.overview import overview
    from spinsim.run import temper_to_file

    ran, progress = run_shown(plan, temper_to_file, describe(plan), quiet or as_json)
    found = overview(plan.path)
    if as_json:
        typer.echo(json.dumps(summary(plan, found) | {"updates_per_ns": progress.rate if ran else None}))
    elif not quiet:
        for line in closing_lines(plan, ran, progress, report(found)):
            typer.echo(line)


def describe(plan: TemperPlan) -> str:
    """What is about to run, in one line."""
    t, r, model, wanted = plan.config.temper, plan.config.run, plan.model, plan.config.temper.to_place()
    if wanted is None:
        ladder = t.ladder()
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


def report(found: TemperOverview) -> list[str]:
    """Means at each temperature, a line each; without errors, which need an analysis."""
    import numpy as np

    overlap = found.overlap_squared
    known = bool(np.isfinite(found.swap_rate).all())
    lines = [f"Round trips  {int(found.round_trips.sum())} of {found.round_trips.size} replicas"]
    if not known:
        lines = ["Exchanges and round trips are known from the first checkpoint on"]
    if found.placement is not None:
        last = found.placement.swap_rate[-1]
        low, high = np.nanmin(last), np.nanmax(last)
        lines.append(f"Temperatures {len(found.temperature)}, placed; exchanges in the pre-run {low:.3f} to {high:.3f}")
    lines.append(
        "       T        E/N     <m^2>" + ("" if overlap is None else "     <q^2>") + "  exchanged with the next"
    )
    for k, temperature in enumerate(found.temperature):
        row = f"{temperature:8.5g} {found.energy[k]:10.6f} {found.magnetization_squared[k]:9.6f}"
        row += "" if overlap is None else f" {overlap[k]:9.6f}"
        lines.append(row + (f" {found.swap_rate[k]:8.3f}" if known and k + 1 < len(found.temperature) else ""))
    return lines if found.best_energy is None else lines + lowest_lines(found.model, found.best_energy)


def summary(plan: TemperPlan, found: TemperOverview) -> dict[str, Any]:
    """The same numbers for ``--json``."""
    return {
        "job": "temper",
        "file": str(plan.path),
        "config_sha256": plan.attributes["config_sha256"],
        "model": plan.model.name,
        "sites": plan.model.sites,
    } | numbers(found)


def numbers(found: TemperOverview) -> dict[str, Any]:
    """What ``report`` says, for ``--json``."""
    lowest = None if found.best_energy is None else float(found.best_energy.min())
    is_cut = lowest is not None and found.model.maxcut_weight is not None
    return {
        "temperatures": found.temperature.tolist(),
        "energy_per_site": found.energy.tolist(),
        "magnetization_squared": found.magnetization_squared.tolist(),
        "overlap_squared": None if found.overlap_squared is None else found.overlap_squared.tolist(),
        "swap_rate": [rate if isfinite(rate) else None for rate in found.swap_rate.tolist()],
        "placed": found.placement is not None,
        "round_trips": int(found.round_trips.sum()),
        "lowest_energy": lowest,
        "cut": float(found.model.cut(lowest)) if is_cut and lowest is not None else None,
    }
