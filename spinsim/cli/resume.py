"""``spinsim resume``: go on with a run that was cut short, or make a run on a ladder or a search longer."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Final

import typer

from spinsim.cli import flags, running
from spinsim.jobs import all_jobs
from spinsim.settings.config import tables_of
from spinsim.settings.setting import Setting, settings_of
from spinsim.settings.shared import RunSettings

_OF_RUN: Final = ("device", "gpus", "threads", "checkpoint_every")


def _settings() -> dict[str, Setting]:
    """Returns the settings of jobs and of runs that may change."""
    found: dict[str, Setting] = {}
    for job in all_jobs():
        for name, words in job.resumable.items():
            one = tables_of(job.config)[job.name][name]
            found.setdefault(name, replace(one, help=words or one.help))
    return found | {name: settings_of(RunSettings)[name] for name in _OF_RUN}


@flags.taking({name: replace(one, default=None, shown="as it was") for name, one in _settings().items()})
def resume(
    file: Annotated[Path, typer.Argument(help="The file of a run.")],
    given: flags.Given,
    quiet: flags.Quiet = False,
    as_json: flags.AsJson = False,
) -> None:
    """Continue an interrupted run from its last checkpoint, or extend a tempering or quantum run, or a search.

    A search that has met its target is left as it is. Of a transfer-matrix run whose rows are all there, those that
    lack levels are tried again.
    """
    from spinsim.run import plan_resume

    run = {name: given[name] for name in _OF_RUN}
    changes = {name: value for name, value in given.items() if name not in run}
    running.carry_out(plan_resume(file, changes, run), quiet, as_json)
