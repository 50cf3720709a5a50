"""Transfer-matrix runs: ``ss.transfer``, its result, and the tasks of a run, one for each sample and coupling."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import islice
from math import prod
from operator import itemgetter
from queue import SimpleQueue
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike

from spinsim.analysis.runs import Strips
from spinsim.engine.devices import gpu_numbers
from spinsim.inputs.arguments import judges, public
from spinsim.inputs.texts import count
from spinsim.jobs.calls import run_of_call
from spinsim.jobs.transfer.settings import Transfer
from spinsim.machine.threads import Threads, available_threads
from spinsim.model.ising import Ising
from spinsim.parallel.group import Member, make_group
from spinsim.parallel.session import InThread, Kept, Place, answers, others
from spinsim.record import Array, Record
from spinsim.run.execute import FileRow, Run
from spinsim.run.plan import Plan, Saving, Watch, build_model
from spinsim.run.recording import Recording
from spinsim.store.contents import ENERGY, STEP, Arrays, Series, group_of, rows_in
from spinsim.transfer_matrix.lanczos import NotConvergedError
from spinsim.transfer_matrix.layer import Points, check_couplings, positive, read_points, sectors_of
from spinsim.transfer_matrix.spectrum import RESOLUTION, Settings, Solver, SplitSolver, choose

SPECTRUM: Final = "spectrum"  # group of the levels
MOST_NOISE: Final = 0.01  # largest relative uncertainty of a correlation length that counts
_FIELDS: Final = {"log_eigenvalue": "levels"}  # series whose field in the result has another name
_OF_POINT: Final = ("sample", "k", "k_time")


def transfer_contents(sites: int, bonds: int, sectors: tuple[str, ...], levels: int) -> Record:
    """Return an empty record, with a row for each sample and temperature, sample by sample."""
    state = "sector", "level"
    rows: list[tuple[str, tuple[str, ...], type, str, str]] = [
        ("sample", (), np.int64, "disorder sample", "1"),
        ("k", (), np.float64, "1 / T, which multiplies the couplings of the layer", "k_B / coupling unit"),
        ("k_time", (), np.float64, "coupling between layers", "1"),
        ("log_eigenvalue", state, np.float64, "ln of the eigenvalue of the transfer matrix", "1"),
        ("residual", state, np.float64, "|T x - lambda x| / lambda", "1"),
        ("correlation_length", state, np.float64, "1 / ln(lambda_0 / lambda), in layers", "1"),
        ("gap", (), np.float64, "ln of the ratio of the two largest eigenvalues", "1"),
        ("free_energy_per_site", (), np.float64, "-ln(lambda_0) / (N k)", ENERGY),
        ("energy_per_site", (), np.float64, "energy per site, of bonds in the layer and to the next", ENERGY),
        ("products", ("sector",), np.int64, "products with the transfer matrix", "1"),
        ("sigma", ("level", "site"), np.float64, "<0| s_i |level>; level of the odd sector where there are two", "1"),
    ]
    if bonds:
        rows.append(("sigma_sigma", ("level", "bond"), np.float64, "<0| s_i s_j |level> of the first sector", "1"))
    lengths = {"sector": len(sectors), "level": levels, "site": sites, "bond": bonds}
    series = [Series(name, (STEP, *axes), kind, words, units) for name, axes, kind, words, units in rows]
    names = Array(np.array([name.encode() for name in sectors]), ("sector",), "sector")
    return Record({}, {}, {SPECTRUM: group_of(series, lengths, {"sector": names})})


def values_of(contents: Record) -> list[str]:
    """Return the names of the arrays with rows, except those that only identify a row."""
    return [name for name in rows_in(contents.groups[SPECTRUM]) if name not in _OF_POINT]


def place_of(step: Any, k: npt.NDArray[np.float64], k_time: npt.NDArray[np.float64]) -> dict[str, Any]:
    """Return the sample and the couplings of rows with these numbers, by names of series."""
    sample, point = divmod(step, len(k))
    return {"step": step, "sample": sample, "k": k[point], "k_time": k_time[point]}


@public
@dataclass(frozen=True, repr=False)
class TransferResult(Strips):
    """Leading eigenvalues of transfer matrices, of each disorder sample at each temperature.

    NaN stands for missing numbers: levels that did not converge, quantities that need both sectors in a run with one,
    and matrix elements if vectors were too long to keep. ``dataset()`` has a step for each sample and point;
    ``dataset().set_index(step=("sample", "k")).unstack("step")`` has axes of samples and couplings instead.

    Attributes:
        model: One layer.
        k: 1 / T, the factor of the couplings of the layer, in 1 / unit of the couplings, ``float64`` (points,).
        k_time: Coupling between layers, without unit, (points,).
        sectors: ``even`` and ``odd`` under the flip of all spins, or one of them; ``all`` in a field.
        levels: ln of the eigenvalues, ``float64`` (samples, points, sectors, levels).
        residual: |T x - lambda x| / lambda, of the shape of ``levels``, also for levels that did not converge. NaN if
            no vector was found.
        correlation_length: 1 / ln(lambda_0 / lambda) in layers, of the shape of ``levels``.
        gap: ln of the ratio of the two largest eigenvalues of all sectors, in 1 / layers, (samples, points).
        free_energy_per_site: -ln(lambda_0) / (N k) in the unit of the couplings, (samples, points).
        energy_per_site: Energy per site in the unit of the couplings, (samples, points).
        products: Number of products with the transfer matrix, ``int64`` (samples, points, sectors).
        sigma: <0| s_i |level>, (samples, points, levels, sites), without unit.
        sigma_sigma: <0| s_i s_j |level>, (samples, points, levels, bonds).
        record: The whole run as named arrays, as stored in its file.
        job: Name of the job, the command that makes such runs.
        series_group: Group of ``record`` that has the levels.
    """

    job = "transfer"
    series_group = SPECTRUM

    model: Ising
    k: npt.NDArray[np.float64]
    k_time: npt.NDArray[np.float64]
    sectors: tuple[str, ...]
    levels: npt.NDArray[np.float64]
    residual: npt.NDArray[np.float64]
    correlation_length: npt.NDArray[np.float64]
    gap: npt.NDArray[np.float64]
    free_energy_per_site: npt.NDArray[np.float64]
    energy_per_site: npt.NDArray[np.float64]
    products: npt.NDArray[np.int64]
    sigma: npt.NDArray[np.float64]
    sigma_sigma: npt.NDArray[np.float64]
    record: Record = field(default_factory=Record)

    @property
    def log_eigenvalue(self) -> dict[str, npt.NDArray[np.float64]]:
        """``levels`` by sector, shape (levels, samples, points), without the axes of samples or points of length 1."""
        first = np.moveaxis(self.levels, -1, 0)  # (levels, samples, points, sectors)
        shape = len(first), *(n for n in first.shape[1:3] if n > 1)
        return {name: first[..., i].reshape(shape) for i, name in enumerate(self.sectors)}

    @property
    def there(self) -> npt.NDArray[np.bool_]:
        """Mask of the samples and points that have been computed, (samples, points)."""
        return np.asarray((self.products > 0).all(axis=2))

    @property
    def incomplete(self) -> npt.NDArray[np.bool_]:
        """Mask of the computed samples and points with levels that did not converge, (samples, points)."""
        return np.asarray(self.there & np.isnan(self.levels).any(axis=(2, 3)))

    @property
    def in_noise(self) -> npt.NDArray[np.bool_]:
        """Mask of the correlation lengths that rounding or incomplete convergence may have changed by more than 1 %.

        The mask is of the shape of ``correlation_length``. The error of an eigenvalue is at most its residual, and at
        most residual^2 / distance to the next of its sector.
        """
        off = np.nan_to_num(self.residual)
        if self.levels.shape[-1] > 1:
            apart = np.nan_to_num(self.levels[..., 0] - self.levels[..., 1])
            off[..., 0] = np.minimum(off[..., 0], off[..., 0] ** 2 / np.maximum(apart, RESOLUTION))
        with np.errstate(divide="ignore"):
            distance = 1 / self.correlation_length
        return np.asarray(RESOLUTION + off[:, :, :1, :1] + off > MOST_NOISE * distance)

    @property
    def planned_rows(self) -> int:
        """Number of samples times points of the complete run."""
        asked = self.config.get("transfer")
        if asked is None:
            return self.model.samples * len(self.config.get("k", self.k))
        points = read_points(asked["temperature"], asked["k"], asked["k_time"], self.model)
        return self.model.samples * len(points.k)

    @property
    def temperature(self) -> npt.NDArray[np.float64]:
        """1 / k in the unit of the couplings, shape (points,)."""
        return 1 / self.k

    @property
    def _run_facts(self) -> dict[str, str]:
        known = self.k[np.isfinite(self.k)]
        ends = f"from k = {known.min():.6g} to {known.max():.6g}" if known.size > 1 else ""
        at = f" k = {known[0]:.6g}" if known.size == 1 else ""
        return {
            "couplings": f"{count(len(self.k), 'coupling')}{at} {ends}".strip(),
            "sectors": " and ".join(self.sectors),
            "levels": count(self.levels.shape[-1], "level"),
            "rows": f"{int(self.there.sum())} of {count(self.planned_rows, 'row')}",
        }

    @property
    def _findings(self) -> dict[str, str]:
        lengths = np.where(self.in_noise, np.nan, self.correlation_length)
        found = {}
        if np.isfinite(lengths).any():
            sample, point, *_ = np.unravel_index(np.nanargmax(lengths), lengths.shape)
            found = {"length": f"longest correlation length {np.nanmax(lengths):.6g} layers"}
            where = [f"k = {self.k[point]:.6g}"] * (len(self.k) > 1) + [f"sample {sample}"] * (len(lengths) > 1)
            found["length"] += f" at {', '.join(where)}" if where else ""
        lacking = int(self.incomplete.sum())
        levels = f"{count(lacking, 'row')} with levels that did not converge" if lacking else "all levels converged"
        return found | ({"convergence": levels} if self.there.any() else {})


def read(record: Record, model: Ising) -> TransferResult:
    """Return the result of a record, as (samples, points, ...), with NaN and 0 for rows that do not exist yet."""
    group = record.group(SPECTRUM)
    points = max(1, int((group["sample"] == 0).sum()))
    shape, table = (model.samples, points), {}
    sectors = tuple(name.decode() for name in group["sector"].tolist())
    levels = group["log_eigenvalue"].shape[2]
    contents = transfer_contents(model.sites, model.bonds, sectors, levels)
    for name in values_of(contents):
        rows = np.asarray(group[name])
        whole = np.full((prod(shape), *rows.shape[1:]), np.nan if rows.dtype.kind == "f" else 0, rows.dtype)
        whole[: len(rows)] = rows
        table[_FIELDS.get(name, name)] = whole.reshape(*shape, *rows.shape[1:])
    table.setdefault("sigma_sigma", np.empty((*shape, levels, 0)))
    ladder = {name: np.full(points, np.nan) for name in ("k", "k_time")}
    for name, values in ladder.items():
        values[: len(group[name])] = group[name][:points]
    return TransferResult(model=model, record=record, sectors=sectors, **ladder, **table)


OnProduct = Callable[[], None]
Saved = dict[str, npt.NDArray[Any]]
AnySolver = Solver | SplitSolver
SolvedRow = tuple[dict[str, Any], list[NotConvergedError]]
"""A row of the file, with NaN for unconverged levels, and an error for each sector that did not converge."""

SMALL_BITS: Final = 17  # largest layers for which several tasks run in parallel, one thread each
SAVED_BYTES: Final = 2**31  # of both checkpoints of a task; a longer task restarts
_WAITING: Final = 64  # finished tasks that wait for an earlier one
_SOLVER: Final[Callable[..., Solver]] = Solver


class Work:
    """All tasks of a run: every sample at every point, on a device as ``resolve_device`` returns it."""

    def __init__(
        self, model: Ising, points: Points, sector: str, settings: Settings, threads: int | None, device: str = ""
    ) -> None:
        self.model, self.points, self.settings = model, points, settings
        self.sectors = sectors_of(model, sector)
        for extreme in (np.min, np.max):
            check_couplings(model, float(extreme(points.k)), float(extreme(points.k_time)))
        self.rows = model.samples * len(points.k)  # number of tasks
        self.contents = transfer_contents(model.sites, model.bonds, self.sectors, settings.eigenvalues)
        self._threads = Threads(threads if settings.device == "cpu" else 1)
        small = settings.device == "cpu" and model.sites <= SMALL_BITS
        at_once = min(self._threads.count, self.rows) if small else 1
        self._device = device or settings.device
        chosen = choose(model.sites, self.sectors, settings, self._device, at_once)
        # devices that share each vector, room for vectors in memory, and a sentence on how they share
        self._seats, self.room, self.split = chosen
        self._threads_given, self.devices = threads, len(self._seats)
        self._at_once = at_once if self.devices == 1 else 1
        ranks = min(1 + len(others()), self.rows)
        if small and self.devices == 1 and ranks > 1:
            idle = 1 + len(others()) - ranks
            self.split = f"{self.rows} samples and couplings over {ranks} ranks"
            self.split += f", which leaves {count(idle, 'rank')} idle" if idle else ""
            self._at_once = self.rows

    @property
    def caution(self) -> str:
        """Limitation of the results by too little memory, in a sentence; empty if there is none."""
        if self.room.basis or self.room.fits_eigenvectors:
            return ""
        return (
            f"memory has no room for {self.settings.eigenvalues} eigenvectors: degenerate levels are found once and "
            "missed ones are not searched for, ask for fewer eigenvalues to be sure of them"
        )

    @property
    def where(self) -> dict[str, str]:
        """Root attributes of a file that name the devices of the run."""
        kind = "cpu"
        if self._device != "cpu":
            from spinsim.cuda.device import names

            kind = names()[gpu_numbers(self._device)[0]]
        name = f"{self.devices} x {kind}" if self.devices > 1 else kind
        return {"engine": f"{'cpu' if self._device == 'cpu' else 'cuda'}, transfer matrix", "devices": name}

    def solver(self, step: int, on_product: OnProduct | None = None) -> AnySolver:
        given = self.model, *self._task(step)
        if self.devices == 1 and self._seats[0].gpu is None:
            return _SOLVER(*given, self._threads, on_product or (lambda: None))
        return SplitSolver(self._members, given, self._threads_given, on_product)

    def _task(self, step: int) -> tuple[Any, ...]:
        place = place_of(step, *self.points)
        ladder = float(place["k"]), float(place["k_time"])
        return place["sample"], *ladder, self.sectors, self.settings, self.room

    @cached_property
    def _members(self) -> list[Member]:
        return make_group(self._seats)

    def row(self, step: int, values: dict[str, Any], problems: list[NotConvergedError]) -> SolvedRow:
        own = {name: values[name] for name in values_of(self.contents)}
        return place_of(step, *self.points) | own, problems

    def solved(self, steps: Iterable[int], to_stop: Callable[[], bool] = lambda: False) -> Iterator[SolvedRow]:
        """Yield rows in order; after ``to_stop`` returns True, the next product raises KeyboardInterrupt."""
        ended = threading.Event()

        def on_product() -> None:
            if ended.is_set() or to_stop():
                raise KeyboardInterrupt

        if self._at_once == 1:
            for step in steps:
                yield self.row(step, *_solved(self.solver(step, on_product)))
            return
        workers, free, to_come = self._workers(on_product), SimpleQueue[_Worker](), iter(steps)
        for worker in workers:
            free.put(worker)

        def solve(step: int) -> SolvedRow:
            worker = free.get()
            try:
                task = worker.model, worker.on_product, *self._task(step)
                return self.row(step, *worker.place.request(_solve, *task)())
            finally:
                free.put(worker)

        pool = ThreadPoolExecutor(len(workers))
        try:
            waiting = [pool.submit(solve, step) for step in islice(to_come, max(_WAITING, 2 * len(workers)))]
            while waiting:
                yield waiting.pop(0).result()
                waiting += [pool.submit(solve, step) for step in islice(to_come, 1)]
        finally:
            ended.set()
            pool.shutdown(cancel_futures=True)

    def _workers(self, on_product: OnProduct) -> list[_Worker]:
        """Return a thread for each processor of all ranks, or for each task, taken from the ranks in turn."""
        own = Kept(self.model)
        numbered = [(k, _Worker(InThread(), own, on_product)) for k in range(self._threads.count)]
        threads = answers([place.request(_threads_of, self._threads_given) for place in others()])
        for place, there in zip(others(), threads, strict=True):
            model = place.request(Kept, self.model)()
            numbered += [(k, _Worker(place.thread(1 + k), model, None)) for k in range(there)]
        return [worker for _, worker in sorted(numbered, key=itemgetter(0))][: self._at_once]

    @property
    def saves_on_the_way(self) -> bool:
        """True if a task is long enough, and its vectors few enough, to write checkpoints within it."""
        dimension = 1 << (self.model.sites - (self.sectors != ("all",)))
        needed = (self.room.basis + self.settings.eigenvalues) * dimension * 8 * 2
        return self.model.sites > SMALL_BITS and bool(self.room.basis) and needed <= SAVED_BYTES


class _Worker(NamedTuple):
    """A thread that solves tasks, with the layers in its process; ``on_product`` is None at other ranks."""

    place: Place
    model: Any
    on_product: OnProduct | None


def _threads_of(given: int | None) -> int:
    return given or available_threads()


def _solve(model: Ising, on_product: OnProduct | None, *task: Any) -> tuple[dict[str, Any], list[NotConvergedError]]:
    return _solved(_SOLVER(model, *task, Threads(1), on_product or (lambda: None)))


def _solved(solver: AnySolver) -> tuple[dict[str, Any], list[NotConvergedError]]:
    while not solver.done:
        solver.advance()
    return solver.row(), solver.problems


def saved_state(step: int, solver: AnySolver) -> Saved:
    return solver.snapshot() | {"row": np.array(step)}


class TransferPlan(Plan[Transfer]):
    """A transfer-matrix run that is ready to begin."""

    @classmethod
    def of(cls, config: Transfer) -> TransferPlan:
        plan = super().of(config)
        plan.work()
        return plan

    @classmethod
    def model_of(cls, config: Transfer, device: str) -> Ising:
        if config.model.instance is None:
            sectors = ("all",) if config.model.field else ("even", "odd")
            choose(prod(config.model.shape), sectors, config.transfer.settings(config.run.seed, device), device)
        return build_model(config.model, 1)

    @property
    def rows(self) -> int:
        return self.work().rows

    @property
    def split(self) -> str:
        return self.work().split

    def work(self) -> Work:
        config, t = self.config, self.config.transfer
        settings = t.settings(config.run.seed, self.device)
        return Work(self.model, t.points(self.model), t.sector, settings, config.run.threads, self.device)

    def run(self, saving: Saving, watch: Watch, stored: Record | None) -> Run:
        return TransferRun(self.work(), saving, watch)


class TransferRun(Run):
    """The tasks of a run under way.

    In memory, levels that do not converge end the run. In a file they become NaN, with a warning, and the run stays
    unfinished. Rows that lack levels are retried when all others exist, and are replaced if that loses no level.
    """

    rewrites_rows = True

    def __init__(self, work: Work, saving: Saving, watch: Watch) -> None:
        self._work, self._saving, self._watch = work, saving, watch
        self.contents, self.planned, self.where = work.contents, work.rows, work.where
        self._saved: Arrays = {}
        self._under_way: tuple[int, AnySolver] | None = None  # task in the checkpoints, with its solver

    def restore(self, saved: Arrays) -> None:
        self._saved = saved

    def state(self) -> Arrays:
        return {} if self._under_way is None else saved_state(*self._under_way)

    def rows(self, recording: Recording) -> Iterator[FileRow | None]:
        """Yield the missing rows of a file, or if there are none, retry the rows with levels that did not converge."""
        work, watch, begun, in_file = self._work, self._watch, recording.rows, recording.file is not None
        if work.caution:
            watch.on_warning(work.caution)
        known = np.isfinite(recording.column(f"{SPECTRUM}/log_eigenvalue")[:begun]) if begun else np.ones((0, 1, 1))
        lacking = set(np.flatnonzero(~known.all(axis=(1, 2))).tolist())
        steps = range(begun, work.rows) if begun < work.rows else sorted(lacking)
        watch.on_stage("", work.rows)
        if begun:
            watch.on_updates(work.rows - len(steps))
        on_the_way = in_file and work.saves_on_the_way
        solved = self._one_by_one(steps) if on_the_way else work.solved(steps, lambda: self._saving.asked_to_stop)
        try:
            for each in solved:
                if each is None:
                    yield None
                    continue
                row, problems = each
                if problems and not in_file:
                    raise problems[0]
                for problem in problems:
                    watch.on_warning(str(problem))
                (lacking.add if problems else lacking.discard)(row["step"])
                if row["step"] >= begun or np.isfinite(row["log_eigenvalue"])[known[row["step"]]].all():
                    yield row
                watch.on_updates(1)
                if self._saving.due():
                    yield None
        except KeyboardInterrupt:
            if not on_the_way:
                yield None
            raise
        self.is_complete = not lacking

    def _one_by_one(self, steps: Iterable[int]) -> Iterator[SolvedRow | None]:
        """Solve tasks in succession; yield None when a checkpoint within a task is due."""
        for step in steps:
            solver = self._work.solver(step)
            if int(self._saved.get("row", -1)) == step and _fits(self._saved, saved_state(step, solver)):
                solver.restore(dict(self._saved))
            while not solver.done:
                solver.advance()
                if self._saving.due() and not solver.done:
                    self._under_way = step, solver
                    yield None
            self._under_way = None
            solved = self._work.row(step, solver.row(), solver.problems)
            del solver  # frees its vectors before the next ones are allocated
            yield solved


def _fits(saved: Arrays, like: Arrays) -> bool:
    """True if a checkpoint has as many vectors as memory has room for now."""
    return {name: np.shape(one) for name, one in saved.items()} == {name: np.shape(one) for name, one in like.items()}


@public
@judges("model", "seed", none=True)
def transfer(
    model: Ising,
    k: ArrayLike | str | None = None,
    temperature: ArrayLike | str | None = None,
    k_time: ArrayLike | str | None = None,
    eigenvalues: int = 2,
    sector: str = "both",
    tolerance: float = 1e-10,
    method: str = "auto",
    basis: int | None = None,
    seed: int | None = 1,
    device: str = "auto",
    threads: int | None = None,
    most_steps: int = 5000,
    on_rows: Callable[[int], None] | None = None,
    out: str | os.PathLike[str] | None = None,
    checkpoint_every: float = 60.0,
    progress: bool = False,
    *,
    gpus: str | None = None,
) -> TransferResult:
    """Find the leading eigenvalues of the transfer matrix of a layer, for each sample.

    T = D B D with D = exp(k/2 (sum J s s + sum h s)) and bonds k_time between the layers.

    Args:
        model: One layer, of up to about 30 sites: a chain for strips, a square for bars, or any
            graph.
        k: 1 / T, one or many, or text in the notation of the command line, such as ``0.2:0.3:11``.
        temperature: Instead of k, in the unit of the couplings; by default the transition of the
            ferromagnet.
        k_time: Coupling between layers, without unit, one number or one for each k; by default k
            times the |J| that all bonds of the layer share (times 1 if they differ).
        eigenvalues: Levels of each sector (a whole number from 1 to 1000).
        sector: ``even`` or ``odd`` under the flip of all spins, or ``both``; in a field there is
            one sector, ``all``.
        tolerance: Residual |T x - lambda x| / lambda below which a level has converged, from 1e-14
            to 0.1.
        method: Algorithm that applies T: ``butterfly``, ``kronecker`` or ``auto``.
        basis: Number of stored vectors; 0 takes least memory and gives no matrix elements. By
            default as many as help and fit.
        seed: Seed of the start vectors, 64 bits (a whole number from 0 to 2^64 - 1); None draws a
            fresh one.
        device: ``auto`` (a GPU if there is one), ``cpu``, ``cuda`` or ``gpu`` (the same as cuda).
        threads: CPU threads (a whole number from 1 to 4096), all by default.
        most_steps: Largest number of products with T, after which levels are given up.
        on_rows: Called with the number of samples and points that were finished since the last
            call.
        out: File for the run and its checkpoints; the same call, or ``resume``, completes an
            interrupted run. Without a file the run is kept in memory.
        checkpoint_every: Seconds between checkpoints, at least 0.
        progress: Show a progress bar on the terminal or in the notebook; elsewhere say when kernels
            are compiled.
        gpus: GPUs that share each vector: ``all``, a count, or a list of numbers such as ``0,2``;
            by default one for each process.

    Returns:
        ln of the eigenvalues, residuals, correlation lengths, energies and matrix elements. With
        ``out``, levels that did not converge become NaN, with a warning, and ``resume`` tries them
        again.

    Raises:
        InputError: for couplings that overflow, a layer that does not fit, levels that do not
            converge (without ``out``), and if the file holds another run.
        KeyboardInterrupt: on Ctrl-C; a run with ``out`` is saved first.
    """
    given = dict(locals())
    checks: dict[str, Any] = {name: partial(positive, name) for name in ("k", "temperature", "k_time")}
    result: TransferResult = run_of_call(Transfer, model, given, **checks)
    return result
