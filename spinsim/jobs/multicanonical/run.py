"""Multicanonical runs: ``ss.multicanonical``, its result, and the run of its walkers."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt

from spinsim.analysis.density import DensityOfStates, from_counts
from spinsim.errors import InputError
from spinsim.inputs.arguments import public
from spinsim.inputs.texts import count
from spinsim.jobs.calls import run_of_call
from spinsim.jobs.multicanonical.settings import Multicanonical
from spinsim.model.ising import Ising
from spinsim.record import Array, Record
from spinsim.result import Result
from spinsim.run.execute import FileRow, Run
from spinsim.run.identity import check_stored_state
from spinsim.run.plan import Plan, Saving, Watch
from spinsim.run.recording import Recording
from spinsim.sampling.multicanonical import STATE, Walkers
from spinsim.sampling.portions import OnUpdates
from spinsim.store.contents import ENERGY, MEASUREMENTS, STEP, Arrays, Series, bytes_of_sums, group_of, room_of

HISTOGRAM: Final = "histogram"  # group of the visits
_PATHS: Final = {name: f"{HISTOGRAM}/{name}" for name in ("visits", "round_trips")}


@public
@dataclass(frozen=True, repr=False)
class MulticanonicalResult(Result):
    """Visits of walkers to the energies of a model, with fixed weights.

    Attributes:
        model: The model.
        record: The whole run as named arrays, as stored in its file: ``measurements`` and ``histogram``.
        job: Name of the job, the command that makes such runs.
    """

    job = "multicanonical"

    model: Ising
    record: Record = field(default_factory=Record)

    @property
    def round_trips(self) -> npt.NDArray[np.int64]:
        """Trips of each walker from energy 0 to the lowest known one and back, (samples, replicas)."""
        return np.asarray(self.record[f"{HISTOGRAM}/round_trips"])

    @cached_property
    def density(self) -> DensityOfStates:
        """The density of states, with errors from the walkers; InputError in the Wang-Landau stage."""
        if not len(self.record[f"{MEASUREMENTS}/sweep"]):
            raise InputError(f"the run of {self.model.name} is still in its Wang-Landau stage: complete it")
        histogram = self.record.groups[HISTOGRAM]
        visits = np.insert(-histogram["visits"], 0, 0, axis=1)  # of all walkers, and without each in turn
        with np.errstate(divide="ignore"):
            logs = np.log(visits - visits.sum(axis=1, keepdims=True)) - histogram["log_weight"][:, None]
        return from_counts(self.model, list(zip(histogram["level_energy"], logs, strict=True)))

    @property
    def _run_facts(self) -> dict[str, str]:
        return {"trips": f"{count(int(self.round_trips.sum()), 'round trip')} in energy"}


_ROWS: Final = [
    Series("sweep", (STEP,), np.int64, "sweep, from the end of the Wang-Landau stage"),
    Series("energy", (STEP, "sample", "replica"), np.float64, "total energy", ENERGY),
]
_SUMS: Final = [
    Series("log_weight", ("sample", "level"), np.float64, "ln of the weight of a state"),
    Series("visits", ("sample", "replica", "level"), np.int64, "attempted flips that ended at the level"),
    Series("round_trips", ("sample", "replica"), np.int64, "trips from energy 0 to the lowest known one and back"),
]


def read(record: Record, model: Ising) -> MulticanonicalResult:
    return MulticanonicalResult(model, record)


class MulticanonicalPlan(Plan[Multicanonical]):
    """A multicanonical run that is ready to begin."""

    split = ""  # one process does all work

    @property
    def rows(self) -> int:
        return int(self.of_job.sweeps // self.of_job.measure_every)

    def updates(self, replicas: int) -> int:
        return int(self.model.sites * self.model.samples * replicas * (self.of_job.wang_landau + self.of_job.sweeps))

    def run(self, saving: Saving, watch: Watch, stored: Record | None) -> Run:
        return MulticanonicalRun(self, saving, watch)


class MulticanonicalRun(Run):
    """The walkers of a run under way."""

    def __init__(self, plan: MulticanonicalPlan, saving: Saving, watch: Watch) -> None:
        self._plan, self._saving, self._watch, self.planned = plan, saving, watch, plan.rows
        sweeps, run = plan.of_job.wang_landau + plan.of_job.sweeps, plan.config.run
        self._walkers = walkers = Walkers(plan.model, run.number_of_replicas, run.seed, sweeps, run.threads)
        self.where = {"engine": "cpu, walkers", "devices": "cpu"}
        lengths = dict(zip(("sample", "replica", "level"), walkers.visits.shape, strict=True))
        known = {"level_energy": Array(walkers.energies, ("sample", "level"), "total energy of a level", ENERGY)}
        groups = {MEASUREMENTS: group_of(_ROWS, lengths), HISTOGRAM: group_of(_SUMS, lengths, known)}
        self.contents = Record({}, {}, groups)

    def rows(self, recording: Recording) -> Iterator[FileRow | None]:
        walkers, m = self._walkers, self._plan.of_job
        attempts = walkers.spins.size  # of a sweep
        if self._watch.on_size is not None:
            self._watch.on_size(room_of(self.contents, self.planned) + 3 * bytes_of_sums(self.contents), "")
        self._watch.on_stage("", self._plan.updates(walkers.visits.shape[1]), int(walkers.sweep) * attempts)
        for sweep in range(int(walkers.sweep) - m.wang_landau, m.sweeps, m.measure_every):  # below 0 while learning
            walkers.advance(m.measure_every, learns=sweep < 0)
            self._watch.on_updates(m.measure_every * attempts)
            done = sweep + m.measure_every
            if sweep >= 0:
                yield {"step": sweep // m.measure_every, "sweep": done, "energy": walkers.energy}
            elif done == 0:
                walkers.fix_weights()
            if self._saving.due():
                yield None

    def state(self) -> Arrays:
        state = {_PATHS.get(name, name): getattr(self._walkers, name).copy() for name in STATE}
        return state | {f"{HISTOGRAM}/log_weight": -state["density"][:, 0]}

    def ended(self) -> tuple[Arrays, Arrays]:
        return self.state(), self.state()

    def restore(self, saved: Arrays) -> None:
        check_stored_state(self._plan.path, saved, self.state())
        for name in STATE:
            getattr(self._walkers, name)[...] = saved[_PATHS.get(name, name)]


@public
def multicanonical(
    model: Ising,
    sweeps: int = 20_000,
    wang_landau: int = 20_000,
    replicas: int = 16,
    measure_every: int = 10,
    seed: int | None = 1,
    device: str = "auto",
    threads: int | None = None,
    on_updates: OnUpdates | None = None,
    out: str | os.PathLike[str] | None = None,
    checkpoint_every: float = 60.0,
    progress: bool = False,
) -> MulticanonicalResult:
    """Visit all energies evenly, by Wang-Landau sampling and then with fixed weights.

    Energies below 0, of positive temperatures, are visited evenly; higher ones get one weight.
    F. Wang, D. P. Landau, Phys. Rev. Lett. 86, 2050 (2001); B. A. Berg, T. Neuhaus, ibid. 68, 9
    (1992).

    Args:
        model: Model whose couplings and fields are small multiples of one number, such as +-1.
        sweeps: Sweeps of each walker with fixed weights (a whole number from 1 to 10^12).
        wang_landau: Sweeps of the first stage, which finds the weights (from 1 to 10^12).
        replicas: Walkers of each sample, from whose scatter errors come (from 2 to 2^21).
        measure_every: Sweeps between two recorded energies (from 1 to 10^9).
        seed: Seed of the walkers, 64 bits (from 0 to 2^64 - 1); None draws a fresh one.
        device: ``auto`` or ``cpu``; ``cuda`` and ``gpu`` are refused: there is no GPU code.
        threads: CPU threads (from 1 to 4096), all by default; no bit depends on it.
        on_updates: Called at intervals with the number of attempted flips since the last call.
        out: File for the run and its checkpoints, from which the same call or ``resume`` continues.
        checkpoint_every: Seconds between checkpoints, at least 0.
        progress: Show a progress bar on the terminal or in the notebook.

    Returns:
        Histograms and weights; ``density`` is the density of states.

    Raises:
        InputError: for energies of more than 2^20 levels, a GPU, and a file of another run.
        KeyboardInterrupt: on Ctrl-C; a run with ``out`` is saved first.
    """
    result: MulticanonicalResult = run_of_call(Multicanonical, model, dict(locals()))
    return result
