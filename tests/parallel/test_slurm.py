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
Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start(tmp_path: Path, script: str, ranks: int) -> Start:
    """Starts a script with further flags and variables, as Slurm does; its file is run.h5."""
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

    def begin(flags: str, **variables: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*line, *flags.split()],
            env=environment | variables,
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
    second = start(SHORT.replace(" --quiet", ""))
    out, err = second.communicate(timeout=100)
    assert (second.returncode, err) == (0, "")
    assert "already finished" in out
    assert ss.load(tmp_path / "run.h5").finished
    other = start(SHORT.replace("--size 4", "--size 6"))
    _, err = other.communicate(timeout=100)
    assert other.returncode == 2
    assert "run.h5 holds another run and is never overwritten" in err
    assert not (tmp_path / "requeued").exists()


@pytest.mark.system
@pytest.mark.parametrize(("script", "ranks"), [("array", 1), ("one_node", 1)])
def test_files_are_named_by_flags_or_by_a_pattern(tmp_path: Path, start: Start, script: str) -> None:
    task = {"array": ("-3", "-%a"), "one_node": ("", "")}[script]
    usual = "glass-size-4-samples-2-thermalize-10-sweeps-40-measure-every-10-quiet"
    for out, name in (("", f"{usual}{task[0]}.h5"), (f"%x-L4{task[1]}.h5", f"glass-L4{task[0]}.h5")):
        job = start(SHORT, LAUNCH="", OUT=out)
        assert job.communicate(timeout=100) == ("", "")
        assert (tmp_path / name).exists()


@pytest.mark.system
@pytest.mark.parametrize(("script", "ranks"), [("array", 1)])
def test_a_killed_run_is_not_put_back_into_the_queue(tmp_path: Path, start: Start) -> None:
    job = start(LONGER, LAUNCH="")
    while not is_locked(tmp_path / "run.h5"):
        assert job.poll() is None, job.communicate()
        time.sleep(0.01)
    (child,) = Path(f"/proc/{job.pid}/task/{job.pid}/children").read_text().split()
    os.kill(int(child), signal.SIGKILL)
    _, err = job.communicate(timeout=100)
    assert job.returncode == 137
    assert "stopped with status 137: the same command continues it from its last checkpoint" in err
    assert not (tmp_path / "requeued").exists()
    again = start(LONGER, LAUNCH="")
    assert again.communicate(timeout=100) == ("", "")
    assert ss.load(tmp_path / "run.h5").finished


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


@pytest.mark.system
@pytest.mark.parametrize(("script", "ranks"), [("campaign", 1)])
def test_tasks_of_a_campaign_go_back_into_the_queue_and_share_its_runs(tmp_path: Path, start: Start) -> None:
    text = "[temper]\nthermalize = 10\nsweeps = 40_000\n[campaign]\nsize = [4, 6]\nseed = [1, 2]\n"
    (tmp_path / "own.toml").write_text(text)
    job = start("own.toml --device cpu")
    while not any(map(is_locked, tmp_path.glob("runs/own/*.h5"))):
        assert job.poll() is None, job.communicate()
        time.sleep(0.01)
    job.send_signal(signal.SIGUSR1)
    assert job.communicate(timeout=100)[1] == "Interrupted; spinsim campaign own.toml goes on.\n"
    assert job.returncode == 130
    assert (tmp_path / "requeued").read_text() == "requeue 17\n"
    tasks = [start("own.toml --device cpu") for _ in range(2)]
    assert [(task.communicate(timeout=100), task.returncode) for task in tasks] == [(("", ""), 0)] * 2
    assert {one.state for one in ss.campaign(tmp_path / "own.toml").states} == {"finished"}
