"""Settings of ``spinsim anneal``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Final

from spinsim.errors import InputError, argument
from spinsim.inputs.texts import COLD_SHARE, HOT_ACCEPTANCE, T_START, T_STOP
from spinsim.settings import shared
from spinsim.settings.config import Config, table
from spinsim.settings.setting import GRID, Table, setting
from spinsim.settings.shared import RunSettings

if TYPE_CHECKING:
    from spinsim.inputs.numbers import Array
    from spinsim.model.ising import Ising
    from spinsim.sampling.temperatures import Ends

_LISTED: Final = "list"  # schedule of a run whose temperatures are listed
_T_SLICE: Final = 1 / 3  # temperature of a slice, in units of the first temperature of an anneal
_SLICES: Final = 32
_FIRST_STEPS: Final = 5
_FIRST_SWEEPS: Final = 4
_MOST_DOUBLINGS: Final = 120
_RANDOM: Final = ", as they begin at infinite temperature, with random spins"
_LENGTHS: Final = {"steps", "sweeps", "temperatures", "field"}


@dataclass(frozen=True)
class AnnealSettings(Table):
    """The temperature schedule: every temperature, or the ends, their number and how they are spaced.

    With ``quantum`` there is a schedule of transverse fields too, by default at one temperature. If ``temperatures``
    are given, the ends, ``steps`` and ``schedule`` of a finished configuration follow from them.
    """

    start: str = shared.start()
    temperatures: str | None = setting(
        None,
        "Instead of ends and steps, every temperature in order of use: 3:0.1:100, evenly spaced; 3:0.1:100g, "
        "geometric; 3,2.5,2.2",
        unit="coupling unit / k_B",
        numbers=GRID,
    )
    t_start: float | None = setting(
        None,
        "First temperature",
        shown=f"{T_START} x the root mean square local field, on graphs where flips at local minima succeed with "
        f"{HOT_ACCEPTANCE}; "
        "with populations the first below infinity",
        unit="coupling unit / k_B",
        low=1e-300,
    )
    t_stop: float | None = setting(
        None,
        "Last temperature",
        shown=f"{T_STOP} x the same, on graphs where thermal energy is 1/{1 / COLD_SHARE:g} of the height of minima",
        unit="coupling unit / k_B",
        low=1e-300,
    )
    steps: int = setting(100, "Number of temperatures", low=1, high=10**9)
    schedule: str = setting("geometric", "Spacing", choices=("linear", "geometric"), besides=_LISTED)
    sweeps: int = setting(100, "Sweeps at each temperature", low=1, high=10**12)
    field: str | None = setting(
        None,
        "Uniform field at each temperature, written like temperatures, added to the model's own",
        unit="coupling unit",
        numbers=GRID,
        flag="--fields",
    )
    populations: int = setting(
        0,
        "Population annealing: divide the replicas of each sample into this number of populations, which are resampled "
        "when the temperature changes; 0 for none",
        low=0,
        high=2**21,
    )
    overlap: float | None = setting(
        None,
        "Instead of steps, the overlap of the energies of populations at neighbouring temperatures, which a pre-run "
        "places from infinity to t_stop; each resampling then removes a share of 1 - overlap of the replicas",
        low=0.1,
        high=0.99,
    )
    quantum: bool = setting(
        False,
        "Simulated quantum annealing: turn down a transverse field in slices of imaginary time, by default at a "
        "constant temperature",
    )
    gamma_start: float | None = setting(
        None,
        "First transverse field of a quantum anneal",
        shown="t_start of an anneal without it",
        unit="coupling unit",
        low=1e-300,
    )
    gamma_stop: float | None = setting(
        None, "Last transverse field", shown="t_stop of an anneal without it", unit="coupling unit", low=1e-300
    )
    slices: int | None = setting(
        None, "Slices in imaginary time, an even number", shown=f"{_SLICES}", low=2, high=2**20
    )
    beta: float | None = setting(
        None,
        "Inverse temperature of a quantum anneal without temperatures; a slice has the temperature slices / beta",
        shown="slices / (t_start of an anneal without it / 3)",
        unit="1 / coupling unit",
        low=1e-100,
        high=1e100,
    )
    best_states: bool = setting(False, "Keep the lowest state of every replica, not only of every sample")
    solution: str | None = shared.solution()
    target: str | None = shared.target()
    time_limit: float | None = shared.time_limit()
    anneals: int | None = setting(
        None,
        "Largest number of anneals, each with its own random numbers; series come from the first",
        shown="1, and any number with a target or a time limit",
        low=1,
        high=2**20,
    )
    growing: bool = setting(
        False,
        "Begin with a short anneal and double the length of each next one, up to the given length; the default of "
        "searches without a length",
    )
    zero_acceptance: float = shared.zero_acceptance()
    moves: str | None = shared.own_moves()
    clusters: str | None = shared.clusters()
    clusters_every: int = shared.clusters_every()
    measure: str | None = shared.own_measure()

    def check_together(self) -> None:
        for name in ("gamma_start", "gamma_stop", "slices", "beta"):
            if not self.quantum and getattr(self, name) is not None:
                raise InputError(
                    f"{name} {getattr(self, name)} goes with quantum alone: give {argument('quantum', True)}, or leave "
                    "it out"
                )
        for name, conflicts, other in _CONFLICTS:
            value = getattr(self, name)
            if value not in (None, 0) and conflicts(self):
                does = "do" if name.endswith("s") else "does"
                mend = "" if ":" in other else ": leave one of them out"
                said = f"{value:g}" if isinstance(value, float) else repr(value)
                raise InputError(f"{name} {said} {does} not go with {other}{mend}")
        if self.schedule == _LISTED and self.temperatures is None:
            raise InputError(f"schedule {_LISTED!r} goes with temperatures alone: choose linear or geometric")
        if self.slices is not None:
            from spinsim.model.trotter import check_slices

            check_slices(self.slices)
        steps = self.steps if self.temperatures is None else len(self.listed)
        if self.fields is not None:
            from spinsim.sampling.annealing import check_fields

            check_fields(self.fields, steps)
        if self.growing and not self.is_search:
            raise InputError("growing goes with several anneals: give target, time_limit or anneals, or leave it out")

    @cached_property
    def listed(self) -> Array:
        """Listed temperatures, empty if there are none; a single temperature serves all fields."""
        import numpy as np

        from spinsim.acceptance import check_temperatures
        from spinsim.inputs.numbers import read_grid

        if self.temperatures is None:
            return np.empty(0)
        ladder = check_temperatures(read_grid("temperatures", self.temperatures))
        many = 1 if self.fields is None or len(ladder) > 1 else len(self.fields)
        return np.repeat(ladder, many)

    @cached_property
    def fields(self) -> Array | None:
        if self.field is None:
            return None
        from spinsim.inputs.numbers import read_grid

        return read_grid("field", self.field, any_sign=True)

    @cached_property
    def ladder(self) -> Array:
        import numpy as np

        from spinsim.sampling.annealing import temperature_schedule

        if self.temperatures is not None:
            return self.listed
        assert self.t_start is not None and self.t_stop is not None  # noqa: S101, PT018
        if self.quantum and self.t_start == self.t_stop:
            return np.full(self.steps, self.t_start)
        return temperature_schedule(self.t_start, self.t_stop, self.steps, self.schedule)

    def of_anneal(self, number: int) -> AnnealSettings:
        if not self.growing:
            return self
        return _grown(self, min(number, _MOST_DOUBLINGS))

    @property
    def length(self) -> int:
        return self.steps * self.sweeps

    @property
    def ends_early(self) -> bool:
        return self.target is not None or self.time_limit is not None

    @property
    def is_search(self) -> bool:
        """True for a run of several anneals, or with a target or a time limit."""
        return self.ends_early or self.anneals not in (None, 1)

    @property
    def slices_in_time(self) -> int:
        return (self.slices or _SLICES) if self.quantum else 1

    @cached_property
    def gammas(self) -> Array | None:
        from spinsim.sampling.annealing import temperature_schedule

        if self.gamma_start is None or self.gamma_stop is None:
            return None
        schedule = "geometric" if self.schedule == _LISTED else self.schedule
        return temperature_schedule(self.gamma_start, self.gamma_stop, self.steps, schedule)

    @classmethod
    def check_given(cls, given: Mapping[str, Any]) -> None:
        for name, others, other in _GIVEN_TOGETHER:
            said = sorted(set(others) & set(given))
            if said and given.get(name) not in (None, False):
                raise InputError(f"{said[0]} {given[said[0]]!r} does not go with {other}")
        if given.get("populations") and given.get("schedule") is not None and given.get("t_start") is None:
            raise InputError(
                f"schedule {given['schedule']!r} of populations, which begin at infinite temperature, needs a first "
                "temperature: give t_start, or leave schedule out for temperatures whose energies overlap evenly"
            )


_ENDS: Final = ("t_start", "t_stop")
_GIVEN_TOGETHER: Final = (
    ("beta", ("temperatures", *_ENDS), "beta, one temperature for all steps: leave one out"),
    (
        "overlap",
        ("temperatures", "t_start", "steps", "schedule"),
        "overlap, by which temperatures are found: leave one out",
    ),
    ("temperatures", (*_ENDS, "steps", "schedule"), "temperatures, which say every step: leave one out"),
)
"""A setting, the settings that exclude it, and the end of the message that refuses them."""

_CONFLICTS: Final[tuple[tuple[str, Callable[[AnnealSettings], Any], str], ...]] = (
    ("moves", lambda a: a.quantum, "quantum, whose slices in time are no configurations"),
    ("populations", lambda a: a.quantum, "quantum, whose slices begin at no infinite temperature"),
    ("overlap", lambda a: not a.populations, "anneals without populations, which begin anywhere"),
    ("overlap", lambda a: a.field is not None, "fields, which change"),
    ("populations", lambda a: a.start == "up", f"start 'up'{_RANDOM}"),
    ("populations", lambda a: a.start != "random", f"given spins{_RANDOM}"),
)
"""A setting, the condition that excludes it, and the end of the message that refuses it; a default end follows it."""


@lru_cache(maxsize=32)
def _grown(given: AnnealSettings, doublings: int) -> AnnealSettings:
    """Return the settings of an anneal after this number of doublings of the length; cached for all searches."""
    import numpy as np

    from spinsim.inputs.numbers import as_text

    steps = min(given.steps, _FIRST_STEPS << doublings // 2)
    sweeps = min(given.sweeps, _FIRST_SWEEPS << (doublings + 1) // 2)
    chosen = np.linspace(0, given.steps - 1, steps).round().astype(np.int64)
    temperatures = None if given.temperatures is None else as_text(given.listed[chosen])
    field = None if given.fields is None else as_text(given.fields[chosen])
    return replace(given, steps=steps, sweeps=sweeps, growing=False, temperatures=temperatures, field=field)


@dataclass(frozen=True)
class Anneal(Config):
    """One run of ``spinsim anneal``."""

    job = "anneal"

    run: RunSettings = table(
        RunSettings,
        replicas={
            "default": None,
            "shown": "128, on a GPU as many as fill it (in searches up to 8192); in searches of dense problems on a "
            "CPU 16, in a quantum anneal 128, in populations at least 4096",
        },
        save_configurations={
            "help": "Number of steps from one that saves all spins to the next, one bit per spin; 0 saves none"
        },
    )
    anneal: AnnealSettings = table(AnnealSettings)

    @classmethod
    def complete(cls, tables: dict[str, dict[str, Any]]) -> None:
        """Let the anneals of a search grow if no length is given."""
        given = tables[cls.job]
        shared.with_clusters(given)
        searches = {"target", "time_limit"} & set(given)
        if searches and not _LENGTHS & set(given) and not given.get("populations"):
            given.setdefault("growing", True)

    def with_temperatures(self, model: Ising) -> Anneal:
        from spinsim.inputs.numbers import as_text
        from spinsim.sampling.population import temperatures_from_infinity
        from spinsim.sampling.temperatures import automatic_temperatures

        given = self.anneal
        given = given if given.fields is None else replace(given, field=as_text(given.fields))
        if given.quantum:
            given = _quantum_filled_in(given, model.once(automatic_temperatures))
        if given.temperatures is not None:
            ladder = given.listed
        elif given.t_start is not None and given.t_stop is not None:
            return replace(self, anneal=given)
        else:
            usual = model.once(automatic_temperatures)
            t_stop = usual.cold if given.t_stop is None else given.t_stop
            if given.t_start is not None or not given.populations:
                t_start = usual.hot if given.t_start is None else given.t_start
                return replace(self, anneal=replace(given, t_start=t_start, t_stop=t_stop))
            ladder = temperatures_from_infinity(model, t_stop, given.steps)
        ends: dict[str, Any] = {"t_start": float(ladder[0]), "t_stop": float(ladder[-1])}
        written = replace(given, temperatures=as_text(ladder), steps=len(ladder), schedule=_LISTED, **ends)
        return replace(self, anneal=written)


def _quantum_filled_in(given: AnnealSettings, usual: Ends) -> AnnealSettings:
    """Fill in the missing settings of a quantum anneal, from the default range of temperatures."""
    slices = given.slices or _SLICES
    beta = given.beta or slices / (_T_SLICE * usual.hot)
    constant = given.temperatures is None and given.t_start is None and given.t_stop is None
    return replace(
        given,
        slices=slices,
        beta=beta if constant or given.beta else None,
        gamma_start=given.gamma_start or usual.hot,
        gamma_stop=given.gamma_stop or usual.cold,
        t_start=given.t_start or 1 / beta,
        t_stop=given.t_stop or 1 / beta,
    )
