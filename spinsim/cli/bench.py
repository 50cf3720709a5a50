"""``spinsim bench``: rates on this machine."""

from __future__ import annotations

from typing import Annotated

import typer

from spinsim.cli.values import Whole
from spinsim.errors import InputError

bench = typer.Typer(help="Rates on this machine.", rich_markup_mode=None)


@bench.callback()
def options() -> None:
    """Rates on this machine."""


@bench.command()
def metropolis(
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    threads: Annotated[int | None, Whole(help="CPU threads.  [all]")] = None,
    repeats: Annotated[int, Whole(help="Runs of each case.")] = 5,
) -> None:
    """Attempted spin updates per nanosecond of the Metropolis kernels."""
    import llvmlite.binding as llvm

    from spinsim.benchmark import REFERENCES, metropolis_rates
    from spinsim.config import RunConfig
    from spinsim.engine import resolve_device
    from spinsim.engine.cpu.threads import available_threads
    from spinsim.engine.cuda.device import names

    RunConfig(device=device, threads=threads)  # refuses what it must before anything is printed
    if repeats < 1:
        raise InputError(f"repeats {repeats} are too few: give at least 1")
    if resolve_device(device) == "cuda":
        where = names()[0]
    else:
        where = f"CPU {llvm.get_host_cpu_name()}, {threads or available_threads()} threads"
    typer.echo(f"{where}; median of {repeats} runs")
    typer.echo(f"{'case':28}{'replicas':>9}  {'packing':15}{'cores':>6}{'updates/ns':>12}{'per core':>10}   range")
    for rate in metropolis_rates(device, threads, repeats):
        typer.echo(
            f"{rate.case.name:28}{rate.case.replicas:9d}  {rate.packing:15}{rate.cores:6d}"
            f"{rate.median:12.3f}{rate.median / rate.cores:10.3f}   {rate.slowest:.3f} to {rate.fastest:.3f}"
        )
    typer.echo("Reference rates of other programs, updates/ns")
    for reference in REFERENCES:
        typer.echo(f"{reference.what:52}{reference.hardware:24}{reference.rate}")
