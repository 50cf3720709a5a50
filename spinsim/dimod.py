"""A sampler of dimod, for programs that are written for it: ``SpinsimSampler().sample(bqm, num_reads=100)``."""

from __future__ import annotations

from collections.abc import Callable
from operator import index
from typing import Any, Final, cast

import numpy as np
import numpy.typing as npt

from spinsim.engine import Dynamics
from spinsim.errors import InputError
from spinsim.inputs.grids import geometric, linear
from spinsim.inputs.texts import printable
from spinsim.machine.clock import seconds_without_compiling
from spinsim.model.ising import Ising
from spinsim.model.problems.bqm import from_bqm, import_dimod, variables_of
from spinsim.model.problems.labels import shown
from spinsim.model.problems.quadratic import BINARY, number_in
from spinsim.sampling.annealing import automatic_temperatures
from spinsim.sampling.schedules import Done, Schedule, anneal_reads, reads_of

try:
    from dimod.core.initialized import Initialized as _Initialized
    from dimod.core.sampler import Sampler as _Sampler
except ImportError:  # the sampler says so when it is made

    class _Initialized:  # type: ignore[no-redef]
        pass

    class _Sampler:  # type: ignore[no-redef]
        pass


SCHEDULES: Final = ("geometric", "linear", "custom")
_SWEEPS: Final = 1000
_MOST: Final = 10**9
_MOST_BETAS: Final = 10_000
_LEAST_BETA: Final = 1e-150  # so that no ratio of two overflows


class SpinsimSampler(_Sampler, _Initialized):
    """Simulated annealing by exact Metropolis sweeps, each read a replica.

    Args:
        device: Where it runs, ``auto``, ``cpu`` or ``cuda``.
        threads: CPU threads, None for all.

    Raises:
        InputError: where dimod is not installed.
    """

    def __init__(self, device: str = "auto", threads: int | None = None) -> None:
        import_dimod()
        self._device, self._threads = device, threads

    @property
    def properties(self) -> dict[str, Any]:
        """What the sampler can do."""
        return {"beta_schedule_options": SCHEDULES}

    @property
    def parameters(self) -> dict[str, list[str]]:
        """The arguments of ``sample``, with the properties that say more of them."""
        names = ("num_reads", "num_sweeps", "num_sweeps_per_beta", "beta_range", "beta_schedule", "initial_states",
                 "initial_states_generator", "seed", "interrupt_function", "time_limit")  # fmt: skip
        return {name: [] for name in names} | {"beta_schedule_type": ["beta_schedule_options"]}

    def sample(
        self,
        bqm: Any,
        *,
        num_reads: int | None = None,
        num_sweeps: int | None = None,
        num_sweeps_per_beta: int = 1,
        beta_range: npt.ArrayLike | None = None,
        beta_schedule: npt.ArrayLike | None = None,
        beta_schedule_type: str | None = None,
        initial_states: Any = None,
        initial_states_generator: str = "random",
        seed: int | None = None,
        interrupt_function: Callable[[], bool] | None = None,
        time_limit: float | None = None,
        **kwargs: Any,
    ) -> Any:
        """Anneal the reads and return the lowest state that each of them met where energies were looked at.

        Energies are looked at some 30 times, evenly spaced, and at the end.

        Args:
            bqm: A ``dimod.BinaryQuadraticModel``.
            num_reads: Replicas; as many as initial states, or one, where left out.
            num_sweeps: In all, a multiple of ``num_sweeps_per_beta``; where left out and no schedule is given 1,000 or
                the next multiple. Beyond 10,000 inverse temperatures each
                serves for several sweeps.
            num_sweeps_per_beta: Sweeps at each inverse temperature.
            beta_range: First and last inverse temperature; from the fields of the problem where left out.
            beta_schedule: Every inverse temperature, for the type ``custom``.
            beta_schedule_type: ``geometric``, ``linear`` or ``custom``.
            initial_states: Samples as dimod takes them.
            initial_states_generator: Where they are fewer than reads: ``none`` refuses, ``tile`` repeats them,
                ``random`` adds others.
            seed: Of all random numbers, 64 bits; drawn where left out. The same seed and arguments give the same reads.
            interrupt_function: Asked at least after each inverse temperature; where it says true, the run ends.
            time_limit: Seconds after which the run ends as it is, without the compiling of kernels.
            kwargs: Others are ignored with a warning, as dimod's samplers do.

        Returns:
            A ``dimod.SampleSet`` with the labels and the vartype of the model; ``info`` has what was filled in.

        Raises:
            InputError: for what is no such model, and for arguments that make no sense.
        """
        began = seconds_without_compiling()
        self.remove_unknown_kwargs(**kwargs)
        if interrupt_function is not None and not callable(interrupt_function):
            raise InputError(f"interrupt_function {shown(interrupt_function)} cannot be called: give a function")
        limit = _positive("time_limit", time_limit)
        if isinstance(seed, bool | np.bool_):
            raise InputError(f"seed {seed} is not a whole number: give one from 0 to 2^64 - 1")
        number = int(np.random.SeedSequence().generate_state(1)[0]) if seed is None else seed
        reads = None if num_reads is None else _count("num_reads", num_reads, 1)
        model = from_bqm(bqm).ising() if variables_of(bqm)[0] else None
        betas, per_beta, kind = _schedule(
            model, num_sweeps, num_sweeps_per_beta, beta_range, beta_schedule, beta_schedule_type
        )
        dynamics, done = Dynamics(number), Done(0, False)
        start = self._start(bqm, initial_states, initial_states_generator, reads, dynamics.seed)
        replicas = (reads or 1) if start is None else len(start)
        start = start if start is None else start[None]
        states = np.empty((replicas, 0), np.int8)
        if model is not None:
            schedule = Schedule(betas, per_beta)
            each = schedule.total / max(1, len(betas))
            found = reads_of(model, replicas, dynamics, self._device, self._threads, start, max(1.0, each))
            done = anneal_reads(found, schedule, interrupt_function, began + limit)
            states = found.states()
        info = {
            "beta_range": [float(betas[0]), float(betas[-1])] if len(betas) else [],
            "beta_schedule_type": kind,
            "seed": int(dynamics.seed),
            "num_sweeps": done.sweeps,
            "shortened": not done.interrupted and done.sweeps < int(per_beta.sum()),
            "interrupted": done.interrupted,
            "seconds": seconds_without_compiling() - began,
        }
        return _sample_set(bqm, states, info)

    def _start(
        self, bqm: Any, states: Any, generator: Any, reads: int | None, seed: int
    ) -> npt.NDArray[np.int8] | None:
        """Returns the initial configurations (reads, sites), None where all are random."""
        if not isinstance(generator, str):
            raise InputError(f"initial_states_generator {shown(generator)} is none: give none, tile or random")
        if states is None and generator == "random":
            return None
        try:
            parsed = self.parse_initial_states(bqm, states, cast("Any", generator), reads, seed % 2**32)
            places = {name: place for place, name in enumerate(parsed.initial_states.variables)}
            found = parsed.initial_states.record.sample[:, [places[name] for name in bqm.variables]]
        except (ValueError, TypeError, KeyError, IndexError, AttributeError) as error:
            raise InputError(
                f"initial_states cannot be used ({printable(str(error))}): give samples as dimod"
            ) from error
        return np.asarray(2 * found - 1 if bqm.vartype.name == BINARY else found, np.int8)


def _schedule(
    model: Ising | None, sweeps: Any, per_beta: Any, ends: Any, listed: Any, kind: Any
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64], str]:
    """Returns the inverse temperatures, the sweeps at each and the type of the schedule; none without a model."""
    if kind is None:
        kind = SCHEDULES[0] if listed is None else SCHEDULES[-1]
    if not isinstance(kind, str) or kind not in SCHEDULES:
        raise InputError(f"beta_schedule_type {shown(kind)} is unknown: choose one of {', '.join(SCHEDULES)}")
    each = _count("num_sweeps_per_beta", per_beta, 1)
    if kind == "custom":
        if listed is None or ends is not None:
            raise InputError("a custom schedule is said by beta_schedule alone: give it, and no beta_range")
        betas = _betas("beta_schedule", listed)
        if sweeps is not None and _count("num_sweeps", sweeps, 0) != each * len(betas):
            raise InputError(
                f"num_sweeps {sweeps} does not fit {len(betas)} inverse temperatures of {each} sweeps: leave it out"
            )
        return betas, np.full(len(betas), each), kind
    if listed is not None:
        raise InputError(f"beta_schedule goes with the type custom, not with {kind}: leave one of them out")
    number, rest = divmod(-(-_SWEEPS // each) * each if sweeps is None else _count("num_sweeps", sweeps, 0), each)
    if rest:
        raise InputError(f"num_sweeps {sweeps} is no multiple of num_sweeps_per_beta {each}: give one that is")
    first, last = 1.0, 1.0
    if ends is None and model is not None:
        first, last = (1 / temperature for temperature in automatic_temperatures(model))
    elif ends is not None:
        given = _betas("beta_range", ends)
        if len(given) != 2:
            raise InputError(f"beta_range has {len(given)} numbers: give the first and the last inverse temperature")
        first, last = given.tolist()
    if not number or model is None:
        return np.empty(0), np.empty(0, np.int64), kind
    steps = min(number, _MOST_BETAS)
    sweeps_by = np.arange(steps + 1, dtype=np.int64) * number // steps * each
    return (geometric if kind == "geometric" else linear)(first, last, steps), np.diff(sweeps_by), kind


def _betas(name: str, values: Any) -> npt.NDArray[np.float64]:
    """Returns inverse temperatures, refused by the name of the argument."""
    try:
        found = np.asarray(values, np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} {shown(values)} cannot be read as numbers: give a list of floats") from error
    if found.ndim != 1 or not 1 <= found.size <= _MOST:
        raise InputError(f"{name} has shape {found.shape}: give a list of inverse temperatures")
    bad = found[~((found >= _LEAST_BETA) & (found <= 1 / _LEAST_BETA))]
    if bad.size:
        raise InputError(
            f"{name} holds {bad[0]:g}: inverse temperatures are from {_LEAST_BETA:g} to {1 / _LEAST_BETA:g}"
        )
    return found


def _count(name: str, value: Any, least: int) -> int:
    """Returns a whole number, refused by the name of the argument."""
    try:
        number = index(value)
    except TypeError as error:
        raise InputError(f"{name} {shown(value)} is no whole number: give one from {least} on") from error
    if isinstance(value, bool) or not least <= number <= _MOST:
        raise InputError(f"{name} {shown(value)} is out of range: give a whole number from {least} to {_MOST}")
    return number


def _positive(name: str, value: Any) -> float:
    """Returns a number of seconds, infinite for None, refused by the name of the argument."""
    if value is None:
        return np.inf
    seconds = number_in(value, name)
    if not seconds >= 0:
        raise InputError(f"{name} {shown(value)} is no time: give seconds, 0 or more")
    return seconds


def _sample_set(bqm: Any, states: npt.NDArray[np.int8], info: dict[str, Any]) -> Any:
    """The samples of configurations (reads, sites), with the energies that the model itself gives them."""
    given = states if bqm.vartype.name != BINARY else (1 + states) // 2
    variables = list(bqm.variables)
    return import_dimod().SampleSet.from_samples_bqm((given, variables), bqm, info=info, sort_labels=False)
