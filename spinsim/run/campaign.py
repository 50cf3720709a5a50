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
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any, Final, NamedTuple

from spinsim.errors import InputError
from spinsim.inputs.arguments import public
from spinsim.inputs.texts import RANDOM, Described, count, enumerated, nearest
from spinsim.machine.files import Disk, hold, is_locked
from spinsim.pooling import gathered
from spinsim.registry import FOLDERS, job_of
from spinsim.result import load
from spinsim.run.execute import to_file
from spinsim.run.identity import config_of
from spinsim.run.plan import SILENT, Watch
from spinsim.run.search import has_met_target
from spinsim.settings.config import (
    Config,
    build_config,
    canonical_json,
    checked_tables,
    kinds_of,
    parse_toml,
    sha256,
    tables_of,
)
from spinsim.settings.setting import Setting
from spinsim.store.files import read, text_attributes

CAMPAIGN: Final = "campaign"  # name of the tables that vary settings
_SAMPLES_PER_RUN: Final = "samples_per_run"
_NOT_APART: Final = ("size", "seed", "disorder_seed", "samples", "sweeps", "thermalize")
"""Settings whose lists do not separate analyses: sizes are compared with each other, and the others are pooled."""
_DIGITS: Final = 12  # hexadecimal digits of an identity in the name of a file
_SECONDS_BETWEEN_NOTES: Final = 5.0

Follow = Callable[["CampaignRun"], AbstractContextManager[Watch]]
"""Returns the context in which a run is carried out, and which gives the watch of its progress."""


class CampaignRun(NamedTuple):
    """One run of a campaign."""

    path: Path  # its file
    config: Config  # all settings that are given, and its own seeds
    varied: Mapping[str, Any]  # settings of its ``[[campaign]]`` table and its length, with the values of this run
    group: str  # values of the lists that separate analyses, in words; empty without such lists

    @property
    def in_words(self) -> str:
        return ", ".join(f"{name} {value}" for name, value in self.varied.items())

    @property
    def note_path(self) -> Path:
        """File with the progress of the run, or the reason of its failure; locked while the run is carried out."""
        return self.path.with_name(f".{self.path.name}.note")

    @property
    def state(self) -> RunState:
        """State of the run, from its file and its note."""
        note = _noted(self.note_path)
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
        """True if the run in the file is finished and as long as it should be.

        Raises:
            InputError: for a damaged file.
        """
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
    tables = parse_toml(path)
    if not path.suffix:
        raise InputError(f"campaign {path} has the name that the folder of its runs gets: call it {path.name}.toml")
    named = [name for name in FOLDERS if name in tables]
    if len(named) != 1:
        found = f"the tables of {enumerated(named, 'and')}" if named else "no table of a job"
        raise InputError(f"campaign {path} has {found}: give that of one job, such as [temper], which may be empty")
    entries = tables.pop(CAMPAIGN, {})
    entries = entries if isinstance(entries, list) else [entries]
    if not all(isinstance(entry, dict) for entry in entries):
        raise InputError(f"campaign {path}: campaign must be a table: write [[campaign]] on a line of its own")
    job = job_of(named[0]).config
    below = checked_tables(path, tables, job, [job_of(name).config for name in FOLDERS])
    runs = [run for entry in entries for run in _runs_of_entry(path, job, below, entry, changes or {})]
    seen: set[Path] = set()
    for run in runs:
        if run.path in seen:
            raise InputError(f"campaign {path} has one run twice, {run.in_words}: give it once, or another seed")
        seen.add(run.path)
    return runs


def _runs_of_entry(
    path: Path, job: type[Config], below: dict[str, dict[str, Any]], entry: dict[str, Any], changes: Mapping[str, Any]
) -> Iterator[CampaignRun]:
    """Yield the runs of one ``[[campaign]]`` table: each combination of its lists, and each part of its samples."""
    places = _places_of(job)
    for name, value in entry.items():
        if name not in places and name != _SAMPLES_PER_RUN:
            hint = nearest(name, [*places, _SAMPLES_PER_RUN])
            raise InputError(f"campaign {path}: unknown key {name!r} in [[campaign]], {hint}")
        if value == []:
            raise InputError(f"campaign {path}: {name} is an empty list: give one value or more")
    lists = {name: value if isinstance(value, list) else [value] for name, value in entry.items()}
    apart = [name for name in entry if len(lists[name]) > 1 and name not in _NOT_APART]
    for values in product(*lists.values()):
        varied = dict(zip(lists, values, strict=True))
        tables: dict[str, dict[str, Any]] = {name: {} for name in tables_of(job)}
        for name, value in varied.items():
            if name != _SAMPLES_PER_RUN:
                table, one = places[name]
                tables[table][one.name] = value
        _check(path, job, [below, tables])
        config = build_config(job, below, tables, {"run": changes})
        group = ", ".join(f"{name} {varied[name]}" for name in apart)
        folder = path.parent / (config.run.out or path.stem)
        for own in _with_seeds(config, varied.get(_SAMPLES_PER_RUN)):
            file = folder / _name(own)
            lengths = {name: getattr(own.of_job, name) for name in job_of(own.job).lengths(own)}
            yield CampaignRun(file, replace(own, run=replace(own.run, out=str(file))), varied | lengths, group)


def _places_of(job: type[Config]) -> dict[str, tuple[str, Setting]]:
    """Settings by name, each with its table; of two with one name the second begins with its table's name."""
    places: dict[str, tuple[str, Setting]] = {}
    for table in ("model", job.job, "run"):
        for name, one in tables_of(job)[table].items():
            if not one.unused:
                places[f"{table}_{name}" if name in places else name] = table, one
    return places


def _check(path: Path, job: type[Config], layers: Sequence[Mapping[str, Mapping[str, Any]]]) -> None:
    """Refuse settings that several runs cannot have."""
    for table, settings in tables_of(job).items():
        for name, one in settings.items():
            value = next((layer[table][name] for layer in reversed(layers) if name in layer.get(table, {})), None)
            if one.is_seed and value == RANDOM:
                raise InputError(
                    f"campaign {path}: {name} {RANDOM} would give other runs each time: give a whole number; each run "
                    "gets seeds of its own from it"
                )
            if one.is_path and value is not None and name not in ("instance", "out"):
                raise InputError(f"campaign {path}: {name} {value!r} is one file for all runs: leave it out")


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
    for number in range(samples // given):
        own = config
        if config.model.instance is None:
            model = replace(config.model, samples=given)
            seed = _seed_of({"model": _identity_of_model(replace(config, model=model)), "part": number})
            own = replace(config, model=replace(model, disorder_seed=seed))
        yield replace(own, run=replace(own.run, seed=_seed_of({"run": _identity(own)})))


def _seed_of(settings: dict[str, Any]) -> int:
    return int(sha256(canonical_json(settings))[:16], 16)


def _identity_of_model(config: Config) -> dict[str, Any]:
    return kinds_of(type(config))["model"].identity(json.loads(config.json())["model"])


def _identity(config: Config) -> str:
    """SHA-256 of the settings that determine the numbers of a run, except for its length."""
    tables = json.loads(config.json())
    tables[config.job] |= dict.fromkeys(job_of(config.job).lengths(config))
    return config.identity(tables, None)


def _name(config: Config) -> str:
    of = config.model.size if config.model.instance is None else Path(config.model.instance).stem
    return f"{config.job}-{re.sub(r'[^A-Za-z0-9.]+', '-', of)}-{_identity(config)[:_DIGITS]}.h5"


def _noted(path: Path) -> dict[str, Any]:
    with contextlib.suppress(OSError, ValueError):
        return dict(json.loads(path.read_text()))
    return {}


class _Note:
    """The locked note of a run that this process carries out: its progress, or why it failed."""

    def __init__(self, disk: Disk) -> None:
        self._disk, self._last = disk, time.monotonic()
        self._total, self._before, self._done, self._began = 0, 0, 0, self._last
        self._is_run = False

    def write(self, **entries: Any) -> None:
        self._last = time.monotonic()
        self._disk.seek(0)
        self._disk.truncate(0)
        self._disk.write(json.dumps(entries).encode())

    def write_progress(self) -> None:
        if self._is_run and self._total:
            left, done = self._total - self._done, self._done - self._before
            seconds = left * (time.monotonic() - self._began) / done if done else None
            self.write(share=round(self._done / self._total, 4), seconds_left=seconds)

    def followed(self, watch: Watch) -> Watch:
        """Return a watch that also writes the progress into the note."""

        def begin(stage: str, total: int, done: int = 0) -> None:
            self._is_run, self._total, self._before, self._done = not stage, total, done, done
            self._began = time.monotonic()
            watch.on_stage(stage, total, done)

        def advance(updates: int) -> None:
            self._done += updates
            if time.monotonic() - self._last >= _SECONDS_BETWEEN_NOTES:
                self.write_progress()
            watch.on_updates(updates)

        return replace(watch, on_stage=begin, on_updates=advance)


@contextlib.contextmanager
def _taken(run: CampaignRun) -> Iterator[_Note | None]:
    """Lock the note of a run; None if another process has locked it."""
    path = run.note_path
    try:
        while True:
            path.parent.mkdir(parents=True, exist_ok=True)
            os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o666))
            with contextlib.suppress(FileNotFoundError):  # another process has just finished the run
                disk = hold(path)
                break
    except BlockingIOError:
        yield None
        return
    except OSError as error:
        raise InputError(f"{path} cannot be written ({error.strerror}): make {path.parent} writable") from error
    with disk:
        yield _Note(disk)


def _carry_out(run: CampaignRun, follow: Follow) -> bool:
    """Carry out a run unless it is finished; return False if another process carries it out.

    A failure is written into the note, and the campaign goes on with other runs.
    """
    with _taken(run) as note:
        if note is None:
            return False
        try:
            if not run.is_done():
                with follow(run) as watch:
                    to_file(job_of(run.config.job).plan(run.config), note.followed(watch))
            run.note_path.unlink()
        except KeyboardInterrupt:
            note.write_progress()
            raise
        except (InputError, MemoryError) as error:
            if isinstance(error.__cause__, BlockingIOError):  # such as by spinsim resume
                return False
            note.write(reason=str(error) or "memory ran out: choose fewer samples or replicas")
    return True


def carry_out_all(runs: Sequence[CampaignRun], follow: Follow, time_limit: float | None = None) -> None:
    """Carry out all runs that are neither finished nor carried out by other processes, one after the other.

    Runs of other processes are looked at again at the end, since these may have been stopped meanwhile.

    Raises:
        KeyboardInterrupt: after a signal or at the time limit, when the present run is saved.
    """
    end = None if time_limit is None else time.monotonic() + time_limit
    timer = threading.Timer(time_limit or 0.0, signal.raise_signal, [signal.SIGINT])
    timer.daemon = True
    if end is not None:
        timer.start()
    try:
        left, before = list(runs), len(runs) + 1
        while left and len(left) < before:
            before, others = len(left), []
            for run in left:
                if end is not None and time.monotonic() >= end:
                    raise KeyboardInterrupt
                if not _carry_out(run, follow):
                    others.append(run)
            left = others
    finally:
        timer.cancel()


def pooled_groups(runs: Sequence[CampaignRun], states: Sequence[RunState]) -> dict[str, list[tuple[list[Path], Any]]]:
    """Pool finished runs, apart for each value of the settings that the file varies besides sizes and seeds.

    Returns:
        Values of these settings in words, such as ``field 0.5``, each with the files and the result of its pools.
    """
    files: dict[str, list[Path]] = {}
    for run, state in zip(runs, states, strict=True):
        if state.state == "finished":
            files.setdefault(run.group, []).append(run.path)
    return {group: gathered(paths, [load(path) for path in paths]) for group, paths in files.items()}


@public
class Campaign(Described):
    """The runs of a campaign's file, which ``ss.campaign`` returns.

    Attributes:
        path: The TOML file.
        runs: All runs, each with the ``path`` of its file, its ``config`` and the settings that are ``varied``.
    """

    def __init__(self, path: Path, runs: Sequence[CampaignRun]) -> None:
        self.path, self.runs = path, list(runs)

    @property
    def _summary(self) -> dict[str, str]:
        states = [one.state for one in self.state]
        words = [f"{states.count(name)} {name}" for name in dict.fromkeys(states)]
        return {"file": str(self.path), "runs": count(len(self.runs), "run"), "state": enumerated(words, "and")}

    @property
    def state(self) -> list[RunState]:
        """State of each run: ``state``, ``share`` done, ``seconds_left`` and the ``reason`` of a failure."""
        return [run.state for run in self.runs]

    @property
    def results(self) -> list[Any]:
        """Results of all finished runs, pooled where runs differ in seeds and disorder alone, in the order of the file.

        With one entry for each size, the list is fit for ``ss.compare_sizes``, ``ss.collapse`` and ``ss.quotients``.
        """
        return [result for group in pooled_groups(self.runs, self.state).values() for _, result in group]

    def run(self, time_limit: float | None = None) -> Campaign:
        """Carry out all runs that are neither finished nor carried out by other processes.

        A run that fails does not stop the others; ``state`` has the reason.

        Args:
            time_limit: Seconds after which the present run is saved and the campaign stops.

        Returns:
            The campaign itself.

        Raises:
            KeyboardInterrupt: on Ctrl-C and at the time limit, when the present run is saved.
        """
        check_time_limit(time_limit)
        carry_out_all(self.runs, lambda run: contextlib.nullcontext(SILENT), time_limit)
        return self


@public
def campaign(path: str | os.PathLike[str]) -> Campaign:
    """Read the file of a campaign: many runs of one job that differ in sizes, temperatures, samples, seeds and so on.

    The file is that of ``--config`` with ``[[campaign]]`` tables, in which each setting may be a list.

    Args:
        path: TOML file, such as ``glass.toml``; the files of the runs are in the folder ``glass`` beside it.

    Returns:
        A ``Campaign``; its method ``run`` carries out the runs that are missing.

    Raises:
        InputError: for a file that cannot be read, unknown or wrong settings, and runs that are given twice.
    """
    return Campaign(Path(path), runs_of_campaign(Path(path)))


def check_time_limit(time_limit: float | None) -> None:
    if time_limit is not None and not 0 < time_limit < threading.TIMEOUT_MAX:
        raise InputError(f"time_limit {time_limit} is out of range: give a positive number of seconds")
