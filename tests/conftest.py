"""Settings of the whole suite."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from compiling import compile_together
from emulation.compiler import why_not
from emulation.cupy import in_place_of_cupy
from harness import run
from hypothesis import settings
from places import ROOT
from typer.main import get_command

from spinsim.cuda.device import names
from spinsim.engine.layouts import site_packed
from spinsim.engine.moves.metropolis.replica_packed.cuda_lattices import ReplicaLattices
from spinsim.machine import threads
from spinsim.machine.memory import make_current

# Processes that tests start run this very checkout too, and share its compiled kernels.
os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
# Workers and these processes solve dense matrices with one thread each: more would wait for each other.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

settings.register_profile("reproducible", deadline=None, derandomize=True)
settings.load_profile("reproducible")


@pytest.fixture(scope="session", autouse=True)
def _kernels(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Before a run of many tests all workers together compile the kernels; a run of few compiles what these need."""
    if hasattr(request.config, "workerinput") and len(request.session.items) > 300:
        shared = tmp_path_factory.getbasetemp().parent  # a folder of this run
        compile_together(shared)
        gc.freeze()  # modules and tests, which stay until the end, are not looked through again and again


@pytest.fixture(scope="session", autouse=True)
def _parser() -> Iterator[None]:
    """The parser of the command line is built once, which takes longer than most of what is tried on it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("typer.main.get_command", cache(get_command))
        yield


@pytest.fixture(scope="session", autouse=True)
def _formulas() -> Iterator[None]:
    """Formulas in figures are parsed once: Matplotlib keeps fifty of them, and a third of a figure's time is theirs."""
    from matplotlib.mathtext import MathTextParser

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MathTextParser, "_parse_cached", cache(MathTextParser._parse_cached.__wrapped__))
        yield


@pytest.fixture(scope="session", autouse=True)
def _processors(request: pytest.FixtureRequest) -> Iterator[None]:
    """Runs within a worker take its share of the processors; tests of threads give a number of their own."""
    workers = int(getattr(request.config, "workerinput", {}).get("workercount", 1))
    with pytest.MonkeyPatch.context() as patch:
        share = max(1, threads.available_threads() // workers)
        patch.setattr(threads, "available_threads", lambda: share)
        yield


@pytest.fixture
def any_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """All lattices that can be are site-packed, of any number of replicas."""
    monkeypatch.setattr(site_packed, "MOST_REPLICAS", 2**31)
    monkeypatch.setattr(site_packed, "LEAST_SITES", 0)


@pytest.fixture
def not_spread(monkeypatch: pytest.MonkeyPatch) -> None:
    """No lattice is spread over a GPU: few are in shared or in global memory, as many are."""
    monkeypatch.setattr(ReplicaLattices, "are_spread", lambda *_: False)


@pytest.fixture
def emulated() -> Iterator[None]:
    """GPU engines run on the CPU."""
    reason = why_not()
    if reason:
        pytest.skip(reason)
    with in_place_of_cupy():
        make_current(0)
        yield


@pytest.fixture
def two_gpus() -> None:
    """The test is skipped where there are fewer than two GPUs."""
    if len(names()) < 2:
        pytest.skip("there are fewer than two GPUs")


@pytest.fixture(
    params=[
        "cpu",
        pytest.param("cuda", marks=pytest.mark.gpu),
        pytest.param("emulated", marks=pytest.mark.emulated),
    ]
)
def device(request: pytest.FixtureRequest) -> str:
    """Every device: one test body serves them all, and a run of the GPU tests without a GPU fails."""
    if request.param == "emulated":
        request.getfixturevalue("emulated")
        return "cuda"
    if request.param == "cuda":
        make_current(0)  # tests that call parts of a run begin their thread as a run does
    return str(request.param)


@pytest.fixture
def do(capsys, monkeypatch, tmp_path):
    """Run a command in a folder below ``tmp_path`` and return the HDF5 file in it."""

    def command(line: str, folder: str = "a", status: int = 0) -> Path:
        where = tmp_path / folder
        where.mkdir(exist_ok=True)
        monkeypatch.chdir(where)
        outcome = run(capsys, monkeypatch, *line.split())
        assert outcome.status == status, outcome
        return next(where.rglob("*.h5"))

    return command
