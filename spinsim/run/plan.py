"""A run that is ready to begin: its plan comes from settings or from a file."""

from __future__ import annotations

import contextlib
import glob
import math
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Final, Generic, Self, TypeVar

import numpy as np
import numpy.typing as npt

import spinsim
from spinsim import rng
from spinsim.engine import Dynamics, PlannedSizes, check_memory, resolve_device
from spinsim.engine.choosing import USUAL, choose
from spinsim.engine.dynamics import STARTS
from spinsim.engine.moves.move import Move
from spinsim.engine.split.shares import Work, call_time_of, in_words
from spinsim.engine.update import ModelSizes, Sizes
from spinsim.errors import InputError
from spinsim.inputs.texts import quoted
from spinsim.model.cells import CELLS, IN_TIME
from spinsim.model.disorder import RANDOM_KINDS, lattice_model
from spinsim.model.graph import degrees_along
from spinsim.model.ising import Ising, described, read_instance
from spinsim.model.lattice import Lattice
from spinsim.model.trotter import trotter
from spinsim.record import Record
from spinsim.registry import job_of
from spinsim.result import POOLED, Result, when_asked
from spinsim.run import identity
from spinsim.run.own_observables import Functions, functions_of
from spinsim.run.search import LENGTHS, has_met_target, targets_of
from spinsim.sampling.portions import OnUpdates
from spinsim.settings.config import Config, tables_of
from spinsim.settings.setting import Setting
from spinsim.settings.shared import ModelSettings
from spinsim.solution import check_solution, write_solution
from spinsim.store.contents import START
from spinsim.store.files import read, text_attributes
from spinsim.store.models import model_of


class Saving:
    """Decides when to save: at fixed intervals in seconds, and when the run is asked to stop."""

    def __init__(self, every: float) -> None:
        self._every, self._last = every, time.monotonic()
        self.asked_to_stop = False  # True after a signal to stop

    def due(self) -> bool:
        return self.asked_to_stop or time.monotonic() - self._last >= self._every

    def saved(self) -> None:
        """Note that a checkpoint was written; stop if that was requested."""
        self._last = time.monotonic()
        if self.asked_to_stop:
            raise KeyboardInterrupt

    def stop(self) -> None:
        """Request to save and stop; a second request stops at once."""
        if self.asked_to_stop:
            raise KeyboardInterrupt
        self.asked_to_stop = True


NEVER: Final = Saving(math.inf)  # for a run without a file


@dataclass(frozen=True)
class Watch:
    """Callbacks that follow the progress of a run."""

    on_stage: Callable[..., None] = lambda stage, updates, done=0: None
    """Called at the start of a stage with its name (empty for the run itself), its number of spin updates (or of rows,
    if the job has no updates), and how many of them a resumed run had done before."""
    on_updates: OnUpdates = lambda updates: None  # called at intervals with the number of these since the last call
    on_warning: Callable[[str], None] = lambda sentence: None  # called with a sentence
    on_parts: Callable[[Callable[[], list[float]]], None] = lambda rates: None
    """Called, if there are several devices, with a function that returns the rate of each in updates/ns."""
    on_note: Callable[[str], None] = lambda words: None  # called with the present best of a search, in a few words
    on_size: Callable[[int, str], None] | None = None
    """Called with the largest size of the finished file in bytes, and words on which measurements have rows."""
    keeps_rows: bool = True  # False if a run in memory is only timed and discards its rows


SILENT: Final = Watch()


Values = Mapping[str, Any]  # values of settings, by name
OwnMoves = Sequence[tuple[Move, int]]  # user-defined moves, each with its interval in sweeps
AnyConfig = TypeVar("AnyConfig", bound=Config)
AnyPlan = TypeVar("AnyPlan", bound="Plan[Any]")


@dataclass(frozen=True)
class Plan(Generic[AnyConfig]):
    """A run that is ready to begin."""

    rows_in_words: ClassVar[tuple[str, str]] = "rows", "give fewer"
    """Word for rows that do not fit in memory, and advice for having fewer."""

    config: AnyConfig  # with every default filled in
    model: Ising  # the simulated model
    device: str  # ``cpu`` or ``cuda``
    path: Path  # the run's file
    attributes: dict[str, str] = when_asked()  # root attributes of the file
    extends: str | None = None
    """``config_sha256`` of the shorter run in the file that this run extends, if any."""
    start: npt.NDArray[np.int8] | None = None
    """Given initial configurations, ``int8`` (1 or samples, 1 or replicas, sites)."""
    moves: OwnMoves = ()  # user-defined moves between sweeps, each with its interval in sweeps
    measure: Functions | None = None  # user-defined observables that were given as functions, by name
    drop_added: bool = False  # True to allow dropping parts of the file that other programs added

    def __post_init__(self) -> None:
        if self.solution is not None:
            check_solution(self.solution, overwrite=self.path.is_file())
        every = self.save_every
        if every and every > self.rows:
            raise InputError(
                f"save_configurations {every} is more than the {self.rows} measurements of the run, so that nothing "
                "would be saved: give a smaller number, or 0 to save none"
            )

    @classmethod
    def of(cls, config: AnyConfig) -> Self:
        """Build the model of a configuration, fill in its defaults and name the file."""
        given = config.of_job
        check_nameable(getattr(given, "start", STARTS[0]))
        functions_of(getattr(given, "measure", None))
        device = resolve_device(config.run.device, config.run.gpus)
        model = cls.model_of(config, device)
        config = cls.filled_in(config, model, device)
        targets_of(model, getattr(given, "target", None))
        return cls(config, model, device, *identify(config, model))

    @classmethod
    def model_of(cls, config: AnyConfig, device: str) -> Ising:
        return build_model(config.model, config.run.number_of_replicas)

    @classmethod
    def filled_in(cls, config: AnyConfig, model: Ising, device: str) -> AnyConfig:
        return config

    def run(self, saving: Saving, watch: Watch, stored: Record | None) -> Any:
        """Return the ``execute.Run`` that will begin, or continue from the record of its file."""
        raise NotImplementedError

    @property
    def of_job(self) -> Any:
        return self.config.of_job

    @property
    def rows(self) -> int:
        raise NotImplementedError

    def is_done(self, rows: int) -> bool:
        return rows >= self.rows

    @property
    def save_every(self) -> int:
        """Interval in rows between saved configurations; 0 if none are saved."""
        return int(self.config.run.save_configurations)

    @property
    def solution(self) -> str | None:
        """File for the lowest states by the labels of the problem, if requested."""
        path: str | None = getattr(self.config.of_job, "solution", None)
        return path

    def write_solution(self, result: Result) -> None:
        if self.solution is not None:
            write_solution(result.solutions, result.model, self.solution, overwrite=self.path.is_file())

    @property
    def split(self) -> str:
        """Division of the work between devices, in a sentence; empty for one device."""
        sizes, replicas = self.sizes, self.replicas
        update = choose(sizes, replicas or USUAL)
        call_time = call_time_of(update, sizes.sites, replicas, self.round_sweeps)
        return in_words(Work(sizes.samples, replicas, update.together, call_time), self.device)

    @property
    def sizes(self) -> Sizes:
        return ModelSizes(self.model)

    @property
    def round_sweeps(self) -> int | None:
        """Sweeps between two exchanges or measurements; None without any."""
        return None

    @property
    def replicas(self) -> int | None:
        return int(self.config.run.number_of_replicas)

    def updates(self, replicas: int) -> int:
        """Attempted spin updates of the whole run with this number of replicas of each sample; 0 if it has none."""
        return 0


def build_model(config: ModelSettings, replicas: int, slices: int = 1, by_term: bool = False) -> Ising:
    """Build the model of a configuration; refuse it before if it cannot fit in memory."""
    if config.instance is not None:
        space = read_instance(config.instance)
        return trotter(space, slices, by_term) if slices > 1 else space
    lattice = Lattice(config.shape, config.boundary == "periodic", CELLS[config.lattice])
    along = config.along or (1.0,)
    sizes = {abs(factor) for factor in along} | ({1.0} if slices > 1 else set())  # bonds in time have J = 1
    signs = config.couplings != "gaussian" and not config.dilution
    differ = config.dilution or config.perturbation or config.antiperiodic is not None
    degrees = _degrees_of_terms(lattice, along, slices, by_term)
    planned = PlannedSizes(
        Lattice((slices, *lattice.shape), cell=IN_TIME[lattice.name]) if slices > 1 else lattice,
        config.samples,
        one_magnitude=signs and len(sizes) == 1,
        one_coupling=config.couplings not in RANDOM_KINDS and not differ and len(set(along)) == 1,
        one_field=not config.random_field,
        slices=slices,
        in_field=bool(config.field),
        in_terms=by_term or (signs and degrees is not None),
        degrees_of_terms=degrees if signs else None,
    )
    check_memory(planned, replicas)
    space = lattice_model(
        lattice, config.couplings, config.samples, config.disorder_seed, config.bond_fraction, config.field,
        config.dilution, config.random_field, config.along, config.antiperiodic, config.perturbation,
        config.perturbation_seed,
    )  # fmt: skip
    return trotter(space, slices, by_term) if slices > 1 else space


def _degrees_of_terms(lattice: Lattice, along: tuple[float, ...], slices: int, by_term: bool) -> tuple[int, int] | None:
    """Return the bonds of both terms at a site: of space and time, or of axes of two strengths. None without terms."""
    if by_term:
        return (lattice.cell.coordination, 2) if len(set(map(abs, along))) == 1 else None
    return degrees_along(along) if slices == 1 else None


def dynamics_of(plan: Plan[Any], start: str, zero_acceptance: float) -> Dynamics:
    """Return the dynamics of a plan's replicas; given initial configurations replace ``start``."""
    named: Any = "random" if plan.start is not None else start
    return Dynamics(plan.config.run.seed, named, zero_acceptance, plan.config.run.rng_rounds)


def check_nameable(start: str) -> None:
    if start not in STARTS:
        raise InputError(f"start {start!r} stands for configurations that are given in Python: choose random or up")


def identify(config: Config, model: Ising) -> tuple[Path, dict[str, str]]:
    attributes = provenance(config, model)
    out = config.run.out or usual_path(config, model.name, attributes["config_sha256"])
    return Path(out), attributes


def usual_path(config: Config, name: str, config_sha256: str) -> Path:
    """Default file of a run; an extended run keeps the file of the shorter run, with its name."""
    usual = Path(f"runs/{config.job}-{name}-{config_sha256[:8]}.h5")
    if job_of(config.job).lengths(config) and not os.path.lexists(usual):
        for path in sorted(usual.parent.glob(f"{glob.escape(usual.name[:-11])}????????.h5")):
            with contextlib.suppress(InputError):
                if config_sha256 in identity.lengths(text_attributes(read(path))):
                    return path
    return usual


def provenance(config: Config, model: Ising, typed: Sequence[str] | None = None) -> dict[str, str]:
    """Root attributes that identify the run and its program."""
    return {
        "job": config.job,
        "config": config.json(None if config.model.instance is None else described(model)),
        **identities(config, model),
        "dynamics": str(rng.DYNAMICS),
        "spinsim_version": spinsim.__version__,
        "command": command_line(sys.argv if typed is None else typed),
    }


def command_line(typed: Sequence[str]) -> str:
    name = Path(typed[0]).name
    program = ["python", "-m", "spinsim"] if name == "__main__.py" else [name]
    return " ".join(map(quoted, [*program, *typed[1:]]))


def identities(config: Config, model: Ising) -> dict[str, str]:
    """SHA-256 of the configuration and of the model; a model counts with its content unless settings tell all of it."""
    content = model.content_sha256()
    sha256 = config.sha256(content if config.model.instance is not None or model.whole is not None else None)
    return {"config_sha256": sha256, "model_sha256": content}


def as_longer(plan: AnyPlan, attributes: Mapping[str, str]) -> AnyPlan:
    """Return the plan as an extension of the shorter run in its file, which has these root attributes."""
    own = plan.attributes
    history = identity.extended_history(attributes, plan.config, own["command"], own["config_sha256"])
    return replace(plan, attributes=own | {"history": history}, extends=attributes["config_sha256"])


def as_in_file(plan: AnyPlan, record: Record) -> tuple[AnyPlan, bool]:
    """Adapt a plan to the record of its file; also return True if nothing is left to do.

    If the run in the file was extended since, the longer run becomes the plan; it is done once this plan's own rows
    exist. If the file has a shorter run, the plan extends it, unless it has met its target.
    """
    attributes = text_attributes(record)
    rng.check_dynamics(int(attributes["dynamics"]), str(plan.path))
    own, stored = plan.attributes["config_sha256"], attributes["config_sha256"]
    if stored == own:
        return plan, "finished" in attributes
    if stored == plan.extends:
        return plan, False
    known = own in identity.lengths(attributes)
    same = attributes["job"] == plan.config.job and attributes["model_sha256"] == plan.attributes["model_sha256"]
    if not same or not job_of(plan.config.job).lengths(plan.config):
        raise identity.another(plan.path)
    stored_config = identity.config_of(attributes)
    if not known and not identity.is_longer(plan.config, stored_config):
        raise identity.another(plan.path)
    if not known and not has_met_target(record):
        return as_longer(plan, attributes), False
    config = replace(stored_config, run=plan.config.run)
    done = "finished" in attributes or plan.is_done(identity.rows_of(record))
    named = {name: attributes[name] for name in ("config", "config_sha256")}
    return replace(plan, config=config, attributes=plan.attributes | named), done


def plan_resume(
    path: Path,
    changes: Values,
    run: Values,
    moves: OwnMoves = (),
    measure: Functions | None = None,
    drop_added: bool = False,
) -> Plan[Any]:
    """Return the plan of the run in a file, with changed settings of its job and its run; None keeps a setting.

    Raises:
        InputError: for a file without a configuration or of other dynamics, and for changes that are impossible.
    """
    record = read(path)
    attributes, model, start = text_attributes(record), model_of(record), record.get(f"{START}/spins")
    if POOLED in attributes:
        raise InputError(f"{path} holds pooled runs, which have ended: go on with their own files, and pool again")
    rng.check_dynamics(int(attributes["dynamics"]), str(path))
    config, met = identity.config_of(attributes), has_met_target(record)
    changes, run = ({k: v for k, v in given.items() if v is not None} for given in (changes, run))
    job = job_of(config.job)
    changes, run = (_typed(given, tables_of(job.config)[table]) for given, table in ((changes, job.name), (run, "run")))
    if met:  # a longer search has nothing left to do
        changes = {name: value for name, value in changes.items() if name not in LENGTHS}
    config = job.changed(replace(config, run=replace(config.run, out=str(path), **run)), changes, path)
    device = resolve_device(config.run.device, config.run.gpus)
    own: dict[str, Any] = {"moves": moves, "measure": measure, "drop_added": drop_added}
    plan: Plan[Any] = job.plan_type(config, model, device, *identify(config, model), start=start, **own)
    unchanged = plan.attributes["config_sha256"] == attributes["config_sha256"]
    return plan if unchanged or not set(job.lengths(config)) & set(changes) else as_longer(plan, attributes)


def _typed(given: Values, settings: Mapping[str, Setting]) -> dict[str, Any]:
    """Convert values of a call to the settings' types, so that 310 and 310.0 seconds are one run; NumPy too."""
    plain = {name: value.item() if isinstance(value, np.generic) else value for name, value in given.items()}
    return {name: settings[name].typed(value) if name in settings else value for name, value in plain.items()}
