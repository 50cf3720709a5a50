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

import numpy as np
import numpy.typing as npt

from spinsim.engine.devices import gpu_numbers
from spinsim.inputs.texts import count
from spinsim.jobs.transfer.result import place_of, transfer_contents, values_of
from spinsim.jobs.transfer.settings import Transfer
from spinsim.machine.threads import Threads, available_threads
from spinsim.model.ising import Ising
from spinsim.parallel.group import Member, make_group
from spinsim.parallel.places import InThread, Kept, Place, answers
from spinsim.parallel.session import others
from spinsim.record import Record
from spinsim.run.common import Plan, Saving, Watch, build_model
from spinsim.run.recording import Recording
from spinsim.store.files import check_disk
from spinsim.store.models import stored_bytes
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

    @property
    def saves_on_the_way(self) -> bool:
        """True if a task is so long, and its vectors so few, that checkpoints are written within it."""
        dimension = 1 << (self.model.sites - (self.sectors != ("all",)))
        needed = (self.room.basis + self.settings.eigenvalues) * dimension * 8 * 2
        return self.model.sites > SMALL_BITS and bool(self.room.basis) and needed <= SAVED_BYTES


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

    def carry_out(self, saving: Saving, watch: Watch, in_file: bool, stored: Record | None = None) -> Record:
        """Compute all rows, in memory or into the file of the plan.

        Levels that do not converge become NaN in a file, with a warning, and the run is not finished: the rows that
        lack some are tried again when all others are there, and replaced where that loses no level.

        Raises:
            NotConvergedError: for levels that do not converge in memory.
        """
        work = self.work()
        if work.caution:
            watch.on_warning(work.caution)
        recording = Recording(self, work.contents, work.rows, _where(self.device, work.devices))
        if not in_file:
            watch.on_stage("", work.rows)
            for row, problems in work.solved(range(work.rows)):
                if problems:
                    raise problems[0]
                recording.write(row)
                watch.on_updates(1)
            return recording.finish()
        if stored is None:
            check_disk(self.path, work.contents.room(work.rows) + stored_bytes(self.model))
        with recording.in_file(stored, 0, {}, in_segments=False):
            return self._complete(work, recording, saving, watch)

    def _complete(self, work: Work, recording: Recording, saving: Saving, watch: Watch) -> Record:
        """Compute the rows that a file lacks, or where none do, those with levels that did not converge."""
        rows, levels = recording.rows, recording.column("spectrum/log_eigenvalue")
        known = np.isfinite(levels[:rows])
        lacking = set(np.flatnonzero(~known.all(axis=(1, 2))).tolist())
        steps = range(rows, work.rows) if rows < work.rows else sorted(lacking)
        watch.on_stage("", work.rows)
        watch.on_updates(work.rows - len(steps))
        if work.saves_on_the_way:
            solved = _saved_on_the_way(work, steps, recording, saving)
        else:
            solved = work.solved(steps, lambda: saving.asked_to_stop)
        try:
            for row, problems in solved:
                for problem in problems:
                    watch.on_warning(str(problem))
                (lacking.add if problems else lacking.discard)(row["step"])
                if row["step"] >= rows or np.isfinite(row["log_eigenvalue"])[known[row["step"]]].all():
                    recording.write(row)
                watch.on_updates(1)
                if saving.due():
                    recording.save({})
                    saving.saved()
        except KeyboardInterrupt:
            if not work.saves_on_the_way:
                recording.save({})
            raise
        return recording.end() if lacking else recording.finish()


def _saved_on_the_way(work: Work, steps: Iterable[int], recording: Recording, saving: Saving) -> Iterator[SolvedRow]:
    saved = recording.checkpoint() or {}
    for step in steps:
        solver = work.solver(step)
        if int(saved.get("row", -1)) == step and _fits(saved, saved_state(step, solver)):
            solver.restore(saved)
        while not solver.done:
            solver.advance()
            if saving.due() and not solver.done:
                recording.save(saved_state(step, solver))
                saving.saved()
        solved = work.row(step, solver.row(), solver.problems)
        del solver  # its vectors go before the next ones come
        yield solved


def _fits(saved: Saved, like: Saved) -> bool:
    """True if a checkpoint is of as many vectors as memory has room for now."""
    return {name: np.shape(one) for name, one in saved.items()} == {name: np.shape(one) for name, one in like.items()}


def _where(device: str, devices: int) -> dict[str, str]:
    kind = "cpu"
    if device != "cpu":
        from spinsim.cuda.device import names

        kind = names()[gpu_numbers(device)[0]]
    name = f"{devices} x {kind}" if devices > 1 else kind
    return {"engine": f"{'cpu' if device == 'cpu' else 'cuda'}, transfer matrix", "devices": name}
