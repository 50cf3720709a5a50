"""The identity of the run in a file: its attributes are checked, and compared with a plan."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from spinsim.errors import InputError, another_path, worded
from spinsim.inputs.texts import count
from spinsim.machine.files import is_locked
from spinsim.record import Record
from spinsim.registry import job_of
from spinsim.settings.config import Config
from spinsim.store import files, segments
from spinsim.store.contents import Arrays, every_of, rows_in

_ENTRY: Final[dict[str, type]] = {"command": str, "date": str, "config_sha256": str}
_LENGTHS: Final[dict[str, type]] = {"sweeps": int, "time_limit": float, "anneals": int}
_MOST_HISTORY: Final = 60_000  # bytes; an attribute holds 64 KiB


class AlreadyFinishedError(Exception):
    """Another process has finished the run in the meantime."""


def config_of(attributes: Mapping[str, str]) -> Config:
    """Return the configuration of a run, from the root attributes of its record."""
    config: Config = job_of(attributes["job"]).config.from_tables(json.loads(attributes["config"]))
    return config


def tables_of_file(path: str | None, job: str) -> dict[str, dict[str, Any]]:
    """Return the configuration of a job's run in a file, as tables; empty if there is no such file."""
    if path is None or not os.path.lexists(path):
        return {}
    # Errors of the file are reported later.
    with contextlib.suppress(InputError, AttributeError, KeyError, TypeError, ValueError):
        attributes = files.read(path).attributes
        tables = json.loads(attributes["config"])
        replicas = tables["run"]["replicas"]
        if attributes["job"] == job and isinstance(replicas, int) and replicas and tables[job].keys():
            return dict(tables)
    return {}


def history_of(attributes: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return an entry for each length of a run, from the first to the present one; empty if it was never extended.

    An entry has ``command``, ``date``, ``config_sha256`` and the settings for the planned length.
    """
    try:
        entries = json.loads(attributes.get("history", "[]"))
        told = {name: kind for name, kind in _LENGTHS.items() if any(name in entry for entry in entries)}
        return [{name: kind(entry[name]) for name, kind in (_ENTRY | told).items()} for entry in entries]
    except (ValueError, TypeError, KeyError):  # damaged
        return []


def lengths(attributes: Mapping[str, str]) -> list[str]:
    return [attributes.get("config_sha256", ""), *(entry["config_sha256"] for entry in history_of(attributes))]


def extended_history(attributes: Mapping[str, str], config: Config, command: str, identity: str) -> str:
    """Return the new attribute ``history`` of a file, after ``command`` extends its run to a longer configuration."""
    names, before = job_of(config.job).lengths(config), json.loads(attributes["config"])[config.job]
    own = {name: getattr(config.of_job, name) for name in names}
    first = _entry(attributes["command"], attributes["created"], attributes["config_sha256"])
    entries = history_of(attributes) or [first | {name: before[name] for name in names}]
    entries.append(_entry(command, files.stamp(), identity) | own)
    while len(text := json.dumps(entries)) > _MOST_HISTORY:
        del entries[1]
    return text


def _entry(command: str, date: str, identity: str) -> dict[str, Any]:
    return {"command": command, "date": date, "config_sha256": identity}


def length_in_words(entry: Mapping[str, Any]) -> str:
    words = {name: count(entry[name], name[:-1]) for name in ("sweeps", "anneals") if name in entry}
    words |= {"time_limit": f"{entry['time_limit']:g} s"} if "time_limit" in entry else {}
    return " or ".join(words[name] for name in ("sweeps", "time_limit", "anneals") if name in words)


@contextlib.contextmanager
def open_own(plan: Any) -> Iterator[files.RunFile]:
    """Open and lock the file of a plan, after checking that it holds this run, or the shorter run that is extended.

    Raises:
        InputError: if it holds another run, is damaged or changed.
        AlreadyFinishedError: if nothing is left to do.
    """
    with files.open_to_write(plan.path) as file:
        if not file.is_whole and not plan.drop_added:
            if not files.has_additions(plan.path):
                raise _altered(plan.path)
            call = worded("spinsim resume --drop-added", "ss.resume(path, drop_added=True)")
            raise InputError(
                f"{plan.path} has parts that another program added, which going on would drop: copy them elsewhere, "
                f"then {call} goes on without them"
            )
        attributes = files.text_attributes(file.record)
        known = plan.attributes["config_sha256"], plan.extends
        if (
            attributes.get("config_sha256") not in known
            or attributes["model_sha256"] != plan.attributes["model_sha256"]
        ):
            raise another(plan.path)
        if attributes["config_sha256"] == known[0] and "finished" in attributes:
            raise AlreadyFinishedError
        yield file


def another(path: Path) -> InputError:
    return InputError(f"{path} holds another run and is never overwritten: {another_path()}")


def _altered(path: Path) -> files.DamageError:
    return files.damaged(path, "though no number has changed: its bytes are not those of its SHA-256")


def verify(path: Path) -> str:
    """Read and check a whole file, and return its state in a few words."""
    record, is_whole = files.read_and_compare(path)
    for one in files.listed_in(record):
        segments.verify(path.parent, one)
    if not is_whole and not files.has_additions(path):
        raise _altered(path)
    whole = "whole" if is_whole else "all that spinsim wrote is whole, other programs have added to it"
    state = "another process writes it" if is_locked(path) else "not finished"
    state = "finished" if "finished" in record.attributes else state
    return f"{whole}, {state}: {count(rows_of(record), 'row')}"


def rows_of(record: Record) -> int:
    """Number of rows of the run in a record."""
    lengths = [
        (len(one.values) + 1) * every_of(group) - 1
        for group in record.groups.values()
        for one in rows_in(group).values()
    ]
    return min(lengths, default=0)


def check_stored_state(path: Path, saved: Arrays, like: Arrays) -> None:
    """Refuse a checkpoint whose arrays differ in name, shape or type from those of the run."""

    def forms(arrays: Arrays) -> dict[str, tuple[tuple[int, ...], bool]]:
        return {name: (np.shape(one)[1:], np.asarray(one).dtype.kind == "f") for name, one in arrays.items()}

    if forms(saved) != forms(like):
        raise files.damaged(path, "its checkpoint is of another run")


def is_longer(config: Config, shorter: Config) -> bool:
    """Return True if a configuration is a longer version of another one of the same job."""
    job = job_of(config.job)
    names, own, other = job.lengths(config), config.of_job, shorter.of_job
    if not names or names != job.lengths(shorter) or any(getattr(own, name) < getattr(other, name) for name in names):
        return False
    lengthened = replace(shorter, **{job.name: replace(other, **{name: getattr(own, name) for name in names})})
    return lengthened.sha256("") == config.sha256("")  # the caller has compared the models
