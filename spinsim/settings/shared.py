"""The tables that all jobs share: ``[model]``, the simulated model, and ``[run]``, the size and manner of the run."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Final

from spinsim.errors import InputError, argument
from spinsim.inputs.texts import check_gpus
from spinsim.model.cells import CELLS
from spinsim.settings.setting import COUNT, GRID, SIDES, Table, setting

GIVEN_MODEL: Final = "python:"
"""Prefix of ``instance`` for a model that was given in Python; the model's name follows it. The file of the run holds
the model, whose content is part of the run's identity."""
_RANDOM: Final = ("pm-j", "gaussian")
AUTO: Final = "auto"  # requests Houdayer moves where they pay
OF_MACHINE: Final = ("device", "gpus", "threads", "checkpoint_every")  # settings that any part of a run may change


@dataclass(frozen=True)
class ModelSettings(Table):
    """The model that is simulated: a lattice with couplings by name, or an instance file."""

    instance: str | None = setting(
        None,
        "Instance file: MaxCut (rudy / G-set / Biq Mac, DIMACS, edge list, MatrixMarket), QUBO / Ising (Biq Mac, "
        "QOBLIB, COO, qbsolv, BQM); also compressed by gzip or xz",
        is_path=True,
        is_argument=True,
    )
    lattice: str = setting("square", "Lattice", choices=tuple(CELLS))
    size: str = setting("32", "Side lengths, such as 16 or 32x32x8", numbers=SIDES)
    boundary: str = setting("periodic", "Boundaries", choices=("periodic", "open"))
    couplings: str = setting("ferromagnet", "Couplings", choices=("ferromagnet", "antiferromagnet", *_RANDOM))
    couplings_along: str | None = setting(
        None, "Relative strength of the couplings along each axis, such as 1,1,0.5", shown="equal", numbers=GRID
    )
    bond_fraction: float = setting(0.5, "Share of positive bonds of pm-j", low=0, high=1)
    field: float = setting(0.0, "Uniform field h", unit="coupling unit")
    dilution: float = setting(0.0, "Probability that a bond is missing", low=0, high=1)
    random_field: float = setting(0.0, "Standard deviation of a Gaussian random field", unit="coupling unit", low=0)
    samples: int = setting(1, "Disorder samples", low=1, high=2**18)
    disorder_seed: int = setting(
        0, "Seed of the couplings, missing bonds and random fields", low=0, high=2**64 - 1, is_seed=True
    )
    antiperiodic: int | None = setting(
        None, "Axis whose boundary is antiperiodic, 0 for x", shown="none", before=None, low=0, high=3
    )
    perturbation: float = setting(
        0.0, "Strength d of changes of couplings: pm-j flip with probability d, gaussian change by d", before=0.0, low=0
    )
    perturbation_seed: int = setting(0, "Seed of these changes", before=0, low=0, high=2**64 - 1)

    @classmethod
    def stored(cls, table: Mapping[str, Any]) -> Mapping[str, Any]:
        """Leave out the description of an instance, because the instance determines everything."""
        return super().stored(table) if table["instance"] is None else {"instance": table["instance"]}

    def check_together(self) -> None:
        """Refuse an invalid size, and settings without effect on these couplings."""
        if self.couplings != "pm-j" and self.bond_fraction != 0.5:
            raise InputError(f"bond_fraction {self.bond_fraction} is not for {self.couplings} couplings: leave it out")
        if self.perturbation_seed and not self.perturbation:
            raise InputError("perturbation_seed has no effect without a perturbation: give a perturbation above 0 too")
        if self.dilution == 1:
            raise InputError("dilution 1.0 leaves no model: give a probability below 1")
        if self.samples > 1 and self.couplings not in _RANDOM and not self.dilution and not self.random_field:
            raise InputError(
                f"{self.samples} samples of a {self.couplings} are all equal: "
                "leave samples out, give a dilution or a random_field, or choose pm-j or gaussian couplings"
            )
        _ = self.shape, self.along

    @cached_property
    def shape(self) -> tuple[int, ...]:
        dimension = CELLS[self.lattice].dimension
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

    @cached_property
    def along(self) -> tuple[float, ...] | None:
        """Relative strength of the couplings along each axis; None if all are equal."""
        if self.couplings_along is None:
            return None
        try:
            along = tuple(float(part) for part in self.couplings_along.split(","))
        except ValueError as error:
            raise InputError(
                f"couplings_along {self.couplings_along!r} cannot be read: give a number for each axis such as 1,1,0.5"
            ) from error
        CELLS[self.lattice].check_along(along)
        return along

    @classmethod
    def check_given(cls, given: Mapping[str, Any]) -> None:
        others = sorted(set(given) - {"instance"})
        if given.get("instance") is not None and others:
            raise InputError(
                f"{others[0]} {given[others[0]]!r} does not go with instance {given['instance']!r}, "
                "which says everything: leave one out"
            )

    @classmethod
    def identity(cls, table: Mapping[str, Any]) -> dict[str, Any]:
        """Return the part of a model that counts in its run's identity, with sizes and strengths as numbers."""
        settings = cls(**cls.stored(table))
        along = {} if settings.along is None else {"couplings_along": list(settings.along)}
        return super().identity(table) | {"size": list(settings.shape)} | along


@dataclass(frozen=True)
class RunSettings(Table):
    """Number of replicas, random numbers, devices and output of a run."""

    replicas: int | None = setting(128, "Replicas of each sample", low=1, high=2**21)
    seed: int = setting(1, "Seed of the dynamics, 64 bits", low=0, high=2**64 - 1, is_seed=True)
    rng_rounds: int = setting(10, "Philox rounds", choices=(10, 7))
    device: str = setting(
        "auto",
        "Device (auto takes a GPU if there is one, gpu means cuda)",
        choices=("auto", "cpu", "cuda", "gpu"),
        physics=False,
    )
    gpus: str | None = setting(
        None,
        "GPUs that share the work: all, their number, or a list such as 0,2",
        shown="one for each process",
        physics=False,
    )
    threads: int | None = setting(
        None, "CPU threads; the result does not depend on their number", shown="all", low=1, high=4096, physics=False
    )
    out: str | None = setting(None, "Result file", shown="runs/<job>-<model>-<hash>.h5", is_path=True, physics=False)
    checkpoint_every: float = setting(
        60.0, "Seconds between checkpoints", unit="seconds", low=0, finite=False, physics=False
    )
    save_configurations: int = setting(
        0,
        "Number of measurements from one that saves all spins to the next, one bit per spin; 0 saves none",
        low=0,
        high=10**12,
    )

    @property
    def number_of_replicas(self) -> int:
        """Number of replicas of each sample, once it has been filled in."""
        assert self.replicas is not None  # noqa: S101
        return self.replicas

    def check_together(self) -> None:
        if self.gpus is not None:
            check_gpus(self.gpus)


def _shared(*said: Any, **about: Any) -> Callable[..., Any]:
    """Return a factory of a setting that several jobs have; each table gets its own."""
    return partial(setting, *said, **about)


start = _shared("random", "Initial spins", choices=("random", "up"), besides="sha256:")

zero_acceptance = _shared(1 - 2.0**-6, "Acceptance of flips that cost nothing", shown="1 - 2^-6", above=0, high=1)

own_measure = _shared(
    None,
    "Observables of your own as module:function, separated by commas: a function takes a batch of spins and returns a "
    "number or an array for each configuration; it is called at every measurement",
)

own_moves = _shared(
    None, "Moves between sweeps, each with the number of sweeps between two, such as houdayer:16,wolff:10"
)

_FILE: Final = ".h5"  # suffix of a file that is given instead of a ladder
_CLUSTERS: Final = {"sw": "swendsen-wang", "wolff": "wolff", "seeded": "seeded-clusters"}
_CLUSTERS_EVERY: Final = 10

clusters = _shared(
    None, "Cluster moves of Fortuin and Kasteleyn between sweeps", choices=tuple(_CLUSTERS), physics=False
)

clusters_every = _shared(_CLUSTERS_EVERY, "Sweeps between cluster moves", low=1, physics=False)

target = _shared(
    None,
    "Search until this value is met, one for all samples or one for each: the cut of a MaxCut instance, else the "
    "energy with the constant of the problem",
    numbers=GRID,
)

solution = _shared(
    None, "File for the lowest states by the labels of the problem, .txt or .json", is_path=True, physics=False
)

time_limit = _shared(
    None, "Search for this many seconds, not counting the compiling of kernels", unit="seconds", low=1e-3
)

series = _shared(
    "all",
    "Series to keep: all, none, or names such as energy,overlap; averages come from sums over all measurements",
    physics=False,
)

series_limit = _shared(
    256.0,
    "Megabytes that series may take; a longer run adds up all measurements and keeps every second, fourth, ... row, "
    "in at most a quarter of the limit",
    unit="MB",
    low=1e-3,
    physics=False,
)
houdayer = _shared(
    None,
    "Sweeps between Houdayer moves, which exchange clusters between copies of one temperature; auto makes them where "
    "they pay, with two copies or more on graphs of up to three dimensions; 0 for none",
    numbers=COUNT,
    physics=False,
)


def with_clusters(given: dict[str, Any]) -> None:
    """Replace the name of clusters by the moves it stands for, in place among the settings of a job."""
    name, every, moves = given.get("clusters"), given.get("clusters_every"), given.get("moves")
    if name is None and every is not None:
        raise InputError(f"clusters_every {every} goes with clusters alone: give {argument('clusters')} too")
    if name not in _CLUSTERS:
        return
    if moves and f"{_CLUSTERS[name]}:" in moves:
        raise InputError(f"clusters {name} do not go with moves {moves}, which have them: leave one of them out")
    named = f"{_CLUSTERS[name]}:{_CLUSTERS_EVERY if every is None else every}"
    given["moves"] = f"{moves},{named}" if moves else named


def with_houdayer(given: dict[str, Any]) -> None:
    """Replace a number of sweeps between Houdayer moves by the moves, in place among the settings of a job."""
    every, moves = given.get("houdayer"), given.get("moves")
    if every is None or every == AUTO:
        return
    if not re.fullmatch(r"[0-9]{1,12}", every):
        raise InputError(f"houdayer {every!r} is no number of sweeps: give a whole number, {AUTO}, or 0 for none")
    if moves and "houdayer:" in moves:
        raise InputError(f"houdayer {every} does not go with moves {moves}, which have them: leave one of them out")
    if int(every):
        given["moves"] = f"{moves},houdayer:{int(every)}" if moves else f"houdayer:{int(every)}"


def with_ladder_of_file(given: dict[str, Any], job: str, axes: Mapping[str, str]) -> None:
    """Replace a file that is given for a ladder, such as ``first.h5``, by its numbers; ``axes`` by setting.

    Raises:
        InputError: for a file that holds no run of the job, or another kind of ladder.
    """
    for name, axis in axes.items():
        path = given.get(name)
        if isinstance(path, str) and path.endswith(_FILE):
            from spinsim.inputs.numbers import as_text
            from spinsim.store.contents import MEASUREMENTS
            from spinsim.store.files import read

            record = read(path)
            ladder = record.get(f"{MEASUREMENTS}/{axis}")
            if record.attributes["job"] != job or ladder is None:
                raise InputError(f"{name} {path!r} is no {job} run with a ladder of {name}: give the file of one")
            given[name] = as_text(ladder)
