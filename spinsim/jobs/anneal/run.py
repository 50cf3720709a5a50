"""Annealing runs: ``ss.anneal``, their plan and the run under way."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from math import prod
from typing import Any, Final, cast

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike

from spinsim.acceptance import check_temperatures
from spinsim.engine import Dynamics, Engine, create_engine, resolve_device
from spinsim.engine.choosing import USUAL, replicas_that_fill
from spinsim.engine.moves.move import Move, moves_of_run
from spinsim.engine.split.slabs import slabs_in_words
from spinsim.engine.update import ModelSizes, Sizes
from spinsim.errors import InputError
from spinsim.inputs.arguments import judges, public
from spinsim.inputs.numbers import as_text
from spinsim.inputs.texts import count, seeds_of
from spinsim.jobs.anneal.result import ANNEALS, OF_ANNEALS, STATES, AnnealResult, Anneals, anneal_contents, recorded
from spinsim.jobs.anneal.settings import Anneal, AnnealSettings
from spinsim.jobs.calls import run_of_call, start_of_call
from spinsim.machine.memory import require
from spinsim.machine.threads import WORTH_A_THREAD, Threads
from spinsim.model.ising import Ising
from spinsim.model.trotter import check_slices, trotter
from spinsim.packing import LANES
from spinsim.record import Record
from spinsim.run.execute import FileRow, ReplicaRun, Run
from spinsim.run.identity import tables_of_file
from spinsim.run.own_observables import REPLICAS, Measure, OwnObservables, functions_of
from spinsim.run.plan import Plan, Saving, Watch, build_model, dynamics_of
from spinsim.run.recording import Recording
from spinsim.run.search import Search, search_group, seed_of_start
from spinsim.sampling import AnnealFrame, BestSlices, InField, Population, annealing
from spinsim.sampling.measure import BestOfEach, Measurement, measure, present_spins
from spinsim.sampling.placement import overlapping_temperatures
from spinsim.sampling.population import check_populations
from spinsim.sampling.temperatures import automatic_temperatures
from spinsim.settings.setting import settings_of
from spinsim.settings.shared import RunSettings
from spinsim.store.contents import Arrays, arrays_of_best

Array = npt.NDArray[np.float64]

_BYTES_A_STEP: Final = 24  # per replica: energy and sums of spins
POPULATION: Final = 4096  # default least number of replicas of a sample in a population run, as families die out
_MOST_REPLICAS: Final = int(settings_of(RunSettings)["replicas"].high or 0)


class OfSlices(ModelSizes):
    """The ``Sizes`` of the space-time model with two terms that ``model.trotter`` makes from a model in space."""

    def __init__(self, model: Ising, slices: int) -> None:
        super().__init__(model)
        self.sites, self.bonds = model.sites * slices, (model.bonds + model.sites) * slices
        self.lattice, self.one_coupling, self.slices, self.in_terms = None, False, slices, True

    @property
    def largest_degree(self) -> int:
        return super().largest_degree + 2

    @property
    def degrees_of_terms(self) -> tuple[int, int] | None:
        """Largest number of bonds at a site in each of the two terms, if a term's couplings are +J or -J."""
        return (super().largest_degree, 2) if self.one_magnitude else None


_BYTES: Final = 2**22  # of recorded energies
_FEWEST, _MOST = 8, 4096


class AnnealSearch(Search):
    """The anneals of a run under way; a run that is no search has one."""

    group = ANNEALS

    def __init__(self, plan: AnnealPlan, on_note: Callable[[str], None]) -> None:
        a, shape = plan.config.anneal, (plan.model.samples, plan.config.run.number_of_replicas)
        super().__init__(plan.model, a.target, a.time_limit, on_note)
        self._most = a.anneals or (None if a.ends_early else 1)
        size = prod(shape)
        fit = min(_MOST, max(_FEWEST, _BYTES // (8 * size)))
        # number of anneals that are recorded one by one; 0 for a single anneal that nothing ends early
        self.recorded = (a.anneals or fit) if a.is_search else 0
        if self.recorded * size > _BYTES:  # asking for free memory takes longer than an easy problem
            require(32.0 * self.recorded * size, count(self.recorded, "anneal"), "give fewer")
        self._each: list[tuple[Any, ...]] = []  # in the order of OF_ANNEALS
        self.number, self._lowest, self._since = 0, np.full(shape, np.inf), 0.0  # of the present anneal

    def look_at(self, energy: Array) -> None:
        """Take in energies (samples, replicas) of the present anneal, of states that are kept."""
        np.minimum(self._lowest, energy, out=self._lowest)
        self.look(energy, self.number + 1)

    @property
    def is_last(self) -> bool:
        return self.is_over or self.number + 1 == self._most

    def end_anneal(self, sweeps: int, planned: int) -> None:
        now = self.elapsed
        if self.number < self.recorded:
            self._each.append((self._lowest, sweeps, planned, now - self._since))
        self.number += 1
        self._lowest, self._since = np.full_like(self._lowest, np.inf), now

    def anneals(self) -> dict[str, npt.NDArray[Any]]:
        """Arrays of all recorded anneals by path."""
        return self.outcome(self.number, **recorded(self._lowest.shape, self._each)) if self.recorded else {}

    def state(self) -> dict[str, npt.NDArray[Any]]:
        present = {"anneal_lowest": self._lowest.copy(), "anneal_since": np.array(self._since)}
        return self.anneals() | present if self.recorded else {}

    def restore(self, saved: Arrays) -> None:
        if self.recorded:
            super().restore(saved)
            self.number = int(saved[f"{ANNEALS}/done"])
            rows = [saved[f"{ANNEALS}/{s.name}"] for s in OF_ANNEALS]
            self._each = list(zip(*rows, strict=True))
            self._lowest, self._since = saved["anneal_lowest"].copy(), float(saved["anneal_since"])

    def in_contents(self, contents: Record) -> Record:
        if self.recorded:
            lengths = dict(zip(("anneal", *REPLICAS), (0, *self._lowest.shape), strict=True))
            contents.groups[ANNEALS] = search_group(Anneals, lengths, self.target)
        return contents


class AnnealPlan(Plan[Anneal]):
    """An annealing run that is ready to begin."""

    rows_in_words = "steps", "choose fewer steps, samples or replicas"

    def __post_init__(self) -> None:
        every = self.save_every
        if self.config.anneal.growing and every > self.rows:
            raise InputError(
                f"save_configurations {every} is more than the {self.rows} steps of the first anneal, as anneals grow "
                "where no length is given: give steps, with which all have that length, or a smaller number"
            )
        super().__post_init__()

    @classmethod
    def model_of(cls, config: Anneal, device: str) -> Ising:
        steps = config.anneal.steps
        require(48 * steps, f"a schedule of {steps} temperatures", "choose fewer steps")
        return build_model(config.model, (config.run.replicas or USUAL) * config.anneal.slices_in_time)

    @classmethod
    def filled_in(cls, config: Anneal, model: Ising, device: str) -> Anneal:
        """Return a configuration with its default temperature ends and number of replicas filled in.

        If its file has been begun, on any device, both come from the file. A quantum anneal has the same default number
        of replicas on all devices, because the host searches for the best slice of each replica.
        """
        begun = tables_of_file(config.run.out, config.job)
        config, run = _overlapping(config, model, device).with_temperatures(model), config.run
        if run.replicas is not None:
            if config.anneal.populations:
                check_populations(config.anneal.populations, run.replicas)
            return config
        if begun:
            many = begun["run"]["replicas"]
        else:
            a, every = config.anneal, run.save_configurations
            saved = a.steps // every * model.sites // 8 if every else 0
            where, searches = "cpu" if a.quantum else device, a.ends_early and not (a.quantum or a.populations)
            many = replicas_that_fill(ModelSizes(model), where, a.steps * _BYTES_A_STEP + saved, searches)
            if a.populations:
                many = -(-max(many, POPULATION) // a.populations) * a.populations
        return replace(config, run=replace(run, replicas=min(many, _MOST_REPLICAS)))

    @cached_property
    def first(self) -> AnnealSettings:
        return self.config.anneal.of_anneal(0)

    @property
    def rows(self) -> int:
        return self.first.steps

    @property
    def sizes(self) -> Sizes:
        a = self.config.anneal
        return OfSlices(self.model, a.slices_in_time) if a.quantum else super().sizes

    def is_done(self, rows: int) -> bool:
        return super().is_done(rows) and not self.config.anneal.is_search

    @property
    def round_sweeps(self) -> int | None:
        return self.first.sweeps

    @property
    def split(self) -> str:
        slabs = "" if self.config.anneal.quantum else slabs_in_words(self.model, self.replicas or 1, self.device)
        return slabs or super().split

    def run(self, saving: Saving, watch: Watch, stored: Record | None) -> Run:
        return AnnealRun(self, saving, watch)

    def updates(self, replicas: int) -> int:
        a = self.config.anneal
        return 0 if a.ends_early else self.updates_of_first(replicas, a.anneals or 1)

    def updates_of_first(self, replicas: int, anneals: int) -> int:
        a = self.config.anneal
        lengths = sum(a.of_anneal(k).length for k in range(anneals)) if a.growing else anneals * a.length
        return self.model.sites * a.slices_in_time * self.model.samples * replicas * lengths


class AnnealRun(ReplicaRun):
    """An annealing run under way: a schedule of steps, with optional moves, observables and a population.

    A search repeats the schedule. Only its first anneal writes rows of the file.
    """

    def __init__(self, plan: AnnealPlan, saving: Saving, watch: Watch) -> None:
        self._anneal, run, a = plan, plan.config.run, plan.config.anneal
        self._moves = moves_of_run(plan.moves, a.moves, "ss.anneal")
        self._search = AnnealSearch(plan, watch.on_note)
        super().__init__(plan, saving, watch, engine_of(plan))
        self._begin_schedule()
        has = {"field": a.fields is not None, "gamma": a.quantum, "family": a.populations}
        has["staggered_magnetization"] = plan.model.is_bipartite
        size = plan.model.samples, run.number_of_replicas
        states_of = plan.model.sites * a.best_states
        contents = anneal_contents(*size, [part for part in has if has[part]], states_of, a.populations)
        own = functions_of(a.measure, plan.measure)
        self._own = OwnObservables(own, cast("Engine", self.engine), REPLICAS, seed=run.seed)
        self.set_contents(self._search.in_contents(self._own.in_contents(contents)))
        self._states = BestOfEach(self.engine) if a.best_states else None
        self._last_state: Arrays | None = None

    @property
    def _present(self) -> AnnealSettings:
        return self._anneal.config.anneal.of_anneal(self._search.number)

    def _begin_schedule(self) -> None:
        a, run, watch = self._present, self._anneal.config.run, self.watch
        engine, seed = cast("Engine", self.engine), seed_of_start(run.seed, self._search.number)
        self._population = Population(engine, a.populations, seed, run.rng_rounds) if a.populations else None
        self._frames = annealing(
            self.engine, a.ladder, a.sweeps, watch.on_updates, self._is_to_pause, a.fields, a.gammas,
            self._population, self._moves, seed,
        )  # fmt: skip

    def _is_to_pause(self) -> bool:
        return self.saving.due() or self._search.is_late()

    def _begin_anneal(self) -> None:
        del self._frames, self._population, self.engine  # frees memory for the next ones
        self.engine = engine_of(self._anneal, self._search.number)
        self._begin_schedule()

    def rows(self, recording: Recording) -> Iterator[FileRow | None]:
        self.begin(self._may_go_on)
        self._search.begin()
        while True:
            for frame in self._frames:
                if frame is not None:
                    self._keep_lowest(frame.measured, frame.field)
                    if not self._search.number:  # only the first anneal writes rows of the file
                        yield self._row(frame)
                elif self._search.is_late():
                    self._keep_lowest(measure(self.engine), getattr(self.engine, "field", 0.0))
                else:
                    yield None
                if self._search.is_over:
                    break
            last = self._search.is_last
            if last and self._may_go_on:
                self._last_state = self.state()  # a longer search continues from here
            self._search.end_anneal(self.engine.half_sweep // self.engine.colours, self._present.length)
            if last:
                return
            self._begin_anneal()

    def state(self) -> dict[str, npt.NDArray[Any]]:
        population = {} if self._population is None else self._population.state()
        own = {name: array.copy() for name, array in (self._lowest_of_each() | population).items()}
        return super().state() | own | self._search.state()

    def _lowest_of_each(self) -> dict[str, npt.NDArray[Any]]:
        return {} if self._states is None else {STATES: self._states.bits}

    def ended(self) -> tuple[Arrays, Arrays | None]:
        best = arrays_of_best(self.best.energy, self.best.spins)
        return {**best, **self._lowest_of_each(), **self._search.anneals()}, self._last_state

    @property
    def _may_go_on(self) -> bool:
        return self._search.recorded > 0 and not self._search.is_met

    def set_state(self, saved: Arrays) -> None:
        self._search.restore(saved)
        if self._search.number:
            self._begin_anneal()
        super().set_state(saved)
        if self._population is not None:
            self._population.restore(saved)
        if self._states is not None:
            self._states.energy, self._states.bits = self.best.energy.copy(), saved[STATES]

    def updates_done(self) -> int:
        return self._anneal.updates_of_first(self.engine.replicas, self._search.number) + super().updates_done()

    def _row(self, frame: AnnealFrame) -> FileRow:
        row: dict[str, Any] = {"step": frame.step, "temperature": frame.temperature, "field": frame.field}
        row |= {"gamma": frame.gamma, "mean_slice_energy": frame.mean_slice_energy}
        if self._population is not None:
            row |= self._population.state()
            row["population_free_energy"] = -frame.temperature * self._population.log_partition
        spins = present_spins(self.engine)
        model = self._anneal.model.in_field(frame.field) if frame.field and self._own.arrays else None
        own = self._own.row(spins, frame.step, beta=1 / frame.temperature, model=model)
        return self.with_spins(row | frame.measured._asdict() | own, spins)

    def _keep_lowest(self, measured: Measurement, field: float) -> None:
        energy = self.keep_lowest(measured, field)
        if self._states is not None:
            self._states.update(energy, self.engine)
        self._search.look_at(energy)


def engine_of(plan: AnnealPlan, number: int = 0) -> Engine | InField | BestSlices:
    """Return the replicas of a plan in the initial state of anneal ``number``."""
    run, a, replicas = plan.config.run, plan.config.anneal, plan.config.run.number_of_replicas
    dynamics = dynamics_of(plan, a.start, a.zero_acceptance)
    dynamics = replace(dynamics, seed=seed_of_start(run.seed, number))
    make = partial(
        create_engine, replicas=replicas, device=plan.device, threads=run.threads, round_sweeps=plan.round_sweeps
    )
    if a.quantum:
        model, start = trotter(plan.model, check_slices(a.slices), by_term=True, powers=False), plan.start
        if start is not None:  # every slice begins with these spins
            lines = model.graph.world_lines()
            given, start = start, np.empty((*start.shape[:2], model.sites), np.int8)
            start[..., lines] = given[..., None]
    else:
        model, start = plan.model, plan.start
    engine: Engine | InField = make(model, dynamics=dynamics, start=start)
    if a.fields is not None:
        engine = InField(engine, partial(make, dynamics=replace(dynamics, start="up")))
    return BestSlices(plan.model, engine, run.threads) if a.quantum else engine


def _overlapping(config: Anneal, model: Ising, device: str) -> Anneal:
    """Return a configuration with temperatures of the requested overlap; a pre-run finds them if they are missing."""
    a, run = config.anneal, config.run
    if a.overlap is None or a.temperatures is not None:
        return config
    last = model.once(automatic_temperatures).cold if a.t_stop is None else a.t_stop
    dynamics = Dynamics(run.seed, "random", a.zero_acceptance, run.rng_rounds)
    ladder = overlapping_temperatures(model, last, a.overlap, dynamics, device, run.threads)
    return replace(config, anneal=replace(a, temperatures=as_text(ladder)))


@public
@judges("model", "seed", none=True)
def anneal(
    model: Ising,
    temperatures: ArrayLike | str | None = None,
    sweeps: int | None = None,
    replicas: int | None = None,
    seed: int | None = 1,
    start: str | ArrayLike = "random",
    zero_acceptance: float = 1 - 2**-6,
    rng_rounds: int = 10,
    device: str = "auto",
    threads: int | None = None,
    on_updates: Callable[[int], None] | None = None,
    field: ArrayLike | str | None = None,
    target: ArrayLike | str | None = None,
    out: str | os.PathLike[str] | None = None,
    checkpoint_every: float = 60.0,
    progress: bool = False,
    measure: str | Mapping[str, Measure] | None = None,
    moves: str | Sequence[tuple[Move, int]] | None = None,
    *,
    t_start: float | None = None,
    t_stop: float | None = None,
    steps: int | None = None,
    schedule: str | None = None,
    populations: int = 0,
    overlap: float | None = None,
    quantum: bool = False,
    gamma_start: float | None = None,
    gamma_stop: float | None = None,
    slices: int | None = None,
    beta: float | None = None,
    best_states: bool = False,
    solution: str | os.PathLike[str] | None = None,
    time_limit: float | None = None,
    anneals: int | None = None,
    growing: bool | None = None,
    clusters: str | None = None,
    clusters_every: int | None = None,
    gpus: str | None = None,
    save_configurations: int = 0,
) -> AnnealResult:
    """Anneal replicas of a model through a list of temperatures.

    Args:
        model: Model to anneal, or a list of models. Model k of a list has the seed ``seed + k``.
        temperatures: In order of use, up or down, in the unit of the couplings, shape (steps,); or
            text in the notation of the command line, such as ``3:0.1:100g``. By default they follow
            from ``t_start``, ``t_stop``, ``steps`` and ``schedule``.
        sweeps: Sweeps at each temperature, 100 by default (a whole number from 1 to 10^12).
        replicas: Replicas of each sample (a whole number from 1 to 2^21). By default 128, on a GPU
            as many as fill it (in searches up to 8192); in searches of dense problems on a CPU 16,
            in a quantum anneal 128, in populations at least 4096.
        seed: Seed of the dynamics, 64 bits (a whole number from 0 to 2^64 - 1); None draws a fresh
            one.
        start: Initial spins: ``random``, ``up``, or configurations of +1 and -1, shape (sites,),
            (samples, sites) or (samples, replicas, sites).
        zero_acceptance: Acceptance of flips that cost no energy (a number above 0 and at most 1),
            by default 1 - 2^-6.
        rng_rounds: Philox rounds, 10 or 7.
        device: ``auto`` (a GPU if there is one), ``cpu``, ``cuda`` or ``gpu`` (the same as cuda).
        threads: CPU threads (a whole number from 1 to 4096), all by default. The result does not
            depend on their number.
        on_updates: Called at intervals with the number of spin updates since its last call.
        field: Uniform field at each temperature, shape (steps,), or text. It is added to the
            model's own fields and is part of the energies. A single temperature serves all fields.
        target: Search until this value is met, one for all samples or one for each. It is the cut
            of a MaxCut instance, else the energy including the constant of the problem.
        out: File for the run and its checkpoints; the same call, or ``resume``, completes an
            interrupted run. Without a file the run is kept in memory.
        checkpoint_every: Seconds between checkpoints, at least 0.
        progress: Show a progress bar on the terminal or in the notebook; elsewhere say when kernels
            are compiled.
        measure: User-defined observables, functions by name, as in ``ss.temper``. They return
            floats or whole numbers of shape (samples, replicas), optionally with further axes.
        moves: Moves, as in ``ss.temper``: ``[(move, 10)]``.
        t_start: First temperature in the unit of the couplings, at least 1e-300. By default 1.5
            times the root mean square local field; on graphs, the temperature at which flips at
            local minima have mean acceptance 0.15; with populations, the first one below infinity.
        t_stop: Last temperature, at least 1e-300. By default 0.05 times the root mean square local
            field; on graphs, the temperature at which the thermal energy is 1/64 of the height of
            minima.
        steps: Number of temperatures, 100 by default (a whole number from 1 to 10^9).
        schedule: Spacing of the temperatures: ``geometric``, the default, or ``linear``.
        populations: Population annealing: divide the replicas of each sample into this number of
            populations (up to 2^21), which are resampled when the temperature changes; 0 for none.
        overlap: Instead of ``steps``, the overlap of the energies of populations at neighbouring
            temperatures, from 0.1 to 0.99. A pre-run places the temperatures from infinity to
            ``t_stop``; each resampling then removes a share of 1 - overlap of the replicas.
        quantum: Simulated quantum annealing: lower a transverse field in slices of imaginary time,
            by default at a constant temperature.
        gamma_start: First transverse field of a quantum anneal in the unit of the couplings, at
            least 1e-300; by default the default ``t_start`` of a classical anneal.
        gamma_stop: Last transverse field, at least 1e-300; by default the default ``t_stop`` of a
            classical anneal.
        slices: Slices in imaginary time, an even number from 2 to 2^20, 32 by default.
        beta: Inverse temperature of a quantum anneal without temperatures, from 1e-100 to 1e+100; a
            slice has the temperature slices / beta. By default slices / (t_start / 3), with the
            default ``t_start`` of a classical anneal.
        best_states: Keep the lowest state of every replica, not only of every sample.
        solution: File for the lowest states by the labels of the problem, .txt or .json.
        time_limit: Search for this many seconds, at least 0.001, not counting the compiling of
            kernels.
        anneals: Largest number of anneals, each with its own random numbers (a whole number from 1
            to 2^20); series come from the first anneal. By default 1, or unlimited with a target or
            a time limit.
        growing: Begin with a short anneal and double the length of each next one, up to the given
            length. By default True in searches without a given length, else False.
        clusters: Cluster moves of Fortuin and Kasteleyn between sweeps: ``sw``, ``wolff`` or
            ``seeded``.
        clusters_every: Sweeps between cluster moves, 10 by default.
        gpus: GPUs that share the work: ``all``, a count, or a list of numbers such as ``0,2``; by
            default one for each process.
        save_configurations: Steps of the schedule between configurations that are saved (up to
            10^12), one bit per spin; 0 saves none.

    Returns:
        Energies and magnetisations after each temperature, and the lowest states met; for a list of
        models, a list with the same results as calls with one model each.

    Raises:
        InputError: for bad temperatures, numbers out of range, too little memory, and if the file
            holds another run.
        KeyboardInterrupt: on Ctrl-C; a run with ``out`` is saved first.
    """
    given = dict(locals())
    if isinstance(model, list | tuple):
        return _anneal_each(model, given)  # type: ignore[return-value]  # the annotation is for one model
    given["start"], spins = start_of_call(start, model, replicas)
    if replicas is None and spins is not None and spins.shape[1] > 1:
        given["replicas"] = spins.shape[1]
    result: AnnealResult = run_of_call(Anneal, model, given, spins, temperatures=check_temperatures)
    return result


def _anneal_each(models: Sequence[Any], given: dict[str, Any]) -> list[AnnealResult]:
    """Anneal several models and return their results, with the same bits as calls with one model each.

    Model k, counted from 0, has the seed ``seed + k``, modulo 2^64. On the CPU, large models are annealed in parallel,
    each on one thread; small models, and models on a GPU, run one after the other.
    """
    if given["out"] is not None or given["solution"] is not None:
        raise InputError("out and solution name a file for one model: leave them out, and save each result")
    on_cpu = resolve_device(given["device"] or RunSettings.device, given["gpus"]) == "cpu"
    side_by_side = on_cpu and _are_worth_threads(models, given["replicas"], given["sweeps"])
    pool = Threads(given["threads"] if side_by_side else 1)
    if side_by_side:
        given["threads"] = 1
    results: list[Any] = [None] * len(models)

    def anneal_one(k: int, seed: Any) -> None:
        try:
            results[k] = anneal(**given | {"model": models[k], "seed": seed})
        except InputError as error:
            raise InputError(f"model {k} of the list: {error}") from error

    seed = given["seed"]
    first = seed if seed is None else settings_of(RunSettings)["seed"].typed(seed)
    # threads of small models would wait for each other in Python
    pool.run(partial(anneal_one, k, seed) for k, seed in enumerate(seeds_of(first, len(models))))
    return results


def _are_worth_threads(models: Sequence[Any], replicas: int | None, sweeps: int | None) -> bool:
    """Return True if a temperature of each model takes much longer in compiled code than in Python."""
    sizes = [getattr(model, "sites", 0) * getattr(model, "samples", 0) for model in models]
    work = min(sizes, default=0) * (replicas or LANES) * (sweeps or AnnealSettings.sweeps)
    return len(models) > 1 and work >= WORTH_A_THREAD * LANES
