"""Replicas of a model for custom loops: set a temperature, sweep, measure; nothing is scheduled or written.

Runs of the jobs have schedules, files and errors. A ``Simulation`` is for other protocols, such as aging
(examples/aging.py). Its dynamics are those of the jobs: the same seed gives the same bits, on CPU and GPU.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, Final, cast

import numpy as np
import numpy.typing as npt

from spinsim.acceptance import check_temperatures, inverse
from spinsim.engine import Dynamics, create_engine, resolve_device
from spinsim.engine.dynamics import STARTS
from spinsim.engine.given import as_spins, set_spins
from spinsim.engine.moves.move import Moment, Move
from spinsim.engine.moves.single_spin import CHECKERBOARD, in_order
from spinsim.engine.protocols import Engine
from spinsim.errors import InputError, MissingError, warn_caller
from spinsim.inputs.arguments import as_stated, judges, public
from spinsim.inputs.texts import Described, alike, count
from spinsim.machine.memory import require
from spinsim.model.ising import Ising, check_model
from spinsim.model.quadratic import finite
from spinsim.observables.batch import Batch, module_of
from spinsim.sampling.measure import InField, Measurement, measure, present_configurations
from spinsim.sampling.portions import Portions

_SETTABLE: Final = ("temperature", "field")


@public
@judges("model")
class Simulation(Described):
    """Replicas of every sample of a model at one temperature, or each at its own.

    Args:
        model: Model that is simulated.
        temperature: In the unit of the couplings: one number, or one for each replica, (replicas,).
            At 0 no flip may cost energy.
        replicas: Independent configurations of each sample.
        seed: Seed of the dynamics, 64 bits; None draws a fresh one.
        start: Initial spins: ``random``, ``up``, or configurations of +1 and -1, shape (sites,),
            (samples, sites) or (samples, replicas, sites).
        device: ``auto`` (a GPU if there is one), ``cpu`` or ``cuda``.
        gpus: GPUs that share the work: all, how many, or a list of numbers such as 0,2.
        threads: CPU threads, None for all. The result does not depend on their number.
        zero_acceptance: Acceptance of flips that cost nothing.
        rng_rounds: Philox rounds, 10 or 7.
        dynamics: Order and acceptance of flips, by a name as in ``ss.evolve``. Dynamics other than
            ``checkerboard`` take one temperature for all replicas.

    Attributes:
        model: Model that is simulated, in the present field.
        replicas: Configurations of each sample.
        seed: The seed that is used, also if it was drawn.
        sweeps: Sweeps done: attempted updates of each spin.

    Raises:
        InputError: for bad temperatures, a start that does not fit, too little memory, and for
            setting an attribute other than ``temperature`` or ``field``.

    Examples:
        >>> model = ss.Ising(ss.square(16))
        >>> quench = ss.Simulation(model, temperature=1.5, replicas=4, seed=3, device="cpu")
        >>> quench.sweep(100)
        >>> quench.energy.shape  # (samples, replicas)
        (1, 4)
    """

    model: Ising
    replicas: int
    seed: int
    sweeps: int

    def __init__(
        self,
        model: Ising,
        temperature: npt.ArrayLike,
        replicas: int = 128,
        *,
        seed: int | None = Dynamics.seed,
        start: str | npt.ArrayLike = "random",
        device: str = "auto",
        gpus: str | None = None,
        threads: int | None = None,
        zero_acceptance: float = Dynamics.zero_acceptance,
        rng_rounds: int = Dynamics.rng_rounds,
        dynamics: str = CHECKERBOARD,
    ) -> None:
        named: Any = start if isinstance(start, str) else "up"
        if isinstance(start, str) and start not in STARTS:
            raise InputError(f"start {start!r} is unknown: choose random, up, or give an array of +1, -1")
        rules = Dynamics(seed, named, zero_acceptance, rng_rounds)
        self._given, given = check_model(model), None if isinstance(start, str) else start
        make = partial(create_engine, replicas=replicas, device=resolve_device(device, gpus), threads=threads)
        if model.caution:
            warn_caller(model.caution)
        engine = InField(make(model, dynamics=rules, start=given), partial(make, dynamics=replace(rules, start="up")))
        self._engine = in_order(engine, dynamics, rules, threads)
        self._set(model=model, seed=rules.seed, sweeps=0, replicas=engine.replicas)
        self._portions, self._moves = Portions(self._engine), 0
        self._measured: Measurement | None = None
        self.temperature = temperature

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in _SETTABLE and not name.startswith("_"):
            close = alike(name, _SETTABLE)
            meant = f", did you mean {close[0]}" if close else ""
            raise MissingError(
                f"{name} of a simulation cannot be set{meant}: set temperature or field, or replace spins by set_spins"
            )
        object.__setattr__(self, name, value)

    def _set(self, **values: Any) -> None:
        vars(self).update(values)

    @property
    def temperature(self) -> float | npt.NDArray[np.float64]:
        """The present temperature, one number or one for each replica. Assign to it to change it."""
        return self._temperature if np.ndim(self._temperature) else float(self._temperature)

    @temperature.setter
    def temperature(self, temperature: npt.ArrayLike) -> None:
        try:
            values = np.array(as_stated("temperature", temperature, "ArrayLike"), np.float64)
        except (TypeError, ValueError) as error:
            raise InputError(f"temperature {temperature!r} is no number: give one, or one for each replica") from error
        if values.shape not in ((), (self.replicas,)):
            raise InputError(
                f"temperature has shape {values.shape}: give one number, or one for each of {self.replicas} replicas"
            )
        check_temperatures(values.ravel(), self.model.energy_scale, zero=True)
        values.flags.writeable = False
        beta = inverse(values, self._engine.model.quantum)
        self._engine.set_beta(beta if values.ndim else float(beta))
        self._temperature = values

    @property
    def field(self) -> float:
        """The present uniform field, added to the model's own; 0 at first. Assign to it to change it."""
        return float(self._engine.field)

    @field.setter
    def field(self, field: float) -> None:
        self._engine.set_field(float(finite(field, "field")))
        self._set(model=self._engine.model if self.field else self._given)
        self.temperature = self._temperature  # a new engine has no temperature yet
        self._measured = None

    def sweep(self, sweeps: int = 1) -> None:
        """Do some sweeps, each an attempt at every spin; Ctrl-C ends between two sweeps.

        Raises:
            InputError: if ``sweeps`` is not a whole number of at least 0.
        """
        if sweeps < 0:
            raise InputError(f"sweeps {sweeps} is below 0: give a whole number such as 100")
        if sweeps:
            self._measured = None
        left = sweeps
        while left:
            now = min(left, self._portions.sweeps)
            self._portions.begin()
            self._engine.sweep(now)
            if now < left:
                self._engine.wait()
            self._portions.end()
            left -= now
            self._set(sweeps=self.sweeps + now)

    def apply(self, move: Move) -> None:
        """Apply a cluster move, such as ``ss.SwendsenWang()``, or a move of your own to all replicas.

        Its random numbers follow from the seed and the number of earlier moves.

        Raises:
            InputError: if replicas have several temperatures, and for a move that does not fit.
        """
        if np.ndim(self._temperature):
            raise InputError("replicas at several temperatures are moved by ss.temper(..., moves=...): set one")
        moment = Moment(float(inverse(self._temperature, self._engine.model.quantum)), self._moves, self.seed)
        cast("Engine", self._engine).apply(move, moment)
        self._moves += 1
        self._measured = None

    @property
    def energy(self) -> npt.NDArray[np.float64]:
        """Total energies in the unit of the couplings, (samples, replicas)."""
        return self._measure().energy

    @property
    def magnetization(self) -> npt.NDArray[np.int64]:
        """Sums of spins, (samples, replicas)."""
        return self._measure().magnetization

    @property
    def staggered_magnetization(self) -> npt.NDArray[np.int64]:
        """Sum over the first sublattice minus the second, (samples, replicas); 0 without sublattices."""
        return self._measure().staggered_magnetization

    def _measure(self) -> Measurement:
        if self._measured is None:
            self._measured = measure(self._engine)
        return self._measured

    def spins(self) -> npt.NDArray[np.int8]:
        """All configurations, +1 and -1, (samples, replicas, sites).

        Raises:
            InputError: if they do not fit in memory.
        """
        shape = self.model.samples, self.replicas, self.model.sites
        require(2.0 * np.prod(shape, dtype=np.float64), f"all spins of {self.model.name}")
        configurations = np.empty(shape, np.int8)
        of_sample = present_configurations(self._engine)
        for sample in range(self.model.samples):
            configurations[sample] = of_sample(sample)
        return configurations

    def batch(self) -> Batch:
        """Return all configurations as the batch that the functions of ``spinsim.observables`` take."""
        xp, beta = module_of(self._engine.device_name), inverse(self._temperature, self._engine.model.quantum)
        spins, axes = xp.asarray(self.spins()), ("sample", "replica", "site")
        return Batch(spins, axes, self.model, xp, xp.asarray(beta), self.seed, self.sweeps)

    def set_spins(self, spins: npt.ArrayLike) -> None:
        """Replace the configurations, for example after a custom move. The random numbers continue.

        Args:
            spins: +1 or -1, shape (sites,), (samples, sites) or (samples, replicas, sites).

        Raises:
            InputError: for other shapes and other values.
        """
        given = as_spins(spins, self.model, self.replicas, "spins")
        set_spins(cast("Engine", self._engine), given, half_sweep=self._engine.half_sweep)
        self._measured = None

    def overlap(self, spins: npt.ArrayLike | None = None) -> npt.NDArray[np.int64]:
        """Sums over sites of products of the spins of two configurations.

        Args:
            spins: Other configurations, such as an earlier result of ``spins()``, shape (sites,),
                (samples, sites) or (samples, replicas, sites). Each present configuration is
                multiplied by its partner; the result is (samples, replicas). Without ``spins``,
                replicas 0 and 1, 2 and 3, ... are multiplied; the result is then (samples,
                replicas // 2).

        Raises:
            InputError: for other shapes or values, and for pairs of a single replica.
        """
        present = self.spins()
        if spins is None:
            if self.replicas < 2:
                raise InputError("one replica has no overlap with another: give replicas=2 or more, or other spins")
            pairs = self.replicas // 2
            first, second = present[:, 0 : 2 * pairs : 2], present[:, 1 : 2 * pairs : 2]
        else:
            first, second = present, as_spins(spins, self.model, self.replicas, "spins")
        return np.asarray((first * second).sum(axis=-1, dtype=np.int64))

    @property
    def engine(self) -> Engine:
        """The engine, for the generators of ``ss.sampling``; ``sweeps`` does not count its sweeps."""
        self._measured = None
        return cast("Engine", self._engine)

    @property
    def _summary(self) -> dict[str, str]:
        values = np.unique(self._temperature)
        said = f"{values[0]:g}" if len(values) == 1 else f"{values[0]:g} to {values[-1]:g}"
        return {
            "model": self.model.name,
            "samples": count(self.model.samples, "sample"),
            "replicas": count(self.replicas, "replica"),
            "temperature": f"T = {said}",
            **({"field": f"field {self.field:g}"} if self.field else {}),
            "sweeps": count(self.sweeps, "sweep"),
            "seed": f"seed {self.seed}",
            "device": self._engine.device_name,
        }
