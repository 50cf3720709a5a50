"""Events of a run in the log of Python, and ``--verbose`` on standard error."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from harness import run

import spinsim as ss

WORDS = ("temper", "--size", 4, "--temperatures", "2,3", "--sweeps", 200, "--thermalize", 0, "--device", "cpu")


@pytest.fixture(autouse=True)
def _quiet_afterwards():
    yield
    logging.getLogger("spinsim").setLevel(logging.NOTSET)


def test_a_run_logs_its_engine_and_its_end(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "spinsim"):
        ss.temper(ss.Ising(ss.square(4)), [2.0, 3.0], sweeps=200, thermalize=0)
    texts = [record.getMessage() for record in caplog.records if not record.getMessage().startswith("compiling ")]
    assert texts == ["temper of square-4x4: engine cpu, replica-packed, devices cpu", "finished with 20 rows"]


def test_verbose_logs_a_resumed_run(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, folder: Path
) -> None:
    assert run(capsys, monkeypatch, *WORDS, "--out", "a.h5", "--quiet").status == 0
    assert not caplog.records  # without the flag nothing is logged
    assert run(capsys, monkeypatch, "resume", "a.h5", "--sweeps", 400, "--quiet", "--verbose").status == 0
    assert "continuing from a checkpoint after 20 rows" in caplog.messages
    assert caplog.messages[-1] == "finished with 40 rows"
