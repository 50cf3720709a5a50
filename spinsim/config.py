"""Configurations: frozen, validated, unknown keys refused; TOML in, JSON out.

A configuration file has the tables ``[model]``, ``[run]`` and that of its job, such as ``[anneal]``, whose keys
are the command line's flags with underscores. The identity of a run is the SHA-256 of its canonical JSON, physics only:
where and how it ran, and under which path an instance lay, do not count.
"""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from difflib import get_close_matches
from math import inf, isfinite
from pathlib import Path
from typing import Any, ClassVar, Final, TypeVar, get_args, get_type_hints

import numpy as np
import numpy.typing as npt

from spinsim import rng
from spinsim.acceptance import ZERO_ACCEPTANCE, check_temperatures, check_zero_acceptance
from spinsim.engine import DEVICES
from spinsim.engine.starting import check_start
from spinsim.errors import InputError
from spinsim.files import open_regular
from spinsim.grids import FORM, is_grid, read_grid
from spinsim.model.disorder import KINDS, RANDOM_KINDS
from spinsim.model.lattice import NAMES
from spinsim.packing import LANES
from spinsim.sampling import placement
from spinsim.sampling.annealing import SCHEDULES, check_fields, temperature_schedule
from spinsim.sampling.tempering import Times
from spinsim.transfer_matrix.configuration import TransferConfig

GIVEN_MODEL: Final = "python:"
LISTED: Final = "list"
"""The schedule of a run whose temperatures are listed."""
BOUNDARIES: Final = ("periodic", "open")
_LONGEST_FILE: Final = 2**20
DIMENSIONS: Final = {name: dimension for dimension, name in NAMES.items()}


@dataclass(frozen=True)
class ModelConfig:
    """What is simulated: a lattice with couplings by name, or an instance file.

    Attributes:
        instance: Path of an instance file, or ``GIVEN_MODEL`` and the name of a model that was given in Python. The
            file of the run holds it, and its content is part of the run's identity.
    """

    instance: str | None = None
    lattice: str = "square"
    size: str = "32"
    boundary: str = "periodic"
    couplings: str = "ferromagnet"
    bond_fraction: float = 0.5
    field: float = 0.0
    samples: int = 1
    disorder_seed: int = 0

    def __post_init__(self) -> None:
        _a_path("instance", self.instance)
        _one_of("lattice", self.lattice, tuple(DIMENSIONS))
        _one_of("boundary", self.boundary, BOUNDARIES)
        _one_of("couplings", self.couplings, KINDS)
        _in_range("bond_fraction", self.bond_fraction, 0, 1)
        _in_range("disorder_seed", self.disorder_seed, 0, 2**64 - 1)
        _in_range("samples", self.samples, 1, 2**rng.SAMPLE_BITS)
        if not isfinite(self.field):
            raise InputError(f"field {self.field} is not finite: give a number such as 0.5")
        if self.couplings != "pm-j" and self.bond_fraction != 0.5:
            raise InputError(
                f"bond_fraction {self.bond_fraction} has no effect on {self.couplings} couplings: leave it out"
            )
        if self.samples > 1 and self.couplings not in RANDOM_KINDS:
            raise InputError(
                f"{self.samples} samples of a {self.couplings} are all equal: "
                "leave samples out, or choose pm-j or gaussian couplings"
            )
        self.shape()

    def shape(self) -> tuple[int, ...]:
        """Side lengths, x first."""
        dimension = DIMENSIONS[self.lattice]
        parts = self.size.lower().split("x")
        if not all(re.fullmatch(r"0*[1-9][0-9]{0,9}", part) for part in parts):
            raise InputError(
                f"size {self.size!r} is not a lattice size: give positive integers below 2^31 such as 16 or 32x32x8"
            )
        sides = tuple(int(part) for part in parts)
        if len(sides) == 1:
            sides *= dimension
        if len(sides) != dimension:
            raise InputError(f"size {self.size!r} has {len(sides)} sides but a {self.lattice} lattice has {dimension}")
        return sides


@dataclass(frozen=True)
class AnnealConfig:
    """The temperature schedule; the ends default to 1.5 and 0.05 times the root mean square local field.

    Attributes:
        start: ``random``, ``up``, or what stands for configurations that were given in Python (``engine/starting.py``).
        temperatures: Instead of ends and steps: numbers with commas, in order of use. The ends, ``steps`` and the
            ``schedule`` then say what they come to.
        field: Of each temperature a uniform field, which is added to the model's own; likewise.
    """

    start: str = "random"
    t_start: float | None = None
    t_stop: float | None = None
    steps: int = 100
    sweeps: int = 100
    schedule: str = "geometric"
    zero_acceptance: float = ZERO_ACCEPTANCE
    temperatures: str | None = None
    field: str | None = None

    def __post_init__(self) -> None:
        check_start(self.start)
        if self.temperatures is None or self.schedule != LISTED:
            _one_of("schedule", self.schedule, SCHEDULES)
        _in_range("steps", self.steps, 1, 10**9)
        _in_range("sweeps", self.sweeps, 1, 10**12)
        check_temperatures([t for t in (self.t_start, self.t_stop, 1.0) if t is not None])
        check_zero_acceptance(self.zero_acceptance)
        steps = self.steps if self.temperatures is None else len(self.listed())
        if self.field is not None:
            check_fields(_listed("field", self.field), steps)

    def listed(self) -> npt.NDArray[np.float64]:
        """The temperatures that are listed, empty where none are."""
        if self.temperatures is None:
            return np.empty(0)
        return check_temperatures(_listed("temperatures", self.temperatures))

    def ladder(self) -> npt.NDArray[np.float64]:
        """Every temperature, in order of use, of a configuration whose ends are filled in."""
        if self.temperatures is not None:
            return self.listed()
        assert self.t_start is not None and self.t_stop is not None  # noqa: S101, PT018
        return temperature_schedule(self.t_start, self.t_stop, self.steps, self.schedule)

    def fields(self) -> npt.NDArray[np.float64] | None:
        """The field of each step, None where it does not change."""
        return None if self.field is None else np.array(_listed("field", self.field))


@dataclass(frozen=True)
class RunConfig:
    """How many replicas, which random numbers, where and how it runs."""

    replicas: int = 128
    seed: int = 1
    rng_rounds: int = rng.ROUNDS
    device: str = "auto"
    threads: int | None = None
    out: str | None = None
    checkpoint_every: float = 60.0

    def __post_init__(self) -> None:
        if not self.checkpoint_every >= 0:
            raise InputError(f"checkpoint_every {self.checkpoint_every} is not allowed: give seconds, at least 0")
        _in_range("replicas", self.replicas, 1, LANES * 2**rng.BLOCK_BITS)
        _in_range("seed", self.seed, 0, 2**64 - 1)
        _one_of("device", self.device, DEVICES)
        if self.rng_rounds not in (rng.FEWER_ROUNDS, rng.ROUNDS):
            raise InputError(f"rng_rounds {self.rng_rounds} are not supported: choose 10 or 7")
        if self.threads is not None:
            _in_range("threads", self.threads, 1, 4096)
        _a_path("out", self.out)


@dataclass(frozen=True)
class TemperConfig:
    """The ladder of temperatures and the length of the run; it goes by default from 0.3 to 0.8 times the local field.

    Attributes:
        temperatures: From the lowest to the highest, as ``grids.read_grid`` takes them; or ``auto:from:to`` or
            ``auto:from:to:count``, placed in a pre-run so that all exchange equally often.
        correlations: Whether link overlaps and the smallest Fourier modes are measured and stored.
    """

    start: str = "random"
    temperatures: str | None = None
    thermalize: int = 2000
    sweeps: int = 10_000
    measure_every: int = 10
    swap_every: int = 1
    correlations: bool = True
    zero_acceptance: float = ZERO_ACCEPTANCE

    def __post_init__(self) -> None:
        check_start(self.start)
        check_zero_acceptance(self.zero_acceptance)
        _in_range("sweeps", self.sweeps, 1, 10**12)
        self.times()
        if self.temperatures is not None and self.to_place() is None:
            self.ladder()

    def times(self) -> Times:
        """How long and how often."""
        return Times(self.thermalize, self.sweeps, self.measure_every, self.swap_every)

    def to_place(self) -> placement.Range | None:
        """Ends of a ladder whose temperatures a pre-run places; None where they are given."""
        text = self.temperatures or ""
        return placement.read_range(text) if text.startswith(placement.PREFIX) else None

    def ladder(self) -> npt.NDArray[np.float64]:
        """The temperatures given, from the lowest to the highest, in the unit of the couplings."""
        text = self.temperatures or ""
        form = f"{FORM}, or auto:0.7:2.0"
        ladder = check_temperatures(read_grid("temperatures", text, form))
        if not (np.diff(ladder) > 0).all():
            raise InputError(f"temperatures {text!r} do not rise from the lowest to the highest: give {form}")
        return ladder


@dataclass(frozen=True)
class Config:
    """One run; each job has a subclass with a table of its own.

    Attributes:
        job: The command that runs it, and the name of its table.
    """

    job: ClassVar[str]

    model: ModelConfig = field(default_factory=ModelConfig)
    run: RunConfig = field(default_factory=RunConfig)

    def json(self) -> str:
        """Everything, as canonical JSON."""
        return canonical_json(asdict(self))

    def sha256(self, model_sha256: str | None) -> str:
        """Identity of the run; an instance counts with its content, ``model_sha256``."""
        return physics_sha256(self.job, asdict(self), model_sha256)


@dataclass(frozen=True)
class Anneal(Config):
    """One run of ``spinsim anneal``."""

    job = "anneal"

    anneal: AnnealConfig = field(default_factory=AnnealConfig)

    def with_temperatures(self, energy_scale: float) -> Anneal:
        """The configuration with its temperature ends filled in."""
        fields = self.anneal.fields()
        given = replace(self.anneal, field=None if fields is None else as_text(fields))
        if given.temperatures is not None:
            listed = given.listed()
            first, last = float(listed[0]), float(listed[-1])
            written = replace(given, temperatures=as_text(listed), steps=len(listed), schedule=LISTED)
            return replace(self, anneal=replace(written, t_start=first, t_stop=last))
        scale = energy_scale or 1.0
        anneal = replace(
            given,
            t_start=1.5 * scale if self.anneal.t_start is None else self.anneal.t_start,
            t_stop=0.05 * scale if self.anneal.t_stop is None else self.anneal.t_stop,
        )
        return replace(self, anneal=anneal)


@dataclass(frozen=True)
class Temper(Config):
    """One run of ``spinsim temper``; ``run.replicas`` are copies of the ladder."""

    job = "temper"

    run: RunConfig = field(default_factory=lambda: RunConfig(replicas=2))
    temper: TemperConfig = field(default_factory=TemperConfig)

    def with_temperatures(self, energy_scale: float) -> Temper:
        """The configuration with its ladder filled in."""
        if self.temper.temperatures is not None:
            return self
        scale = energy_scale or 1.0
        return replace(self, temper=replace(self.temper, temperatures=f"{0.3 * scale!r}:{0.8 * scale!r}:16g"))


@dataclass(frozen=True)
class Transfer(Config):
    """One run of ``spinsim transfer``; the model is a layer."""

    job = "transfer"

    model: ModelConfig = field(default_factory=lambda: ModelConfig(lattice="chain", size="12"))
    run: RunConfig = field(default_factory=lambda: RunConfig(replicas=1))
    transfer: TransferConfig = field(default_factory=TransferConfig)

    def __post_init__(self) -> None:
        if self.model.instance is None and self.model.lattice == "cubic":
            raise InputError(
                "layer 'cubic' is a lattice of four dimensions with its next layer: choose chain or square"
            )
        for name, value, only in (("replicas", self.run.replicas, 1), ("rng_rounds", self.run.rng_rounds, rng.ROUNDS)):
            if value != only:
                raise InputError(f"{name} {value} mean nothing to a transfer matrix: leave them out")


def physics_sha256(
    job: str, tables: Mapping[str, Mapping[str, Any]], model_sha256: str | None, dynamics: int | None = None
) -> str:
    """Identity of a run with these tables: SHA-256 of what determines the numbers, and of nothing else.

    ``dynamics`` is the number that the run has, by default the present one.
    """
    kept = {name: dict(table) for name, table in tables.items()}
    for key in ("device", "threads", "out", "checkpoint_every"):
        kept["run"].pop(key, None)
    for key in ("temperatures", "field"):
        if kept.get("anneal", {}).get(key, "") is None:
            del kept["anneal"][key]  # as in runs from before there were any
    kept.get("transfer", {}).pop("most_steps", None)
    if not kept.get("temper", {}).get("correlations", True):
        del kept["temper"]["correlations"]  # as in runs from before there were any
    if "temper" in kept:
        kept["temper"] |= _grid_identity(kept["temper"]["temperatures"] or "")
    kept["model"]["size"] = list(ModelConfig(**kept["model"]).shape())
    if model_sha256 is not None:
        kept["model"] = {"model_sha256": model_sha256}
    number = rng.DYNAMICS if dynamics is None else dynamics
    numbered = {} if number == 1 else {"dynamics": number}  # runs from before there was a number keep their digests
    return sha256(canonical_json({"job": job, **kept, **numbered}))


def _grid_identity(text: str) -> dict[str, str]:
    """How a ladder's grid counts in an identity: early development versions took ``from:to:count`` as geometric."""
    if not is_grid(text) or text.startswith(placement.PREFIX):
        return {}
    plain = text.strip().removesuffix("g")
    same = np.array_equal(read_grid("temperatures", text), read_grid("temperatures", f"{plain}g"))
    return {"temperatures": plain} | ({} if same else {"grid": "linear"})


def canonical_json(tables: dict[str, Any]) -> str:
    """JSON with sorted keys and no spaces."""
    return json.dumps(tables, sort_keys=True, separators=(",", ":"))


def sha256(text: str) -> str:
    """Hexadecimal SHA-256 of a text."""
    return hashlib.sha256(text.encode()).hexdigest()


AnyConfig = TypeVar("AnyConfig", bound=Config)
JOBS: Final[tuple[type[Config], ...]] = (Anneal, Temper, Transfer)


_NUMBERS_AS_TEXT: Final[dict[str, tuple[Any, str]]] = {
    "size": (int, "x"),
    **dict.fromkeys(("temperatures", "field", "temperature", "k", "k_time"), (int | float, ",")),
}
"""Settings that are text in which one number, or a list of them with this between, may stand."""


def tables_of(job: type[Config]) -> dict[str, type]:
    """The dataclass of each of a job's tables."""
    return {name: kind for name, kind in get_type_hints(job).items() if name != "job"}


def read_toml(path: str | Path, job: type[Config]) -> dict[str, dict[str, Any]]:
    """The tables of a job's configuration file, their names and keys checked; those of other jobs are left out.

    Raises:
        InputError: for a missing or malformed file and for unknown tables and keys, with the nearest valid name.
    """
    valid_tables = {name: kind for other in JOBS for name, kind in tables_of(other).items()}
    try:
        with open_regular(path) as file:
            text = file.read(_LONGEST_FILE + 1)
        if len(text) > _LONGEST_FILE:
            raise InputError(f"configuration {path} is longer than {_LONGEST_FILE} bytes: give a TOML file of settings")
        tables = tomllib.loads(text.decode())
    except InputError:
        raise
    except OSError as error:
        raise InputError(f"configuration {path} cannot be read ({error.strerror}): check its path") from error
    except (ValueError, RecursionError) as error:  # also integers of thousands of digits
        raise InputError(f"configuration {path} is not valid TOML ({error}): correct it there") from error
    for name, table in tables.items():
        if name not in valid_tables:
            raise InputError(f"configuration {path}: unknown table [{name}], {_nearest(name, list(valid_tables))}")
        if not isinstance(table, dict):
            raise InputError(f"configuration {path}: {name} must be a table: write [{name}] on a line of its own")
        valid = [f.name for f in fields(valid_tables[name])]
        for key in table:
            if key not in valid:
                raise InputError(f"configuration {path}: unknown key {key!r} in [{name}], {_nearest(key, valid)}")
    return {name: table for name, table in tables.items() if name in tables_of(job)}


def build_config(job: type[AnyConfig], *layers: dict[str, dict[str, Any]]) -> AnyConfig:
    """A job's configuration from layers of tables; later layers win, and a value of None leaves the earlier one.

    Raises:
        InputError: for values of the wrong type or out of range, and for an instance together with lattice settings.
    """
    merged: dict[str, dict[str, Any]] = {name: {} for name in tables_of(job)}
    for layer in layers:
        for name, table in layer.items():
            merged[name].update({key: value for key, value in table.items() if value is not None})
    if merged["model"].get("instance") is not None:
        others = sorted(set(merged["model"]) - {"instance"})
        if others:
            value, instance = merged["model"][others[0]], merged["model"]["instance"]
            raise InputError(
                f"{others[0]} {value!r} does not go with instance {instance!r}, which says everything: leave one out"
            )
    _refuse_two_schedules(merged.get("anneal", {}))
    default = job()
    typed = {
        name: replace(getattr(default, name), **_typed(kind, merged[name])) for name, kind in tables_of(job).items()
    }
    return job(**typed)


def _refuse_two_schedules(table: dict[str, Any]) -> None:
    """Refuse listed temperatures together with what else would say them."""
    others = sorted({"t_start", "t_stop", "steps", "schedule"} & set(table))
    if table.get("temperatures") is not None and others:
        raise InputError(
            f"{others[0]} {table[others[0]]!r} does not go with temperatures, which say every step: leave one out"
        )


def _typed(kind: type, table: dict[str, Any]) -> dict[str, Any]:
    """The table's values checked against the dataclass's types.

    Whole numbers serve as floats, numbers and lists of them where a text of numbers is wanted.
    """
    hints = get_type_hints(kind)
    result = {}
    for key, value in table.items():
        choices = get_args(hints[key]) or (hints[key],)
        allowed = [str if isinstance(t, str) else t for t in choices if t is not type(None)]
        plain = value if not isinstance(value, bool) or bool in allowed else None
        if float in allowed and isinstance(plain, int):
            plain = float(plain) if abs(plain) < 2**1023 else inf
        elif str in allowed and key in _NUMBERS_AS_TEXT:
            plain = _numbers_as_text(plain, *_NUMBERS_AS_TEXT[key])
        if not isinstance(plain, tuple(allowed)):
            names = {int: "a whole number", float: "a number", str: "a string", bool: "true or false"}
            if str in allowed and key in _NUMBERS_AS_TEXT:
                names[str] += ", a number or a list of numbers"
            raise InputError(f"{key} = {value!r} has the wrong type: give {names[allowed[0]]}")
        result[key] = plain
    return result


def _numbers_as_text(value: Any, kind: Any, between: str) -> Any:
    """A number of a kind, or a list of such numbers, as text; anything else as it is."""
    numbers = value if isinstance(value, list) else [value]
    if numbers and all(isinstance(number, kind) and not isinstance(number, bool) for number in numbers):
        return between.join(map(str, numbers))
    return value


def as_text(numbers: npt.NDArray[np.float64]) -> str:
    """Numbers as the text of a configuration that stands for them to the bit."""
    return ",".join(map(repr, numbers.tolist()))


def _listed(name: str, text: str) -> list[float]:
    """The numbers of a text with commas between them."""
    try:
        return [float(part) for part in text.split(",")]
    except ValueError as error:
        raise InputError(f"{name} {text!r} cannot be read: give numbers with commas between them") from error


def _nearest(word: str, valid: list[str]) -> str:
    close = get_close_matches(word.replace("-", "_"), valid, 1, 0.5)
    return f"did you mean {close[0]!r}?" if close else f"valid names are {', '.join(valid)}"


def _one_of(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        close = get_close_matches(value, allowed, 1, 0.5)
        hint = f"did you mean {close[0]!r}?" if close else f"choose one of {', '.join(allowed)}"
        raise InputError(f"{name} {value!r} is unknown: {hint}")


def _a_path(name: str, value: str | None) -> None:
    if value is not None and (not value or "\0" in value):
        raise InputError(f"{name} {value!r} is not a path: name a file")


def _in_range(name: str, value: float, low: float, high: float) -> None:
    if not low <= value <= high:
        raise InputError(f"{name} {value} is out of range: give a number from {low} to {high}")
