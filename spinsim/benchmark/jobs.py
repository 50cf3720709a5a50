"""Rates of whole commands against those of their engines, and time to solution of searches on instances."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Final

from spinsim.benchmark import Spread, sweep_rates, timed_tempering
from spinsim.engine import Engine, resolve_device
from spinsim.errors import InputError
from spinsim.jobs import job_of
from spinsim.jobs.anneal.report import Success, success_of
from spinsim.jobs.anneal.run import anneal
from spinsim.jobs.anneal.settings import AnnealSettings
from spinsim.jobs.solve.run import solve as portfolio
from spinsim.jobs.temper.run import temper
from spinsim.model.ising import Ising, read_instance
from spinsim.model.targets import check_targets, value_of
from spinsim.settings.config import build_config, tables_of
from spinsim.settings.setting import settings_of


@dataclass(frozen=True)
class JobCase:
    """A line of the table."""

    name: str  # name of the case
    job: str  # command that runs it, ``temper`` or ``quantum``
    sweeps: int  # sweeps of a run that takes some ten seconds on the hardware that the case is for
    settings: Mapping[str, Any]  # its other settings, by name

    @property
    def words(self) -> list[str]:
        named = {key.replace("_", "-"): value for key, value in self.settings.items()}
        flags = [[f"--no-{key}"] if value is False else [f"--{key}", str(value)] for key, value in named.items()]
        return [self.job, "--sweeps", str(self.sweeps), *chain.from_iterable(flags)]

    def engine(self, device: str, threads: int | None) -> Engine:
        """Engine with the replicas of the command on their ladder, in their initial state."""
        job, given = job_of(self.job), {**self.settings, "device": device, "threads": threads}
        tables = {name: {key: given.get(key) for key in known} for name, known in tables_of(job.config).items()}
        plan: Any = job.plan(build_config(job.config, tables))
        engine: Engine = plan.engine_on(plan.of_job.points)
        engine.set_ladder(plan.of_job.points.couplings, plan.config.run.number_of_replicas)
        return engine


@dataclass(frozen=True)
class JobRate:
    """A measured case."""

    case: JobCase  # the case
    engine: float  # updates/ns of sweeps and exchanges without any measurement, the median of several runs
    command: float  # updates/ns that the command reports
    seconds: float  # wall time of the command, from its start to its end
    file_bytes: int  # size of its file

    @property
    def share(self) -> float:
        return self.command / self.engine


_EA: Final = {"lattice": "cubic", "couplings": "pm-j", "thermalize": 100}
_GAUSSIAN: Final = {**_EA, "couplings": "gaussian"}
_16: Final = {**_EA, "size": 16, "samples": 128, "temperatures": "0.8:2:32", "replicas": 4}
_6: Final = {**_EA, "size": 6, "samples": 4096, "temperatures": "0.8:2:16", "measure_every": 100}
_SMALL: Final = {**_6, "samples": 16, "replicas": 8}
_CUDA_CASES: Final = (
    JobCase("3D +-J, L = 16, every 10", "temper", 1_000_000, {**_16, "measure_every": 10}),
    JobCase("3D +-J, L = 16, every 100", "temper", 1_000_000, {**_16, "measure_every": 100}),
    JobCase("the same, --no-correlations", "temper", 1_000_000, {**_16, "measure_every": 100, "correlations": False}),
    JobCase("3D +-J, L = 16, every 1,000", "temper", 1_000_000, {**_16, "measure_every": 1000}),
    JobCase("3D +-J, L = 6, every 100", "temper", 400_000, {**_6, "replicas": 4}),
    JobCase("the same, 8 copies", "temper", 400_000, {**_6, "replicas": 8}),
    JobCase("quantum 16 x 16 x 256, every 10", "quantum", 200_000,
            {**_EA, "lattice": "square", "size": 16, "slices": 256, "samples": 32, "replicas": 4, "k": "0.24:0.33:32",
             "measure_every": 10}),
    JobCase("3D Gaussian, L = 10, every 10", "temper", 100_000,
            {**_GAUSSIAN, "size": 10, "samples": 256, "temperatures": "0.5:1.8:32", "replicas": 4,
             "measure_every": 10}),
)  # fmt: skip
_CPU_CASES: Final = (
    JobCase("3D +-J, L = 6, every 10", "temper", 60_000, {**_SMALL, "measure_every": 10}),
    JobCase("3D +-J, L = 6, every 100", "temper", 100_000, _SMALL),
    JobCase("3D Gaussian, L = 4, every 10", "temper", 50_000,
            {**_GAUSSIAN, "size": 4, "samples": 8, "temperatures": "0.5:1.8:16", "replicas": 8, "measure_every": 10}),
)  # fmt: skip
CASES: Final = {"cpu": _CPU_CASES, "cuda": _CUDA_CASES}


def job_rates(device: str, threads: int | None, repeats: int) -> Iterator[JobRate]:
    """Time the engine and then the whole command of every case, once."""
    where = resolve_device(device)
    for case in CASES[where]:
        engine = case.engine(device, threads)
        of_engine = Spread.of(sweep_rates(engine, repeats, timed_tempering(engine))[1]).median
        del engine  # its memory
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "run.h5"
            words = [*case.words, "--device", where, "--out", str(out)]
            words += [] if threads is None else ["--threads", str(threads)]
            began = time.perf_counter()
            told = subprocess.run(  # noqa: S603  (our own command)
                [sys.executable, "-m", "spinsim", *words, "--json"], check=True, capture_output=True, text=True
            )
            seconds = time.perf_counter() - began
            yield JobRate(case, of_engine, json.loads(told.stdout)["updates_per_ns"], seconds, out.stat().st_size)


BEST_KNOWN: Final = {
    "G11": (800, 564),
    "G12": (800, 556),
    "G14": (800, 3064),
    "G22": (2000, 13359),
    "G32": (2000, 1410),
    "G48": (3000, 6000),
    "G55": (5000, 10299),
    "G57": (5000, 3494),
    "G63": (7000, 27047),
    "G70": (10000, 9595),
    "G72": (10000, 7008),
    "G77": (14000, 9940),
    "G81": (20000, 14060),
    "pm1s_100.0": (100, 127),
    "t2g10_5555": (100, 6049461),
    "t2g20_5555": (400, 24838942),
    "t3g5_5555": (125, 10933215),
    "t3g6_5555": (216, 17434469),
    "t3g7_5555": (343, 28302918),
}
"""Sites and best known cuts of public instances by the names of their files.

Cuts of the G-set up to G48 are from Benlic and Hao, Eng. Appl. Artif. Intell. 26, 1162 (2013), of larger ones from Zick
(2025) and arXiv:2510.21105 (2025), the others from the Biq Mac library (Wiegele).
"""


@dataclass(frozen=True)
class Solved:
    """Results for one instance."""

    name: str  # name of the instance
    sites: int  # number of spins
    target: float  # in the instance's own terms
    best: float  # best value that whole anneals reached
    success: Success  # success probability of whole anneals for the target, and the time to solution
    rate: float  # attempted spin updates per nanosecond
    searches: list[float]
    """Seconds until calls of ``ss.anneal`` met the target, infinite where time ran out; sorted."""
    temperings: list[float]  # runs of ``ss.temper``, likewise
    portfolios: list[float]  # runs of ``ss.solve``, likewise


def solve_instances(
    files: Sequence[Path], target: float | None, repeats: int, time_limit: float, settings: dict[str, Any]
) -> Iterator[Solved]:
    """Anneal each instance, first whole anneals for the success probability, then until its target is met.

    The target is in the instances' own terms, by default the best known value. Whole anneals and searches are repeated
    with different random numbers; searches give up after ``time_limit`` seconds. Targets that no state can have are
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
    portfolio(model, target=target, time_limit=1.0, **shared)  # compiles what a search needs besides
    until: dict[str, Any] = {"target": target, "time_limit": time_limit}
    anneals = _seconds_of(partial(anneal, model, **settings | until), "anneals", repeats)
    temperings = _seconds_of(partial(temper, model, **shared | until), "search", repeats)
    portfolios = _seconds_of(partial(portfolio, model, **shared | until), "search", repeats)
    best = float(value_of(model, whole.best_energy.min()))
    rate = updates / success.seconds / 1e9
    return Solved(model.name, model.sites, target, best, success, rate, anneals, temperings, portfolios)


def _seconds_of(call: Callable[..., Any], search: str, repeats: int) -> list[float]:
    """Sorted wall times of calls with different seeds; infinite where ``search`` of the result missed its target."""
    times = []
    for seed in range(2, repeats + 2):
        began = time.perf_counter()
        found = getattr(call(seed=seed), search)
        times.append(time.perf_counter() - began if found is not None and found.is_met else math.inf)
    return sorted(times)
