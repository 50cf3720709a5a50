"""Runs of several MPI ranks on the CPU: files, interruptions, and ranks that fail, die or fall silent."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from harness import Outcome, contents, one_sentence, run
from several import OF_FEW_SAMPLES, OWN
from test_split import RUNS

import spinsim as ss
from spinsim.parallel import Launched, launched

ONE = {
    "anneal-blocks": OF_FEW_SAMPLES["anneal"],
    "anneal-population": OF_FEW_SAMPLES["anneal-population"],
    "anneal-sites": OF_FEW_SAMPLES["anneal-sites"],
    "anneal-gaussian": OF_FEW_SAMPLES["anneal-field"],
    "temper-blocks": OF_FEW_SAMPLES["temper"],
    "temper-sites": OF_FEW_SAMPLES["temper-sites"],
    "quantum-blocks": OF_FEW_SAMPLES["quantum"],
}
"""Runs of one sample or two, whose replicas ranks share out."""
LONG = "anneal --lattice cubic --size 8 --couplings pm-j --samples 4 --replicas 128 --steps 200 --sweeps 20 --quiet"
SLABS = "anneal --size 256x10 --couplings pm-j --steps 4 --sweeps 2 --save-configurations 2"
LONG_LADDER = (
    "temper --lattice cubic --size 6 --couplings pm-j --temperatures 1:2:70g --replicas 2 --thermalize 100 "
    "--sweeps 1000 --quiet"
)
FEW = {"anneal": RUNS["anneal"], "temper": RUNS["temper-gaussian"], "quantum": RUNS["quantum"], **ONE, "slabs": SLABS}


def mpiexec() -> str:
    """The launcher beside this Python or on the path."""
    found = shutil.which("mpiexec", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if found is None:
        pytest.skip("there is no mpiexec: install mpich or openmpi")
    pytest.importorskip("mpi4py", reason="mpi4py is missing: install spinsim-ising[mpi]")
    return found


def mpi_environment() -> dict[str, str]:
    """Variables by which Open MPI 4 and 5 start ranks as root too, and more of them than there are processors."""
    return os.environ | {
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "OMPI_MCA_rmaps_base_oversubscribe": "1",
        "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    }


def begin(ranks: int, folder: Path, line: str, code: str = "") -> subprocess.Popen[str]:
    """``spinsim`` on several ranks, after the statements of ``code``."""
    start = [sys.executable, "-c", f"{code}\nfrom spinsim.cli import main; main()", *line.split()]
    streams: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([mpiexec(), "-n", str(ranks), *start], cwd=folder, env=mpi_environment(), **streams)


def on_ranks(ranks: int, folder: Path, line: str, code: str = "") -> Outcome:
    process = begin(ranks, folder, line, code)
    out, err = process.communicate(timeout=100)
    return Outcome(process.returncode, out, err)


@pytest.mark.system
@pytest.mark.parametrize(
    ("job", "ranks"),
    [
        ("anneal", 3),
        ("temper", 2),
        ("quantum", 3),
        ("slabs", 3),
        ("anneal-sites", 3),
        ("temper-sites", 2),
        ("temper-blocks", 3),
    ]
    + [
        pytest.param(job, ranks, marks=pytest.mark.slow)
        for job, ranks in (
            *(("anneal", 2), ("temper", 3), ("quantum", 2), ("anneal-blocks", 3), ("anneal-gaussian", 3)),
            *(("quantum-blocks", 2), ("slabs", 2), ("temper-sites", 3), ("anneal-population", 3)),
        )
    ],
)
def test_files_of_several_ranks_are_those_of_one(do, tmp_path: Path, job: str, ranks: int) -> None:
    line = FEW[job] + " --device cpu --threads 1 --quiet --out"
    assert on_ranks(ranks, tmp_path, f"{line} a.h5") == (0, "", "")
    assert contents(tmp_path / "a.h5", *OWN) == contents(do(f"{line} b.h5", "one"), *OWN)


@pytest.mark.system
@pytest.mark.parametrize("line", [LONG, pytest.param(LONG_LADDER, marks=pytest.mark.slow)], ids=["samples", "ladder"])
def test_a_run_is_interrupted_and_goes_on_with_another_number_of_ranks(do, tmp_path: Path, line: str) -> None:
    code = (
        "from spinsim.jobs.anneal.run import AnnealRun\nfrom spinsim.jobs.ladder.run import LadderRun\n"
        "for run in (AnnealRun, LadderRun):\n"
        "    def stop(self, recording, rows=run.rows):\n"
        "        self.saving.asked_to_stop = True\n        return rows(self, recording)\n"
        "    run.rows = stop"
    )
    found = on_ranks(3, tmp_path, f"{line} --out b.h5", code)
    assert "Interrupted; spinsim resume b.h5" in found.err
    assert found.status != 0
    assert on_ranks(2, tmp_path, "resume b.h5 --quiet") == (0, "", "")
    assert contents(tmp_path / "b.h5", *OWN) == contents(do(f"{line} --out a.h5", "one"), *OWN)


SEARCHES = {
    "anneal": "anneal --size 8 --couplings pm-j --samples 3 --seed 1 --replicas 8 --steps 20 --anneals 3 --target=-128",
    "temper": "temper --size 8 --couplings pm-j --samples 3 --seed 1 --temperatures 0.4:2:2g --replicas 1 "
    "--measure-every 1 --swap-every 1 --target=-92,-90,-90",
}
"""Searches that end after three anneals and where the target is met."""


@pytest.mark.system
@pytest.mark.parametrize("job", SEARCHES)
def test_a_search_goes_on_with_several_ranks(do, tmp_path: Path, job: str) -> None:
    line, status = SEARCHES[job] + " --quiet --out", 3 if job == "anneal" else 0
    code = (
        "from spinsim.run.plan import Saving\ncalls = []\n"
        "def due(self):\n"
        "    calls.append(0)\n    self.asked_to_stop = len(calls) > 20\n    return self.asked_to_stop\n"
        "Saving.due = due"
    )
    assert "Interrupted; spinsim resume a.h5" in on_ranks(2, tmp_path, f"{line} a.h5", code).err
    assert on_ranks(2, tmp_path, "resume a.h5 --quiet")[0] == status
    expected, found = ss.load(do(f"{line} b.h5", "one", status)), ss.load(tmp_path / "a.h5")
    for name in ("energy", "best_energy", "best_spins"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))


@pytest.mark.system
def test_an_error_of_one_rank_ends_all_with_its_sentence(tmp_path: Path) -> None:
    code = (
        "import os\nfrom spinsim.errors import InputError\nfrom spinsim.engine.cpu import CpuEngine\n"
        "def refuse(self, beta):\n    raise InputError('no room')\n"
        "if os.environ.get('PMI_RANK', os.environ.get('OMPI_COMM_WORLD_RANK')) == '1': CpuEngine.set_beta = refuse"
    )
    found = on_ranks(2, tmp_path, LONG, code)
    assert found.status == 2
    assert "spinsim: rank 1 on " in found.err
    assert found.err.splitlines()[0].endswith("no room")


@pytest.mark.system
def test_bad_input_is_refused_once(tmp_path: Path) -> None:
    found = on_ranks(3, tmp_path, "anneal --size 0")
    assert found.err.count("size '0' is not a lattice size") == 1
    assert found.status == 2
    assert not list(tmp_path.iterdir())


@pytest.mark.system
@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes as Linux shows them")
@pytest.mark.parametrize(
    ("number", "line"),
    [(signal.SIGKILL, LONG_LADDER), (signal.SIGSTOP, LONG), pytest.param(signal.SIGKILL, LONG, marks=pytest.mark.slow)],
)
def test_a_rank_that_dies_or_falls_silent_ends_the_job(do, tmp_path: Path, number: signal.Signals, line: str) -> None:
    """The file goes on afterwards to the same bits."""
    code = "from spinsim.parallel import ranks\nranks.BEAT_EVERY, ranks.SILENT_FOR = 0.2, 2.0"
    process = begin(2, tmp_path, f"{line} --out a.h5 --checkpoint-every 0", code)
    end = time.monotonic() + 60
    while not (tmp_path / "a.h5").exists() and time.monotonic() < end:
        time.sleep(0.05)
    time.sleep(0.5)
    first, second = ranks_of(tmp_path)
    os.kill(second, number)
    _, err = process.communicate(timeout=60)
    assert process.returncode != 0
    if number == signal.SIGSTOP:
        assert "spinsim: rank 1 has not been heard of for 2 s" in err
    while (alive(first) or alive(second)) and time.monotonic() < end:
        time.sleep(0.05)
    assert not alive(first)
    assert not alive(second)
    expected = contents(do(f"{line} --out b.h5", "one"), *OWN)
    do(f"resume {tmp_path / 'a.h5'} --quiet", "one")
    assert contents(tmp_path / "a.h5", *OWN) == expected


@pytest.mark.system
def test_a_rank_that_never_arrives_ends_the_job(tmp_path: Path) -> None:
    code = (
        "import os, time\nfrom spinsim.parallel import ranks\nranks.SILENT_FOR = 2.0\n"
        "from spinsim.parallel import launched\nif launched().rank == 1: time.sleep(60)"
    )
    began = time.monotonic()
    outcome = on_ranks(2, tmp_path, f"{LONG} --out a.h5", code)
    assert outcome.status != 0
    assert "has started 2 ranks, of which not all have arrived after 2 s, so that the job ends" in outcome.err
    assert time.monotonic() - began < 30
    assert not (tmp_path / "a.h5").exists()


@pytest.mark.system
def test_a_rank_that_is_slow_to_leave_is_waited_for(tmp_path: Path) -> None:
    """It hears the last sign of life of rank 0 long before it gives its own."""
    code = (
        "import time\nfrom spinsim.parallel import ranks, session\nranks.BEAT_EVERY, ranks.SILENT_FOR = 0.1, 5.0\n"
        "serve = session.serve\nsession.serve = lambda given: (serve(given), time.sleep(1))"
    )
    assert on_ranks(2, tmp_path, "devices", code).status == 0


def ranks_of(folder: Path) -> list[int]:
    """Processes that have been started in a folder with ``main``, in the order of their ranks."""
    found = {}
    for process in Path("/proc").iterdir():
        try:
            if process.name.isdigit() and (process / "cwd").readlink() == folder:
                environment = dict(
                    part.split("=", 1) for part in (process / "environ").read_text().split("\0") if "=" in part
                )
                how = launched(environment)
                if how is not None:
                    found[how.rank] = int(process.name)
        except OSError:
            continue
    return [found[rank] for rank in sorted(found)]


def alive(process: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{process}/status").read_text()
    except OSError:
        return False


def test_how_a_process_was_started() -> None:
    assert launched({}) is None
    assert launched({"PMI_RANK": "0", "PMI_SIZE": "1"}) is None
    assert launched({"PMI_RANK": "1", "PMI_SIZE": "3"}) == Launched(1, 3, "MPICH")
    assert launched({"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "2"}) == Launched(0, 2, "Open MPI")
    assert launched({"SLURM_PROCID": "0", "SLURM_NTASKS": "4"}) is None  # a batch script
    assert launched({"SLURM_PROCID": "2", "SLURM_STEP_NUM_TASKS": "4"}) == Launched(2, 4, "Slurm")


def test_a_missing_mpi4py_is_named_once(capsys, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    for name, value in (("PMI_RANK", "0"), ("PMI_SIZE", "2")):
        monkeypatch.setenv(name, value)
    one_sentence(run(capsys, monkeypatch, "devices"), "MPICH has started 2 ranks", "install spinsim-ising[mpi]")
    monkeypatch.setenv("PMI_RANK", "1")
    assert run(capsys, monkeypatch, "devices") == (2, "", "")
