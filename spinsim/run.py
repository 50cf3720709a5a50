"""Wiring: configuration -> model -> engine -> sampler -> file."""

from __future__ import annotations

import hashlib
import json
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
from spinsim.config import Config, ModelConfig
from spinsim.engine import Dynamics, Engine, Start, check_memory, create_engine
from spinsim.errors import InputError
from spinsim.memory import readable
from spinsim.model.disorder import lattice_model
from spinsim.model.instances import read_instance
from spinsim.model.ising import Ising
from spinsim.model.lattice import Lattice
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
        path: The run's file.
        attributes: Root attributes of the file.
    """

    config: Config
    model: Ising
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
    check_memory(prod(shape), len(shape) * prod(shape), config.samples, replicas)
    return lattice_model(
        Lattice(shape, config.boundary == "periodic"),
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
    model = build_model(config.model, config.run.replicas)
    config = config.with_temperatures(model.energy_scale)
    instance = config.model.instance
    digest = None if instance is None else hashlib.sha256(Path(instance).read_bytes()).hexdigest()
    identity = config.sha256(digest)
    path = Path(config.run.out or f"runs/anneal-{model.name}-{identity[:8]}.h5")
    attributes = _provenance("anneal", config.json(), identity)
    return AnnealPlan(config, model, path, attributes)


def anneal_to_file(plan: AnnealPlan, on_updates: OnUpdates = lambda updates: None) -> bool:
    """Run a plan into its file; False where the file already holds the finished run.

    A file of the same configuration that was cut short is run through again: its rows come out the same.

    Raises:
        InputError: where the file belongs to another run or cannot be written.
    """
    if plan.path.exists():
        if not _same_run(plan):
            return False
    run, a = plan.config.run, plan.config.anneal
    dynamics = Dynamics(run.seed, _start(a.start), a.zero_acceptance, run.rng_rounds)
    engine = create_engine(plan.model, run.replicas, dynamics, run.device, run.threads)
    if not plan.path.exists():
        _check_disk(plan)
        attributes = plan.attributes | {"engine": f"cpu, {engine.packing}"}
        store.create(plan.path, plan.model, run.replicas, attributes)
    with store.open_to_append(plan.path) as file:
        best = Best(engine)
        try:
            for frame in annealing(engine, plan.temperatures, a.sweeps, on_updates):
                best.update(engine, frame.measured)
                file.write(frame.step, frame.temperature, frame.measured)
        finally:
            file.write_best(best.energy, best.spins)
        file.finish()
    return True
