"""Settings of ``spinsim evolve``."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from spinsim.inputs.texts import DYNAMICS
from spinsim.settings import shared
from spinsim.settings.config import Config, table
from spinsim.settings.setting import GRID, Table, setting
from spinsim.settings.shared import RunSettings

if TYPE_CHECKING:
    from spinsim.sampling.evolving import Schedule


@dataclass(frozen=True)
class EvolveSettings(Table):
    """The protocol, and when replicas are measured and compared.

    A stage has a temperature T, a field h added to the model's own (by default as before, at first 0) and sweeps.
    T=2:0.5 changes evenly over the stage, in at most 1000 steps. At T = 0 no flip may cost energy.
    """

    protocol: str = setting(
        "T=1.5 for 1000", "Stages such as 'T=0.7 for 1000; T=0.5 h=0.1 for 100; T=0.5:2 for 1000'", unit="coupling unit"
    )
    start: str = shared.start()
    waiting: str | None = setting(
        None, "Sweeps after which configurations are kept, to compare later ones", shown="none", numbers=GRID
    )
    times: str | None = setting(
        None, "Sweeps of measurements after stages and waiting times", shown="eight per decade, all even", numbers=GRID
    )
    dynamics: str = setting("checkerboard", "Order and acceptance of single-spin flips", choices=DYNAMICS)
    zero_acceptance: float = shared.zero_acceptance()
    measure: str | None = shared.own_measure()

    def check_together(self) -> None:
        _ = self.schedule

    @cached_property
    def schedule(self) -> Schedule:
        from spinsim.sampling.evolving import read_schedule

        return read_schedule(self.protocol, self.waiting, self.times)


@dataclass(frozen=True)
class Evolve(Config):
    """One run of ``spinsim evolve``."""

    job = "evolve"

    run: RunSettings = table(RunSettings)
    evolve: EvolveSettings = table(EvolveSettings)
