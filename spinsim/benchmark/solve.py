"""Success probability of anneals on instances, and time to solution, with errors."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from spinsim.errors import InputError
from spinsim.jobs.anneal.report import Success, success_of
from spinsim.jobs.anneal.run import anneal
from spinsim.jobs.anneal.settings import AnnealSettings
from spinsim.jobs.temper.run import temper
from spinsim.model.ising import Ising, read_instance
from spinsim.model.targets import check_targets, value_of
from spinsim.settings.setting import settings_of

BEST_KNOWN: Final = {
    "G11": (800, 564),
    "G12": (800, 556),
    "G14": (800, 3064),
    "G22": (2000, 13359),
    "G32": (2000, 1410),
    "G48": (3000, 6000),
    "pm1s_100.0": (100, 127),
    "t2g10_5555": (100, 6049461),
    "t2g20_5555": (400, 24838942),
    "t3g5_5555": (125, 10933215),
    "t3g6_5555": (216, 17434469),
    "t3g7_5555": (343, 28302918),
}
"""Sites and best known cuts of public instances by the names of their files.

Those of the G-set are as in Benlic and Hao, Eng. Appl. Artif. Intell. 26, 1162 (2013), the others as in the Biq Mac
library (Wiegele).
"""


@dataclass(frozen=True)
class Solved:
    """Results for one instance."""

    name: str  # name of the instance
    sites: int  # number of spins
    target: float  # in its own terms
    best: float  # the best value that whole anneals met
    success: Success  # how often they met the target, and the time to solution
    rate: float  # attempted spin updates per nanosecond
    searches: list[float]
    """Seconds until calls of ``ss.anneal`` with the target met it, infinite where their time was up; sorted."""
    temperings: list[float]  # runs of ``ss.temper``, likewise


def solve_instances(
    files: Sequence[Path], target: float | None, repeats: int, time_limit: float, settings: dict[str, Any]
) -> Iterator[Solved]:
    """Anneal each instance, first whole anneals for the success probability, then until its target is met.

    The target is in the instances' own terms, by default the best known value. Whole anneals, and searches, which give
    up after ``time_limit`` seconds, are repeated with random numbers of their own. Targets that no state can have are
    refused before anything is annealed.
    """
    problems = [(model, target_of(file, model, target)) for file in files for model in [read_instance(file)]]
    settings_of(AnnealSettings)["time_limit"].check(time_limit)
    for model, wanted in problems:
        check_targets(model, wanted)
    for model, wanted in problems:
        yield solve(model, wanted, repeats, time_limit, settings)


def target_of(file: Path, model: Ising, target: float | None) -> float:
    sites, best = BEST_KNOWN.get(file.stem, (0, 0))
    if target is not None:
        return target
    if sites != model.sites or model.maxcut_weight is None:
        raise InputError(f"no best value of {file.name} is known here: give --target")
    return float(best)


def solve(model: Ising, target: float, repeats: int, time_limit: float, settings: dict[str, Any]) -> Solved:
    anneal(model, **settings | {"steps": 1, "sweeps": 1})  # compiles, or loads what is compiled
    whole = anneal(model, anneals=max(2, repeats), seed=1, **settings)
    success = success_of(model, whole.anneals, target)
    assert success is not None  # noqa: S101  (two whole anneals at least, and a target)
    updates = model.sites * success.replicas * success.sweeps
    shared = {name: settings[name] for name in ("device", "threads") if name in settings}
    temper(model, target=target, time_limit=1.0, **shared)  # compiles likewise
    until: dict[str, Any] = {"target": target, "time_limit": time_limit}
    anneals = _seconds_of(partial(anneal, model, **settings | until), "anneals", repeats)
    temperings = _seconds_of(partial(temper, model, **shared | until), "search", repeats)
    best = float(value_of(model, whole.best_energy.min()))
    rate = updates / success.seconds / 1e9
    return Solved(model.name, model.sites, target, best, success, rate, anneals, temperings)


def _seconds_of(call: Callable[..., Any], search: str, repeats: int) -> list[float]:
    """The times of calls with seeds of their own, as their caller meets them; infinite where they missed; sorted.

    ``search`` is the attribute of the result that says whether the target was met.
    """
    times = []
    for seed in range(2, repeats + 2):
        began = time.perf_counter()
        found = getattr(call(seed=seed), search)
        times.append(time.perf_counter() - began if found is not None and found.is_met else math.inf)
    return sorted(times)
