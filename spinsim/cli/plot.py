"""``spinsim plot``: figures fit for a paper."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def plot(
    file: Annotated[Path, typer.Argument(help="A file that spinsim wrote.")],
    out: Annotated[Path | None, typer.Option(help="Figure file.  [FILE with the figure's name and .pdf]")] = None,
) -> None:
    """Draw."""
