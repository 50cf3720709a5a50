"""Campaigns: many runs from one TOML file, which any number of processes work through together.

The file has the tables of one job, and ``[[campaign]]`` tables whose lists vary settings. Each run has a file, whose
name follows from its settings, and seeds of its own. Next to the file lies a note, which the process that carries out
the run has locked. The lock vanishes with the process, so that others go on with a run that was killed.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any, Final, NamedTuple

from spinsim.errors import InputError
from spinsim.inputs.arguments import public
from spinsim.inputs.texts import count, nearest
from spinsim.machine.files import Disk, hold, is_locked, not_written
from spinsim.pooling import gathered
from spinsim.registry import FOLDERS, job_of
from spinsim.result import load
from spinsim.run.execute import to_file
from spinsim.run.identity import config_of
from spinsim.run.plan import SILENT, Watch
from spinsim.run.search import has_met_target
from spinsim.settings import config as settings
from spinsim.settings.config import Config, tables_of
from spinsim.store.files import read, text_attributes

_SAMPLES_PER_RUN: Final = "samples_per_run"
_DIGITS: Final = 12  # hexadecimal digits of an identity in the name of a file
_SECONDS_BETWEEN_NOTES: Final = 5.0


class CampaignRun(NamedTuple):
    """One run of a campaign."""

    path: Path  # its file
    config: Config  # all settings that are given, and its own seeds
    varied: Mapping[str, Any]  # settings of its ``[[campaign]]`` table and its length, with the values of this run

    @property
    def note_path(self) -> Path:
        """File with the progress of the run, or the reason of its failure; locked while the run is carried out."""
        return self.path.with_name(f".{self.path.name}.note")

    @property
    def state(self) -> RunState:
        """State of the run, from its file and its note."""
        note: dict[str, Any] = {}
        with contextlib.suppress(OSError, ValueError):
            note = json.loads(self.note_path.read_text())
        if is_locked(self.note_path) or is_locked(self.path):
            return RunState("running", note.get("share"), note.get("seconds_left"))
        try:
            if self.is_done():
                return RunState("finished", 1.0)
        except InputError as error:
            return RunState("failed", reason=str(error))
        state = "failed" if "reason" in note else "stopped" if self.path.exists() else "waiting"
        return RunState(state, note.get("share"), None, note.get("reason", ""))

    def is_done(self) -> bool:
        """True if the run in the file is finished and as long as it should be; InputError for a damaged file."""
        if not os.path.lexists(self.path):
            return False
        record = read(self.path)
        attributes = text_attributes(record)
        if "finished" not in attributes or attributes["job"] != self.config.job:
            return False
        own, stored = self.config.of_job, config_of(attributes).of_job
        names = job_of(self.config.job).lengths(self.config)
        return has_met_target(record) or all(getattr(stored, name) >= getattr(own, name) for name in names)


class RunState(NamedTuple):
    """State of a run of a campaign."""

    state: str  # ``waiting``, ``running``, ``stopped``, ``finished`` or ``failed``
    share: float | None = None  # finished share of its spin updates, as of a few seconds ago
    seconds_left: float | None = None
    reason: str = ""  # why it failed, a sentence


def runs_of_campaign(path: Path, changes: Mapping[str, Any] | None = None) -> list[CampaignRun]:
    """Return all runs of a campaign's file, in its order; ``changes`` replace settings of ``[run]``.

    Raises:
        InputError: for unknown tables and settings, wrong values, and runs that are given twice.
    """
    tables = settings.parse_toml(path)
    named = [name for name in FOLDERS if name in tables]
    if len(named) != 1:
        raise InputError(
            f"campaign {path} has tables of {count(len(named), 'job')}: give that of one, such as [temper], also empty"
        )
    entries = tables.pop("campaign", {})
    entries = entries if entries and isinstance(entries, list) else [entries]
    if not all(isinstance(entry, dict) for entry in entries):
        raise InputError(f"campaign {path}: campaign must be a table: write [[campaign]] on a line of its own")
    job = job_of(named[0]).config
    below = settings.read_toml(path, job, [job_of(name).config for name in FOLDERS], tables)
    runs = [run for entry in entries for run in _runs_of_entry(path, job, below, entry, changes or {})]
    seen: set[Path] = set()
    for run in runs:
        if run.path in seen:
            raise InputError(f"campaign {path} has one run twice, {dict(run.varied)}: give it once, or another seed")
        seen.add(run.path)
    return runs


def _runs_of_entry(
    path: Path, job: type[Config], below: dict[str, dict[str, Any]], entry: dict[str, Any], changes: Mapping[str, Any]
) -> Iterator[CampaignRun]:
    """Yield the runs of one ``[[campaign]]`` table: each combination of its lists, and each part of its samples."""
    places = settings.places_of(job)
    for name, value in entry.items():
        if name not in places and name != _SAMPLES_PER_RUN:
            hint = nearest(name, [*places, _SAMPLES_PER_RUN])
            raise InputError(f"campaign {path}: unknown key {name!r} in [[campaign]], {hint}")
        if value == []:
            raise InputError(f"campaign {path}: {name} is an empty list: give one value or more")
    lists = {name: value if isinstance(value, list) else [value] for name, value in entry.items()}
    for values in product(*lists.values()):
        varied = dict(zip(lists, values, strict=True))
        tables: dict[str, dict[str, Any]] = {name: {} for name in tables_of(job)}
        for name, value in varied.items():
            if name != _SAMPLES_PER_RUN:
                table, one = places[name]
                tables[table][one.name] = value
        config = settings.build_config(job, below, tables, {"run": changes}, begun=_refuse_random)
        folder = path.parent / (config.run.out or f"runs/{path.stem}")
        for own in _with_seeds(config, varied.get(_SAMPLES_PER_RUN)):
            file = folder / _name(own)
            lengths = {name: getattr(own.of_job, name) for name in job_of(own.job).lengths(own)}
            yield CampaignRun(file, replace(own, run=replace(own.run, out=str(file))), varied | lengths)


def _refuse_random(out: str | None, job: str) -> settings.Tables:
    raise InputError("random seeds would give other runs each time: give whole numbers, each run derives its own seeds")


def _with_seeds(config: Config, samples_per_run: Any) -> Iterator[Config]:
    """Yield a configuration for each part of the samples, with seeds of its own.

    Seeds are the first 64 bits of SHA-256 of settings and the number of the part: the disorder seed that of the model,
    the seed of the dynamics that of all settings but the length, so that a longer run continues a shorter one.
    """
    samples = config.model.samples
    given = samples if samples_per_run is None else samples_per_run
    if not isinstance(given, int) or isinstance(given, bool) or given < 1 or samples % given:
        raise InputError(
            f"{_SAMPLES_PER_RUN} {given!r} does not divide {count(samples, 'sample')}: give a whole number that does"
        )
    config = replace(config, model=replace(config.model, samples=given))
    of_model = settings.kinds_of(type(config))["model"].identity(json.loads(config.json())["model"])
    for part in range(samples // given):
        own = config
        if config.model.instance is None:
            own = replace(
                config, model=replace(config.model, disorder_seed=_seed_of({"model": of_model, "part": part}))
            )
        yield replace(own, run=replace(own.run, seed=_seed_of({"run": _identity(own)})))


def _seed_of(told: dict[str, Any]) -> int:
    return int(settings.sha256(settings.canonical_json(told))[:16], 16)


def _identity(config: Config) -> str:
    """SHA-256 of the settings that determine the numbers of a run, except for its length."""
    tables = json.loads(config.json())
    tables[config.job] |= dict.fromkeys(job_of(config.job).lengths(config), 0)
    return config.identity(tables, None)


def _name(config: Config) -> str:
    of = config.model.size if config.model.instance is None else Path(config.model.instance).stem
    return f"{config.job}-{re.sub(r'[^A-Za-z0-9.]+', '-', of)}-{_identity(config)[:_DIGITS]}.h5"


def _write_note(note: Disk, **entries: Any) -> None:
    note.seek(0)
    note.truncate(0)
    note.write(json.dumps(entries).encode())


def _noting(note: Disk, watch: Watch) -> Watch:
    """Return a watch that also writes the share done and the seconds left into a note, every few seconds."""
    total, before, done, began, last = 0, 0, 0, 0.0, 0.0

    def begin(stage: str, updates: int, from_before: int = 0) -> None:
        nonlocal total, before, done, began
        total, before, done, began = 0 if stage else updates, from_before, from_before, time.monotonic()
        watch.on_stage(stage, updates, from_before)

    def advance(updates: int) -> None:
        nonlocal done, last
        done, now = done + updates, time.monotonic()
        if total and done > before and now - last >= _SECONDS_BETWEEN_NOTES:
            last = now
            _write_note(note, share=done / total, seconds_left=(now - began) * (total - done) / (done - before))
        watch.on_updates(updates)

    return replace(watch, on_stage=begin, on_updates=advance)


def _take(run: CampaignRun) -> Disk | None:
    """Return the note of a run, open and locked; None if another process has locked or finished it."""
    path = run.note_path
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        return hold(path)
    except (BlockingIOError, FileNotFoundError):
        return None
    except OSError as error:
        raise not_written(path, error) from error


def _carry_out(run: CampaignRun, follow: Follow) -> bool:
    """Carry out a run unless it is finished, or note why it fails; return False if another process carries it out."""
    note = _take(run)
    if note is None:
        return False
    with note:
        try:
            if not run.is_done():
                with follow(run) as watch:
                    to_file(job_of(run.config.job).plan(run.config), _noting(note, watch))
            run.note_path.unlink()
        except (InputError, MemoryError) as error:
            if isinstance(error.__cause__, BlockingIOError):  # such as by spinsim resume
                return False
            _write_note(note, reason=str(error) or "memory ran out: choose fewer samples or replicas")
    return True


Follow = Callable[[CampaignRun], contextlib.AbstractContextManager[Watch]]
"""Returns the context in which a run is carried out, and which gives the watch of its progress."""


@public
@dataclass(frozen=True)
class Campaign:
    """The runs of a campaign's file, which ``ss.campaign`` returns.

    Attributes:
        runs: All runs, each with the ``path`` of its file, its ``config`` and the settings that are ``varied``.
    """

    runs: list[CampaignRun]

    @property
    def states(self) -> list[RunState]:
        """State of each run: ``state``, ``share`` done, ``seconds_left`` and the ``reason`` of a failure."""
        return [run.state for run in self.runs]

    @property
    def results(self) -> list[Any]:
        """Results of the finished runs, pooled where they differ in seeds and disorder alone, in the order of the file.

        With one entry for each size, the list is fit for ``ss.compare_sizes``, ``ss.collapse`` and ``ss.quotients``.
        """
        return [result for _, result in pooled_runs(self.runs, self.states)]

    def run(self) -> Campaign:
        """Carry out all runs that are neither finished nor carried out by other processes, and return the campaign.

        A run that fails does not stop the others; its state has the reason.

        Raises:
            KeyboardInterrupt: on Ctrl-C, when the present run is saved.
        """
        carry_out_all(self.runs, lambda run: contextlib.nullcontext(SILENT))
        return self


def carry_out_all(runs: Sequence[CampaignRun], follow: Follow) -> None:
    """Carry out all runs that are neither finished nor carried out by other processes, one after the other.

    Runs of other processes are looked at again at the end, since these may have been stopped meanwhile.
    """
    left, before = list(runs), len(runs) + 1
    while len(left) < before:
        left, before = [run for run in left if not _carry_out(run, follow)], len(left)


def pooled_runs(runs: Sequence[CampaignRun], states: Sequence[RunState]) -> list[tuple[list[Path], Any]]:
    """Pool finished runs that differ in seeds and disorder alone; return the files and the result of each pool."""
    files = [run.path for run, state in zip(runs, states, strict=True) if state.state == "finished"]
    return gathered(files, [load(file) for file in files])


@public
def campaign(path: str | os.PathLike[str]) -> Campaign:
    """Read the file of a campaign: runs of one job that differ in sizes, temperatures, samples, seeds and so on.

    The file is that of ``--config`` with ``[[campaign]]`` tables, in which each setting may be a list.

    Args:
        path: TOML file, such as ``glass.toml``; its runs are in the folder ``runs/glass`` beside it.

    Returns:
        A ``Campaign``; its method ``run`` carries out the runs that are missing.

    Raises:
        InputError: for a file that cannot be read, unknown or wrong settings, and runs that are given twice.
    """
    return Campaign(runs_of_campaign(Path(path)))
