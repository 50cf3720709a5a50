"""Wiring of a transfer-matrix run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import prod

import h5py
import numpy as np

from spinsim import store
from spinsim.engine import resolve_device
from spinsim.engine.devices import gpu_numbers
from spinsim.errors import InputError, worded
from spinsim.jobs.transfer.result import TransferResult, tabulated
from spinsim.jobs.transfer.settings import Transfer
from spinsim.jobs.transfer.tasks import Saved, SolvedRow, Work, saved_state
from spinsim.run.common import Plan, Watch, build_model, check_disk, identify
from spinsim.run.identity import open_own
from spinsim.run.saving import Saving
from spinsim.store import RunFile
from spinsim.transfer_matrix.points import Points
from spinsim.transfer_matrix.split import choose


class TransferPlan(Plan[Transfer]):
    """A transfer-matrix run that is ready to begin."""

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
            solved = (
                _saved_on_the_way(work, steps, file, saved, saving)
                if fits
                else work.solved(steps, lambda: saving.asked_to_stop)
            )
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
        """Run it without a file and return its result; levels that do not converge are refused."""
        work = self.work()
        if work.caution:
            watch.on_warning(work.caution)
        watch.on_stage("", work.rows)
        rows = []
        for row, problems in work.solved(range(work.rows)):
            for problem in problems:
                raise problem
            rows.append(row)
            watch.on_updates(1)
        attributes = self.attributes | _where(self.device, work.devices) | {"finished": store.stamp()}
        return tabulated(
            *(self.model, *work.points, work.sectors, work.contents),
            lambda name: np.stack([row[name] for row in rows]),
            attributes,
        )


def plan_transfer(config: Transfer) -> TransferPlan:
    """Build the layer and name the file."""
    device = resolve_device(config.run.device, config.run.gpus)
    if config.model.instance is None:
        sectors = ("all",) if config.model.field else ("even", "odd")
        choose(prod(config.model.shape), sectors, config.transfer.settings(config.run.seed, device), device)
    model = build_model(config.model, 1)
    plan = TransferPlan(config, model, device, *identify(config, model))
    plan.work()
    return plan


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
    """The rows to come, one after the other, with checkpoints."""
    for step in steps:
        solver = work.solver(step)
        if saved is not None and int(saved["row"]) == step:
            solver.restore(saved)
        while not solver.done:
            solver.advance()
            if saving.due() and not solver.done:
                file.save(saved_state(step, solver))
                saving.saved()
        yield work.row(step, solver.row(), solver.problems)


def _where(device: str, devices: int) -> dict[str, str]:
    """Root attributes that say how it ran."""
    kind = "cpu"
    if device != "cpu":
        from spinsim.cuda.device import names

        kind = names()[gpu_numbers(device)[0]]
    name = f"{devices} x {kind}" if devices > 1 else kind
    return {"engine": f"{'cpu' if device == 'cpu' else 'cuda'}, transfer matrix", "devices": name}
