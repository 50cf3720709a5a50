"""A job for tests: how many bonds each of a few all-up configurations satisfies. All of a job is in this file."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from spinsim.analysis import tables
from spinsim.engine import resolve_device
from spinsim.jobs.base import Job, Reports
from spinsim.jobs.reports import head_of_steps, no_table
from spinsim.model.ising import Ising
from spinsim.record import Record
from spinsim.result import Result
from spinsim.run.execute import FileRow, Run
from spinsim.run.plan import Plan, Saving, Watch, build_model, identify
from spinsim.run.recording import Recording
from spinsim.settings.config import Config, table
from spinsim.settings.setting import Table, setting
from spinsim.store.contents import STEP, Series, group_of

GROUP = "tally"


@dataclass(frozen=True)
class TallySettings(Table):
    """Number of counts."""

    times: int = setting(2, "Times that bonds are counted", low=1, high=100)


@dataclass(frozen=True)
class Tally(Config):
    """One run."""

    job = "tally"

    tally: TallySettings = table(TallySettings)


class TallyPlan(Plan[Tally]):
    """A run that is ready to begin."""

    @property
    def rows(self) -> int:
        return self.config.tally.times

    def run(self, saving: Saving, watch: Watch, stored: Record | None) -> Run:
        return TallyRun(self, saving, watch)


class TallyRun(Run):
    """A run under way."""

    def __init__(self, plan: TallyPlan, saving: Saving, watch: Watch) -> None:
        self.plan, self.saving, self.watch = plan, saving, watch
        self.contents, self.planned = contents(plan.model.samples), plan.rows
        self.where = {"engine": "none", "devices": "cpu"}

    def rows(self, recording: Recording) -> Iterator[FileRow | None]:
        self.watch.on_stage("", self.planned)
        for step in range(recording.rows, self.planned):
            yield {"step": step, "satisfied": (self.plan.model.couplings > 0).sum(axis=1)}
            self.watch.on_updates(1)
            if self.saving.due():
                yield None


@dataclass(frozen=True, repr=False)
class TallyResult(Result):
    """Satisfied bonds, (times, samples)."""

    job = "tally"
    series_group = GROUP

    model: Ising
    satisfied: np.ndarray
    record: Record

    @property
    def _run_facts(self) -> dict[str, str]:
        return {"times": f"{len(self.satisfied)} times"}


def contents(samples: int) -> Record:
    satisfied = Series("satisfied", (STEP, "sample"), np.int64, "satisfied bonds")
    return Record({}, {}, {GROUP: group_of([satisfied], {"sample": samples})})


class TallyJob(Job):
    """The record of the job."""

    name = "tally"
    a_run = "a tally run"
    about = "Count bonds."
    counts_rows = True
    config = Tally
    plan_type = TallyPlan

    def read(self, record: Record, model: Ising) -> TallyResult:
        return TallyResult(model, record[f"{GROUP}/satisfied"], record)

    def plan(self, config: Tally) -> TallyPlan:
        model = build_model(config.model, config.run.replicas)
        return TallyPlan(config, model, resolve_device("cpu"), *identify(config, model))

    @property
    def report(self) -> Reports:
        return sys.modules[__name__]


def describe(plan: TallyPlan) -> str:
    return f"Counting bonds of {plan.model.name}"


def outcome(plan: TallyPlan, result: TallyResult, rate: float | None) -> tables.Report:
    return tables.Report([tables.Row(key="satisfied", value=result.satisfied[-1]), "Bonds were counted"])


def show(path: Path, result: TallyResult) -> tables.Report:
    head = head_of_steps(path, result, 0, len(result.satisfied), result.config["tally"]["times"])
    return tables.Report([*head, tables.Row("Satisfied", result.satisfied[-1], key="satisfied")])


def columns(result: TallyResult, by: str) -> tables.Columns:
    raise no_table("a tally run", result)


JOB = TallyJob()
