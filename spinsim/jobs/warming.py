"""Compiling the kernels of common runs ahead of time, for container images and batch jobs."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import CancelledError, ThreadPoolExecutor
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np

import spinsim
from spinsim.cuda.compile import finish
from spinsim.engine import resolve_device
from spinsim.errors import InputError
from spinsim.inputs.arguments import public
from spinsim.machine import compiled, stored
from spinsim.machine.compiled import COMPILED
from spinsim.machine.threads import available_threads, stopping_on_signals
from spinsim.model.disorder import EdwardsAnderson
from spinsim.model.graph import Graph
from spinsim.model.ising import Ising
from spinsim.model.lattice import chain, cubic, square
from spinsim.sampling.temperatures import automatic_temperatures
from spinsim.settings.setting import settings_of
from spinsim.settings.shared import RunSettings

_OF_CHILD: Final = "import sys; from spinsim.jobs.warming import _in_child; _in_child(*sys.argv[1:])"


class Warmed(NamedTuple):
    """A small run: its job and its model in words, and the name and compile time in seconds of each compiled kernel."""

    job: str
    model: str
    kernels: list[tuple[str, float]]

    @property
    def seconds(self) -> float:
        return sum(seconds for _, seconds in self.kernels)


@public
def warm_up(
    jobs: Iterable[str] | None = None,
    device: str = "auto",
    threads: int | None = None,
    on_warmed: Callable[[Warmed], None] = lambda warmed: None,
    on_begun: Callable[[str, str], None] = lambda job, model: None,
) -> list[Warmed]:
    """Compile the kernels of common runs ahead of time and keep them on disk.

    Runs of these jobs then compile nothing. Small runs, each in a separate process, compile the
    kernels. A call that is interrupted loses only the kernels that it is compiling just then.

    Args:
        jobs: Names of jobs, such as ``["anneal"]``; all by default.
        device: Device of the later runs: ``auto``, ``cpu`` or ``cuda``.
        threads: Processes at a time; by default one for each processor.
        on_warmed: Called after each small run.
        on_begun: Called when a small run begins, with its job and its model in words.

    Returns:
        The small runs, job by job, with the seconds that each kernel took.

    Raises:
        InputError: for an unknown job or device, and if no folder is writable.
        KeyboardInterrupt: on Ctrl-C and SIGTERM; the processes are ended first.
    """
    tasks, where, children = small_runs(jobs), resolve_device(device), _Children()
    if stored.writable_folder() is None:
        raise InputError(
            "no folder takes compiled kernels: set NUMBA_CACHE_DIR to a folder of your own that others cannot write to"
        )

    def warmed(task: tuple[str, str]) -> Warmed:
        child = children.begin(*task, where)
        on_begun(*task)
        small_run = Warmed(*task, children.kernels_of(child, *task))
        on_warmed(small_run)
        return small_run

    def stop() -> None:
        children.end()
        raise KeyboardInterrupt

    settings_of(RunSettings)["threads"].check(threads)
    with stopping_on_signals(stop), ThreadPoolExecutor(threads or available_threads()) as pool:
        return list(pool.map(warmed, tasks))


def small_runs(jobs: Iterable[str] | None = None) -> list[tuple[str, str]]:
    """Return the job and the model in words of each small run of these jobs, in the order in which they begin."""
    chosen = list(RUNS) if jobs is None else list(dict.fromkeys(jobs))
    if unknown := [job for job in chosen if job not in RUNS]:
        raise InputError(f"job {unknown[0]!r} is unknown: choose one of {', '.join(RUNS)}")
    return [(job, model) for job in chosen for model in RUNS[job]]


class _Children:
    """Child processes that do small runs, because Numba compiles one kernel at a time in each process."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # a second signal may interrupt the handler of the first
        self._running: set[subprocess.Popen[str]] = set()
        self._has_ended = False

    def begin(self, job: str, model: str, device: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", _OF_CHILD, job, model, device]
        with self._lock:
            if self._has_ended:
                raise CancelledError
            child = subprocess.Popen(  # noqa: S603  (of names in RUNS)
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
            )
            self._running.add(child)
            return child

    def kernels_of(self, child: subprocess.Popen[str], job: str, model: str) -> list[tuple[str, float]]:
        """Wait for a child; return the kernels that it compiled, with the seconds that each took."""
        out, err = child.communicate()
        with self._lock:
            self._running.discard(child)
            if self._has_ended:
                raise CancelledError
        if child.returncode:
            why = "".join(err.strip().splitlines()[-1:]) or f"exit status {child.returncode}"
            raise InputError(f"kernels of {job}, {model}, cannot be compiled ({why}): mend this or leave the job out")
        return [(name, seconds) for name, seconds in json.loads(out)]

    def end(self) -> None:
        """Kill all children, which would otherwise finish the kernel that they compile, and let none begin."""
        with self._lock:
            self._has_ended = True
            for child in self._running:
                child.kill()


def _in_child(job: str, model: str, device: str) -> None:
    compiled.STEPS_BEFORE_LOADING = compiled.STEPS_BEFORE_COMPILING = -1  # compile also for small problems
    RUNS[job][model](device)
    finish()
    sys.stdout.write(json.dumps(COMPILED))


def _graph(pairs: Any, values: Callable[[Any], Any]) -> Ising:
    return Ising(Graph(int(pairs.max()) + 1, pairs), values(np.arange(len(pairs))))


def _circle(sites: int, degree: int) -> Any:
    """Bonds of a circle, to enough next neighbours for about this degree."""
    first = np.arange(sites)
    return np.concatenate([np.column_stack([first, (first + k + 1) % sites]) for k in range(-(-degree // 2))])


def _signs(bonds: Any) -> Any:
    return bonds % 2 * 2.0 - 1


MODELS: Final[dict[str, Callable[[], Ising]]] = {
    "graphs of degrees up to 255": lambda: _graph(_circle(64, 16), _signs),
    "lattices of +-1": lambda: EdwardsAnderson(cubic(4), samples=2),
    "lattices in a field": lambda: EdwardsAnderson(square(4), field=1.0),
    "lattices in three dimensions": lambda: EdwardsAnderson(cubic(8)),
    "large lattices": lambda: EdwardsAnderson(square(256, 2)),
    "dense models": lambda: _graph(np.column_stack(np.triu_indices(130, 1)), lambda bonds: bonds % 3 - 1.0),
    "graphs of +-1": lambda: _graph(_circle(64, 4), _signs),
    "Gaussian couplings": lambda: EdwardsAnderson(square(4), couplings="gaussian"),
    "real couplings": lambda: _graph(_circle(64, 4), lambda bonds: np.sqrt(bonds + 1.0)),
    "integer couplings": lambda: _graph(_circle(40, 3), lambda bonds: bonds % 7 - 3.0),
}
"""Models with different kernels, the slowest to compile first."""
OF_ONE: Final[dict[str, Callable[[], Ising]]] = {
    "one replica of a lattice": lambda: EdwardsAnderson(cubic(8)),
    "one replica of a lattice in a field": lambda: EdwardsAnderson(square(16), field=1.0),
    "one replica of a larger lattice": lambda: Ising(square(160)),
}
"""Models that have their own kernels for one replica."""


def _anneal(model: Callable[[], Ising], device: str) -> None:
    model_of_run = model()
    automatic_temperatures(model_of_run)
    spinsim.anneal(model_of_run, [3.0, 2.0], sweeps=2, replicas=4, device=device)


def _anneal_one(model: Callable[[], Ising], device: str) -> None:
    spinsim.anneal(model(), [3.0, 2.0], sweeps=2, replicas=1, device=device)


def _temper(model: Callable[[], Ising], device: str) -> None:
    automatic_temperatures(model())
    spinsim.temper(model(), [2.0, 3.0], sweeps=20, thermalize=10, device=device)
    spinsim.temper(model(), [2.0, 3.0], time_limit=0.01, device=device)


def _quantum(couplings: str, device: str) -> None:
    spinsim.quantum(
        EdwardsAnderson(square(4), couplings=couplings), k=[0.2, 0.3], slices=8, sweeps=20, thermalize=0, device=device
    )


def _evolve(dynamics: str, device: str) -> None:
    spinsim.evolve(EdwardsAnderson(square(4)), "T=1 for 2", replicas=4, dynamics=dynamics, device=device)


def _transfer(device: str) -> None:
    for layer in (chain(4), square(3), square(4)):  # small vectors are swept by rows, longer ones also by columns
        spinsim.transfer(EdwardsAnderson(layer), k=0.3, device=device)


def _multicanonical(device: str) -> None:
    spinsim.multicanonical(Ising(square(4)), 10, 10)


def _solve(model: Callable[[], Ising], device: str) -> None:
    spinsim.solve(model(), sweeps_limit=20, device=device)


def _temper_one(model: Callable[[], Ising], device: str) -> None:
    spinsim.temper(model(), [2.0], sweeps=20, thermalize=10, replicas=1, device=device)


RUNS: Final[dict[str, dict[str, Callable[[str], None]]]] = {
    "temper": {
        **{name: partial(_temper, model) for name, model in MODELS.items()},
        **{name: partial(_temper_one, model) for name, model in OF_ONE.items()},
    },
    "anneal": {
        **{name: partial(_anneal, model) for name, model in MODELS.items()},
        **{name: partial(_anneal_one, model) for name, model in OF_ONE.items()},
    },
    "quantum": {name: partial(_quantum, name) for name in ("pm-j", "gaussian")},
    "transfer": {"chains and squares": _transfer},
    "evolve": {name: partial(_evolve, name) for name in ("checkerboard", "typewriter")},
    "multicanonical": {"lattices": _multicanonical},
    "solve": {name: partial(_solve, MODELS[name]) for name in ("dense models", "graphs of +-1", "real couplings")},
}
"""Small runs that compile the kernels of common runs, by job and model."""
