"""Whole commands, as a user types them, beside the rate of the engine that they drive: how much of it arrives."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Final

from spinsim.benchmark import Spread, sweep_rates, timed_tempering
from spinsim.engine import Engine, resolve_device
from spinsim.jobs import job_of
from spinsim.settings.config import build_config, tables_of


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
        """The replicas of the command on their ladder, in their initial state."""
        job, given = job_of(self.job), {**self.settings, "device": device, "threads": threads}
        tables = {name: {key: given.get(key) for key in known} for name, known in tables_of(job.config).items()}
        plan: Any = job.plan(build_config(job.config, tables))
        engine: Engine = plan.engine_on(plan.of_job.points)
        engine.set_ladder(plan.of_job.points.couplings, plan.config.run.number_of_replicas)
        return engine


@dataclass(frozen=True)
class JobRate:
    """A measured case."""

    case: JobCase  # which one
    engine: float  # updates/ns of sweeps and exchanges without any measurement, the median of several runs
    command: float  # updates/ns that the command says
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
CUDA_CASES: Final = (
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
CPU_CASES: Final = (
    JobCase("3D +-J, L = 6, every 10", "temper", 60_000, {**_SMALL, "measure_every": 10}),
    JobCase("3D +-J, L = 6, every 100", "temper", 100_000, _SMALL),
    JobCase("3D Gaussian, L = 4, every 10", "temper", 50_000,
            {**_GAUSSIAN, "size": 4, "samples": 8, "temperatures": "0.5:1.8:16", "replicas": 8, "measure_every": 10}),
)  # fmt: skip


def job_rates(device: str, threads: int | None, repeats: int) -> Iterator[JobRate]:
    """Time the engine and then the whole command of every case, once."""
    where = resolve_device(device)
    for case in CUDA_CASES if where == "cuda" else CPU_CASES:
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
