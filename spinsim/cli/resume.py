"""``spinsim resume``: go on with a run that was cut short, or make a tempering run longer."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from spinsim.cli import flags
from spinsim.cli.transfer import MostSteps
from spinsim.cli.values import Whole


def resume(
    file: Annotated[Path, typer.Argument(help="The file of a run.")],
    sweeps: Annotated[int | None, Whole(help="Measured sweeps that a tempering run shall have in all.")] = None,
    most_steps: MostSteps = None,
    device: flags.Device = None,
    threads: flags.Threads = None,
    checkpoint_every: flags.CheckpointEvery = None,
    quiet: flags.Quiet = False,
    as_json: flags.AsJson = False,
) -> None:
    """Continue an interrupted run from its last checkpoint, or extend a tempering run.

    Of a transfer-matrix run whose rows are all there, those that lack levels are tried again.
    """
    from spinsim.cli.anneal import carry_out as anneal
    from spinsim.cli.temper import carry_out as temper
    from spinsim.cli.transfer import carry_out as transfer
    from spinsim.run import AnnealPlan, TemperPlan, TransferPlan, plan_resume

    how = {"device": device, "threads": threads, "checkpoint_every": checkpoint_every}
    plan = plan_resume(file, sweeps, how, most_steps)
    if isinstance(plan, AnnealPlan):
        anneal(plan, quiet, as_json)
    elif isinstance(plan, TransferPlan):
        transfer(plan, quiet, as_json)
    elif isinstance(plan, TemperPlan):
        temper(plan, quiet, as_json)
