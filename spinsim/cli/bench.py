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


Device = Annotated[str, typer.Option(help="auto, cpu or cuda.")]
Threads = Annotated[int | None, Whole(help="CPU threads.  [all]")]
Repeats = Annotated[int, Whole(help="Runs of each case.")]
Rounds = Annotated[int, Whole(help="Philox rounds, 10 or 7.")]


@bench.command()
def metropolis(device: Device = "auto", threads: Threads = None, repeats: Repeats = 5, rng_rounds: Rounds = 10) -> None:
    """Attempted spin updates per nanosecond of the Metropolis kernels, and what measuring adds.

    The last column has published rates of other programs, in updates per nanosecond.
    """
    from spinsim.benchmark import metropolis_rates

    _head(device, threads, repeats, rng_rounds)
    typer.echo(
        f"{'case':28}{'samples':>8}{'replicas':>9}  {'packing':15}{'cores':>6}{'updates/ns':>12}{'per core':>10}"
        f"   {'range':22}{'measuring':>10}   others"
    )
    for rate in metropolis_rates(device, threads, repeats, rng_rounds):
        span = f"{rate.slowest:.3f} to {rate.fastest:.3f}"
        typer.echo(
            f"{rate.case.name:28}{rate.samples:8d}{rate.case.replicas:9d}  {rate.packing:15}{rate.cores:6d}"
            f"{rate.median:12.3f}{rate.median / rate.cores:10.3f}   {span:22}{100 * rate.measuring:9.1f}%"
            f"   {rate.case.reference}"
        )


@bench.command()
def temper(device: Device = "auto", threads: Threads = None, repeats: Repeats = 5, rng_rounds: Rounds = 10) -> None:
    """Attempted spin updates per nanosecond of parallel tempering, and its share of the rate of sweeps alone.

    Temperatures are exchanged after every sweep, energies, magnetisations and overlaps measured after every tenth; in
    the column "correlations" link overlaps and Fourier modes too. The last column has published rates of other
    programs, in updates per nanosecond.
    """
    from spinsim.benchmark import temper_rates

    _head(device, threads, repeats, rng_rounds)
    typer.echo(
        f"{'case':22}{'samples':>8}{'temperatures':>13}{'copies':>7}  {'packing':15}{'updates/ns':>12}   {'range':22}"
        f"{'sweeps alone':>13}{'share':>8}{'correlations':>14}{'share':>8}   others"
    )
    for rate in temper_rates(device, threads, repeats, rng_rounds):
        span = f"{rate.slowest:.3f} to {rate.fastest:.3f}"
        typer.echo(
            f"{rate.case.name:22}{rate.samples:8d}{rate.case.ladder[2]:13d}{rate.case.copies:7d}  {rate.packing:15}"
            f"{rate.median:12.3f}   {span:22}{rate.raw:13.3f}{100 * rate.median / rate.raw:7.1f}%"
            f"{rate.correlations:14.3f}{100 * rate.correlations / rate.raw:7.1f}%   {rate.case.reference}"
        )


def _head(device: str, threads: int | None, repeats: int, rng_rounds: int) -> None:
    """Refuse bad options, then say where rates are measured."""
    import llvmlite.binding as llvm

    from spinsim.config import RunConfig
    from spinsim.engine import resolve_device
    from spinsim.engine.cpu.threads import available_threads
    from spinsim.engine.cuda.device import names

    RunConfig(device=device, threads=threads, rng_rounds=rng_rounds)
    if repeats < 1:
        raise InputError(f"repeats {repeats} are too few: give at least 1")
    if resolve_device(device) == "cuda":
        where = names()[0]
    else:
        where = f"CPU {llvm.get_host_cpu_name()}, {threads or available_threads()} threads"
    typer.echo(f"{where}; Philox of {rng_rounds} rounds; median of {repeats} runs")
