"""Configurations: tables of several jobs in one file, lists of numbers, names of devices; completion of the shell."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from harness import one_sentence, run

import spinsim as ss
from spinsim.engine import resolve_device
from spinsim.jobs import all_jobs
from spinsim.jobs.anneal.settings import Anneal
from spinsim.jobs.temper.settings import Temper
from spinsim.jobs.transfer.settings import Transfer
from spinsim.settings.config import build_config, read_toml

JOBS = [job.config for job in all_jobs()]

SHARED = """
[model]
lattice = "square"
size = [4, 6]
couplings = "pm-j"

[temper]
temperatures = [0.8, 1, 1.25]

[anneal]
steps = 7

[transfer]
k = [0.2, 0.3]
"""


def test_jobs_share_a_file(tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    path.write_text(SHARED)
    anneal, temper, transfer = (build_config(job, read_toml(path, job, JOBS)) for job in (Anneal, Temper, Transfer))
    assert isinstance(anneal, Anneal)
    assert isinstance(temper, Temper)
    assert isinstance(transfer, Transfer)
    assert anneal.anneal.steps == 7
    assert anneal.model.shape == (4, 6)
    assert temper.temper.ladder.tolist() == [0.8, 1.0, 1.25]
    assert transfer.transfer.points(None).k.tolist() == [0.2, 0.3]
    assert transfer.model == anneal.model


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[temper]\ntemperatures = [0.8, true]\n", "give a string, a number or a list of numbers"),
        ("[temper]\ntemperatures = []\n", "give a string, a number or a list of numbers"),
        ("[temper]\ntemperatures = [1.2, 0.8]\n", "'1.2,0.8' do not rise"),
        ("[anneal]\nsweps = 3\n", "did you mean 'sweeps'"),
    ],
)
def test_what_is_refused_in_a_shared_file(capsys, monkeypatch, tmp_path, text: str, words: str) -> None:
    path = tmp_path / "a.toml"
    path.write_text(text)
    one_sentence(run(capsys, monkeypatch, "temper", "--config", path), words)


def test_gpu_is_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spinsim.cuda.device.why_not", lambda: None)
    assert resolve_device("gpu") == resolve_device("cuda") == resolve_device("auto") == "cuda"
    monkeypatch.setattr("spinsim.cuda.device.why_not", lambda: "no GPU here")
    assert resolve_device("auto") == "cpu"
    with pytest.raises(ss.InputError, match="no GPU here"):
        resolve_device("gpu")


def test_the_shell_completes_commands_and_flags() -> None:
    asked = {"COMP_WORDS": "spinsim anneal --sch", "COMP_CWORD": "2", "_SPINSIM_COMPLETE": "complete_bash"}
    done = subprocess.run(
        [sys.executable, "-m", "spinsim"], env=os.environ | asked, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["--schedule"]
