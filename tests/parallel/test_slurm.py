"""The batch scripts for Slurm, with mpiexec for srun and a stand-in for scontrol."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from places import ROOT
from test_ranks import mpi_environment, mpiexec

import spinsim as ss
from spinsim.machine.files import is_locked

SHORT = "--size 4 --samples 2 --thermalize 10 --sweeps 40 --measure-every 10 --quiet"
LONGER = "--size 6 --samples 4 --thermalize 10 --sweeps 15000 --measure-every 10 --quiet"
SCONTROL = """#!/bin/sh
echo "$@" >> requeued
"""
SCRIPTS = pytest.mark.parametrize(("script", "ranks"), [("one_node", 1), ("many_nodes", 2), ("array", 1)])
Start = Callable[[str], "subprocess.Popen[str]"]


@pytest.fixture
def start(tmp_path: Path, script: str, ranks: int) -> Start:
    """Starts a script with further flags, as Slurm does; its file is run.h5."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/scontrol").write_text(SCONTROL)
    (tmp_path / "bin/scontrol").chmod(0o755)
    folders = [str(tmp_path / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]]
    environment = mpi_environment() | {
        "PATH": os.pathsep.join(folders),
        "LAUNCH": f"{mpiexec()} -n {ranks}",
        "DEVICES": "--device cpu",
        "OUT": "run.h5",
        "SLURM_ARRAY_TASK_ID": "3",
        "SLURM_JOB_ID": "17",
    }
    line = ["bash", str(ROOT / f"examples/slurm/{script}.sh")]

    def begin(flags: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*line, *flags.split()],
            env=environment,
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    return begin


@pytest.mark.system
@SCRIPTS
def test_a_batch_script(tmp_path: Path, start: Start, script: str) -> None:
    first = start(SHORT)
    out, err = first.communicate(timeout=100)
    assert (first.returncode, err) == (0, "")
    assert ("mpi   ready: 2 ranks" in out) == (script == "many_nodes")
    second = start(SHORT)
    out, err = second.communicate(timeout=100)
    assert (second.returncode, err) == (0, "")
    assert "finished already" in out
    assert ss.load(tmp_path / "run.h5").finished
    assert not (tmp_path / "requeued").exists()


@pytest.mark.system
@SCRIPTS
def test_a_batch_script_goes_back_into_the_queue(tmp_path: Path, start: Start, script: str) -> None:
    """The signal ahead of the time limit stops each run but the last, and the job is put back once for each."""
    for times in (1, 2):
        job = start(LONGER)
        while not is_locked(tmp_path / "run.h5"):  # the run is under way
            assert job.poll() is None, job.communicate()
            time.sleep(0.01)
        job.send_signal(signal.SIGUSR1)
        _, err = job.communicate(timeout=100)
        assert job.returncode == 130, err
        assert "spinsim resume run.h5 completes it" in err
        assert (tmp_path / "requeued").read_text() == times * "requeue 17\n"
    last = start(LONGER)
    assert last.communicate(timeout=100)[1] == ""
    assert last.returncode == 0
    assert ss.load(tmp_path / "run.h5").finished
    assert (tmp_path / "requeued").read_text() == 2 * "requeue 17\n"
