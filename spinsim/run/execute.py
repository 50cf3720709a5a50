"""The one loop that carries out the runs of all jobs: it writes rows as they come and saves checkpoints in between."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim.engine import Engine
from spinsim.engine.measuring.cpu_reduction import Best
from spinsim.engine.protocols import Spins, bits_of
from spinsim.errors import InputError, another_path
from spinsim.inputs.texts import count
from spinsim.machine.threads import stopping_on_signals
from spinsim.record import Array, Record
from spinsim.result import result_of
from spinsim.run import identity
from spinsim.run.identity import check_stored_state
from spinsim.run.own_observables import Holder, check_code, check_series, functions_of
from spinsim.run.plan import NEVER, SILENT, Plan, Saving, Watch, as_in_file
from spinsim.run.recording import Recording
from spinsim.sampling import BestSlices, InField
from spinsim.sampling.measure import Measurement, present_spins
from spinsim.sampling.portions import updates_a_sweep
from spinsim.saved import with_configurations
from spinsim.store.contents import BEST, START, Arrays, arrays_of_best, bytes_of_sums, group_of_best, room_of
from spinsim.store.files import check_disk, read
from spinsim.store.models import best_in, stored_bytes

_LOG: Final = logging.getLogger("spinsim")

FileRow = Mapping[str, Any]  # of a file: a value for each series by name, and ``step``, the number of the row


class FileRows(NamedTuple):
    """Consecutive rows of a file, without saved configurations."""

    first: int  # number of the first row
    series: Mapping[str, npt.NDArray[Any]]  # by name, (rows, ...)


class Run:
    """A run under way, with the interface for the loop below."""

    rewrites_rows: ClassVar[bool] = False  # True if rows may be rewritten, so that none go into segments

    contents: Record  # record of the run without rows
    planned: int  # planned number of rows
    where: Mapping[str, str]  # root attributes that name the engine and the devices
    constant_bytes: int = 0  # constant part of the file's size, without rows, sums and the model
    thin: int = 1  # in an extended run, rows of the shorter run for each row that the file keeps
    is_complete: bool = True  # False at the end of a run if a resumed run would retry rows that lack something

    def rows(self, recording: Recording) -> Iterator[FileRow | FileRows | None]:
        """Yield the remaining rows, and None when a checkpoint is due."""
        raise NotImplementedError

    def state(self) -> Arrays:
        """Return the state from which the run can continue, by name, and all arrays of its record except rows, by path.

        None of these arrays changes later.
        """
        return {}

    def ended(self) -> tuple[Arrays, Arrays | None]:
        """Return the arrays of a finished run's record, by path, and the state from which it may be extended."""
        return {}, None

    def restore(self, saved: Arrays) -> None:
        """Continue from the state in a checkpoint."""


class ReplicaRun(Run):
    """A run of replicas under way."""

    engine: Engine | InField | BestSlices  # replicas of the run
    best: Best  # lowest states met; energies exclude a field that changes

    def __init__(self, plan: Plan[Any], saving: Saving, watch: Watch, engine: Engine | InField | BestSlices) -> None:
        self.plan, self.saving, self.watch, self.engine = plan, saving, watch, engine
        self.best = Best(engine.model, engine.replicas)
        self.planned, self.save_every, self.constant_bytes = plan.rows, plan.save_every, 2**17
        kind = "cpu" if engine.device_name == "cpu" else "cuda"
        many = f"{engine.devices} x " if engine.devices > 1 else ""
        self.where = {"engine": f"{kind}, {engine.packing}", "devices": many + engine.device_name}

    def set_contents(self, measured: Record) -> None:
        """Set the contents of the record, with room for lowest states, and for configurations if they are saved."""
        self.contents = with_configurations(measured, self.save_every, self.engine.model.sites)
        self.contents.groups[BEST] = group_of_best(self.best.energy, self.best.spins)
        if self.plan.start is not None:
            words = "initial configurations, one for all where an axis has length 1"
            start = Array(self.plan.start, ("sample", "replica", "site"), words)
            self.contents.groups[START] = Record({}, {"spins": start})

    def keep_lowest(self, measured: Measurement, field: float) -> npt.NDArray[np.float64]:
        """Keep the lowest states met; return the energies (samples, replicas) without a field that changes."""
        energy, quantum = measured.energy, self.engine.model.quantum
        if field:  # the field as the model rounds it
            energy = energy + float(np.rint(field / quantum) * quantum) * measured.magnetization
        self.best.update(energy, present_spins(self.engine))
        return energy

    def state(self) -> dict[str, npt.NDArray[Any]]:
        best = arrays_of_best(self.best.energy, self.best.spins)
        return self.engine.snapshot() | {path: array.copy() for path, array in best.items()}

    def ended(self) -> tuple[Arrays, Arrays | None]:
        return arrays_of_best(self.best.energy, self.best.spins), None

    def restore(self, saved: Arrays) -> None:
        check_stored_state(self.plan.path, saved, self.state())
        self.set_state(saved)

    def set_state(self, saved: Arrays) -> None:
        """Continue from a state in the form that ``state`` returns."""
        self.engine.restore(saved)
        energy, self.best.spins = best_in(saved, self.engine.model.sites)
        self.best.energy = np.where(np.isnan(energy), np.inf, energy)

    def with_spins(self, row: FileRow, spins: Spins, holder: Holder = None) -> FileRow:
        """Return a row with its configurations added, if they are saved at this row.

        ``holder`` lists the replicas in the order in which they are saved, (samples, ...); by default all replicas.
        """
        every, model = self.save_every, self.engine.model
        if not every or (row["step"] + 1) % every:
            return row
        if holder is None:
            holder = np.broadcast_to(np.arange(self.engine.replicas), (model.samples, self.engine.replicas))
        bits = np.stack([bits_of(spins, k, self.engine.replicas)[holder[k]] for k in range(len(holder))])
        sweep = self.engine.half_sweep // self.engine.colours  # for runs whose rows have no sweeps
        return {"sweep": sweep, **row, "measurement": row["step"], "spins": bits}

    def begin(self, may_go_on: bool, rows_in_words: str = "") -> None:
        """Report to the watch that the run begins or continues from its present state, and the size of its file.

        ``rows_in_words`` describes which measurements have rows, if not all have.
        """
        self.watch.on_parts(lambda: self.engine.part_rates())
        if self.watch.on_size is not None:
            self.watch.on_size(self._file_bytes(may_go_on), rows_in_words)
        self.watch.on_stage("", self.plan.updates(self.engine.replicas), self.updates_done())

    def _file_bytes(self, may_go_on: bool) -> int:
        """Largest size of the finished file."""
        state = self.state() if may_go_on else {}
        saved = sum(np.asarray(array).nbytes for name, array in state.items() if "/" not in name)
        of_record = room_of(self.contents, self.planned) + bytes_of_sums(self.contents)
        return of_record + saved + stored_bytes(self.engine.model)

    def updates_done(self) -> int:
        return int(self.engine.half_sweep // self.engine.colours) * updates_a_sweep(self.engine)


def carry_out(plan: Plan[Any], saving: Saving, watch: Watch, in_file: bool, stored: Record | None = None) -> Record:
    """Run a plan in memory, or into its file; the file is new unless ``stored`` is the run's record in it."""
    run: Run = plan.run(saving, watch, stored)
    where = ", ".join(f"{name} {value}" for name, value in run.where.items())
    _LOG.info("%s of %s: %s", plan.config.job, plan.model.name, where)
    recording = Recording(plan, run.contents, run.planned, run.where, plan.rows_in_words, watch.keeps_rows)
    if not in_file:
        return execute(run, recording, saving)
    if stored is not None and getattr(plan.of_job, "measure", None):
        check_series(plan.path, stored, run.contents)
    if stored is None or plan.extends:
        constant = stored_bytes(plan.model) + run.constant_bytes
        check_disk(plan.path, room_of(run.contents, run.planned) + 3 * bytes_of_sums(run.contents) + constant)
    with recording.in_file(stored, run.thin, not run.rewrites_rows):
        return execute(run, recording, saving)


def execute(run: Run, recording: Recording, saving: Saving) -> Record:
    """Carry out a run, from the last checkpoint of its file if there is one, and return its record."""
    saved = recording.checkpoint()
    if saved is not None:
        run.restore(saved)
        _LOG.info("continuing from a checkpoint after %s", count(recording.rows, "row"))
    for row in run.rows(recording):
        if isinstance(row, FileRows):
            recording.write_rows(*row)
            continue
        if row is not None:
            recording.write(row)
            continue
        recording.save(run.state(), wait=run.rewrites_rows)
        saving.saved()
        _LOG.info("checkpoint after %s of %d", count(recording.rows, "row"), run.planned)
    record = recording.end(*run.ended(), is_finished=run.is_complete)
    _LOG.info("finished with %s", count(recording.rows, "row"))
    return record


def _stored_at(path: Path) -> Record | None:
    """Return the record of a file, or None if there is no file; any file of spinsim is accepted."""
    if not os.path.lexists(path):
        return None
    try:
        return read(path)
    except InputError as error:
        raise InputError(f"{str(error).rpartition(': ')[0]} and is never overwritten: {another_path()}") from error


def in_memory(plan: Plan[Any], watch: Watch) -> Any:
    """Run a plan without a file and return its result."""
    result = result_of(plan.config.job, carry_out(plan, NEVER, watch, in_file=False), plan.model)
    plan.write_solution(result)
    return result


def to_file(plan: Plan[Any], watch: Watch = SILENT) -> tuple[Any, bool]:
    """Run a plan into its file; return the result, and False if the file already held the finished run.

    A file with an interrupted run of the same configuration is completed from its last checkpoint.
    """
    stored = _stored_at(plan.path)
    present, done = (plan, False) if stored is None else as_in_file(plan, stored)
    if stored is not None:
        check_code(plan.path, stored, functions_of(getattr(plan.of_job, "measure", None), plan.measure))
    record = stored
    if not done:
        if present.model.caution:
            watch.on_warning(present.model.caution)
        saving = Saving(present.config.run.checkpoint_every)
        with stopping_on_signals(saving.stop):
            try:
                record = carry_out(present, saving, watch, in_file=True, stored=stored)
            except identity.AlreadyFinishedError:
                record, done = read(plan.path), True
    assert record is not None  # noqa: S101  (it existed, or was made)
    result = result_of(plan.config.job, record, present.model)
    plan.write_solution(result)
    return result, not done
