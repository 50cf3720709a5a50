"""``spinsim show``: what is in a file, how far it got, the main numbers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from spinsim.cli.saying import say


def show(
    files: Annotated[list[Path], typer.Argument(help="Files that spinsim wrote.", metavar="FILE...")],
    as_json: Annotated[
        bool, typer.Option("--json", help="The same as one JSON object, a list of them for several files.")
    ] = False,
) -> None:
    """Say what is in files, how far their runs got and their main numbers."""
    from spinsim.jobs import job_of
    from spinsim.store import read_attributes

    told = [job_of(read_attributes(file)["job"]).show(file) for file in files]
    if as_json:
        say(json.dumps(told[0].numbers if len(files) == 1 else [one.numbers for one in told]))
        return
    for number, one in enumerate(told):
        for line in [""] * bool(number) + one.lines:
            say(line)
