"""A dimod sampler, for programs written for dimod: ``SpinsimSampler().sample(bqm, num_reads=100)``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from inspect import signature
from typing import Any, Final, cast

import numpy as np
import numpy.typing as npt

from spinsim.acceptance import COLDEST
from spinsim.engine import Dynamics, resolve_device
from spinsim.engine.moves.metropolis.by_replica import ATTEMPTS
from spinsim.errors import InputError, WrongTypeError, warn_caller
from spinsim.inputs import numbers
from spinsim.inputs.arguments import public, typed
from spinsim.inputs.texts import as_seed, printable, seeds_of, shown
from spinsim.machine.compiled import seconds_without_compiling
from spinsim.machine.threads import Threads
from spinsim.model.exchange import check_pairs, import_dimod, of_bqm, variables_of
from spinsim.model.ising import Ising
from spinsim.model.quadratic import BINARY, Quadratic, number_in
from spinsim.sampling.descents import descended
from spinsim.sampling.schedules import LOOKS, NOTHING, Done, Reads, Schedule, anneal_reads, reads_of
from spinsim.sampling.temperatures import automatic_temperatures

try:
    from dimod.core.initialized import Initialized as _Initialized
    from dimod.core.sampler import Sampler as _Sampler
except ImportError:  # creating the sampler reports this

    class _Initialized:  # type: ignore[no-redef]
        pass

    class _Sampler:  # type: ignore[no-redef]
        pass


SCHEDULES: Final = ("geometric", "linear", "custom")
ANSWERS: Final = ("best", "last")
_SWEEPS: Final = 1000
_MOST: Final = 10**9
_MOST_BETAS: Final = 10_000
_AT_ONCE: Final = 256  # problems that are prepared at a time
_LEAST_BETA: Final = 1e-150  # of geometric schedules, so that no ratio of two overflows
_GREEDY: Final = 2.0**10  # beta times the least cost of a flip, at which no such flip is accepted


@public
class SpinsimSampler(_Sampler, _Initialized):
    """Simulated annealing by exact Metropolis sweeps. Each read is a replica.

    Args:
        device: Device to run on: ``auto``, ``cpu`` or ``cuda``.
        threads: CPU threads, None for all.

    Raises:
        InputError: if dimod is not installed.
    """

    def __init__(self, device: str = "auto", threads: int | None = None) -> None:
        import_dimod()
        self._device, self._threads = device, threads
        self._last: tuple[Quadratic, Ising] | None = None

    @property
    def properties(self) -> dict[str, Any]:
        """Allowed values of the options of ``sample``."""
        return {"beta_schedule_options": SCHEDULES, "answers": ANSWERS}

    @property
    def parameters(self) -> dict[str, list[str]]:
        """Arguments of ``sample``, each with the names of the properties that list its values."""
        about = {"beta_schedule_type": ["beta_schedule_options"], "answer": ["answers"]}
        return {name: about.get(name, []) for name in (*_defaults(), "seed")}

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
        answer: str = "best",
        descend: bool = True,
        **kwargs: Any,
    ) -> Any:
        """Anneal the reads and return the lowest state of each read, or its last state.

        Energies are evaluated about 30 times, evenly spaced, and at the end.

        Args:
            bqm: A ``dimod.BinaryQuadraticModel``.
            num_reads: Number of replicas; by default the number of initial states, or 1.
            num_sweeps: Total number of sweeps, a multiple of ``num_sweeps_per_beta``; without it and without a schedule
                1,000 or the next multiple. Beyond 10,000 inverse temperatures, each serves for several sweeps.
            num_sweeps_per_beta: Sweeps at each inverse temperature.
            beta_range: First and last inverse temperature, in rising order; by default derived from the fields of the
                problem. If the last is infinite, the finite ones end at the default and the final sweeps are greedy.
            beta_schedule: Every inverse temperature, for the type ``custom``. At 0 every spin flips in each sweep; at
                infinity no spin flips to a higher energy.
            beta_schedule_type: ``geometric``, ``linear`` or ``custom``.
            initial_states: Samples in any form that dimod accepts.
            initial_states_generator: Used if there are fewer initial states than reads: ``none`` refuses, ``tile``
                repeats them, ``random`` adds random states.
            seed: Seed of all random numbers, 64 bits; by default drawn. Equal seeds and arguments give equal reads.
            interrupt_function: Called at least after each inverse temperature. If it returns True, the run stops at its
                present state, and ``info`` has ``interrupted``.
            time_limit: Largest duration of the call in seconds, not counting the compiling of kernels. If the requested
                sweeps take longer, only as many as fit are done, evenly chosen from the whole schedule, but at least
                one at the last inverse temperature. ``info`` then has ``shortened`` and the number of sweeps. Reads
                then depend on the machine, so the same seed gives other reads. If all sweeps fit, nothing changes.
                The descents at the end take extra time.
            answer: ``best`` for the lowest states, ``last`` for the states at the end of the schedule. At a constant
                inverse temperature these are samples of the Boltzmann distribution: ``beta_range=[0.5, 0.5]``.
            descend: After the last sweep, flip spins of the lowest states as long as that lowers their energy. Last
                states are left unchanged.
            kwargs: Other arguments are ignored with a warning, as in dimod's samplers.

        Returns:
            A ``dimod.SampleSet`` with the labels and the vartype of the model; ``info`` has the values that were
            filled in and the number of sweeps done.

        Raises:
            InputError: if ``bqm`` is no such model, and for arguments that make no sense.
        """
        given = locals()
        self.remove_unknown_kwargs(**kwargs)
        problem = self._prepared(bqm, seed, self._threads, given)
        problem.anneal()
        return problem.sample_set()

    def sample_many(self, bqms: Iterable[Any], *, seed: int | None = None, **arguments: Any) -> list[Any]:
        """Sample several problems and return the sample set of each. On the CPU, threads work on problems in parallel.

        Problem k, counted from 0, has the seed ``seed + k``, modulo 2^64. Its sample set equals that of ``sample`` with
        this seed and the same arguments.

        Args:
            bqms: dimod models.
            seed: Seed of the first problem; by default drawn.
            arguments: Other arguments of ``sample``, shared by all problems; a ``time_limit`` applies to each problem.

        Raises:
            InputError: as ``sample``, naming the problem by its number.
        """
        models, sample_sets = list(bqms), []
        given = typed(SpinsimSampler.sample, _defaults() | self.remove_unknown_kwargs(**arguments))
        seeds = seeds_of(seed, len(models))
        side_by_side = resolve_device(self._device) == "cpu"
        pool, at_once = Threads(self._threads if side_by_side else 1), _AT_ONCE if side_by_side else 1
        for first in range(0, len(models), at_once):
            problems = []
            for k in range(first, min(first + at_once, len(models))):
                try:
                    problems.append(self._prepared(models[k], seeds[k], 1 if side_by_side else self._threads, given))
                except InputError as error:
                    raise InputError(f"problem {k} of the list: {error}") from error
            pool.run((problem.anneal for problem in problems), sum(problem.words for problem in problems))
            sample_sets += [problem.sample_set() for problem in problems]
        return sample_sets

    def _prepared(self, bqm: Any, seed: Any, threads: int | None, given: dict[str, Any]) -> _Problem:
        """Check the arguments of ``sample`` and return a problem that is ready to be annealed."""
        began = seconds_without_compiling()
        limit = np.inf if given["time_limit"] is None else given["time_limit"]
        if not limit >= 0:
            raise InputError(f"time_limit {limit} is no time: give seconds, 0 or more")
        if given["answer"] not in ANSWERS:
            raise InputError(f"answer {shown(given['answer'])} is unknown: choose {' or '.join(ANSWERS)}")
        dynamics = Dynamics(as_seed(seed))
        reads = None if given["num_reads"] is None else _count("num_reads", given["num_reads"], 1)
        model = self._model_of(of_bqm(bqm)) if variables_of(bqm)[0] else None
        if model is not None and model.caution:
            warn_caller(model.caution)
        schedule, about = _schedule(model, given)
        start = self._start(bqm, given["initial_states"], given["initial_states_generator"], reads, dynamics.seed)
        replicas = (reads or 1) if start is None else len(start)
        about |= {"seed": dynamics.seed}
        ready = None
        if model is not None:
            each = schedule.total / max(1, len(schedule.betas))
            begin = start if start is None else start[None]
            ready = reads_of(model, replicas, dynamics, self._device, threads, begin, max(1.0, each))
        is_last, stop = given["answer"] == "last", given["interrupt_function"]
        descends = given["descend"] and not is_last and schedule.total > 0
        return _Problem(bqm, ready, replicas, schedule, about, is_last, descends, stop, limit, began)

    def _model_of(self, problem: Quadratic) -> Ising:
        """Return the model of a problem; reuse the last call's model and its derived data for the same problem."""
        last = self._last
        if last is None or not problem.is_same(last[0]):
            self._last = last = problem, Ising.from_quadratic(problem)
        return last[1]

    def sample_ising(self, h: Any, J: Any, **parameters: Any) -> Any:  # noqa: N803  (dimod's names)
        """Sample an Ising problem in dimod's form, sum h s + sum J s s. Its terms are checked before dimod reads them.

        Raises:
            InputError: for keys of J that are no pairs, and for values that are no numbers; otherwise as ``sample``.
        """
        linear = h if isinstance(h, Mapping) else dict(enumerate(h)) if isinstance(h, Sequence) else {}
        for label, value in linear.items():
            number_in(value, "the bias of", label)
        return self.sample(_bqm_of("from_ising", h, J), **parameters)

    def sample_qubo(self, Q: Any, **parameters: Any) -> Any:  # noqa: N803  (dimod's name)
        """Sample a QUBO in dimod's form, ``{(u, v): value}``. Its terms are checked before dimod reads them.

        Raises:
            InputError: as ``sample_ising``.
        """
        return self.sample(_bqm_of("from_qubo", Q), **parameters)

    def _start(
        self, bqm: Any, states: Any, generator: Any, reads: int | None, seed: int
    ) -> npt.NDArray[np.int8] | None:
        """Return the initial configurations (reads, sites), or None if all are random."""
        if states is None and generator == "random":
            return None
        try:
            parsed = self.parse_initial_states(bqm, states, cast("Any", generator), reads, seed % 2**32)
            places = {name: place for place, name in enumerate(parsed.initial_states.variables)}
            configurations = parsed.initial_states.record.sample[:, [places[name] for name in bqm.variables]]
        except (ValueError, TypeError, KeyError, IndexError, AttributeError) as error:
            raise InputError(
                f"initial_states cannot be used ({printable(str(error))}): give samples as dimod"
            ) from error
        return np.asarray(2 * configurations - 1 if bqm.vartype.name == BINARY else configurations, np.int8)


def _bqm_of(maker: str, *terms: Any) -> Any:
    """Return the model that dimod builds from terms; the last argument holds the pairs."""
    check_pairs(terms[-1])
    try:
        return getattr(import_dimod().BinaryQuadraticModel, maker)(*terms)
    except (TypeError, ValueError) as error:
        given = ", ".join(map(shown, terms))
        raise WrongTypeError(f"{given} are no terms of a problem ({printable(str(error))}): give dicts") from error


@dataclass
class _Problem:
    """A problem with its reads (None for a model without variables), and how its anneal ended.

    ``about`` goes into the sample set's ``info``, and ``is_last`` is True if the last states are returned. ``limit`` is
    the largest time in seconds, counted from ``began``, when preparation started.
    """

    bqm: Any
    reads: Reads | None
    replicas: int
    schedule: Schedule
    about: dict[str, Any]
    is_last: bool
    descends: bool
    stop: Callable[[], bool] | None
    limit: float
    began: float
    done: Done = NOTHING

    def __post_init__(self) -> None:
        self._spent = seconds_without_compiling() - self.began
        self.states = np.empty((self.replicas, 0), np.int8)

    @property
    def words(self) -> int:
        """Amount of work, as the number of 128-spin words whose updates take as long."""
        return self.schedule.total * self.replicas * (self.reads.model.sites if self.reads else 0) // ATTEMPTS

    def anneal(self) -> None:
        if self.reads is not None:
            end = seconds_without_compiling() - self._spent + self.limit
            self.done = anneal_reads(self.reads, self.schedule, self.stop, end)
            self.states = self.reads.present() if self.is_last else self.reads.states()
            if self.descends and not self.done.interrupted:
                self.states = descended(self.reads.model, 0, self.states)
        self._spent = seconds_without_compiling() - self.began

    def sample_set(self) -> Any:
        states = self.states
        given = states if self.bqm.vartype.name != BINARY else (1 + states) // 2
        done = self.done
        info = self.about | {
            "num_sweeps": done.sweeps,
            "shortened": self.reads is not None and not done.interrupted and done.sweeps < self.schedule.total,
            "interrupted": done.interrupted,
            "seconds": self._spent,
        }
        labelled = given, list(self.bqm.variables)
        return import_dimod().SampleSet.from_samples_bqm(labelled, self.bqm, info=info, sort_labels=False)


@cache
def _defaults() -> dict[str, Any]:
    """Default values of the arguments of ``sample``."""
    parameters = signature(SpinsimSampler.sample).parameters.values()
    return {one.name: one.default for one in parameters if one.kind is one.KEYWORD_ONLY and one.name != "seed"}


def _schedule(model: Ising | None, given: dict[str, Any]) -> tuple[Schedule, dict[str, Any]]:
    """Return the schedule of the arguments of ``sample`` and its entries in ``info``; without a model it is empty."""
    names = "num_sweeps", "beta_range", "beta_schedule", "beta_schedule_type"
    sweeps, ends, listed, kind = (given[name] for name in names)
    if kind is None:
        kind = SCHEDULES[0] if listed is None else SCHEDULES[-1]
    if kind not in SCHEDULES:
        raise InputError(f"beta_schedule_type {shown(kind)} is unknown: choose one of {', '.join(SCHEDULES)}")
    each, looks = _count("num_sweeps_per_beta", given["num_sweeps_per_beta"], 1), LOOKS * (given["answer"] == "best")
    if kind == "custom":
        if listed is None or ends is not None:
            raise InputError("a custom schedule is said by beta_schedule alone: give it, and no beta_range")
        betas = _betas("beta_schedule", listed)
        if sweeps is not None and _count("num_sweeps", sweeps, 0) != each * len(betas):
            raise InputError(
                f"num_sweeps {sweeps} does not fit {len(betas)} inverse temperatures of {each} sweeps: leave it out"
            )
        first, last = betas[[0, -1]].tolist()
        finite = np.minimum(betas, np.inf if model is None else _greedy(model))
        schedule = Schedule(finite, np.full(len(betas), each), looks)
    else:
        if listed is not None:
            raise InputError(f"beta_schedule goes with the type custom, not with {kind}: leave one of them out")
        number, rest = divmod(-(-_SWEEPS // each) * each if sweeps is None else _count("num_sweeps", sweeps, 0), each)
        if rest:
            raise InputError(f"num_sweeps {sweeps} is no multiple of num_sweeps_per_beta {each}: give one that is")
        first, last = _range(model, ends, kind)
        schedule = Schedule(np.empty(0), np.empty(0, np.int64))
        if number and model is not None:
            cold = _range(model, None, kind)[1] if last == np.inf else last
            schedule = _between(kind, (first, cold, last), number, each, looks, _greedy(model) if cold < last else last)
    return schedule, {"beta_range": [first, last], "beta_schedule_type": kind}


def _range(model: Ising | None, ends: Any, kind: str) -> tuple[float, float]:
    """Return the first and the last inverse temperature; without ``ends`` they follow from the fields of the model."""
    if ends is None:
        first, last = (1.0, 1.0) if model is None else (1 / one for one in model.once(automatic_temperatures)[:2])
        return first, last
    both = _betas("beta_range", ends)
    if len(both) != 2:
        raise InputError(f"beta_range has {len(both)} numbers: give the first and the last inverse temperature")
    first, last = both.tolist()
    if first > last:
        raise InputError(
            f"beta_range falls from {first:g} to {last:g}, which heats the reads: give the lower inverse "
            "temperature first, or any order as beta_schedule"
        )
    if kind == "geometric" and first < min(last, _LEAST_BETA):
        raise InputError(f"beta_range begins at {first:g}, where no geometric row does: choose the type linear")
    return first, last


@lru_cache(maxsize=8)
def _between(
    kind: str, range_: tuple[float, float, float], number: int, each: int, looks: int, most: float
) -> Schedule:
    """Return the schedule from the first beta of ``range_`` to its last, cached; ``most`` replaces an infinite one."""
    first, cold, last = range_
    steps = min(number, _MOST_BETAS)
    sweeps_by = np.arange(steps + 1, dtype=np.int64) * number // steps * each
    row = np.full(steps, last)
    rising = steps if cold == last else steps - 1
    if first < last and rising:
        row[:rising] = (numbers.geometric if kind == "geometric" else numbers.linear)(first, max(first, cold), rising)
    return Schedule(np.minimum(row, most), np.diff(sweeps_by), looks)


def _greedy(model: Ising) -> float:
    """Return a finite inverse temperature at which no spin of a model flips to a higher energy."""
    return min(_GREEDY / model.quantum, 1 / COLDEST)


def _betas(name: str, values: Any) -> npt.NDArray[np.float64]:
    betas = np.asarray(values, np.float64)
    if betas.ndim != 1 or not 1 <= betas.size <= _MOST:
        raise InputError(f"{name} has shape {betas.shape}: give a list of inverse temperatures")
    bad = betas[~((betas >= 0) & ((betas <= 1 / _LEAST_BETA) | (betas == np.inf)))]
    if bad.size:
        raise InputError(f"{name} holds {bad[0]:g}: inverse temperatures are from 0 to {1 / _LEAST_BETA:g} or infinite")
    return betas


def _count(name: str, number: int, least: int) -> int:
    if not least <= number <= _MOST:
        raise InputError(f"{name} {number} is out of range: give a whole number from {least} to {_MOST}")
    return number
