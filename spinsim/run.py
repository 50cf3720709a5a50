"""Wiring: configuration -> model -> engine -> sampler -> file."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from pathlib import Path

import numpy as np
import numpy.typing as npt

import spinsim
from spinsim import store
from spinsim.acceptance import ZERO_ACCEPTANCE, check_temperatures
from spinsim.config import Config, ModelConfig, canonical_json, sha256
from spinsim.engine import Dynamics, Engine, Start, check_memory, create_engine, resolve_device
from spinsim.errors import InputError
from spinsim.memory import readable, require
from spinsim.model.disorder import RANDOM_KINDS, lattice_model
from spinsim.model.instances import read_instance
from spinsim.model.ising import Ising
from spinsim.model.lattice import Lattice
from spinsim.packing import Packing, rows_fill_groups
from spinsim.result import AnnealResult
from spinsim.rng import ROUNDS
from spinsim.sampling import Best, annealing, temperature_schedule

OnUpdates = Callable[[int], None]


@dataclass(frozen=True)
class AnnealPlan:
    """A run that is ready to begin.

    Attributes:
        config: With every default filled in.
        model: What is simulated.
        device: ``cpu`` or ``cuda``.
        path: The run's file.
        attributes: Root attributes of the file.
    """

    config: Config
    model: Ising
    device: str
    path: Path
    attributes: dict[str, str]

    @property
    def temperatures(self) -> npt.NDArray[np.float64]:
        """The schedule."""
        a = self.config.anneal
        assert a.t_start is not None and a.t_stop is not None  # noqa: S101, PT018  (filled in by plan_anneal)
        return temperature_schedule(a.t_start, a.t_stop, a.steps, a.schedule)

    @property
    def updates(self) -> int:
        """Attempted spin updates of the whole run."""
        a = self.config.anneal
        return self.model.sites * self.model.samples * self.config.run.replicas * a.steps * a.sweeps


def build_model(config: ModelConfig, replicas: int) -> Ising:
    """The model of a configuration, refused before it is built where it cannot fit in memory."""
    if config.instance is not None:
        return read_instance(config.instance)
    shape = config.shape()
    periodic = config.boundary == "periodic"
    packing = Packing.SITE if rows_fill_groups(shape, periodic) else Packing.REPLICA
    packing = Packing.UNPACKED if config.couplings == "gaussian" else packing
    one_coupling = config.couplings not in RANDOM_KINDS
    check_memory(prod(shape), len(shape) * prod(shape), config.samples, replicas, packing, one_coupling)
    return lattice_model(
        Lattice(shape, periodic),
        config.couplings,
        samples=config.samples,
        seed=config.disorder_seed,
        bond_fraction=config.bond_fraction,
        field=config.field,
    )


def plan_anneal(config: Config) -> AnnealPlan:
    """Build the model, fill in the temperatures and name the file.

    Raises:
        InputError: for anything that keeps the run from beginning.
    """
    steps = config.anneal.steps
    require(48 * steps, f"a schedule of {steps} temperatures", "choose fewer steps")
    device = resolve_device(config.run.device)
    model = build_model(config.model, config.run.replicas)
    config = config.with_temperatures(model.energy_scale)
    identity = config.sha256(model.content_sha256() if config.model.instance is not None else None)
    path = Path(config.run.out or f"runs/anneal-{model.name}-{identity[:8]}.h5")
    attributes = _provenance("anneal", config.json(), identity)
    return AnnealPlan(config, model, device, path, attributes)


def anneal_to_file(plan: AnnealPlan, on_updates: OnUpdates = lambda updates: None) -> bool:
    """Run a plan into its file; False where the file already holds the finished run.

    A file of the same configuration that was cut short is run through again: its rows come out the same.

    Raises:
        InputError: where the file belongs to another run or cannot be written.
    """
    begun = os.path.lexists(plan.path)
    if begun and _is_finished(plan):
        return False
    run, a = plan.config.run, plan.config.anneal
    dynamics = Dynamics(run.seed, a.start, a.zero_acceptance, run.rng_rounds)
    engine = create_engine(plan.model, run.replicas, dynamics, plan.device, run.threads)
    frames = annealing(engine, plan.temperatures, a.sweeps, on_updates)
    if not begun:
        _check_disk(plan)
        store.create(plan.path, plan.model, run.replicas, a.steps, plan.attributes | _engine_attributes(engine))
    with store.open_to_append(plan.path) as file:
        best = Best(engine)
        earlier = file.rows
        try:
            for frame in frames:
                best.update(engine, frame.measured)
                file.write(frame.step, frame.temperature, frame.measured)
                earlier -= 1
        finally:
            if earlier <= 0 and np.isfinite(best.energy).all():
                file.write_best(best.energy, best.spins)
        file.finish()
    return True


def anneal(
    model: Ising,
    temperatures: npt.ArrayLike,
    sweeps: int = 10,
    replicas: int = 128,
    seed: int = 1,
    start: Start = "random",
    zero_acceptance: float = ZERO_ACCEPTANCE,
    rng_rounds: int = ROUNDS,
    device: str = "auto",
    threads: int | None = None,
    on_updates: OnUpdates = lambda updates: None,
) -> AnnealResult:
    """Anneal replicas of a model through a list of temperatures.

    Args:
        model: What to anneal.
        temperatures: In order of use, in units of |J|, shape (steps,).
        sweeps: Sweeps at each temperature; a sweep attempts every spin once.
        replicas: Independent configurations of each sample.
        seed: 64-bit seed. Replica r of sample k depends on (seed, k, r) alone.
        start: Initial spins, ``random`` or ``up``.
        zero_acceptance: Acceptance probability of flips that cost nothing.
        rng_rounds: Philox rounds, 10 or 7.
        device: ``auto`` (a GPU where there is one), ``cpu`` or ``cuda``; it does not change the outcome.
        threads: CPU threads, by default all processors; no number changes the outcome.
        on_updates: Called now and then with the number of spin updates since the last call.

    Returns:
        Energies and magnetisations after each temperature, and the lowest states met.

    Raises:
        InputError: for bad temperatures, numbers out of range or a run that does not fit in memory.
    """
    ladder = check_temperatures(temperatures)
    dynamics = Dynamics(seed, start, zero_acceptance, rng_rounds)
    engine = create_engine(model, replicas, dynamics, device, threads)
    frames = annealing(engine, ladder, sweeps, on_updates)
    kept = 32 * len(ladder) * model.samples * int(replicas)  # energies and magnetisations, and again when stacked
    require(kept, f"a record of {len(ladder)} steps", "choose fewer steps, samples or replicas")
    physics = {
        "model": model.name,
        "model_sha256": model.content_sha256(),
        "temperatures": ladder.tolist(),
        "sweeps": int(sweeps),
        "replicas": int(replicas),
        "seed": dynamics.seed,
        "start": start,
        "zero_acceptance": float(zero_acceptance),
        "rng_rounds": int(rng_rounds),
    }
    text = canonical_json(physics)
    attributes = _provenance("anneal", text, sha256(text)) | _engine_attributes(engine)
    best = Best(engine)
    measured = []
    for frame in frames:
        best.update(engine, frame.measured)
        measured.append(frame.measured)
    return AnnealResult(
        model,
        ladder,
        np.stack([m.energy for m in measured]),
        np.stack([m.magnetization for m in measured]),
        best.energy,
        best.spins,
        attributes | {"finished": store.stamp()},
    )


def _provenance(job: str, config: str, identity: str) -> dict[str, str]:
    """Root attributes that say what ran."""
    return {
        "job": job,
        "config": config,
        "config_sha256": identity,
        "spinsim_version": spinsim.__version__,
        "command": " ".join([Path(sys.argv[0]).name, *sys.argv[1:]]),
    }


def _engine_attributes(engine: Engine) -> dict[str, str]:
    """Root attributes that say how it ran; the packing follows from the configuration."""
    kind = "cpu" if engine.device_name == "cpu" else "cuda"
    return {"engine": f"{kind}, {engine.packing}", "devices": engine.device_name}


def _is_finished(plan: AnnealPlan) -> bool:
    """Whether the plan's file is complete.

    Raises:
        InputError: where it is another run's.
    """
    try:
        attributes = store.read_attributes(plan.path)
    except InputError as error:
        if isinstance(error.__cause__, BlockingIOError):
            raise
        reason = str(error).rpartition(": ")[0]
        raise InputError(f"{reason} and is never overwritten: choose another --out") from error
    if attributes["config_sha256"] != plan.attributes["config_sha256"]:
        raise InputError(f"{plan.path} holds another run and is never overwritten: choose another --out or remove it")
    return "finished" in attributes


def _check_disk(plan: AnnealPlan) -> None:
    """Refuse a run whose file would not fit on its disk."""
    folder = plan.path.absolute().parent
    while not folder.exists():
        folder = folder.parent
    model, steps, replicas = plan.model, plan.config.anneal.steps, plan.config.run.replicas
    rows = 16 * steps * (1 + model.samples * replicas)
    stored = 16 * model.bonds * model.samples + (8 * replicas + 9 * model.sites) * model.samples
    needed = rows + stored + 2**17
    room = shutil.disk_usage(folder).free
    if needed > room:
        raise InputError(
            f"{plan.path} needs {readable(needed)} but {readable(room)} are free on its disk: "
            "use fewer steps, samples or replicas, or another --out"
        )
