"""What progress bars and printed rates count: the run itself, not compiling, and not what was done before a resume."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from harness import run
from rich.progress import TextColumn
from several import on_cpus

import spinsim as ss
from spinsim.jobs.anneal import run as anneal_run
from spinsim.jobs.anneal.run import AnnealPlan
from spinsim.jobs.anneal.settings import Anneal, AnnealSettings
from spinsim.jobs.temper.run import TemperPlan
from spinsim.jobs.temper.settings import Temper, TemperSettings
from spinsim.machine.compiled import body, compiling_seconds, said_to_compile
from spinsim.run.execute import to_file
from spinsim.run.plan import Watch
from spinsim.run.progress import COMPILING, Bar, compiling_told
from spinsim.settings.shared import ModelSettings, RunSettings

RUNS = [
    (
        AnnealPlan.of,
        Anneal(anneal=AnnealSettings(steps=3, sweeps=5), run=RunSettings(checkpoint_every=0)),
    ),
    (
        TemperPlan.of,
        Temper(
            temper=TemperSettings(temperatures="1,2,3", thermalize=10, sweeps=40),
            run=RunSettings(replicas=2, checkpoint_every=0),
        ),
    ),
]


def test_compiling_does_not_count() -> None:
    with Bar(silent=True) as progress:
        progress.begin("", 100)
        progress.advance(0)
        before = compiling_seconds()
        began = time.perf_counter()
        body(lambda values: values.sum())(np.ones(3))
        whole, compiled = time.perf_counter() - began, compiling_seconds() - before
        progress.advance(100)
        assert compiled > 0.02
        assert progress.seconds <= whole - compiled + 0.01


@pytest.mark.parametrize("rows", [False, True])
def test_the_bar_says_that_kernels_are_compiled(monkeypatch: pytest.MonkeyPatch, rows: bool) -> None:
    """It stood at 0 % and 0 updates/ns meanwhile."""
    monkeypatch.setattr("spinsim.run.progress._is_seen", lambda: True)

    def shown() -> str:
        assert progress._bar is not None
        return " ".join(str(column(task)) for task in progress._bar.tasks if task.visible for column in columns(task))

    def columns(task: Any) -> list[Callable[[Any], object]]:
        assert progress._bar is not None
        return [column for column in progress._bar.columns if isinstance(column, TextColumn)]

    with Bar(rows=rows) as progress:
        progress.begin("", 100)
        progress.advance(0)
        assert "updates/ns" not in shown()
        with said_to_compile("kernel"):
            assert shown().strip() == COMPILING
        assert COMPILING not in shown()
        progress.advance(50)
        assert re.search("updates/ns|50 of 100", shown())
    with said_to_compile("kernel"), Bar(True, rows) as progress:
        assert progress._bar is None


def test_a_line_says_so_where_there_is_no_bar(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Batch logs and programs that ask for progress have a line, once, if compiling takes long."""
    monkeypatch.setattr("spinsim.run.progress.PATIENCE", 0.2)

    def said(silent: bool = False) -> str:
        with compiling_told(silent):
            for _ in range(3):
                with said_to_compile("kernel"):
                    time.sleep(0.15)
            with said_to_compile("kernel"):
                time.sleep(0.3)
        return capsys.readouterr().err

    assert said() == f"{COMPILING} ...\n"
    assert said(silent=True) == ""
    monkeypatch.setattr("spinsim.run.progress._is_seen", lambda: True)
    assert said() == ""
    monkeypatch.setattr("spinsim.run.progress.PATIENCE", 60)
    assert said() == ""


def test_first_runs_say_that_kernels_are_compiled(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Of commands the line is silenced by --quiet, in Python it comes with progress."""
    create = anneal_run.create_engine

    def slow(*arguments: Any, **options: Any) -> Any:
        with said_to_compile("kernel"):
            time.sleep(0.3)
        return create(*arguments, **options)

    monkeypatch.setattr("spinsim.run.progress.PATIENCE", 0.1)
    monkeypatch.setattr(anneal_run, "create_engine", slow)
    monkeypatch.chdir(tmp_path)
    for options, said in (("", True), ("--quiet", False), ("--json", False)):
        line = f"anneal --size 4 --steps 2 --device cpu --out run{options}.h5 {options}"
        assert (COMPILING in run(capsys, monkeypatch, *line.split()).err) == said
    for progress in (True, False):
        ss.anneal(ss.EdwardsAnderson(ss.square(4)), [3.0], sweeps=1, device="cpu", progress=progress)
        assert (COMPILING in capsys.readouterr().err) == progress


def test_devices_are_told_apart(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    on_cpus(monkeypatch, 2)
    for plan_of, config in RUNS:
        with Bar(silent=True) as progress:
            several = replace(
                config, model=ModelSettings(couplings="pm-j", samples=3), run=replace(config.run, device="cpu")
            )
            to_file(plan_of(several), Watch(progress.begin, progress.advance, on_parts=progress.watch_parts))
            (told,) = progress.speed
            assert re.search(r"s \(devices while they work: [\d.e-]+ and [\d.e-]+\)$", told)
    progress.watch_parts(lambda: [3.0, 1.0, 2.0, 5.5, 4.0])
    assert progress.speed[0].endswith(" s (devices while they work: 1 to 5.5)")


@pytest.mark.parametrize(("plan_of", "config"), RUNS, ids=["anneal", "temper"])
def test_a_resumed_run_counts_from_where_it_stood(plan_of, config, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    plan, stages, counted = plan_of(config), [], []

    def stop_on_the_way(updates: int) -> None:
        counted.append(updates)
        if len(counted) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        to_file(plan, Watch(on_updates=stop_on_the_way))
    rest = []
    watch = Watch(lambda what, updates, done: stages.append((what, updates, done)), rest.append)
    assert to_file(plan, watch)
    ((what, updates, done),) = stages
    assert what == ""
    assert 0 < done < updates
    assert done + sum(rest) == updates
