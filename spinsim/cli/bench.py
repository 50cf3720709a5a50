"""``spinsim bench``."""

from __future__ import annotations

import typer

bench = typer.Typer(help="Rates of this machine, beside reference rates.", rich_markup_mode=None)


@bench.command()
def metropolis() -> None:
    """Metropolis updates."""
