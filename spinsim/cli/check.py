"""``spinsim check``: whether files are whole, by reading everything that is in them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from spinsim.cli.saying import say


def check(files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Files that spinsim wrote.")]) -> None:
    """Read all of every FILE, compare checksums and identities, and say in a line each whether it is whole.

    Status 0 if all are, else 2.
    """
    from spinsim.cli import refuse
    from spinsim.errors import InputError
    from spinsim.run.verifying import verify

    status = 0
    for file in files:
        try:
            say(f"{file}: {verify(file)}")
        except InputError as error:
            status = refuse(str(error))
    if status:
        raise typer.Exit(status)
