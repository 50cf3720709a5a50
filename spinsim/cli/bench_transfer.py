"""``spinsim bench transfer``: how fast transfer matrices are on this machine."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from spinsim.cli import flags
from spinsim.cli.devices import machine
from spinsim.cli.saying import say
from spinsim.cli.values import Whole, check_repeats
from spinsim.errors import InputError
from spinsim.settings.setting import settings_of
from spinsim.settings.shared import RunSettings

_RUN: Final = {name: settings_of(RunSettings)[name] for name in ("device", "threads")}


@flags.taking(_RUN)
def transfer(
    given: flags.Given,
    width: Annotated[
        str | None, typer.Option(help="Spins of a layer, such as 20,24.  [16,20,22; on a GPU 24,28,30]")
    ] = None,
    repeats: Annotated[int, Whole(help="Timings of each product.")] = 5,
) -> None:
    """Seconds of a product with T and of two levels to 1e-10, in the odd sector, by both methods.

    The bound is three passes over memory at the speed of copying. The last columns have the same levels by the eigsh of
    scipy, on a GPU of CuPy, with the same operator, and the largest difference of ln lambda; eigsh does not look for
    levels that it missed.
    """
    from spinsim.benchmark.transfer import WIDTHS, rates
    from spinsim.engine import resolve_device

    check_repeats(repeats)
    run = flags.filled(given, _RUN)
    where, threads = resolve_device(run["device"]), run["threads"]
    widths = WIDTHS[where] if width is None else _widths(width)
    say(f"{machine(where, threads)}; median of {repeats} timings")
    say(
        f"{'spins':>5}{'amplitudes':>13}  {'method':10}{'product/ms':>12}{'GB/s':>8}{'of bound':>10}{'copy GB/s':>11}"
        f"{'step/ms':>10}{'solve/s':>9}{'steps':>7}{'eigsh/s':>9}{'difference':>12}"
    )
    reasons: dict[str, None] = {}
    for r in rates(where, threads, widths, repeats):
        peer = f"{'-':>9}{'-':>12}" if r.without_peer else f"{r.peer_seconds:9.3g}{r.difference:12.1e}"
        say(
            f"{r.sites:5d}{r.amplitudes:13d}  {r.method:10}{1e3 * r.apply_seconds:12.4g}{r.bandwidth / 1e9:8.1f}"
            f"{r.share:10.2f}{16 * r.amplitudes / r.copy_seconds / 1e9:11.1f}{1e3 * r.step_seconds:10.4g}"
            f"{r.solve_seconds:9.3g}{r.steps:7d}{peer}"
        )
        reasons |= dict.fromkeys([r.without_peer] if r.without_peer else [])
    for reason in reasons:
        say(reason)


def _widths(text: str) -> tuple[int, ...]:
    try:
        widths = tuple(int(part) for part in text.split(","))
    except ValueError as error:
        raise InputError(f"width {text!r} cannot be read: give numbers of spins with commas, such as 20,24") from error
    if not all(4 <= sites <= 40 for sites in widths):
        raise InputError(f"width {text!r} is out of range: give 4 to 40 spins")
    return widths
