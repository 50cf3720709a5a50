"""Settings of ``spinsim quantum``."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from spinsim.errors import InputError
from spinsim.settings import shared
from spinsim.settings.config import Config, table
from spinsim.settings.setting import GRID, Table, setting
from spinsim.settings.shared import RunSettings

if TYPE_CHECKING:
    from spinsim.inputs.numbers import Array
    from spinsim.model.trotter import Points
    from spinsim.sampling import Range, Times

MOST_TIMES: Final = 16  # largest default number of correlation times
_K: Final = "0.2:0.3:16"
_ENDS: Final = {"k": "0.25:0.31", "gamma": "2:4", "beta": "0.5:4"}  # of ladders to be placed, in the user's notation


@dataclass(frozen=True)
class QuantumSettings(Table):
    """The points that replicas exchange, the number of slices in time and the length of the run.

    ``k`` is the ladder of the isotropic form. ``gamma`` and ``beta`` together make the general form, whose ladder goes
    along the one that has several values.
    """

    start: str = shared.start()
    k: str | None = setting(
        None,
        "Steps in time, which are the couplings of the isotropic form: 0.25:0.31:16, evenly spaced; 0.25:0.31:16g, "
        "geometric; 0.27,0.28,0.29; auto:0.25:0.31 or auto:0.25:0.31:16, placed in a pre-run so that all exchange "
        "equally often; or FILE.h5, the ladder of another run",
        shown=f"{_K}, without gamma",
        unit="1 / coupling unit",
        numbers=GRID,
    )
    gamma: str | None = setting(
        None,
        "Transverse fields of the general form, one or a ladder such as 2:4:16 or auto:2:4, with beta",
        unit="coupling unit",
        numbers=GRID,
    )
    beta: str | None = setting(
        None,
        "Inverse temperatures of the general form, one or a ladder such as 0.5:4:8g or auto:0.5:4, with gamma; the "
        "step in time is beta / slices",
        unit="1 / coupling unit",
        numbers=GRID,
    )
    slices: int = setting(32, "Slices in time, an even number", low=2, high=2**20)
    thermalize: int = setting(2000, "Sweeps before the first measurement", low=0)
    sweeps: int = setting(10_000, "Measured sweeps", low=1, high=10**12)
    measure_every: int = setting(10, "Sweeps between measurements", low=1)
    swap_every: int = setting(1, "Sweeps between exchanges", low=1)
    correlation_times: str | None = setting(
        None,
        "Times at which spins are correlated with themselves, such as 1,2,4,8; 1 is always among them",
        shown=f"1, 2, 3, ... to half of the slices, {MOST_TIMES} at most",
        unit="slices",
        numbers=GRID,
    )
    moves: str | None = shared.own_moves()
    clusters: str | None = shared.clusters()
    clusters_every: int = shared.clusters_every()
    houdayer: str | None = shared.houdayer(shown="none")
    measure: str | None = shared.own_measure()
    series: str = shared.series()
    series_limit: float | None = shared.series_limit()
    even_correlations: bool = setting(False, "Correlate products of neighbouring spins too, for gaps of even parity")
    magnetization_modes: bool = setting(
        True, "Measure Fourier modes of the magnetisation, for its correlation lengths in space and in time"
    )
    local_susceptibility: bool = setting(
        False, "Measure the local susceptibility of each site, from the square of its sum over slices"
    )
    zero_acceptance: float = shared.zero_acceptance()

    def check_together(self) -> None:
        from spinsim.model.trotter import check_slices

        _ = self.times
        check_slices(self.slices)
        _ = self.time_list
        if self.gamma is None and self.beta is not None:
            raise InputError(f"beta {self.beta!r} has no gamma: give both for the general form, or leave beta out")
        if self.gamma is not None and self.beta is None:
            raise InputError(f"gamma {self.gamma!r} has no beta: give both for the general form, or leave gamma out")
        if self.gamma is not None and self.k is not None:
            raise InputError(
                f"k {self.k!r} is for the isotropic form and gamma {self.gamma!r} for the general one: give one of them"
            )
        _ = self.ends

    @cached_property
    def times(self) -> Times:
        from spinsim.sampling.tempering import Times

        return Times(self.thermalize, self.sweeps, self.measure_every, self.swap_every)

    @cached_property
    def time_list(self) -> tuple[int, ...]:
        from spinsim.inputs.numbers import read_grid

        text, last = self.correlation_times, self.slices // 2
        if text is None:
            return tuple(range(1, min(MOST_TIMES, last) + 1))
        numbers = read_grid("correlation_times", text, "whole numbers such as 1,2,4,8")
        for time in numbers:
            if time != int(time) or time > last:
                raise InputError(
                    f"correlation time {time:g} is not allowed: give whole numbers from 1 to {last}, half of the slices"
                )
        return tuple(sorted({1, *map(int, numbers)}))

    @cached_property
    def to_place(self) -> Range | None:
        """Rising ends, in 1 / k, Gamma or 1 / beta, of a ladder that a pre-run places; None for a given ladder."""
        from spinsim.inputs.numbers import read_grid
        from spinsim.sampling.placement import MOST_TEMPERATURES, PREFIX, Range, read_count

        axis, text = self._automatic
        if not axis:
            return None
        parts = text.removeprefix(PREFIX).split(":")
        ends = read_grid(axis, ",".join(parts[:2]), f"{PREFIX}{_ENDS[axis]} or {PREFIX}{_ENDS[axis]}:16")
        try:
            low, high = map(float, ends)
            low, high = (low, high) if axis == "gamma" else (1 / high, 1 / low)
            return Range(low, high, read_count(parts[2:]), axis, text)
        except (InputError, TypeError, ValueError) as error:
            raise InputError(
                f"{axis} {text!r} cannot be placed: give {PREFIX}LO:HI with LO < HI, such as {PREFIX}{_ENDS[axis]}, or "
                f"{PREFIX}LO:HI:COUNT with a COUNT from 2 to {MOST_TEMPERATURES}"
            ) from error

    @property
    def _automatic(self) -> tuple[str, str]:
        """Name and original text of a ladder that a pre-run places; two empty texts if there is none."""
        from spinsim.sampling.placement import PREFIX

        ladders = {"gamma": self.gamma, "beta": self.beta} if self.is_general else {"k": self.k or _K}
        automatic = [(name, text) for name, text in ladders.items() if text is not None and text.startswith(PREFIX)]
        if len(automatic) > 1:
            raise InputError(
                f"gamma {self.gamma!r} and beta {self.beta!r} cannot both be placed: give one number for one of them"
            )
        return automatic[0] if automatic else ("", "")

    @property
    def ends(self) -> Points:
        """The given points, or both ends of a ladder that a pre-run places."""
        import numpy as np

        wanted = self.to_place
        return self.points if wanted is None else self.points_of(np.array([wanted.low, wanted.high]))

    def points_of(self, ladder: Array) -> Points:
        """Return the points of a placed ladder, given as values of 1 / k, Gamma or 1 / beta."""
        from spinsim.inputs.numbers import read_grid
        from spinsim.model.trotter import check_steps, general, isotropic

        if self.gamma is None or self.beta is None:
            check_steps(1 / ladder)
            return isotropic(1 / ladder, self.slices)
        axis, text = self._automatic
        other, given = ("beta", self.beta) if axis == "gamma" else ("gamma", self.gamma)
        one = read_grid(other, given)
        if len(one) > 1:
            raise InputError(f"{axis} {text!r} is placed at one {other}, but {given!r} are {len(one)}: give one number")
        return general(ladder, one, self.slices) if axis == "gamma" else general(one, 1 / ladder, self.slices)

    @property
    def places(self) -> int:
        wanted = self.to_place
        return len(self.points) if wanted is None else wanted.count or 2

    @property
    def is_general(self) -> bool:
        return self.gamma is not None

    @cached_property
    def points(self) -> Points:
        """The given points, from the end deepest in the ordered phase: k falls, Gamma rises, beta falls."""
        import numpy as np

        from spinsim.inputs.numbers import form, read_grid, shown
        from spinsim.model.trotter import check_steps, general, isotropic

        if self.gamma is not None and self.beta is not None:
            return general(read_grid("gamma", self.gamma), read_grid("beta", self.beta), self.slices)
        text = self.k or _K
        steps = np.sort(read_grid("k", text, form("auto:0.25:0.31")))[::-1]
        if not (np.diff(steps) < 0).all():
            raise InputError(f"k {shown(text)} has equal values: give each once")
        check_steps(steps)
        return isotropic(steps, self.slices)


@dataclass(frozen=True)
class Quantum(Config):
    """One run of ``spinsim quantum``; ``run.replicas`` are copies of the ladder."""

    job = "quantum"

    run: RunSettings = table(RunSettings, replicas={"default": 2, "help": "Copies at each k, two or more for overlaps"})
    quantum: QuantumSettings = table(QuantumSettings)

    @classmethod
    def complete(cls, tables: dict[str, dict[str, Any]]) -> None:
        """Fill in moves, and the ladder of the isotropic form if no ladder is given."""
        shared.with_ladder_of_file(tables[cls.job], cls.job, {name: name for name in ("k", "gamma", "beta")})
        shared.with_clusters(tables[cls.job])
        shared.with_houdayer(tables[cls.job])
        if tables[cls.job].keys().isdisjoint({"k", "gamma", "beta"}):
            tables[cls.job]["k"] = _K
