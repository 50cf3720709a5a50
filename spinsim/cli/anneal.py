"""``spinsim anneal``: cool replicas through a temperature schedule."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from spinsim.cli import flags
from spinsim.cli.saying import say
from spinsim.cli.showing import closing_lines, lowest_lines, precision, run_shown
from spinsim.settings.anneal import Anneal
from spinsim.texts import quoted

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from spinsim.run import AnnealPlan


@flags.command(Anneal)
def anneal(config: Anneal, quiet: bool, as_json: bool) -> None:
    """Cool replicas of an Ising model or spin glass through a temperature schedule."""
    from spinsim.run import plan_anneal

    carry_out(plan_anneal(config), quiet, as_json)


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
