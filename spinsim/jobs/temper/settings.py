"""Settings of ``spinsim temper``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from spinsim.errors import InputError
from spinsim.settings import shared
from spinsim.settings.config import Config, table
from spinsim.settings.setting import GRID, Table, setting
from spinsim.settings.shared import RunSettings

if TYPE_CHECKING:
    from spinsim.inputs.numbers import Array
    from spinsim.jobs.ladder.result import Temperatures
    from spinsim.model.ising import Ising
    from spinsim.sampling import Range, Times

_GLASSY: Final = 0.3, 0.8  # ends of the ladder of a glass on a lattice, in root mean square local fields
_AROUND: Final = 0.75, 1.3  # ends of the ladder of a ferromagnet or antiferromagnet, in transition temperatures
RESTART_AFTER: Final = 50_000
FIRST_GROUP_SWEEPS: Final = 50  # easy problems need no more; several groups would only add work
_COUNT: Final = 16
_WIDE_COUNT: Final = 32
_WIDE: Final = 4.0  # logarithm of the ratio of the ends of a ladder with ``_WIDE_COUNT`` temperatures
_MOST_COUNT: Final = 128  # a word of replicas
_LARGE: Final = 4000  # sites beyond which neighbouring temperatures must lie closer
_LARGE_COUNT: Final = 128  # temperatures in a search of a large problem: a word of replicas, in equal steps
_RESTART_OF_SITE: Final = 250  # sweeps per site of a large problem, which finds lower states for millions of sweeps
_OF_LAST: Final = 2.0  # coldest end on a lattice, in units of an anneal's last temperature
_OF_FIRST: Final = 2 / 3  # hottest end on a lattice, in units of an anneal's first temperature
_OF_HOT: Final = 1.4  # ends on another graph, in units of an anneal's ends
_OF_COLD: Final = 1.2
_OF_COLD_WITH_GAP: Final = 0.5  # all other low states lie a gap above the lowest
_LARGE_OF_COLD: Final = 1.1  # factors of the ends in large problems, whose replicas cannot cross a wider range
_LARGE_OF_HOT: Final = 0.55
_LEAST_RATIO: Final = 4.0  # least ratio of the ends of a large problem's ladder, if the anneal's range allows it
_EVEN_RATIO: Final = 10.0  # ratio of the ends below which large problems have equal steps
_MOVED_OF_HOT: Final = 0.25  # hot end of large problems with moves, which leave valleys even where it is colder


def usual_restart(sites: int) -> int:
    """Return the default number of sweeps without a lower state after which a search of this size restarts."""
    return RESTART_AFTER if sites <= _LARGE else _RESTART_OF_SITE * sites


@dataclass(frozen=True)
class TemperSettings(Table):
    """The ladder of temperatures and the length of the run."""

    start: str = shared.start()
    temperatures: str | None = setting(
        None,
        "From the lowest to the highest: 0.8:2:16, evenly spaced; 0.8:2:16g, geometric; 0.8,1.0,1.3; auto:0.8:2 or "
        "auto:0.8:2:16, placed in a pre-run so that all exchange equally often; FILE.h5, the ladder of another run",
        shown=f"{_COUNT}g, for ferromagnets and antiferromagnets from {_AROUND[0]} to {_AROUND[1]} x the temperature "
        f"of their transition, for glasses from {_GLASSY[0]} to {_GLASSY[1]} x the root mean square local field; for "
        f"searches and graphs {_WIDE_COUNT} to {_MOST_COUNT} over the range of an anneal",
        unit="coupling unit / k_B",
        numbers=GRID,
    )
    thermalize: int = setting(
        2000, "Sweeps before the first measurement; in a search before the first recorded row", low=0
    )
    sweeps: int = setting(
        10_000, "Measured sweeps; in a search the recorded sweeps, after which it goes on", low=1, high=10**12
    )
    measure_every: int = setting(10, "Sweeps between measurements", low=1)
    swap_every: int = setting(1, "Sweeps between exchanges of temperatures", low=1)
    correlations: bool = setting(
        True, "Measure link overlaps and the smallest Fourier modes; by default not in searches"
    )
    magnetization_modes: bool | None = setting(
        None,
        "Measure Fourier modes of the magnetisation too, for its correlation length",
        shown="no for glasses with symmetric +-J or Gaussian couplings in zero field, where they are noise; else yes",
    )
    moves: str | None = shared.own_moves()
    clusters: str | None = shared.clusters()
    clusters_every: int = shared.clusters_every()
    houdayer: str | None = shared.houdayer(shown="none; in searches on graphs auto")
    measure: str | None = shared.own_measure()
    series: str = shared.series()
    series_limit: float | None = shared.series_limit()
    groups: int | None = setting(
        1,
        "Independent groups of copies in a search; series, exchanges and round trips come from the first group",
        shown="1; in searches without --replicas one for each CPU thread, or as many as fill a GPU",
        low=1,
        high=2**18,
    )
    restart_after: int | None = setting(
        0,
        "Sweeps without a lower state after which a search restarts with new random numbers, twice as many after "
        "each restart; 0 for never",
        shown=f"{RESTART_AFTER} in searches, beyond {_LARGE} sites {_RESTART_OF_SITE} for each site",
        unit="sweeps",
        low=0,
        high=10**12,
    )
    target: str | None = shared.target()
    time_limit: float | None = shared.time_limit()
    solution: str | None = shared.solution()
    zero_acceptance: float = shared.zero_acceptance()

    @classmethod
    def check_given(cls, given: Mapping[str, Any]) -> None:
        """Refuse a pre-run in a search, which would not count its time; runs begun by earlier versions can continue."""
        from spinsim.sampling.placement import PREFIX

        text, ends = given.get("temperatures"), sorted({"target", "time_limit"} & set(given))
        if ends and isinstance(text, str) and text.startswith(PREFIX):
            raise InputError(
                f"temperatures {text!r} do not go with {ends[0]}, as the pre-run that places them is no part of the "
                "search: give them, or their ends and number such as 0.1:1:32g"
            )

    @property
    def searches(self) -> bool:
        return self.target is not None or self.time_limit is not None

    def check_together(self) -> None:
        _ = self.times
        for name, usual in (("groups", 1), ("restart_after", 0)):
            value = getattr(self, name)
            if value != usual and not self.searches:
                raise InputError(f"{name} {value} is for searches alone: give target or time_limit, or leave it out")
        if self.series != "all" and self.searches:
            raise InputError(f"series {self.series!r} does not go with a search, which keeps the rows it records")
        if self.measure is not None and self.searches:
            raise InputError(f"measure {self.measure!r} does not go with a search: leave the target and time_limit out")
        if self.temperatures is not None and self.to_place is None:
            _ = self.ladder

    @property
    def sweeps_of_first_group(self) -> int:
        return max(1, FIRST_GROUP_SWEEPS // self.measure_every) * self.measure_every

    @property
    def number_of_groups(self) -> int:
        assert self.groups is not None  # noqa: S101
        return self.groups

    @cached_property
    def times(self) -> Times:
        from spinsim.sampling.tempering import Times

        return Times(self.thermalize, self.sweeps, self.measure_every, self.swap_every)

    @cached_property
    def to_place(self) -> Range | None:
        """Ends of a ladder whose temperatures a pre-run places; None for given temperatures."""
        from spinsim.sampling.placement import PREFIX, read_range

        text = self.temperatures or ""
        return read_range(text) if text.startswith(PREFIX) else None

    @property
    def points(self) -> Temperatures:
        return self.points_of(self.ladder)

    def points_of(self, values: Array) -> Temperatures:
        from spinsim.jobs.ladder.result import Temperatures

        return Temperatures(values)

    @property
    def places(self) -> int:
        if self.temperatures is None:
            return 1
        wanted = self.to_place
        return len(self.ladder) if wanted is None else wanted.count or 2

    @cached_property
    def ladder(self) -> Array:
        import numpy as np

        from spinsim.acceptance import check_temperatures
        from spinsim.inputs.numbers import form, read_grid, shown

        text = self.temperatures or ""
        wanted = form("auto:0.7:2.0")
        ladder = check_temperatures(read_grid("temperatures", text, wanted))
        if not (np.diff(ladder) > 0).all():
            raise InputError(f"temperatures {shown(text)} do not rise from the lowest to the highest: give {wanted}")
        return ladder


@dataclass(frozen=True)
class Temper(Config):
    """One run of ``spinsim temper``; ``run.replicas`` are copies of the ladder."""

    job = "temper"

    run: RunSettings = table(
        RunSettings,
        replicas={
            "default": 2,
            "shown": "2; in searches as many as make 128 replicas, 1 to 8, for dense problems on a CPU 1",
            "help": "Copies at each temperature, two or more for overlaps",
        },
        threads={"help": "CPU threads; the result does not depend on their number, for a given number of groups"},
    )
    temper: TemperSettings = table(TemperSettings)

    @classmethod
    def complete(cls, tables: dict[str, dict[str, Any]]) -> None:
        """Leave the size of a search to its model and device, and switch off correlations, unless they are given."""
        given = tables[cls.job]
        shared.with_ladder_of_file(given, cls.job, {"temperatures": "temperature"})
        shared.with_clusters(given)
        shared.with_houdayer(given)
        if {"target", "time_limit"} & set(given):
            if tables["run"].setdefault("replicas", None) is None:
                given.setdefault("groups", None)
            given.setdefault("restart_after", None)
            given.setdefault("correlations", False)

    def with_temperatures(self, model: Ising) -> Temper:
        """Fill in the ladder of the configuration; for searches and graphs it is as wide as an anneal."""
        from spinsim.sampling.temperatures import transition_temperature

        if self.temper.temperatures is not None:
            return self
        if self.temper.searches or model.lattice is None:
            text = _wide_ladder(model, self.temper)
        else:
            transition = transition_temperature(model)
            if transition is None:
                scale = model.energy_scale or 1.0
                text = f"{_GLASSY[0] * scale!r}:{_GLASSY[1] * scale!r}:{_COUNT}g"
            else:
                text = f"{_AROUND[0] * transition:.4g}:{_AROUND[1] * transition:.4g}:{_COUNT}g"
        return replace(self, temper=replace(self.temper, temperatures=text))


def _wide_ladder(model: Ising, t: TemperSettings) -> str:
    """Return the ladder of a search or a graph, with more temperatures for wider ladders and large problems."""
    from math import ceil, log, log2

    from spinsim.sampling.temperatures import automatic_temperatures

    hot, cold, has_gap = model.once(automatic_temperatures)
    if model.lattice is not None:
        hot, cold = _OF_FIRST * hot, _OF_LAST * cold
    else:
        hot, cold = _OF_HOT * hot, (_OF_COLD_WITH_GAP if has_gap else _OF_COLD) * cold
    octaves = ceil(log2(max(1.0, log(hot / cold) / _WIDE)))
    count, spacing = min(_WIDE_COUNT << octaves, _MOST_COUNT), "g"
    if model.sites > _LARGE:
        if not t.searches:
            count = min(2 * count, _MOST_COUNT)
        elif "houdayer:" in (t.moves or ""):
            hot = max(_MOVED_OF_HOT * hot, min(hot, _LEAST_RATIO * cold))
        else:
            count, cold = _LARGE_COUNT, _LARGE_OF_COLD * cold
            hot = max(_LARGE_OF_HOT * hot, min(hot, _LEAST_RATIO * cold))
            spacing = "" if hot < _EVEN_RATIO * cold else "g"
    return f"{cold!r}:{hot!r}:{count}{spacing}"
