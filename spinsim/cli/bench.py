"""``spinsim bench``: rates on this machine."""

from __future__ import annotations

from typing import Annotated

import typer

bench = typer.Typer(help="Rates on this machine.", rich_markup_mode=None, no_args_is_help=True)


@bench.callback()
def options() -> None:
    """Rates on this machine."""


@bench.command()
def metropolis(
    device: Annotated[str, typer.Option(help="auto or cpu.")] = "auto",
    threads: Annotated[int | None, typer.Option(help="CPU threads.  [all]")] = None,
    repeats: Annotated[int, typer.Option(help="Runs of each case.", min=1)] = 5,
) -> None:
    """Attempted spin updates per nanosecond of the Metropolis kernels."""
    import llvmlite.binding as llvm

    from spinsim.benchmark import metropolis_rates
    from spinsim.engine.cpu.threads import available_threads

    typer.echo(f"CPU {llvm.get_host_cpu_name()}, {threads or available_threads()} threads; median of {repeats} runs")
    typer.echo(f"{'case':28}{'replicas':>9}  {'packing':15}{'cores':>6}{'updates/ns':>12}{'per core':>10}   range")
    for rate in metropolis_rates(device, threads, repeats):
        typer.echo(
            f"{rate.case.name:28}{rate.case.replicas:9d}  {rate.packing:15}{rate.cores:6d}"
            f"{rate.median:12.3f}{rate.median / rate.cores:10.3f}   {rate.slowest:.3f} to {rate.fastest:.3f}"
        )
