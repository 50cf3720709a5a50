"""Settings of ``spinsim quantum``."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

from spinsim.errors import InputError
from spinsim.settings.config import Config, table
from spinsim.settings.setting import GRID, Table, setting
from spinsim.settings.shared import RunSettings
from spinsim.settings.starts import start, zero_acceptance

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from spinsim.sampling import Range, Times

MOST_TIMES: Final = 16
"""Times that are correlated by default, at most."""


@dataclass(frozen=True)
class QuantumSettings(Table):
    """The couplings of slices in time that replicas exchange, the number of slices and the length of the run."""

    start: str = start()
    k: str = setting(
        "0.2:0.3:16",
        "Steps in time, which are the couplings of the isotropic form: 0.25:0.31:16, evenly spaced; 0.25:0.31:16g, "
        "geometric; 0.27,0.28,0.29; or auto:0.25:0.31 or auto:0.25:0.31:16, placed in a pre-run so that all exchange "
        "equally often",
        unit="1 / coupling unit",
        numbers=GRID,
    )
    slices: int = setting(32, "Slices in time, an even number", low=2, high=2**20)
    thermalize: int = setting(2000, "Sweeps before the first measurement", low=0)
    sweeps: int = setting(10_000, "Sweeps of the measured part", low=1, high=10**12)
    measure_every: int = setting(10, "Sweeps between measurements", low=1)
    swap_every: int = setting(1, "Sweeps between exchanges", low=1)
    correlation_times: str | None = setting(
        None,
        "Times at which spins are correlated with themselves, such as 1,2,4,8; 1 is always among them",
        shown=f"1, 2, 3, ... to half of the slices, {MOST_TIMES} at most",
        unit="slices",
        numbers=GRID,
    )
    even_correlations: bool = setting(
        False,
        "Correlate products of neighbours in space at these times too, for gaps of even parity",
        before=False,
    )
    zero_acceptance: float = zero_acceptance()

    def check_together(self) -> None:
        """Refuse lengths that do not divide each other, odd slices, and lists that are no ladder and no times."""
        from spinsim.model.trotter import check_slices

        _ = self.times
        check_slices(self.slices)
        _ = self.time_list
        if self.to_place is None:
            _ = self.ladder

    @cached_property
    def times(self) -> Times:
        """How long and how often."""
        from spinsim.sampling.tempering import Times

        return Times(self.thermalize, self.sweeps, self.measure_every, self.swap_every)

    @cached_property
    def time_list(self) -> tuple[int, ...]:
        """Times of correlations in slices, rising."""
        from spinsim.inputs.grids import read_grid

        text, last = self.correlation_times, self.slices // 2
        if text is None:
            return tuple(range(1, min(MOST_TIMES, last) + 1))
        found = read_grid("correlation_times", text, "whole numbers such as 1,2,4,8")
        for time in found:
            if time != int(time) or time > last:
                raise InputError(
                    f"correlation time {time:g} is not allowed: give whole numbers from 1 to {last}, half of the slices"
                )
        return tuple(sorted({1, *map(int, found)}))

    @cached_property
    def to_place(self) -> Range | None:
        """Ends of a ladder that a pre-run places, in temperatures 1 / k; None where it is given."""
        from spinsim.inputs.grids import read_grid
        from spinsim.sampling.placement import PREFIX, Range

        if not self.k.startswith(PREFIX):
            return None
        parts = self.k.removeprefix(PREFIX).split(":")
        ends = read_grid("k", ",".join(parts[:2]), f"{PREFIX}0.25:0.31 or {PREFIX}0.25:0.31:16")
        try:
            low, high = ends
            return Range(1 / float(high), 1 / float(low), *map(int, parts[2:]))
        except (InputError, TypeError, ValueError) as error:
            form = f"{PREFIX}LO:HI with LO < HI, such as {PREFIX}0.25:0.31, or {PREFIX}LO:HI:COUNT"
            raise InputError(f"k {self.k!r} cannot be placed: give {form}") from error

    @cached_property
    def ladder(self) -> npt.NDArray[np.float64]:
        """The values of k given, from the largest, which is the coldest, to the smallest."""
        import numpy as np

        from spinsim.inputs.grids import FORM, read_grid

        found = np.sort(read_grid("k", self.k, f"{FORM}, or auto:0.25:0.31"))[::-1]
        if not (np.diff(found) < 0).all():
            raise InputError(f"k {self.k!r} has equal values: give each once")
        return found


@dataclass(frozen=True)
class Quantum(Config):
    """One run of ``spinsim quantum``; ``run.replicas`` are copies of the ladder."""

    job = "quantum"

    run: RunSettings = table(RunSettings, replicas={"default": 2, "help": "Copies at each k, two or more for overlaps"})
    quantum: QuantumSettings = table(QuantumSettings)
