"""``spinsim show`` and ``spinsim check``: contents of files in their main numbers, and whether all of them is whole."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spinsim.cli.saying import refuse, say, say_json

if TYPE_CHECKING:
    from spinsim.jobs.base import Told


def show(
    files: Annotated[list[Path], typer.Argument(help="Files that spinsim wrote.", metavar="FILE...")],
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object, a list of them for several files.")
    ] = False,
    solution: Annotated[
        bool,
        typer.Option("--solution", help="Print the lowest states instead, a line 'label value' for each variable."),
    ] = False,
) -> None:
    """Summarise files: settings, progress of the run and main numbers."""
    from spinsim.jobs import job_of
    from spinsim.store import read_attributes

    told = [_solutions(file) if solution else job_of(read_attributes(file)["job"]).show(file) for file in files]
    if as_json:
        say_json(told[0].numbers if len(files) == 1 else [one.numbers for one in told])
        return
    for number, one in enumerate(told):
        for line in [""] * (bool(number) and not solution) + one.lines:
            say(line)


def _solutions(file: Path) -> Told:
    """Returns the lowest states of a run."""
    from spinsim.jobs.base import Told
    from spinsim.result import load
    from spinsim.solution import as_json, as_text

    result = load(file)
    solutions = result.solutions
    return Told(as_json(solutions, result.model), as_text(solutions, result.model.name).split("\n"))


def check(files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Files that spinsim wrote.")]) -> None:
    """Verify every byte of each FILE by its checksums and identity, and print a line for each.

    The exit status is 0 if all files are whole, else 2.
    """
    from spinsim.errors import InputError
    from spinsim.run.identity import verify

    status = 0
    for file in files:
        try:
            say(f"{file}: {verify(file)}")
        except InputError as error:
            status = refuse(str(error))
    if status:
        raise typer.Exit(status)
