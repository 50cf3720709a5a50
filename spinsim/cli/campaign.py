"""``spinsim campaign``: many runs from one TOML file, by one or several processes; their state and analysis."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from spinsim.cli import flags
from spinsim.cli.flags import Flag
from spinsim.cli.running import OF_RUN, settings_unchanged, watch_of
from spinsim.cli.saying import say, say_json
from spinsim.errors import InputError
from spinsim.inputs.texts import count, quoted

if TYPE_CHECKING:
    from spinsim.run.campaign import Campaign, CampaignRun, RunState
    from spinsim.run.plan import Watch
    from spinsim.settings.setting import Setting

_INTERRUPTED: Final = 130
_FAILED: Final = 2


def _changeable() -> dict[str, Setting]:
    from spinsim.settings.setting import settings_of
    from spinsim.settings.shared import RunSettings

    return settings_unchanged({name: settings_of(RunSettings)[name] for name in OF_RUN})


@flags.taking(_changeable)
def campaign(
    file: Annotated[
        Path, typer.Argument(help="TOML file with the tables of one job, and [[campaign]] tables that vary them.")
    ],
    given: flags.Given,
    state: Annotated[bool, Flag("--state", help="Only print the state of all runs.")] = False,
    analyze: Annotated[bool, Flag("--analyze", help="Only print the analysis of the finished runs.")] = False,
    workers: Annotated[
        int | None,
        flags.Whole(help="Processes on this machine, which share its cores or have a GPU each.  [1, or one per GPU]"),
    ] = None,
    task: Annotated[
        int | None, flags.Whole(help="Carry out a fixed share of the runs: the number of this task.")
    ] = None,
    tasks: Annotated[int | None, flags.Whole(help="Number of tasks that share the runs, with --task.")] = None,
    time_limit: Annotated[
        float | None, flags.Real(help="Seconds after which the present run is saved and the campaign stops.")
    ] = None,
    quiet: flags.Quiet = False,
    as_json: Annotated[bool, Flag("--json", help="Print states and analysis as one JSON object.")] = False,
) -> None:
    """Carry out all runs of a campaign that are missing, and analyse them together.

    Runs vary settings by the lists in [[campaign]]. The command may run several times at once, such as in all tasks of
    a Slurm array: a run that another process carries out is left to it. Given again, it continues interrupted runs,
    makes runs longer where sweeps have grown, and carries out those that were added to the file.
    """
    from spinsim.run.campaign import Campaign, carry_out_all, check_time_limit, runs_of_campaign

    check_time_limit(time_limit)
    whole = Campaign(file, runs_of_campaign(file, given))
    runs = _share(whole.runs, task, tasks)
    if state or analyze:
        _report(whole, as_json, state, analyze)
        return
    gpus = _gpus(runs[0]) if runs else []
    workers = max(1, len(gpus)) if workers is None else workers
    flags.check_repeats(workers)
    try:
        if workers > 1:
            own = given | {"task": task, "tasks": tasks, "time_limit": time_limit, "workers": 1}
            command = [*_own_command(own), "--quiet", str(file)]
            _in_processes(command, workers, gpus, given["threads"] is not None)
        else:
            carry_out_all(runs, lambda run: _followed(run, runs, quiet or as_json), time_limit)
    except KeyboardInterrupt:
        say(f"Interrupted; spinsim campaign {quoted(file)} goes on.", err=True)
        raise typer.Exit(_INTERRUPTED) from None
    states = _report(whole, as_json, not quiet, not quiet or as_json)
    if any(one.state == "failed" for one in states):
        raise typer.Exit(_FAILED)


def _share(runs: list[CampaignRun], task: int | None, tasks: int | None) -> list[CampaignRun]:
    if task is None and tasks is None:
        return runs
    if task is None or tasks is None or tasks < 1 or task < 0:
        raise InputError(
            f"--task {task} and --tasks {tasks} go together: give the number of a task, and of all of them"
        )
    return [run for number, run in enumerate(runs) if number % tasks == task % tasks]


def _gpus(run: CampaignRun) -> list[int]:
    """Numbers of the GPUs that workers may have; empty if runs stay on the CPU or have GPUs named."""
    from spinsim.engine.devices import CUDA, gpu_numbers, resolve_device
    from spinsim.parallel import launched

    if launched() is not None or run.config.run.gpus is not None or resolve_device(run.config.run.device) != CUDA:
        return []
    return gpu_numbers(f"{CUDA}:all")


def _in_processes(command: list[str], workers: int, gpus: list[int], has_threads: bool) -> None:
    """Carry out a campaign by several processes of this command, each with its share of the cores or a GPU.

    Raises:
        KeyboardInterrupt: after a signal, when all of them have saved their runs, and if one of them was stopped.
    """
    from spinsim.machine.threads import available_threads, stopping_on_signals

    begun, signals = list[subprocess.Popen[bytes]](), list[bool]()

    def stop() -> None:
        signals.append(True)
        for one in begun:
            one.terminate()

    share = [] if has_threads else ["--threads", str(max(1, available_threads() // workers))]
    with stopping_on_signals(stop):
        for number in range(workers):
            gpu = ["--gpus", f"{gpus[number % len(gpus)]},"] if gpus else []
            if not signals:  # in sessions of their own, as Ctrl-C would reach them twice
                words = [*command, *share, *gpu]
                begun.append(subprocess.Popen(words, start_new_session=True))  # noqa: S603  (this very program)
        statuses = [one.wait() for one in begun]
    if signals or any(status not in (0, _FAILED) for status in statuses):
        raise KeyboardInterrupt


def _own_command(given: Mapping[str, Any]) -> list[str]:
    """Return this command with flags by name, as words for a process."""
    flags_given = {name.replace("_", "-"): str(value) for name, value in given.items() if value is not None}
    words = [word for name, value in flags_given.items() for word in (f"--{name}", value)]
    return [sys.executable, "-m", "spinsim", "campaign", *words]


@contextlib.contextmanager
def _followed(run: CampaignRun, runs: list[CampaignRun], silent: bool) -> Iterator[Watch]:
    """Print a line about a run that begins, show its progress, and print its rate at the end."""
    from spinsim.jobs import job_of
    from spinsim.run.progress import Bar, compiling_told

    if not silent:
        say(f"Run {runs.index(run) + 1} of {len(runs)}: {', '.join(filter(None, (run.in_words, str(run.path))))}")
    with compiling_told(silent), Bar(silent, job_of(run.config.job).counts_rows) as progress:
        try:
            yield watch_of(progress, silent)
        except InputError as error:
            say(f"{run.path} failed: {error}", err=True)
            raise
    if not silent:
        say(*(f"  {line}" for line in progress.speed))


def _report(whole: Campaign, as_json: bool, with_states: bool, with_analysis: bool) -> list[RunState]:
    """Print the states of all runs and the analysis of the finished ones, as far as they are wanted."""
    from spinsim.cli.analyze import pooled_analysis, tell
    from spinsim.run.campaign import pooled_groups

    states = whole.state
    pools = pooled_groups(whole.runs, states) if with_analysis else {}
    groups = {name: pooled_analysis(runs) for name, runs in pools.items()}
    if as_json:
        runs = [
            {"file": str(run.path), **run.varied, **one._asdict()} for run, one in zip(whole.runs, states, strict=True)
        ]
        analysis = [{"group": name, **one.numbers} for name, reports in groups.items() for one in reports]
        say_json({"runs": runs, "analysis": analysis})
        return states
    if with_states:
        say(*_state_lines(whole.runs, states))
    if with_analysis and not groups:
        say("No run is finished yet: the analysis begins with the first.")
    for name, reports in groups.items():
        say("", *([f"With {name}:"] if name else []))
        tell(reports, as_json=False)
    return states


def _state_lines(runs: list[CampaignRun], states: list[RunState]) -> list[str]:
    """Lines of the table of runs, with the reasons of failures and the number of runs in each state below it."""
    from spinsim.analysis.tables import in_columns
    from spinsim.run.progress import duration

    names = list(dict.fromkeys(name for run in runs for name in run.varied))
    rows = [["run", *names, "state", "done", "time left"]]
    for number, (run, one) in enumerate(zip(runs, states, strict=True), 1):
        done = "" if one.share is None else f"{one.share:.0%}"
        left = "" if one.seconds_left is None else duration(one.seconds_left)
        rows.append([str(number), *(str(run.varied.get(name, "")) for name in names), one.state, done, left])
    lines = in_columns(list(zip(*rows, strict=True)), None)
    lines = [f"{line}  {file}" for line, file in zip(lines, ["file", *(str(run.path) for run in runs)], strict=True)]
    lines += [f"Run {k}: {one.reason}" for k, one in enumerate(states, 1) if one.reason]
    kinds = [one.state for one in states]
    counts = ", ".join(f"{kinds.count(name)} {name}" for name in dict.fromkeys(kinds))
    return [*lines, f"{count(len(runs), 'run')}: {counts}"]
