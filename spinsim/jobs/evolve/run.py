"""Runs out of equilibrium: ``ss.evolve``, their plan and the run under way."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, cast

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike

from spinsim.acceptance import check_temperatures, inverse
from spinsim.engine import Engine, create_engine
from spinsim.engine.choosing import check_run
from spinsim.engine.moves.single_spin import in_order
from spinsim.engine.split.slabs import slabs_in_words
from spinsim.inputs.arguments import judges, public
from spinsim.jobs.calls import run_of_call
from spinsim.jobs.evolve.result import EvolveResult, contents_of
from spinsim.jobs.evolve.settings import Evolve
from spinsim.machine.memory import require
from spinsim.model.ising import Ising
from spinsim.observables.batch import Batch, has_grid, module_of, spins_of
from spinsim.observables.distances import overlap_correlation
from spinsim.packing import Bits, spins_up
from spinsim.record import Record
from spinsim.run.execute import FileRow, ReplicaRun, Run
from spinsim.run.own_observables import REPLICAS, Measure, OwnObservables, functions_of
from spinsim.run.plan import Plan, Saving, Watch, build_model, dynamics_of
from spinsim.run.recording import Recording
from spinsim.sampling import InField
from spinsim.sampling.evolving import Leg, evolving
from spinsim.sampling.measure import measure, present_bits, present_spins
from spinsim.store.contents import Arrays

_GROUPS: Final = 16  # most groups of replicas of a single sample, whose overlaps are averaged each for itself


class EvolvePlan(Plan[Evolve]):
    """A run out of equilibrium that is ready to begin."""

    rows_in_words = "measurements", "choose fewer times, waiting times, samples or replicas"

    @classmethod
    def model_of(cls, config: Evolve, device: str) -> Ising:
        return build_model(config.model, config.run.number_of_replicas)

    @property
    def rows(self) -> int:
        return len(self.config.evolve.schedule.measured)

    @property
    def split(self) -> str:
        return slabs_in_words(self.model, self.replicas or 1, self.device) or super().split

    def run(self, saving: Saving, watch: Watch, stored: Record | None) -> Run:
        return EvolveRun(self, saving, watch)

    def updates(self, replicas: int) -> int:
        return self.model.sites * self.model.samples * replicas * self.config.evolve.schedule.legs[-1].stop


class EvolveRun(ReplicaRun):
    """A run out of equilibrium under way."""

    def __init__(self, plan: EvolvePlan, saving: Saving, watch: Watch) -> None:
        e, model, replicas = plan.config.evolve, plan.model, plan.config.run.number_of_replicas
        (self._legs, self._waiting, _), self._times = e.schedule, e.schedule.measured.tolist()
        check_temperatures([leg.temperature for leg in self._legs], model.energy_scale, zero=True)
        super().__init__(plan, saving, watch, _engine_of(plan))
        check_run(model, replicas, self._times[-1], self.engine.colours)
        if field := max((leg.field for leg in self._legs), key=abs):
            cast("InField", self.engine).check(field)
        self._groups = min(_GROUPS if model.samples == 1 else 1, replicas // 2) * has_grid(model)
        self._sides = np.array(model.embedding.shape if model.embedding is not None else [0])
        kept = len(self._waiting), model.samples, replicas, -(-model.sites // 8)
        require(np.prod(kept, dtype=np.float64), "the configurations at all waiting times")
        self._reference: Bits = np.zeros(kept, np.uint8)
        lengths = {"sample": model.samples, "replica": replicas, "waiting": len(self._waiting), "group": self._groups}
        contents = contents_of(lengths | {"distance": max(self._sides) // 2 + 1}, model.is_bipartite, self._waiting)
        own = functions_of(e.measure, plan.measure)
        self._own = OwnObservables(own, cast("Engine", self.engine), REPLICAS, seed=plan.config.run.seed)
        self.set_contents(self._own.in_contents(contents))

    def rows(self, recording: Recording) -> Iterator[FileRow | None]:
        self.begin(may_go_on=False)
        left = self._times[recording.rows :]
        for leg in evolving(self.engine, self._legs, left, self.watch.on_updates, self.saving.due):
            yield None if leg is None else self._row(recording.rows, leg)

    def _row(self, step: int, leg: Leg) -> FileRow:
        measured, spins, model = measure(self.engine), present_spins(self.engine), self.engine.model
        self.keep_lowest(measured, leg.field)
        bits_now = present_bits(self.engine)
        bits = np.stack([bits_now(k) for k in range(model.samples)])
        self._reference[self._waiting == self._times[step]] = bits
        row: dict[str, Any] = {"step": step, "sweep": self._times[step], **leg._asdict(), **measured._asdict()}
        row["correlation"] = self._correlation(bits, self._times[step])
        row |= {"overlap_correlation": self._overlap_correlation(bits)} if self._groups else {}
        beta = float(inverse(leg.temperature, model.quantum))
        return self.with_spins(row | self._own.row(spins, step, beta=beta, model=model), spins)

    def _correlation(self, bits: Bits, now: int) -> npt.NDArray[np.float64]:
        """Return C(t, t_w) of each replica, (samples, replicas, waiting times)."""
        found = np.full((*bits.shape[:2], len(self._waiting)), np.nan)
        for k in np.flatnonzero(self._waiting <= now):
            found[..., k] = 1 - 2 * spins_up(bits ^ self._reference[k]) / self.engine.model.sites
        return found

    def _overlap_correlation(self, bits: Bits) -> npt.NDArray[np.float64]:
        """Return C4(r) of each group of replicas, averaged over its pairs and the longest axes."""
        model, xp, side, found = self.engine.model, module_of(self.engine.device_name), max(self._sides), []
        is_open = model.embedding is not None and not model.embedding.periodic
        pairs = xp.asarray(model.sites // side * (side - np.arange(side // 2 + 1) * is_open))  # of sites, (distances,)
        each, longest = self.engine.replicas // self._groups, np.flatnonzero(self._sides == side).tolist()
        for of_sample in bits[:, : each * self._groups].reshape(-1, self._groups, each, bits.shape[-1]):
            spins = spins_of(of_sample, model.sites, xp)
            c4 = overlap_correlation(Batch(spins, (*REPLICAS, "site"), model, xp))[:, :, longest]
            sums = xp.rint(c4 * pairs).sum(axis=(1, 2))  # whole numbers, which have the same bits on every device
            found.append(sums / (pairs * (each * c4.shape[2])))
        return np.asarray(xp.stack(found) if xp is np else xp.stack(found).get())

    def state(self) -> dict[str, npt.NDArray[Any]]:
        return super().state() | {"reference_bits": self._reference.copy()}

    def set_state(self, saved: Arrays) -> None:
        super().set_state(saved)
        self._reference[...] = saved["reference_bits"]


def _engine_of(plan: EvolvePlan) -> Any:
    """Return the replicas of a plan in their initial state."""
    run, e = plan.config.run, plan.config.evolve
    dynamics = dynamics_of(plan, e.start, e.zero_acceptance)
    make = partial(create_engine, replicas=run.number_of_replicas, device=plan.device, threads=run.threads)
    engine = make(plan.model, dynamics=dynamics, start=plan.start)
    in_field = InField(engine, partial(make, dynamics=replace(dynamics, start="up")))
    return in_order(in_field, e.dynamics, dynamics, run.threads)


@public
@judges("model", "seed", none=True)
def evolve(
    model: Ising,
    protocol: str | Sequence[str] = "T=1.5 for 1000",
    waiting: ArrayLike | str | None = None,
    times: ArrayLike | str | None = None,
    replicas: int = 128,
    seed: int | None = 1,
    start: str | ArrayLike = "random",
    dynamics: str = "checkerboard",
    zero_acceptance: float = 1 - 2**-6,
    rng_rounds: int = 10,
    device: str = "auto",
    threads: int | None = None,
    on_updates: Callable[[int], None] | None = None,
    out: str | os.PathLike[str] | None = None,
    checkpoint_every: float = 60.0,
    progress: bool = False,
    measure: str | Mapping[str, Measure] | None = None,
    *,
    gpus: str | None = None,
    save_configurations: int = 0,
) -> EvolveResult:
    """Take replicas of a model through a protocol out of equilibrium, and compare them in time.

    Args:
        model: Model to simulate.
        protocol: Stages such as ``T=0.7 for 1000; T=0.5 h=0.1 for 100``, or a list of stages: a
            temperature, a field added to the model's own (by default as before, at first 0) and
            sweeps. ``T=2:0.5`` changes evenly, in at most 1000 steps. At T = 0 no flip may cost
            energy.
        waiting: Waiting times in sweeps, after which configurations are kept, with which later ones
            of the same replica are compared; numbers or text such as ``1:1024:11g``.
        times: Sweeps of measurements after the beginning of each stage and each waiting time; by
            default eight per decade, even numbers.
        replicas: Replicas of each sample (a whole number from 1 to 2^21).
        seed: Seed of the dynamics, 64 bits (a whole number from 0 to 2^64 - 1); None draws a fresh
            one.
        start: Initial spins: ``random`` (a quench), ``up``, or configurations of +1 and -1, shape
            (sites,), (samples, sites) or (samples, replicas, sites).
        dynamics: Order and acceptance of flips: ``checkerboard``, ``typewriter`` (site by site),
            ``random-sequential``, ``heat-bath`` (in random order), ``typewriter-heat-bath`` or
            ``checkerboard-heat-bath``.
        zero_acceptance: Acceptance of flips that cost no energy (a number above 0 and at most 1),
            by default 1 - 2^-6.
        rng_rounds: Philox rounds, 10 or 7.
        device: ``auto`` (a GPU if there is one), ``cpu``, ``cuda`` or ``gpu`` (the same as cuda).
        threads: CPU threads (a whole number from 1 to 4096), all by default. The result does not
            depend on their number.
        on_updates: Called at intervals with the number of spin updates since its last call.
        out: File for the run and its checkpoints; the same call, or ``resume``, completes an
            interrupted run. Without a file the run is kept in memory.
        checkpoint_every: Seconds between checkpoints, at least 0.
        progress: Show a progress bar on the terminal or in the notebook; elsewhere say when kernels
            are compiled.
        measure: User-defined observables, functions by name, as in ``ss.anneal``.
        gpus: GPUs that share the work: ``all``, a count, or a list of numbers such as ``0,2``; by
            default one for each process.
        save_configurations: Measurements between configurations that are saved (up to 10^12), one
            bit per spin; 0 saves none.

    Returns:
        Energies, magnetisations, C(t, t_w) and C4(r) at each measurement.

    Raises:
        InputError: for a protocol that cannot be read or done, numbers out of range, too little
            memory, and if the file holds another run.
        KeyboardInterrupt: on Ctrl-C; a run with ``out`` is saved first.
    """
    given = dict(locals())
    if not isinstance(protocol, str):
        given["protocol"] = "; ".join(protocol)
    result: EvolveResult = run_of_call(Evolve, model, given)
    return result
