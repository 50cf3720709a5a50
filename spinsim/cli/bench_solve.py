"""``spinsim bench solve``: how likely and how fast instances are solved on this machine."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Annotated, Final

import typer

from spinsim.cli import flags
from spinsim.cli.devices import machine
from spinsim.cli.saying import say
from spinsim.cli.values import Real, Whole, check_repeats
from spinsim.jobs.anneal.settings import AnnealSettings
from spinsim.settings.setting import settings_of
from spinsim.settings.shared import RunSettings

_RUN: Final = {name: settings_of(RunSettings)[name] for name in ("replicas", "device", "threads")}
_SCHEDULE: Final = {name: settings_of(AnnealSettings)[name] for name in ("t_start", "t_stop", "steps", "sweeps")}


@flags.taking(_RUN | _SCHEDULE)
def solve(
    given: flags.Given,
    instances: Annotated[list[Path], typer.Argument(help="Files of problems.", metavar="INSTANCE...")],
    target: Annotated[
        float | None, Real(help="Cut or energy to be met.  [the best known of instances of the G-set and Biq Mac]")
    ] = None,
    repeats: Annotated[int, Whole(help="Whole anneals, and searches, of each instance.")] = 5,
    time_limit: Annotated[float, Real(help="Seconds after which a search gives up.")] = 60.0,
) -> None:
    """Success probability and time to solution of anneals, with their errors, and the time that searches take.

    Whole anneals of the schedule say with which probability p a replica meets the target, and any of all; the time to
    solution is that in which anneals one after the other meet it with 99 %. Brackets hold intervals of one standard
    error. Below stand the times of calls of ss.anneal with the target and no other settings but those given here, and
    of ss.temper with its own.
    """
    from spinsim.analysis.time_to_solution import in_words, seconds_in_words
    from spinsim.benchmark.solve import solve_instances
    from spinsim.engine import resolve_device

    check_repeats(repeats)
    settings = {name: value for name, value in given.items() if value is not None}
    say(
        f"{machine(resolve_device(given['device'] or 'auto'), given['threads'])}; {max(2, repeats)} whole anneals, "
        f"{repeats} searches of at most {time_limit:g} s"
    )
    for found in solve_instances(instances, target, repeats, time_limit, settings):
        one = found.success
        say(f"{found.name}: {found.sites} sites, target {found.target:.15g}, best met {found.best:.15g}")
        say(
            f"  {one.anneals} anneals of {one.sweeps} sweeps, {one.replicas} replicas, {seconds_in_words(one.seconds)} "
            f"each, {found.rate:.3g} updates/ns"
        )
        if one.of_replica is not None and one.of_anneal is not None:
            ps = (in_words(p, "{:.3g}") for p in (one.of_replica, one.of_anneal))
            say(f"  p of a replica {next(ps)}, of an anneal {next(ps)}")
        if one.tts is not None:
            say(f"  time to solution at 99 % {in_words(one.tts, seconds_in_words)}")
        for how, seconds in (("anneals", found.searches), ("tempering", found.temperings)):
            say(f"  {how} until it is met: {_told(seconds, time_limit)}")


def _told(seconds: list[float], time_limit: float) -> str:
    """Returns times of searches, sorted, in words."""
    from spinsim.analysis.time_to_solution import seconds_in_words

    met = [one for one in seconds if one < float("inf")]
    middle = statistics.median_low(seconds)
    median = seconds_in_words(middle) if middle < float("inf") else f"more than {time_limit:g} s"
    span = f", {seconds_in_words(met[0])} to {seconds_in_words(met[-1])}" if met else ""
    return f"{len(met)} of {len(seconds)}, median {median}{span}"
