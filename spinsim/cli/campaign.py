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
from spinsim.cli.analyze import pooled_analysis, tell
from spinsim.cli.flags import Flag
from spinsim.cli.running import of_run, watch_of
from spinsim.cli.saying import say, say_json
from spinsim.errors import InputError
from spinsim.inputs.texts import count, quoted

if TYPE_CHECKING:
    from spinsim.run.campaign import CampaignRun, RunState
    from spinsim.run.plan import Watch

_FAILED: Final = 2  # exit status


@flags.taking(of_run)
def campaign(
    file: Annotated[Path, typer.Argument(help="TOML file: tables of one job, and [[campaign]] tables that vary them.")],
    given: flags.Given,
    state: Annotated[bool, Flag("--state", help="Compute nothing, print the state of all runs.")] = False,
    analyze: Annotated[
        bool, Flag("--analyze", help="Compute nothing, print the analysis of the finished runs.")
    ] = False,
    workers: Annotated[int | None, flags.Whole(help="Processes that share the cores.  [1, or one per GPU]")] = None,
    quiet: flags.Quiet = False,
    as_json: Annotated[bool, Flag("--json", help="Print states and analysis as one JSON object.")] = False,
) -> None:
    """Carry out all runs of a campaign that are missing, and analyse them together.

    The lists in [[campaign]] vary settings. The command may run several times at once, such as in all tasks of a Slurm
    array: a run that another process carries out is left to it. Given again, it continues interrupted runs, makes runs
    longer where sweeps have grown, and carries out those that were added to the file.
    """
    from spinsim.run.campaign import carry_out_all, runs_of_campaign

    runs = runs_of_campaign(file, given)
    if not state and not analyze:
        gpus = _gpus(runs)
        workers = max(1, len(gpus)) if workers is None else workers
        flags.check_number_of("workers", workers)
        try:
            if workers > 1:
                _in_processes(file, workers, gpus, given)
            else:
                carry_out_all(runs, lambda run: _followed(run, runs, quiet or as_json))
        except KeyboardInterrupt:
            say(f"Interrupted; spinsim campaign {quoted(file)} goes on.", err=True)
            raise
    states = [run.state for run in runs]
    if as_json or not quiet:
        _report(runs, states, as_json, table=state or not analyze, averages=analyze or not state)
    if not state and not analyze and any(one.state == "failed" for one in states):
        raise typer.Exit(_FAILED)


def _gpus(runs: list[CampaignRun]) -> list[int]:
    """Numbers of the GPUs that workers may have; empty on the CPU, and for ranks, which share the work of a run."""
    from spinsim.engine.devices import CUDA, gpu_numbers, resolve_device
    from spinsim.parallel import launched

    where = "cpu" if launched() else resolve_device(runs[0].config.run.device, runs[0].config.run.gpus)
    return [] if where == "cpu" else gpu_numbers(f"{CUDA}:all" if where == CUDA else where)


def _in_processes(file: Path, workers: int, gpus: list[int], given: Mapping[str, Any]) -> None:
    """Carry out a campaign by several processes of this command, each with its share of the cores or a GPU."""
    from spinsim.machine.threads import available_threads, stopping_on_signals

    begun: list[subprocess.Popen[bytes]] = []
    own = {"threads": max(1, available_threads() // workers)} | {k: v for k, v in given.items() if v is not None}

    def stop() -> None:
        for one in begun:
            one.terminate()

    with stopping_on_signals(stop):
        for number in range(workers):
            if gpus:
                own["gpus"] = f"{gpus[number % len(gpus)]},"
            words = [f"--{name.replace('_', '-')}={value}" for name, value in own.items()]
            command = [sys.executable, "-m", "spinsim", "campaign", "--quiet", "--workers=1", *words, "--", str(file)]
            # in sessions of their own, as Ctrl-C would reach them twice
            begun.append(subprocess.Popen(command, start_new_session=True))  # noqa: S603  (this very program)
        statuses = [one.wait() for one in begun]
    if any(status not in (0, _FAILED) for status in statuses):
        raise KeyboardInterrupt


@contextlib.contextmanager
def _followed(run: CampaignRun, runs: list[CampaignRun], silent: bool) -> Iterator[Watch]:
    """Print a line about a run that begins, show its progress, and print its rate at the end, or why it failed."""
    from spinsim.jobs import job_of
    from spinsim.run.progress import Bar, compiling_told

    if not silent:
        say(f"Run {runs.index(run) + 1} of {len(runs)}: {run.path}")
    with compiling_told(silent), Bar(silent, job_of(run.config.job).counts_rows) as progress:
        try:
            yield watch_of(progress, silent)
        except InputError as error:
            say(f"{run.path} failed: {error}", err=True)
            raise
    if not silent:
        say(*progress.speed)


def _report(runs: list[CampaignRun], states: list[RunState], as_json: bool, table: bool, averages: bool) -> None:
    from spinsim.run.campaign import pooled_runs

    pools = pooled_runs(runs, states) if averages else []
    reports = pooled_analysis(pools) if pools else []
    if as_json:
        rows = [{"file": str(run.path), **run.varied, **one._asdict()} for run, one in zip(runs, states, strict=True)]
        say_json({"runs": rows, "analysis": [one.numbers for one in reports]})
        return
    if table:
        say(*_state_lines(runs, states))
    if averages:
        say("" if reports else "No run is finished yet, so there is nothing to analyse.")
        tell(reports, as_json=False)


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
    lines = [f"{line}  {file}" for line, file in zip(lines, ["file", *(run.path for run in runs)], strict=True)]
    lines += [f"Run {number}: {one.reason}" for number, one in enumerate(states, 1) if one.reason]
    kinds = [one.state for one in states]
    return [*lines, f"{count(len(runs), 'run')}: {', '.join(f'{kinds.count(k)} {k}' for k in dict.fromkeys(kinds))}"]
