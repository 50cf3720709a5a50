"""A job for tests: how many bonds each of a few all-up configurations satisfies. All of a job is in this file."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from spinsim import store
from spinsim.engine import resolve_device
from spinsim.jobs.base import Job, Told
from spinsim.jobs.reports import head_of_steps
from spinsim.model.ising import Ising
from spinsim.result import Result, load
from spinsim.run import Plan, Watch
from spinsim.run.common import Saving, build_model, identify
from spinsim.run.identity import open_own
from spinsim.run.progress import Bar, RowProgress
from spinsim.settings.config import Config, table
from spinsim.settings.setting import Table, setting
from spinsim.store.contents import Contents, Form, Series, group_of, length_of

GROUP = "tally"


@dataclass(frozen=True)
class TallySettings(Table):
    """How often."""

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

    def carry_out(self, begun: bool, saving: Saving, watch: Watch) -> None:
        if not begun:
            store.create(self.path, self.model, contents(self.model.samples), self.rows, self.attributes)
        watch.on_stage("", self.rows)
        with open_own(self, begun) as file:
            for step in range(self.rows):
                file.write({"step": step, "satisfied": (self.model.couplings > 0).sum(axis=1)})
                watch.on_updates(1)
            file.finish()


@dataclass(frozen=True, repr=False)
class TallyResult(Result):
    """Satisfied bonds, (times, samples)."""

    job = "tally"

    model: Ising
    satisfied: np.ndarray
    attributes: dict[str, str] = field(default_factory=dict)

    @property
    def _run_facts(self) -> dict[str, str]:
        return {"times": f"{len(self.satisfied)} times"}


def contents(samples: int) -> Contents:
    rows = (Series("step", (), np.int64, "time"), Series("satisfied", ("sample",), np.int64, "satisfied bonds"))
    return Contents({"sample": np.arange(samples)}, {}, tuple(series._replace(group=GROUP) for series in rows))


def contents_of(file: h5py.File, sizes: Any) -> tuple[Contents, int]:
    return contents(length_of(group_of(file, GROUP), "sample")), 0


class TallyJob(Job):
    """The record."""

    name = "tally"
    a_run = "a tally run"
    about = "Count bonds."
    config = Tally
    plan_type = TallyPlan
    form = Form(planned={"times": (int,)}, groups=(GROUP,), contents=contents_of)

    def read(self, file: h5py.File, rows: int, attributes: dict[str, str]) -> TallyResult:
        return TallyResult(store.read_model(file), file[f"{GROUP}/satisfied"][:rows], attributes)

    def plan(self, config: Tally) -> TallyPlan:
        model = build_model(config.model, config.run.replicas)
        return TallyPlan(config, model, resolve_device("cpu"), *identify(config, model))

    def progress(self, silent: bool) -> Bar:
        return RowProgress(silent)

    def describe(self, plan: TallyPlan) -> str:
        return f"Counting bonds of {plan.model.name}"

    def outcome(self, plan: TallyPlan, rate: float | None) -> Told:
        return Told(self.show(plan.path).numbers, ["Bonds were counted"])

    def show(self, path: Path) -> Told:
        found = load(path)
        counts = found.satisfied[-1].tolist()
        head = head_of_steps(path, found, 0, len(found.satisfied), found.config["tally"]["times"])
        return Told({"satisfied": counts}, [*head, f"Satisfied  {counts}"])


JOB = TallyJob()
