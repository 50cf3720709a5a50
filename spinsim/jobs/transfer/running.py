"""A transfer-matrix run: its tasks, every sample at every coupling, in succession or side by side."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from itertools import islice
from math import prod
from operator import itemgetter
from queue import SimpleQueue
from typing import Any, Final, NamedTuple

import h5py
import numpy as np
import numpy.typing as npt

from spinsim import store
from spinsim.engine.devices import gpu_numbers
from spinsim.errors import InputError, worded
from spinsim.inputs.texts import count
from spinsim.jobs.transfer.result import TransferResult, place_of, tabulated, transfer_contents, values_of
from spinsim.jobs.transfer.settings import Transfer
from spinsim.machine.threads import Threads, available_threads
from spinsim.model.ising import Ising
from spinsim.parallel.group import Member, make_group
from spinsim.parallel.places import InThread, Kept, Place, answers
from spinsim.parallel.session import others
from spinsim.run.common import Plan, Saving, Watch, build_model, check_disk
from spinsim.run.identity import open_own
from spinsim.store import RunFile
from spinsim.transfer_matrix.lanczos import NotConvergedError
from spinsim.transfer_matrix.layer import Points, check_couplings, sectors_of
from spinsim.transfer_matrix.spectrum import Settings, Solver
from spinsim.transfer_matrix.split import SplitSolver, choose

Row = dict[str, Any]
OnProduct = Callable[[], None]
Saved = dict[str, npt.NDArray[Any]]
AnySolver = Solver | SplitSolver
SolvedRow = tuple[Row, list[NotConvergedError]]
"""A row of the file, NaN for what did not converge, and a problem for each sector that did not."""

SMALL_BITS: Final = 17  # layers up to which several tasks run side by side, one thread each
SAVED_BYTES: Final = 2**31  # of both checkpoints of a task; a longer one begins anew
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
        chosen = choose(model.sites, self.sectors, settings, device or settings.device, at_once)
        # devices that share each vector, room for vectors in memory, and how they are shared in a sentence
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
        """Lack of the results for want of memory, in a sentence; empty where there is none."""
        if self.room.basis or self.room.fits_eigenvectors:
            return ""
        return (
            f"memory has no room for {self.settings.eigenvalues} eigenvectors: degenerate levels are found once and "
            "missed ones are not searched for, ask for fewer eigenvalues to be sure of them"
        )

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

    def row(self, step: int, values: Row, problems: list[NotConvergedError]) -> SolvedRow:
        own = {name: values[name] for name in values_of(self.contents)}
        return place_of(step, *self.points) | own, problems

    def solved(self, steps: Iterable[int], to_stop: Callable[[], bool] = lambda: False) -> Iterator[SolvedRow]:
        """Rows in the order of their numbers; KeyboardInterrupt with the next product after ``to_stop`` says so."""
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
        """A thread for each processor of all ranks, or one for each task, of all ranks in turn."""
        own = Kept(self.model)
        numbered = [(k, _Worker(InThread(), own, on_product)) for k in range(self._threads.count)]
        threads = answers([place.request(_threads_of, self._threads_given) for place in others()])
        for place, there in zip(others(), threads, strict=True):
            model = place.request(Kept, self.model)()
            numbered += [(k, _Worker(place.thread(1 + k), model, None)) for k in range(there)]
        return [worker for _, worker in sorted(numbered, key=itemgetter(0))][: self._at_once]

    def like_saved(self) -> Saved | None:
        """Arrays like those of a checkpoint within a task, None where there will be none."""
        dimension = 1 << (self.model.sites - (self.sectors != ("all",)))
        needed = (self.room.basis + self.settings.eigenvalues) * dimension * 8 * 2
        if self.model.sites <= SMALL_BITS or not self.room.basis or needed > SAVED_BYTES:
            return None
        return saved_state(0, self.solver(0))


class _Worker(NamedTuple):
    """A thread that solves tasks with the layers that are there; ``on_product`` is None at other ranks."""

    place: Place
    model: Any
    on_product: OnProduct | None


def _threads_of(given: int | None) -> int:
    return given or available_threads()


def _solve(model: Ising, on_product: OnProduct | None, *task: Any) -> tuple[Row, list[NotConvergedError]]:
    return _solved(_SOLVER(model, *task, Threads(1), on_product or (lambda: None)))


def _solved(solver: AnySolver) -> tuple[Row, list[NotConvergedError]]:
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

    def carry_out(self, begun: bool, saving: Saving, watch: Watch) -> None:
        """Run it into its file.

        Levels that do not converge become NaN, with a warning, and the run is not finished: the rows that lack some are
        tried again when all others are there, and replaced where that loses no level.
        """
        work, on_rows, on_warning = self.work(), watch.on_updates, watch.on_warning
        shapes = work.like_saved()  # other ones than the file's where memory has room for another basis now
        if not begun:
            check_disk(self.path, self.model, 0, work.contents, work.rows)
            where = _where(self.device, work.devices)
            store.create(self.path, self.model, work.contents, work.rows, self.attributes | where, checkpoint=shapes)
        with store.open_to_read(self.path) as written:
            rows, slot = store.complete_rows(written), written.get("checkpoint/0", {})
            stored = {name: slot[name].shape for name in list(slot)}
            fits = shapes is not None and stored == {name: array.shape for name, array in shapes.items()}
            known = np.isfinite(written["spectrum/log_eigenvalue"][:rows])
            lacking = set(np.flatnonzero(~known.all(axis=(1, 2))).tolist())
            _check_points(self, work.points, written["spectrum"], rows)
        if work.caution:
            on_warning(work.caution)
        steps = range(rows, work.rows) if rows < work.rows else sorted(lacking)
        with open_own(self, begun) as file:
            file.check_rows(rows)
            saved, damaged = file.saved()
            if damaged:
                on_warning(damaged)
            watch.on_stage("", work.rows)
            on_rows(work.rows - len(steps))
            solved = work.solved(steps, lambda: saving.asked_to_stop)
            if fits:
                solved = _saved_on_the_way(work, steps, file, saved, saving)
            for row, problems in solved:
                for problem in problems:
                    on_warning(str(problem))
                (lacking.add if problems else lacking.discard)(row["step"])
                if row["step"] >= rows:
                    file.write(row)
                elif np.isfinite(row["log_eigenvalue"])[known[row["step"]]].all():
                    file.replace(row, "log_eigenvalue")
                on_rows(1)
                if saving.due():
                    file.flush()
                    saving.saved()
            if not lacking:
                file.finish()

    def in_memory(self, watch: Watch) -> TransferResult:
        work = self.work()
        if work.caution:
            watch.on_warning(work.caution)
        watch.on_stage("", work.rows)
        rows = []
        for row, problems in work.solved(range(work.rows)):
            if problems:
                raise problems[0]
            rows.append(row)
            watch.on_updates(1)
        attributes = self.attributes | _where(self.device, work.devices) | {"finished": store.stamp()}
        table = {name: np.stack([row[name] for row in rows]) for name in values_of(work.contents)}
        return tabulated(self.model, work.points, work.contents, table, attributes)


def _check_points(plan: TransferPlan, points: Points, stored: h5py.Group, rows: int) -> None:
    """Refuse to go on with rows at other couplings: early development versions took k_time = k whatever |J| was."""
    places = np.arange(rows) % len(points.k)
    for name, planned in zip(Points._fields, points, strict=True):
        other = stored[name][:rows] != planned[places]
        if other.any():
            first = np.argmax(other)
            raise InputError(
                f"{plan.path} was begun with {name} = {stored[name][first]:.6g}, where its settings mean "
                f"{planned[places[first]]:.6g} now: run it anew with {worded('another --out', 'another path')}"
            )


def _saved_on_the_way(
    work: Work, steps: Iterable[int], file: RunFile, saved: Saved | None, saving: Saving
) -> Iterator[SolvedRow]:
    for step in steps:
        solver = work.solver(step)
        if saved is not None and int(saved["row"]) == step:
            solver.restore(saved)
        while not solver.done:
            solver.advance()
            if saving.due() and not solver.done:
                file.save(saved_state(step, solver))
                saving.saved()
        solved = work.row(step, solver.row(), solver.problems)
        del solver  # its vectors go before the next ones come
        yield solved


def _where(device: str, devices: int) -> dict[str, str]:
    kind = "cpu"
    if device != "cpu":
        from spinsim.cuda.device import names

        kind = names()[gpu_numbers(device)[0]]
    name = f"{devices} x {kind}" if devices > 1 else kind
    return {"engine": f"{'cpu' if device == 'cpu' else 'cuda'}, transfer matrix", "devices": name}
