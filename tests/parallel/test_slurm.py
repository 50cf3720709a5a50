"""The batch scripts for Slurm, started by mpiexec instead of srun, and started again as a requeued job is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from places import ROOT
from test_ranks import mpi_environment, mpiexec

import spinsim as ss

SHORT = "--size 4 --samples 2 --thermalize 10 --sweeps 40 --measure-every 10 --quiet"


@pytest.mark.system
@pytest.mark.parametrize(("script", "ranks"), [("one_node", 1), ("many_nodes", 2), ("array", 1)])
def test_a_batch_script(tmp_path: Path, script: str, ranks: int) -> None:
    file = tmp_path / f"{script}.h5"
    environment = mpi_environment() | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "LAUNCH": f"{mpiexec()} -n {ranks}",
        "DEVICES": "--device cpu",
        "OUT": str(file),
        "SLURM_ARRAY_TASK_ID": "3",
    }
    line = ["bash", str(ROOT / f"examples/slurm/{script}.sh"), *SHORT.split()]
    first, second = (
        subprocess.run(line, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=100, check=False)
        for _ in range(2)
    )
    assert (first.returncode, first.stderr) == (0, "")
    assert ("mpi   ready: 2 ranks" in first.stdout) == (script == "many_nodes")
    assert (second.returncode, second.stderr) == (0, "")
    assert "finished already" in second.stdout
    assert ss.load(file).finished
