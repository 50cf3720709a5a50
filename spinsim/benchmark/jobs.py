"""Whole commands, as a user types them, beside the rate of the engine that they drive: how much of it arrives."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from spinsim import benchmark
from spinsim.engine import Dynamics, Engine, create_engine, resolve_device
from spinsim.model.disorder import EdwardsAnderson
from spinsim.model.geometry.lattice import cubic, square
from spinsim.model.ising import Ising
from spinsim.model.trotter import trotter

_ROUNDS: Final = 50  # of sweeps and exchanges, by which an engine warms up


@dataclass(frozen=True)
class JobCase:
    """A line of the table.

    Attributes:
        name: Name of the case.
        command: Arguments of ``spinsim``, without its length, device and file.
        sweeps: Sweeps of a run that takes some ten seconds on the hardware that the case is for.
        model: Model that the command simulates.
        beta: Inverse temperatures of its ladder, one for each place; a single one where nothing is exchanged.
        copies: At each place.
    """

    name: str
    command: str
    sweeps: int
    model: Callable[[], Ising]
    beta: tuple[float, float, int]
    copies: int

    @property
    def betas(self) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        """Inverse temperatures from the coldest, (places,), of equally spaced temperatures."""
        low, high, count = self.beta
        return np.asarray(1.0 / np.linspace(low, high, count))


@dataclass(frozen=True)
class JobRate:
    """A measured case.

    Attributes:
        case: Which one.
        engine: Updates/ns of sweeps and exchanges without any measurement, the median of several runs.
        command: Updates/ns that the command says.
        seconds: Wall time of the command, from its start to its end.
        file_bytes: Size of its file.
    """

    case: JobCase
    engine: float
    command: float
    seconds: float
    file_bytes: int

    @property
    def share(self) -> float:
        """Share of the engine's rate that arrives."""
        return self.command / self.engine


_EA: Final = "temper --lattice cubic --couplings pm-j --thermalize 100"
_16: Final = "--size 16 --samples 128 --temperatures 0.8:2:32 --replicas 4"
_6: Final = "--size 6 --samples 4096 --temperatures 0.8:2:16"


def _glass(size: int, samples: int, couplings: str = "pm-j") -> Callable[[], Ising]:
    return lambda: EdwardsAnderson(cubic(size), couplings=couplings, samples=samples)


_LADDER, _SHORT, _GAUSSIAN = (0.8, 2.0, 32), (0.8, 2.0, 16), (0.5, 1.8, 32)
_OF_16: Final = (_glass(16, 128), _LADDER, 4)
CUDA_CASES: Final = (
    JobCase("3D +-J, L = 16, every 10", f"{_EA} {_16} --measure-every 10", 1_000_000, *_OF_16),
    JobCase("3D +-J, L = 16, every 100", f"{_EA} {_16} --measure-every 100", 1_000_000, *_OF_16),
    JobCase("the same, --no-correlations", f"{_EA} {_16} --measure-every 100 --no-correlations", 1_000_000, *_OF_16),
    JobCase("3D +-J, L = 16, every 1,000", f"{_EA} {_16} --measure-every 1000", 1_000_000, *_OF_16),
    JobCase(
        "3D +-J, L = 6, every 100", f"{_EA} {_6} --replicas 4 --measure-every 100", 400_000, _glass(6, 4096), _SHORT, 4
    ),
    JobCase("the same, 8 copies", f"{_EA} {_6} --replicas 8 --measure-every 100", 400_000, _glass(6, 4096), _SHORT, 8),
    JobCase(
        "quantum 16 x 16 x 256, every 10",
        "quantum --lattice square --size 16 --slices 256 --couplings pm-j --samples 32 --replicas 4 "
        "--k 0.24:0.33:32 --thermalize 100 --measure-every 10",
        200_000,
        lambda: trotter(EdwardsAnderson(square(16), samples=32), 256),
        (1 / 0.33, 1 / 0.24, 32),
        4,
    ),
    JobCase(
        "3D Gaussian, L = 10, every 10",
        "temper --lattice cubic --couplings gaussian --size 10 --samples 256 --temperatures 0.5:1.8:32 --replicas 4 "
        "--thermalize 100 --measure-every 10",
        100_000,
        _glass(10, 256, "gaussian"),
        _GAUSSIAN,
        4,
    ),
)
CPU_CASES: Final = (
    JobCase(
        "3D +-J, L = 6, every 10",
        f"{_EA} --size 6 --samples 16 --temperatures 0.8:2:16 --replicas 8 --measure-every 10",
        60_000,
        _glass(6, 16),
        _SHORT,
        8,
    ),
    JobCase(
        "3D +-J, L = 6, every 100",
        f"{_EA} --size 6 --samples 16 --temperatures 0.8:2:16 --replicas 8 --measure-every 100",
        100_000,
        _glass(6, 16),
        _SHORT,
        8,
    ),
    JobCase(
        "3D Gaussian, L = 4, every 10",
        "temper --lattice cubic --couplings gaussian --size 4 --samples 8 --temperatures 0.5:1.8:16 --replicas 8 "
        "--thermalize 100 --measure-every 10",
        50_000,
        _glass(4, 8, "gaussian"),
        (0.5, 1.8, 16),
        8,
    ),
)


def engine_rate(engine: Engine, case: JobCase, repeats: int) -> float:
    """Return the median of updates/ns of sweeps with exchanges after each, nothing measured."""
    engine.set_ladder(case.betas, case.copies)
    updates = engine.model.sites * engine.model.samples * engine.replicas

    def seconds(rounds: int) -> float:
        began = time.perf_counter()
        engine.temper(rounds, 1)
        engine.wait()
        return time.perf_counter() - began

    seconds(_ROUNDS)  # compiles, or loads what is compiled
    rounds = max(1, int(benchmark.SECONDS / seconds(_ROUNDS) * _ROUNDS))
    return statistics.median(updates * rounds / seconds(rounds) / 1e9 for _ in range(repeats))


def job_rates(device: str, threads: int | None, repeats: int) -> Iterator[JobRate]:
    """Time the engine and then the whole command of every case, once."""
    where = resolve_device(device)
    for case in CUDA_CASES if where == "cuda" else CPU_CASES:
        model = case.model()
        engine = create_engine(model, len(case.betas) * case.copies, Dynamics(), device, threads, slabs=False)
        of_engine = engine_rate(engine, case, repeats)
        del engine  # its memory
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "run.h5"
            words = [*case.command.split(), "--sweeps", str(case.sweeps), "--device", where, "--out", str(out)]
            words += [] if threads is None else ["--threads", str(threads)]
            began = time.perf_counter()
            told = subprocess.run(  # noqa: S603  (our own command)
                [sys.executable, "-m", "spinsim", *words, "--json"], check=True, capture_output=True, text=True
            )
            seconds = time.perf_counter() - began
            yield JobRate(case, of_engine, json.loads(told.stdout)["updates_per_ns"], seconds, out.stat().st_size)
