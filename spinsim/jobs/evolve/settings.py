"""Settings of ``spinsim evolve``."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from spinsim.errors import InputError
from spinsim.inputs.texts import DYNAMICS
from spinsim.settings import shared
from spinsim.settings.config import Config, table
from spinsim.settings.setting import GRID, Table, setting
from spinsim.settings.shared import RunSettings

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from spinsim.sampling.evolving import Leg


@dataclass(frozen=True)
class EvolveSettings(Table):
    """The protocol, from random spins (a quench), and when replicas are measured and compared.

    A stage of the protocol has a temperature T, a field h that is added to the model's own (by default as before, at
    first 0), and sweeps. T=2:0.5 changes evenly over the stage, in at most 1000 steps. At T = 0 no flip may cost
    energy.
    """

    protocol: str = setting(
        "T=1.5 for 1000", "Stages such as 'T=0.7 for 1000; T=0.5 h=0.1 for 100; T=0.5:2 for 1000'", unit="coupling unit"
    )
    start: str = shared.start()
    waiting: str | None = setting(
        None,
        "Waiting times, in sweeps from the beginning, such as 10,100,1000 or 1:1024:11g: the later configurations are "
        "compared with those after each of them",
        shown="none",
        numbers=GRID,
    )
    times: str | None = setting(
        None,
        "Sweeps of measurements after the beginning of each stage and after each waiting time, written likewise",
        shown="eight per decade, even numbers",
        numbers=GRID,
    )
    dynamics: str = setting(
        "checkerboard", "Order and acceptance of single-spin flips; heat-bath is in random order", choices=DYNAMICS
    )
    zero_acceptance: float = shared.zero_acceptance()
    measure: str | None = shared.own_measure()

    def check_together(self) -> None:
        last, waiting = int(self.measured[-1]), self.waiting_times
        if (waiting > last).any():
            raise InputError(f"waiting {waiting.max()} is beyond the {last} sweeps of the protocol: give a smaller one")

    @cached_property
    def legs(self) -> list[Leg]:
        from spinsim.sampling.evolving import read_protocol

        return read_protocol(self.protocol)

    @cached_property
    def waiting_times(self) -> npt.NDArray[np.int64]:
        return _sweeps("waiting", self.waiting or "")

    @cached_property
    def measured(self) -> npt.NDArray[np.int64]:
        """Sweeps after which replicas are measured."""
        from spinsim.sampling.evolving import measuring_times

        return measuring_times(self.legs, self.waiting_times, _sweeps("times", self.times) if self.times else None)


def _sweeps(name: str, text: str) -> npt.NDArray[np.int64]:
    """Return the different numbers of sweeps in a text, each rounded, from the smallest."""
    import numpy as np

    from spinsim.inputs.numbers import read_grid

    values = read_grid(name, text, any_sign=True) if text else np.empty(0)
    if (values < 0).any() or (values > 1e12).any():
        raise InputError(f"{name} {text!r} is not all from 0 to 10^12 sweeps: give numbers such as 10,100,1000")
    return np.unique(np.rint(values)).astype(np.int64)


@dataclass(frozen=True)
class Evolve(Config):
    """One run of ``spinsim evolve``."""

    job = "evolve"

    run: RunSettings = table(RunSettings)
    evolve: EvolveSettings = table(EvolveSettings)
