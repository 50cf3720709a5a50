"""The configuration of one run: tables of settings, frozen and validated; its canonical JSON and its identity.

The identity is the SHA-256 of the canonical JSON with the physics only. The place and the manner of the run, and the
path of an instance file, do not count.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Final, Self, TypeVar, get_type_hints

from spinsim.errors import InputError
from spinsim.inputs.texts import RANDOM, drawn_seed, nearest
from spinsim.machine.files import open_regular
from spinsim.settings.setting import Setting, Table, once, settings_of
from spinsim.settings.shared import ModelSettings, RunSettings

AnyTable = TypeVar("AnyTable", bound=Table)
AnyConfig = TypeVar("AnyConfig", bound="Config")
Tables = Mapping[str, Mapping[str, Any]]
Begun = Callable[[str | None, str], Tables]


def table(kind: type[AnyTable], **varied: dict[str, Any]) -> Any:
    defaults = {name: about["default"] for name, about in varied.items() if "default" in about}
    return dataclasses.field(default_factory=lambda: kind(**defaults), metadata=varied)


@dataclass(frozen=True)
class Config:
    """Configuration of one run; each job has a subclass with its own table."""

    job: ClassVar[str]  # the command that runs it, and the name of its table

    model: ModelSettings = table(ModelSettings)
    run: RunSettings = table(RunSettings)

    def __post_init__(self) -> None:
        for name, one in _unused_of(type(self)):
            value = getattr(getattr(self, name), one.name)
            if value != one.default:
                raise InputError(f"{one.name} {value} means nothing to {self.job}: leave it out")

    @property
    def of_job(self) -> Any:
        return getattr(self, self.job)

    def json(self, described: Mapping[str, Any] | None = None) -> str:
        tables, instance = self._plain(), self.model.instance
        if instance is not None:
            tables["model"] = {**(described or {}), "instance": instance}
        return canonical_json(tables)

    def sha256(self, model_sha256: str | None) -> str:
        """Return the identity of the run; an instance counts with its content, ``model_sha256``."""
        return self.identity(self._plain(), model_sha256)

    def _plain(self) -> dict[str, dict[str, Any]]:
        """Return the values of all tables; tables are never nested, and nothing is copied."""
        return {
            name: {key: getattr(getattr(self, name), key) for key in settings}
            for name, settings in tables_of(type(self)).items()
        }

    @classmethod
    def identity(cls, tables: Tables, model_sha256: str | None) -> str:
        """Return the identity of a run with these tables: SHA-256 of the settings that determine its numbers."""
        from spinsim import rng

        kept: dict[str, Any] = {name: kind.identity(tables[name]) for name, kind in kinds_of(cls).items()}
        if model_sha256 is not None:
            kept["model"] = {"model_sha256": model_sha256}
        return sha256(canonical_json({"job": cls.job, "dynamics": rng.DYNAMICS, **kept}))

    @classmethod
    def from_tables(cls, tables: Tables) -> Self:
        """Return the configuration that a file holds."""
        read: dict[str, Any] = {name: kind(**kind.stored(tables[name])) for name, kind in kinds_of(cls).items()}
        return cls(**read)

    @classmethod
    def complete(cls, tables: dict[str, dict[str, Any]]) -> None:
        """Fill in, in place, values that follow from other given values."""


@once
def kinds_of(job: type[Config]) -> Mapping[str, type[Table]]:
    return MappingProxyType({name: kind for name, kind in get_type_hints(job).items() if name != "job"})


@once
def tables_of(job: type[Config]) -> Mapping[str, Mapping[str, Setting]]:
    varied = {one.name: one.metadata for one in fields(job)}
    return MappingProxyType(
        {
            name: {key: replace(one, **varied[name].get(key, {})) for key, one in settings_of(kind).items()}
            for name, kind in kinds_of(job).items()
        }
    )


@once
def places_of(job: type[Config]) -> Mapping[str, tuple[str, Setting]]:
    """Settings that a job uses, each with its table; of two with one name, the second begins with its table's name."""
    places: dict[str, tuple[str, Setting]] = {}
    for table in ("model", job.job, "run"):
        for name, one in tables_of(job)[table].items():
            if not one.unused:
                places[f"{table}_{name}" if name in places else name] = table, one
    return MappingProxyType(places)


@once
def _unused_of(job: type[Config]) -> tuple[tuple[str, Setting], ...]:
    return tuple((name, one) for name, settings in tables_of(job).items() for one in settings.values() if one.unused)


@once
def _default_of(job: type[AnyConfig]) -> AnyConfig:
    return job()


def build_config(job: type[AnyConfig], *layers: Tables, begun: Begun = lambda out, job: {}) -> AnyConfig:
    """Build a job's configuration from layers of tables; later layers win, and None keeps an earlier value.

    ``begun`` returns the tables of the run in a file, from which a continued run takes seeds that were drawn.
    """
    kinds, settings = kinds_of(job), tables_of(job)
    merged: dict[str, dict[str, Any]] = {name: {} for name in kinds}
    for layer in layers:
        for name, given in layer.items():
            typed = {key: settings[name][key].typed(value) for key, value in given.items() if value is not None}
            merged[name].update(typed)
    for name, kind in kinds.items():
        kind.check_given(merged[name])
    job.complete(merged)
    _draw_seeds(job, merged, begun)
    default = _default_of(job)
    changed = {name: replace(getattr(default, name), **given) for name, given in merged.items() if given}
    return replace(default, **changed) if changed else default


def _draw_seeds(job: type[Config], merged: dict[str, dict[str, Any]], begun: Begun) -> None:
    seeds = [(name, one.name) for name, settings in tables_of(job).items() for one in settings.values() if one.is_seed]
    drawn = [(name, key) for name, key in seeds if merged[name].get(key) == RANDOM]
    stored = begun(merged["run"].get("out"), job.job) if drawn else {}
    for name, key in drawn:
        before = stored.get(name, {}).get(key)
        merged[name][key] = before if isinstance(before, int) else drawn_seed()


def canonical_json(tables: dict[str, Any]) -> str:
    return json.dumps(tables, sort_keys=True, separators=(",", ":"))


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


_LONGEST: Final = 2**20


def read_toml(
    path: str | Path, job: type[Config], jobs: Iterable[type[Config]], tables: Mapping[str, Any] | None = None
) -> dict[str, dict[str, Any]]:
    """Read the tables of a job's configuration file and check their names and keys; drop tables of other jobs.

    ``tables`` are those of the file, if they have been read.
    """
    valid = {name: list(settings) for other in jobs for name, settings in tables_of(other).items()}
    tables = parse_toml(path) if tables is None else tables
    for name, table in tables.items():
        if name not in valid:
            raise InputError(f"configuration {path}: unknown table [{name}], {nearest(name, valid)}")
        if not isinstance(table, dict):
            raise InputError(f"configuration {path}: {name} must be a table: write [{name}] on a line of its own")
        for key in table:
            if key not in valid[name]:
                raise InputError(f"configuration {path}: unknown key {key!r} in [{name}], {nearest(key, valid[name])}")
    return {name: table for name, table in tables.items() if name in tables_of(job)}


def parse_toml(path: str | Path) -> dict[str, Any]:
    try:
        with open_regular(path) as file:
            text = file.read(_LONGEST + 1)
        if len(text) > _LONGEST:
            raise InputError(f"configuration {path} is longer than {_LONGEST} bytes: give a TOML file of settings")
        return tomllib.loads(text.decode())
    except InputError:
        raise
    except OSError as error:
        raise InputError(f"configuration {path} cannot be read ({error.strerror}): check its path") from error
    except UnicodeDecodeError as error:
        raise InputError(f"configuration {path} is no text in UTF-8: give a TOML file of settings") from error
    except (ValueError, RecursionError) as error:  # also for integers of thousands of digits
        raise InputError(f"configuration {path} is not valid TOML ({error}): correct it there") from error
