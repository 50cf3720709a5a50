"""``spinsim bench``: rates on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

from spinsim.cli import flags
from spinsim.cli.bench_solve import solve
from spinsim.cli.bench_transfer import transfer
from spinsim.cli.devices import machine
from spinsim.cli.saying import say
from spinsim.cli.values import Whole, check_repeats
from spinsim.errors import InputError
from spinsim.jobs.temper.settings import TemperSettings
from spinsim.settings.setting import settings_of
from spinsim.settings.shared import RunSettings

bench = typer.Typer(help="Rates on this machine.", rich_markup_mode=None)


@bench.callback()
def options() -> None:
    """Rates on this machine."""


Repeats = Annotated[int, Whole(help="Runs of each case.")]
bench.command()(transfer)
bench.command()(solve)
_RUN: Final = {name: settings_of(RunSettings)[name] for name in ("device", "threads", "rng_rounds")}
_TIMES: Final = {name: settings_of(TemperSettings)[name] for name in ("measure_every", "swap_every")}


@bench.command()
@flags.taking(_RUN)
def metropolis(given: flags.Given, repeats: Repeats = 5) -> None:
    """Attempted spin updates per nanosecond of the Metropolis kernels, and what measuring adds.

    The last column has published rates of other programs, in updates per nanosecond.
    """
    from spinsim.benchmark import metropolis_rates

    run = flags.filled(given, _RUN)
    _head(repeats, **run)
    say(
        f"{'case':28}{'samples':>8}{'replicas':>9}  {'packing':15}{'cores':>6}{'updates/ns':>12}{'per core':>10}"
        f"   {'range':22}{'measuring':>10}   others"
    )
    for rate in metropolis_rates(repeats=repeats, **run):
        span = f"{rate.slowest:.3f} to {rate.fastest:.3f}"
        say(
            f"{rate.case.name:28}{rate.samples:8d}{rate.case.replicas:9d}  {rate.packing:15}{rate.cores:6d}"
            f"{rate.median:12.3f}{rate.median / rate.cores:10.3f}   {span:22}{100 * rate.measuring:9.1f}%"
            f"   {rate.case.reference}"
        )


@bench.command()
@flags.taking(_RUN | _TIMES)
def temper(given: flags.Given, repeats: Repeats = 5) -> None:
    """Attempted spin updates per nanosecond of parallel tempering, and its share of the rate of sweeps alone.

    Energies, magnetisations and overlaps are measured, of models of space and time correlations at 16 times too; in
    the column "correlations" link overlaps, Fourier modes and powers within slices besides. The last column has
    published rates of other programs, in updates per nanosecond.
    """
    from spinsim.benchmark import temper_rates

    run, times = flags.filled(given, _RUN), flags.filled(given, _TIMES)
    _head(repeats, **run)
    say(
        f"{'case':40}{'samples':>8}{'temperatures':>13}{'copies':>7}  {'packing':15}{'updates/ns':>12}   {'range':22}"
        f"{'sweeps alone':>13}{'share':>8}{'correlations':>14}{'share':>8}   others"
    )
    for rate in temper_rates(repeats=repeats, **run, **times):
        span = f"{rate.slowest:.3f} to {rate.fastest:.3f}"
        say(
            f"{rate.case.name:40}{rate.samples:8d}{rate.case.ladder[2]:13d}{rate.case.copies:7d}  {rate.packing:15}"
            f"{rate.median:12.3f}   {span:22}{rate.raw:13.3f}{100 * rate.median / rate.raw:7.1f}%"
            f"{rate.correlations:14.3f}{100 * rate.correlations / rate.raw:7.1f}%   {rate.case.reference}"
        )


@bench.command()
@flags.taking(_RUN)
def scaling(given: flags.Given, repeats: Repeats = 5) -> None:
    """Rates on 1, 2, 4, ... devices: the GPUs of this machine, or the ranks of mpiexec.

    They are attempted spin updates in a nanosecond, of transfer matrices amplitudes of a product. In a weak case each
    device has as much to do as one alone, in a strong one all of them together. The last column is the share of the
    rate that so many devices would have if none waited for another.
    """
    from spinsim.benchmark import scaling_rates

    run = flags.filled(given, _RUN)
    _head(repeats, **run)
    say(f"{'case':40}{'growth':8}{'devices':>7}{'a ns':>12}  {'unit':12}{'range':22}{'times one':>10}{'of linear':>11}")
    for rate in scaling_rates(repeats=repeats, **run):
        span = f"{rate.slowest:.3f} to {rate.fastest:.3f}"
        say(
            f"{rate.case.name:40}{rate.case.growth:8}{rate.devices:7d}{rate.median:12.3f}  {rate.case.unit:12}{span:22}"
            f"{rate.gain:10.3f}{100 * rate.gain / rate.devices:10.1f}%"
        )


def _head(repeats: int, device: str, threads: int | None, rng_rounds: int) -> None:
    """Say where rates are measured."""
    from spinsim.engine import resolve_device

    check_repeats(repeats)
    say(f"{machine(resolve_device(device), threads)}; Philox of {rng_rounds} rounds; median of {repeats} runs")


@bench.command()
def gemm(
    repeats: Annotated[int, Whole(help="Calls of each kernel.")] = 5,
    plot: Annotated[Path | None, typer.Option(help="Write a bar chart of the ladder, .pdf or .png.")] = None,
    overwrite: flags.Overwrite = False,
) -> None:
    """Rates of the matrix products on the first GPU, beside cuBLAS.

    Bytes are what a kernel's blocks ask of memory and write, before any cache.
    """
    from itertools import chain

    from spinsim.benchmark.gemm import SIZES, Rate, draw, ladder, tall_products, wide_products
    from spinsim.cuda.device import why_not
    from spinsim.machine.outputs import check_output

    check_repeats(repeats)
    if plot is not None and plot.suffix.lower() not in (".pdf", ".png"):
        raise InputError(f"{plot} is not a figure that spinsim can write: its suffix must be .pdf or .png")
    if plot is not None:
        check_output(plot, plot.suffix[1:].lower(), overwrite)
    if (reason := why_not()) is not None:
        raise InputError(f"bench gemm needs a GPU: {reason}")

    def show(rate: Rate) -> None:
        share = "" if rate.of_peak is None or not rate.operations else f"{100 * rate.of_peak:6.1f}%"
        say(
            f"{rate.name:18}{rate.case:24}{1e3 * rate.seconds:11.3f}{rate.teraflops:9.2f}{100 * rate.of_library:9.1f}%"
            f"{share:>8}{rate.moved / 1e9:11.1f}{rate.terabytes:7.2f}"
        )

    say(f"{machine('cuda', None)}; median of {repeats} calls")
    say(f"{'kernel':18}{'case':24}{'ms':>11}{'TFLOP/s':>9}{'cuBLAS':>10}{'peak':>8}{'GB':>11}{'TB/s':>7}")
    rates = []
    for kind, sizes in SIZES.items():
        for rate in chain.from_iterable(ladder(kind, size, repeats) for size in sizes):
            show(rate)
            rates.append(rate)
    say("the column cuBLAS of copies, transpositions, tall products and both_factors: share of a copy's rate")
    for rate in chain(wide_products(repeats), tall_products(repeats)):
        show(rate)
    if plot is not None:
        draw(rates, plot, overwrite)
        say(plot)
