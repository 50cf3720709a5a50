"""``spinsim resume``: go on with a run that was cut short, or make a tempering run longer."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Final

import typer

from spinsim.cli import flags
from spinsim.cli.running import carry_out
from spinsim.jobs.temper.settings import TemperSettings
from spinsim.jobs.transfer.settings import TransferSettings
from spinsim.settings.setting import settings_of
from spinsim.settings.shared import RunSettings

_CHANGED: Final = {
    "sweeps": replace(
        settings_of(TemperSettings)["sweeps"], help="Measured sweeps that a tempering run shall have in all"
    ),
    "most_steps": settings_of(TransferSettings)["most_steps"],
    **{name: settings_of(RunSettings)[name] for name in ("device", "threads", "checkpoint_every")},
}


@flags.taking({name: replace(one, default=None, shown="as it was") for name, one in _CHANGED.items()})
def resume(
    file: Annotated[Path, typer.Argument(help="The file of a run.")],
    given: flags.Given,
    quiet: flags.Quiet = False,
    as_json: flags.AsJson = False,
) -> None:
    """Continue an interrupted run from its last checkpoint, or extend a tempering run.

    Of a transfer-matrix run whose rows are all there, those that lack levels are tried again.
    """
    from spinsim.run import plan_resume

    how = dict(given)
    sweeps, most_steps = how.pop("sweeps"), how.pop("most_steps")
    carry_out(plan_resume(file, sweeps, how, most_steps), quiet, as_json)
