"""Settings of ``spinsim anneal``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from spinsim.errors import InputError
from spinsim.settings.config import Config, table
from spinsim.settings.setting import GRID, Table, setting
from spinsim.settings.shared import RunSettings
from spinsim.settings.starts import start, zero_acceptance

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_LISTED: Final = "list"
"""The schedule of a run whose temperatures are listed."""
_T_START: Final = 1.5
_T_STOP: Final = 0.05


@dataclass(frozen=True)
class AnnealSettings(Table):
    """The temperature schedule: every temperature, or the ends, their number and how they are spaced.

    Where ``temperatures`` are given, the ends, ``steps`` and the ``schedule`` of a finished configuration say what they
    come to.
    """

    start: str = start()
    temperatures: str | None = setting(
        None,
        "Instead of ends and steps, every temperature in order of use: 3:0.1:100, evenly spaced; 3:0.1:100g, "
        "geometric; 3,2.5,2.2",
        unit="coupling unit / k_B",
        numbers=GRID,
        before=None,
    )
    t_start: float | None = setting(
        None,
        "First temperature",
        shown=f"{_T_START} x the root mean square local field",
        unit="coupling unit / k_B",
        low=1e-300,
    )
    t_stop: float | None = setting(
        None, "Last temperature", shown=f"{_T_STOP} x the same", unit="coupling unit / k_B", low=1e-300
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
        before=None,
    )
    zero_acceptance: float = zero_acceptance()

    def check_together(self) -> None:
        """Refuse lists that cannot be read and fields that are not as many as temperatures."""
        from spinsim.sampling.annealing import check_fields

        if self.temperatures is None and self.schedule == _LISTED:
            raise InputError(f"schedule {_LISTED!r} goes with temperatures alone: choose linear or geometric")
        steps = self.steps if self.temperatures is None else len(self.listed)
        if self.fields is not None:
            check_fields(self.fields, steps)

    @cached_property
    def listed(self) -> npt.NDArray[np.float64]:
        """The temperatures that are listed, empty where none are; one alone serves all fields."""
        import numpy as np

        from spinsim.acceptance import check_temperatures
        from spinsim.inputs.grids import read_grid

        if self.temperatures is None:
            return np.empty(0)
        ladder = check_temperatures(read_grid("temperatures", self.temperatures))
        many = 1 if self.fields is None or len(ladder) > 1 else len(self.fields)
        return np.repeat(ladder, many)

    @cached_property
    def fields(self) -> npt.NDArray[np.float64] | None:
        """The field of each step, None where it does not change."""
        from spinsim.inputs.grids import read_grid

        return None if self.field is None else read_grid("field", self.field, any_sign=True)

    @cached_property
    def ladder(self) -> npt.NDArray[np.float64]:
        """Every temperature, in order of use, of a configuration whose ends are filled in."""
        from spinsim.sampling.annealing import temperature_schedule

        if self.temperatures is not None:
            return self.listed
        assert self.t_start is not None and self.t_stop is not None  # noqa: S101, PT018
        return temperature_schedule(self.t_start, self.t_stop, self.steps, self.schedule)

    @classmethod
    def check_given(cls, given: Mapping[str, Any]) -> None:
        """Refuse listed temperatures together with what else would say them."""
        others = sorted({"t_start", "t_stop", "steps", "schedule"} & set(given))
        if given.get("temperatures") is not None and others:
            raise InputError(
                f"{others[0]} {given[others[0]]!r} does not go with temperatures, which say every step: leave one out"
            )


@dataclass(frozen=True)
class Anneal(Config):
    """One run of ``spinsim anneal``."""

    job = "anneal"

    run: RunSettings = table(
        RunSettings,
        save_configurations={
            "help": "Steps of the schedule for each one at whose end all spins are saved, a bit a spin; 0 saves none"
        },
    )
    anneal: AnnealSettings = table(AnnealSettings)

    def with_temperatures(self, energy_scale: float) -> Anneal:
        """The configuration with its temperature ends filled in."""
        from spinsim.inputs.grids import as_text

        given = self.anneal
        given = given if given.fields is None else replace(given, field=as_text(given.fields))
        if given.temperatures is not None:
            listed = given.listed
            first, last = float(listed[0]), float(listed[-1])
            written = replace(given, temperatures=as_text(listed), steps=len(listed), schedule=_LISTED)
            return replace(self, anneal=replace(written, t_start=first, t_stop=last))
        scale = energy_scale or 1.0
        t_start = _T_START * scale if given.t_start is None else given.t_start
        t_stop = _T_STOP * scale if given.t_stop is None else given.t_stop
        return replace(self, anneal=replace(given, t_start=t_start, t_stop=t_stop))
