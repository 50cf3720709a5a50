"""Settings of ``spinsim solve``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from spinsim.errors import InputError
from spinsim.settings import shared
from spinsim.settings.config import Config, table
from spinsim.settings.setting import Table, setting
from spinsim.settings.shared import RunSettings

METHODS: Final = ("matching", "anneal", "temper", "tabu")
SECONDS: Final = 10.0


@dataclass(frozen=True)
class SolveSettings(Table):
    """When a search ends, what it uses and what it returns."""

    time_limit: float | None = setting(
        None,
        "Seconds of the search, not counting the compiling of kernels; the answer then depends on the machine",
        shown=f"{SECONDS:g}, none with sweeps_limit",
        unit="seconds",
        low=1e-3,
    )
    sweeps_limit: int | None = setting(
        None,
        "Sweeps of each method; with this limit alone the answer is the same on every machine",
        low=20,  # of the first anneal
        high=10**12,
    )
    target: str | None = shared.target()
    states: int = setting(1, "Number of distinct low states to return", low=1, high=10**5)
    methods: str = setting(
        ",".join(METHODS),
        f"Methods that take turns, some of {','.join(METHODS)}; matching only on graphs that tile a torus",
    )
    fix: bool = setting(True, "First fix spins that can be fixed exactly, and solve small or planar parts exactly")
    solution: str | None = shared.solution()

    def check_together(self) -> None:
        names = self.methods.split(",")
        wrong = [name for name in names if name not in METHODS]
        if wrong or len(set(names)) < len(names):
            said = f"method {wrong[0]!r} is unknown" if wrong else f"methods {self.methods!r} repeat a name"
            raise InputError(f"{said}: give some of {','.join(METHODS)}")


@dataclass(frozen=True)
class Solve(Config):
    """One run of ``spinsim solve``."""

    job = "solve"

    run: RunSettings = table(
        RunSettings,
        replicas={"unused": True},
        rng_rounds={"unused": True},
        save_configurations={"unused": True},
    )
    solve: SolveSettings = table(SolveSettings)

    @classmethod
    def complete(cls, tables: dict[str, dict[str, Any]]) -> None:
        given: Mapping[str, Any] = tables[cls.job]
        if given.get("time_limit") is None and given.get("sweeps_limit") is None:
            tables[cls.job]["time_limit"] = SECONDS
