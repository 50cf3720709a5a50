"""Whose run a file holds: what it says of itself is checked, and compared with a plan."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from spinsim import store
from spinsim.errors import InputError, another_path, worded
from spinsim.inputs.texts import count
from spinsim.machine.files import is_locked
from spinsim.registry import record_of
from spinsim.settings.config import Config, kinds_of, sha256
from spinsim.store.contents import Arrays, Contents

_ENTRY: Final[dict[str, type]] = {"command": str, "date": str, "config_sha256": str}
_LENGTHS: Final[dict[str, type]] = {"sweeps": int, "time_limit": float, "anneals": int}
_MOST_HISTORY: Final = 60_000  # bytes; an attribute holds 64 KiB


class AlreadyFinishedError(Exception):
    """Another process has finished the run meanwhile."""


def config_of(path: Path, attributes: Mapping[str, str], model_sha256: str) -> Config:
    tables = _tables(attributes, model_sha256)
    if _is_own(attributes, tables):
        config: Config = record_of(attributes["job"]).config.from_tables(tables)
        return config
    raise InputError(f"{path} holds no configuration to go on with: an earlier version saved it from Python")


def _tables(attributes: Mapping[str, str], model_sha256: str) -> Any:
    """The tables of a file's configuration, as the version that wrote them meant them."""
    tables = json.loads(attributes["config"])
    meant = record_of(attributes["job"]).as_once_meant(tables) if _is_own(attributes, tables) else None
    if meant is not None:
        with contextlib.suppress(InputError):
            if _identity(attributes, meant, model_sha256) == attributes.get("config_sha256"):
                return meant
    return tables


def _is_own(attributes: Mapping[str, str], tables: Any) -> bool:
    """Return True if the tables are a configuration of the file's job; Python calls have others."""
    return bool(tables.keys() == kinds_of(record_of(attributes["job"]).config).keys())


def _identity(attributes: Mapping[str, str], tables: Any, model_sha256: str) -> str:
    instance = tables["model"]["instance"] is not None
    job: type[Config] = record_of(attributes["job"]).config
    return job.identity(tables, model_sha256 if instance else None, dynamics_number(attributes))


def dynamics_number(attributes: Mapping[str, str]) -> int:
    return int(attributes.get("dynamics", "1"))


def tables_of_file(path: str | None, job: str) -> dict[str, dict[str, Any]]:
    """The configuration of the run of a job that a file holds, in tables; empty where there is no such file."""
    if path is None or not os.path.lexists(path):
        return {}
    # What is wrong with a file is told later.
    with contextlib.suppress(InputError, AttributeError, KeyError, TypeError, ValueError):
        attributes = store.read_attributes(Path(path))
        tables = json.loads(attributes["config"])
        replicas = tables["run"]["replicas"]
        if attributes["job"] == job and isinstance(replicas, int) and replicas and tables[job].keys():
            return dict(tables)
    return {}


def check_stored(path: Path, attributes: Mapping[str, str], model_sha256: str) -> None:
    """Refuse a file whose parts do not belong together."""
    if attributes.get("model_sha256", model_sha256) != model_sha256:  # older files have none
        raise InputError(f"{path} is damaged, its model is not the one of its model_sha256: take another copy of it")
    try:
        tables = _tables(attributes, model_sha256)
        own = _is_own(attributes, tables)
        identity = _identity(attributes, tables, model_sha256) if own else sha256(attributes["config"])
    except (KeyError, TypeError, ValueError, AttributeError, InputError):
        identity = ""
    if identity != attributes.get("config_sha256"):
        raise InputError(
            f"{path} is damaged, its configuration is not the one of its config_sha256: take another copy of it"
        )


def history_of(attributes: Mapping[str, str]) -> list[dict[str, Any]]:
    """Each length that a run has had, from the first to the present one; empty where it was never extended.

    An entry has ``command``, ``date``, ``config_sha256`` and the settings that say how long the run was to be.
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
    """The attribute ``history`` of a file of these attributes that ``command`` extends to a longer configuration."""
    names, before = record_of(config.job).lengths(config), json.loads(attributes["config"])[config.job]
    own = {name: getattr(config.of_job, name) for name in names}
    first = _entry(attributes["command"], attributes["created"], attributes["config_sha256"])
    entries = history_of(attributes) or [first | {name: before[name] for name in names}]
    entries.append(_entry(command, store.stamp(), identity) | own)
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
def open_own(plan: Any, begun: bool) -> Iterator[store.RunFile]:
    """The file of a plan open for appending, once its identity has been checked under the lock.

    Raises:
        InputError: where it holds another run or is damaged.
        AlreadyFinishedError: where nothing is left to do.
    """
    with store.open_to_append(plan.path) as file:
        if begun:
            attributes, model_sha256 = file.identity()
            check_stored(plan.path, attributes, model_sha256)
            others = {"config_sha256": attributes["config_sha256"], "model_sha256": model_sha256}
            if any(plan.attributes[name] != value for name, value in others.items()):
                raise another(plan.path)
            if "finished" in attributes:
                raise AlreadyFinishedError
        yield file


def another(path: Path) -> InputError:
    return InputError(f"{path} holds another run and is never overwritten: {another_path()}")


def verify(path: Path) -> str:
    """Read all of a file; what can be said of it in a few words."""
    written = is_locked(path)
    with store.open_to_read(path) as file:
        attributes, rows = store.text_attributes(file), store.complete_rows(file)
        summed = store.verify(file, written)
        model_sha256 = store.read_model(file).content_sha256()
    if attributes["config_sha256"]:  # results that were put together by hand have none
        check_stored(path, attributes, model_sha256)
    if written:
        return f"whole as far as it is: {count(rows, 'row')}, another process writes it"
    state = "finished" if "finished" in attributes else "not finished"
    return f"whole, {state}: {count(rows, 'row')}" + ("" if summed else ", which carry no checksums of their own")


def is_longer(config: Config, shorter: Config) -> bool:
    """Return True if a configuration is another one of the same job made longer."""
    job = record_of(config.job)
    names, own, other = job.lengths(config), config.of_job, shorter.of_job
    if not names or names != job.lengths(shorter) or any(getattr(own, name) < getattr(other, name) for name in names):
        return False
    lengthened = replace(shorter, **{job.name: replace(other, **{name: getattr(own, name) for name in names})})
    return lengthened.sha256("") == config.sha256("")  # who asks has compared the models


def make_room(plan: Any, contents: Contents, rows: int, like: Arrays, thin: int) -> None:
    """Make room in the file of a plan for all that the longer run has."""

    def check(stored: Mapping[str, str], model_sha256: str) -> None:
        check_stored(plan.path, stored, model_sha256)
        if stored["config_sha256"] != plan.extends or model_sha256 != plan.attributes["model_sha256"]:
            raise InputError(
                f"{plan.path} was changed by another process meanwhile: "
                f"look at it with {worded('spinsim show', 'ss.load')} and begin again"
            )

    named = {name: plan.attributes[name] for name in ("config", "config_sha256", "history")}
    shapes = {name: np.shape(array) for name, array in like.items()}
    store.extend(plan.path, contents, rows, check, named, shapes, thin)
