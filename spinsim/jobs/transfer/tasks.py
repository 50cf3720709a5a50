"""The tasks of a transfer-matrix run: every sample at every coupling, one after the other or side by side."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from itertools import islice
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim.jobs.transfer.layout import transfer_layout
from spinsim.machine.threads import Threads
from spinsim.mesh.group import Member, make_group
from spinsim.model.ising import Ising
from spinsim.store.layout import Layout
from spinsim.transfer_matrix.lanczos import NotConvergedError
from spinsim.transfer_matrix.layer import check_couplings, sectors_of
from spinsim.transfer_matrix.points import Points
from spinsim.transfer_matrix.spectrum import Settings, Solver
from spinsim.transfer_matrix.split import SplitSolver, choose

Row = dict[str, Any]
OnProduct = Callable[[], None]
Saved = dict[str, npt.NDArray[Any]]
AnySolver = Solver | SplitSolver

SMALL_BITS: Final = 17  # layers up to which several tasks run side by side, one thread each
SAVED_BYTES: Final = 2**31  # of both checkpoints of a task; a longer one begins anew
_WAITING: Final = 64  # finished tasks that wait for an earlier one


class Found(NamedTuple):
    """What a task comes to.

    Attributes:
        row: Of the file; NaN for what did not converge.
        problems: What did not, a sentence for each sector.
    """

    row: Row
    problems: list[NotConvergedError]


class Work:
    """All tasks of a run: every sample at every point.

    Args:
        model: The layers.
        points: Couplings.
        sector: ``even``, ``odd`` or ``both``.
        settings: How levels are found.
        threads: CPU threads.
        device: As ``resolve_device`` returns it, by default that of the settings.

    Attributes:
        sectors: Their names.
        rows: Number of tasks.
        layout: Of the file.
        devices: How many share each vector.
        split: How they do, in a sentence; empty where there is but one.
        room: What fits in memory.

    Raises:
        InputError: for what overflows or cannot fit in memory.
    """

    def __init__(
        self,
        model: Ising,
        points: Points,
        sector: str,
        settings: Settings,
        threads: int | None,
        device: str | None = None,
    ) -> None:
        self.model, self.points, self.settings = model, points, settings
        self.sectors = sectors_of(model, sector)
        for extreme in (np.min, np.max):
            check_couplings(model, float(extreme(points.k)), float(extreme(points.k_time)))
        self.rows = model.samples * len(points.k)
        self.layout: Layout = transfer_layout(model.sites, model.bonds, self.sectors, settings.eigenvalues)
        self._threads = Threads(threads if settings.device == "cpu" else 1)
        small = settings.device == "cpu" and model.sites <= SMALL_BITS
        self._at_once = min(self._threads.count, self.rows) if small else 1
        chosen = choose(model.sites, self.sectors, settings, device or settings.device, self._at_once)
        self._seats, self.room, self.split = chosen
        self._threads_given, self.devices = threads, len(self._seats)
        self._at_once = self._at_once if self.devices == 1 else 1

    @property
    def caution(self) -> str:
        """What the results cannot show for want of memory, in a sentence, empty where there is no such thing."""
        if self.room.basis or self.room.held:
            return ""
        return (
            f"memory has no room for {self.settings.eigenvalues} eigenvectors: degenerate levels are found once and "
            "missed ones are not searched for, ask for fewer eigenvalues to be sure of them"
        )

    def solver(self, step: int, threads: Threads | None = None, on_product: OnProduct | None = None) -> AnySolver:
        """Of one row, by default with all threads."""
        sample, point = divmod(step, len(self.points.k))
        k, k_time = float(self.points.k[point]), float(self.points.k_time[point])
        given = self.model, sample, k, k_time, self.sectors, self.settings, self.room
        if self.devices == 1 and self._seats[0].gpu in (None, 0):
            return Solver(*given, threads or self._threads, on_product or (lambda: None))
        return SplitSolver(self._members, given, self._threads_given, on_product)

    @cached_property
    def _members(self) -> list[Member]:
        return make_group(self._seats)

    def row(self, step: int, solver: AnySolver) -> Found:
        """A row of the file, of a solver that is done."""
        sample, point = divmod(step, len(self.points.k))
        found = solver.row()
        where = {"step": step, "sample": sample, "k": self.points.k[point], "k_time": self.points.k_time[point]}
        return Found({s.name: found[s.name] for s in self.layout.series if s.name in found} | where, solver.problems)

    def found(self, steps: Iterable[int], to_stop: Callable[[], bool] = lambda: False) -> Iterator[Found]:
        """Rows in the order of their numbers ``steps``.

        Raises:
            KeyboardInterrupt: soon after ``to_stop`` says so, with the next product of a matrix.
        """
        ended = threading.Event()

        def solve(step: int, threads: Threads) -> Found:
            def on_product() -> None:
                if ended.is_set() or to_stop():
                    raise KeyboardInterrupt

            solver = self.solver(step, threads, on_product)
            while not solver.done:
                solver.advance()
            return self.row(step, solver)

        if self._at_once == 1:
            yield from (solve(step, self._threads) for step in steps)
            return
        pool, one, to_come = ThreadPoolExecutor(self._at_once), Threads(1), iter(steps)
        try:
            waiting = [pool.submit(solve, step, one) for step in islice(to_come, _WAITING)]
            while waiting:
                yield waiting.pop(0).result()
                waiting += [pool.submit(solve, step, one) for step in islice(to_come, 1)]
        finally:
            ended.set()
            pool.shutdown(cancel_futures=True)

    def like_saved(self) -> Saved | None:
        """Arrays like those of a checkpoint within a task, None where there will be none."""
        dimension = 1 << (self.model.sites - (self.sectors != ("all",)))
        held = (self.room.basis + self.settings.eigenvalues) * dimension * 8 * 2
        if self.model.sites <= SMALL_BITS or not self.room.basis or held > SAVED_BYTES:
            return None
        return saved_state(0, self.solver(0))


def saved_state(step: int, solver: AnySolver) -> Saved:
    """A checkpoint within a task."""
    return solver.snapshot() | {"row": np.array(step)}
