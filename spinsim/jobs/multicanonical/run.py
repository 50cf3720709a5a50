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
from spinsim.jobs.multicanonical.settings import ALL, Multicanonical
from spinsim.model.ising import Ising
from spinsim.record import Array, Record
from spinsim.result import Result
from spinsim.run.execute import FileRow, Run
from spinsim.run.identity import check_stored_state
from spinsim.run.plan import Plan, Saving, Watch, build_model
from spinsim.run.recording import Recording
from spinsim.sampling.multicanonical import Walkers
from spinsim.sampling.portions import OnUpdates
from spinsim.store.contents import ENERGY, MEASUREMENTS, STEP, Arrays, Series, group_of

HISTOGRAM: Final = "histogram"  # group of the visits
_AT_ONCE: Final = 2**23  # attempted flips of the Wang-Landau stage between two looks at the clock


@public
@dataclass(frozen=True, repr=False)
class MulticanonicalResult(Result):
    """Visits of walkers to the energies of a model, with fixed weights, and the density of states that follows.

    Attributes:
        model: The model.
        sweep: Sweep of each recorded energy, counted from the end of the Wang-Landau stage, ``int64`` (rows,).
        energy: Total energies of the walkers, ``float64`` (rows, samples, replicas), in the coupling unit.
        level_energy: Energy of each level of the histogram, ``float64`` (samples, levels).
        log_weight: ln of the weight of a state of this energy, (samples, levels); minus ln g of the first stage.
        visits: Attempted flips that ended at each level, ``int64`` (samples, replicas, levels).
        round_trips: Trips of each walker from energy 0 to the lowest known energy and back, (samples, replicas).
        record: The whole run as named arrays, as stored in its file.
        job: Name of the job, the command that makes such runs.
    """

    job = "multicanonical"

    model: Ising
    sweep: npt.NDArray[np.int64]
    energy: npt.NDArray[np.float64]
    level_energy: npt.NDArray[np.float64]
    log_weight: npt.NDArray[np.float64]
    visits: npt.NDArray[np.int64]
    round_trips: npt.NDArray[np.int64]
    record: Record = field(default_factory=Record)

    @cached_property
    def density(self) -> DensityOfStates:
        """The density of states, with errors from the scatter of the walkers.

        Raises:
            InputError: for a run that is still in its Wang-Landau stage.
        """
        if not len(self.sweep):
            raise InputError(
                f"the run of {self.model.name} is still in its Wang-Landau stage, which gives no density: complete it"
            )
        counts, total = self.visits.swapaxes(0, 1), self.visits.sum(axis=1)  # (replicas, samples, levels)
        with np.errstate(divide="ignore"):
            return from_counts(
                self.model, self.level_energy, np.log(total) - self.log_weight, np.log(total - counts) - self.log_weight
            )

    @property
    def _run_facts(self) -> dict[str, str]:
        return {
            "replicas": count(self.visits.shape[1], "walker"),
            "rows": count(len(self.sweep), "row"),
            "trips": f"{count(int(self.round_trips.sum()), 'round trip')} in energy",
        }


def read(record: Record, model: Ising) -> MulticanonicalResult:
    series, histogram = record.group(MEASUREMENTS), record.group(HISTOGRAM)
    names = ("level_energy", "log_weight", "visits", "round_trips")
    return MulticanonicalResult(
        model, *(np.asarray(series[name]) for name in ("sweep", "energy")), *(histogram[name] for name in names), record
    )


def _contents(walkers: Walkers) -> Record:
    """Return the record of a run without rows."""
    samples, replicas, levels = walkers.visits.shape
    lengths = {"sample": samples, "replica": replicas, "level": levels}
    each = "sample", "replica"
    rows = [
        Series("sweep", (STEP,), np.int64, "sweep, counted from the end of the Wang-Landau stage"),
        Series("energy", (STEP, *each), np.float64, "total energy", ENERGY),
    ]
    sums = [
        Series("log_weight", ("sample", "level"), np.float64, "ln of the weight of a state"),
        Series("visits", (*each, "level"), np.int64, "attempted flips that ended at the level"),
        Series("round_trips", each, np.int64, "trips from energy 0 to the lowest known energy and back"),
    ]
    known = {"level_energy": Array(walkers.energies, ("sample", "level"), "total energy of a level", ENERGY)}
    return Record({}, {}, {MEASUREMENTS: group_of(rows, lengths), HISTOGRAM: group_of(sums, lengths, known)})


class MulticanonicalPlan(Plan[Multicanonical]):
    """A multicanonical run that is ready to begin."""

    @classmethod
    def model_of(cls, config: Multicanonical, device: str) -> Ising:
        return build_model(config.model, config.run.number_of_replicas)

    @property
    def rows(self) -> int:
        m = self.config.multicanonical
        return m.sweeps // m.measure_every

    @property
    def split(self) -> str:
        return ""

    def updates(self, replicas: int) -> int:
        m = self.config.multicanonical
        return self.model.sites * self.model.samples * replicas * (m.wang_landau + m.sweeps)

    def run(self, saving: Saving, watch: Watch, stored: Record | None) -> Run:
        return MulticanonicalRun(self, saving, watch)


class MulticanonicalRun(Run):
    """The walkers of a run under way."""

    def __init__(self, plan: MulticanonicalPlan, saving: Saving, watch: Watch) -> None:
        self._plan, self._saving, self._watch, self.planned = plan, saving, watch, plan.rows
        m, run = plan.config.multicanonical, plan.config.run
        how = run.seed, run.rng_rounds, m.energies == ALL, m.wang_landau + m.sweeps, run.threads
        self._walkers = Walkers(plan.model, run.number_of_replicas, *how)
        self.contents, self.where = _contents(self._walkers), {"engine": "cpu, walkers", "devices": "cpu"}

    def rows(self, recording: Recording) -> Iterator[FileRow | None]:
        walkers, m = self._walkers, self._plan.config.multicanonical
        attempts = walkers.spins.size  # of a sweep
        self._watch.on_stage("", self._plan.updates(walkers.replicas), walkers.sweep * attempts)
        while walkers.sweep < m.wang_landau:
            sweeps = min(max(1, _AT_ONCE // attempts), m.wang_landau - walkers.sweep)
            walkers.advance(sweeps, learns=True)
            self._watch.on_updates(sweeps * attempts)
            if walkers.sweep == m.wang_landau:
                walkers.fix_weights()
            if self._saving.due():
                yield None
        for step in range((walkers.sweep - m.wang_landau) // m.measure_every, self.planned):
            walkers.advance(m.measure_every, learns=False)
            self._watch.on_updates(m.measure_every * attempts)
            yield {"step": step, "sweep": walkers.sweep - m.wang_landau, "energy": walkers.energy}
            if self._saving.due():
                yield None

    def state(self) -> Arrays:
        state = self._walkers.state()
        named = {"visits": state.pop("visits"), "round_trips": state.pop("round_trips")}
        named["log_weight"] = -state["density"][:, 0]
        return state | {f"{HISTOGRAM}/{name}": array for name, array in named.items()}

    def ended(self) -> tuple[Arrays, Arrays]:
        return self.state(), self.state()

    def restore(self, saved: Arrays) -> None:
        check_stored_state(self._plan.path, saved, self.state())
        self._walkers.restore({name.rpartition("/")[2]: array for name, array in saved.items()})


@public
def multicanonical(
    model: Ising,
    sweeps: int = 20_000,
    wang_landau: int = 20_000,
    replicas: int = 16,
    measure_every: int = 10,
    energies: str = "negative",
    seed: int | None = 1,
    device: str = "auto",
    threads: int | None = None,
    rng_rounds: int = 10,
    on_updates: OnUpdates | None = None,
    out: str | os.PathLike[str] | None = None,
    checkpoint_every: float = 60.0,
    progress: bool = False,
) -> MulticanonicalResult:
    """Visit all energies of a model evenly, with a Wang-Landau stage and production with fixed weights.

    F. Wang, D. P. Landau, Phys. Rev. Lett. 86, 2050 (2001), with the end of R. E. Belardinelli, V. D.
    Pereyra, Phys. Rev. E 75, 046701 (2007); B. A. Berg, T. Neuhaus, Phys. Rev. Lett. 68, 9 (1992).

    Args:
        model: Model whose couplings and fields are small multiples of one number, such as +1 and -1.
        sweeps: Sweeps of each walker with fixed weights (a whole number from 1 to 10^12).
        wang_landau: Sweeps of the first stage, which finds the weights of each sample.
        replicas: Walkers of each sample, at least 2; errors come from their scatter.
        measure_every: Sweeps between two recorded energies. The histogram counts every attempted flip.
        energies: ``negative``: energies below 0 are visited evenly, and all states above get the same
            weight; they matter at positive temperatures. Or ``all``.
        seed: Seed of the walkers, 64 bits (a whole number from 0 to 2^64 - 1); None draws a fresh one.
        device: ``auto`` or ``cpu``: there is no GPU code for this job.
        threads: CPU threads (a whole number from 1 to 4096), all by default; no bit depends on it.
        rng_rounds: Philox rounds, 10 or 7.
        on_updates: Called at intervals with the number of attempted flips since the last call.
        out: File for the run and its checkpoints; the same call, or ``resume``, completes an
            interrupted run. Without a file the run is kept in memory.
        checkpoint_every: Seconds between checkpoints, at least 0.
        progress: Show a progress bar on the terminal or in the notebook; elsewhere say when kernels
            are compiled.

    Returns:
        Histograms and weights, and the density of states: ``result.density``.

    Raises:
        InputError: for energies of more than 2^20 levels, such as with Gaussian couplings, for a GPU as
            device, and if the file holds another run.
        KeyboardInterrupt: on Ctrl-C; a run with ``out`` is saved first.
    """
    result: MulticanonicalResult = run_of_call(Multicanonical, model, dict(locals()))
    return result
