"""The ``spinsim`` command: parsing and printing, no physics. Commands import what they need when they run."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from spinsim.cli.anneal import anneal
from spinsim.cli.bench import bench
from spinsim.cli.devices import devices
from spinsim.cli.plot import plot
from spinsim.cli.show import show
from spinsim.errors import InputError

# click's ClickException, which newer versions of typer ship inside themselves
UsageProblem: type[Exception] = typer.BadParameter.__mro__[2]

app = typer.Typer(
    help="Exact, reproducible Monte Carlo of Ising models and spin glasses.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
for command in (anneal, show, plot, devices):
    app.command()(command)
app.add_typer(bench, name="bench")


@app.callback(invoke_without_command=True)
def options(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and leave.")] = False,
) -> None:
    """Exact, reproducible Monte Carlo of Ising models and spin glasses."""
    if version:
        from spinsim import __version__

        typer.echo(__version__)
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def main() -> None:
    """Run the command line: status 0 done, 2 bad input, 130 interrupted; errors are one sentence each."""
    try:
        status = app(standalone_mode=False) or 0
    except UsageProblem as error:
        message = " ".join(str(error.format_message()).split())  # type: ignore[attr-defined]
        typer.echo(f"spinsim: {message}", err=True)
        status = 2
    except InputError as error:
        typer.echo(f"spinsim: {error}", err=True)
        status = 2
    except (KeyboardInterrupt, typer.Abort):
        status = 130
    sys.exit(status)
