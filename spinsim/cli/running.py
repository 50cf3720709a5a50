"""A run on a terminal, new or resumed: its description, progress, outcome and the next commands."""

from __future__ import annotations

import gc
import inspect
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from spinsim.cli import flags
from spinsim.cli.saying import log_events, say, say_json
from spinsim.errors import InputError
from spinsim.inputs.texts import quoted, wrapped
from spinsim.jobs import all_jobs, job_of
from spinsim.jobs.base import Job
from spinsim.parallel import launched

_USUAL: Final = gc.get_threshold()  # garbage collection as before ``program`` changed it for loading modules
_LONG: Final = 10  # seconds from which on the duration of a run is printed
MISSED: Final = 3  # exit status of a search whose target was not met


if TYPE_CHECKING:
    from spinsim.run.plan import Plan, Watch
    from spinsim.run.progress import Bar
    from spinsim.settings.setting import Setting


def command_of(job: Job) -> Callable[..., None]:
    """Return the command that runs a job: its flags are the job's settings, --config, --quiet, --json and so on."""

    @flags.taking(lambda: {name: one for name, (_, one) in flags.places_of(job.config).items()} | _further(job))
    def run(
        given: flags.Given,
        config: flags.ConfigFile = None,
        quiet: flags.Quiet = False,
        as_json: flags.AsJson = False,
        dry_run: flags.DryRun = False,
        verbose: flags.Verbose = False,
    ) -> None:
        from spinsim.run.identity import tables_of_file
        from spinsim.run.progress import compiling_told
        from spinsim.settings.config import build_config, read_toml, tables_of

        if verbose:
            log_events()
        if given.get("device") != "cpu" and given.get("gpus") is None and launched() is None:
            from spinsim.cuda.device import wake

            wake()  # runs while modules are loaded
        goes_on, places = given.pop("until_equilibrated", False), flags.places_of(job.config)
        if goes_on and as_json:
            raise InputError("--until-equilibrated prints a summary of each run: leave --json out")
        tables: dict[str, dict[str, Any]] = {name: {} for name in tables_of(job.config)}
        for name, value in given.items():
            table, one = places[name]
            tables[table][one.name] = value
        below = read_toml(config, job.config, [each.config for each in all_jobs()]) if config else {}
        with compiling_told(silent=quiet or as_json):
            plan = job.plan(build_config(job.config, below, tables, begun=tables_of_file))
            following: Iterable[Plan[Any]] = ()
            if goes_on:
                from spinsim.run.alone import plans_until_equilibrated

                following = plans_until_equilibrated(plan)
            if dry_run:
                say_estimate(plan, as_json)
                return
            for one in chain([plan], following):
                carry_out(one, quiet, as_json)

    run.__name__, run.__doc__ = job.name, inspect.cleandoc(job.about)
    return run


def _further(job: Job) -> dict[str, Setting]:
    """Switches of a job's command that are no settings."""
    from spinsim.settings.setting import Setting

    name, words = "until_equilibrated", "Then extend the slow samples alone until none is slow, or Ctrl-C ends it"
    return {name: Setting(words, default=False, kind=bool, name=name)} if job.has_slow_samples else {}


def say_estimate(plan: Plan[Any], as_json: bool) -> None:
    from spinsim.run.progress import estimated

    estimate = estimated(plan)
    if as_json:
        say_json(estimate.numbers)
        return
    say(*wrapped(job_of(plan.config.job).report.describe(plan)), *estimate.lines)


def carry_out(plan: Plan[Any], quiet: bool, as_json: bool) -> None:
    """Run a plan of any job into its file and print the outcome."""
    from spinsim.run.execute import to_file
    from spinsim.run.progress import Bar

    gc.freeze()  # nothing so far is garbage; user-defined functions may create some
    gc.set_threshold(*_USUAL)
    job, silent = job_of(plan.config.job), quiet or as_json
    if not silent:
        split = [f"Split: {plan.split}"] if plan.split else []
        for sentence in [job.report.describe(plan), *split]:
            say(*wrapped(sentence))
    with Bar(silent, job.counts_rows) as progress:
        try:
            result, ran = to_file(plan, watch_of(progress, silent))
        except KeyboardInterrupt:
            progress.stop()
            if plan.path.exists():
                say(f"Interrupted; spinsim resume {quoted(plan.path)} completes it from its last checkpoint.", err=True)
            else:
                say("Interrupted before the run had begun: the same command begins anew.", err=True)
            raise
    searches = getattr(plan.config.of_job, "target", None) is not None
    if ran and quiet and not as_json and not searches:  # the exit status of a search tells if its target was met
        return
    report = job.report.outcome(plan, result, progress.rate if ran else None)
    if as_json:
        say_json(report.numbers)
    elif not quiet:
        done = [] if ran else ["This run is already finished; nothing was computed."]
        where = [f"Results  {plan.path}", f"Next     spinsim show {quoted(plan.path)}"]
        following = [f"         {command}" for command in report.next_commands]
        verdict = [report.verdict] if report.verdict else []
        say(*done, *report.lines, *(progress.speed if ran else []), *where, *following, *verdict)
    if report.missed:
        raise typer.Exit(MISSED)


def watch_of(progress: Bar, silent: bool) -> Watch:
    from spinsim.run.plan import Watch
    from spinsim.run.progress import Timing, size_line, time_line

    def on_rate(seconds: float | None, rate: float) -> None:
        if not silent and seconds is not None and seconds >= _LONG:
            say(time_line(seconds, rate))

    timing = Timing(on_rate)

    def begin(stage: str, total: int, done: int = 0) -> None:
        timing.begin(stage, total, done)
        progress.begin(stage, total, done)

    def advance(count: int) -> None:
        timing.advance(count)
        progress.advance(count)

    def on_size(file_bytes: int, rows: str) -> None:
        say(size_line(file_bytes, rows))

    told = None if silent else on_size  # the estimate needs a copy of the state
    return Watch(begin, advance, partial(say, err=True), progress.watch_parts, progress.note, told)


def of_run() -> dict[str, Setting]:
    """Settings of ``[run]`` that a command may change in a file of settings or a run; omitted ones stay unchanged."""
    from spinsim.settings.setting import settings_of
    from spinsim.settings.shared import OF_MACHINE, RunSettings

    return {name: replace(settings_of(RunSettings)[name], default=None, shown="unchanged") for name in OF_MACHINE}


def _resumable() -> dict[str, Setting]:
    """Settings that ``resume`` can change, of all jobs and of the run."""
    from spinsim.settings.config import tables_of

    settings: dict[str, Setting] = {}
    for job in all_jobs():
        for name, words in job.resumable.items():
            one = tables_of(job.config)[job.name][name]
            settings.setdefault(name, replace(one, help=words or one.help, default=None, shown="unchanged"))
    return settings | of_run()


@flags.taking(_resumable)
def resume(
    file: Annotated[Path, typer.Argument(help="The file of a run.")],
    given: flags.Given,
    quiet: flags.Quiet = False,
    as_json: flags.AsJson = False,
    drop_added: Annotated[
        bool, flags.Flag("--drop-added", help="Go on where another program has added to FILE, without what it added.")
    ] = False,
    slow_samples: Annotated[
        bool,
        flags.Flag(
            "--slow-samples",
            help="Extend the slow samples of a finished tempering or quantum run alone, into files beside FILE, each "
            "twice as long as the one before, until none is slow; --sweeps is then their largest length.",
        ),
    ] = False,
    verbose: flags.Verbose = False,
) -> None:
    """Continue an interrupted run from its last checkpoint, or extend a tempering or quantum run, or a search.

    A search that has met its target is left unchanged. A transfer-matrix run retries rows that lack levels.
    """
    from spinsim.run.alone import plans_of_slow
    from spinsim.run.plan import plan_resume
    from spinsim.run.progress import compiling_told
    from spinsim.settings.shared import OF_MACHINE

    if verbose:
        log_events()
    run = {name: given[name] for name in OF_MACHINE}
    changes = {name: value for name, value in given.items() if name not in run}
    with compiling_told(silent=quiet or as_json):
        if slow_samples and (drop_added or as_json or any(v is not None for k, v in changes.items() if k != "sweeps")):
            raise InputError("--slow-samples goes with --sweeps and settings of the machine: leave the others out")
        whole = [] if slow_samples else [plan_resume(file, changes, run, drop_added=drop_added)]
        for plan in whole or plans_of_slow(file, changes["sweeps"], run):
            carry_out(plan, quiet, as_json)
