"""Runs of parallel tempering: ``ss.temper``, its result, the plan of a run, and searches for low states."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike

from spinsim.acceptance import check_temperatures
from spinsim.analysis.kinds import is_symmetric_glass
from spinsim.analysis.runs import Axis, temperatures
from spinsim.analysis.tables import lowest_in_words
from spinsim.engine import Engine, check_run
from spinsim.engine.choosing import choose, copies_of_search, groups_of_search
from spinsim.engine.measuring.correlations import Quantities
from spinsim.engine.measuring.cpu_reduction import Best
from spinsim.engine.moves.exchange import OF_SAMPLES
from spinsim.engine.moves.move import Move, moves_of_run
from spinsim.engine.protocols import Spins
from spinsim.engine.update import ModelSizes, Sizes
from spinsim.errors import InputError
from spinsim.inputs.arguments import judges, public
from spinsim.inputs.texts import count
from spinsim.jobs.calls import run_of_call
from spinsim.jobs.ladder.result import Floats, Integers, LadderResult, Temperatures, contents_of_run
from spinsim.jobs.ladder.run import COUNTED, LadderPlan, LadderRun, row_of, with_usual_moves
from spinsim.jobs.temper.settings import Temper, usual_restart
from spinsim.machine.memory import require
from spinsim.machine.threads import available_threads
from spinsim.model.ising import Ising, repeated
from spinsim.observables.quantities import quantities_of
from spinsim.parallel.session import others
from spinsim.record import Record
from spinsim.rng import HALF_SWEEP_BITS
from spinsim.run.execute import FileRow, ReplicaRun, Run
from spinsim.run.identity import tables_of_file
from spinsim.run.own_observables import Measure
from spinsim.run.plan import Saving, Watch, build_model, usual_path
from spinsim.run.recording import Recording
from spinsim.run.search import GROUP, Restarts, Search, Searched, search_group, seed_of_start
from spinsim.sampling import TemperFrame, Times
from spinsim.sampling.portions import updates_a_sweep
from spinsim.sampling.tempering import tempering_in_beta
from spinsim.settings.config import Tables
from spinsim.settings.shared import AUTO
from spinsim.solution import Lowest
from spinsim.store.contents import MEASUREMENTS, Arrays


@public
@dataclass(frozen=True, repr=False, kw_only=True)
class TemperResult(LadderResult, place="temperature"):
    """Measurements of a tempering run, sorted by copy and temperature.

    Attributes:
        temperature: Temperatures from the lowest to the highest, in the unit of the couplings, ``float64``
            (temperatures,).
        energy: Total energies in the unit of the couplings, ``float64`` (steps, samples, copies, temperatures).
        staggered_magnetization: Sum of spins on the sublattice of site 0 minus the sum on the other, integers of the
            shape of ``energy``; without copies if the lattice is not bipartite, and in older files.
        search: Sweeps, seconds and restarts of a search; None for other runs.
        in_time: None; quantum runs have measurements in time.
    """

    job = "temper"

    temperature: Floats
    energy: Floats
    staggered_magnetization: Integers = field(default_factory=lambda: np.empty((0, 0, 0, 0), np.int64))
    search: Searched | None = None

    in_time = None

    @property
    def places(self) -> Temperatures:
        return Temperatures(self.temperature)

    @property
    def axis(self) -> Axis:
        return temperatures(self.temperature)

    @property
    def has_staggered(self) -> bool:
        """True if staggered magnetisations were measured."""
        return bool(self.staggered_magnetization.shape[2])

    @property
    def _lowest(self) -> Lowest:
        return Lowest(self.best_energy, self.best_spins)

    @property
    def _findings(self) -> dict[str, str]:
        found = super()._findings if self.search is None else {}
        if self.best_energy is None:
            return found
        met = "" if self.search is None else self.search.verdict(self.model, self.best_energy.min(axis=1))
        return found | ({"target": met} if met else {}) | {"best": lowest_in_words(self.model, self.best_energy)}

    def u_kn(self, sample: int = 0) -> tuple[Floats, Integers]:
        """Reduced energies E_n / T_k of the series of a disorder sample, as ``pymbar.MBAR`` takes them.

        Numbers n of measurements run through the temperatures at which they were made, within these through time and
        copies. They are correlated in time: thin them by ``tau`` of the energy before errors are believed.

        Args:
            sample: Number of the disorder sample.

        Returns:
            ``u_kn``, (temperatures, measurements of all temperatures), and ``N_k``, the number of measurements made at
            each temperature, (temperatures,).

        Raises:
            InputError: for a sample that the run lacks.

        Source: M. R. Shirts, J. D. Chodera, J. Chem. Phys. 129, 124105 (2008), equation (11).
        """
        samples = self.energy.shape[1]
        if not 0 <= sample < samples:
            raise InputError(f"sample {sample!r} is none of this run's {count(samples, 'sample')}: they begin with 0")
        energy = self.energy[:, sample].reshape(-1, len(self.temperature)).T
        made = np.full(len(self.temperature), energy.shape[1])
        return energy.reshape(-1) / self.temperature[:, None], made


def read(record: Record, model: Ising) -> TemperResult:
    """Return the result of a record."""
    temperature, search = record[f"{MEASUREMENTS}/temperature"], Searched.read(record)
    return TemperResult.of(record, model, Temperatures(temperature), temperature=temperature, search=search)


class TemperSearch(ReplicaRun):
    """A search under way, with groups of copies in parallel. All groups restart if they find no lower state for long.

    First, only the first group searches, which is enough for easy problems; then the others join. The samples of the
    groups follow each other in the engine. The search checks all energies at every measurement. Measurements of the
    first group after thermalisation are rows of the file, until these are full or the search restarts.
    """

    engine: Engine

    def __init__(self, plan: TemperPlan, saving: Saving, watch: Watch, stored: Record | None) -> None:
        t, self._samples, choice = plan.config.temper, plan.model.samples, plan.choice
        self._search = Search(plan.model, t.target, t.time_limit, watch.on_note)
        self._ladder, placement, _ = plan.ladder(saving, watch, stored)
        self._moves = moves_of_run(plan.moves, t.moves, "ss.temper")
        _check_groups(plan, choice.copies * len(self._ladder))
        self._groups, self._only_first = t.number_of_groups, t.number_of_groups > 1
        first = -(-t.thermalize // t.measure_every)  # first measurement after thermalisation
        self._rows, self._measured = range(first, first + plan.rows), quantities_of(in_time=False)
        self.plan, self.saving, self.watch = plan, saving, watch
        self._start(0, 1)
        super().__init__(plan, saving, watch, self.engine)
        self.best = Best(self.engine.model, self.engine.replicas, self._samples)
        self._every, self._sweeps_of_first = t.measure_every, t.sweeps_of_first_group
        self._restarts, self._has_restarts = Restarts(t.restart_after or 0, self._samples), bool(t.restart_after)
        self._done, self._exchange = 0, self.engine.begin_exchange()()
        contents = contents_of_run(plan.model, choice, self._ladder, placement)
        without = () if self._has_restarts else Searched.OWN
        contents.groups[GROUP] = search_group(Searched, {"sample": self._samples}, self._search.target, without)
        self.set_contents(contents)

    def _start(self, number: int, groups: int) -> None:
        """Make the replicas of ``groups`` groups for start ``number``, and their unlimited measurements."""
        plan: Any = self.plan
        t, choice, seed = plan.config.temper, plan.choice, seed_of_start(plan.config.run.seed, number)
        engine: Engine = plan.engine_on(self._ladder, seed, groups)
        most = t.sweeps_of_first_group
        if groups == t.number_of_groups:  # up to the limit of the random counters
            most = 2**HALF_SWEEP_BITS // engine.colours // t.measure_every * t.measure_every
        times = Times(0, most, t.measure_every, t.swap_every)
        rows = () if number else self._rows
        how = self.watch.on_updates, self._is_to_pause, choice.wanted, rows, self._moves, seed
        self._frames = tempering_in_beta(engine, self._ladder.couplings, times, choice.copies, *how)
        self.engine = engine

    def _is_to_pause(self) -> bool:
        return self.saving.due() or self._search.is_late()

    def rows(self, recording: Recording) -> Iterator[FileRow | None]:
        self.begin(may_go_on=True)
        self._search.begin()
        while True:
            is_due = False
            for frame in self._frames:
                if frame is not None:
                    yield from self._look(frame)
                    if self._search.is_met:
                        return
                    is_due = self._restarts.is_due(self._done - self._restarts.before)
                    if is_due:
                        break
                elif self._done and self._search.is_late():
                    return
                elif self.saving.due():
                    yield None
            if is_due:
                self._restart()
            elif self._only_first:
                self._join()
            else:
                return

    def _join(self) -> None:
        first = self.engine.snapshot()
        self._make_all()
        every = self.engine.snapshot()
        self.engine.restore({name: _followed(array, every[name]) for name, array in first.items()})

    def _restart(self) -> None:
        """Restart with all groups; the exchange counts continue from the last measurement."""
        counted = {name: getattr(self._exchange, name) for name in COUNTED}
        self._restarts.begin(self._done - self._restarts.before)
        self._make_all()
        every = self.engine.snapshot()
        self.engine.restore(every | {name: _followed(array, 0 * every[name]) for name, array in counted.items()})

    def _make_all(self) -> None:
        del self._frames, self.engine  # frees memory for the next ones
        self._only_first = False
        self._start(self._restarts.number, self._groups)

    def _look(self, frame: TemperFrame) -> Iterator[FileRow]:
        """Process a measurement, which may become a row of the file."""
        energy, spins = self._lowest_of_groups(frame)
        self.best.update(energy, spins)
        sweeps = (frame.step + 1) * self._every
        self._done, self._exchange = self._restarts.before + sweeps, frame.exchange
        self._search.look(energy, self._done)
        self._restarts.look(energy.min(axis=1), sweeps)
        if frame.step in self._rows and not self._restarts.number:
            row = frame.step - self._rows.start
            every = row_of(self._measured, frame).items()
            first = {name: value[: self._samples] for name, value in every if np.ndim(value)}
            values = first | {"step": row, "sweep": (row + 1) * self._every}
            yield self.with_spins(values, frame.spins, frame.holder[: self._samples])

    def _lowest_of_groups(self, frame: TemperFrame) -> tuple[npt.NDArray[np.float64], Spins]:
        energy = frame.replica_energy
        if len(energy) == self._samples:
            return energy, frame.spins
        of_groups = energy.reshape(-1, self._samples, energy.shape[1])
        group = of_groups.argmin(axis=0)
        return of_groups.min(axis=0), lambda k, r: frame.spins(int(group[k, r]) * self._samples + k, r)

    def updates_done(self) -> int:
        return self._restarts.before * updates_a_sweep(self.engine) + super().updates_done()

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """State from which the search can continue, in the form of a checkpoint, with room for all groups."""
        state = super().state()
        if self._groups > 1 and self._only_first:
            rest = self._groups - 1
            state |= {n: np.concatenate([state[n], *[np.zeros_like(state[n])] * rest]) for n in OF_SAMPLES}
        counted = {path: getattr(self._exchange, name)[: self._samples] for name, path in COUNTED.items()}
        return state | counted | self._search.outcome(self._done) | self._restarts.state()

    def ended(self) -> tuple[Arrays, Arrays | None]:
        state = self.state()
        return state, None if self._search.is_met else state

    def set_state(self, saved: Arrays) -> None:
        self._restarts.restore(saved)
        if self._groups > 1:
            has_one = not self._restarts.number and saved["half_sweep"] <= self._sweeps_of_first * self.engine.colours
            if has_one:
                saved = {**saved, **{name: saved[name][: self._samples] for name in OF_SAMPLES}}
        if self._restarts.number or (self._groups > 1 and not has_one):
            self._make_all()
        super().set_state(saved)
        self._search.restore(saved)
        self._done, self._exchange = int(saved[f"{GROUP}/done"]), self.engine.begin_exchange()()


def _followed(first: npt.NDArray[Any], every: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Replace the first rows of ``every`` by ``first``; return a number unchanged."""
    return np.concatenate([first, every[len(first) :]]) if first.ndim else first


class TemperPlan(LadderPlan[Temper]):
    """A tempering run that is ready to begin."""

    @classmethod
    def model_of(cls, config: Temper, device: str) -> Ising:
        return build_model(config.model, (config.run.replicas or 1) * config.temper.places)

    @classmethod
    def filled_in(cls, config: Temper, model: Ising, device: str) -> Temper:
        """Fill in a configuration's missing ladder, size of a search, moves and choice of modes.

        If its file has been begun, on any device, these come from the file, also the ladder of a search.
        """
        t, run = config.temper, config.run
        begun: Tables = {}
        if None in (run.replicas, t.groups, t.restart_after, t.magnetization_modes, t.temperatures, t.houdayer):
            begun = tables_of_file(run.out, config.job)
        if begun and t.searches and t.houdayer is None and t.moves is None:
            config = replace(config, temper=replace(t, moves=begun.get(config.job, {}).get("moves")))
        elif t.houdayer == AUTO or (t.searches and t.houdayer is None and model.lattice is None):
            config = replace(config, temper=replace(t, houdayer=AUTO))
            copies = run.replicas
            if copies is None:  # for a search
                copies = 2 if t.temperatures is None else copies_of_search(ModelSizes(model), device, len(t.ladder))
            config = with_usual_moves(config, model, copies)
        if t.searches and t.temperatures is None:
            given = begun.get(config.job, {}).get("temperatures")
            config = replace(config, temper=replace(config.temper, temperatures=given))
        return _with_modes(_sized(config.with_temperatures(model), model, device, begun), model, begun)

    @property
    def wanted(self) -> Quantities:
        t = self.config.temper
        return Quantities(t.correlations, magnetization_modes=bool(t.magnetization_modes))

    @property
    def groups(self) -> Ising:
        return self.model.once(repeated, self.config.temper.number_of_groups)

    @property
    def sizes(self) -> Sizes:
        return ModelSizes(self.groups)

    def updates(self, replicas: int) -> int:
        return 0 if self.config.temper.searches else super().updates(replicas)

    def is_done(self, rows: int) -> bool:
        return super().is_done(rows) and not self.config.temper.searches

    def run(self, saving: Saving, watch: Watch, stored: Record | None) -> Run:
        kind = TemperSearch if self.config.temper.searches else LadderRun
        return kind(self, saving, watch, stored)


def _sized(config: Temper, model: Ising, device: str, begun: Tables) -> Temper:
    run, t = config.run, config.temper
    if None not in (run.replicas, t.groups, t.restart_after):
        return config
    sizes, of_run, of_job = ModelSizes(model), begun.get("run", {}), begun.get(config.job, {})
    copies, groups, after = run.replicas, t.groups, t.restart_after
    if copies is None:
        copies = of_run["replicas"] if begun else copies_of_search(sizes, device, len(t.ladder))
    if groups is None:
        threads = (run.threads or available_threads()) * (1 + len(others()))
        usual = groups_of_search(sizes, device, copies * len(t.ladder), threads)
        groups = of_job.get("groups", 1) if begun else usual
    if after is None:
        after = of_job.get("restart_after", 0) if begun else usual_restart(model.sites)
    return replace(config, run=replace(run, replicas=copies), temper=replace(t, groups=groups, restart_after=after))


def _with_modes(config: Temper, model: Ising, begun: Tables) -> Temper:
    """Decide whether modes of the magnetisation are measured, if the configuration leaves it open."""
    t, out = config.temper, config.run.out
    if t.magnetization_modes is not None:
        return config
    having, lacking = (replace(config, temper=replace(t, magnetization_modes=choice)) for choice in (True, False))
    if begun:
        return having if begun[config.job].get("magnetization_modes", True) else lacking
    if not t.correlations or model.embedding is None or not is_symmetric_glass(model):
        return having
    if out is None and config.model.instance is None:  # of a command, whose file is named by its identity
        paths = [usual_path(one, model.name, one.sha256(None)) for one in (having, lacking)]
        if [os.path.lexists(path) for path in paths] == [True, False]:
            return having
    return lacking


def _check_groups(plan: TemperPlan, replicas: int) -> None:
    sizes, groups = plan.sizes, count(plan.config.temper.number_of_groups, "group")
    if plan.device == "cpu":
        subject = f"a search of {sizes.sites} sites x {plan.model.samples} samples x {replicas} replicas x {groups}"
        require(choose(sizes, replicas).needed_bytes(sizes, replicas), subject, "give fewer groups or replicas")
    check_run(plan.groups, replicas, 0, 1)


@public
@judges("model", "seed", none=True)
def temper(
    model: Ising,
    temperatures: ArrayLike | str | None = None,
    sweeps: int = 10_000,
    thermalize: int = 2000,
    replicas: int | None = None,
    measure_every: int = 10,
    swap_every: int = 1,
    seed: int | None = 1,
    start: str | ArrayLike = "random",
    zero_acceptance: float = 1 - 2**-6,
    rng_rounds: int = 10,
    device: str = "auto",
    threads: int | None = None,
    on_updates: Callable[[int], None] | None = None,
    moves: str | Sequence[tuple[Move, int]] | None = None,
    correlations: bool | None = None,
    target: ArrayLike | str | None = None,
    out: str | os.PathLike[str] | None = None,
    checkpoint_every: float = 60.0,
    progress: bool = False,
    measure: str | Mapping[str, Measure] | None = None,
    *,
    magnetization_modes: bool | None = None,
    clusters: str | None = None,
    clusters_every: int | None = None,
    houdayer: str | int | None = None,
    series: str = "all",
    series_limit: float = 256.0,
    groups: int | None = None,
    restart_after: int | None = None,
    time_limit: float | None = None,
    solution: str | os.PathLike[str] | None = None,
    gpus: str | None = None,
    save_configurations: int = 0,
    until_equilibrated: bool = False,
) -> TemperResult:
    """Parallel tempering in equilibrium.

    Args:
        model: Model to simulate.
        temperatures: From the lowest to the highest, in the unit of the couplings, shape
            (temperatures,); or text in the notation of the command line, such as
            ``auto:0.7:2.0``. By default 16 in equal ratios: for ferromagnets and antiferromagnets
            from 0.75 to 1.3 times the transition temperature, for glasses from 0.3 to 0.8 times the
            root mean square local field. Searches and graphs take 32 to 128 over the range of an
            anneal.
        sweeps: Measured sweeps; in a search the recorded sweeps, after which it continues (a whole
            number from 1 to 10^12).
        thermalize: Sweeps before the first measurement; in a search before the first recorded row.
        replicas: Copies at each temperature (a whole number from 1 to 2^21), 2 by default. A search
            takes 1 to 8 copies, so that a group has 128 replicas (1 for dense problems on a CPU),
            and several ``groups``; if ``replicas`` is given, it has one group by default.
        measure_every: Sweeps between measurements.
        swap_every: Sweeps between exchanges of temperatures.
        seed: Seed of the dynamics, 64 bits (a whole number from 0 to 2^64 - 1); None draws a fresh
            one.
        start: Initial spins: ``random``, ``up``, or configurations of +1 and -1, shape (sites,),
            (samples, sites) or (samples, copies times temperatures, sites). Replica c T + k is copy
            c at temperature k of T.
        zero_acceptance: Acceptance of flips that cost no energy (a number above 0 and at most 1),
            by default 1 - 2^-6.
        rng_rounds: Philox rounds, 10 or 7.
        device: ``auto`` (a GPU if there is one), ``cpu``, ``cuda`` or ``gpu`` (the same as cuda).
        threads: CPU threads (a whole number from 1 to 4096), all by default. For a given number of
            groups, the result does not depend on their number.
        on_updates: Called at intervals with the number of spin updates since its last call.
        moves: Moves, such as ``Houdayer``, ``SwendsenWang``, ``Wolff``, ``SeededClusters`` or
            user-defined objects with a ``name`` and ``apply(batch)``, each with the number of
            sweeps between two moves: ``[(Houdayer(), 16)]`` or ``"houdayer:16"``. User-defined
            moves are always given as objects.
        correlations: Measure link overlaps and the smallest Fourier modes. By default True, and
            False in searches.
        target: Search until this value is met, one for all samples or one for each. It is the cut
            of a MaxCut instance, else the energy including the constant of the problem.
        out: File for the run and its checkpoints; the same call, or ``resume``, completes an
            interrupted run. Without a file the run is kept in memory.
        checkpoint_every: Seconds between checkpoints, at least 0.
        progress: Show a progress bar on the terminal or in the notebook; elsewhere say when kernels
            are compiled.
        measure: User-defined observables, functions by name: ``{"parity": parity}``. Each takes a
            batch of spins (``spins``, ``grid``, ``axes``, ``model``, ``xp``) and returns floats or
            whole numbers of shape (samples, copies, temperatures), optionally with further axes. It
            is called at every measurement. As text: ``module:function``.
        magnetization_modes: Also measure Fourier modes of the magnetisation, for its correlation
            length. By default False for glasses with symmetric +-J or Gaussian couplings in zero
            field, where these modes are noise, else True.
        clusters: Cluster moves of Fortuin and Kasteleyn between sweeps: ``sw``, ``wolff`` or
            ``seeded``.
        clusters_every: Sweeps between cluster moves, 10 by default.
        houdayer: Sweeps between Houdayer moves, which exchange clusters between copies at the same
            temperature. ``auto`` makes them where they pay, with two copies or more on graphs of up
            to three dimensions; 0 for none. By default none; in searches on graphs ``auto``.
        series: Series to keep: ``all``, ``none``, or names such as ``energy,overlap``; averages
            always come from sums over all measurements.
        series_limit: Largest size of the series in megabytes, at least 0.001. A longer run adds up
            all measurements and keeps every second, fourth, ... row, in at most a quarter of the
            limit.
        groups: Independent groups of copies in a search (a whole number from 1 to 2^18); series,
            exchanges and round trips come from the first group. By default 1; in searches without
            ``replicas`` one for each CPU thread, or as many as fill a GPU.
        restart_after: Sweeps without a lower state after which a search restarts with new random
            numbers, doubled after each restart (up to 10^12); 0 for never. By default 50000 in
            searches, beyond 4000 sites 250 for each site.
        time_limit: Search for this many seconds, at least 0.001, not counting the compiling of
            kernels.
        solution: File for the lowest states by the labels of the problem, .txt or .json.
        gpus: GPUs that share the work: ``all``, a count, or a list of numbers such as ``0,2``; by
            default one for each process.
        save_configurations: Measurements between configurations that are saved (up to 10^12), one
            bit per spin; 0 saves none.
        until_equilibrated: True extends the slow samples of the finished run alone, as
            ``resume(out, slow_samples=True)`` does, until none is slow. There is no limit but
            Ctrl-C; the same call completes what was interrupted. Needs ``out``.

    Returns:
        Energies, magnetisations and overlaps of every copy at every temperature, and the acceptance
        rates of exchanges. With ``until_equilibrated`` each sample is from its longest run.

    Raises:
        InputError: for bad temperatures, numbers out of range, too little memory, and if the file
            holds another run.
        KeyboardInterrupt: on Ctrl-C; a run with ``out`` is saved first.
    """
    result: TemperResult = run_of_call(Temper, model, locals(), temperatures=check_temperatures)
    return result
