"""``spinsim anneal``: cool replicas through a temperature schedule."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from spinsim.cli import flags
from spinsim.cli.saying import say
from spinsim.cli.showing import closing_lines, lowest_lines, precision, run_shown
from spinsim.cli.values import Real, Whole
from spinsim.texts import quoted

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from spinsim.run import AnnealPlan

KEYS = ("start", "t_start", "t_stop", "steps", "sweeps", "schedule", "zero_acceptance")


def anneal(
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
    t_start: Annotated[float | None, Real(help="First temperature.  [1.5 x the root mean square local field]")] = None,
    t_stop: Annotated[float | None, Real(help="Last temperature.  [0.05 x the same]")] = None,
    steps: Annotated[int | None, Whole(help="Number of temperatures.  [100]")] = None,
    sweeps: Annotated[int | None, Whole(help="Sweeps at each temperature.  [100]")] = None,
    schedule: Annotated[str | None, flags.Flag(help="linear or geometric.  [geometric]")] = None,
    zero_acceptance: flags.ZeroAcceptance = None,
    replicas: Annotated[int | None, Whole(help="Replicas of each sample.  [128]")] = None,
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
    """Cool replicas of an Ising model or spin glass through a temperature schedule."""
    given = flags.tables(locals(), "anneal", KEYS)
    from spinsim.config import Anneal, build_config, read_toml
    from spinsim.run import plan_anneal

    plan = plan_anneal(build_config(Anneal, read_toml(config, Anneal) if config else {}, given))
    carry_out(plan, quiet, as_json)


def carry_out(plan: AnnealPlan, quiet: bool, as_json: bool) -> None:
    """Run a plan and say how it went."""
    from spinsim.run import anneal_to_file

    ran, progress = run_shown(plan, anneal_to_file, describe(plan), quiet or as_json)
    outcome = read_outcome(plan.path)
    if as_json:
        say(json.dumps(summary(plan, *outcome) | {"updates_per_ns": progress.rate if ran else None}))
    elif not quiet:
        for line in closing_lines(plan, ran, progress, lowest_lines(plan.model, outcome.best_energy)):
            say(line)
        say(f"         spinsim plot {quoted(plan.path)}")


def describe(plan: AnnealPlan) -> str:
    """What is about to run, in one line."""
    a, r, model = plan.config.anneal, plan.config.run, plan.model
    samples = f"{model.samples} samples x " if model.samples > 1 else ""
    where = "CPU" if plan.device == "cpu" else "GPU"
    return (
        f"Annealing {model.name}: {model.sites} sites, {model.bonds} bonds, {samples}{r.replicas} replicas, "
        f"T = {a.t_start:.4g} to {a.t_stop:.4g} in {a.steps} steps of {a.sweeps} sweeps, on the {where}"
    )


class Outcome(NamedTuple):
    """What the summary needs of a finished file: lowest energies and the last step's, (samples, replicas)."""

    best_energy: npt.NDArray[np.float64]
    last_energy: npt.NDArray[np.float64]


def read_outcome(path: Path) -> Outcome:
    """Read those two rows."""
    from spinsim.store import open_to_read

    with open_to_read(path) as file:
        return Outcome(file["best/energy"][...], file["measurements/energy"][-1])


def summary(
    plan: AnnealPlan, best_energy: npt.NDArray[np.float64], last_energy: npt.NDArray[np.float64]
) -> dict[str, Any]:
    """The same numbers for ``--json``."""
    model, lowest = plan.model, float(best_energy.min())
    numbers: dict[str, Any] = {
        "job": "anneal",
        "file": str(plan.path),
        "config_sha256": plan.attributes["config_sha256"],
        "model": model.name,
        "sites": model.sites,
        "lowest_energy": lowest,
        "lowest_energy_per_site": lowest / model.sites,
        "last_energy_per_site": float(last_energy.mean()) / model.sites,
        **precision(model),
    }
    if model.samples > 1:
        from spinsim.analysis.samples import lowest as of_samples

        found = of_samples(model, best_energy)
        numbers |= {
            "mean_lowest_energy_per_site": found.mean,
            "mean_lowest_energy_per_site_error": found.error,
            "hits_of_sample": found.hits.tolist(),
        }
    if model.maxcut_weight is not None:
        numbers["cut"] = float(model.cut(lowest))
    if model.offset:
        numbers["lowest_energy_with_offset"] = lowest + model.offset
    return numbers
