"""Solve runs: ``ss.solve``, and the search under way."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike

from spinsim.errors import InputError, WrongTypeError
from spinsim.inputs.arguments import judges, public
from spinsim.jobs.calls import run_of_call
from spinsim.jobs.solve.bounding import Bounding
from spinsim.jobs.solve.methods import METHODS, Method, Place, Spins, put_under, taken_from
from spinsim.jobs.solve.pool import States
from spinsim.jobs.solve.portfolio import Clock, Portfolio
from spinsim.jobs.solve.preparing import Prepared
from spinsim.jobs.solve.result import BOUNDED, FIXED_WORDS, PROOFS, SIZES, Solved, SolveResult, methods_in
from spinsim.jobs.solve.settings import Solve, SolveSettings
from spinsim.machine.threads import available_threads
from spinsim.model.ising import Ising, read_instance
from spinsim.optimum.bounds import lower_bound
from spinsim.optimum.surfaces import why_not_matched
from spinsim.packing import packed_spins
from spinsim.record import Record
from spinsim.run.execute import FileRow, Run
from spinsim.run.plan import Plan, Saving, Watch, build_model
from spinsim.run.recording import Recording
from spinsim.run.search import GROUP, Search, search_group
from spinsim.sampling.portions import OnUpdates
from spinsim.solution import Lowest, solutions
from spinsim.store.contents import BEST, LABELS, Arrays, arrays_of_best, group_of_best

Feasible = Callable[[dict[Any, int]], bool]
_TIME_OF_SWEEPS: Final = 60.0  # the time limit that counts for drawing if there is none
_TO_DRAW: Final = 0.2  # largest part of the time limit for drawing a graph
_AT_ONCE: Final = 0.05  # part of the time limit after which no further matching of a whole torus begins
_SEARCHES: Final = 2  # groups of copies and tabu searches with a limit in sweeps, whatever the machine
_TESTED: Final = 64  # low states that are kept where a test chooses among them
_SWITCH: Final = 2e-4  # seconds for which a thread that drives a GPU keeps the interpreter from others


@dataclass(frozen=True)
class SolvePlan(Plan[Solve]):
    """A search of a portfolio that is ready to begin."""

    split = ""
    feasible: Feasible | None = None  # test of a state, by the labels of the problem

    def __post_init__(self) -> None:
        if self.model.samples > 1:
            raise InputError(
                f"model {self.model.name} has {self.model.samples} samples, and each is a problem of its own: give one "
                "of them, such as model.of_samples(0, 1)"
            )
        super().__post_init__()

    @classmethod
    def model_of(cls, config: Solve, device: str) -> Ising:
        return build_model(config.model, 128)

    @property
    def rows(self) -> int:
        return 0

    @property
    def replicas(self) -> int | None:
        return None

    def is_done(self, rows: int) -> bool:
        return False

    def run(self, saving: Saving, watch: Watch, stored: Record | None) -> Run:
        return SolveRun(self, saving, watch, stored)


class SolveRun(Run):
    """A search under way: methods take turns and share their best states."""

    def __init__(self, plan: SolvePlan, saving: Saving, watch: Watch, stored: Record | None) -> None:
        s, run, model = plan.of_job, plan.config.run, plan.model
        self._plan, self._saving, self._watch, self.planned = plan, saving, watch, 0
        self._lock = threading.RLock()  # methods of CPU and GPU look at their states at the same time
        self._search = Search(model, s.target, s.time_limit, watch.on_note)
        # a removed site has one value, whatever is feasible
        states = s.states if s.fix and plan.feasible is None else 0
        how_long = _TO_DRAW * (s.time_limit or _TIME_OF_SWEEPS)
        is_fixed = s.time_limit is None
        device = "cpu" if is_fixed else plan.device
        at_once = np.inf if s.time_limit is None else _AT_ONCE * s.time_limit
        self._prepared = prepared = Prepared(model, states, device, run.threads, how_long, run.seed, at_once)
        self._proof, self._bound, self._done = prepared.proof, prepared.bound, 0
        searched_alone = None if len(prepared.known.spins) else prepared.rest
        self._bounding = Bounding(searched_alone, s.time_limit, np.isfinite(prepared.bound))
        test = None if plan.feasible is None else partial(_is_feasible, plan, prepared)
        most = s.states if test is None else max(s.states, _TESTED)
        rest = prepared.rest
        searched = model if rest is None else rest
        sites = 1 if rest is None and not len(prepared.known.spins) else searched.sites
        self._states = States(sites, most, not np.any(model.fields), test)
        self._improved: list[tuple[float, float]] = []
        self._offered = np.inf  # lowest energy of a state that methods took over from each other
        threads = max(1, (run.threads or available_threads()) - (plan.device == "cuda"))  # one is busy with the GPU
        sizes = (plan.device, threads) if not is_fixed else ("cpu", _SEARCHES)
        if stored is not None and GROUP in stored.groups:  # as it was begun, on whatever machine
            sizes = tuple(json.loads(stored.groups[GROUP].attributes[SIZES]))
        place = Place(run.seed, plan.device, run.threads, run.gpus, *sizes)
        how = place, self._look, self._on_updates
        methods = [] if rest is None else [METHODS[name](rest, *how) for name in _names(s.methods, rest, stored)]
        self._portfolios = _portfolios(methods, s)
        methods = self._methods
        devices = ", ".join(sorted({one.device_name for one in methods})) or "cpu"
        self.where = {"engine": f"{plan.device}, portfolio", "devices": devices}
        lengths = {"method": len(methods), "improvement": 0, "state": 0, "byte": -(-model.sites // 8), "outcome": 2}
        group = search_group(Solved, lengths | {"sample": 1}, self._search.target)
        names = json.dumps({"method": [one.name for one in methods]})
        group.attributes.update({LABELS: names, FIXED_WORDS: prepared.words, SIZES: json.dumps(sizes)})
        none = np.full((1, 1), np.inf), np.ones((1, model.sites), np.int8)
        self.contents = Record({}, {}, {GROUP: group, BEST: group_of_best(*none)})

    def rows(self, recording: Recording) -> Iterator[FileRow | None]:
        self._watch.on_stage("", 0)
        if self._prepared.rest is None:
            known = self._prepared.known
            for energy, one in zip(known.energies.tolist(), known.spins, strict=True):
                self._states.offer(energy, one)
            if not len(self._states):  # nothing is left of the problem
                self._states.offer(0.0, np.ones(1, np.int8))
            self._search.look(np.array([[self._states.energies[0] + self._prepared.shift]]), 0)
            return
        if not self._done:
            self._begin_with_known()
        goes_on = True
        while goes_on and not (self._is_over() and len(self._states)):
            with self._turns_beside() as has_ended:
                goes_on = self._turns(has_ended)
            self._share()
            if self._saving.due():
                yield None
        if not self._search.is_met:
            self._find_bound(self._bounding.seconds_at_end)  # so that no other turn depends on its time

    def _is_over(self) -> bool:
        return self._search.is_over or (bool(self._proof) and self._has_states)

    @property
    def _has_states(self) -> bool:
        """True if no lower state can come into the list."""
        wanted, energies = self._plan.of_job.states, self._states.energies
        return len(energies) >= wanted and bool(energies[wanted - 1] + self._prepared.shift <= self._bound)

    def _begin_with_known(self) -> None:
        """Take in a state that was met on the way, or is proven to be the lowest although more states are wanted.

        With a limit in sweeps the first kind does not count.
        """
        known, met = self._prepared.known, self._prepared.met
        if met is not None and self._plan.of_job.time_limit is not None:
            self._look(self._plan.model.energy(met[None])[:1] - self._prepared.shift, lambda _: met)
        for energy, spins in zip(known.energies.tolist(), known.spins, strict=True):
            self._look(np.array([energy]), lambda _, spins=spins: spins)  # type: ignore[misc]
            for one in self._methods:
                one.offer(energy, spins)

    @property
    def _methods(self) -> list[Method]:
        return [one for portfolio in self._portfolios for one in portfolio.methods]

    def _turns(self, has_ended: Callable[[], bool]) -> bool:
        """Take turns until states are to be shared or saved, or others have ended; return False if none is left."""
        while not (self._is_over() and len(self._states)):
            turn = self._portfolios[0].turn(self._search.elapsed)
            if turn is None:
                return False
            self._take(self._portfolios[0], *turn)
            if len(self._portfolios) == 1:
                self._find_bound()
            if self._has_news or self._saving.due() or has_ended():
                break
        return True

    @contextmanager
    def _turns_beside(self) -> Iterator[Callable[[], bool]]:
        """Let methods of the CPU take turns for as long as a GPU is busy with others, or until an error."""
        if len(self._portfolios) == 1:
            yield lambda: False
            return
        ended, before = threading.Event(), sys.getswitchinterval()

        def turns() -> None:
            while not ended.is_set() and not self._is_over():
                if turn := self._portfolios[1].turn(self._search.elapsed):
                    self._take(self._portfolios[1], *turn)
                    self._find_bound()

        sys.setswitchinterval(_SWITCH)
        try:
            with ThreadPoolExecutor(1) as pool:
                beside = pool.submit(turns)
                try:
                    yield beside.done
                finally:
                    ended.set()
                beside.result()
        finally:
            sys.setswitchinterval(before)

    def _take(self, portfolio: Portfolio, number: int, sweeps: int) -> None:
        portfolio.take(number, sweeps)
        with self._lock:
            self._done += 1

    @property
    def _has_news(self) -> bool:
        """True if methods are to hear of a new best state: once it is known which of them gain."""
        is_sharing = all(one.is_sharing for one in self._portfolios) and len(self._states) > 0
        return is_sharing and self._states.energies[0] < self._offered

    def _share(self) -> None:
        """Offer a new best state to all methods that have none as good."""
        if self._has_news:
            self._offered, found = self._states.energies[0], self._states.spins()[0]
            for one in self._methods:
                if one.lowest > self._offered:
                    one.offer(self._offered, found)

    def _on_updates(self, updates: int) -> None:
        with self._lock:
            self._watch.on_updates(updates)

    def _look(self, energies: npt.NDArray[np.float64], spins_of: Callable[[int], Spins]) -> bool:
        """Take in states of the rest; return True if the search is over."""
        with self._lock:
            if self._states.look(energies, spins_of):
                whole = self._states.energies[0] + self._prepared.shift
                self._improved.append((self._search.elapsed, whole))
                if not self._states.failed[0]:
                    self._search.look(np.array([[whole]]), self._done + 1)
                self._compare(self._bound)
            return self._is_over()

    def _compare(self, bound: float) -> None:
        """Take in a bound of all energies; the best state may have this energy."""
        with self._lock:
            self._bound = max(self._bound, bound)
            states = self._states
            if len(states) and not states.failed[0] and states.energies[0] + self._prepared.shift <= self._bound:
                self._proof = PROOFS.index(BOUNDED)

    def _find_bound(self, seconds: float | None = None) -> None:
        """Look for a bound, for as long as there is time for it now."""
        rest, states = self._prepared.rest, self._states
        seconds = self._bounding.seconds(self._search.elapsed, self._hits) if seconds is None else seconds
        if rest is None or not seconds:
            return
        self._bounding.tried += 1
        met = states.energies[0] if len(states) else None
        self._compare(lower_bound(rest, seconds, met).energy + self._prepared.shift)

    def _hits(self) -> int:
        """Number of independent starts that met the best state."""
        best = self._states.energies[0] if len(self._states) else np.inf
        return sum(one.starts(best)[1] for one in self._methods)

    def _outcome(self) -> dict[str, npt.NDArray[Any]]:
        methods, states = self._methods, self._states
        clocks = [clock for portfolio in self._portfolios for clock in portfolio.clocks]
        shift, whole = self._prepared.shift, self._plan.model.sites
        kept = [self._prepared.whole(one) for one in states.spins()[: self._plan.of_job.states]]
        best = states.energies[0] if states.energies else np.inf
        counted = [one.starts(best) for one in methods]
        improved = np.array(self._improved).reshape(-1, 2)
        return self._search.outcome(
            self._done,
            seconds=np.array([one.seconds for one in clocks]),
            sweeps=np.array([one.sweeps for one in methods], np.int64),
            lowest=np.array([one.lowest + shift for one in methods]),
            starts=np.array([starts for starts, _ in counted], np.int64),
            hits=np.array([hits for _, hits in counted], np.int64),
            improved_seconds=improved[:, 0],
            improved_energy=improved[:, 1],
            state_energy=np.array(states.energies[: len(kept)]) + shift,
            state_bits=packed_spins(np.array(kept, np.int8).reshape(-1, whole)),
            state_failed=states.failed[: len(kept)],
            sites=np.array(self._states.sites if methods else 0, np.int64),
            tested=np.array([states.tested, states.feasible], np.int64),
            bound=np.array(self._bound),
            proof=np.array(self._proof, np.int64),
        )

    def _best(self) -> Arrays:
        model, states = self._plan.model, self._states
        if not len(states):
            return arrays_of_best(np.full((1, 1), np.inf), np.ones((1, model.sites), np.int8))
        spins = self._prepared.whole(states.spins()[0])[None]
        return arrays_of_best(model.energy(spins).reshape(1, 1), spins)

    def state(self) -> Arrays:
        saved = put_under("states_", self._states.state())
        for portfolio in self._portfolios:
            for one, clock in zip(portfolio.methods, portfolio.clocks, strict=True):
                saved |= put_under(f"{one.name}_", one.state())
                saved[f"{one.name}_clock"] = np.array([clock.seconds, clock.met, clock.turn])
        saved["offered"] = np.array(self._offered)
        return {**saved, **self._outcome(), **self._best()}

    def ended(self) -> tuple[Arrays, Arrays | None]:
        record = {**self._outcome(), **self._best()}
        return record, None if self._proof or self._search.is_met else self.state()

    def restore(self, saved: Arrays) -> None:
        _check_saved(self._plan, saved, None if self._prepared.rest is None else self._states.sites)
        self._search.restore(saved)
        columns = (saved[f"{GROUP}/improved_{name}"].tolist() for name in ("seconds", "energy"))
        self._done, self._improved = int(saved[f"{GROUP}/done"]), list(zip(*columns, strict=True))
        if self._prepared.rest is None:  # it is solved now, as it has more time than before
            return
        self._states.restore(taken_from("states_", saved))
        self._offered, bound = float(saved["offered"]), float(saved[f"{GROUP}/bound"])
        self._bounding.tried += bound > self._bound
        self._compare(bound)
        for portfolio in self._portfolios:
            for k, one in enumerate(portfolio.methods):
                one.restore(taken_from(f"{one.name}_", saved))
                seconds, met, turn = saved[f"{one.name}_clock"].tolist()
                portfolio.clocks[k] = Clock(seconds, met, int(turn))


def _names(methods: str, rest: Ising, stored: Record | None) -> list[str]:
    """Return the methods that apply to what is left of a problem; those with which a stored search began."""
    begun = [] if stored is None or GROUP not in stored.groups else methods_in(stored)
    names = [name for name in begun or methods.split(",") if METHODS[name].applies(rest)]
    if not names or len(names) < len(begun):
        raise InputError(f"{rest.name} cannot be searched by matching, as {why_not_matched(rest)}; give other methods")
    return names


def _check_saved(plan: SolvePlan, saved: Arrays, sites: int | None) -> None:
    """Raise an InputError for a search that needs a test, or was of other sites; None where nothing is searched."""
    if saved[f"{GROUP}/tested"][0] and plan.feasible is None:
        raise InputError(
            f"{plan.path} holds a search with a test of feasibility, which is no part of the file: continue it by the "
            "same call of ss.solve"
        )
    if sites is not None and (before := int(saved[f"{GROUP}/sites"])) != sites:
        raise InputError(
            f"{plan.path} holds a search of {before} sites, but {sites} need a search here: continue it with the "
            "packages and the time limit that it began with"
        )


def _portfolios(methods: list[Method], settings: SolveSettings) -> list[Portfolio]:
    """Return one portfolio of all methods; or one of those on a GPU, and one of the others, which run beside them.

    With a limit in sweeps bits depend on the order of all turns, so that methods take turns everywhere.
    """
    seconds = settings.time_limit or np.inf
    on_gpu = [one for one in methods if one.device_name != "cpu"]
    if settings.sweeps_limit is not None or len(on_gpu) in (0, len(methods)):
        return [Portfolio(methods, seconds, settings.sweeps_limit)]
    others = [one for one in methods if one not in on_gpu]
    return [Portfolio(on_gpu, seconds, None), Portfolio(others, seconds, None, beside=True)]


def _is_feasible(plan: SolvePlan, prepared: Prepared, spins: Spins) -> bool:
    whole = prepared.whole(spins)[None]
    assert plan.feasible is not None  # noqa: S101
    return bool(plan.feasible(solutions(plan.model, Lowest(plan.model.energy(whole).reshape(1, 1), whole))[0].by_label))


def problem_of(problem: Any) -> Ising:
    """Return the model of a problem in any form that ``solve`` takes."""
    if isinstance(problem, Ising):
        return problem
    if isinstance(problem, str | os.PathLike):
        return read_instance(problem)
    if hasattr(problem, "vartype") and hasattr(problem, "linear"):
        return Ising.from_bqm(problem)
    if hasattr(problem, "nodes") and hasattr(problem, "edges"):
        return Ising.from_networkx(problem)
    if isinstance(problem, Mapping) or hasattr(problem, "shape"):
        return Ising.from_qubo(problem)
    raise WrongTypeError(
        f"a {type(problem).__name__} is no problem: give a model, a file, a QUBO as a dict or a matrix, a graph of "
        "networkx or a model of dimod; lists of edges go to ss.Ising.from_edges"
    )


@public
@judges("problem", "feasible", "seed", none=True)
def solve(
    problem: Any,
    time_limit: float | None = None,
    target: ArrayLike | str | None = None,
    sweeps_limit: int | None = None,
    states: int = 1,
    seed: int | None = 1,
    device: str = "auto",
    threads: int | None = None,
    feasible: Feasible | None = None,
    out: str | os.PathLike[str] | None = None,
    checkpoint_every: float = 60.0,
    progress: bool = False,
    on_updates: OnUpdates | None = None,
    *,
    methods: str = "matching,anneal,temper,tabu",
    fix: bool = True,
    solution: str | os.PathLike[str] | None = None,
    gpus: str | None = None,
) -> SolveResult:
    """Find the best state of a problem in the given time, and say how far to trust it.

    What can be fixed or solved exactly is solved first. Then anneals, tempering and tabu searches
    take turns. After three tenths of the time the best of them gets most of the rest, and tabu
    searches begin at the best states of the others. A search also ends when the states that it
    returns are proven to be the lowest.

    Args:
        problem: A model; a file, as ``ss.read_instance`` reads it; a QUBO, as a dict
            ``{(u, v): value}``, a square matrix of NumPy or SciPy or a DataFrame, which is
            minimised; a graph of networkx with couplings; or a model of dimod.
        time_limit: Seconds of the search, at least 0.001, not counting the compiling of kernels;
            10 by default, none with ``sweeps_limit``. The answer then depends on the machine.
        target: End the search when this value is met: the cut of a MaxCut instance, else the energy
            including the constant of the problem.
        sweeps_limit: Sweeps of each method (a whole number from 20 to 10^12). With this limit
            alone, the same seed and installed packages give the same answer on every machine and
            device; only the proven bound, which takes up to a second, may differ.
        states: Number of distinct low states to return, the lowest that were met (up to 10^5).
        seed: Seed of all methods, 64 bits (a whole number from 0 to 2^64 - 1); None draws a fresh
            one.
        device: ``auto`` (a GPU if there is one), ``cpu``, ``cuda`` or ``gpu`` (the same as cuda).
        threads: CPU threads (a whole number from 1 to 4096), all by default.
        feasible: Function that takes the values of all variables by label and returns True if they
            are feasible. Feasible states come before all others, whatever their energies. It is no
            part of a file.
        out: File for the run and its checkpoints; the same call, or ``resume``, completes an
            interrupted run.
        checkpoint_every: Seconds between checkpoints, at least 0.
        progress: Show a progress bar on the terminal or in the notebook.
        on_updates: Called at intervals with the number of spin updates since its last call.
        methods: Methods that take turns, some of ``matching,anneal,temper,tabu``; matching is for
            graphs that tile a torus, and is left out elsewhere.
        fix: First fix spins that can be fixed exactly, and solve small or planar parts exactly.
        solution: File for the best state by the labels of the problem, .txt or .json.
        gpus: GPUs that share the work: ``all``, a count, or a list of numbers such as ``0,2``; by
            default one for each process.

    Returns:
        The best state (``best``), further low states (``states``) and how far to trust them
        (``quality``).

    Raises:
        InputError: for a problem of several samples, an impossible target, and if the file holds
            another run.
        KeyboardInterrupt: on Ctrl-C; a run with ``out`` is saved first.
    """
    given = dict(locals())
    if feasible is not None and not callable(feasible):
        raise WrongTypeError(
            f"feasible of type {type(feasible).__name__} is no function: give one that takes the values by label"
        )
    result: SolveResult = run_of_call(Solve, problem_of(given.pop("problem")), given)
    if out is not None:
        _check_tested(result, feasible, out)
    return result


def _check_tested(result: SolveResult, feasible: Feasible | None, out: str | os.PathLike[str]) -> None:
    """Refuse the answer of a file that was found with another test of feasibility, which is no part of the file."""
    was_tested = bool(result.search.tested[0])
    differs = was_tested != (feasible is not None)
    if not differs and feasible is not None:
        differs = any(bool(feasible(one.solution.by_label)) != one.is_feasible for one in result.states)
    if differs:
        raise InputError(f"{os.fspath(out)} holds a search with another test of feasibility: give another file")
