"""Wiring of a transfer-matrix run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from math import prod
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from spinsim import store
from spinsim.config import Transfer, canonical_json, sha256
from spinsim.engine import resolve_device
from spinsim.engine.cpu.threads import Threads
from spinsim.errors import InputError
from spinsim.layout import Layout, transfer_layout
from spinsim.model.ising import Ising
from spinsim.result import TransferResult
from spinsim.run.common import OnWarning, Plan, Watch, build_model, check_disk, identify, provenance, to_file
from spinsim.run.saving import Saving
from spinsim.transfer_matrix.lanczos import TOLERANCE, NotConvergedError
from spinsim.transfer_matrix.layer import check_couplings, sectors_of
from spinsim.transfer_matrix.points import Points, make_points, read_points
from spinsim.transfer_matrix.spectrum import Settings, Solver, fit_basis

OnRows = Callable[[int], None]
Row = dict[str, Any]

SMALL_BITS: Final = 17  # layers up to which several tasks run side by side, one thread each
SAVED_BYTES: Final = 2**31  # of both checkpoints of a task; a longer one begins anew
_WAITING: Final = 64  # finished tasks that wait for an earlier one


class Work:
    """All tasks of a run: every sample at every point.

    Args:
        model: The layers.
        points: Couplings.
        sector: ``even``, ``odd`` or ``both``.
        settings: How levels are found.
        threads: CPU threads.

    Attributes:
        sectors: Their names.
        rows: Number of tasks.
        layout: Of the file.

    Raises:
        InputError: for what overflows or cannot fit in memory.
    """

    def __init__(self, model: Ising, points: Points, sector: str, settings: Settings, threads: int | None) -> None:
        self.model, self.points, self.settings = model, points, settings
        self.sectors = sectors_of(model, sector)
        for k, k_time in zip(*points, strict=True):
            check_couplings(model, k, k_time)
        self.rows = model.samples * len(points.k)
        self.layout: Layout = transfer_layout(model.sites, model.bonds, self.sectors, settings.eigenvalues)
        self._threads = Threads(threads if settings.device == "cpu" else 1)
        small = settings.device == "cpu" and model.sites <= SMALL_BITS
        self._at_once = min(self._threads.count, self.rows) if small else 1
        self.basis = fit_basis(model.sites, self.sectors, settings, self._at_once)

    def solver(self, step: int, threads: Threads) -> Solver:
        """Of one row."""
        sample, point = divmod(step, len(self.points.k))
        k, k_time = float(self.points.k[point]), float(self.points.k_time[point])
        return Solver(self.model, sample, k, k_time, self.sectors, self.settings, self.basis, threads)

    def row(self, step: int, found: Row) -> Row:
        """A row of the file."""
        sample, point = divmod(step, len(self.points.k))
        where = {"step": step, "sample": sample, "k": self.points.k[point], "k_time": self.points.k_time[point]}
        return {s.name: found[s.name] for s in self.layout.series if s.name in found} | where

    def _solve(self, step: int, threads: Threads) -> Row:
        solver = self.solver(step, threads)
        while not solver.done:
            solver.advance()
        return self.row(step, solver.row())

    def failed(self, step: int, residual: float) -> Row:
        """The row of a task that did not converge: no number but the residual that it reached."""
        shapes = {s.name: (self.layout.shape(s), s.dtype) for s in self.layout.series}
        found: Row = {n: np.full(shape, np.nan if t is np.float64 else 0, t) for n, (shape, t) in shapes.items()}
        return self.row(step, found | {"residual": np.full(shapes["residual"][0], residual)})

    def side_by_side(self) -> bool:
        """Whether several tasks run at a time."""
        return self._at_once > 1

    def all_rows(self, first: int) -> Iterator[Callable[[], Row]]:
        """Rows from ``first`` on, in order, each as a call that waits for it and may raise."""
        if not self.side_by_side():
            for step in range(first, self.rows):
                yield lambda step=step: self._solve(step, self._threads)  # type: ignore[misc]
            return
        pool, one = ThreadPoolExecutor(self._at_once), Threads(1)
        try:
            waiting = [pool.submit(self._solve, step, one) for step in range(first, min(first + _WAITING, self.rows))]
            for step in range(first, self.rows):
                yield waiting.pop(0).result
                if step + _WAITING < self.rows:
                    waiting.append(pool.submit(self._solve, step + _WAITING, one))
        finally:
            pool.shutdown(cancel_futures=True)

    def alone(self, step: int) -> Solver:
        """The solver of a row that has all threads."""
        return self.solver(step, self._threads)

    def saved_shape(self) -> dict[str, npt.NDArray[Any]] | None:
        """Arrays like those of a checkpoint within a task, None where there will be none."""
        dimension = 1 << (self.model.sites - (self.sectors != ("all",)))
        held = (self.basis + self.settings.eigenvalues) * dimension * 8 * 2
        if self.model.sites <= SMALL_BITS or not self.basis or held > SAVED_BYTES:
            return None
        return self.alone(0).snapshot() | {"row": np.array(0)}


class TransferPlan(Plan[Transfer]):
    """A transfer-matrix run that is ready to begin."""

    def work(self) -> Work:
        """Its tasks."""
        config, t = self.config, self.config.transfer
        points = t.points(self.model.lattice.dimension if self.model.lattice else 2)
        return Work(self.model, points, t.sector, t.settings(config.run.seed, self.device), config.run.threads)


def plan_transfer(config: Transfer) -> TransferPlan:
    """Build the layer and name the file.

    Raises:
        InputError: for anything that keeps the run from beginning.
    """
    device = resolve_device(config.run.device)
    if config.model.instance is None:
        sectors = ("all",) if config.model.field else ("even", "odd")
        fit_basis(prod(config.model.shape()), sectors, config.transfer.settings(config.run.seed, device))
    model = build_model(config.model, 1)
    plan = TransferPlan(config, model, device, *identify(config, model))
    plan.work()
    return plan


def transfer_to_file(
    plan: TransferPlan, on_rows: OnRows = lambda rows: None, on_warning: OnWarning = lambda sentence: None
) -> bool:
    """Run a plan into its file; False where the file already holds the finished run.

    A file of the same configuration that was cut short is completed from its last row or checkpoint. Levels that do not
    converge become NaN, with a warning.

    Raises:
        InputError: where the file belongs to another run or cannot be written.
    """

    def carry_out(plan: TransferPlan, begun: bool, saving: Saving, watch: Watch) -> None:
        _carry_out(plan, begun, saving, on_rows, watch.on_warning)

    return to_file(plan, Watch(on_warning=on_warning), carry_out)


def _carry_out(plan: TransferPlan, begun: bool, saving: Saving, on_rows: OnRows, on_warning: OnWarning) -> None:
    work = plan.work()
    shapes = work.saved_shape()  # other ones than the file's where memory has room for another basis now
    if not begun:
        check_disk(plan.path, plan.model, 0, work.layout, work.rows)
        where = _where(plan.device)
        store.create(plan.path, plan.model, work.layout, work.rows, plan.attributes | where, checkpoint=shapes)
    with store.open_to_read(plan.path) as written:
        first, slot = store.complete_rows(written), written.get("checkpoint/0", {})
        fits = shapes is not None and {n: d.shape for n, d in slot.items()} == {n: a.shape for n, a in shapes.items()}
    with store.open_to_append(plan.path) as file:
        saved, damaged = file.saved()
        if damaged:
            on_warning(damaged)
        on_rows(first)
        step = first
        for wait in _tasks(work, first, file, saved, saving) if fits else work.all_rows(first):
            try:
                row = wait()
            except NotConvergedError as error:
                on_warning(str(error))
                row = work.failed(step, error.residual)
            file.write(row)
            step += 1
            on_rows(1)
            if saving.asked_to_stop:
                file.flush()
                saving.saved()
        file.finish()


def _tasks(work: Work, first: int, file: Any, saved: Row | None, saving: Saving) -> Iterator[Callable[[], Row]]:
    """The rows to come, one after the other and saved on the way."""

    def solve(step: int) -> Row:
        solver = work.alone(step)
        if saved is not None and int(saved["row"]) == step:
            solver.restore(saved)
        while not solver.done:
            solver.advance()
            if saving.due() and not solver.done:
                file.save(solver.snapshot() | {"row": np.array(step)})
                saving.saved()
        return work.row(step, solver.row())

    for step in range(first, work.rows):
        yield lambda step=step: solve(step)  # type: ignore[misc]


def _where(device: str) -> dict[str, str]:
    """Root attributes that say how it ran."""
    if device == "cuda":
        from spinsim.engine.cuda.device import names

        return {"engine": "cuda, transfer matrix", "devices": names()[0]}
    return {"engine": "cpu, transfer matrix", "devices": "cpu"}


def transfer(
    model: Ising,
    k: npt.ArrayLike | None = None,
    temperature: npt.ArrayLike | None = None,
    k_time: npt.ArrayLike | None = None,
    eigenvalues: int = 2,
    sector: str = "both",
    tolerance: float = TOLERANCE,
    method: str = "auto",
    basis: int | None = None,
    seed: int = 1,
    device: str = "auto",
    threads: int | None = None,
    on_rows: OnRows = lambda rows: None,
) -> TransferResult:
    """Leading eigenvalues of the transfer matrix whose layer is ``model``, for each of its samples.

    T = D B D with D = exp(k/2 (sum J s s + sum h s)) and bonds k_time between the layers.

    Args:
        model: One layer, of up to some 30 sites: a chain for strips, a square for bars, or any graph.
        k: Coupling 1 / T, one or many.
        temperature: Instead of k, in units of |J|. Without both, the transition of the ferromagnet.
        k_time: Coupling between layers where it is not k, one or as many.
        eigenvalues: Levels of each sector.
        sector: ``even`` or ``odd`` under the flip of all spins, or ``both``; in a field there is one sector, ``all``.
        tolerance: Residual |T x - lambda x| / lambda at which a level has converged.
        method: How T is applied: ``butterfly``, ``kronecker`` or ``auto``.
        basis: Stored vectors, 0 for none (fewest memory, no matrix elements, one of degenerate levels); by default as
            many as serve and fit.
        seed: Of the start vectors.
        device: ``auto`` (a GPU where there is one), ``cpu`` or ``cuda``; they agree to rounding.
        threads: CPU threads, by default all processors.
        on_rows: Called with the number of samples and points that were finished since the last call.

    Returns:
        ln of the eigenvalues, residuals, correlation lengths, energies and matrix elements.

    Raises:
        InputError: for couplings that overflow, a layer that does not fit, and levels that do not converge.
    """
    settings = Settings(int(eigenvalues), float(tolerance), method, basis, seed, resolve_device(device))
    if k is not None and temperature is not None:
        raise InputError(f"temperature {temperature} and k {k} say the same thing, k = 1 / T: leave one out")
    if k is None and temperature is None:
        points = read_points(None, None, None, model.lattice.dimension if model.lattice else 2)
        points = make_points(points.k, k_time)
    else:
        with np.errstate(divide="ignore"):
            points = make_points(1 / np.asarray(temperature, np.float64) if k is None else k, k_time)
    work = Work(model, points, sector, settings, threads)
    rows = []
    for wait in work.all_rows(0):
        rows.append(wait())
        on_rows(1)
    physics = {
        "model": model.name,
        "model_sha256": model.content_sha256(),
        "k": points.k.tolist(),
        "k_time": points.k_time.tolist(),
        "eigenvalues": settings.eigenvalues,
        "sector": sector,
        "tolerance": settings.tolerance,
        "method": method,
        "basis": basis,
        "seed": seed,
    }
    text = canonical_json(physics)
    attributes = provenance("transfer", text, sha256(text)) | _where(settings.device) | {"finished": store.stamp()}
    return _result(work, rows, attributes)


def _result(work: Work, rows: list[Row], attributes: dict[str, str]) -> TransferResult:
    shape = work.model.samples, len(work.points.k)

    def table(name: str) -> npt.NDArray[Any]:
        stacked = np.stack([row[name] for row in rows])
        return stacked.reshape(*shape, *stacked.shape[1:])

    names = [s.name for s in work.layout.series if s.name not in ("step", "sample", "k", "k_time", "log_eigenvalue")]
    tables = {name: table(name) for name in names}
    tables.setdefault("sigma_sigma", np.empty((*shape, work.settings.eigenvalues, 0)))
    return TransferResult(
        model=work.model,
        k=work.points.k,
        k_time=work.points.k_time,
        sectors=work.sectors,
        levels=table("log_eigenvalue"),
        attributes=attributes,
        **tables,
    )
