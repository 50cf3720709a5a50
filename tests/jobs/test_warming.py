"""Warming up: afterwards the runs of these jobs compile nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from harness import finish, one_sentence, run, spinsim

import spinsim as ss
from spinsim.jobs import all_jobs, warming
from spinsim.machine import stored

TRANSFER = "ss.transfer(ss.EdwardsAnderson(ss.square(4)), k=0.3, device='cpu')"
COMMON = """
import numpy as np
graph = ss.read_instance('examples/data/G11.txt')
degrees = ss.read_instance('tests/data/G14.txt')
real = ss.Ising(graph.graph, np.random.default_rng(1).normal(size=graph.graph.bonds))
field = ss.Ising(ss.square(16), field=0.5 * np.ones(256))
for model in (graph, degrees, real, ss.EdwardsAnderson(ss.cubic(8)), field):
    ss.anneal(model, [3.0, 1.0], sweeps=10, replicas=64, device='cpu')
    ss.temper(model, [1.0, 3.0], sweeps=20, thermalize=10, device='cpu')
    ss.temper(model, time_limit=0.1, device='cpu')
    ss.anneal(model, time_limit=0.1, device='cpu')
for model in (ss.Ising(ss.square(16)), ss.EdwardsAnderson(ss.cubic(10), field=0.5)):
    ss.anneal(model, [3.0, 1.0], sweeps=10, replicas=1, device='cpu')
    ss.temper(model, [3.0], sweeps=20, thermalize=10, replicas=1, device='cpu')
ss.temper(ss.EdwardsAnderson(ss.cubic(8)), [1.0, 3.0], sweeps=20, thermalize=10, replicas=8, device='cpu')
ss.quantum(ss.EdwardsAnderson(ss.square(8)), k=[0.2, 0.3], slices=16, sweeps=20, thermalize=0, device='cpu')
"""


def in_process(code: str, folder: Path) -> str:
    """Run code in a new process whose kernels are in a folder; the kernels that it compiled."""
    check = "from spinsim.machine.compiled import COMPILED\nprint([name for name, _ in COMPILED])"
    command = [sys.executable, "-c", f"import spinsim as ss\n{code}\n{check}"]
    surroundings = os.environ | {"NUMBA_CACHE_DIR": str(folder)}
    return subprocess.run(command, capture_output=True, text=True, check=True, env=surroundings).stdout.strip()


def warm(folder: Path, *words: str) -> str:
    """Call ``spinsim warm-up`` for a folder."""
    command = [sys.executable, "-m", "spinsim", "warm-up", *words, "--device", "cpu"]
    surroundings = os.environ | {"NUMBA_CACHE_DIR": str(folder)}
    return subprocess.run(command, capture_output=True, text=True, check=True, env=surroundings).stdout


@pytest.mark.system
def test_nothing_is_compiled_after_warming_up(tmp_path: Path) -> None:
    told = warm(tmp_path, "transfer")
    assert told.startswith("Kernels are compiled in 1 small run, ")
    assert " 1 of 1  transfer chains and squares                   begun\n" in told
    assert " 1 of 1  transfer chains and squares                   6 kernels in " in told
    assert "6 kernels compiled" in told
    assert str(tmp_path) in told
    assert in_process(TRANSFER, tmp_path) == "[]"
    assert "All kernels were compiled already" in warm(tmp_path, "transfer")


@pytest.mark.system
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])
def test_children_end_with_a_warm_up_that_is_stopped(tmp_path: Path, number: int) -> None:
    child = "import os, time; open(f'{os.getpid()}.pid', 'w').close(); time.sleep(99)"
    told = spinsim(
        tmp_path, "warm-up", "temper", code=f"from spinsim.jobs import warming; warming._OF_CHILD = {child!r}"
    )
    while not (begun := list(tmp_path.glob("*.pid"))):
        time.sleep(0.01)
    told.send_signal(number)
    outcome = finish(told)
    assert outcome.status == 130
    assert "1 of 13  temper" in outcome.out
    assert outcome.err == "Interrupted; finished kernels are kept, and the same command goes on with the others.\n"
    for path in begun:
        with pytest.raises(ProcessLookupError):
            os.kill(int(path.stem), 0)


@pytest.mark.slow
def test_nothing_is_compiled_after_warming_up_for_all_jobs(tmp_path: Path) -> None:
    warm(tmp_path)
    assert in_process(COMMON, tmp_path) == "[]"


def test_every_job_can_be_warmed_up() -> None:
    assert {job.name for job in all_jobs()} == set(warming.RUNS)


def test_what_cannot_be_warmed_up(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    one_sentence(run(capsys, monkeypatch, "warm-up", "tempr"), "job 'tempr' is unknown", "temper")
    (tmp_path / "file").touch()
    monkeypatch.setattr(stored, "_folders", lambda: [tmp_path / "file" / "kernels"])
    with pytest.raises(ss.InputError, match="no folder takes compiled kernels: set NUMBA_CACHE_DIR"):
        ss.warm_up(["transfer"], device="cpu")
